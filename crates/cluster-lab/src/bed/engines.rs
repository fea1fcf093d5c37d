//! The engines of a cluster: three members of etcd, and a small Ceph. They are started and hurt by
//! the scripts that the tests use, which this program brings along.

use super::network::{ENGINES, ETCD_NET, address_of};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

const ETCD: &str = include_str!("../../../../tests/cluster/etcd.py");
const CEPH: &str = include_str!("../../../../tests/cluster/ceph.py");

/// Members of etcd.
const MEMBERS: u8 = 3;
/// Port of etcd for its clients.
const ETCD_PORT: u16 = 2379;

/// A running etcd and a running Ceph. They end with the namespace of the campaign's processes.
#[derive(Debug)]
pub(crate) struct Engines {
    work: PathBuf,
}

impl Engines {
    /// Starts both at the same time, and waits until they can be used.
    ///
    /// # Errors
    /// In the words of the script.
    pub(crate) fn start(work: &Path) -> Result<Self> {
        let engines = Self { work: work.to_owned() };
        for (name, text) in [("etcd.py", ETCD), ("ceph.py", CEPH)] {
            let path = work.join(name);
            std::fs::write(&path, text)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        std::thread::scope(|scope| {
            let etcd = scope.spawn(|| engines.etcd(&["up"], &[]));
            let ceph = engines.script("ceph.py", &["up", &engines.directory("ceph")]);
            let etcd = etcd.join().unwrap_or_else(|_| bail!("the thread of etcd ended abnormally"));
            ceph.and(etcd)
        })?;
        Ok(engines)
    }

    /// The URLs of the members of etcd.
    pub(crate) fn etcd_urls() -> String {
        let url = |member| format!("http://{ETCD_NET}.{member}:{ETCD_PORT}");
        (1..=MEMBERS).map(url).collect::<Vec<_>>().join(",")
    }

    /// Ceph's configuration file for clients.
    pub(crate) fn ceph_conf(&self) -> PathBuf {
        self.work.join("ceph/ceph.conf")
    }

    /// Kills all members of etcd.
    ///
    /// # Errors
    /// If a member had ended by itself.
    pub(crate) fn kill_etcd(&self) -> Result<()> {
        self.members(|member| self.etcd(&["signal"], &[member, "KILL"]))
    }

    /// Starts all members of etcd again, with the data that they have.
    ///
    /// # Errors
    /// If a member runs.
    pub(crate) fn start_etcd(&self) -> Result<()> {
        self.members(|member| self.etcd(&["start"], &[member]))
    }

    /// Does something to all members at the same time, so that none is alone for longer.
    fn members(&self, act: impl Fn(&str) -> Result<()> + Sync) -> Result<()> {
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..MEMBERS)
                .map(|member| {
                    let act = &act;
                    scope.spawn(move || act(&member.to_string()))
                })
                .collect();
            let joined = all.into_iter().map(|one| {
                one.join().unwrap_or_else(|_| bail!("the thread of a member ended abnormally"))
            });
            joined.collect()
        })
    }

    /// Runs the script of etcd: words, the directory of etcd, and more words.
    fn etcd(&self, first: &[&str], more: &[&str]) -> Result<()> {
        let directory = self.directory("etcd");
        let words: Vec<&str> =
            first.iter().copied().chain([directory.as_str()]).chain(more.iter().copied()).collect();
        self.script("etcd.py", &words)
    }

    fn script(&self, name: &str, words: &[&str]) -> Result<()> {
        let mut command = Command::new("python3");
        command.arg(self.work.join(name)).args(words);
        command.env("ETCD_NET", ETCD_NET).env("CEPH_ADDRESS", address_of(ENGINES).to_string());
        let said = self.work.join(format!("{name}.out"));
        let said_in_words = || std::fs::read_to_string(&said).unwrap_or_default();
        // Not a pipe: daemons may keep the descriptor.
        let out = std::fs::File::options().create(true).append(true).open(&said)?;
        let status = ENGINES.within(|| {
            command.stdout(out.try_clone()?).stderr(out);
            command.status().context("cannot run python3")
        })?;
        if !status.success() {
            bail!("{name} {}: {}", words.join(" "), said_in_words().trim());
        }
        Ok(())
    }

    fn directory(&self, name: &str) -> String {
        self.work.join(name).to_string_lossy().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scripts_take_the_addresses_from_the_environment() {
        assert!(ETCD.contains("\"ETCD_NET\"") && CEPH.contains("\"CEPH_ADDRESS\""));
        assert_eq!(
            Engines::etcd_urls(),
            "http://10.77.1.1:2379,http://10.77.1.2:2379,http://10.77.1.3:2379"
        );
    }
}
