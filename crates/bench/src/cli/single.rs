//! One load, described by options.

use super::args::BenchArgs;
use super::place::Reach;
use super::sampler::ServerSampler;
use super::{CliError, Format, output, table};
use crate::progress::{Progress, Unit};
use weir_load::control::Control;
use weir_load::engine::prepare_with;
use weir_load::stats::result::RunResult;

/// Applies the load and prints the result in the format `format`. Returns the problems found.
pub(super) fn run(
    args: &BenchArgs,
    format: Format,
    control: &Control,
) -> Result<Vec<String>, CliError> {
    let target = args.load.target()?;
    let workload = args.load.workload(&args.name)?;
    let mut sampler = args.server_pid.map(ServerSampler::new).transpose()?;
    let mut progress = Progress::new(args.quiet);
    progress.follow(control);
    let unit = Unit::of([&workload]);
    let prepared = prepare_with(&target, &workload, control, &mut |done, total| {
        progress.layout(done, total, unit);
    });
    let outcome = prepared.and_then(|prepared| {
        // A note in front of an error would hide it.
        if let Some(shared) = target.shared_source(workload.clients) {
            progress.say(&format!("note: {shared}"));
        }
        prepared.run(control, |window| {
            if let Some(sampler) = &mut sampler {
                sampler.window(window);
            }
            progress.window(window);
        })
    });
    progress.finish();
    let mut result = outcome?;
    result.server = sampler.and_then(|sampler| sampler.finish(&result));
    if let Some(path) = &args.json {
        output::write(path, &output::json(&result)?)?;
    }
    match format {
        Format::Table => output::print(&table::render(&result, Reach::of(&target).server_is_here))?,
        Format::Json => output::print_json(&result)?,
    }
    Ok(unclean(&result))
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
