//! `make deb`: the Debian package. What goes into it is made here (the program, manual pages,
//! completions, the configuration, licences) and laid out in one folder; debhelper then does with
//! it what Debian's policy asks: scripts for the service, compressed pages, separate debug symbols.
//!
//! Not here: a source package for Debian's archive.

mod copyright;

use crate::{preflight, process};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The directory in which packages are built and left.
const OUT: &str = "target/debian";
/// The files for debhelper, as they lie in this repository.
const DEBIAN: &str = "dist/debian";
/// The units of systemd: the server's, and that of the helper of a gateway's machine.
const UNIT: &str = "dist/weir.service";
const HELPER_UNIT: &str = "dist/weir-helper.service";
/// The features of the program that is shipped.
const FEATURES: &str = "--features=weir-weir/cluster";

/// The command line's request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// The program to package; without one the release is built.
    weir: Option<PathBuf>,
    /// Debian's part of the version, instead of that of the change log.
    revision: Option<String>,
}

impl Options {
    /// Reads `--weir FILE` and `--revision TEXT`.
    pub(crate) fn parse(words: &[&str]) -> Result<Self> {
        let mut options = Self::default();
        for pair in words.chunks(2) {
            match pair {
                ["--weir", file] => options.weir = Some(PathBuf::from(file)),
                ["--revision", text] if is_revision(text) => {
                    options.revision = Some((*text).to_owned());
                }
                _ => bail!("deb takes --weir FILE and --revision TEXT of A-Z a-z 0-9 . + ~"),
            }
        }
        Ok(options)
    }
}

fn is_revision(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || ".+~".contains(c);
    !text.is_empty() && text.chars().all(allowed)
}

/// Builds the package and says where it is.
pub(crate) fn run(options: &Options) -> Result<bool> {
    preflight::deb()?;
    let weir = match &options.weir {
        Some(weir) => weir.canonicalize().with_context(|| format!("{}", weir.display()))?,
        None => release()?,
    };
    for package in build(&weir, options.revision.as_deref(), Path::new(OUT))? {
        println!("{}", package.display());
    }
    Ok(true)
}

/// The package with `weir` as its program, and the one with its debug symbols, in `out`.
pub(crate) fn build(weir: &Path, revision: Option<&str>, out: &Path) -> Result<Vec<PathBuf>> {
    let version = env!("CARGO_PKG_VERSION");
    let changelog = fs::read_to_string(Path::new(DEBIAN).join("changelog"))?;
    let changelog = changelog_of(&changelog, version, revision)?;
    let stage = out.join("build").join(format!("weir-{version}"));
    if stage.exists() {
        fs::remove_dir_all(&stage).context("clearing the last build")?;
    }
    lay_out(weir, &stage, &changelog)?;
    let mut build = Command::new("dpkg-buildpackage");
    build.args(["--build=binary", "--no-sign"]).current_dir(&stage);
    if !process::succeeds(&mut build)? {
        bail!("dpkg-buildpackage failed in {}", stage.display());
    }
    deliver(&stage, out)
}

/// The program as it is shipped.
fn release() -> Result<PathBuf> {
    let mut build = Command::new("cargo");
    build.args(["build", "--release", "--locked", "--package=weir-weir", "--bin=weir", FEATURES]);
    if !process::succeeds(&mut build)? {
        bail!("the release does not build");
    }
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
    Path::new(&target).join("release/weir").canonicalize().context("finding the release")
}

/// The change log with an entry for `revision` on top, if one is asked for. It must be one of this
/// version.
fn changelog_of(text: &str, version: &str, revision: Option<&str>) -> Result<String> {
    let newest = text.split(['(', ')']).nth(1).unwrap_or_default();
    let of = newest.rsplit_once('-').map(|(of, _)| of);
    if of != Some(version) {
        bail!("{DEBIAN}/changelog begins with {newest:?}, and this is {version}: add an entry");
    }
    let Some(revision) = revision else { return Ok(text.to_owned()) };
    let signed = text.lines().find(|line| line.starts_with(" -- "));
    let signed =
        signed.with_context(|| format!("{DEBIAN}/changelog has no line of who and when"))?;
    Ok(format!(
        "weir ({version}-{revision}) unstable; urgency=medium\n\n  * Built by hand.\n\n{signed}\n\n{text}"
    ))
}

