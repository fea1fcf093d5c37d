//! Sessions, opens and locks of clients over HTTP.

use super::*;
use crate::logins::{Login, LoginEvent};
use crate::plane::{ClientState, Lock, LockOwner, Object, SmbOpen, SmbSession, Step, Uses};
use std::time::UNIX_EPOCH;
use weir_api::{AuditEvent, AuditQuery, FileUse, LockMode, Protocol};

const CLIENT: std::net::IpAddr = std::net::IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));

/// The clients of a fake data plane.
#[derive(Default)]
pub(super) struct Clients {
    sessions: Vec<SmbSession>,
    opens: Vec<SmbOpen>,
    locks: Vec<Lock>,
}

impl ClientState for FakePlane {
    fn smb_sessions(&self, after: u64, most: usize) -> Vec<SmbSession> {
        let sessions = lock(&self.clients).sessions.clone();
        sessions.into_iter().filter(|session| session.id > after).take(most).collect()
    }

    fn close_smb_session(&self, id: u64) -> Step<'_, Option<SmbSession>> {
        Box::pin(async move {
            lock(&self.clients).sessions.extract_if(.., |session| session.id == id).next()
        })
    }

    fn smb_opens(&self, after: u64, most: usize) -> Vec<SmbOpen> {
        let opens = lock(&self.clients).opens.clone();
        opens.into_iter().filter(|open| open.id > after).take(most).collect()
    }

    /// As one that waits for the disk.
    fn close_smb_open(&self, id: u64) -> Step<'_, Option<SmbOpen>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            lock(&self.clients).opens.extract_if(.., |open| open.id == id).next()
        })
    }

    fn locks(&self, after: Option<&str>, most: usize) -> Option<Vec<(String, Lock)>> {
        let first = after.map_or(Some(0), |key| key.parse::<usize>().ok().map(|key| key + 1))?;
        let locks = lock(&self.clients).locks.clone().into_iter().enumerate();
        Some(locks.skip(first).take(most).map(|(key, lock)| (key.to_string(), lock)).collect())
    }

    fn close_lock(&self, id: &str) -> Option<Lock> {
        lock(&self.clients).locks.extract_if(.., |lock| lock.id == id).next()
    }
}

fn session(id: u64, trees: Vec<Option<VolumeId>>) -> SmbSession {
    SmbSession {
        id,
        user: "ann".into(),
        client: CLIENT,
        connection: 4,
        signing: "AES-GMAC",
        must_sign: true,
        cipher: Some("AES-128-GCM"),
        encrypts: false,
        since: UNIX_EPOCH,
        idle_seconds: 7,
        trees,
        opens: 2,
    }
}

fn open(id: u64, path: Option<&[u8]>) -> SmbOpen {
    SmbOpen {
        id,
        volume: VolumeId(1),
        object: Object { key: "8100".into(), path: path.map(<[u8]>::to_vec) },
        session: 5,
        holder: path.map(|_| ("ann".into(), CLIENT)),
        mask: 0x12_0089,
        access: Uses { read: true, ..Uses::default() },
        sharing: Uses { read: true, write: true, delete: true },
        delete_pending: false,
        since: path.map(|_| UNIX_EPOCH),
    }
}

fn held(owner: LockOwner) -> Lock {
    let object = Object { key: "8100".into(), path: None };
    let (id, volume, offset, length) = ("a1".to_owned(), VolumeId(1), 5, Some(10));
    Lock { id, volume, object, owner, offset, length, exclusive: true, waits: false }
}

async fn with_clients() -> Running {
    let running = Running::with_volume(Qos::Auto).await;
    let nlm = LockOwner::Nlm { address: CLIENT, host: b"h\xff".to_vec(), process: Some(77) };
    let holder = Some(("ann".to_owned(), CLIENT));
    let smb = LockOwner::Smb { open: 9, session: 5, holder };
    *lock(&running.plane.clients) = Clients {
        sessions: vec![session(5, vec![None, Some(VolumeId(1))]), session(6, vec![])],
        opens: (1..=3).map(|id| open(id, (id > 1).then_some(&b"d/\xfff"[..]))).collect(),
        locks: vec![
            held(nlm),
            Lock { id: "b2".to_owned(), length: None, waits: true, ..held(smb) },
        ],
    };
    running
}

