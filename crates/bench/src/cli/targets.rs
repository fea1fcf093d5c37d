//! The targets of a call: the one for loads that name none, those with names, and those that loads
//! name by URL or path.

use super::CliError;
use super::place::WhoArgs;
use std::collections::BTreeSet;
use std::str::FromStr;
use weir_load::target::Targets;
use weir_load::workload::{Rate, Workload};
use weir_scenario::scenario::{Scenario, Step};

/// A target as it was written, with the name that it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// Empty for the target of loads that name none.
    pub name: String,
    /// The URL or path.
    pub text: String,
}

impl FromStr for Given {
    type Err = String;

    /// Parses `[NAME=]TARGET`. A URL or path before `=` is no name.
    fn from_str(text: &str) -> Result<Self, String> {
        let plain = |name: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "._-".contains(c))
        };
        let named = text.split_once('=').filter(|(name, _)| plain(name));
        let (name, text) = named.unwrap_or(("", text));
        if text.is_empty() {
            return Err("the target is missing: [NAME=]nfs://…, smb://… or a directory".to_owned());
        }
        Ok(Self { name: name.to_owned(), text: text.to_owned() })
    }
}

/// The names of targets, for maps of paths.
pub(super) fn names(given: &[Given]) -> impl Iterator<Item = &str> {
    given.iter().map(|one| one.name.as_str()).filter(|name| !name.is_empty())
}

/// All targets that `scenarios` use. Loads that name none are applied to each of the named ones
/// where no target without a name is given.
///
/// # Errors
/// [`CliError`] if a target is not given, is given twice, or cannot be parsed.
pub(super) fn resolve(
    given: &[Given],
    scenarios: &mut [Scenario],
    who: &WhoArgs,
) -> Result<Targets, CliError> {
    let mut seen = BTreeSet::new();
    for one in given {
        if !seen.insert(one.name.as_str()) {
            return Err(CliError::Usage(if one.name.is_empty() {
                "several targets need names: --target NAME=TARGET".to_owned()
            } else {
                format!("the target {} is given twice", one.name)
            }));
        }
    }
    if !given.is_empty() && !seen.contains("") {
        let names: Vec<&str> = names(given).collect();
        scenarios.iter_mut().for_each(|scenario| spread(scenario, &names));
    }
    let mut all = Vec::with_capacity(given.len());
    for one in given {
        all.push((one.name.clone(), who.target(&one.text)?));
    }
    for name in wanted(scenarios) {
        if !seen.contains(name.as_str()) {
            let is_target = name.contains("://") || name.starts_with('/');
            if !is_target {
                return Err(CliError::Usage(missing(&name)));
            }
            let target = who.target(&name)?;
            all.push((name, target));
        }
    }
    if all.len() > 1 {
        refuse_options_of_one(who)?;
    }
    Ok(all.into_iter().collect())
}

/// Further mounts and addresses are those of one target; nobody says of which if there are several.
fn refuse_options_of_one(who: &WhoArgs) -> Result<(), CliError> {
    let (option, instead) = if !who.mounts.is_empty() {
        ("--mounts", "measure them one after another")
    } else if !who.addresses.is_empty() {
        ("--addresses", "give each its addresses in its URL, as in nfs://10.0.0.4,10.0.0.5/vol")
    } else {
        return Ok(());
    };
    Err(CliError::Usage(format!("{option} is for one target, and there are several: {instead}")))
}

fn missing(name: &str) -> String {
    if name.is_empty() {
        return "the target is missing: name nfs://…, smb://… or a directory, or map all paths to \
                targets with --map"
            .to_owned();
    }
    format!("a load is for the target {name:?}, which is not given: add --target {name}=TARGET")
}

/// The targets as the user wrote them; those that only loads name as they are.
pub(super) fn text(given: &[Given], targets: &Targets) -> String {
    match given {
        [one] if one.name.is_empty() && targets.only().is_some() => one.text.clone(),
        _ => targets.to_string(),
    }
}

/// The targets that loads name.
fn wanted(scenarios: &[Scenario]) -> BTreeSet<String> {
    let runnable = scenarios.iter().filter(|scenario| scenario.waiting.is_none());
    let steps = runnable.flat_map(|scenario| &scenario.steps);
    steps.flat_map(|step| &step.loads).map(|load| load.target.clone()).collect()
}

/// Applies loads that name no target to each of `names`, at the same time.
fn spread(scenario: &mut Scenario, names: &[&str]) {
    let is_open = |load: &Workload| load.target.is_empty();
    if !scenario.steps.iter().flat_map(|step| &step.loads).any(is_open) {
        return;
    }
    let has_share = |load: &&Workload| matches!(load.rate, Rate::Share { .. });
    let all = scenario.steps.iter().flat_map(|step| &step.loads);
    let shares = all.filter(has_share).any(is_open);
    for Step { loads, .. } in &mut scenario.steps {
        *loads = std::mem::take(loads).into_iter().flat_map(|load| on_each(load, names)).collect();
    }
    if names.len() > 1 {
        scenario.changes.push(format!(
            "loads are applied to each of the targets {} at the same time",
            names.join(", ")
        ));
        if shares {
            scenario.changes.push(
                "rates that are a part of what an earlier step reached are divided equally among \
                 the targets"
                    .to_owned(),
            );
        }
    }
}

fn on_each(load: Workload, names: &[&str]) -> Vec<Workload> {
    if !load.target.is_empty() {
        return vec![load];
    }
    let on = |target: &&str| {
        let name = match names.len() {
            1 => load.name.clone(),
            _ => format!("{} on {target}", load.name),
        };
        let rate = divided(&load.rate, names.len());
        Workload { name, target: (*target).to_owned(), rate, ..load.clone() }
    };
    names.iter().map(on).collect()
}