/// Everything that goes into the package, beside the folder that says what goes where.
fn lay_out(weir: &Path, stage: &Path, changelog: &str) -> Result<()> {
    let debian = stage.join("debian");
    copy_tree(Path::new(DEBIAN), &debian)?;
    fs::write(debian.join("changelog"), changelog)?;
    fs::write(debian.join("copyright"), copyright::text()?)?;
    fs::copy(UNIT, debian.join("weir.service"))?;
    // debhelper finds it where `weir.install` puts it, and handles both units together.
    fs::copy(HELPER_UNIT, stage.join("weir-helper.service"))?;
    fs::copy(weir, stage.join("weir")).context("copying the program")?;
    for document in ["README.md", "ARCHITECTURE.md", "CHANGELOG.md"] {
        fs::copy(document, stage.join(document)).with_context(|| document.to_owned())?;
    }
    fs::create_dir_all(stage.join("docs"))?;
    for entry in fs::read_dir("docs")? {
        let entry = entry?;
        if entry.path().extension().is_some_and(|extension| extension == "md") {
            fs::copy(entry.path(), stage.join("docs").join(entry.file_name()))?;
        }
    }
    copy_tree(Path::new("docs/decisions"), &stage.join("docs/decisions"))?;
    for folder in ["grafana", "prometheus"] {
        copy_tree(&Path::new("dist").join(folder), &stage.join(folder))?;
    }
    let weir = stage.join("weir");
    let weir = weir.canonicalize()?;
    let weir = weir.to_string_lossy();
    fs::write(stage.join("weir.toml"), process::output(&weir, &["config", "template"])?)?;
    process::output(&weir, &["man", "--out", &stage.join("man").to_string_lossy()])?;
    let completions = stage.join("completions");
    fs::create_dir_all(&completions)?;
    for (shell, file) in [("bash", "weir"), ("zsh", "_weir"), ("fish", "weir.fish")] {
        fs::write(completions.join(file), process::output(&weir, &["completions", shell])?)?;
    }
    Ok(())
}

fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("{}", from.display()))? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), &to).with_context(|| format!("{}", to.display()))?;
        }
    }
    Ok(())
}

/// Moves the packages out of the build folder.
fn deliver(stage: &Path, out: &Path) -> Result<Vec<PathBuf>> {
    let build = stage.parent().unwrap_or(out);
    let mut packages = Vec::new();
    for entry in fs::read_dir(build)? {
        let entry = entry?;
        if entry.path().extension().is_some_and(|extension| extension == "deb") {
            let to = out.join(entry.file_name());
            fs::rename(entry.path(), &to)?;
            packages.push(to);
        }
    }
    packages.sort();
    if packages.is_empty() {
        bail!("dpkg-buildpackage left no package in {}", build.display());
    }
    Ok(packages)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "weir (0.2.0-1) unstable; urgency=medium\n\n  * New.\n\n -- A <a@b>  Sun\n";

    #[test]
    fn the_change_log_is_of_the_version_that_is_built() {
        assert_eq!(changelog_of(LOG, "0.2.0", None).unwrap(), LOG);
        let refused = changelog_of(LOG, "0.2.1", None).unwrap_err().to_string();
        assert!(refused.contains("begins with \"0.2.0-1\", and this is 0.2.1"), "{refused}");
        let next = changelog_of(LOG, "0.2.0", Some("2")).unwrap();
        assert!(next.starts_with("weir (0.2.0-2) ") && next.ends_with(LOG), "{next}");
        assert_eq!(next.matches(" -- A <a@b>  Sun\n").count(), 2);
    }

    #[test]
    fn the_repository_s_change_log_is_of_this_version() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let text = fs::read_to_string(root.join(DEBIAN).join("changelog")).unwrap();
        changelog_of(&text, env!("CARGO_PKG_VERSION"), None).unwrap();
    }

    #[test]
    fn options_are_read_and_others_refused() {
        let options = Options::parse(&["--weir", "a", "--revision", "1+test"]).unwrap();
        assert_eq!((options.weir, options.revision), (Some("a".into()), Some("1+test".into())));
        assert!(Options::parse(&["--revision", "1-2"]).is_err());
        assert!(Options::parse(&["--weir"]).is_err());
    }
}
