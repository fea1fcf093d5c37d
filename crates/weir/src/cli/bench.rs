//! `weir bench`: the load generator. Ctrl-C ends a run early; what was measured is still shown.

use super::Global;
use anyhow::{Context, Result, bail};
use tokio::runtime::Builder;
use weir_bench::Control;
use weir_bench::cli::{self, BenchArgs};

/// Measures what the arguments say, and fails if anything was not as it should be.
pub(crate) fn run(global: &Global, args: &BenchArgs) -> Result<()> {
    let control = Control::new();
    stop_on_interrupt(control.clone())?;
    let result = cli::run(args, global.output.format(), &control)?;
    if !result.is_clean() {
        let (errors, verify) = (result.error_count(), result.verify.unwrap_or_default());
        bail!(
            "the run was not clean: {} failures, {} lost connections, {} mismatches, {} blocks not \
             read back",
            errors,
            result.connections.lost,
            verify.mismatches,
            verify.unread
        );
    }
    Ok(())
}

fn stop_on_interrupt(control: Control) -> Result<()> {
    let runtime =
        Builder::new_current_thread().enable_io().build().context("can't watch for Ctrl-C")?;
    std::thread::Builder::new()
        .name("interrupt".to_owned())
        .spawn(move || {
            // Without the signal the run just can't be ended early.
            if runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
                control.stop();
            }
        })
        .context("can't watch for Ctrl-C")?;
    Ok(())
}
