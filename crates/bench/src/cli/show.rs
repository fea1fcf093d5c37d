//! Live progress of the suite: the current test and step, and a line for each completed step.

use crate::progress::{Progress, Unit};
use crate::suite::{Act, Event};
use weir_core::units::{latency, three_digits};
use weir_load::control::Control;
use weir_results::StepResult;

/// Shows events on standard error.
pub(super) struct Show {
    progress: Progress,
    test: String,
    step: String,
    /// The unit of the layout of the step's own files.
    own_unit: Unit,
    /// The unit of the present layout.
    unit: Unit,
}

impl Show {
    /// Shows events of the run that `control` controls, and its long waits; nothing if `quiet`.
    pub(super) fn new(quiet: bool, control: &Control) -> Self {
        let progress = Progress::new(quiet);
        progress.follow(control);
        Self {
            progress,
            test: String::new(),
            step: String::new(),
            own_unit: Unit::Bytes,
            unit: Unit::Bytes,
        }
    }

    /// Shows a sentence for the user.
    pub(super) fn note(&self, sentence: &str) {
        self.progress.say(&format!("note: {sentence}"));
    }

    /// Handles an event.
    pub(super) fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Test { scenario, number, of } => {
                self.test = if *of > 1 { format!("test {number}/{of} ") } else { String::new() };
                self.progress.say(&format!("{}{}", self.test, scenario.title));
                if let Some(waiting) = &scenario.waiting {
                    self.progress.say(&format!("  not run: {waiting}"));
                }
            }
            Event::Step { step, number, of } => {
                let of = of.map_or_else(String::new, |of| format!("/{of}"));
                self.step = format!("{}step {number}{of} {}", self.test, step.name);
                self.own_unit = Unit::of(&step.loads);
            }
            Event::Run { act, repeat, of, after_s } => {
                let doing = doing(*act, *repeat, *of);
                // Other data is always written.
                let is_own = *act != Act::Flush;
                self.unit = if is_own { self.own_unit } else { Unit::Bytes };
                self.progress.begin(format!("{}{doing}", self.step), *after_s);
            }
            Event::Layout { done, total } => self.progress.layout(*done, *total, self.unit),
            Event::Window(window) => self.progress.window(window),
            Event::Done(result) => self.progress.say(&line(result)),
        }
    }

    /// Ends the display.
    pub(super) fn finish(&self) {
        self.progress.finish();
    }
}

fn doing(act: Act, repeat: u32, of: u32) -> String {
    let run = if of > 1 { format!(", run {repeat}/{of}") } else { String::new() };
    match act {
        Act::Measure => run,
        Act::Discard => format!("{run}, not counted"),
        Act::Settle => ", until it is steady".to_owned(),
        Act::Fill => ", filling".to_owned(),
        Act::Flush => ", reading other data".to_owned(),
    }
}

/// The result of a step, in one line.
fn line(result: &StepResult) -> String {
    let name = &result.name;
    let Some(summary) = &result.summary else {
        let why = result.skipped.as_deref().unwrap_or("nothing was measured");
        return format!("  {name}: {why}");
    };
    let mut line = format!(
        "  {name}: {:.0} op/s  {} MiB/s  mean {}  p99 {}",
        summary.iops.median,
        three_digits(summary.mibps.median),
        latency(summary.mean_ms.median),
        latency(summary.p99_ms.median)
    );
    if summary.repeats > 1 {
        let spread = (summary.iops.max - summary.iops.min) / summary.iops.median.max(1e-9);
        line.push_str(&format!("  ({} runs, spread {:.1} %)", summary.repeats, spread * 100.0));
    }
    if let Some(why) = &result.skipped {
        line.push_str(&format!("  {why}"));
    }
    if !result.notes.is_empty() {
        line.push_str(&format!("  [{} notes]", result.notes.len()));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_results::testing::step_result;

    #[test]
    fn a_step_is_one_line_with_its_figures() {
        let mut result = step_result(1000.0, 2.0);
        let text = line(&result);
        for part in ["step: 1000 op/s", "3.91 MiB/s", "mean 2.00 ms", "p99 2.00 ms"] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
        assert!(!text.contains("runs") && !text.contains("notes"), "{text}");
        result.summary = None;
        result.skipped = Some("the target is gone".to_owned());
        assert_eq!(line(&result), "  step: the target is gone");
    }

    #[test]
    fn what_a_load_is_applied_for_is_told() {
        assert_eq!(doing(Act::Measure, 1, 1), "");
        assert_eq!(doing(Act::Measure, 2, 3), ", run 2/3");
        assert_eq!(doing(Act::Discard, 1, 3), ", run 1/3, not counted");
    }
}
