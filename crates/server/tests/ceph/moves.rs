//! The group moves between two gateways: cached replies and stable data go with it, an image is
//! used once and by the gateway that it is for, and any other one is not used.

use super::fixture::Peer;
use super::{Arrival, Behind, GROUP, Gateway};
use std::cell::RefCell;
use std::collections::BTreeSet;
use weir_cluster::{GatewayId, Life};
use weir_nfs::client::Reply;
use weir_nfs::v3::wire::{
    CreateArgs, CreateHow3, DirOpArgs3, FileHandle3, RemoveArgs, RenameArgs, Sattr3, Status,
    WriteArgs,
};
use weir_server::groups::GroupError;

const FIRST: Life = Life { gateway: GatewayId(1), number: 3 };
const SECOND: Life = Life { gateway: GatewayId(2), number: 5 };
const HERE: BTreeSet<std::net::IpAddr> = BTreeSet::new();
const VOLUME: &str = "/one/volumes/1";

impl Behind {
    /// The bytes of the image, if there is one. It stays there.
    fn image(&self) -> Option<Vec<u8>> {
        let image = weir_store::take_handover(&self.0, VOLUME, 16 << 20).unwrap()?;
        weir_store::put_handover(&self.0, VOLUME, &image).unwrap();
        Some(image)
    }

    /// Puts other bytes in the place of the image, or none.
    fn set_image(&self, bytes: Option<&[u8]>) {
        weir_store::clear_handover(&self.0, VOLUME).unwrap();
        if let Some(bytes) = bytes {
            weir_store::put_handover(&self.0, VOLUME, bytes).unwrap();
        }
    }
}

impl Gateway {
    fn stop_for(&self, between: (Life, Life)) -> Result<(), GroupError> {
        self.groups.stop(GROUP, &HERE, Some(between))
    }

    fn take(&self, arrival: Arrival) {
        self.server.catalog().follow().unwrap();
        self.groups.adopt(GROUP, &HERE, arrival).unwrap();
    }
}

/// A client that makes three calls that must not be executed twice.
struct Client {
    root: Vec<u8>,
    xid: u32,
    name: String,
    /// Its connections. To close one would tell that the replies have come.
    open: RefCell<Vec<Peer>>,
}

impl Client {
    fn new(root: &[u8], xid: u32, name: &str) -> Self {
        Self { root: root.to_vec(), xid, name: name.to_owned(), open: RefCell::default() }
    }

    /// Makes the calls of this number, as often as it is called; gives the replies.
    fn call(&self, gateway: &Gateway) -> Vec<Vec<u8>> {
        let mut peer = gateway.connect();
        let place = |name| DirOpArgs3 { dir: FileHandle3(&self.root), name };
        let (name, new) = (self.name.as_bytes(), format!("{}-new", self.name));
        let how = CreateHow3::Guarded(Sattr3 { mode: Some(0o644), ..Sattr3::NONE });
        let mut replies = Vec::new();
        peer.send_as(self.xid, &CreateArgs { location: place(name), how });
        replies.push(peer.record());
        let names = RenameArgs { from: place(name), to: place(new.as_bytes()) };
        peer.send_as(self.xid + 1, &names);
        replies.push(peer.record());
        peer.send_as(self.xid + 2, &RemoveArgs { object: place(new.as_bytes()) });
        replies.push(peer.record());
        self.open.borrow_mut().push(peer);
        replies
    }
}

/// The statuses of replies to the three calls.
fn statuses(replies: &[Vec<u8>]) -> [Status; 3] {
    let [created, renamed, removed] = replies else { panic!("three calls") };
    [
        Reply::parse(created).unwrap().results::<CreateArgs<'_>>().unwrap().status(),
        Reply::parse(renamed).unwrap().results::<RenameArgs<'_>>().unwrap().status(),
        Reply::parse(removed).unwrap().results::<RemoveArgs<'_>>().unwrap().status(),
    ]
}

/// The verifier in the reply to a WRITE that is not stable.
fn write_unstable(peer: &mut Peer, file: &[u8], data: &[u8]) -> [u8; 8] {
    peer.send(&super::fixture::write_args(file, data));
    let record = peer.record();
    match Reply::parse(&record).unwrap().results::<WriteArgs<'_>>().unwrap() {
        weir_nfs::v3::wire::Res::Ok(done) => done.verifier,
        weir_nfs::v3::wire::Res::Fail(status, _) => panic!("{status:?}"),
    }
}

/// Is the group served, so that calls from this number on, which are new, are executed?
fn is_served(gateway: &Gateway, client: &Client, xid: u32) -> bool {
    let fresh = Client::new(&client.root, xid, "fresh");
    statuses(&fresh.call(gateway)) == [Status::OK; 3]
}

