//! The steps that `--step` names.

use super::CliError;
use weir_load::workload::Rate;
use weir_scenario::scenario::Scenario;

/// Checks that each of `names` is that of a step that is run, and that these need no others.
/// `written` are the scenarios at their original size with all steps, `fitted` with those that are
/// run.
///
/// # Errors
/// [`CliError::Usage`] says what to change.
pub(super) fn check(
    names: &[String],
    written: &[Scenario],
    fitted: &[Scenario],
) -> Result<(), CliError> {
    let has = |scenario: &&Scenario, name: &str| scenario.steps.iter().any(|it| it.name == name);
    for name in names {
        if fitted.iter().any(|scenario| has(&scenario, name)) {
            continue;
        }
        return Err(CliError::Usage(match written.iter().find(|it| has(it, name)) {
            Some(test) => format!(
                "step {name} of {} is the same as another one at this size; --dry-run without \
                 --step names it",
                test.name
            ),
            None => unknown(name, written),
        }));
    }
    fitted.iter().filter(|_| !names.is_empty()).try_for_each(needs_no_other)
}

fn unknown(name: &str, written: &[Scenario]) -> String {
    match written {
        [test] => {
            let steps: Vec<&str> = test.steps.iter().map(|step| step.name.as_str()).collect();
            format!("{} has no step {name}; its steps are {}", test.name, steps.join(", "))
        }
        _ => format!("no test has a step {name}; --dry-run without --step names the steps"),
    }
}

/// A rate that is a part of what another step reached needs that step.
fn needs_no_other(scenario: &Scenario) -> Result<(), CliError> {
    for step in &scenario.steps {
        for load in &step.loads {
            if let Rate::Share { of, .. } = &load.rate
                && !scenario.steps.iter().any(|step| step.name == *of)
            {
                return Err(CliError::Usage(format!(
                    "the rate of step {} is a part of what step {of} reaches: add --step {of}",
                    step.name
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::testing::scenario;
    use weir_scenario::scenario::only;

    fn checked(names: &[&str], written: &[Scenario], left_out: &str) -> Result<(), String> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut fitted = written.to_vec();
        for scenario in &mut fitted {
            scenario.steps.retain(|step| step.name != left_out);
            only(scenario, &names);
        }
        check(&names, written, &fitted).map_err(|error| error.to_string())
    }

    #[test]
    fn names_are_those_of_steps_that_are_run() {
        let all = [scenario(&["a", "b"]), scenario(&["c"])];
        assert_eq!(checked(&["a", "c"], &all, ""), Ok(()));
        assert_eq!(checked(&[], &all, ""), Ok(()));
        let told = checked(&["d"], &all[..1], "").unwrap_err();
        assert_eq!(told, "test has no step d; its steps are a, b");
        assert!(checked(&["d"], &all, "").unwrap_err().contains("no test has a step d"));
        let told = checked(&["b"], &all, "b").unwrap_err();
        assert!(told.contains("step b of test is the same as another one"), "{told}");
    }

    #[test]
    fn a_part_of_a_rate_needs_the_step_of_that_rate() {
        let mut one = scenario(&["max", "half"]);
        one.steps[1].loads[0].rate = Rate::Share { of: "max".to_owned(), percent: 50.0 };
        let all = [one];
        assert_eq!(checked(&["max", "half"], &all, ""), Ok(()));
        assert_eq!(checked(&["max"], &all, ""), Ok(()));
        assert!(checked(&["half"], &all, "").unwrap_err().contains("add --step max"));
    }
}
