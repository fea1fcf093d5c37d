//! The helper as a process, with servers that are processes, on machines that are network
//! namespaces on one bridge. Needs root; every test runs in namespaces of its own, so that nothing
//! of it is left, and no packet leaves the machine.
#![cfg(test)]

mod bed;
mod hostile;
mod lives;
mod server;

use bed::{HOOK, KEY, LISTEN, SOCKET};
use std::env::var_os;
use std::path::Path;
use std::time::Duration;
use weir_address::Hook;
use weir_cluster::GatewayId;
use weir_helper::{Options, SocketMode, serve};
use weir_links::KeyFile;

#[test]
#[ignore = "the helper, which other tests run on a machine"]
fn helper_process() {
    let options = Options {
        gateway: GatewayId(1),
        key: KeyFile::read(Path::new(&var_os(KEY).unwrap())).unwrap(),
        listen: var_os(LISTEN).unwrap().to_str().unwrap().parse().unwrap(),
        socket: var_os(SOCKET).unwrap().into(),
        socket_mode: SocketMode::Owner,
        server_uid: rustix::process::geteuid().as_raw(),
        hook: var_os(HOOK)
            .map(|program| Hook { program: program.into(), patience: Duration::from_secs(60) }),
    };
    serve(options).unwrap();
}

#[test]
#[ignore = "a server, which other tests run on a machine"]
fn server_process() {
    server::run();
}
