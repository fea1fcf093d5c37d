//! The selection of tests and target.

use super::CliError;
use super::targets::{self, Given};
use clap::Args;
use std::path::Path;
use weir_scenario::catalogue::{self, Protocol};
use weir_scenario::lang::{self, Map};
use weir_scenario::scenario::{Language, Scenario};

/// The lack of a test of SMB on another target.
const NOT_SMB: &str = "a target smb://…: it was published for SMB";

/// Tests to run, and their target.
#[derive(Args, Clone, Debug)]
pub struct Choice {
    /// Names of published tests (see `weir bench list`; `anf-*` selects all with this prefix, `all`
    /// selects every test) and files, followed by the target:
    /// `nfs://HOST[,HOST…][:PORT]/EXPORT[?mountport=PORT&resvport=1&uid=N&gid=N]`,
    /// `smb://[USER@]HOST[,HOST…][:PORT]/SHARE[/DIRECTORY]`, or a directory.
    #[arg(value_name = "NAME|FILE… TARGET",
          required_unless_present_any = ["target", "map", "line"])]
    pub what: Vec<String>,
    /// Target, if it is not the last argument; repeatable with different names. A load that names a
    /// target is applied to it; loads that name none are applied to the target without a name, or,
    /// if there is none, to each of the named targets at the same time. It may be omitted if the
    /// file or the command line names one (nfs_url of fio).
    #[arg(long, value_name = "[NAME=]TARGET")]
    pub target: Vec<Given>,
    /// Map a path in a file or command line to a directory below the target, to the target itself
    /// if the part after := is empty, or to another target: by the name given with --target, by
    /// URL, or by path. Write drives without the colon: `z:=`.
    #[arg(long, value_name = "FROM:=DIRECTORY|TARGET", value_parser = Map::parse)]
    pub map: Vec<Map>,
    /// Command line of fio, Vdbench or diskspd, unchanged.
    #[arg(last = true, value_name = "COMMAND LINE")]
    pub line: Vec<String>,
}

impl Choice {
    /// The scenarios at their original size, and the targets as they were written.
    ///
    /// # Errors
    /// [`CliError::Usage`] if a name is unknown, a text cannot be parsed, or a part is missing.
    pub(super) fn scenarios(&self) -> Result<(Vec<Scenario>, Vec<Given>), CliError> {
        let mut what = self.what.clone();
        let mut given = self.target.clone();
        if given.is_empty() && what.last().is_some_and(|last| self.is_target(last)) {
            let text = what.pop().unwrap_or_default();
            given.push(Given { name: String::new(), text });
        }
        let mut scenarios = Vec::new();
        for name in &what {
            scenarios.extend(self.named(name, &given)?);
        }
        if !self.line.is_empty() {
            let read = lang::command(&self.line, &self.options(&given));
            scenarios.push(read.map_err(|error| CliError::Usage(error.to_string()))?);
        }
        if scenarios.is_empty() {
            return Err(CliError::Usage(
                "nothing to run: name a test of `weir bench list`, a file, or a command line \
                 after --, and then the target"
                    .to_owned(),
            ));
        }
        take_target(&mut given, &mut scenarios)?;
        let on_smb = !given.is_empty() && given.iter().all(|one| one.text.starts_with("smb://"));
        for scenario in &mut scenarios {
            let is_smb = catalogue::protocol(&scenario.name) == Some(Protocol::Smb);
            let is_catalogue = scenario.language == Language::Catalogue;
            if is_catalogue && is_smb && !on_smb {
                scenario.waiting.get_or_insert_with(|| NOT_SMB.to_owned());
            }
        }
        if let Some(waiting) = all_wait(&scenarios) {
            return Err(CliError::Usage(waiting));
        }
        Ok((scenarios, given))
    }

    /// Is the last argument the target? Where paths are mapped to targets there may be no other,
    /// and the text of a single file may name one. The name of a test is never the target.
    fn is_target(&self, last: &str) -> bool {
        if is_test(last) && !Path::new(last).is_dir() {
            return false;
        }
        let alone = self.what.len() == 1 && self.line.is_empty();
        let maps_all = self.map.iter().any(|map| !map.target.is_empty());
        let plain = !maps_all || last.contains("://") || Path::new(last).is_dir();
        plain && !(alone && Path::new(last).is_file())
    }

