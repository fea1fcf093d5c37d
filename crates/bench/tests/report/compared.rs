//! Results held against each other.

use crate::example;
use weir_load::{Rate, Workload};
use weir_results::compare::{Against, Comparison, Verdict, compare, json, terminal};
use weir_results::pages::html;
use weir_results::{Results, Stall, Summary};

fn of(comparison: &Comparison, test: &str, step: &str) -> Against {
    let test = comparison.tests.iter().find(|one| one.name == test).unwrap();
    test.steps.iter().find(|one| one.name == step).unwrap().against[0].clone()
}

fn compared(other: &Results) -> Comparison {
    compare(&[&example::results("weir", 1.0), other])
}

#[test]
fn steps_are_matched_by_name_and_judged_by_their_repeats() {
    let comparison = compared(&example::other());
    let slower = of(&comparison, "anf-linux-4k-random", "100-0");
    assert_eq!(slower.verdict, Verdict::Slower);
    let ratio = slower.ratios[0];
    assert!(
        (ratio.ratio - 0.83).abs() < 0.001 && ratio.low < ratio.ratio && ratio.ratio < ratio.high
    );
    assert!((ratio.chance.unwrap() - 0.1).abs() < 1e-9, "three repeats of each");
    let once = of(&comparison, "anf-linux-nconnect", "nconnect=8, depth 8");
    assert_eq!((once.verdict, once.ratios[0].chance), (Verdict::OneRun, None));
    let same = compare(&[&example::sound(), &example::sound()]);
    assert_eq!(of(&same, "anf-linux-4k-random", "100-0").verdict, Verdict::NoDifference);
    let faster = compare(&[&example::other(), &example::results("weir", 1.0)]);
    assert_eq!(of(&faster, "anf-linux-4k-random", "100-0").verdict, Verdict::Faster);
}

#[test]
fn different_work_under_one_name_is_told_and_not_compared() {
    let comparison = compared(&example::other());
    let other = of(&comparison, "anf-linux-4k-random", "50-50");
    assert_eq!(other.verdict, Verdict::DifferentWork);
    let difference = &other.different[0];
    assert_eq!(
        (difference.setting.as_str(), difference.base.as_str(), difference.other.as_str()),
        ("depth", "16", "32")
    );
    let changes: [fn(&mut Workload); 4] = [
        |load| load.block_bytes = 8192,
        |load| load.file_bytes = 1 << 20,
        |load| load.rate = Rate::Operations(1000.0),
        |load| load.direct = false,
    ];
    for change in changes {
        let mut changed = example::sound();
        for run in changed.tests[0].steps.iter_mut().flat_map(|step| &mut step.runs) {
            change(&mut run.total.workload);
        }
        let comparison = compare(&[&example::sound(), &changed]);
        let verdict = of(&comparison, "anf-linux-4k-random", "75-25").verdict;
        assert_eq!(verdict, Verdict::DifferentWork);
    }
}

#[test]
fn conditions_of_measuring_are_told_and_compared_all_the_same() {
    let mut longer = example::sound();
    for run in longer.tests[0].steps.iter_mut().flat_map(|step| &mut step.runs) {
        run.total.workload.warmup_s = 60.0;
        run.total.workload.name = "another".to_owned();
        run.total.workload.seed = 99;
    }
    for step in &mut longer.tests[0].steps {
        step.cache.open.push("the client's memory is larger than the data set".to_owned());
    }
    let comparison = compare(&[&example::sound(), &longer]);
    let against = of(&comparison, "anf-linux-4k-random", "100-0");
    assert_eq!(against.verdict, Verdict::NoDifference);
    let (caches, others): (Vec<_>, Vec<_>) =
        against.remarks.iter().partition(|remark| remark.contains("caches: "));
    assert_eq!(others, ["warmup s 60.0, not 5.00"]);
    assert!(caches[0].contains("larger than the data set"), "what caches could hide is told");
}

#[test]
fn what_one_side_alone_did_about_caches_is_told() {
    let mut flushed = example::sound();
    flushed.label = "flushed".to_owned();
    let flush = "64 GiB of other data was read before";
    flushed.tests[0].steps[1].cache.done.push(flush.to_owned());
    let told = |first: &Results, second: &Results| {
        let comparison = compare(&[first, second]);
        let step = of(&comparison, "anf-linux-4k-random", "100-0");
        assert_eq!(step.verdict, Verdict::NoDifference, "it is compared all the same");
        step.remarks.into_iter().filter(|told| told.contains(" alone: ")).collect::<Vec<_>>()
    };
    let wanted = [format!("flushed alone: caches: {flush}")];
    assert_eq!(told(&example::sound(), &flushed), wanted);
    assert_eq!(told(&flushed, &example::sound()), wanted);
    assert_eq!(told(&flushed, &flushed), [""; 0], "both did it");
}

