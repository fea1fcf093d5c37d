//! Fencing: having the cluster refuse everything from a gateway's sessions, by librados.
//!
//! Not here: the decision to, and that the old process is gone.

use crate::LibraryError;
use crate::library::functions;
use crate::session::CephError;
use crate::sync::OnceLock;
use rustix::io::Errno;
use std::ffi::{CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{NonNull, null, null_mut};
use std::time::Duration;

/// Most commands under way at a time, each of which has a thread.
const AT_A_TIME: usize = 16;

/// `rados_t`.
type RawCluster = c_void;

functions! {
    /// The functions of librados (`rados/librados.h` of Ceph 16.2).
    Rados in "librados.so.2" {
        fn rados_version(*mut c_int, *mut c_int, *mut c_int);
        fn rados_create(*mut *mut RawCluster, *const c_char) -> c_int;
        fn rados_conf_read_file(*mut RawCluster, *const c_char) -> c_int;
        fn rados_conf_set(*mut RawCluster, *const c_char, *const c_char) -> c_int;
        fn rados_connect(*mut RawCluster) -> c_int;
        fn rados_shutdown(*mut RawCluster);
        fn rados_mon_command(
            *mut RawCluster, *mut *const c_char, usize, *const c_char, usize, *mut *mut c_char,
            *mut usize, *mut *mut c_char, *mut usize,
        ) -> c_int;
        fn rados_buffer_free(*mut c_char);
        fn rados_wait_for_latest_osdmap(*mut RawCluster) -> c_int;
    }
}

impl Rados {
    fn get() -> Result<&'static Self, LibraryError> {
        static LOADED: OnceLock<Result<Rados, LibraryError>> = OnceLock::new();
        let load = || {
            let functions = Self::load()?;
            let (mut major, mut minor, mut extra) = (0, 0, 0);
            // SAFETY: the arguments are three valid integers; the function has had this form in
            // all versions.
            unsafe {
                (functions.rados_version)(&raw mut major, &raw mut minor, &raw mut extra);
            }
            // The version of the interface, which Ceph 16.2 has as 3.0.
            if major != 3 {
                let found = format!("{major}.{minor}.{extra} of its interface");
                return Err(LibraryError::Version { name: Self::FILE, found });
            }
            Ok(functions)
        };
        LOADED.get_or_init(load).as_ref().map_err(Clone::clone)
    }
}

/// A connection to the cluster's monitors. Ended when dropped.
#[derive(Debug)]
pub struct CephMonitors {
    raw: NonNull<RawCluster>,
}

// SAFETY: librados may be called from any thread.
unsafe impl Send for CephMonitors {}
// SAFETY: as above.
unsafe impl Sync for CephMonitors {}

impl CephMonitors {
    /// Connects as the client `user` of the configuration file `conf`, waiting so many seconds at
    /// most, here and in each command. Blocks, and starts threads.
    ///
    /// # Errors
    /// [`CephError`], with what to do.
    pub fn connect(conf: &Path, user: &str, seconds: u32) -> Result<Self, CephError> {
        let functions = Rados::get()?;
        let failed = |step| {
            let conf = conf.display().to_string();
            move |errno: Errno| CephError::Mount { step, conf, source: errno.into() }
        };
        let string = |bytes: &[u8]| {
            CString::new(bytes).map_err(|_| CephError::Option("there is a NUL in it".to_owned()))
        };
        let (file, user) = (string(conf.as_os_str().as_bytes())?, string(user.as_bytes())?);
        let timeout = string(seconds.to_string().as_bytes())?;
        let mut raw = null_mut();
        // SAFETY: `raw` is valid to write to, and `user` is a C string.
        let made = unsafe { (functions.rados_create)(&raw mut raw, user.as_ptr()) };
        value(made).map_err(failed("make a client"))?;
        let raw = NonNull::new(raw).ok_or(Errno::NOMEM).map_err(failed("make a client"))?;
        // From here on the drop ends it.
        let cluster = Self { raw };
        let raw = cluster.raw.as_ptr();
        // SAFETY: the handle is valid and not connected yet, and the strings are C strings, in this
        // call and those that follow.
        let read = unsafe { (functions.rados_conf_read_file)(raw, file.as_ptr()) };
        value(read).map_err(failed("read the configuration"))?;
        for name in [c"client_mount_timeout", c"rados_mon_op_timeout"] {
            // SAFETY: as above.
            let set = unsafe { (functions.rados_conf_set)(raw, name.as_ptr(), timeout.as_ptr()) };
            value(set).map_err(failed("change its configuration"))?;
        }
        // SAFETY: as above.
        let connected = unsafe { (functions.rados_connect)(raw) };
        value(connected).map_err(failed("connect to the monitors"))?;
        Ok(cluster)
    }

