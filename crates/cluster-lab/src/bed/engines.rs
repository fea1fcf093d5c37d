//! The engines of a cluster: three members of etcd, and a small Ceph. They are started and hurt by
//! the scripts that the tests use, which this program brings along.

use super::gateway::CLUSTER;
use super::network::{ENGINES, ETCD_NET, address_of};
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use weir_lab::process::run;

const ETCD: &str = include_str!("../../../../tests/cluster/etcd.py");
const CEPH: &str = include_str!("../../../../tests/cluster/ceph.py");

/// In the words of the script of etcd: all its members.
const ALL: &str = "all";
/// Members of etcd.
const MEMBERS: u8 = 3;
/// Monitors of Ceph, and metadata servers, of which all but one stand by.
const MONITORS: u8 = 3;
const METADATA_SERVERS: u8 = 2;
/// Seconds of silence after which a metadata server is replaced, at the next look of the monitors,
/// which look once a second.
const METADATA_GRACE_S: f64 = 1.7;
/// Port of etcd for its clients.
const ETCD_PORT: u16 = 2379;

/// A running etcd and a running Ceph. They end with the namespace of the campaign's processes.
#[derive(Debug)]
pub(crate) struct Engines {
    work: PathBuf,
    osd_gib: u8,
}

impl Engines {
    /// Starts both at the same time, and waits until they can be used. Each OSD has `osd_gib` GiB;
    /// `clients` are lines of Ceph's configuration for all its clients.
    ///
    /// # Errors
    /// In the words of the script.
    pub(crate) fn start(work: &Path, osd_gib: u8, clients: &str) -> Result<Self> {
        let engines = Self { work: work.to_owned(), osd_gib };
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
        let conf = engines.ceph_conf();
        let text = std::fs::read_to_string(&conf)?;
        std::fs::write(&conf, with_clients(&text, clients))?;
        Ok(engines)
    }

