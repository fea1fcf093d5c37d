//! Answers for all gateways of a cluster, and about volumes whose home is another one.

use super::gateways::{Store, Told, Way, gateway_over, on_ceph, second_gateway};
use super::*;
use crate::cluster::{NotAsked, Stream};
use crate::watch::{Period, time_of_day};
use weir_api::{Gateways, Health, NewToken, Role, get_over};
use weir_cluster::{GatewayId, Home, Life};

/// Two gateways with one catalogue, of which the second is the home of the volume `a`; and two
/// more that are not there: `g3` does not renew its lease, and `g4` has ended.
struct Two {
    first: Running,
    second: Running,
    told: Arc<Told>,
    told_second: Arc<Told>,
}

impl Two {
    async fn start() -> Self {
        let store = Arc::<Store>::default();
        let (first, told) = gateway_over(Arc::clone(&store)).await;
        first.client.create_pool(&on_ceph("/weir/p"), Dry::No).await.unwrap();
        first.client.create_volume(&volume("a", None), Dry::No).await.unwrap();
        {
            let mut view = lock(&told.view);
            let records = Arc::make_mut(&mut view.records);
            let home = &mut records.groups.values_mut().next().unwrap().home;
            let Home::At { life, .. } = home else { panic!("it has no home") };
            *life = Life { gateway: GatewayId(2), number: 5 };
        }
        first.plane.elsewhere.store(true, Ordering::Relaxed);
        let view = lock(&told.view).clone();
        let (second, told_second) = second_gateway(store, view).await;
        *lock(&second.plane.used) = 777;
        let door = told_second.door.clone();
        let two = Self { first, second, told, told_second };
        two.way(2, Way::To(door));
        two
    }

    /// Sets the way from the first gateway to another.
    fn way(&self, to: u16, way: Way) {
        lock(&self.told.ways).insert(GatewayId(to), (way, 0));
    }

    /// The number of questions to another since its way was set.
    fn taken(&self, to: u16) -> usize {
        lock(&self.told.ways)[&GatewayId(to)].1
    }

    /// Forgets the gateway that does not renew its lease.
    fn forget_silent(&self) {
        Arc::make_mut(&mut lock(&self.told.view).records).gateways.remove(&GatewayId(3));
    }

    async fn stop(self) {
        self.second.stop().await;
        self.first.stop().await;
    }
}

/// The reason for which a gateway does not answer.
fn reason<'a>(health: &'a Health, gateway: &str) -> &'a str {
    let row = health.gateways.iter().find(|row| row.name == gateway).unwrap();
    row.no_answer.as_deref().unwrap_or("it answers")
}

#[tokio::test]
async fn any_gateway_knows_the_health_of_all() {
    let two = Two::start().await;
    let health = two.first.client.health().await.unwrap();
    let names: Vec<_> = health.gateways.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["g1", "g2", "g3", "g4"], "g5 was never started");
    assert_eq!((health.ready, health.volumes_served), (false, 1), "{health:?}");
    assert_eq!(reason(&health, "g2"), "it answers");
    assert_eq!(reason(&health, "g3"), "no connection: there is no way");
    assert_eq!(reason(&health, "g4"), "it has ended");
    two.forget_silent();
    assert!(two.first.client.health().await.unwrap().ready);
    // A volume that its home does not serve is named with it.
    two.second.plane.elsewhere.store(true, Ordering::Relaxed);
    let health = two.first.client.health().await.unwrap();
    let found: Vec<_> = health.unserved.iter().map(|one| (&*one.name, &one.gateway)).collect();
    assert_eq!((health.ready, found), (false, vec![("a", &Some("g2".to_owned()))]));
    // Probes ask about the gateway itself.
    let new = NewToken { name: "viewer".into(), role: Role::Viewer, expires: None };
    let token = two.first.client.create_token(&new).await.unwrap().secret;
    let viewer = two.first.tcp(Some(token));
    assert_eq!(viewer.health().await.unwrap().gateways.len(), 3, "a viewer may see it");
    two.stop().await;
}

