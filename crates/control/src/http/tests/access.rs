//! Roles, tokens, and the record of who did what.

use super::*;
use weir_api::{AuditEvent, AuditQuery, AuditRecord, NewToken, Role, routes};

fn token(name: &str, role: Role) -> NewToken {
    NewToken { name: name.into(), role, expires: None }
}

impl Running {
    async fn with_token(&self, name: &str, role: Role) -> Client {
        let made = self.client.create_token(&token(name, role)).await.unwrap();
        self.tcp(Some(made.secret))
    }

    async fn records(&self) -> Vec<AuditRecord> {
        let query = AuditQuery { limit: Some(1000), ..AuditQuery::default() };
        self.client.audit(&query).await.unwrap().items
    }
}

/// The status of a request that means no harm: nothing of that name is there, and no body makes
/// sense.
async fn status(running: &Running, method: &str, path: &str, secret: &str) -> u16 {
    let path = routes::path(path, "nobody");
    let head = format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close");
    let request = format!("{head}\r\nauthorization: Bearer {secret}\r\n\r\n");
    let answer = raw_tcp(running.address, &request).await;
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn every_route_lets_in_the_least_role_it_names_and_those_above() {
    let running = Running::start().await;
    let mut secrets = vec![(None, String::new())];
    for role in [Role::Viewer, Role::Operator, Role::Admin] {
        let made = running.client.create_token(&token(role.word(), role)).await.unwrap();
        secrets.push((Some(role), made.secret));
    }
    for route in routes::ROUTES {
        for (role, secret) in &secrets {
            let found = status(&running, route.method, route.path, secret).await;
            let expected = match role {
                _ if *role >= route.least => None,
                None => Some(401),
                Some(_) => Some(403),
            };
            let what = format!("{} {} as {role:?}: {found}", route.method, route.path);
            match expected {
                Some(expected) => assert_eq!(found, expected, "{what}"),
                None => assert!(![401, 403, 405].contains(&found), "{what}"),
            }
        }
    }
    // Routes in no table are for administrators alone, and strangers learn nothing of them.
    assert_eq!(status(&running, "PUT", "/v1/pools", &secrets[2].1).await, 403);
    assert_eq!(status(&running, "PUT", "/v1/pools", &secrets[3].1).await, 405);
    assert_eq!(status(&running, "GET", "/v1/nothing", "").await, 401);
    assert_eq!(status(&running, "GET", "/v1/nothing", &secrets[1].1).await, 404);
    running.stop().await;
}

#[tokio::test]
async fn a_token_opens_the_api_until_it_is_revoked_or_ends() {
    let directory = {
        let running = Running::start().await;
        let operator = running.with_token("ci", Role::Operator).await;
        operator.create_pool(&pool(Qos::Auto), Dry::No).await.unwrap();
        let (status, error) = refusal(operator.tokens().await);
        assert_eq!((status, error.code.as_str()), (403, "forbidden"));
        assert!(error.message.contains("requires the role admin"), "{}", error.message);
        assert_eq!(running.client.tokens().await.unwrap()[0].name, "ci");
        running.client.revoke_token("ci").await.unwrap();
        assert_eq!(refusal(operator.pools().await).1.code, "unauthorized");
        assert_eq!(refusal(running.client.revoke_token("ci").await).1.code, "no_such_token");
        let past =
            NewToken { expires: Some("2020-01-01T00:00:00Z".into()), ..token("p", Role::Admin) };
        assert_eq!(refusal(running.client.create_token(&past).await).0, 400);
        running.stop().await
    };
    // A token that has ended, as a later day finds it.
    let secret = {
        let catalog = Catalog::open(directory.path()).unwrap();
        let (name, role) = ("old".to_owned(), weir_catalog::Role::Admin);
        let ended = weir_catalog::Token { name, role, created: 1, expires: Some(2) };
        catalog.tokens().unwrap().create(ended).unwrap()
    };
    let running = Running::start_in(directory).await;
    let (status, error) = refusal(running.tcp(Some(secret)).pools().await);
    assert_eq!((status, error.code.as_str()), (401, "token_expired"));
    running.stop().await;
}

#[tokio::test]
async fn every_change_and_every_denial_is_recorded_with_who_and_what() {
    let running = Running::start().await;
    let operator = running.with_token("ci", Role::Operator).await;
    operator.create_pool(&pool(Qos::Auto), Dry::No).await.unwrap();
    operator.create_pool(&pool(Qos::Auto), Dry::Run).await.unwrap_err();
    refusal(operator.create_pool(&pool(Qos::Auto), Dry::No).await);
    refusal(operator.catalog_backup().await);
    refusal(running.tcp(None).pools().await);
    operator.pools().await.unwrap();
    running.client.catalog_backup().await.unwrap();
    let records = running.records().await;
    let told: Vec<_> = records
        .iter()
        .map(|record| {
            let who = record.who.as_deref().unwrap_or("-");
            let (method, route) =
                (record.method.as_deref().unwrap(), record.route.as_deref().unwrap());
            format!("{} {who} {method} {route} {}", record.event, record.status.unwrap())
        })
        .collect();
    assert_eq!(
        told,
        [
            "change socket POST /v1/tokens 200",
            "change ci POST /v1/pools 200",
            "refused ci POST /v1/pools 409",
            "denied ci GET /v1/catalog/backup 403",
            "denied - GET /v1/pools 401",
            "secret socket GET /v1/catalog/backup 200",
        ]
    );
    let change = &records[1];
    assert_eq!((change.generation, change.role), (1, Some(Role::Operator)));
    assert_eq!(change.request.as_ref().unwrap()["size_bytes"], 4 * TIB);
    assert!(change.from.as_ref().unwrap().starts_with("127.0.0.1:"));
    assert_eq!(records[2].code.as_deref(), Some("name_taken"));
    assert_eq!(records[0].uid, Some(rustix::process::getuid().as_raw()));
    let text = std::fs::read_to_string(running.directory.path().join("audit.log")).unwrap();
    assert!(!text.contains("weir-"), "a secret is in it: {text}");
    running.stop().await;
}

#[tokio::test]
async fn the_log_is_read_in_pages_from_a_time_on_and_goes_on_after_a_rotation() {
    let running = Running::with_volume(Qos::Auto).await;
    let all = running.records().await;
    assert_eq!(all.len(), 2);
    let since = AuditQuery { since: Some(all[1].time.clone()), ..AuditQuery::default() };
    let page = running.client.audit(&since).await.unwrap();
    assert_eq!(page.items.last(), all.last());
    let log = running.directory.path().join("audit.log");
    std::fs::rename(&log, log.with_extension("log.1")).unwrap();
    running.client.delete_volume("v", Dry::No).await.unwrap();
    let after = AuditQuery { after: Some(page.next), ..AuditQuery::default() };
    let next = running.client.audit(&after).await.unwrap();
    assert_eq!((next.items.len(), next.more), (1, false));
    assert_eq!(next.items[0].path.as_deref(), Some("/v1/volumes/v"));
    let wrong = AuditQuery { after: Some("x".into()), ..AuditQuery::default() };
    assert_eq!(refusal(running.client.audit(&wrong).await).0, 400);
    let wrong = AuditQuery { limit: Some(0), ..AuditQuery::default() };
    assert_eq!(refusal(running.client.audit(&wrong).await).0, 400);
    running.stop().await;
}

#[tokio::test]
async fn a_change_that_can_not_be_recorded_is_not_made() {
    let running = Running::with_volume(Qos::Auto).await;
    let log = running.directory.path().join("audit.log");
    std::fs::rename(&log, log.with_extension("log.1")).unwrap();
    std::fs::create_dir(&log).unwrap();
    let (status, error) = refusal(running.client.delete_volume("v", Dry::No).await);
    assert_eq!((status, error.code.as_str()), (503, "audit_unavailable"));
    running.client.volume("v").await.unwrap();
    std::fs::remove_dir(&log).unwrap();
    running.client.delete_volume("v", Dry::No).await.unwrap();
    running.stop().await;
}

#[tokio::test]
async fn a_change_without_a_record_is_found_at_the_next_start() {
    let directory = Running::with_volume(Qos::Auto).await.stop().await;
    {
        let catalog = Catalog::open(directory.path()).unwrap();
        catalog.delete_volume("v", weir_catalog::Mode::Commit).unwrap();
    }
    let running = Running::start_in(directory).await;
    let records = running.records().await;
    let gap = records.last().unwrap();
    assert_eq!((gap.event, gap.generation), (AuditEvent::Gap, 3));
    assert!(gap.note.as_ref().unwrap().contains("the last record has generation 2"), "{gap:?}");
    let directory = running.stop().await;
    let running = Running::start_in(directory).await;
    assert_eq!(running.records().await.len(), records.len(), "it is said once");
    running.stop().await;
}

#[tokio::test]
async fn a_change_whose_client_goes_away_is_made_and_recorded() {
    let running = Running::start().await;
    let body = serde_json::to_string(&pool(Qos::Auto)).unwrap();
    let request = format!(
        "POST /v1/pools HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let path = running.directory.path().join("api.sock");
    let mut stream = UnixStream::connect(path).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    drop(stream);
    while running.records().await.is_empty() {
        // The client may have gone away before the request was read, or the change isn't made yet.
        if running.client.pool("p").await.is_err() {
            let mut stream =
                UnixStream::connect(running.directory.path().join("api.sock")).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(running.records().await[0].path.as_deref(), Some("/v1/pools"));
    running.client.pool("p").await.unwrap();
    running.stop().await;
}