/// The rate of each of so many copies of a load. A share is taken of the rate that all targets
/// reached together, so that the copies share it; other rates are those of each target.
#[expect(clippy::cast_precision_loss, reason = "targets are few")]
fn divided(rate: &Rate, copies: usize) -> Rate {
    match rate {
        Rate::Share { of, percent } => {
            Rate::Share { of: of.clone(), percent: percent / copies as f64 }
        }
        rate => rate.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::testing::scenario;

    fn given(all: &[&str]) -> Vec<Given> {
        all.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn resolved(all: &[&str], scenario: &mut Scenario) -> Result<String, String> {
        let scenarios = std::slice::from_mut(scenario);
        let targets = resolve(&given(all), scenarios, &WhoArgs::default());
        targets.map(|targets| targets.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn names_stand_before_targets() {
        let one = |text: &str| {
            let one: Given = text.parse().unwrap();
            (one.name, one.text)
        };
        assert_eq!(one("vol1=nfs://h/v"), ("vol1".into(), "nfs://h/v".into()));
        assert_eq!(one("nfs://h/v?uid=5"), (String::new(), "nfs://h/v?uid=5".into()));
        assert_eq!(one("/mnt/a=b"), (String::new(), "/mnt/a=b".into()));
        assert!("a=".parse::<Given>().is_err() && "".parse::<Given>().is_err());
    }

    #[test]
    fn loads_without_a_target_are_on_the_one_without_a_name() {
        let mut one = scenario(&["a"]);
        assert_eq!(resolved(&["/mnt", "b=/mnt/b"], &mut one).unwrap(), "/mnt, b=/mnt/b");
        assert_eq!(one.steps[0].loads.len(), 1);
        assert_eq!(one.steps[0].loads[0].target, "");
    }

    #[test]
    fn loads_without_a_target_are_on_every_named_one_if_there_is_no_other() {
        let mut one = scenario(&["a", "b"]);
        one.steps[1].loads[0].target = "y".to_owned();
        resolved(&["x=/mnt/x", "y=/mnt/y"], &mut one).unwrap();
        let loads = |step: usize| -> Vec<(&str, &str)> {
            let loads = one.steps[step].loads.iter();
            loads.map(|load| (load.name.as_str(), load.target.as_str())).collect()
        };
        assert_eq!(loads(0), [("run on x", "x"), ("run on y", "y")]);
        assert_eq!(loads(1), [("run", "y")]);
        assert!(one.changes[0].contains("targets x, y"), "{:?}", one.changes);
    }

    #[test]
    fn the_copies_of_a_load_share_its_part_of_a_rate() {
        let mut one = scenario(&["max", "half", "fixed"]);
        one.steps[1].loads[0].rate = Rate::Share { of: "max".to_owned(), percent: 50.0 };
        one.steps[2].loads[0].rate = Rate::Operations(80.0);
        resolved(&["x=/mnt/x", "y=/mnt/y"], &mut one).unwrap();
        let rates = |step: usize| -> Vec<Rate> {
            one.steps[step].loads.iter().map(|load| load.rate.clone()).collect()
        };
        let quarter = Rate::Share { of: "max".to_owned(), percent: 25.0 };
        assert_eq!(rates(1), [quarter.clone(), quarter], "half of what both reached together");
        assert_eq!(rates(2), [Rate::Operations(80.0), Rate::Operations(80.0)], "as written");
        assert!(one.changes[1].contains("divided equally"), "{:?}", one.changes);
    }

    #[test]
    fn loads_name_targets_that_nobody_gave_by_url_or_path() {
        let mut one = scenario(&["a"]);
        one.steps[0].loads[0].target = "nfs://192.0.2.1/v".to_owned();
        let all = resolved(&[], &mut one).unwrap();
        assert_eq!(all, "nfs://192.0.2.1/v");
        one.steps[0].loads[0].target = "vol1".to_owned();
        assert!(resolved(&["/mnt"], &mut one).unwrap_err().contains("--target vol1=TARGET"));
        one.steps[0].loads[0].target = String::new();
        assert!(resolved(&[], &mut one).unwrap_err().contains("the target is missing"));
    }

    #[test]
    fn further_mounts_and_addresses_are_for_one_target() {
        let mounts = WhoArgs { mounts: vec!["/mnt/c".into()], ..WhoArgs::default() };
        let addresses =
            WhoArgs { addresses: vec!["10.0.0.5".parse().unwrap()], ..WhoArgs::default() };
        let resolved = |all: &[&str], who| {
            let resolved = resolve(&given(all), &mut [scenario(&["a"])], who);
            resolved.map(|targets| targets.to_string()).map_err(|error| error.to_string())
        };
        let two = ["x=/mnt/a", "y=/mnt/b"];
        assert!(resolved(&two, &mounts).unwrap_err().contains("--mounts is for one target"));
        assert!(resolved(&two, &addresses).unwrap_err().contains("nfs://10.0.0.4,10.0.0.5/vol"));
        resolved(&["/mnt/a"], &mounts).unwrap();
        resolved(&["x=nfs://10.0.0.4/vol"], &addresses).unwrap();
    }

    #[test]
    fn several_targets_have_different_names() {
        let mut one = scenario(&["a"]);
        assert!(resolved(&["/a", "/b"], &mut one).unwrap_err().contains("need names"));
        assert!(resolved(&["x=/a", "x=/b"], &mut one).unwrap_err().contains("x is given twice"));
    }
}
