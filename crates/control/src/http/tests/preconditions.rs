//! Lists in pages, changes for one state, and changes that are sent twice.

use super::*;
use weir_api::{Page, Volume};

/// A request with headers of the test's own, at the socket: status, headers, body.
async fn send(running: &Running, line: &str, headers: &str, body: &str) -> (u16, String, String) {
    let request = format!(
        "{line} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = raw_unix(&running.directory.path().join("api.sock"), &request).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_owned(), body.to_owned())
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

fn small(name: &str) -> NewVolume {
    NewVolume { quota_bytes: GIB, ..volume(name, None) }
}

#[tokio::test]
async fn lists_come_in_pages_that_changes_do_not_upset() {
    let running = Running::with_volume(Qos::Auto).await;
    let client = &running.client;
    for name in ["b", "a", "d", "c"] {
        client.create_volume(&small(name), Dry::No).await.unwrap();
    }
    let names = |page: Vec<Volume>| page.into_iter().map(|one| one.name).collect::<Vec<_>>();
    let mut pages = client.volume_pages().of(2);
    assert_eq!(names(pages.next().await.unwrap().unwrap()), ["v", "b"]);
    client.delete_volume("b", Dry::No).await.unwrap();
    client.create_volume(&small("e"), Dry::No).await.unwrap();
    assert_eq!(names(pages.next().await.unwrap().unwrap()), ["a", "d"]);
    assert_eq!(names(pages.next().await.unwrap().unwrap()), ["c", "e"]);
    assert!(pages.next().await.unwrap().is_none());
    let own = own_level(8);
    client.create_level(&own, Dry::No).await.unwrap();
    let mut levels = client.level_pages().of(3);
    assert_eq!(levels.next().await.unwrap().unwrap().len(), 3);
    assert_eq!(levels.next().await.unwrap().unwrap()[1].name, "own");
    let (status, _, body) = send(&running, "GET /v1/volumes?limit=1", "", "").await;
    let page: Page<Volume> = serde_json::from_str(&body).unwrap();
    assert_eq!((status, page.items.len()), (200, 1));
    for query in ["limit=0", "limit=1001", "limit=x", "after=zz", "aftr=1"] {
        let found = send(&running, &format!("GET /v1/volumes?{query}"), "", "").await;
        assert_eq!(found.0, 400, "{query}");
    }
    let of_another = page.next.unwrap();
    let found = send(&running, &format!("GET /v1/pools?after={of_another}"), "", "").await;
    assert_eq!(found.0, 400);
    running.stop().await;
}

/// A calibration as it is asked to be kept.
fn measured() -> String {
    let cell = r#"{"read_percent":0,"block_bytes":65536,"bytes_per_second":65536000,"iops":1000,"mean_nanos":1,"p99_nanos":2}"#;
    let load = r#"{"jobs":1,"depth":1,"millis":1,"data_bytes":1}"#;
    format!(r#"{{"cells":[{cell}],"load":{load}}}"#)
}

#[tokio::test]
async fn calibrations_come_in_pages_by_their_directories() {
    let running = Running::start().await;
    // Of two file systems, so that none takes the place of the other.
    let own = running.directory.path().to_str().unwrap();
    for directory in ["/proc", own] {
        let line = format!("PUT /v1/calibrations/{}", directory.replace('/', "%2F"));
        let (status, _, body) = send(&running, &line, "", &measured()).await;
        assert_eq!(status, 200, "{body}");
    }
    let first = |body: String| serde_json::from_str::<Page<weir_api::Calibration>>(&body).unwrap();
    let (_, _, body) = send(&running, "GET /v1/calibrations?limit=1", "", "").await;
    let page = first(body);
    assert_eq!(page.items[0].directory, "/proc");
    running.client.forget_calibration("/proc", Dry::No).await.unwrap();
    let line = format!("GET /v1/calibrations?limit=1&after={}", page.next.unwrap());
    let (_, _, body) = send(&running, &line, "", "").await;
    let page = first(body);
    assert_eq!((page.items[0].directory.as_str(), page.next), (own, None));
    running.stop().await;
}

#[tokio::test]
async fn no_etag_is_that_of_what_is_not_there() {
    let running = Running::start().await;
    let own = running.directory.path().to_str().unwrap().replace('/', "%2F");
    let line = |method: &str| format!("{method} /v1/calibrations/{own}");
    for tag in ["*", "\"\"", "\"0123\""] {
        for (method, body) in [("PUT", measured()), ("DELETE", String::new())] {
            let header = format!("if-match: {tag}\r\n");
            let (status, _, answer) = send(&running, &line(method), &header, &body).await;
            assert_eq!(status, 412, "{method} {tag}: {answer}");
            assert!(answer.contains("does not exist"), "{answer}");
        }
    }
    assert_eq!(send(&running, &line("PUT"), "", &measured()).await.0, 200);
    let any = send(&running, &line("PUT"), "if-match: *\r\n", &measured()).await;
    assert_eq!(any.0, 200, "{any:?}");
    running.stop().await;
}

#[tokio::test]
async fn a_change_for_another_state_is_refused() {
    let running = Running::with_volume(Qos::Auto).await;
    let client = &running.client;
    let seen = client.volume("v").await.unwrap();
    *lock(&running.plane.used) = 7;
    assert_eq!(client.volume("v").await.unwrap().etag, seen.etag, "what is live is not in it");
    let grow = |quota| VolumeChange { quota_bytes: Some(quota), ..VolumeChange::default() };
    let mine = client.if_match(&seen.etag);
    mine.change_volume("v", &grow(TIB + GIB), Dry::Run).await.unwrap();
    let changed = mine.change_volume("v", &grow(TIB + GIB), Dry::No).await.unwrap();
    let next = changed.item.unwrap().etag;
    assert_ne!(next, seen.etag);
    let rule = ExportRule {
        network: "10.0.0.0/8".into(),
        access: weir_api::Access::ReadOnly,
        squash: weir_api::Squash::Root,
        anon_uid: 1,
        anon_gid: 1,
    };
    // The second of two who looked at the same state.
    let refused = [
        refusal(mine.change_volume("v", &grow(2 * TIB), Dry::No).await),
        refusal(mine.change_volume("v", &grow(2 * TIB), Dry::Run).await),
        refusal(mine.delete_volume("v", Dry::No).await),
        refusal(mine.add_export("v", &rule, Dry::No).await),
        refusal(mine.set_exports("v", &[], Dry::No).await),
        refusal(mine.change_pool("p", &PoolChange::default(), Dry::No).await),
        refusal(mine.delete_pool("p", Dry::No).await),
    ];
    for (status, error) in refused {
        assert_eq!((status, error.code.as_str()), (412, "changed_meanwhile"));
        assert!(error.message.contains("read it again"), "{}", error.message);
    }
    assert_eq!(refusal(mine.create_volume(&small("new"), Dry::No).await).0, 400);
    client.if_match(&next).add_export("v", &rule, Dry::No).await.unwrap();
    assert_ne!(client.volume("v").await.unwrap().etag, next, "rules are a part of the volume");
    // A level's state is one too, and what isn't there is said to be so.
    let own = own_level(8);
    let level = client.create_level(&own, Dry::No).await.unwrap().item.unwrap();
    let faster = LevelChange { bytes_per_second_per_tib: Some(9 << 20), ..LevelChange::default() };
    client.if_match(&level.etag).change_level("own", &faster, Dry::No).await.unwrap();
    let late = client.if_match(&level.etag);
    assert_eq!(refusal(late.change_level("own", &faster, Dry::No).await).0, 412);
    assert_eq!(refusal(late.delete_level("gone", Dry::No).await).0, 404);
    running.stop().await;
}

#[tokio::test]
async fn etags_are_headers_too() {
    let running = Running::with_volume(Qos::Auto).await;
    for path in ["/v1/volumes/v", "/v1/pools/p", "/v1/levels/ultra", "/v1/volumes/v/exports"] {
        let (status, head, _) = send(&running, &format!("GET {path}"), "", "").await;
        let etag = head.lines().find_map(|line| line.strip_prefix("etag: "));
        assert!(status == 200 && etag.is_some_and(|etag| etag.len() == 34), "{path}: {head}");
    }
    let change = "{\"quota_bytes\":2199023255552}";
    for (tag, expected) in [("\"x\"", 412), ("W/\"x\"", 412), ("x", 400), ("\"x\", *", 200)] {
        let header = format!("if-match: {tag}\r\n");
        let (status, _, body) = send(&running, "PATCH /v1/volumes/v", &header, change).await;
        assert_eq!(status, expected, "{tag}: {body}");
    }
    running.stop().await;
}

#[tokio::test]
async fn a_request_that_is_sent_again_makes_nothing_twice_also_after_a_restart() {
    let running = Running::with_volume(Qos::Auto).await;
    let (line, body) = ("POST /v1/volumes", json(&small("once")));
    let named = "idempotency-key: one\r\n";
    let (status, head, first) = send(&running, line, named, &body).await;
    assert!(status == 200 && !head.contains("idempotency-replayed"), "{head}");
    let (status, head, second) = send(&running, line, named, &body).await;
    assert!(status == 200 && head.contains("idempotency-replayed: true"), "{head}");
    assert_eq!(first, second);
    let generation = running.client.server().await.unwrap().generation;
    let running = Running::start_in(running.stop().await).await;
    assert_eq!(send(&running, line, named, &body).await.2, first);
    assert_eq!(running.client.server().await.unwrap().generation, generation);
    // Under the same name another request is none of these.
    let (status, _, other) = send(&running, line, named, &json(&small("other"))).await;
    assert!(status == 422 && other.contains("idempotency_key_reused"), "{other}");
    let level = json(&own_level(8));
    let (status, _, other) = send(&running, "POST /v1/levels", named, &level).await;
    assert!(status == 422 && other.contains("idempotency_key_reused"), "{other}");
    // A refused request may be sent again when what was in the way is gone.
    let again = "idempotency-key: two\r\n";
    assert_eq!(send(&running, line, again, &body).await.0, 409);
    running.client.delete_volume("once", Dry::No).await.unwrap();
    assert_eq!(send(&running, line, again, &body).await.0, 200);
    let bad = format!("idempotency-key: {}\r\n", "x".repeat(256));
    assert_eq!(send(&running, line, &bad, &body).await.0, 400);
    // Two who call their requests alike are two.
    let token =
        weir_api::NewToken { name: "ci".into(), role: weir_api::Role::Operator, expires: None };
    let secret = running.client.create_token(&token).await.unwrap().secret;
    let theirs = json(&small("theirs"));
    let request = format!(
        "{line} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {secret}\r\n{named}content-type: application/json\r\ncontent-length: {}\r\n\r\n{theirs}",
        theirs.len()
    );
    assert!(raw_tcp(running.address, &request).await.starts_with("HTTP/1.1 200"));
    running.stop().await;
}

#[tokio::test]
async fn what_was_made_before_a_crash_is_shown_as_it_is_and_what_was_taken_back_is_made_anew() {
    let directory = Running::with_volume(Qos::Auto).await.stop().await;
    let line = "POST /v1/levels";
    let body = json(&own_level(8));
    let named = "idempotency-key: one\r\n";
    let running = Running::start_in(directory).await;
    assert_eq!(send(&running, line, named, &body).await.0, 200);
    // The state that a crash leaves between the change and the storing of its answer.
    let directory = running.stop().await;
    forget_answers(directory.path());
    let running = Running::start_in(directory).await;
    let (status, head, again) = send(&running, line, named, &body).await;
    assert!(status == 200 && head.contains("idempotency-replayed: true"), "{again}");
    assert!(again.contains("\"name\":\"own\""), "{again}");
    running.client.delete_level("own", Dry::No).await.unwrap();
    let (status, head, _) = send(&running, line, named, &body).await;
    assert!(status == 200 && !head.contains("idempotency-replayed"), "{head}");
    running.client.level("own").await.unwrap();
    // A volume that can't be served is not remembered as made.
    let broken = json(&small("broken"));
    let named = "idempotency-key: two\r\n";
    for _ in 0..2 {
        assert_eq!(send(&running, "POST /v1/volumes", named, &broken).await.0, 500);
    }
    running.stop().await;
}

/// The data plane of these tests forgets top directories when it ends, as if the server had stopped
/// before it changed them.
#[tokio::test]
async fn a_volume_made_before_a_crash_is_completed_and_never_taken_back() {
    let directory = Running::with_volume(Qos::Auto).await.stop().await;
    let (line, named) = ("POST /v1/volumes", "idempotency-key: one\r\n");
    let top = weir_api::TopChange { uid: Some(5001), ..weir_api::TopChange::default() };
    let body = json(&NewVolume { top: Some(top), ..small("w") });
    let running = Running::start_in(directory).await;
    assert_eq!(send(&running, line, named, &body).await.0, 200);
    let directory = running.stop().await;
    forget_answers(directory.path());
    let running = Running::start_in(directory).await;
    let owner = |volume: Volume| volume.top.map(|top| top.uid);
    assert_eq!(owner(running.client.volume("w").await.unwrap()), Some(0));
    *lock(&running.plane.top_fails) = Some(FsError::NotPermitted);
    assert_eq!(send(&running, line, named, &body).await.0, 409);
    running.client.volume("w").await.unwrap();
    let (status, head, again) = send(&running, line, named, &body).await;
    assert!(status == 200 && head.contains("idempotency-replayed: true"), "{again}");
    assert_eq!(owner(running.client.volume("w").await.unwrap()), Some(5001));
    running.stop().await;
}

fn forget_answers(data: &Path) {
    let sqlite = rusqlite::Connection::open(data.join("weir.db")).unwrap();
    assert!(sqlite.execute("UPDATE requests SET answer = NULL", []).unwrap() > 0);
}

/// Hands a connection on to the server at `address`, and what comes back only from the second one
/// on.
async fn losing_the_first_answer(address: SocketAddr) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let own = listener.local_addr().unwrap();
    tokio::spawn(async move {
        for number in 0_u32.. {
            let (mut near, _) = listener.accept().await.unwrap();
            let mut far = TcpStream::connect(address).await.unwrap();
            if number > 0 {
                tokio::spawn(async move {
                    let _ended = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                });
                continue;
            }
            let (mut from, mut to) = far.split();
            let (mut asked, _) = near.split();
            let lost = async { from.read(&mut [0; 4096]).await };
            tokio::select! {
                _ = tokio::io::copy(&mut asked, &mut to) => {}
                _ = lost => {}
            }
        }
    });
    own
}

#[tokio::test]
async fn the_client_asks_again_for_an_answer_that_got_lost() {
    let running = Running::with_volume(Qos::Auto).await;
    let token = std::fs::read_to_string(running.directory.path().join("api.token")).unwrap();
    let between = losing_the_first_answer(running.address).await;
    let client = Client::tcp(between.to_string(), Some(token.trim().to_owned()));
    let made = client.create_volume(&small("once"), Dry::No).await.unwrap();
    assert_eq!(made.item.unwrap().name, "once");
    assert_eq!(running.client.volumes().await.unwrap().len(), 2);
    // A change of what is there is not sent twice.
    let between = losing_the_first_answer(running.address).await;
    let client = Client::tcp(between.to_string(), Some(token.trim().to_owned()));
    let lost = client.delete_volume("once", Dry::No).await.unwrap_err();
    assert!(lost.to_string().contains("may have been made"), "{lost}");
    running.stop().await;
}
