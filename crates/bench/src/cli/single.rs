//! One load, described by options.

use super::args::BenchArgs;
use super::claimed::Claimed;
use super::place::Reach;
use super::sampler::ServerSampler;
use super::{CliError, Format, output, table};
use crate::progress::{Progress, Unit};
use weir_load::control::Control;
use weir_load::engine::prepare_with;
use weir_load::stats::result::RunResult;
use weir_load::target::Target;
use weir_load::workload::{Layout, Workload};

/// Applies the load and prints the result in the format `format`. Returns the problems found.
pub(super) fn run(
    args: &BenchArgs,
    format: Format,
    control: &Control,
) -> Result<Vec<String>, CliError> {
    let target = args.load.target()?;
    let workload = args.load.workload(&args.name)?;
    let mut progress = Progress::new(args.quiet);
    progress.follow(control);
    let claimed = Claimed::of(&target, &workload, control)?;
    if let Some(remark) = claimed.as_ref().and_then(|claimed| claimed.remark.as_ref()) {
        progress.say(&format!("note: {remark}"));
    }
    // Files are removed with the claim, and those that were there before are not removed.
    let keep = workload.keep || claimed.is_some() || workload.layout == Layout::Existing;
    let applied = Workload { keep, ..workload.clone() };
    let outcome = apply(args, (&target, &applied), control, &mut progress);
    let finished = claimed.map_or(Ok(()), Claimed::finish);
    progress.finish();
    let mut result = outcome.inspect_err(|_| {
        if let Err(error) = &finished {
            progress.say(&format!("the files were not removed: {}", error.in_full()));
        }
    })?;
    result.workload.keep = workload.keep;
    if let Err(error) = finished {
        *result.errors.entry(format!("clean-up: {}", error.in_full())).or_default() += 1;
    }
    if let Some(path) = &args.json {
        output::write(path, &output::json(&result)?)?;
    }
    match format {
        Format::Table => output::print(&table::render(&result, Reach::of(&target).server_is_here))?,
        Format::Json => output::print_json(&result)?,
    }
    Ok(unclean(&result))
}

/// Applies the load, and shows its progress.
fn apply(
    args: &BenchArgs,
    (target, workload): (&Target, &Workload),
    control: &Control,
    progress: &mut Progress,
) -> Result<RunResult, CliError> {
    let mut sampler = args.server_pid.map(ServerSampler::new).transpose()?;
    let unit = Unit::of([workload]);
    let prepared = prepare_with(target, workload, control, &mut |done, total| {
        progress.layout(done, total, unit);
    })?;
    // A note in front of an error would hide it.
    if let Some(shared) = target.shared_source(workload.clients) {
        progress.say(&format!("note: {shared}"));
    }
    let mut result = prepared.run(control, |window| {
        if let Some(sampler) = &mut sampler {
            sampler.window(window);
        }
        progress.window(window);
    })?;
    result.server = sampler.and_then(|sampler| sampler.finish(&result));
    Ok(result)
}

fn unclean(result: &RunResult) -> Vec<String> {
    if result.is_clean() && !result.interrupted {
        return Vec::new();
    }
    let verify = result.verify.clone().unwrap_or_default();
    if result.error_count() == 0
        && result.connections.lost == 0
        && verify.mismatches + verify.unread == 0
    {
        return vec!["it was ended before its time".to_owned()];
    }
    vec![format!(
        "{} failures, {} lost connections, {} mismatches, {} blocks not read back",
        result.error_count(),
        result.connections.lost,
        verify.mismatches,
        verify.unread
    )]
}
