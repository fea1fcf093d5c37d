//! The lock that keeps calibrations apart, and the events that end one before its time.

use super::{NAME, Result};
use anyhow::{Context, bail};
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use weir_api::ServerInfo;

/// Exit status after a second signal, as shells have it for SIGINT.
const ENDED_STATUS: i32 = 130;

/// The turn to calibrate a server. No two processes of a machine have it, whoever runs them, and
/// the kernel takes it back however one ends. It is a name among abstract sockets, to which nobody
/// connects.
pub(super) struct Turn {
    _held: UnixListener,
}

impl Turn {
    /// Takes the turn for `server`, which its key tells from others.
    ///
    /// # Errors
    /// If another process has it.
    pub(super) fn take(server: &ServerInfo) -> Result<Self> {
        let name = format!("{NAME}-{}", server.report_key);
        let address = SocketAddr::from_abstract_name(&name).context("creating the lock name")?;
        match UnixListener::bind_addr(&address) {
            Ok(held) => Ok(Self { _held: held }),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                bail!("another `weir calibrate` is running: wait until it is complete")
            }
            Err(error) => Err(error).context("locking the calibration"),
        }
    }
}

/// Signals that ask for an end: the first for an orderly one, the second for one at once.
pub(super) struct Stop(watch::Receiver<bool>);

impl Stop {
    pub(super) fn new() -> Result<Self> {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [interrupt, terminate, hangup] = kinds.map(signal);
        let mut signals = [interrupt?, terminate?, hangup?];
        let (asked, stop) = watch::channel(false);
        tokio::spawn(async move {
            next(&mut signals).await;
            asked.send_replace(true);
            next(&mut signals).await;
            weir_report::errln!("");
            weir_report::errln!(
                "weir: stopped immediately: pool {NAME} may remain; the next calibration removes it"
            );
            std::process::exit(ENDED_STATUS);
        });
        Ok(Self(stop))
    }

    /// Waits for the first.
    pub(super) async fn asked(&mut self) {
        if self.0.wait_for(|asked| *asked).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Did it come?
    pub(super) fn is_asked(&self) -> bool {
        *self.0.borrow()
    }
}

async fn next(signals: &mut [Signal; 3]) {
    let [interrupt, terminate, hangup] = signals;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_calibrates_a_server_at_a_time() {
        let server = |key: &str| ServerInfo {
            memory_bytes: None,
            version: String::new(),
            pid: 1,
            nfs: Vec::new(),
            smb: Vec::new(),
            locks: false,
            generation: 0,
            report_key: format!("{key}-{}", std::process::id()),
            tls_fingerprint: None,
        };
        let held = Turn::take(&server("a")).unwrap();
        let _other = Turn::take(&server("b")).unwrap();
        assert!(Turn::take(&server("a")).err().unwrap().to_string().contains("is running"));
        drop(held);
        Turn::take(&server("a")).unwrap();
    }
}
