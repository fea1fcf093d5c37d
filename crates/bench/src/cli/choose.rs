//! The selection of tests and target.

use super::CliError;
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
    /// `nfs://HOST[,HOST…][:PORT]/EXPORT[?mountport=PORT&uid=N&gid=N]`,
    /// `smb://[USER@]HOST[,HOST…][:PORT]/SHARE[/DIRECTORY]`, or a directory.
    #[arg(value_name = "NAME|FILE… TARGET", required_unless_present_any = ["target", "line"])]
    pub what: Vec<String>,
    /// Target, if it is not the last argument. It may be omitted if the file or the command line
    /// names one (nfs_url of fio).
    #[arg(long, value_name = "TARGET")]
    pub target: Option<String>,
    /// Map a path in a file or command line to a directory below the target, or to the target
    /// itself if the part after := is empty. Write drives without the colon: `z:=`.
    #[arg(long, value_name = "FROM:=DIRECTORY", value_parser = Map::parse)]
    pub map: Vec<Map>,
    /// Command line of fio, Vdbench or diskspd, unchanged.
    #[arg(last = true, value_name = "COMMAND LINE")]
    pub line: Vec<String>,
}

impl Choice {
    /// The scenarios at their original size, and the target.
    ///
    /// # Errors
    /// [`CliError::Usage`] if a name is unknown, a text cannot be parsed, or a part is missing.
    pub(super) fn scenarios(&self) -> Result<(Vec<Scenario>, String), CliError> {
        let (what, said) = self.parts();
        let mut scenarios = Vec::new();
        for name in what {
            scenarios.extend(self.named(name)?);
        }
        if !self.line.is_empty() {
            let read = lang::command(&self.line, &self.options());
            scenarios.push(read.map_err(|error| CliError::Usage(error.to_string()))?);
        }
        if scenarios.is_empty() {
            return Err(CliError::Usage(
                "nothing to run: name a test of `weir bench list`, a file, or a command line \
                 after --, and then the target"
                    .to_owned(),
            ));
        }
        let target = target(said, &mut scenarios)?;
        for scenario in &mut scenarios {
            let is_smb = catalogue::protocol(&scenario.name) == Some(Protocol::Smb);
            let is_catalogue = scenario.language == Language::Catalogue;
            if is_catalogue && is_smb && !target.starts_with("smb://") {
                scenario.waiting.get_or_insert_with(|| NOT_SMB.to_owned());
            }
        }
        if let Some(waiting) = all_wait(&scenarios) {
            return Err(CliError::Usage(waiting));
        }
        Ok((scenarios, target))
    }

    /// The tests, and the target if there is one: the last argument, unless that is the only one
    /// and a file, whose text may name the target.
    fn parts(&self) -> (&[String], Option<&str>) {
        match (&self.target, self.what.as_slice()) {
            (Some(target), what) => (what, Some(target)),
            (None, [only]) if self.line.is_empty() && Path::new(only).is_file() => {
                (std::slice::from_ref(only), None)
            }
            (None, [what @ .., target]) => (what, Some(target)),
            (None, []) => (&[], None),
        }
    }

    fn options(&self) -> lang::Options {
        lang::Options { maps: self.map.clone(), ..lang::Options::default() }
    }

    fn named(&self, name: &str) -> Result<Vec<Scenario>, CliError> {
        let beginning = if name == "all" { Some("") } else { name.strip_suffix('*') };
        if let Some(beginning) = beginning {
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
            Err(_) if Path::new(name).is_file() => lang::read(Path::new(name), &self.options())
                .map(|scenario| vec![scenario])
                .map_err(|error| CliError::Usage(error.to_string())),
            Err(_) if Path::new(name).exists() => {
                Err(CliError::Usage(format!("{name} is not a regular file: name a file to run")))
            }
            Err(why) if name.contains(['/', '.']) => {
                Err(CliError::Usage(format!("file {name} does not exist, and {why}")))
            }
            Err(why) => Err(CliError::Usage(why)),
        }
    }
}

/// The target that was `said`, or else the only one that the `scenarios` name. Those that name
/// another note that.
fn target(said: Option<&str>, scenarios: &mut [Scenario]) -> Result<String, CliError> {
    let mut named: Vec<String> =
        scenarios.iter().filter_map(|scenario| scenario.target.clone()).collect();
    named.dedup();
    let target = match (said, named.as_slice()) {
        (Some(said), _) => said.to_owned(),
        (None, [only]) => only.clone(),
        (None, []) => {
            let message = "the target is missing: name it last, or with --target";
            return Err(CliError::Usage(message.to_owned()));
        }
        (None, several) => {
            let several = several.join(" and ");
            let message = format!("the tests name several targets, {several}; say one by --target");
            return Err(CliError::Usage(message));
        }
    };
    for scenario in scenarios {
        if let Some(other) = scenario.target.as_ref().filter(|other| **other != target) {
            scenario.changes.push(format!("the target is {target}, not {other}"));
        }
    }
    Ok(target)
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
            target: None,
            map: Vec::new(),
            line: Vec::new(),
        }
    }

    #[test]
    fn the_target_comes_last_unless_it_is_named() {
        let name = catalogue::all().swap_remove(0).name;
        let (scenarios, target) = choice(&[&name, "/mnt"]).scenarios().unwrap();
        assert_eq!((scenarios.len(), target.as_str()), (1, "/mnt"));
        let mut named = choice(&[&name, &name]);
        named.target = Some("nfs://x/y".to_owned());
        let (scenarios, target) = named.scenarios().unwrap();
        assert_eq!((scenarios.len(), target.as_str()), (2, "nfs://x/y"));
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
        let (scenarios, target) = choice(&[&own]).scenarios().unwrap();
        assert_eq!((scenarios.len(), target.as_str()), (1, "nfs://1.2.3.4/v"));
        let (scenarios, target) = choice(&[&own, "/mnt"]).scenarios().unwrap();
        assert_eq!(target, "/mnt");
        let told = "the target is /mnt, not nfs://1.2.3.4/v";
        assert!(scenarios[0].changes.iter().any(|change| change == told));
        let missing = choice(&[&none]).scenarios().unwrap_err().to_string();
        assert!(missing.contains("the target is missing"), "{missing}");
        let mut line = choice(&[]);
        line.line =
            ["fio", "--name=a", "--size=1m", "--nfs_url=nfs://h/v"].map(str::to_owned).into();
        assert_eq!(line.scenarios().unwrap().1, "nfs://h/v");
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
