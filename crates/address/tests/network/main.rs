//! The helper in networks: two machines that may hold an address, and a client, each a network
//! namespace on one bridge. Needs root; every test runs in namespaces of its own, so that nothing
//! of it is left, and no packet leaves the machine.
#![cfg(test)]

mod bed;
mod holding;
mod moving;
mod refusing;

use bed::{ADDRESSES, END, ENDING, HOOK, HOOK_SECONDS, PORT, READY, place, until_in};
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use weir_address::{HelperLink, Hook, Options, Report, Request, ServerProcess, confine, run};

#[test]
#[ignore = "the helper, which other tests run on a machine"]
fn helper_process() {
    let link = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned().unwrap());
    let server = ServerProcess::of_link(&link).unwrap();
    confine().unwrap();
    let hook = std::env::var_os(HOOK)
        .map(|program| Hook { program: program.into(), patience: HOOK_SECONDS });
    let ending = std::env::var(ENDING).ok().map(|seconds| seconds.parse().unwrap());
    let ending = ending.map_or(Options::default().ending, Duration::from_secs);
    let end = run(link, &server, Options { hook, ending });
    eprintln!("the helper ended: {end:?}");
    assert!(end.is_ok());
}

#[test]
#[ignore = "a server with a helper, which another test runs on a machine and ends"]
fn server_process() {
    // Nothing is accepted.
    let _listener = TcpListener::bind(("::", PORT)).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "helper_process", "--nocapture"]);
    let (mut link, _helper) = HelperLink::spawn(&mut command).unwrap();
    let until = until_in(Duration::from_secs(55));
    for address in ADDRESSES {
        let number = link.send(Request::Hold { place: place(address), until }).unwrap();
        assert_eq!(link.receive().unwrap(), Report::Done { number });
    }
    std::fs::write(std::env::var_os(READY).unwrap(), "held").unwrap();
    let end = PathBuf::from(std::env::var_os(END).unwrap());
    while !end.exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    // The kernel may close the link of a killed process before its listener. Here that is so.
    link.stream().shutdown(std::net::Shutdown::Both).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    std::process::exit(0);
}
