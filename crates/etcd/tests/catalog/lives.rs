//! etcd refuses the changes of a gateway whose life is over, whatever the gateway knows.

use crate::ETCD;
use crate::members::RUNTIME;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use weir_catalog::{
    BytesPerSecond, Catalog, ClusterKey, ClusterPlace, Guard, LifeGuard, Minimums, Mode,
    MonitoredHost, create_cluster,
};
use weir_cluster::{
    Change, GatewayId, Kept, LeaseRequest, Life, MachineId, Records, Registration, Transaction,
    Version,
};
use weir_etcd::{Keys, RecordsClient};

const CLUSTER: &str = "lives";
const FIRST: Life = Life { gateway: GatewayId(1), number: 1 };
const SECOND: Life = Life { gateway: GatewayId(1), number: 2 };

/// The records of the cluster, as a life has them.
struct Lives(RecordsClient);

impl Lives {
    fn new() -> Self {
        Self(RecordsClient::new(ETCD.connection(), Keys::new(CLUSTER).unwrap()))
    }

    /// Makes a change upon the records as they are.
    fn make(&self, change: Change) -> Arc<Records> {
        RUNTIME.block_on(async {
            let view = self.0.view().await.unwrap();
            let generation = view.generation();
            let transaction = Transaction { generation, writer: None, absent: None, change };
            assert!(self.0.change(&view.records, &transaction).await.unwrap());
            self.0.view().await.unwrap().records
        })
    }

    fn register(&self, life: Life) -> Arc<Records> {
        let (machine, speaks) = (MachineId(1), Version::CURRENT);
        let new = Registration { life, machine, speaks, sessions: Vec::new() };
        self.make(Change::Register(new))
    }

    fn attach(&self, life: Life, records: &Records) -> Kept {
        RUNTIME.block_on(self.0.lease(LeaseRequest::Attach, life, records)).unwrap()
    }
}

/// The catalogue as `life` has it, which is about to become a member.
fn catalog(base: &Path, life: Life) -> Catalog {
    let place = ClusterPlace {
        store: Arc::new(ETCD.store(CLUSTER)),
        cluster: CLUSTER.to_owned(),
        gateway: "a".to_owned(),
        life: LifeGuard::default(),
        key: ClusterKey::new([1; 32]),
    };
    let directory = base.join(life.number.to_string());
    let catalog = Catalog::open_in_cluster(&directory, Minimums::default(), place).unwrap();
    catalog.next_nsm_state().unwrap();
    let (key, value) = Keys::new(CLUSTER).unwrap().life_row(life);
    catalog.guard_by(Guard::Is { key, value: value.into_bytes() });
    catalog
}

/// The outcomes of a change that the head guards, and of a write that the life alone guards.
fn writes(catalog: &Catalog, name: &str) -> [Result<(), &'static str>; 2] {
    let level = catalog.create_level(name, BytesPerSecond::from_mib(1), Mode::Commit);
    let host = MonitoredHost {
        address: IpAddr::from([10, 0, 0, 1]),
        name: name.as_bytes().to_vec(),
        local: IpAddr::from([10, 0, 0, 2]),
    };
    let host = catalog.monitor_host(&host);
    [level.map(drop).map_err(|error| error.code()), host.map_err(|error| error.code())]
}

const MADE: [Result<(), &str>; 2] = [Ok(()), Ok(())];
const REFUSED: [Result<(), &str>; 2] = [Err("not_a_member"), Err("not_a_member")];

#[test]
fn a_life_that_is_over_changes_the_catalogue_no_more() {
    let base = tempfile::tempdir().unwrap();
    create_cluster(&ClusterPlace {
        store: Arc::new(ETCD.store(CLUSTER)),
        cluster: CLUSTER.to_owned(),
        gateway: "first".to_owned(),
        life: LifeGuard::default(),
        key: ClusterKey::new([1; 32]),
    })
    .unwrap();
    let first = catalog(base.path(), FIRST);
    assert_eq!(writes(&first, "early"), REFUSED, "it is no member yet");
    let lives = Lives::new();
    let records = lives.register(FIRST);
    assert_eq!(lives.attach(FIRST, &records), Kept::Yes);
    assert_eq!(writes(&first, "member"), MADE);
    RUNTIME.block_on(lives.0.release()).unwrap();
    assert_eq!(writes(&first, "without"), REFUSED, "its lease has ended");
    assert_eq!(lives.attach(FIRST, &records), Kept::Yes);
    assert_eq!(writes(&first, "again"), MADE);
    // By the word of its helper: its lease has not ended.
    lives.make(Change::Condemn { life: FIRST, gone: true });
    assert_eq!(writes(&first, "condemned"), REFUSED);
    let second = catalog(base.path(), SECOND);
    let lives = Lives::new();
    let records = lives.register(SECOND);
    assert_eq!(writes(&first, "replaced"), REFUSED);
    assert_eq!(lives.attach(SECOND, &records), Kept::Yes);
    assert_eq!((writes(&first, "late"), writes(&second, "next")), (REFUSED, MADE));
    let there: Vec<_> = second.snapshot().levels().map(|level| level.name.clone()).collect();
    let made = ["member", "again", "next"];
    assert!(made.iter().all(|name| there.iter().any(|there| there == name)), "{there:?}");
    for refused in ["early", "without", "condemned", "replaced", "late"] {
        assert!(there.iter().all(|there| there != refused), "{there:?}");
    }
}