#[test]
fn at_a_limited_rate_latency_decides() {
    let limited = |mean_ms: f64| {
        let mut results = example::sound();
        for step in &mut results.tests[0].steps {
            for run in &mut step.runs {
                run.total.workload.rate = Rate::Operations(1000.0);
                run.total.total.latency_ms.mean *= mean_ms;
            }
            step.summary = Summary::of(&step.runs);
        }
        results
    };
    let comparison = compare(&[&limited(1.0), &limited(0.5)]);
    assert_eq!(of(&comparison, "anf-linux-4k-random", "100-0").verdict, Verdict::Faster);
    let comparison = compare(&[&limited(1.0), &limited(2.0)]);
    assert_eq!(of(&comparison, "anf-linux-4k-random", "100-0").verdict, Verdict::Slower);
}

#[test]
fn a_busy_machine_and_a_stall_are_told_beside_a_verdict() {
    let first = example::results("weir", 1.0);
    let mut second = example::results("evening", 0.8);
    let run = &mut second.tests[0].steps[1].runs[0];
    run.total.generator.machine_busy_percent = 99.0;
    let told = |comparison: &Comparison| {
        let remarks = &comparison.tests[0].steps[0].against[0].remarks;
        ["processors of the client's machine were busy", "no operation was completed for 4.0 s"]
            .map(|part| {
                remarks.iter().any(|told| told.starts_with("evening: ") && told.contains(part))
            })
    };
    assert_eq!(told(&compare(&[&first, &second])), [true, false]);
    second.tests[0].steps[1].runs[0].stall = Some(Stall { from_s: 4.0, seconds: 4.0 });
    assert_eq!(told(&compare(&[&first, &second])), [true, true]);
}

#[test]
fn what_only_one_side_has_is_listed() {
    let comparison = compared(&example::other());
    let partial: Vec<(&str, Option<&str>, &[usize])> = comparison
        .partial
        .iter()
        .map(|one| (one.test.as_str(), one.step.as_deref(), one.sides.as_slice()))
        .collect();
    assert!(partial.contains(&("anf-linux-4k-random", Some("0-100, again"), &[1])), "{partial:?}");
    assert!(partial.contains(&("gcnv-64k-sequential", None, &[0])), "{partial:?}");
}

#[test]
fn every_form_tells_ratios_verdicts_and_doubts() {
    let (first, second) = (example::results("weir", 1.0), example::other());
    let comparison = compare(&[&first, &second]);
    let text = terminal(&comparison, Some(140));
    for part in [
        "0.83 ×",
        "0.81 to 0.85",
        "slower",
        "one run: no confidence",
        "different work: not compared",
        "depth 32, not 16",
        "weir: the generator was the limit",
        "step 0-100, again: only ganesha",
        "Of 38 comparisons of steps",
        "Pairs, against their published ratios",
    ] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    let document: Comparison = serde_json::from_str(&json(&comparison).unwrap()).unwrap();
    assert_eq!(document.tests.len(), comparison.tests.len());
    assert_eq!(document.partial, comparison.partial);
    assert_eq!(document.judged.open_pairs, comparison.judged.open_pairs);
    let pairs = &document.judged.pairs;
    let of: Vec<&str> = pairs.iter().map(|pair| pair.base.result.as_str()).collect();
    assert_eq!(of, ["weir", "ganesha"], "each result has the pair");
    let third = example::results("samba", 0.9);
    let page = html(&[&first, &second, &third]);
    for part in [
        "ganesha to weir",
        "samba to weir",
        "How to read the ratios",
        "Not measured on all sides",
        "Changed: Data set of 48 GiB in place of 1 TiB",
        "Source: ",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
}

#[test]
fn results_without_a_common_step_say_so() {
    let mut other = example::sound();
    other.tests[0].name = "something-else".to_owned();
    let comparison = compare(&[&example::sound(), &other]);
    assert!(comparison.tests.is_empty() && comparison.partial.len() == 2);
    assert!(terminal(&comparison, Some(100)).contains("no step in common"));
    assert!(html(&[&example::sound(), &other]).contains("no step in common"));
}
