//! The terminal, CSV and HTML of made-up results.

use crate::example;
use std::collections::BTreeMap;
use weir_bench::cli::Format;
use weir_bench::cli::report::{ReportArgs, ReportError, run};
use weir_results::compare::{self, compare};
use weir_results::pages::{csv, csv_columns, html, terminal_within};
use weir_results::read::{parse, read};
use weir_results::{Results, StepRun};

/// Rows of comma-separated values by RFC 4180, told apart by a reader of the test's own.
fn rows(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
    let mut letters = text.chars().peekable();
    let mut quoted = false;
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => cell.push(letters.next().unwrap()),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut cell)),
            '\r' if !quoted => {}
            '\n' if !quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            other => cell.push(other),
        }
    }
    assert!(!quoted && cell.is_empty() && row.is_empty(), "it ends with a line");
    rows
}

fn runs(results: &Results) -> impl Iterator<Item = &StepRun> {
    results.tests.iter().flat_map(|test| &test.steps).flat_map(|step| &step.runs)
}

#[test]
fn csv_has_a_row_for_every_repeat_and_every_step_left_out() {
    let results = example::results("weir", 1.0);
    let table = rows(&csv(&results));
    let left_out = results.tests.iter().flat_map(|test| &test.steps).filter(|s| s.runs.is_empty());
    let parts = runs(&results).flat_map(|run| &run.targets).count();
    assert_eq!(table.len(), 1 + runs(&results).count() + parts + left_out.count());
    assert_eq!(table[0], csv_columns());
    assert!(table.iter().all(|row| row.len() == table[0].len()));
    let named = |row: &[String]| -> BTreeMap<String, String> {
        table[0].iter().cloned().zip(row.iter().cloned()).collect()
    };
    let skipped = table.iter().map(|row| named(row)).find(|row| row["step"] == "far (+1 ms) 100 %");
    let skipped = skipped.unwrap();
    assert!(skipped["skipped"].contains("over 3 ms") && skipped["iops"].is_empty());
    let failed = table.iter().map(|row| named(row)).find(|row| row["errors"] == "19").unwrap();
    assert_eq!(
        (failed["verify_mismatches"].as_str(), failed["write_iops"].is_empty()),
        ("2", false)
    );
    let iops: f64 = failed["iops"].parse().unwrap();
    let run = &results.tests[3].steps[1].runs[0];
    assert!((iops - run.total.total.iops).abs() < 1e-9, "figures are not rounded");
}

#[test]
fn csv_has_a_row_for_each_target_below_that_of_all_together() {
    let results = example::results("weir", 1.0);
    let table = rows(&csv(&results));
    let place = |name: &str| table[0].iter().position(|column| column == name).unwrap();
    let several: Vec<&Vec<String>> =
        table.iter().filter(|row| row[place("test")] == "vdbench-volumes").collect();
    let (name, first) = (place("target_name"), &several[..4]);
    let names: Vec<&str> = first.iter().map(|row| row[name].as_str()).collect();
    assert_eq!(names, ["", "gold", "silver", "nfs://192.0.2.10/"]);
    let iops: Vec<f64> = first.iter().map(|row| row[place("iops")].parse().unwrap()).collect();
    assert!((iops[0] - iops[1..].iter().sum::<f64>()).abs() < 1e-6, "{iops:?}");
    for whole in ["steady", "network_sent_bytes", "client_processors", "workers"] {
        let told: Vec<bool> = first.iter().map(|row| !row[place(whole)].is_empty()).collect();
        assert_eq!(told, [true, false, false, false], "{whole} is known of all together alone");
    }
    let published: Vec<bool> =
        several.iter().map(|row| !row[place("published_by")].is_empty()).collect();
    assert_eq!(published[..4], [true, false, false, false]);
}

#[test]
fn csv_never_begins_a_cell_with_a_formula() {
    let mut results = example::sound();
    results.label = "=cmd|' /C calc'!A0".to_owned();
    results.tests[0].steps[1].name = "+1, \"two\"\nlines".to_owned();
    let table = rows(&csv(&results));
    assert_eq!(table[1][0], "'=cmd|' /C calc'!A0");
    assert!(table.iter().any(|row| row[4] == "'+1, \"two\"\nlines"));
}

