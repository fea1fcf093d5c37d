//! seccomp's user notification: the raw calls, and no policy.

use super::call::FILTERED;
use crate::sys::last_error;
use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};
use rustix::io::Errno;
use std::mem::MaybeUninit;

/// A system call that a thread under the filter is about to make. The thread waits for [`answer`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Notice {
    pub(super) id: u64,
    pub(super) number: i64,
    pub(super) args: [u64; 6],
}

/// The fate of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The real kernel carries it out.
    Continue,
    /// The call has failed.
    Fail(Errno),
    /// The answerer carried out the call, with this result.
    Done(usize),
}

/// Puts the calling thread, and all that it will start, under the filter. Gives the end that is
/// told of their calls: while anybody is under the filter it must be read.
pub(super) fn install() -> Result<OwnedFd, Errno> {
    rustix::thread::set_no_new_privs(true)?;
    let filter = program();
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(|_| Errno::INVAL)?,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: `program` points to `len` instructions that live until the call returns; the kernel
    // copies them.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        )
    };
    let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(last_error)?;
    // SAFETY: the kernel just gave us this descriptor; nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// "Is the number one of ours? Then notify, else allow."
fn program() -> Vec<libc::sock_filter> {
    let statement = |code: u32, k: u32| libc::sock_filter { code: low(code), jt: 0, jf: 0, k };
    // `seccomp_data` begins with the number.
    let mut filter = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0)];
    for number in FILTERED {
        let k = u32::try_from(number).unwrap_or(u32::MAX);
        let code = low(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K);
        filter.push(libc::sock_filter { code, jt: 0, jf: 1, k });
        filter.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_USER_NOTIF));
    }
    filter.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW));
    filter
}

fn low(code: u32) -> u16 {
    u16::try_from(code).unwrap_or(0)
}

/// Waits for the next call. `None` once nobody is under the filter.
pub(super) fn next(listener: &OwnedFd) -> Option<Notice> {
    loop {
        let mut poll = libc::pollfd { fd: listener.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid `pollfd`.
        let ready = unsafe { libc::poll(&raw mut poll, 1, -1) };
        if ready < 0 && last_error() != Errno::INTR {
            return None;
        }
        if poll.revents & libc::POLLIN == 0 {
            if poll.revents & (libc::POLLHUP | libc::POLLERR) != 0 {
                return None;
            }
            continue;
        }
        // The kernel wants it cleared.
        let mut notice = MaybeUninit::<libc::seccomp_notif>::zeroed();
        let request = libc::SECCOMP_IOCTL_NOTIF_RECV;
        // SAFETY: the request fills one `seccomp_notif`, which `notice` has room for.
        let got = unsafe { libc::ioctl(listener.as_raw_fd(), request, notice.as_mut_ptr()) };
        if got < 0 {
            // Whoever called is gone: it was killed, or its thread ended.
            continue;
        }
        // SAFETY: all its fields are numbers, and all were cleared or filled.
        let notice = unsafe { notice.assume_init() };
        let (id, number) = (notice.id, i64::from(notice.data.nr));
        return Some(Notice { id, number, args: notice.data.args });
    }
}

/// Lets the thread that made call `id` go on. One that is gone meanwhile hears nothing.
pub(super) fn answer(listener: &OwnedFd, id: u64, verdict: Verdict) {
    let mut response = libc::seccomp_notif_resp { id, val: 0, error: 0, flags: 0 };
    match verdict {
        Verdict::Continue => {
            response.flags = u32::try_from(libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE).unwrap_or(1);
        }
        Verdict::Fail(errno) => response.error = -errno.raw_os_error(),
        Verdict::Done(value) => response.val = i64::try_from(value).unwrap_or(i64::MAX),
    }
    // SAFETY: the request reads one `seccomp_notif_resp`.
    let sent = unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut response)
    };
    if sent < 0 {
        tracing::debug!(error = %last_error(), "a call could not be answered");
    }
}
