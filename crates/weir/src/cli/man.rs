//! `weir man`: manual pages, generated from the definition of the command line and the table of
//! settings, so that pages and options cannot differ.

use super::Cli;
use anyhow::{Context, Result};
use clap::{Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, italic, roman};
use std::fs;
use std::path::{Path, PathBuf};
use weir_control::config::{KEYS, Key, ServerConfig};

/// Write the manual pages: one per command, and weir.toml(5).
///
/// The pages are written to DIR/man1 and DIR/man5. The Debian package installs them.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  weir man --out ~/.local/share/man      # then: man weir-volume-create
  weir man --out /usr/local/share/man")]
pub(crate) struct ManArgs {
    /// Output directory; created if absent, and existing pages are overwritten
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// Writes all pages.
pub(crate) fn run(args: &ManArgs) -> Result<()> {
    for page in pages()? {
        let path = args.out.join(format!("man{}", page.section)).join(page.file());
        write(&path, &page.text).with_context(|| format!("can't write {}", path.display()))?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::write(path, text)
}

/// A manual page.
struct Page {
    name: String,
    section: char,
    text: String,
}

impl Page {
    fn file(&self) -> String {
        format!("{}.{}", self.name, self.section)
    }
}

fn pages() -> Result<Vec<Page>> {
    // The help command says what the pages say.
    let mut top = Cli::described().disable_help_subcommand(true);
    top.build();
    let mut pages = vec![settings()];
    collect(&top, None, &mut pages)?;
    Ok(pages)
}

fn collect(command: &Command, parent: Option<&str>, pages: &mut Vec<Page>) -> Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    pages.push(Page { text: page(command, &name, parent)?, name: name.clone(), section: '1' });
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        collect(below, Some(&name), pages)?;
    }
    Ok(())
}

/// The page of one command. What clap_mangen renders is taken over but for its synopsis, which has
/// no values, and its last sections, which would run the lines of examples together.
fn page(command: &Command, name: &str, parent: Option<&str>) -> Result<String> {
    let man = Man::new(command.clone());
    let mut text = title(name, '1').into_bytes();
    man.render_name_section(&mut text)?;
    synopsis(command).to_writer(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    let mut roff = Roff::new();
    if let Some(after) = command.get_after_long_help() {
        examples(&mut roff, &after.to_string());
    }
    if parent.is_some() {
        roff.control("SH", ["EXIT STATUS"]);
        roff.text([roman("0: success. 1: refused or failed. 2: invalid command line.")]);
    }
    let above = parent.unwrap_or("weir-serve");
    let configured = matches!(name, "weir" | "weir-serve" | "weir-config" | "weir-config-show");
    see_also(&mut roff, &[(above, "1")], configured.then_some(("weir.toml", "5")));
    roff.to_writer(&mut text)?;
    Ok(String::from_utf8(text)?)
}

/// The first line of a page, without a date. By hand: roff's argument for no date is `""`, which
/// the library leaves out.
fn title(name: &str, section: char) -> String {
    let (name, version) = (name.to_uppercase(), env!("CARGO_PKG_VERSION"));
    format!(".TH {name} {section} \"\" \"weir {version}\" \"Weir Manual\"\n")
}

/// The synopsis of the command, as its help says it.
fn synopsis(command: &Command) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    let usage = command.clone().render_usage().to_string();
    for (at, line) in usage.lines().map(str::trim).enumerate() {
        if at > 0 {
            roff.control("br", []);
        }
        roff.text([roman(line.trim_start_matches("Usage: "))]);
    }
    roff
}

/// The text after a command's help: headings that end in a colon, lines of commands below them, and
/// sentences.
fn examples(roff: &mut Roff, after: &str) {
    let mut listing = false;
    for line in after.lines().filter(|line| !line.trim().is_empty()) {
        let command = line.strip_prefix("  ");
        if command.is_some() != listing {
            listing = !listing;
            let [first, second] = if listing { ["RS", "nf"] } else { ["fi", "RE"] };
            roff.control(first, []);
            roff.control(second, []);
        }
        match (command, line.strip_suffix(':'), line.split_once(": ")) {
            (Some(command), ..) => roff.text([roman(command)]),
            (_, Some(heading), _) => roff.control("SH", [heading.to_uppercase().as_str()]),
            (_, _, Some((heading, rest))) => {
                roff.control("SH", [heading.to_uppercase().as_str()]).text([roman(rest)])
            }
            _ => roff.text([roman(line)]),
        };
    }
    if listing {
        roff.control("fi", []);
        roff.control("RE", []);
    }
}

fn see_also(roff: &mut Roff, always: &[(&str, &str)], also: Option<(&str, &str)>) {
    roff.control("SH", ["SEE ALSO"]);
    let all: Vec<_> = always.iter().copied().chain(also).collect();
    let last = all.len().saturating_sub(1);
    for (at, (name, section)) in all.into_iter().enumerate() {
        let end = if at == last { "" } else { "," };
        roff.text([bold(name), roman(format!("({section}){end}"))]);
    }
}