/// Begins and ends with the group at the first gateway.
pub(crate) fn what_clients_hold_moves_with_the_group(first: &Gateway, second: &Gateway) {
    let mut peer = first.connect();
    let client = Client::new(&peer.mount("/v"), 1000, "moves");
    let file = peer.create(&client.root, "unstable");
    let before = write_unstable(&mut peer, &file, b"not stable");
    let replies = client.call(first);
    assert_eq!(statuses(&replies), [Status::OK; 3]);
    let (there, back) = ((FIRST, SECOND), (SECOND, FIRST));
    let handed = |(from, to)| Arrival::Handed { from, to };
    first.stop_for(there).unwrap();
    assert!(first.behind.image().is_some());
    second.take(handed(there));
    assert_eq!(first.behind.image(), None, "it is used once");
    assert_eq!(client.call(second), replies, "the old replies, and nothing is executed");
    assert!(is_served(second, &client, 1500));
    let mut peer = second.connect();
    assert_eq!(super::read(&mut peer, &file, 100).unwrap(), b"not stable");
    assert_ne!(write_unstable(&mut peer, &file, b"not stable"), before, "the verifier is another");
    // The move is off: nobody else has served the group.
    second.stop_for(back).unwrap();
    second.take(Arrival::Back);
    assert_eq!((client.call(second), second.behind.image()), (replies.clone(), None));
    others_are_not_used(first, second, &client);
    an_image_that_was_not_used_is_not_used_later(first, second, &client);
}

/// Each time the group goes from the second gateway to the first one, with another image than it
/// left, and back.
fn others_are_not_used(first: &Gateway, second: &Gateway, client: &Client) {
    let (there, back) = ((FIRST, SECOND), (SECOND, FIRST));
    let flipped = |mut image: Vec<u8>| {
        let middle = image.len() / 2;
        image[middle] ^= 1;
        Some(image)
    };
    let newer = |mut image: Vec<u8>| {
        image[9] = 2;
        Some(image)
    };
    type Change = Box<dyn Fn(Vec<u8>) -> Option<Vec<u8>>>;
    let changes: [(&str, Change); 5] = [
        ("missing", Box::new(|_| None)),
        ("damaged", Box::new(flipped)),
        ("cut short", Box::new(|image| Some(image[..image.len() / 2].to_vec()))),
        ("newer", Box::new(newer)),
        ("too long", Box::new(|image| Some([image, vec![0; 8 << 20]].concat()))),
    ];
    for (number, (what, change)) in (1..).zip(changes) {
        let own = Client::new(&client.root, 2000 + 1000 * number, what);
        let replies = own.call(second);
        second.stop_for(back).unwrap();
        let image = second.behind.image().unwrap();
        second.behind.set_image(change(image).as_deref());
        first.take(Arrival::Handed { from: SECOND, to: FIRST });
        // Each is executed again: the file is made, renamed and removed once more.
        let again = own.call(first);
        assert_eq!(statuses(&again), [Status::OK; 3], "{what}");
        assert_ne!(again, replies, "{what}");
        assert_eq!(first.behind.image(), None, "{what}");
        first.stop_for(there).unwrap();
        second.take(Arrival::Handed { from: FIRST, to: SECOND });
        assert_eq!(own.call(second), again, "{what}: the next move is as any other");
    }
}

/// The group arrives by other ways than the image says, with the image in its place.
fn an_image_that_was_not_used_is_not_used_later(
    first: &Gateway,
    second: &Gateway,
    client: &Client,
) {
    let (there, back) = ((FIRST, SECOND), (SECOND, FIRST));
    let later = Life { number: FIRST.number + 1, ..FIRST };
    let arrivals = [
        Arrival::Taken,
        Arrival::Handed { from: SECOND, to: later },
        Arrival::Handed { from: Life { number: 6, ..SECOND }, to: FIRST },
    ];
    for (number, arrival) in (1..).zip(arrivals) {
        let own = Client::new(&client.root, 20_000 + 1000 * number, "x");
        let replies = own.call(second);
        second.stop_for(back).unwrap();
        first.take(arrival);
        assert_ne!(own.call(first), replies, "{arrival:?}");
        // A gateway of the version before neither takes an image nor leaves one.
        first.groups.stop(GROUP, &HERE, None).unwrap();
        second.take(Arrival::Handed { from: FIRST, to: SECOND });
        assert_ne!(own.call(second), replies, "{arrival:?}");
    }
    // One that lies there from an earlier move gives way to that of the next one.
    second.stop_for(back).unwrap();
    let old = second.behind.image().unwrap();
    first.take(Arrival::Handed { from: SECOND, to: FIRST });
    first.behind.set_image(Some(&old));
    first.stop_for(there).unwrap();
    assert_ne!(first.behind.image().as_ref(), Some(&old));
    second.take(Arrival::Handed { from: FIRST, to: SECOND });
    second.stop_for(back).unwrap();
    first.take(Arrival::Handed { from: SECOND, to: FIRST });
    assert!(is_served(first, client, 1600));
}