#[test]
fn the_terminal_says_everything_and_keeps_to_its_width() {
    let results = example::results("weir", 1.0);
    let text = terminal_within(&results, 180);
    for part in [
        "ANF, Linux scale-out: 4 KiB random, cache excluded",
        "81\u{2009}480",
        "768 of 6\u{2009}144",
        "about 216\u{2009}000 + 72\u{2009}000 op/s",
        "21.0 %",
        "-1.2 to +1.2 %",
        "caches open",
        "skipped",
        "over 3 ms",
        "generator limit",
        "Use more --threads",
        "lost worker",
        "17 × NFS3ERR_IO",
        "stale block (generation 1, not 2)",
        "Highest rate with p99 under 2 ms: 57 400 op/s",
        "not run: SMB",
        "Data set of 48 GiB in place of 1 TiB",
        "Corrupt data: 2 blocks",
        "WARNING: Client and server share a switch",
        "Pairs, against their published ratios",
        "2.3 to 3 times (an older edition)",
        "not judged: 64 KiB reads, latency",
        "Each target by itself:",
        " nfs://192.0.2.10/    6\u{2009}000    46.9    20.0 %   5.50 ms ",
        "all together",
        "limit: the server, or too few requests in flight (768)",
    ] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    assert!(!text.contains("fill "), "preparation is no figure of the test");
    for width in [80, 100, 160] {
        let text = terminal_within(&results, width);
        let table = text.lines().filter(|line| line.starts_with('─'));
        assert!(table.map(|line| line.chars().count()).all(|long| long <= usize::from(width)));
        assert!(text.contains("81\u{2009}480") && text.contains("21.0 %"), "{text}");
    }
    assert!(terminal_within(&results, 80).contains("no room for the columns: "));
}

#[test]
fn a_page_holds_every_part_and_nothing_from_outside() {
    let page = html(&[&example::results("weir", 1.0)]);
    for part in [
        "Corrupt data",
        "Before believing the figures",
        "<nav class=\"contents\"",
        "id=\"test-1-anf-linux-4k-random\"",
        "id=\"commands\"",
        "&#39;nfs://192.0.2.10:2049/vol?uid=0&#39;",
        "Shape compared with the published one",
        "Mean latency over rate",
        "requests in flight",
        "Latency of each step",
        ">repeat 3<",
        "class=\"unjudged\"",
        "host-6 was lost",
        "&lt;zeros&gt; &amp; a torn write",
        "NFS3ERR_JUKEBOX",
        "+10.20 ± 0.12 ms",
        "Open: The memory of the client is larger",
        "Not run",
        "XFS on 4 NVMe devices",
        "setting metadata-cache",
        "contract of volume vol",
        "2000000 IOPS (500000 without burst credits)",
        "Pairs, against their published ratios",
        "64 KiB reads, highest rate: nconnect=8 against 1",
        "as published",
        "Measured ratios of pairs, and the published ones",
        "connections 8, not 1",
        "step nconnect=8-128 of anf-nconnect-64k-sequential was not measured",
        "Measured op/s of each target",
        ">gold<",
        ">nfs://192.0.2.10/<",
        "all together",
        "front end",
    ] {
        // Loads are told by what they do, not by their names.
        if part != "front end" {
            assert!(page.contains(part), "{part} is missing");
        }
    }
    for outside in ["<script", "<link", "@import", "url(", "src=", "<zeros>", "NaN", "inf"] {
        let found = page.find(outside).map(|at| &page[at.saturating_sub(40)..at + 20]);
        assert!(found.is_none() || outside == "inf", "{outside}: {found:?}");
    }
}

