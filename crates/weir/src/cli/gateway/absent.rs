//! The commands of a gateway's machine in a program without the cargo feature `cluster`: each says
//! so.

use anyhow::{Result, bail};
use clap::Args;

/// Any options.
#[derive(Args)]
pub(crate) struct AnyArgs {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _options: Vec<String>,
}

/// Refuses.
///
/// # Errors
/// Always.
pub(crate) fn run() -> Result<()> {
    bail!(
        "this program was built without gateways: use the Debian package, or build it with `cargo build --release --features cluster`"
    )
}
