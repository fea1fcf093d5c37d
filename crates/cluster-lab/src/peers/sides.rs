//! The sides: processes that use CephFS, with and without a protocol.

use super::client::{Counted, MEASURING, Order, READY, Through};
use super::measure::{Daemons, Sample};
use super::plan::{GANESHA, Times};
use crate::bed::{Machine, address_of};
use anyhow::{Context, Result, bail, ensure};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use weir_lab::campaign::this_program;
use weir_lab::comparison::{Peer, Reach, ganesha};
use weir_lab::process::Process;
use weir_load::Target;

/// Longest time until a client of Ceph has laid out its files.
const LAYING_OUT: Duration = Duration::from_secs(120);

/// A process that uses CephFS without a protocol.
pub(super) struct Client {
    process: Process,
    input: ChildStdin,
    lines: Receiver<String>,
}

/// A client of Ceph that is to be started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings<'a> {
    /// Its directory at the top of CephFS, and its name in logs.
    pub(super) name: &'a str,
    /// The way to CephFS.
    pub(super) through: Through,
    /// Use libcephfs's object cache.
    pub(super) object_cache: bool,
}

impl Client {
    /// Starts it on a machine, and waits until it has laid out its files.
    ///
    /// # Errors
    /// If it does not do so in time; its own words are in `logs`.
    pub(super) fn start(
        settings: Settings<'_>,
        (conf, logs): (&Path, &Path),
        machine: Machine,
    ) -> Result<Self> {
        let log = logs.join(format!("{}.log", settings.name));
        let mut command = Command::new(this_program()?);
        command.arg("ceph-client").arg("--conf").arg(conf);
        command.args(["--directory", settings.name, "--through", settings.through.word()]);
        if settings.object_cache {
            command.arg("--object-cache");
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(&log)?);
        let mut process = machine.within(|| Process::start(&mut command))?;
        let child = process.child();
        let input = child.stdin.take().context("a client of Ceph has no input")?;
        let output = child.stdout.take().context("a client of Ceph has no output")?;
        let (sender, lines) = channel();
        std::thread::Builder::new().name("answers".to_owned()).spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            // Nobody listens any more once the client is dropped.
            for line in lines {
                if sender.send(line).is_err() {
                    break;
                }
            }
        })?;
        let client = Self { process, input, lines };
        let said = client.line(LAYING_OUT).with_context(|| format!("see {}", log.display()))?;
        ensure!(said == READY, "{}: {said:?}", settings.name);
        Ok(client)
    }

    fn line(&self, within: Duration) -> Result<String> {
        self.lines.recv_timeout(within).context("a client of Ceph has ended, or does not answer")
    }

    /// Has it carry out an order, and measures that.
    ///
    /// # Errors
    /// If an operation fails, or it does not answer in time.
    pub(super) fn measure(
        &mut self,
        order: &Order,
        times: &Times,
        daemons: &Daemons,
    ) -> Result<Sample> {
        writeln!(self.input, "{order}")?;
        let said = self.line(times.patience())?;
        ensure!(said == MEASURING, "a client of Ceph said {said:?}");
        let pid = self.process.pid();
        let first = daemons.read(pid)?;
        let counted: Counted = self.line(times.patience())?.parse()?;
        let last = daemons.read(pid)?;
        #[expect(clippy::cast_precision_loss, reason = "operations of seconds")]
        let operations = counted.operations as f64;
        Ok(last.since(&first, operations, operations / counted.seconds))
    }
}

/// Ganesha on the top of CephFS, on a machine of its own, and the targets of its two exports: the
/// one that asks for attributes each time, and the one that keeps them.
///
/// # Errors
/// If it does not answer in time.
pub(super) fn start_ganesha(conf: &Path, work: &Path) -> Result<(Peer, Target, Target)> {
    let template = include_str!("ganesha.conf").replace("@CEPH_CONF@", &conf.display().to_string());
    let machine = Machine::Gateway(GANESHA);
    std::fs::create_dir_all("/run/rpcbind").context("cannot make /run/rpcbind")?;
    let peer = machine.within(|| ganesha(&template, Path::new("/"), work, Reach::Everywhere))?;
    let asks = peer.target_at(&[address_of(machine)]);
    let mut keeps = asks.clone();
    let Target::Nfs(export) = &mut keeps else { bail!("Ganesha is reached by NFS") };
    "/keeps".clone_into(&mut export.export);
    Ok((peer, asks, keeps))
}

#[cfg(test)]
mod tests {
    #[test]
    fn both_exports_differ_in_the_time_of_attributes_alone() {
        let text = include_str!("ganesha.conf");
        let exports: Vec<&str> = text.split("EXPORT {").skip(1).collect();
        let [asks, keeps] = exports.as_slice() else { panic!("{} exports", exports.len()) };
        let as_the_other = asks
            .replace("Export_Id = 1", "Export_Id = 2")
            .replace("/peer", "/keeps")
            .replace("Expiration_Time = 0", "Expiration_Time = 600");
        assert_eq!(as_the_other.trim(), keeps.trim());
    }
}
