//! The helper in networks: two machines that may hold an address, and a client, each a network
//! namespace on one bridge. Needs root; every test runs in namespaces of its own, so that nothing
//! of it is left, and no packet leaves the machine.
#![cfg(test)]

mod bed;
mod holding;
mod moving;
mod refusing;

use bed::{ADDRESSES, HOOK, HOOK_SECONDS, READY, place, until_in};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
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
    let end = run(link, &server, Options { hook });
    eprintln!("the helper ended: {end:?}");
    assert!(end.is_ok());
}

#[test]
#[ignore = "a server with a helper, which another test runs on a machine and kills"]
fn server_process() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "helper_process", "--nocapture"]);
    let (mut link, _helper) = HelperLink::spawn(&mut command).unwrap();
    let until = until_in(Duration::from_secs(55));
    for address in ADDRESSES {
        let number = link.send(Request::Hold { place: place(address), until }).unwrap();
        assert_eq!(link.receive().unwrap(), Report::Done { number });
    }
    std::fs::write(std::env::var_os(READY).unwrap(), "held").unwrap();
    loop {
        std::thread::park();
    }
}