    fn options(&self, given: &[Given]) -> lang::Options {
        let mut maps = self.map.clone();
        maps.iter_mut().for_each(|map| map.name_target(targets::names(given)));
        lang::Options { maps, ..lang::Options::default() }
    }

    fn named(&self, name: &str, given: &[Given]) -> Result<Vec<Scenario>, CliError> {
        if name.contains("://") {
            let message = format!(
                "{name} is a target and no test: the target is the last argument, or is given by \
                 --target"
            );
            return Err(CliError::Usage(message));
        }
        if let Some(beginning) = beginning(name) {
            let all = catalogue::all();
            let names = all.iter().filter(|entry| entry.name.starts_with(beginning));
            let found: Result<Vec<_>, _> =
                names.map(|entry| catalogue::scenario(&entry.name)).collect();
            let found = found.map_err(CliError::Usage)?;
            if found.is_empty() {
                let message = format!("no test begins with {beginning:?}; see weir bench list");
                return Err(CliError::Usage(message));
            }
            return Ok(found);
        }
        match catalogue::scenario(name) {
            Ok(scenario) => Ok(vec![scenario]),
            Err(_) if Path::new(name).is_file() => {
                lang::read(Path::new(name), &self.options(given))
                    .map(|scenario| vec![scenario])
                    .map_err(|error| CliError::Usage(error.to_string()))
            }
            Err(_) if Path::new(name).exists() => Err(CliError::Usage(format!(
                "{name} is not a regular file: name a file to run; the target is the last \
                     argument"
            ))),
            Err(why) if name.contains(['/', '.']) => {
                Err(CliError::Usage(format!("file {name} does not exist, and {why}")))
            }
            Err(why) => Err(CliError::Usage(why)),
        }
    }
}

/// The beginning of the names that `name` stands for, if it stands for several.
fn beginning(name: &str) -> Option<&str> {
    if name == "all" { Some("") } else { name.strip_suffix('*') }
}

/// Does `name` stand for published tests?
fn is_test(name: &str) -> bool {
    match beginning(name) {
        Some(beginning) => catalogue::all().iter().any(|entry| entry.name.starts_with(beginning)),
        None => catalogue::scenario(name).is_ok(),
    }
}

/// Takes the only target that the `scenarios` name where none is given. Those that name another one
/// than the given note that.
fn take_target(given: &mut Vec<Given>, scenarios: &mut [Scenario]) -> Result<(), CliError> {
    let mut named: Vec<String> =
        scenarios.iter().filter_map(|scenario| scenario.target.clone()).collect();
    named.dedup();
    if given.is_empty() {
        match named.as_slice() {
            [] => return Ok(()),
            [only] => given.push(Given { name: String::new(), text: only.clone() }),
            several => {
                let several = several.join(" and ");
                let message =
                    format!("the tests name several targets, {several}; choose one by --target");
                return Err(CliError::Usage(message));
            }
        }
    }
    let given: Vec<&str> = given.iter().map(|one| one.text.as_str()).collect();
    for scenario in scenarios {
        if let Some(other) = &scenario.target
            && !given.contains(&other.as_str())
        {
            let note = format!("the target is {}, not {other}", given.join(" and "));
            scenario.changes.push(note);
        }
    }
    Ok(())
}

