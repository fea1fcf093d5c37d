//! The runner's events for the display of its progress.

use weir_load::engine::Window;
use weir_results::StepResult;
use weir_scenario::scenario::{Scenario, Step};

/// The purpose of applying a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// The figures count.
    Measure,
    /// A first run that is not counted.
    Discard,
    /// The rate was not steady; the load is applied again with a longer warm-up.
    Settle,
    /// Files are laid out, or read to fill caches.
    Fill,
    /// Other data is read, to push the step's out of caches.
    Flush,
}

/// Something that happened.
pub enum Event<'a> {
    /// A scenario begins.
    Test {
        /// The scenario.
        scenario: &'a Scenario,
        /// From 1.
        number: usize,
        /// The number of all.
        of: usize,
    },
    /// A step of it begins.
    Step {
        /// The step.
        step: &'a Step,
        /// From 1.
        number: usize,
        /// The number of all; absent in a search, which does not know.
        of: Option<usize>,
    },
    /// A load is about to be applied.
    Run {
        /// The purpose.
        act: Act,
        /// From 1.
        repeat: u32,
        /// The number of all.
        of: u32,
        /// Planned seconds of load of everything that comes after it; absent where nobody knows.
        after_s: Option<f64>,
    },
    /// Files are laid out: so many bytes of so many, or files where nothing is written.
    Layout {
        /// Written, or made.
        done: u64,
        /// In all.
        total: u64,
    },
    /// 100 ms of load have passed.
    Window(&'a Window),
    /// The step is over.
    Done(&'a StepResult),
}
