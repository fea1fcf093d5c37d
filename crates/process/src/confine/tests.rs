//! Refused system calls, each in a process of its own, which is this test program run again.

use super::filter::install;
use super::syscalls::{ALLOWED, DEADLY, allowed_if};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::BTreeSet;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Output};
use weir_control::config::Seccomp;

const ENOSYS: Option<i32> = Some(libc::ENOSYS);

/// Runs an ignored test of this program alone.
fn alone(test: &str) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "--nocapture", "--test-threads=1"]);
    command.arg(format!("confine::tests::{test}")).output().unwrap()
}

fn passes_alone(test: &str) {
    let output = alone(test);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn what_serving_does_not_use_fails_and_what_it_uses_works() {
    passes_alone("refused_calls_fail");
}

#[test]
#[ignore = "run alone by the test above"]
fn refused_calls_fail() {
    install(Seccomp::On).unwrap();
    let packets = Socket::new(Domain::PACKET, Type::DGRAM, Some(Protocol::from(0)));
    assert_eq!(packets.unwrap_err().raw_os_error(), ENOSYS);
    // A process of its own, before it would even become another program.
    assert_eq!(Command::new("true").spawn().unwrap_err().raw_os_error(), ENOSYS);
    let again = set_dumpable_behavior(DumpableBehavior::Dumpable);
    assert_eq!(again.unwrap_err().raw_os_error(), libc::ENOSYS);
    assert!(install(Seccomp::On).is_err(), "filters are final");

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    std::thread::spawn(move || std::net::TcpStream::connect(to).unwrap()).join().unwrap();
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("file"), "text").unwrap();
    std::fs::rename(place.path().join("file"), place.path().join("other")).unwrap();
    assert_eq!(std::fs::read(place.path().join("other")).unwrap(), b"text");
    // Details, holes, and a name that is not to replace another.
    let (file, new) = (place.path().join("other"), place.path().join("new"));
    let (cwd, name, none) = (rustix::fs::CWD, "user.weir.dos", rustix::fs::XattrFlags::empty());
    rustix::fs::renameat_with(cwd, &file, cwd, &new, rustix::fs::RenameFlags::NOREPLACE).unwrap();
    std::fs::rename(&new, &file).unwrap();
    let data = std::fs::File::options().write(true).open(&file).unwrap();
    rustix::fs::fsetxattr(&data, name, b"1", none).unwrap();
    assert_eq!(rustix::fs::fgetxattr(&data, name, &mut [0; 9]), Ok(1));
    rustix::fs::fremovexattr(&data, name).unwrap();
    let hole = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&data, hole, 0, 4096).unwrap();
    assert_eq!(rustix::fs::seek(&data, rustix::fs::SeekFrom::Hole(0)), Ok(0));
    data.metadata().unwrap().created().unwrap();
    // Of the requests to a file system only the one for a file's map.
    let file = std::fs::File::open(place.path().join("other")).unwrap();
    let flags = rustix::fs::ioctl_getflags(&file);
    assert_eq!(flags.map_err(rustix::io::Errno::raw_os_error), Err(libc::ENOSYS));
}

#[test]
fn what_no_server_asks_for_ends_the_process() {
    for test in ["becomes_another_program", "changes_its_root"] {
        let output = alone(test);
        assert_eq!(output.status.signal(), Some(libc::SIGSYS), "{test}: {output:?}");
    }
}

#[test]
#[ignore = "run alone by the test above"]
fn becomes_another_program() {
    install(Seccomp::On).unwrap();
    panic!("{}", Command::new("true").exec());
}

#[test]
#[ignore = "run alone by the test above"]
fn changes_its_root() {
    install(Seccomp::On).unwrap();
    panic!("{:?}", std::os::unix::fs::chroot("/"));
}

#[test]
fn in_log_mode_and_switched_off_nothing_is_refused() {
    passes_alone("logged_calls_work");
    passes_alone("unfiltered_calls_work");
}

#[test]
#[ignore = "run alone by the test above"]
fn logged_calls_work() {
    install(Seccomp::Log).unwrap();
    assert!(Command::new("true").status().unwrap().success());
}

#[test]
#[ignore = "run alone by the test above"]
fn unfiltered_calls_work() {
    install(Seccomp::Off).unwrap();
    assert!(Command::new("true").status().unwrap().success());
}

#[test]
fn no_call_is_on_two_lists() {
    let conditional: Vec<_> = allowed_if(1).unwrap().into_keys().collect();
    let all: Vec<_> = ALLOWED.iter().chain(DEADLY).chain(&conditional).collect();
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
}

#[test]
fn the_unit_for_systemd_grants_what_serving_needs_and_no_more() {
    let unit = include_str!("../../../../dist/weir.service");
    let line = unit.lines().find_map(|line| line.strip_prefix("CapabilityBoundingSet="));
    let granted: BTreeSet<_> = line.unwrap().split_whitespace().collect();
    let needs = super::capabilities::NEEDS.iter().map(|need| need.name);
    // The last two: for ports below 1024, and to empty the bounding set at start.
    let wanted = needs.chain(["CAP_NET_BIND_SERVICE", "CAP_SETPCAP"]).collect();
    assert_eq!(granted, wanted);
}