    /// Has the cluster refuse every request from `addresses` for `time`: as
    /// [`CephSession::addresses`](crate::CephSession::addresses) tells them, of as many sessions as
    /// there are. Answers when the monitors have it on record and gave this client the map that
    /// says so, with an epoch of the map of OSDs that is at least that of the record. Blocks.
    ///
    /// OSDs that do not have the map yet get it with the first request of a client that has it, and
    /// carry nothing out before; so others call
    /// [`Ceph::wait_for_epoch`](crate::Ceph::wait_for_epoch) with this epoch before they use what
    /// the sessions had. Repeating it changes the time.
    ///
    /// # Errors
    /// `InvalidInput` for what is no address; the monitors' error.
    pub fn blocklist(&self, addresses: &[String], time: Duration) -> std::io::Result<u64> {
        let lists = addresses.iter().map(|list| addresses_of(list));
        let single = lists.collect::<Result<Vec<_>, _>>()?.concat();
        single.chunks(AT_A_TIME).try_for_each(|some| self.refuse_all(some, time))?;
        let functions = Rados::get().map_err(std::io::Error::other)?;
        // SAFETY: the handle is valid and connected.
        let waited = unsafe { (functions.rados_wait_for_latest_osdmap)(self.raw.as_ptr()) };
        value(waited)?;
        self.epoch()
    }

    /// Sends a command for each of `addresses`, all at the same time: the monitors put commands
    /// that come together on record with one map, and wait for up to a second
    /// (`paxos_propose_interval`) between two maps.
    fn refuse_all(&self, addresses: &[String], time: Duration) -> std::io::Result<()> {
        std::thread::scope(|scope| {
            let (mut threads, mut answers) = (Vec::new(), Vec::new());
            for address in addresses {
                let thread = std::thread::Builder::new().name("blocklist".to_owned());
                match thread.spawn_scoped(scope, || self.refuse(address, time)) {
                    Ok(thread) => threads.push(thread),
                    // The system has no thread to give, so this thread sends the command.
                    Err(_) => answers.push(self.refuse(address, time)),
                }
            }
            let abnormal = |_| Err(std::io::Error::other("a thread ended abnormally"));
            answers.extend(threads.into_iter().map(|one| one.join().unwrap_or_else(abnormal)));
            answers.into_iter().collect()
        })
    }

    /// Has the cluster refuse every request from one address.
    fn refuse(&self, address: &str, time: Duration) -> std::io::Result<()> {
        let seconds = time.as_secs().max(1);
        let command = format!(
            r#"{{"prefix":"osd blocklist","blocklistop":"add","addr":"{address}","expire":{seconds}.0}}"#
        );
        self.command(&command).map(drop)
    }

