//! The page of one result.

use super::charts::{self, Source};
use super::pairs;
use super::steps::{self, notes};
use super::terminal::{in_words, published_by};
use super::verdict::{self, Taken};
use super::words::{machine, shell, when};
use super::{costs, targets, time};
use crate::compare::pairs::judge;
use crate::{Environment, Machine, Results, TestResult};
use weir_report::{Column, Page, Table};

/// Up to so many steps their charts over time are shown without being asked for.
const OPEN_CHARTS_MAX: usize = 6;

/// The whole file.
pub(super) fn page(results: &Results) -> String {
    let named = !results.label.is_empty() && results.label != results.target;
    let title = match (results.tests.as_slice(), named) {
        ([one], true) => format!("{}: {}", results.label, one.title),
        ([one], false) => one.title.clone(),
        (_, true) => format!("Benchmark of {}", results.label),
        (_, false) => "Benchmark".to_owned(),
    };
    let lead = format!("{}, measured {}.", results.target, when(results.started_unix_s));
    let mut page = Page::new(&title, &lead);
    say_verdict(&mut page, results);
    page.facts(&verdict::facts(results));
    if !results.warnings.is_empty() {
        page.alert("Before believing the figures", results.warnings.iter().cloned());
    }
    let ids: Vec<String> =
        results.tests.iter().zip(1..).map(|(test, number)| id(number, &test.name)).collect();
    let mut entries: Vec<(&str, &str)> = ids
        .iter()
        .zip(&results.tests)
        .map(|(id, test)| (id.as_str(), test.title.as_str()))
        .collect();
    let judged = judge(&[results]);
    entries.extend(pairs::entry(&judged));
    entries.extend([("environment", "Where it was measured"), ("commands", "To repeat it")]);
    page.contents(entries);
    for (test, id) in results.tests.iter().zip(&ids) {
        write_test(&mut page, (test, &results.environment), id);
    }
    pairs::write(&mut page, &judged);
    page.chapter("environment", "Where it was measured");
    page.table(&environment(&results.environment, &results.program));
    page.chapter("commands", "To repeat it");
    repeat(&mut page, results);
    page.to_html(&foot(&results.program))
}

pub(super) fn foot(program: &str) -> String {
    let program = if program.is_empty() { "an unknown version" } else { program };
    format!(
        "Measured by weir bench, {program}. Medians of repeats; latencies from the moment a request \
         was due to the end of its reply; MiB is 2^20 bytes."
    )
}

fn say_verdict(page: &mut Page, results: &Results) {
    let (taken, word, sentence) = verdict::of(results);
    match taken {
        Taken::Sound => page.judgement(true, word, &sentence),
        Taken::Bad => page.judgement(false, word, &sentence),
        Taken::WithCare => page.remark(word, &sentence),
    }
}

/// The command line of these results.
pub(super) fn repeat(page: &mut Page, results: &Results) {
    if results.command.is_empty() {
        page.paragraph("The command line was not recorded.");
    } else {
        page.code(&shell(&results.command));
    }
}

/// An anchor: letters, digits and dashes alone, and unique by its number.
pub(super) fn id(number: usize, name: &str) -> String {
    let plain = |letter: char| {
        if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' }
    };
    format!("test-{number}-{}", name.chars().take(80).map(plain).collect::<String>())
}

/// Machines, transport and settings.
pub(super) fn environment(environment: &Environment, program: &str) -> Table {
    let mut rows = Vec::new();
    let mut add = |name: String, text: String| {
        if !text.is_empty() {
            rows.push(vec![name.into(), text.into()]);
        }
    };
    let named = |role: &str, one: &Machine| match one.name.as_str() {
        "" => role.to_owned(),
        name => format!("{role} {name}"),
    };
    for one in &environment.clients {
        add(named("client", one), machine(one));
    }
    if let Some(one) = &environment.server {
        add(named("server", one), machine(one));
    }
    add("transport".to_owned(), environment.transport.clone());
    add("program".to_owned(), program.to_owned());
    for (name, value) in &environment.settings {
        add(format!("setting {name}"), value.clone());
    }
    for contract in environment.contracts.values() {
        add(format!("contract of volume {}", contract.volume), contract.in_words());
    }
    for (name, value) in &environment.facts {
        add(name.clone(), value.clone());
    }
    Table { columns: vec![Column::words("what"), Column::prose("value")], rows }
}