#[tokio::test]
async fn sessions_opens_and_locks_are_listed_in_pages() {
    let running = with_clients().await;
    let client = &running.client;
    let sessions = client.smb_sessions().all().await.unwrap();
    assert_eq!(sessions.iter().map(|one| one.id).collect::<Vec<_>>(), [5, 6]);
    assert_eq!(sessions[0].shares, ["IPC$", "v"]);
    assert_eq!(sessions[0].since, "1970-01-01T00:00:00Z");
    assert_eq!((sessions[0].client.as_str(), sessions[0].opens), ("192.0.2.7", 2));
    let mut pages = client.smb_opens().of(2);
    let (first, second) = (pages.next().await.unwrap().unwrap(), pages.next().await.unwrap());
    assert_eq!(first.iter().map(|one| one.id).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(second.unwrap().iter().map(|one| one.id).collect::<Vec<_>>(), [3]);
    assert_eq!(pages.next().await.unwrap(), None);
    assert_eq!((first[0].path.as_deref(), first[0].user.as_deref()), (None, None));
    assert_eq!((first[1].path.as_deref(), first[1].volume.as_str()), (Some("d/\u{fffd}f"), "v"));
    assert_eq!((&first[1].access[..], first[1].sharing.len()), (&[FileUse::Read][..], 3));
    let locks = client.locks().of(1).all().await.unwrap();
    let [nlm, smb] = &locks[..] else { panic!("{locks:?}") };
    assert_eq!((nlm.id.as_str(), smb.id.as_str()), ("a1", "b2"));
    assert_eq!((nlm.protocol, nlm.process, nlm.length), (Protocol::Nfs, Some(77), Some(10)));
    assert_eq!((nlm.host.as_deref(), nlm.waiting), (Some("h\u{fffd}"), false));
    assert_eq!((smb.protocol, smb.open, smb.length), (Protocol::Smb, Some(9), None));
    assert_eq!(
        (smb.mode, smb.waiting, smb.user.as_deref()),
        (LockMode::Exclusive, true, Some("ann"))
    );
    let query = "GET /v1/locks?after=6c6f636b3a78 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let answer = raw_unix(&running.directory.path().join("api.sock"), query).await;
    assert!(answer.starts_with("HTTP/1.1 400"), "a key that is none: {answer}");
    running.stop().await;
}

#[tokio::test]
async fn a_session_an_open_and_locks_are_closed_once_and_it_is_recorded() {
    let running = with_clients().await;
    let client = &running.client;
    assert_eq!(client.close_smb_session(5).await.unwrap().user, "ann");
    assert_eq!(client.close_smb_open(2).await.unwrap().path.as_deref(), Some("d/\u{fffd}f"));
    let (status, error) = refusal(client.close_smb_session(5).await);
    assert_eq!((status, error.code.as_str()), (404, "no_such_session"));
    let (status, error) = refusal(client.close_smb_open(2).await);
    assert_eq!((status, error.code.as_str()), (404, "no_such_open"));
    assert_eq!(client.close_lock("a1").await.unwrap().process, Some(77));
    assert!(client.close_lock("b2").await.unwrap().waiting);
    let (status, error) = refusal(client.close_lock("a1").await);
    assert_eq!((status, error.code.as_str()), (404, "no_such_lock"));
    assert_eq!(error.message, "there is no lock a1; it may have been closed");
    assert_eq!(client.locks().all().await.unwrap(), []);
    let left = client.smb_sessions().all().await.unwrap();
    assert_eq!(left.iter().map(|one| one.id).collect::<Vec<_>>(), [6]);
    let records = client.audit(&AuditQuery::default()).await.unwrap().items;
    let closed: Vec<_> = records
        .iter()
        .filter(|record| record.method.as_deref() == Some("DELETE"))
        .map(|record| (record.event, record.path.as_deref().unwrap(), record.note.as_deref()))
        .collect();
    let (session, open) = (
        "session of ann from 192.0.2.7, 2 opens",
        "open of \"d/\u{fffd}f\" in volume v, by ann from 192.0.2.7",
    );
    let (held, waiting) = (
        "exclusive lock, on bytes 5 +10 of \"8100\" in volume v, by host \"h\u{fffd}\", process 77, \
         from 192.0.2.7",
        "exclusive lock that is waited for, on bytes 5 to the end of \"8100\" in volume v, by ann, open \
         9, from 192.0.2.7",
    );
    assert_eq!(
        closed,
        [
            (AuditEvent::Change, "/v1/smb/sessions/5", Some(session)),
            (AuditEvent::Change, "/v1/smb/opens/2", Some(open)),
            (AuditEvent::Refused, "/v1/smb/sessions/5", None),
            (AuditEvent::Refused, "/v1/smb/opens/2", None),
            (AuditEvent::Change, "/v1/locks/a1", Some(held)),
            (AuditEvent::Change, "/v1/locks/b2", Some(waiting)),
            (AuditEvent::Refused, "/v1/locks/a1", None),
        ]
    );
    running.stop().await;
}

#[tokio::test]
async fn logins_are_recorded_also_when_the_server_stops() {
    let running = Running::start().await;
    let login = |event| Login { account: Some("ann".into()), client: CLIENT, event };
    let logins = Arc::clone(&running.plane.logins);
    logins.report(login(LoginEvent::LoggedIn { session: 7, renewed: false }));
    while running.client.audit(&AuditQuery::default()).await.unwrap().items.is_empty() {
        tokio::task::yield_now().await;
    }
    (0..40).for_each(|_| logins.report(login(LoginEvent::Refused { reason: "wrong_password" })));
    logins.report(login(LoginEvent::LoggedOff { session: 7 }));
    let directory = running.stop().await;
    let text = std::fs::read_to_string(directory.path().join("audit.log")).unwrap();
    let records: Vec<weir_api::AuditRecord> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |event| records.iter().filter(move |record| record.event == event);
    let refused: Vec<_> = of(AuditEvent::LoginRefused).collect();
    let (recorded, counted) = (
        refused.iter().filter(|record| record.who.is_some()).count() as u64,
        refused.iter().filter_map(|record| record.suppressed).sum::<u64>(),
    );
    assert_eq!((recorded, recorded + counted), (30, 40));
    assert_eq!(refused[0].code.as_deref(), Some("wrong_password"));
    let others = [AuditEvent::Login, AuditEvent::Logoff];
    for record in others.map(|event| of(event).next().unwrap()) {
        assert_eq!(
            (record.who.as_deref(), record.from.as_deref()),
            (Some("ann"), Some("192.0.2.7"))
        );
        assert_eq!(record.note.as_deref(), Some("SMB session 7"));
    }
}