/// weir.toml(5), from the table of settings.
fn settings() -> Page {
    let mut roff = Roff::new();
    roff.control("SH", ["NAME"]).text([roman("weir.toml - configuration of weir serve")]);
    roff.control("SH", ["SYNOPSIS"]);
    roff.text([roman("/etc/weir/weir.toml")]);
    roff.control("SH", ["DESCRIPTION"]);
    roff.text([
        roman("A TOML file that "),
        bold("weir serve --config"),
        roman(" reads at startup. Only "),
        bold("data"),
        roman(
            "is required. The environment overrides the file, and the command line overrides the \
             environment. An unknown key is an error; the message gives its line and the nearest \
             known key.",
        ),
    ]);
    roff.control("PP", []);
    roff.text([
        bold("weir config template"),
        roman(" prints a file with every key and its default, "),
        bold("weir config show --config"),
        roman(" checks a file and prints the resulting configuration."),
    ]);
    roff.control("PP", []);
    roff.text([roman(
        "Addresses are numeric: host names are not supported. Sizes and rates have binary units: \
         100GiB, 64MiB/s. Pools, volumes, contracts and export rules are not part of the \
         configuration: they are changed while the server runs.",
    )]);
    roff.control("SH", ["KEYS"]);
    for key in KEYS {
        key_entry(&mut roff, key);
    }
    roff.control("SH", ["EXAMPLES"]);
    roff.control("RS", []).control("nf", []);
    for line in EXAMPLE.lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []).control("RE", []);
    see_also(&mut roff, &[("weir-serve", "1"), ("weir-config", "1")], None);
    let text = title("weir.toml", '5') + &roff.render();
    Page { name: "weir.toml".to_owned(), section: '5', text }
}

const EXAMPLE: &str = "\
data = \"/var/lib/weir\"
rpcbind = \"register\"
[nfs]
listen = [\"192.0.2.10:2049\", \"[2001:db8::10]:2049\"]
[log]
format = \"json\"";

fn key_entry(roff: &mut Roff, key: &Key) {
    roff.control("TP", []);
    roff.text([
        bold(key.name),
        roman(" = "),
        italic(key.show(&ServerConfig { data: "/var/lib/weir".into(), ..ServerConfig::default() })),
    ]);
    let mut meaning = key.meaning.chars();
    let capital = meaning.next().map(|first| first.to_uppercase().to_string());
    roff.text([roman(format!("{}{}.", capital.unwrap_or_default(), meaning.as_str()))]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;
    use std::collections::BTreeSet;

    fn names(command: &Command, above: &str, all: &mut BTreeSet<String>) {
        let name = if above.is_empty() {
            command.get_name().to_owned()
        } else {
            format!("{above}-{}", command.get_name())
        };
        let shown = command.get_subcommands().filter(|below| !below.is_hide_set());
        shown.for_each(|below| names(below, &name, all));
        all.insert(format!("{name}.1"));
    }

    #[test]
    fn every_command_has_a_page_that_names_its_options() {
        let mut expected = BTreeSet::from(["weir.toml.5".to_owned()]);
        names(&Cli::command(), "", &mut expected);
        let pages = pages().unwrap();
        assert_eq!(pages.iter().map(Page::file).collect::<BTreeSet<_>>(), expected);
        let create = pages.iter().find(|page| page.name == "weir-volume-create").unwrap();
        for option in ["pool", "quota", "max\\-iops", "dry\\-run", "data"] {
            assert!(create.text.contains(&format!("\\fB\\-\\-{option}\\fR")), "{option}");
        }
        assert!(create.text.contains("\n.SH EXAMPLES\n.RS\n.nf\nweir volume create home"));
        assert!(!create.text.contains("Examples:"));
        assert!(!expected.contains("weir-volume-export.1"), "an alias has no page");
        let resize = pages.iter().find(|page| page.name == "weir-volume-resize").unwrap();
        assert!(!resize.text.contains("\\-\\-quota"), "{}", resize.text);
    }

    #[test]
    fn the_page_of_the_configuration_has_every_key() {
        let page = settings();
        for key in KEYS {
            assert!(page.text.contains(&format!("\n.TP\n\\fB{}\\fR = ", key.name)), "{}", key.name);
        }
    }

    #[test]
    fn pages_are_written_by_section() {
        let folder = tempfile::tempdir().unwrap();
        run(&ManArgs { out: folder.path().join("man") }).unwrap();
        for page in ["man/man1/weir.1", "man/man1/weir-volume-create.1", "man/man5/weir.toml.5"] {
            assert!(folder.path().join(page).is_file(), "{page}");
        }
    }

    /// A dot or an apostrophe at the start of a line would be a command to roff.
    #[test]
    fn no_text_is_taken_for_a_command() {
        let known = ["TH", "SH", "TP", "PP", "RS", "RE", "IP", "nf", "fi", "br", "ie", "el"];
        for page in pages().unwrap() {
            for line in page.text.lines() {
                let word = line.strip_prefix(['.', '\'']).map(|rest| &rest[..rest.len().min(2)]);
                assert!(word.is_none_or(|word| known.contains(&word)), "{}: {line}", page.name);
            }
        }
    }
}