#[tokio::test]
async fn live_figures_are_those_of_the_home() {
    let two = Two::start().await;
    let client = &two.first.client;
    let shown = client.volume("a").await.unwrap();
    assert_eq!(shown.live.as_ref().map(|live| live.used_bytes), Some(777));
    assert_eq!((shown.gateway.as_deref(), shown.no_answer), (Some("g2"), None));
    assert!(shown.top.is_some());
    let listed = client.volumes().await.unwrap();
    assert_eq!(listed[0].live, shown.live);
    let at_home = two.second.client.volume("a").await.unwrap();
    assert_eq!((&at_home.live, at_home.gateway.as_deref()), (&shown.live, Some("g2")));
    // The etag that was shown is good for a change.
    let change = VolumeChange { quota_bytes: Some(2 * TIB), ..VolumeChange::default() };
    client.if_match(&shown.etag).change_volume("a", &change, Dry::No).await.unwrap();
    two.way(2, Way::Refused(NotAsked::Failed("unplugged".to_owned())));
    let shown = client.volume("a").await.unwrap();
    assert_eq!((shown.live, shown.gateway.as_deref()), (None, Some("g2")));
    assert_eq!(shown.no_answer.as_deref(), Some("no connection: unplugged"));
    two.stop().await;
}

#[tokio::test]
async fn the_home_explains_a_volume_to_whoever_asks_another_gateway() {
    let two = Two::start().await;
    let client = &two.first.client;
    let why = client.why("a").await.unwrap();
    assert_eq!((why.gateway.as_deref(), why.waiting), (Some("g2"), 2));
    let at_home = two.second.client.why("a").await.unwrap();
    assert_eq!((at_home.gateway.as_deref(), at_home.waiting), (Some("g2"), 2));
    client.load("a").await.unwrap();
    assert_eq!(two.taken(2), 2);
    assert_eq!(refusal(client.why("nothing").await).0, 404);
    two.way(
        2,
        Way::Says { bytes: b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n", endless: false },
    );
    for refused in [
        refusal(client.why("a").await),
        refusal(client.load("a").await),
        refusal(client.report("a", 3600).await),
    ] {
        let (status, error) = refused;
        assert_eq!((status, error.code.as_str()), (503, "home_not_answering"));
        assert!(
            error.message.contains("gateway g2, the home of volume \"a\""),
            "{}",
            error.message
        );
        assert!(error.message.ends_with("it answered with status 500"), "{}", error.message);
    }
    two.stop().await;
}

#[tokio::test]
async fn a_volume_without_a_home_is_explained_by_nobody() {
    let two = Two::start().await;
    Arc::make_mut(&mut lock(&two.told.view).records).groups.clear();
    let (status, error) = refusal(two.first.client.why("a").await);
    assert_eq!((status, error.code.as_str()), (409, "address_moving"));
    let health = two.first.client.health().await.unwrap();
    assert_eq!(health.volumes_served, 1, "the gateway that serves it still says so");
    two.stop().await;
}

#[tokio::test]
async fn a_gateway_explains_no_volume_that_it_does_not_serve_any_more() {
    let two = Two::start().await;
    two.second.plane.elsewhere.store(true, Ordering::Relaxed);
    let client = &two.first.client;
    for refused in [refusal(client.why("a").await), refusal(client.load("a").await)] {
        assert_eq!((refused.0, refused.1.code.as_str()), (409, "address_moving"));
    }
    assert_eq!(two.taken(2), 2, "it was asked");
    two.stop().await;
}

#[tokio::test]
async fn a_home_without_the_right_to_reply_is_a_fault() {
    let two = Two::start().await;
    two.forget_silent();
    assert!(two.first.client.health().await.unwrap().ready);
    two.told_second.may_reply.store(false, Ordering::Relaxed);
    let health = two.first.client.health().await.unwrap();
    assert_eq!((health.ready, health.volumes_served), (false, 0), "{health:?}");
    let fault = health.gateways.iter().find_map(|row| row.fault.as_deref());
    assert_eq!(fault, Some("has volumes and may not reply to clients at present"));
    two.stop().await;
}

#[tokio::test]
async fn a_report_joins_what_all_gateways_recorded() {
    let minute = time_of_day() / 60 * 60 - 600;
    let row = |start, requests| {
        let mut period = Period { start, nanos: 60_000_000_000, ..Period::default() };
        (period.course.requests, period.tally.kept) = (requests, 6);
        (VolumeId(1), period)
    };
    let two = Two::start().await;
    let recorder = &two.second.watch.recorder;
    assert!(recorder.write(vec![row(minute, 10), row(minute + 60, 20)], minute + 120).is_empty());
    // The first was the home before, and in a part of the first minute.
    let recorder = &two.first.watch.recorder;
    assert!(recorder.write(vec![row(minute - 60, 1), row(minute, 2)], minute + 120).is_empty());
    let requests = async |client: &Client| {
        let report = client.report("a", 3600).await.unwrap();
        let periods = report.periods.iter();
        let found: Vec<_> =
            periods.map(|one| (one.start + 60 - minute, one.split.requests)).collect();
        let missing: Vec<_> = report.missing.iter().map(|one| one.gateway.clone()).collect();
        (found, report.whole.kept, missing)
    };
    let (found, kept, missing) = requests(&two.first.client).await;
    assert_eq!(found, [(0, 1), (60, 12), (120, 20)]);
    assert_eq!((kept, missing), (24, vec!["g3".to_owned(), "g4".to_owned()]));
    // The home has no way to the first here, and says so.
    let (found, _, missing) = requests(&two.second.client).await;
    assert_eq!(found, [(60, 10), (120, 20)]);
    assert_eq!(missing, ["g1", "g3", "g4"]);
    let report = two.first.client.report("a", 3600).await.unwrap();
    let says = |words: &str| report.conditions.iter().any(|one| one.contains(words));
    assert!(says("removed from the cluster is not among them"), "{:?}", report.conditions);
    let signed = two.first.client.signed_report("a", 3600).await.unwrap();
    assert_eq!(signed.verify(None).unwrap().missing.len(), 2, "that is signed, too");
    two.stop().await;
}

#[tokio::test]
async fn metrics_of_all_gateways_name_each() {
    let two = Two::start().await;
    let client = &two.first.client;
    let own = client.metrics().await.unwrap();
    assert!(!own.contains("weir_volume_served{") && !own.contains("gateway"), "{own}");
    let all = client.metrics_of(Gateways::All).await.unwrap();
    for line in [
        "weir_gateway_up{gateway=\"g1\"} 1",
        "weir_gateway_up{gateway=\"g2\"} 1",
        "weir_gateway_up{gateway=\"g3\"} 0",
        "weir_volume_served{gateway=\"g2\",volume=\"a\",pool=\"p\"} 1",
        "weir_volume_used_bytes{gateway=\"g2\",volume=\"a\",pool=\"p\"} 777",
        "weir_connections{gateway=\"g2\"} 3",
    ] {
        assert!(all.lines().any(|one| one == line), "{line} is not in {all}");
    }
    assert_eq!(
        (all.matches("# EOF\n").count(), all.matches("# TYPE weir_connections ").count()),
        (1, 1)
    );
    assert!(all.ends_with("# EOF\n"));
    assert_eq!(two.first.get("/metrics?gateways=some").await.0, 400);
    two.stop().await;
}

#[tokio::test]
async fn the_metrics_of_all_are_collected_for_one_request_at_a_time() {
    let two = Two::start().await;
    two.way(3, Way::Silent);
    let first = Client::local(two.first.directory.path());
    let first = tokio::spawn(async move { first.metrics_of(Gateways::All).await });
    while two.taken(3) == 0 {
        tokio::task::yield_now().await;
    }
    let (status, error) = refusal(two.first.client.metrics_of(Gateways::All).await);
    assert_eq!((status, error.code.as_str()), (503, "metrics_busy"));
    two.first.client.metrics().await.unwrap();
    assert!(first.await.unwrap().unwrap().contains("weir_gateway_up{gateway=\"g2\"} 1"));
    two.first.client.metrics_of(Gateways::All).await.unwrap();
    two.stop().await;
}

#[tokio::test]
async fn a_gateway_of_an_older_version_is_told_so_and_asked_once_in_its_life() {
    let two = Two::start().await;
    let client = &two.first.client;
    two.way(3, Way::Refused(NotAsked::Older));
    let older = "it runs an older version, which does not answer other gateways";
    for _ in 0..3 {
        assert_eq!(reason(&client.health().await.unwrap(), "g3"), older);
    }
    assert_eq!(two.taken(3), 1);
    let activity = client.activity().await.unwrap();
    let missing: Vec<_> =
        activity.missing.iter().map(|one| (&*one.gateway, &*one.reason)).collect();
    assert_eq!(missing, [("g3", older)]);
    // Its next life may be of another version.
    {
        let mut view = lock(&two.told.view);
        let gateways = &mut Arc::make_mut(&mut view.records).gateways;
        let weir_cluster::Standing::In(member) =
            &mut gateways.get_mut(&GatewayId(3)).unwrap().standing
        else {
            panic!("it is a member")
        };
        member.number += 1;
    }
    client.health().await.unwrap();
    assert_eq!(two.taken(3), 2);
    two.stop().await;
}

#[tokio::test]
async fn answers_that_are_none_are_told_and_harm_nothing() {
    const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{]}";
    const ENDLESS: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n[";
    const CUT: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n[";
    const UNKNOWN: &[u8] = b"HTTP/1.1 404 No\r\ncontent-length: 37\r\n\r\n\
                             {\"code\":\"no_such_route\",\"message\":\"\"}";
    let two = Two::start().await;
    let client = &two.first.client;
    for (bytes, endless, expected) in [
        (OK, false, "its answer is malformed"),
        (ENDLESS, true, "its answer is longer than 16 MiB"),
        (CUT, false, "the connection was lost"),
        (b"\x16\x03\x01\x00\x05", false, "the connection was lost"),
        (b"HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n", false, "it answered with status 503"),
        (UNKNOWN, false, "it runs an older version"),
    ] {
        two.way(3, Way::Says { bytes, endless });
        let health = client.health().await.unwrap();
        let found = reason(&health, "g3");
        assert!(found.starts_with(expected), "{found}, but {expected} was expected");
        assert_eq!((health.volumes_served, reason(&health, "g2")), (1, "it answers"));
        let metrics = client.metrics_of(Gateways::All).await.unwrap();
        assert!(metrics.contains("weir_gateway_up{gateway=\"g3\"} 0"), "{found}");
    }
    two.way(3, Way::Silent);
    let health = client.health().await.unwrap();
    assert_eq!(reason(&health, "g3"), "it did not answer within 3 s");
    two.stop().await;
}

#[tokio::test]
async fn a_gateway_that_is_not_reached_keeps_no_other_from_answering() {
    let two = Two::start().await;
    two.way(3, Way::Unreached);
    let mut asking = JoinSet::new();
    for _ in 0..8 {
        let client = Client::local(two.first.directory.path());
        asking.spawn(async move { client.health().await.unwrap() });
    }
    let answers = asking.join_all().await;
    let mut reasons: Vec<_> = answers.iter().map(|health| reason(health, "g3")).collect();
    reasons.sort_unstable();
    reasons.dedup();
    let expected = [
        "no connection: it was not reached within 2 s",
        "this gateway asks it too much at the moment",
    ];
    assert_eq!(reasons, expected);
    for health in &answers {
        assert_eq!((reason(health, "g2"), health.volumes_served), ("it answers", 1));
    }
    assert_eq!(two.taken(3), 4, "as many as may be under way");
    two.stop().await;
}

#[tokio::test]
async fn other_gateways_are_told_nothing_secret_and_change_nothing() {
    let two = Two::start().await;
    let door = match &lock(&two.told.ways)[&GatewayId(2)].0 {
        Way::To(door) => door.clone(),
        _ => panic!("there is a way"),
    };
    for (path, status) in [
        ("/v1/gateway/health", 200),
        ("/v1/server", 404),
        ("/v1/tokens", 404),
        ("/v1/catalog/backup", 404),
        ("/v1/audit", 404),
        ("/v1/volumes", 404),
        ("/v1/gateway/volumes?first=1", 400),
        ("/v1/gateway/history?volume=9&since=60", 404),
        ("/v1/gateway/history?volume=1&since=18446744073709551615", 200),
    ] {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        door.send(Box::new(theirs) as Stream).await.unwrap();
        assert_eq!(get_over(ours, path, 1 << 20).await.unwrap().0, status, "{path}");
    }
    two.stop().await;
}

#[tokio::test]
async fn a_server_that_is_alone_answers_for_itself() {
    let running = Running::with_volume(Qos::Auto).await;
    let shown = [
        serde_json::to_string(&running.client.health().await.unwrap()).unwrap(),
        serde_json::to_string(&running.client.activity().await.unwrap()).unwrap(),
        serde_json::to_string(&running.client.volume("v").await.unwrap()).unwrap(),
        serde_json::to_string(&running.client.why("v").await.unwrap()).unwrap(),
        serde_json::to_string(&running.client.report("v", 60).await.unwrap()).unwrap(),
        running.client.metrics_of(Gateways::All).await.unwrap(),
    ];
    for text in shown {
        for field in ["gateway", "missing", "no_answer"] {
            assert!(!text.contains(&format!("\"{field}")), "{field}: {text}");
        }
    }
    running.stop().await;
}
