//! Telling the service manager how the server is, by the protocol of sd_notify(3): ready, stopping,
//! and alive for as long as every worker answers. Where none asked to be told, nobody is.

use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::future::Future;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// Longest that a service manager which reads nothing may keep us.
const SEND_WAIT_MAX: Duration = Duration::from_secs(1);

/// The way to the service manager, if there is one.
pub struct ServiceManager {
    door: Option<(UnixDatagram, SocketAddr)>,
    /// The service manager restarts a server that it did not hear of for this long.
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// The service manager that the environment names.
    ///
    /// # Errors
    /// If the socket it names can't be used.
    pub fn from_environment() -> io::Result<Self> {
        let name = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty());
        let variable = |name| std::env::var_os(name);
        let watchdog = watchdog(variable("WATCHDOG_USEC"), variable("WATCHDOG_PID"));
        Ok(Self { door: name.as_deref().map(open).transpose()?, watchdog })
    }

    /// Tells that the server serves, and in words `what`. Then, until `stop` says to stop, that it
    /// is alive; at last, that it stops. `roll_call` asks all workers for a sign of life, and what
    /// it gives ends when all have given theirs.
    pub async fn attend(
        self,
        what: &str,
        roll_call: impl Fn() -> mpsc::Receiver<()>,
        stop: impl Future<Output = ()>,
    ) {
        self.tell(&format!("READY=1\nSTATUS={what}"));
        tokio::select! {
            () = stop => {}
            never = self.watch(roll_call) => match never {},
        }
        self.tell("STOPPING=1\nSTATUS=completing requests in flight");
    }

    /// Tells that the server is alive whenever all workers, and this task, have shown it.
    async fn watch(&self, roll_call: impl Fn() -> mpsc::Receiver<()>) -> Infallible {
        let Some(patience) = self.watchdog.filter(|_| self.door.is_some()) else {
            return std::future::pending().await;
        };
        loop {
            let mut all_there = roll_call();
            let mut waited = Duration::ZERO;
            while timeout(patience / 4, all_there.recv()).await.is_err() {
                waited += patience / 4;
                tracing::error!(
                    seconds = waited.as_secs(),
                    "a worker does not respond: if this continues, the service manager restarts the server"
                );
            }
            self.tell("WATCHDOG=1");
            sleep(patience / 4).await;
        }
    }

    fn tell(&self, state: &str) {
        let Some((socket, address)) = &self.door else { return };
        if let Err(error) = socket.send_to_addr(state.as_bytes(), address) {
            tracing::warn!(%error, "cannot notify the service manager: {}", state.replace('\n', ", "));
        }
    }
}

/// The socket to send from and the one to send to: a path, or a name that begins with `@`.
fn open(name: &OsStr) -> io::Result<(UnixDatagram, SocketAddr)> {
    let address = match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        [b'/', ..] => SocketAddr::from_pathname(name),
        _ => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("NOTIFY_SOCKET={} is neither a path nor an abstract name", name.display()),
        )),
    }?;
    let socket = UnixDatagram::unbound()?;
    socket.set_write_timeout(Some(SEND_WAIT_MAX))?;
    Ok((socket, address))
}

/// The service manager's timeout for a sign of life, if it expects one of this process.
fn watchdog(micros: Option<OsString>, pid: Option<OsString>) -> Option<Duration> {
    let number = |text: OsString| text.to_str()?.parse::<u64>().ok();
    let ours = pid.is_none_or(|pid| number(pid) == Some(std::process::id().into()));
    let micros = micros.and_then(number).filter(|micros| *micros > 0 && ours);
    micros.map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_process_minds_its_watchdog() {
        let micros = || Some(OsString::from("3000000"));
        let three = Some(Duration::from_secs(3));
        assert_eq!(watchdog(micros(), None), three);
        assert_eq!(watchdog(micros(), Some(std::process::id().to_string().into())), three);
        assert_eq!(watchdog(micros(), Some("1".into())), None);
        assert_eq!(watchdog(micros(), Some("x".into())), None);
        for none in [None, Some("0".into()), Some("x".into())] {
            assert_eq!(watchdog(none, None), None);
        }
    }

    #[tokio::test]
    async fn a_worker_that_does_not_answer_keeps_the_watchdog_waiting() {
        let place = tempfile::tempdir().unwrap();
        let heard = UnixDatagram::bind(place.path().join("notify")).unwrap();
        heard.set_nonblocking(true).unwrap();
        let hears = || {
            let mut state = [0; 64];
            let length = heard.recv(&mut state).ok()?;
            Some(String::from_utf8(state[..length].to_vec()).unwrap())
        };
        let manager = ServiceManager {
            door: Some(open(place.path().join("notify").as_os_str()).unwrap()),
            watchdog: Some(Duration::from_millis(4)),
        };
        // Each roll call is handed to the test, which plays the worker.
        let (call, mut calls) = mpsc::channel(1);
        let (leave, left) = mpsc::channel::<()>(1);
        let attending = tokio::spawn(async move {
            let roll_call = || {
                let (absent, all_there) = mpsc::channel(1);
                call.try_send(absent).unwrap();
                all_there
            };
            let mut left = left;
            manager.attend("it", roll_call, async move { left.recv().await.unwrap_or(()) }).await;
        });
        let absent = calls.recv().await.unwrap();
        assert_eq!(hears().unwrap(), "READY=1\nSTATUS=it");
        sleep(Duration::from_millis(20)).await;
        assert_eq!((hears(), calls.try_recv().is_ok()), (None, false));
        drop(absent);
        let _next = calls.recv().await.unwrap();
        assert_eq!(hears().unwrap(), "WATCHDOG=1");
        drop(leave);
        attending.await.unwrap();
        assert!(hears().unwrap().starts_with("STOPPING=1\n"));
    }

    #[test]
    fn what_is_no_local_socket_is_refused() {
        assert!(open(OsStr::new("vsock:2:1234")).is_err());
        assert!(open(OsStr::new("@name")).is_ok());
        assert!(open(OsStr::new("/run/name")).is_ok());
    }
}