#[test]
fn a_page_says_in_one_word_how_to_take_the_figures() {
    let mut results = example::sound();
    assert!(html(&[&results]).contains("<strong>Sound</strong>"));
    let open = "the data set (4 GiB) fits into the server's memory (16 GiB)";
    results.tests[0].steps[1].cache.open.push(open.to_owned());
    let page = html(&[&results]);
    assert!(page.contains("<strong>Complete, with care</strong>"));
    let count = results.tests[0].steps.len() - 1;
    let told = format!("Caches were not excluded in 1 of {count} steps that exclude them");
    assert!(page.contains(&told), "{told}");
    let all = results.tests.iter().flat_map(|test| &test.steps).map(|step| step.runs.len());
    let told = format!("In {0} of {0} runs the contract was the limit", all.sum::<usize>());
    assert!(!page.contains(&told));
    results.environment.contracts.get_mut("").unwrap().bytes_per_second = 1 << 20;
    assert!(html(&[&results]).contains(&told), "{told}");
    results.environment.contracts.clear();
    results.tests[0].steps[1].runs[0].total.generator.machine_busy_percent = 99.0;
    let page = html(&[&results]);
    assert!(page.contains("<strong>Complete, with limits</strong>"));
    let told = "runs all processors of the client&#39;s machine were busy: rates are a lower bound";
    assert!(page.contains(told));
    assert!(page.contains("machine busy") && page.contains(" of 16"));
    results.tests[0].steps[1].runs[0].total.generator.saturated = true;
    let page = html(&[&results]);
    assert!(page.contains("<strong>Complete, with limits</strong>"));
    assert!(!page.contains("machine busy"), "the generator was the limit");
    results.tests[0].steps[2].skipped = Some("the volume was full".to_owned());
    let steps = results.tests[0].steps.len();
    let page = html(&[&results]);
    assert!(page.contains("<strong>With gaps</strong>") && page.contains("was the limit"));
    assert!(page.contains(&format!("1 of {steps} steps were skipped")));
    results.interrupted = true;
    assert!(html(&[&results]).contains("The run ended before its time"));
    results.tests[0].steps[1].runs[0].total.errors.insert("NFS3ERR_IO".to_owned(), 1);
    assert!(html(&[&results]).contains("<strong>Failures</strong>"));
    results.tests.clear();
    results.interrupted = false;
    assert!(html(&[&results]).contains("<strong>Nothing measured</strong>"));
}

#[test]
fn texts_of_others_stay_text_and_figures_that_are_none_do_no_harm() {
    let mut results = example::results("weir", 1.0);
    let evil = "<script>alert(1)</script>\"'&";
    for test in &mut results.tests {
        for text in [&mut test.name, &mut test.title, &mut test.about] {
            evil.clone_into(text);
        }
        for step in &mut test.steps {
            evil.clone_into(&mut step.name);
            step.notes.push(evil.to_owned());
            for run in &mut step.runs {
                run.total.total.iops = f64::NAN;
                run.total.total.latency_ms.max = f64::INFINITY;
                run.total.measured.to_s = 1e308;
            }
            if let Some(summary) = &mut step.summary {
                summary.iops.median = f64::INFINITY;
                summary.mean_ms.median = f64::NAN;
            }
        }
    }
    let other = results.clone();
    for page in [html(&[&results]), html(&[&results, &other])] {
        assert!(!page.contains("<script"));
        for attribute in ["x", "y", "cx", "cy", "width", "height", "x1", "x2", "y1", "y2"] {
            for broken in ["NaN", "inf", "-inf"] {
                let wrong = format!(" {attribute}=\"{broken}");
                assert!(!page.contains(&wrong), "{wrong}");
            }
        }
    }
    let _ = (csv(&results), terminal_within(&results, 100));
}

/// Every text and every number of a document, changed.
fn changed(value: &mut serde_json::Value, text: &str, number: Option<&serde_json::Value>) {
    use serde_json::Value;
    match value {
        Value::String(own) if !own.chars().all(|c| c.is_ascii_lowercase() || c == '-') => {
            own.push_str(text);
        }
        Value::Array(all) => all.iter_mut().for_each(|one| changed(one, text, number)),
        Value::Object(all) => all
            .iter_mut()
            .filter(|(name, _)| *name != "workload" && *name != "version")
            .for_each(|(_, one)| changed(one, text, number)),
        Value::Number(_) => {
            if let Some(number) = number {
                *value = number.clone();
            }
        }
        _ => {}
    }
}

