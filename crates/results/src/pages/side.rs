//! The page of several results, held against the first.

use super::charts::{self, Source};
use super::html::{environment, foot, id, repeat};
use super::words::when;
use super::{pairs, verdict};
use crate::Results;
use crate::compare::pairs::judge;
use crate::compare::{
    Comparison, RatioRow, TestComparison, Verdict, compare, differences, rows, rule,
};
use weir_report::{Cell, Column, Fact, Page, Table, Tone};

/// The whole file.
pub(super) fn page(results: &[&Results]) -> String {
    let comparison = compare(results);
    let labels: Vec<&str> = comparison.sides.iter().map(|side| side.label.as_str()).collect();
    let mut page = Page::new(&labels.join(" and "), &lead(&labels));
    headline(&mut page, &comparison);
    let warnings = results.iter().map(|one| (one.label.as_str(), one.warnings.clone()));
    let warnings = each_once(warnings.collect());
    if !warnings.is_empty() {
        page.alert("Before believing the figures", warnings);
    }
    page.table(&sides(results));
    let ids: Vec<String> =
        comparison.tests.iter().zip(1..).map(|(test, number)| id(number, &test.name)).collect();
    let titles = comparison.tests.iter().map(|test| test.title.as_str());
    let mut entries: Vec<(&str, &str)> = ids.iter().map(String::as_str).zip(titles).collect();
    let judged = judge(results);
    entries.extend(pairs::entry(&judged));
    entries.extend([
        ("rule", "How to read the ratios"),
        ("environment", "Where it was measured"),
        ("commands", "To repeat it"),
    ]);
    page.contents(entries);
    for (test, id) in comparison.tests.iter().zip(&ids) {
        write_test(&mut page, results, &comparison, test, id);
    }
    pairs::write(&mut page, &judged);
    if !comparison.partial.is_empty() {
        page.subsection("Not measured on all sides");
        page.list(rule::partial(&comparison));
    }
    page.chapter("rule", "How to read the ratios");
    page.list(rule::RULE.iter().map(|&sentence| sentence.to_owned()));
    page.chapter("environment", "Where it was measured");
    for one in results {
        page.subsection(&one.label);
        page.table(&environment(&one.environment, &one.program));
    }
    page.chapter("commands", "To repeat it");
    for one in results {
        page.subsection(&one.label);
        repeat(&mut page, one);
    }
    page.to_html(&foot(results.first().map_or("", |one| one.program.as_str())))
}

fn lead(labels: &[&str]) -> String {
    let first = labels.first().copied().unwrap_or_default();
    format!("The same tests side by side; ratios are to {first}.")
}

fn headline(page: &mut Page, comparison: &Comparison) {
    let count = |wanted: Verdict| {
        let against = comparison.tests.iter().flat_map(|test| &test.steps).flat_map(|s| &s.against);
        against.filter(|against| against.verdict == wanted).count()
    };
    let all = [Verdict::Faster, Verdict::Slower, Verdict::NoDifference, Verdict::OneRun];
    let fact = |verdict: Verdict| Fact {
        value: count(verdict).to_string(),
        label: format!("steps: {}", verdict.words()),
    };
    let mut facts: Vec<Fact> = all.map(fact).to_vec();
    if count(Verdict::DifferentWork) > 0 {
        facts.push(fact(Verdict::DifferentWork));
    }
    page.remark("Compared", &rule::headline(comparison));
    page.facts(&facts);
}

fn sides(results: &[&Results]) -> Table {
    let mut columns = ["results", "target", "measured", "program"].map(Column::words).to_vec();
    columns.push(Column::prose("outcome"));
    let row = |one: &&Results| {
        let (taken, word, sentence) = verdict::of(one);
        let tone = if taken == verdict::Taken::Bad { Tone::Bad } else { Tone::Plain };
        vec![
            one.label.as_str().into(),
            one.target.as_str().into(),
            when(one.started_unix_s).into(),
            one.program.as_str().into(),
            Cell::new(format!("{word}. {sentence}"), tone),
        ]
    };
    Table { columns, rows: results.iter().map(row).collect() }
}

/// The sources of the tests, and the changes to them.
fn method(sources: &[Source<'_>]) -> Vec<String> {
    let of = sources.iter().map(|one| {
        let source = one.test.source.iter().map(|source| format!("Source: {source}"));
        let changes = one.test.changes.iter().map(|change| format!("Changed: {change}"));
        (one.label, source.chain(changes).collect())
    });
    each_once(of.collect())
}

/// The sentences of several sides, each once; with whose it is, if not of all.
fn each_once(sides: Vec<(&str, Vec<String>)>) -> Vec<String> {
    let count = sides.len();
    let mut all: Vec<(String, Vec<&str>)> = Vec::new();
    for (label, sentences) in sides {
        for sentence in sentences {
            match all.iter_mut().find(|(known, _)| *known == sentence) {
                Some((_, labels)) => labels.push(label),
                None => all.push((sentence, vec![label])),
            }
        }
    }
    let told = all.into_iter().map(|(sentence, labels)| {
        if labels.len() >= count { sentence } else { format!("{}: {sentence}", labels.join(", ")) }
    });
    told.collect()
}

fn write_test(
    page: &mut Page,
    results: &[&Results],
    comparison: &Comparison,
    test: &TestComparison,
    id: &str,
) {
    page.chapter(id, &test.title);
    let sources: Vec<Source<'_>> = results
        .iter()
        .filter_map(|one| {
            let test = one.tests.iter().find(|candidate| candidate.name == test.name)?;
            Some(Source { label: &one.label, test })
        })
        .collect();
    if let Some(about) = sources.iter().map(|one| one.test.about.as_str()).find(|a| !a.is_empty()) {
        page.paragraph(about);
    }
    let different = differences(comparison, test);
    if !different.is_empty() {
        page.alert("To know about these figures", different);
    }
    let method = method(&sources);
    if !method.is_empty() {
        page.list(method);
    }
    let charts = charts::of(&sources);
    for (svg, caption) in &charts.wide {
        page.figure(svg, caption);
    }
    if !charts.small.is_empty() {
        page.scrolled_grid(charts.small);
    }
    page.table(&rows(comparison, test, RatioRow::Wide));
}
