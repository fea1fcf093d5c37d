//! Every suite of `make test`: what it needs, how it runs, and how its results are counted.
//!
//! A suite that can't run here fails, unless `WEIR_SKIP` names it: a green run without the kernel
//! client must be somebody's decision, and visible.

mod count;
mod list;
mod programs;

pub(crate) use programs::build;

use crate::preflight;
use anyhow::{Result, anyhow, bail};
use count::Tally;
use list::{Lane, Run, SUITES, Suite};
use programs::Programs;
use std::collections::BTreeSet;
use std::env;
use std::thread;
use std::time::Instant;

/// The result of one suite.
struct Row {
    suite: &'static str,
    tally: Tally,
    seconds: u64,
}

/// Runs every suite and prints the totals; `true` if nothing failed.
pub(crate) fn run() -> Result<bool> {
    let skip = skip_list(&env::var("WEIR_SKIP").unwrap_or_default())?;
    preflight::tests()?;
    let began = Instant::now();
    let programs = build()?;
    println!("built the programs in {} s", began.elapsed().as_secs());
    let rows = thread::scope(|scope| {
        let (programs, skip) = (&programs, &skip);
        let start = |lane| scope.spawn(move || run_lane(lane, programs, skip));
        let mut rows = Vec::new();
        for lane in Lane::ALL.map(start) {
            rows.extend(lane.join().map_err(|_| anyhow!("a lane of suites ended in a panic"))?);
        }
        anyhow::Ok(rows)
    })?;
    let mut total = Tally::default();
    println!("\n=== summary ===");
    for Row { suite, tally, seconds } in rows {
        let Tally { passed, failed, skipped } = tally;
        println!(
            "{suite:11} {passed:5} passed {failed:3} failed {skipped:3} skipped {seconds:5} s"
        );
        total += tally;
    }
    if !skip.is_empty() {
        let names: Vec<&str> = skip.into_iter().collect();
        println!("suites left out by WEIR_SKIP: {}", names.join(", "));
    }
    println!("{} passed, {} failed, {} skipped", total.passed, total.failed, total.skipped);
    Ok(total.failed == 0)
}

fn run_lane(lane: Lane, programs: &Programs, skip: &BTreeSet<&str>) -> Vec<Row> {
    let mut rows = Vec::new();
    for suite in SUITES.iter().filter(|suite| suite.lane == lane) {
        println!("\n=== {} ===", suite.name);
        let began = Instant::now();
        let tally = if skip.contains(suite.name) {
            Tally { skipped: 1, ..Tally::default() }
        } else {
            run_suite(suite, programs)
        };
        let seconds = began.elapsed().as_secs();
        println!("\n=== {}: {} failed, {seconds} s ===", suite.name, tally.failed);
        rows.push(Row { suite: suite.name, tally, seconds });
    }
    rows
}

/// The suites named in `list`, separated by commas or blanks.
fn skip_list(list: &str) -> Result<BTreeSet<&'static str>> {
    let mut skip = BTreeSet::new();
    for word in list.split([',', ' ']).filter(|word| !word.is_empty()) {
        let Some(suite) = SUITES.iter().find(|suite| suite.name == word) else {
            let names: Vec<&str> = SUITES.iter().map(|suite| suite.name).collect();
            bail!("WEIR_SKIP: there is no suite `{word}`; there are: {}", names.join(", "));
        };
        skip.insert(suite.name);
    }
    Ok(skip)
}

fn run_suite(suite: &Suite, programs: &Programs) -> Tally {
    let failure = Tally { failed: 1, ..Tally::default() };
    // Lines of one lane come between those of the others.
    let mark = match suite.lane {
        Lane::Workspace => String::new(),
        Lane::Checks | Lane::Beside => format!("{} | ", suite.name),
    };
    if let Some(missing) = suite.needs.iter().find_map(list::Need::missing) {
        println!("{mark}can't run: {missing}; WEIR_SKIP={} leaves it out", suite.name);
        return failure;
    }
    match (suite.run)(&Run { mark: &mark, programs }) {
        Ok(tally) if tally.passed + tally.failed == 0 => {
            println!("{mark}ran no test, which counts as a failure");
            failure
        }
        Ok(tally) => tally,
        Err(error) => {
            println!("{mark}{error:#}");
            failure
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use list::Need;

    #[test]
    fn a_suite_that_cannot_run_fails_and_one_that_ran_nothing_too() {
        let programs = Programs::default();
        let failed = Tally { failed: 1, ..Tally::default() };
        let run: fn(&Run<'_>) -> Result<Tally> = |_| Ok(Tally::default());
        let absent = vec![Need::Program("no-such-program-anywhere")].leak();
        for needs in [&*absent, &[]] {
            let suite = Suite { name: "a", lane: Lane::Beside, needs, run };
            assert_eq!(run_suite(&suite, &programs), failed);
        }
    }

    #[test]
    fn only_known_suites_can_be_left_out() {
        assert_eq!(skip_list("kernel, fuzz").unwrap(), BTreeSet::from(["fuzz", "kernel"]));
        assert!(skip_list("kernle").is_err());
    }
}
