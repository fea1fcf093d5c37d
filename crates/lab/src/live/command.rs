//! `make live`: measures contracts whose limits change over time.

use super::Options;
use crate::demo::Stop;
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;

/// Time for which an empty bucket earns credits (s): in 40 s a burst of more than 10 s.
const REFILL_S: f64 = 40.0;
/// Time for which a bucket drained from full earns credits (s).
const REFILL_FULL_S: f64 = 600.0;

/// Load volumes of a shared pool, one of which becomes idle and busy again, and drain and refill
/// burst credits, on a real server.
///
/// The exit status is 1 if a rule was violated, and 2 if the measurement failed.
#[derive(Debug, Args)]
pub(crate) struct Command {
    /// Server program [default: the one in the directory of this program].
    #[arg(long)]
    weir: Option<PathBuf>,
    /// Directory for the data directory and the log.
    #[arg(long, default_value = "target/live")]
    work: PathBuf,
    /// Directory for live.json, live.md and live.html.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Run only this part; repeatable.
    #[arg(long, value_name = "PART", value_parser = clap::builder::PossibleValuesParser::new(super::parts()))]
    only: Vec<String>,
    /// Drain each bucket from full to empty, which takes 75 minutes per model. Without this option,
    /// most credits are first removed by changing limits back and forth.
    #[arg(long)]
    full: bool,
    /// Time for which an empty bucket earns credits, in seconds, at least 40 [default: 40; 600 with
    /// --full].
    #[arg(long, value_parser = clap::value_parser!(u32).range(40..=86_400))]
    refill: Option<u32>,
}

impl Command {
    /// Carries the command out; `true` if everything was as it must be.
    pub(crate) fn run(self) -> Result<bool> {
        let weir = crate::weir_program(self.weir)?;
        let usual = if self.full { REFILL_FULL_S } else { REFILL_S };
        let options = Options {
            weir,
            work: self.work,
            out: self.out,
            only: self.only,
            full: self.full,
            refill_s: self.refill.map_or(usual, f64::from),
        };
        super::run(&options, &Stop::on_signals()?)
    }
}
