//! Leaving out steps of a scenario.

use super::{Scenario, Step};

/// Keeps the steps of these names, and the preparations in front of them, as they are in the whole
/// scenario. Nothing is kept of a scenario that has none of them.
pub fn only(scenario: &mut Scenario, names: &[String]) {
    let is_named = |step: &Step| names.contains(&step.name);
    if scenario.steps.iter().all(is_named) {
        return;
    }
    if !scenario.steps.iter().any(is_named) {
        scenario.steps.clear();
        return;
    }
    let mut stay = with_preparations(&scenario.steps, &is_named, false);
    for (stays, step) in stay.iter_mut().zip(&scenario.steps) {
        *stays |= is_named(step);
    }
    retain(&mut scenario.steps, &stay);
    let kept: Vec<&str> = scenario.steps.iter().map(|step| step.name.as_str()).collect();
    scenario.changes.push(format!("of its steps, only these are run: {}", kept.join(", ")));
}

/// The steps that stay: measured steps for which `stays` is true, and the preparations of these.
/// `trailing`: preparations behind the last measured step stay, too.
pub(super) fn with_preparations(
    steps: &[Step],
    stays: &dyn Fn(&Step) -> bool,
    trailing: bool,
) -> Vec<bool> {
    let mut stay = Vec::with_capacity(steps.len());
    // Does one of the measured steps behind a preparation stay, up to the next preparation? `None`
    // if there are none.
    let mut wanted = None;
    let mut prepares = false;
    for step in steps.iter().rev() {
        if step.preparation {
            prepares = true;
            stay.push(wanted.unwrap_or(trailing));
            continue;
        }
        let stays = stays(step);
        let is_last = std::mem::take(&mut prepares);
        let behind = !is_last && wanted == Some(true);
        wanted = Some(behind || stays);
        stay.push(stays);
    }
    stay.reverse();
    stay
}

/// Keeps the steps whose entry in `stay` is true.
pub(super) fn retain(steps: &mut Vec<Step>, stay: &[bool]) {
    let last = steps.last().cloned();
    let mut stay = stay.iter();
    steps.retain(|_| stay.next().copied().unwrap_or(true));
    // The files are removed after the last step, whichever that is now.
    if let (Some(before), Some(last)) = (last, steps.last_mut())
        && before.name != last.name
    {
        last.shares_files = before.shares_files;
        for (load, before) in last.loads.iter_mut().zip(&before.loads) {
            load.keep = before.keep;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Chart, Language};

    /// A scenario of steps of these names; those that begin with `p` are preparations.
    fn scenario(names: &[&str]) -> Scenario {
        let step = |name: &&str| Step {
            name: (*name).to_owned(),
            preparation: name.starts_with('p'),
            shares_files: name != names.last().unwrap(),
            ..Step::default()
        };
        Scenario {
            name: "test".to_owned(),
            title: String::new(),
            about: String::new(),
            source: None,
            language: Language::Native,
            chart: Chart::Bars,
            steps: names.iter().map(step).collect(),
            changes: Vec::new(),
            waiting: None,
            addresses: None,
            target: None,
            text: None,
            hosts: Vec::new(),
        }
    }

    fn kept(of: &[&str], names: &[&str]) -> Scenario {
        let mut scenario = scenario(of);
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        only(&mut scenario, &names);
        scenario
    }

    fn names(scenario: &Scenario) -> Vec<&str> {
        scenario.steps.iter().map(|step| step.name.as_str()).collect()
    }

    #[test]
    fn steps_stay_with_the_preparations_in_front_of_them() {
        let all = ["p1", "a", "b", "p2", "c", "d"];
        assert_eq!(names(&kept(&all, &["b"])), ["p1", "b"]);
        assert_eq!(names(&kept(&all, &["d", "a"])), ["p1", "a", "p2", "d"]);
        assert_eq!(names(&kept(&all, &["p2"])), ["p2"], "a preparation by itself");
        assert_eq!(names(&kept(&all, &["x"])), [""; 0]);
        let some = kept(&all, &["b", "x"]);
        assert_eq!(some.changes, ["of its steps, only these are run: p1, b"]);
        assert!(kept(&["a"], &["a"]).changes.is_empty(), "nothing is left out");
    }

    #[test]
    fn the_files_are_removed_after_the_last_step_that_stays() {
        let some = kept(&["a", "b", "c"], &["a", "b"]);
        let shares: Vec<bool> = some.steps.iter().map(|step| step.shares_files).collect();
        assert_eq!(shares, [true, false]);
    }
}
