//! Finding other programs on this machine.

use std::path::PathBuf;

/// The path of `program`, if it is installed: on the search path or where Debian puts programs of
/// the administrator.
#[must_use]
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let system = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(system)
        .map(|dir| dir.join(program))
        .find(|file| file.exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_in_the_usual_places() {
        assert!(find("ls").is_some());
        assert!(find("no-such-program-here").is_none());
    }
}
