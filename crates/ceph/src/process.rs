//! The end of a process that has used the libraries. Not here: the end of sessions.

/// Ends this process with `status`, and without the exit handlers of the libraries: they destroy
/// settings that threads of a session still read, if one is left, which aborts the process. What
/// the process has buffered is lost.
pub fn exit(status: u8) -> ! {
    // SAFETY: it takes any number, and nothing runs after it.
    unsafe { libc::_exit(status.into()) }
}