#[test]
fn files_with_any_text_and_any_number_are_shown_and_command_nothing() {
    let sane = serde_json::to_value(example::results("weir", 1.0)).unwrap();
    let evil = "\u{1b}[2J\u{9b}31m\u{7}\r\u{0}\u{202e}</style><script>";
    let numbers =
        ["0", "1", "-1", "1e308", "-1e308", "5e-324", "4294967295", "18446744073709551615"];
    let mut shown = 0;
    for number in std::iter::once(None).chain(numbers.map(Some)) {
        let mut document = sane.clone();
        let number = number.map(|number| serde_json::from_str(number).unwrap());
        changed(&mut document, evil, number.as_ref());
        // Numbers that their fields can't hold are refused with the file.
        let Ok(results) = parse(document.to_string().as_bytes(), "a.json".as_ref()) else {
            continue;
        };
        shown += 1;
        let other = example::results("weir", 1.0);
        let compared = compare(&[&results, &other]);
        for text in [terminal_within(&results, 100), compare::terminal(&compared, Some(100))] {
            let harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!text.contains(harmful), "{number:?}");
        }
        for page in [html(&[&results]), html(&[&results, &other]), html(&[&other, &results])] {
            assert!(!page.contains("<script") && !page.contains('\u{1b}'), "{number:?}");
            for broken in ["=\"NaN", "=\"inf", "=\"-inf", "MNaN", "LNaN"] {
                assert!(!page.contains(broken), "{number:?}: {broken}");
            }
            assert!(page.len() < 20_000_000, "{number:?}: {} bytes", page.len());
        }
        rows(&csv(&results));
    }
    assert!(shown >= 3, "{shown}");
}

#[test]
fn results_are_the_same_when_they_are_read_back() {
    let results = example::results("weir", 1.0);
    let bytes = serde_json::to_vec(&results).unwrap();
    let read = parse(&bytes, "a.json".as_ref()).unwrap();
    // Reading floating-point numbers may be off by the last bit.
    assert_eq!((read.label, read.command), (results.label.clone(), results.command.clone()));
    assert_eq!(read.environment, results.environment);
    for (a, b) in read.tests.iter().zip(&results.tests) {
        assert_eq!((&a.name, &a.findings), (&b.name, &b.findings));
        for (a, b) in a.steps.iter().zip(&b.steps) {
            assert_eq!((&a.name, &a.published, &a.cache), (&b.name, &b.published, &b.cache));
            assert_eq!((&a.notes, &a.skipped, a.runs.len()), (&b.notes, &b.skipped, b.runs.len()));
        }
    }
    // The result of a single run is one step of one test.
    let run = results.tests[0].steps[1].runs[0].total.clone();
    let single = parse(&serde_json::to_vec(&run).unwrap(), "a.json".as_ref()).unwrap();
    assert_eq!(single.tests[0].steps[0].runs[0].total.series_1s, run.series_1s);
    let summary = single.tests[0].steps[0].summary.unwrap();
    assert!((summary.iops.median - run.total.iops).abs() < 1e-9);
    assert!(html(&[&single]).contains("The command line was not recorded"));
}

#[test]
fn the_command_writes_every_form_and_tells_like_labels_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["before.json", "after.json"] {
        std::fs::write(path(name), serde_json::to_vec(&example::sound()).unwrap()).unwrap();
    }
    let args = ReportArgs {
        results: vec![path("before.json"), path("after.json")],
        html: Some(path("both.html")),
        csv: Some(path("both.csv")),
    };
    run(&args, Format::Table).unwrap();
    let page = std::fs::read_to_string(path("both.html")).unwrap();
    assert!(page.contains("weir (before)") && page.contains("weir (after)"));
    let table = rows(&std::fs::read_to_string(path("both.csv")).unwrap());
    assert_eq!(table.iter().filter(|row| row[0] == "label").count(), 1, "one head");
    assert_eq!(table.len(), 1 + 2 * runs(&example::sound()).count());
    let nowhere = ReportArgs { html: Some(path("no/where.html")), ..args };
    assert!(matches!(run(&nowhere, Format::Table), Err(ReportError::Write { .. })));
    assert!(read(&path("before.json")).is_ok());
}
