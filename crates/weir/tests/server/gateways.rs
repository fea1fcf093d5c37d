//! Commands about clusters, as an operator types them to a server that is not a gateway of one.

use crate::test_server::TestServer;
use std::process::Output;

fn weir(server: &TestServer, line: &str) -> Output {
    server.try_weir(&line.split(' ').collect::<Vec<_>>())
}

fn done(server: &TestServer, line: &str) -> String {
    let output = weir(server, line);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {complaint}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_server_alone_refuses_what_only_a_cluster_has_and_shows_nothing_of_it() {
    let server = TestServer::start();
    done(&server, "pool create local --level premium --size 1TiB");
    done(&server, "volume create alone --pool local --quota 1GiB");
    let ceph = "pool create q --level premium --size 1TiB --ceph /etc/ceph/ceph.conf";
    for line in [
        "gateway list",
        "gateway drain g1",
        "gateway undrain g1",
        "gateway declare-gone g1 --yes",
        "gateway remove g1",
        "gateway address list",
        "gateway address add 10.0.0.5/24",
        "gateway address add 10.0.0.5/24 --dry-run",
        "gateway address remove 10.0.0.5",
        "volume home alone",
        "volume home alone --gateway g1",
        "volume create other --pool local --quota 1GiB --address 10.0.0.5",
        "volume set alone --address 10.0.0.5",
        &format!("{ceph} --path /weir/q"),
        &format!("{ceph} --path /weir/q --ceph-user weir"),
    ] {
        let output = weir(&server, line);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line}: {complaint}");
        assert!(complaint.contains("not a gateway of a cluster"), "{line}: {complaint}");
    }
    for line in [ceph, "pool create q --size 1TiB --ceph-user weir", "gateway declare-gone g1"] {
        assert_eq!(weir(&server, line).status.code(), Some(2), "{line}");
    }
    let volume = done(&server, "--output json volume show alone");
    assert!(!volume.contains("\"address\""), "{volume}");
    let pool = done(&server, "--output json pool show local");
    assert!(!pool.contains("ceph"), "{pool}");
    assert!(!done(&server, "volume show alone").contains("address"));
    assert!(!done(&server, "pool show local").contains("CephFS"));
}
