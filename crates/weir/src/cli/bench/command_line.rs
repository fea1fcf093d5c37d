//! `weir bench` on the command line of `weir`: the options that its help shows, and the advice
//! where a test is given without `run`.

use clap::error::ErrorKind;
use clap::{Arg, Command};
use std::path::Path;

const NAME: &str = "bench";
/// The subcommands that ask the server that the options of the API name.
const ASKING: [&str; 2] = ["run", "search"];

/// `weir` without the options of the API in the help of `weir bench` and its subcommands, but for
/// those that ask a server. The options are accepted everywhere all the same, like in other
/// commands.
pub(crate) fn with_own_options(weir: Command) -> Command {
    let global = weir.get_arguments().filter(|arg| arg.is_global_set());
    let api: Vec<Arg> = global.filter(|arg| arg.get_id() != "output").cloned().collect();
    let hidden: Vec<Arg> = api.iter().map(|arg| arg.clone().hide(true)).collect();
    // A load changes nothing on the server, so that no etag can be compared.
    let asking: Vec<Arg> = api.into_iter().filter(|arg| arg.get_id() != "if_match").collect();
    weir.mut_subcommands(|command| match command.get_name() {
        NAME => command.args(hidden.clone()).mut_subcommands(|below| {
            if ASKING.contains(&below.get_name()) { below.args(asking.clone()) } else { below }
        }),
        _ => command,
    })
}

/// The error that names the command meant by `words`, which `weir` could not read: a test or a file
/// and its target, without `run`. Nothing if they are something else.
pub(crate) fn meant_run(words: &[String], weir: &mut Command) -> Option<clap::Error> {
    let bench = weir.find_subcommand_mut(NAME)?;
    let is_option = |word: &String| word.starts_with('-');
    let mut given = words.iter().skip_while(|word| is_option(word));
    given.next().filter(|word| *word == NAME)?;
    let [first, second] = [given.next()?, given.next()?];
    let is_target = |word: &str| word.contains(":/") || Path::new(word).is_dir();
    let is_other = is_option(first) || bench.find_subcommand(first).is_some();
    if is_other || is_target(first) || !is_target(second) {
        return None;
    }
    let message = format!(
        "a single load takes a target alone: did you mean weir bench run {first} {second}?"
    );
    Some(bench.error(ErrorKind::ArgumentConflict, message))
}

#[cfg(test)]
mod tests {
    use super::super::super::Cli;
    use super::*;

    /// The long options in the help of a command.
    fn shown(path: &[&str]) -> String {
        let mut weir = Cli::described();
        weir.build();
        let found = path.iter().fold(&mut weir, |at, name| at.find_subcommand_mut(name).unwrap());
        found.render_long_help().to_string()
    }

    #[test]
    fn help_shows_the_options_of_the_api_where_a_server_is_asked() {
        let api = ["--data", "--server ", "--fingerprint", "--cacert", "--token-file"];
        let told = |path: &[&str]| {
            let help = shown(path);
            assert!(help.contains("--output <FORMAT>"), "{help}");
            let mut told = api.map(|option| help.contains(option)).to_vec();
            told.push(help.contains("--if-match"));
            told
        };
        for path in
            [&["bench", "report"][..], &["bench", "compare"], &["bench", "list"], &["bench"]]
        {
            assert_eq!(told(path), [false; 6], "{path:?}");
        }
        for path in [["bench", "run"], ["bench", "search"]] {
            assert_eq!(told(&path), [true, true, true, true, true, false], "{path:?}");
        }
        assert_eq!(told(&["volume", "show"]), [true; 6]);
    }

    #[test]
    fn hidden_options_are_accepted() {
        let line = ["weir", "bench", "report", "a.json", "--data", "/d", "--output", "json"];
        let matches = Cli::described().try_get_matches_from(line).unwrap();
        let data: Option<&std::path::PathBuf> = matches.get_one("data");
        assert_eq!(data.map(std::path::PathBuf::as_path), Some(Path::new("/d")));
    }

    #[test]
    fn a_test_without_run_is_told_the_command() {
        let meant = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            meant_run(&words, &mut Cli::described()).map(|error| error.to_string())
        };
        let error = meant("bench anf-linux-4k-random nfs://h/v --scale auto").unwrap();
        let wanted = "did you mean weir bench run anf-linux-4k-random nfs://h/v?";
        assert!(error.contains(wanted), "{error}");
        for line in [
            "bench nfs://h/v --no-such-option",
            "bench nfs://h/v more",
            "bench run anf-x --no-such-option",
            "bench anf-x --rw read",
            "bench comapre a b",
            "volume show a",
            "volume create bench x y:/z",
        ] {
            assert_eq!(meant(line), None, "{line}");
        }
    }
}