fn write_test(page: &mut Page, (test, environment): (&TestResult, &Environment), id: &str) {
    page.chapter(id, &test.title);
    if !test.about.is_empty() {
        page.paragraph(&test.about);
    }
    if let Some(waiting) = &test.waiting {
        page.remark("Not run", waiting);
        return;
    }
    let source = test.source.as_ref().map(|source| format!("Source: {source}"));
    let changes = test.changes.iter().map(|change| format!("Changed: {change}"));
    let lines: Vec<String> = source.into_iter().chain(changes).collect();
    if !lines.is_empty() {
        page.list(lines);
    }
    let notes = notes(test);
    if !notes.is_empty() {
        page.alert("To know about these figures", notes);
    }
    if let Some(failures) = costs::failures(test) {
        page.subsection("What failed");
        page.table(&failures);
    }
    if !test.findings.is_empty() {
        page.subsection("Found");
        page.list(test.findings.iter().map(|finding| match finding.steps.as_slice() {
            [] => format!("{}.", in_words(finding)),
            steps => format!("{} (steps {}).", in_words(finding), steps.join(", ")),
        }));
    }
    write_figures(page, test);
    let limits = steps::limits(test, environment);
    if !limits.is_empty() {
        page.list(limits);
    }
    write_targets(page, test);
    write_latency(page, test);
    write_costs(page, test);
    write_method(page, test);
}

fn write_figures(page: &mut Page, test: &TestResult) {
    let charts = charts::of(&[Source { label: "", test }]);
    if steps::measured(test).next().is_some() {
        for (svg, caption) in &charts.wide {
            page.figure(svg, caption);
        }
        if !charts.small.is_empty() {
            page.scrolled_grid(charts.small);
        }
    }
    page.table(&steps::table(test, false));
    let who = published_by(test);
    if !who.is_empty() {
        page.paragraph(&format!(
            "Published: {}. “Of it” is the measured figure as a part of the published one; the machines are not the same.",
            who.join("; ")
        ));
    }
    if steps::shown(test).any(|step| step.written_in_flight.is_some()) {
        page.paragraph(
            "“In flight”: requests in flight, and their number in the published or written test. \
             The names of steps are those of that test.",
        );
    }
    if test.steps.iter().any(|step| step.runs.len() > 1) {
        page.details("Every repeat", &costs::repeats(test));
    }
}

fn write_targets(page: &mut Page, test: &TestResult) {
    let (Some(svg), Some(table)) = (targets::chart(test), targets::table(test)) else { return };
    page.subsection("Targets");
    page.figure(&svg, targets::CAPTION);
    page.table(&table);
}

fn write_latency(page: &mut Page, test: &TestResult) {
    if let Some(svg) = charts::percentiles(test) {
        page.subsection("Latency");
        page.figure(&svg, "For the repeat with the median rate.");
        page.details("Every percentile", &costs::percentiles(test));
    }
}

fn write_costs(page: &mut Page, test: &TestResult) {
    if steps::measured(test).next().is_none() {
        return;
    }
    page.subsection("Over time");
    let charts = time::charts(test);
    page.details_grid(
        charts.len() <= OPEN_CHARTS_MAX,
        "One chart per step; shaded parts are not included in the figures",
        charts,
    );
    page.details_tables("The same as a table (first repeat)", &time::tables(test));
    page.subsection("What it cost");
    page.table(&costs::processors(test));
    if let Some(workers) = costs::workers(test) {
        page.subsection("Workers");
        page.table(&workers);
    }
}

fn write_method(page: &mut Page, test: &TestResult) {
    page.subsection("How it was measured");
    for (steps, proof) in costs::caches(test) {
        let steps = match steps.as_slice() {
            [first, .., last] if steps.len() > 3 => {
                format!("{} steps, {first} to {last}", steps.len())
            }
            few => few.join(", "),
        };
        page.paragraph(&format!("Caches in {steps}:"));
        page.list(costs::cache_sentences(proof));
    }
    page.details("What each step did", &steps::loads(test));
}
