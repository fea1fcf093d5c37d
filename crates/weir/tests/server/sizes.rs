//! Volume ceilings of levels, sizes for a wanted rate, and the switch of the metadata cache, as an
//! operator types them.

use crate::test_server::TestServer;

/// The output of a command, which must succeed.
fn done(server: &TestServer, line: &str) -> String {
    let args: Vec<_> = line.split(' ').collect();
    let output = server.try_weir(&args);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {complaint}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_ceiling_of_a_level_is_set_shown_and_removed() {
    let server = TestServer::start();
    let made = done(&server, "level create own --rate 48MiB/s --volume-ceiling 40MiB/s");
    assert_eq!(made, "level own: 48 MiB/s per TiB, volume ceiling 40 MiB/s\n");
    done(&server, "pool create ceiled --level own --size 4TiB");
    done(&server, "volume create capped --pool ceiled --quota 1TiB");
    let shown = done(&server, "volume show capped");
    assert!(shown.contains("volume ceiling") && shown.contains("40 MiB/s"), "{shown}");
    let sized = done(&server, "size --throughput 41MiB/s --level own --qos auto");
    assert!(sized.contains("the volume ceiling of the level is 40 MiB/s"), "{sized}");
    let set = done(&server, "level set own --volume-ceiling none");
    assert!(set.contains("capped  40 MiB/s      48 MiB/s"), "{set}");
    assert!(!done(&server, "volume show capped").contains("volume ceiling"));
}

#[test]
fn a_wanted_rate_has_a_size_and_a_question_without_one_is_invalid() {
    let server = TestServer::start();
    let sized = done(&server, "size --throughput 4500MiB/s --level premium --qos auto");
    assert!(sized.contains("70.3125 TiB"), "{sized}");
    let flight = "size --throughput 16MiB/s --bs 8KiB --latency 625ms --clients 40 --connections 1";
    let sized = done(&server, flight);
    assert!(sized.contains("need 1280 requests in flight"), "{sized}");
    assert!(sized.contains("40       1                 32"), "{sized}");
    let refused = server.try_weir(&["size", "--level", "premium"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn the_metadata_cache_of_a_volume_is_switched() {
    let server = TestServer::start();
    done(&server, "pool create switched --level premium --size 1TiB");
    done(&server, "volume create cached --pool switched --quota 1GiB");
    let is_shown = || {
        let shown = done(&server, "volume show cached");
        let mut lines = shown.lines();
        lines.any(|line| line.starts_with("metadata cache") && line.ends_with(" off"))
    };
    done(&server, "volume set cached --metadata-cache off");
    assert!(is_shown());
    done(&server, "volume set cached --metadata-cache auto");
    assert!(!is_shown());
}