    /// The process ids of the daemons of Ceph whose names begin like this, such as `osd.`.
    ///
    /// # Errors
    /// If there are none, or the files with their ids cannot be read.
    pub(crate) fn ceph_pids(&self, begin: &str) -> Result<Vec<u32>> {
        let mut pids = Vec::new();
        for entry in std::fs::read_dir(self.work.join("ceph/run"))?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(begin) && name.ends_with(".pid") {
                let text = std::fs::read_to_string(entry.path())?;
                pids.push(text.trim().parse().with_context(|| name)?);
            }
        }
        ensure!(!pids.is_empty(), "no daemon of Ceph is called {begin}");
        Ok(pids)
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
        self.etcd(&["signal"], &[ALL, "KILL"])
    }

    /// Starts all members of etcd again, with the data that they have.
    ///
    /// # Errors
    /// If a member runs.
    pub(crate) fn start_etcd(&self) -> Result<()> {
        self.etcd(&["start"], &[ALL])
    }

    /// The member of etcd that leads.
    ///
    /// # Errors
    /// If none does.
    pub(crate) fn etcd_leader(&self) -> Result<u8> {
        let said = self.said("etcd.py", &["leader", &self.directory("etcd")])?;
        said.trim().parse().with_context(|| format!("etcd.py leader: {said:?}"))
    }

    /// Kills one member of etcd: 0 to 2.
    ///
    /// # Errors
    /// If it had ended by itself.
    pub(crate) fn kill_member(&self, member: u8) -> Result<()> {
        self.etcd(&["signal"], &[&member.to_string(), "KILL"])
    }

    /// Starts one member of etcd again.
    ///
    /// # Errors
    /// If it runs.
    pub(crate) fn start_member(&self, member: u8) -> Result<()> {
        self.etcd(&["start"], &[&member.to_string()])
    }

    /// Writes a row below the prefix of the cluster, or removes it.
    ///
    /// # Errors
    /// In the words of etcdctl.
    pub(crate) fn etcd_row(&self, below: &str, value: Option<&str>) -> Result<()> {
        let key = format!("/weir/{CLUSTER}/{below}");
        let mut command = Self::etcdctl();
        match value {
            Some(value) => command.args(["put", &key, value]),
            None => command.args(["del", &key]),
        };
        ENGINES.within(|| run(&mut command))
    }

    /// The value of a row below the prefix of the cluster.
    ///
    /// # Errors
    /// If there is no such row, or in the words of etcdctl.
    pub(crate) fn etcd_value(&self, below: &str) -> Result<String> {
        let key = format!("/weir/{CLUSTER}/{below}");
        let mut command = Self::etcdctl();
        command.args(["get", "--print-value-only", &key]);
        let output = ENGINES.within(|| command.output().context("cannot run etcdctl"))?;
        let value = String::from_utf8(output.stdout)?.trim_end().to_owned();
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(!value.is_empty(), "etcd has no {key}: {}", said.trim());
        Ok(value)
    }

    fn etcdctl() -> Command {
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3").args(["--endpoints", &Self::etcd_urls()]);
        command
    }

    /// The metadata server of Ceph that serves.
    ///
    /// # Errors
    /// If none does.
    pub(crate) fn active_metadata_server(&self) -> Result<String> {
        let said = self.said("ceph.py", &["active", &self.directory("ceph")])?;
        let name = said.trim();
        ensure!(!name.is_empty() && !name.contains(' '), "ceph.py active: {said:?}");
        Ok(name.to_owned())
    }

    /// Time since the last start of a monitor of Ceph.
    ///
    /// # Errors
    /// If a monitor has no file with its process id, or the clock was set back.
    pub(crate) fn age_of_monitors(&self) -> Result<Duration> {
        let ages = (b'a'..).take(MONITORS.into()).map(|letter| {
            let started = self.work.join(format!("ceph/run/mon.{}.pid", char::from(letter)));
            let written = std::fs::metadata(&started).and_then(|file| file.modified());
            let written = written.with_context(|| started.display().to_string())?;
            Ok(written.elapsed()?)
        });
        let ages: Vec<Duration> = ages.collect::<Result<_>>()?;
        ages.into_iter().min().context("there are no monitors")
    }

    /// Has the script of Ceph do something: `kill` or `start` with a daemon, such as `osd.0`.
    ///
    /// # Errors
    /// In the words of the script.
    pub(crate) fn ceph(&self, what: &str, words: &[&str]) -> Result<()> {
        let directory = self.directory("ceph");
        let words: Vec<&str> =
            [what, directory.as_str()].into_iter().chain(words.iter().copied()).collect();
        self.script("ceph.py", &words)
    }

    /// Runs the script of etcd: words, the directory of etcd, and more words.
    fn etcd(&self, first: &[&str], more: &[&str]) -> Result<()> {
        let directory = self.directory("etcd");
        let words: Vec<&str> =
            first.iter().copied().chain([directory.as_str()]).chain(more.iter().copied()).collect();
        self.script("etcd.py", &words)
    }

    fn script(&self, name: &str, words: &[&str]) -> Result<()> {
        let mut command = self.command(name, words);
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

    /// Runs a script that starts nothing, and returns what it prints.
    fn said(&self, name: &str, words: &[&str]) -> Result<String> {
        let mut command = self.command(name, words);
        let output = ENGINES.within(|| command.output().context("cannot run python3"))?;
        if !output.status.success() {
            let words = words.join(" ");
            bail!("{name} {words}: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn command(&self, name: &str, words: &[&str]) -> Command {
        let mut command = Command::new("python3");
        command.arg(self.work.join(name)).args(words);
        command.env("ETCD_NET", ETCD_NET).env("CEPH_ADDRESS", address_of(ENGINES).to_string());
        command.env("MONS", MONITORS.to_string()).env("MDS", METADATA_SERVERS.to_string());
        command.env("MDS_GRACE", METADATA_GRACE_S.to_string());
        command.env("OSD_GIB", self.osd_gib.to_string());
        command
    }

    fn directory(&self, name: &str) -> String {
        self.work.join(name).to_string_lossy().into_owned()
    }
}

/// Ceph's configuration with more lines in the part for its clients.
fn with_clients(conf: &str, lines: &str) -> String {
    conf.replacen("[client]\n", &format!("[client]\n{lines}"), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_for_clients_are_in_their_part_alone() {
        assert!(CEPH.contains("[client]\n"));
        let conf = with_clients("[global]\na = 1\n[client]\nb = 2\n[mon]\n", "c = 3\n");
        assert_eq!(conf, "[global]\na = 1\n[client]\nc = 3\nb = 2\n[mon]\n");
    }

    #[test]
    fn the_scripts_take_the_addresses_from_the_environment() {
        assert!(ETCD.contains("\"ETCD_NET\"") && CEPH.contains("\"CEPH_ADDRESS\""));
        assert_eq!(
            Engines::etcd_urls(),
            "http://10.77.1.1:2379,http://10.77.1.2:2379,http://10.77.1.3:2379"
        );
    }
}