/// The reason why none of `scenarios` can be run; `None` if one can.
fn all_wait(scenarios: &[Scenario]) -> Option<String> {
    let waiting: Option<Vec<String>> = scenarios
        .iter()
        .map(|scenario| Some(format!("{} waits for {}", scenario.name, scenario.waiting.as_ref()?)))
        .collect();
    let first = waiting?.into_iter().next()?;
    Some(format!("no test can be run: {first}; `weir bench list` shows the tests that can"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(what: &[&str]) -> Choice {
        Choice {
            what: what.iter().map(ToString::to_string).collect(),
            target: Vec::new(),
            map: Vec::new(),
            line: Vec::new(),
        }
    }

    #[test]
    fn the_target_comes_last_unless_it_is_named() {
        let name = catalogue::all().swap_remove(0).name;
        let (scenarios, given) = choice(&[&name, "/mnt"]).scenarios().unwrap();
        assert_eq!((scenarios.len(), given[0].text.as_str()), (1, "/mnt"));
        let mut named = choice(&[&name, &name]);
        named.target = vec!["nfs://x/y".parse().unwrap(), "b=/mnt".parse().unwrap()];
        let (scenarios, given) = named.scenarios().unwrap();
        assert_eq!((scenarios.len(), given), (2, named.target.clone()));
        named.map = vec![Map::parse("/v:=/mnt").unwrap()];
        named.target = Vec::new();
        assert_eq!(named.scenarios().unwrap().1, [], "the maps name the target");
    }

    #[test]
    fn a_test_is_no_target_and_a_target_no_test() {
        for tests in [&["eda"][..], &["all"], &["anf-*"], &["eda", "EDA"]] {
            let (scenarios, given) = choice(tests).scenarios().unwrap();
            assert!(!scenarios.is_empty() && given.is_empty(), "{tests:?}: the target is missing");
        }
        let told = choice(&["nfs://h/v", "eda"]).scenarios().unwrap_err().to_string();
        assert!(told.contains("nfs://h/v is a target") && told.contains("last argument"), "{told}");
        let told = choice(&["/", "eda"]).scenarios().unwrap_err().to_string();
        assert!(told.contains("/ is not a regular file") && told.contains("last arg"), "{told}");
    }

    #[test]
    fn the_target_of_a_text_is_taken_where_none_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let own = file("own.fio", "[a]\nioengine=nfs\nnfs_url=nfs://1.2.3.4/v\nsize=1m\n");
        let none = file("none.fio", "[a]\nsize=1m\n");
        let (scenarios, given) = choice(&[&own]).scenarios().unwrap();
        assert_eq!((scenarios.len(), given[0].text.as_str()), (1, "nfs://1.2.3.4/v"));
        let (scenarios, given) = choice(&[&own, "/mnt"]).scenarios().unwrap();
        assert_eq!(given[0].text, "/mnt");
        let told = "the target is /mnt, not nfs://1.2.3.4/v";
        assert!(scenarios[0].changes.iter().any(|change| change == told));
        assert_eq!(choice(&[&none]).scenarios().unwrap().1, [], "it is missing");
        let mut line = choice(&[]);
        line.line =
            ["fio", "--name=a", "--size=1m", "--nfs_url=nfs://h/v"].map(str::to_owned).into();
        assert_eq!(line.scenarios().unwrap().1[0].text, "nfs://h/v");
    }

    #[test]
    fn all_and_beginnings_are_names() {
        let all = choice(&["all", "/mnt"]).scenarios().unwrap().0;
        assert_eq!(all.len(), catalogue::all().len());
        let some = choice(&["anf-*", "/mnt"]).scenarios().unwrap().0;
        assert!(!some.is_empty() && some.len() < all.len());
        assert!(some.iter().all(|scenario| scenario.name.starts_with("anf-")));
    }

    #[test]
    fn what_is_unknown_or_missing_is_told() {
        let told = |what: &[&str]| choice(what).scenarios().unwrap_err().to_string();
        assert!(told(&["/mnt"]).contains("nothing to run"));
        assert!(told(&["no-such-*", "/mnt"]).contains("weir bench list"));
        assert!(told(&["no-such-test", "/mnt"]).contains("no-such-test"));
        assert!(told(&["/", "/mnt"]).contains("/ is not a regular file"));
        let waiting = told(&["azure-metadata-cache", "/mnt"]);
        assert!(waiting.contains("azure-metadata-cache waits for a target smb://"), "{waiting}");
        let channels = told(&["azure-multichannel-one-thread", "smb://x/y"]);
        assert!(channels.contains("one-thread waits for SMB Multichannel"), "{channels}");
        assert!(choice(&["azure-metadata-cache", "smb://x/y"]).scenarios().is_ok());
        assert!(choice(&["azure-metadata-cache", "eda", "/mnt"]).scenarios().is_ok());
        assert!(told(&["./no-such.fio", "/mnt"]).contains("file ./no-such.fio does not exist"));
    }
}