    /// The epoch of the map of OSDs, as the monitors have it on record.
    fn epoch(&self) -> std::io::Result<u64> {
        // The shortest answer with an epoch in it.
        let answer = self.command(r#"{"prefix":"osd getmaxosd","format":"json"}"#)?;
        epoch_in(&answer).ok_or_else(|| std::io::Error::other("the map of OSDs has no epoch"))
    }

    /// Sends one command to the monitors. Gives their answer.
    fn command(&self, text: &str) -> std::io::Result<Vec<u8>> {
        let functions = Rados::get().map_err(std::io::Error::other)?;
        let text = CString::new(text).map_err(std::io::Error::other)?;
        let mut commands = [text.as_ptr()];
        let (mut out, mut out_bytes) = (null_mut(), 0);
        let (mut words, mut words_bytes) = (null_mut(), 0);
        // SAFETY: the handle is valid and connected, there is one command, nothing goes with it,
        // and the rest is valid to write to.
        let done = unsafe {
            (functions.rados_mon_command)(
                self.raw.as_ptr(),
                commands.as_mut_ptr(),
                commands.len(),
                null(),
                0,
                &raw mut out,
                &raw mut out_bytes,
                &raw mut words,
                &raw mut words_bytes,
            )
        };
        if let Err(errno) = value(done) {
            let said = if words.is_null() {
                String::new()
            } else {
                // SAFETY: there are so many bytes, which belong to us.
                let bytes = unsafe { std::slice::from_raw_parts(words.cast::<u8>(), words_bytes) };
                String::from_utf8_lossy(bytes).into_owned()
            };
            tracing::warn!(%errno, said, "the monitors of Ceph refused a command");
        }
        let answer = if out.is_null() {
            Vec::new()
        } else {
            // SAFETY: there are so many bytes, which belong to us.
            unsafe { std::slice::from_raw_parts(out.cast::<u8>(), out_bytes) }.to_vec()
        };
        for buffer in [out, words].into_iter().filter(|buffer| !buffer.is_null()) {
            // SAFETY: the library has allocated it and nothing refers to it any more.
            unsafe { (functions.rados_buffer_free)(buffer) };
        }
        value(done)?;
        Ok(answer)
    }
}

impl Drop for CephMonitors {
    fn drop(&mut self) {
        if let Ok(functions) = Rados::get() {
            // SAFETY: the handle is valid and not used again; it need not be connected.
            unsafe { (functions.rados_shutdown)(self.raw.as_ptr()) };
        }
    }
}

/// The single addresses in a list of libcephfs, such as `[v2:10.0.0.1:0/7,v1:10.0.0.1:0/7]`,
/// without their types: the monitors blocklist an address of any.
pub(crate) fn addresses_of(list: &str) -> std::io::Result<Vec<String>> {
    let bad = || std::io::Error::new(std::io::ErrorKind::InvalidInput, format!("address {list:?}"));
    let inner = list.trim();
    // An IPv6 address has brackets of its own, and no comma.
    let inner = match inner.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(inner) => inner,
        None => inner,
    };
    let mut found = Vec::new();
    for address in inner.split(',').map(str::trim) {
        let bare = address.split_once(':').filter(|(kind, _)| matches!(*kind, "v1" | "v2" | "any"));
        let bare = bare.map_or(address, |(_, bare)| bare);
        let known = |byte: u8| byte.is_ascii_hexdigit() || b".:/[]".contains(&byte);
        let whole = bare.contains(':') && bare.contains('/') && bare.bytes().all(known);
        if !whole {
            return Err(bad());
        }
        if !found.iter().any(|other| other == bare) {
            found.push(bare.to_owned());
        }
    }
    Ok(found)
}

/// The number `epoch` in an answer in JSON.
fn epoch_in(answer: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(answer).ok()?;
    let (_, rest) = text.split_once(r#""epoch":"#)?;
    let digits = rest.trim_start();
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits.get(..end)?.parse().ok()
}

/// A returned number as a result: librados gives an error as its negative number.
fn value(returned: c_int) -> Result<c_int, Errno> {
    crate::mount::value(returned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_epoch_of_an_answer_is_a_whole_number() {
        assert_eq!(epoch_in(br#"{"epoch":12,"max_osd":3}"#), Some(12));
        assert_eq!(epoch_in(br#"{"max_osd": 3, "epoch": 7}"#), Some(7));
        for bad in [r#"{"max_osd":3}"#, r#"{"epoch":"x"}"#, "", r#"{"epoch":99999999999999999999}"#]
        {
            assert_eq!(epoch_in(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn a_list_of_addresses_is_taken_apart_and_nothing_else_passes() {
        let of = |list| addresses_of(list).map_err(|error| error.kind());
        assert_eq!(of("127.0.0.1:0/77"), Ok(vec!["127.0.0.1:0/77".to_owned()]));
        let both = "[v2:10.0.0.1:0/7,v1:10.0.0.1:0/7]";
        assert_eq!(of(both), Ok(vec!["10.0.0.1:0/7".to_owned()]));
        assert_eq!(of("v2:[fd00::1]:0/12"), Ok(vec!["[fd00::1]:0/12".to_owned()]));
        for bad in ["", "x", "127.0.0.1:0/7\"}", "127.0.0.1", "1.2.3.4:0/7,"] {
            assert_eq!(of(bad), Err(std::io::ErrorKind::InvalidInput), "{bad:?}");
        }
    }
}
