//! The client of etcd and the records over it, on an etcd of three members that are stopped,
//! continued, killed and started again.
#![cfg(test)]

mod etcd;
mod leases;
mod rows;
mod secured;
mod shared;

use etcd::Members;
use std::sync::Arc;
use weir_cluster::{
    Change, GatewayId, GroupId, Life, MachineId, Records, Registration, SessionId, Transaction,
    Version, View,
};
use weir_etcd::{Connection, Keys, RecordsClient, RecordsError, Settings};

fn connection(members: &Members) -> Connection {
    let settings = Settings { endpoints: members.endpoints(), ..Settings::default() };
    Connection::new(&settings).unwrap()
}

fn keys() -> Keys {
    Keys::new("test").unwrap()
}

/// The records, for a life of a gateway.
fn records(members: &Members) -> RecordsClient {
    RecordsClient::new(connection(members), keys())
}

fn life(gateway: u16) -> Life {
    Life { gateway: GatewayId(gateway), number: 1 }
}

fn register(life: Life) -> Change {
    Change::Register(Registration {
        life,
        machine: MachineId(life.gateway.0.into()),
        speaks: Version::CURRENT,
        sessions: vec![SessionId { address: ([10, 0, 0, 1], 0).into(), nonce: 7 }],
    })
}

fn place(group: u32) -> Change {
    Change::Place { group: GroupId(group), weight: 1 }
}

/// The change upon these records.
fn upon(records: &Records, change: Change) -> Transaction {
    Transaction { generation: records.generation, writer: None, absent: None, change }
}

/// Makes a change, repeated until there is an answer.
async fn make(client: &RecordsClient, change: Change) -> Arc<View> {
    loop {
        let view = Arc::new(present(client).await);
        match client.change(&view.records, &upon(&view.records, change.clone())).await {
            Ok(true) => return Arc::new(present(client).await),
            Ok(false) | Err(RecordsError::Etcd(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// The state, read until it can be.
async fn present(client: &RecordsClient) -> View {
    loop {
        match client.view().await {
            Ok(view) => return view,
            Err(RecordsError::Etcd(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}
