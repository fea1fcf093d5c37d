//! The log of the built server, read by somebody who stops, or who never begins.

use crate::peer::Peer;
use crate::test_server::TestServer;
use rustix::io::{Errno, write};
use std::fs::File;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter};
use std::os::fd::AsFd;
use std::process::Stdio;
use std::time::Instant;
use weir_nfs::client::Mnt;

/// The server's own words for what is missing.
const DROPPED: &str = "log lines were dropped";
const LEFT_OUT: &str = "log lines were suppressed";

fn lines(reader: PipeReader) -> impl Iterator<Item = String> {
    BufReader::new(reader).lines().map(Result::unwrap)
}

/// Fills a pipe, so that the next who writes to it waits.
fn fill(writer: &PipeWriter) {
    let flags = rustix::fs::fcntl_getfl(writer).unwrap();
    rustix::fs::fcntl_setfl(writer, flags | rustix::fs::OFlags::NONBLOCK).unwrap();
    while write(writer.as_fd(), &[b'\n'; 512]) != Err(Errno::AGAIN) {}
    rustix::fs::fcntl_setfl(writer, flags).unwrap();
}

#[test]
fn a_log_that_nobody_reads_stops_nobody_and_says_afterwards_what_is_missing() {
    let (reader, writer) = std::io::pipe().unwrap();
    let server = TestServer::start_logging(&[("WEIR_LOG_LEVEL", "debug")], writer.into());
    server.volume("good", "1TiB");
    // A line of the level debug for each connection: more than the pipe and the queue hold.
    for _ in 0..8000 {
        drop(server.connect());
    }
    // On more connections than there are workers, and through the API. Each fails if its reply
    // takes a minute.
    let mut peers: Vec<Peer> = (0..8).map(|_| Peer::mount_at(server.address(), b"/good")).collect();
    for _ in 0..100 {
        peers.iter_mut().for_each(Peer::works);
        peers[0].call(&Mnt(b"/good"));
    }
    server.weir(&["volume", "list"]);
    // A late reader gets the lines that were kept, and then the report of the rest.
    let mut read = lines(reader);
    assert!(read.any(|line| line.contains(DROPPED)));
    peers.push(Peer::mount_at(server.address(), b"/good"));
    assert!(read.any(|line| line.contains("connected")), "it goes on");
}

#[test]
fn a_flood_of_mounts_writes_few_lines_and_their_number() {
    const MOUNTS: usize = 5000;
    let (reader, writer) = std::io::pipe().unwrap();
    let server = TestServer::start_logging(&[("WEIR_LOG_LEVEL", "info")], writer.into());
    server.volume("good", "1TiB");
    let begun = Instant::now();
    let read = std::thread::spawn(move || {
        let mut mounted = 0;
        let mut report = String::new();
        for line in lines(reader) {
            mounted += usize::from(line.contains("mounted") && !line.contains(LEFT_OUT));
            if line.contains(LEFT_OUT) {
                report = line;
            }
            if !report.is_empty() || mounted == MOUNTS {
                break;
            }
        }
        (mounted, report)
    });
    let mut peer = Peer::new(&server);
    for _ in 0..MOUNTS {
        peer.call(&Mnt(b"/good"));
    }
    let (mounted, report) = read.join().unwrap();
    let most = 20 + usize::try_from(begun.elapsed().as_secs()).unwrap() + 1;
    assert!(mounted <= most, "{mounted} lines, and the bound is {most}");
    assert!(report.contains("127.0.0.1") && report.contains("mounted"), "{report}");
}

#[test]
fn a_server_starts_and_stops_though_nobody_reads_its_log() {
    let (reader, writer) = std::io::pipe().unwrap();
    fill(&writer);
    let log = Stdio::from(writer);
    let mut server = TestServer::start_logging(&[("WEIR_LOG_LEVEL", "debug")], log);
    Peer::mount(&server).works();
    server.stop("TERM");
    drop(File::from(std::os::fd::OwnedFd::from(reader)));
}
