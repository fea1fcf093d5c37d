//! The memory of a call beside the work: its future while it waits, and its buffers.

use crate::world::{ALICE, World, ok, reply};
use std::mem::size_of_val;
use weir_core::Shared;
use weir_core::testing::block_on;
use weir_nfs::client::{Caller, RemoteCall};
use weir_nfs::rpc::Call;
use weir_nfs::v3::serve;
use weir_nfs::v3::wire::{FileHandle3, GetattrArgs, ReadArgs};

/// A parked call is this much memory beside its payload; with a store whose own futures are
/// small, as the reference store's are.
const FUTURE_BYTES_MAX: usize = 576;

fn call<A: RemoteCall>(args: &A) -> Call {
    let mut record = Vec::new();
    Caller::sys(&ALICE, b"client").call(&mut record, 1, args);
    Call::parse(Shared::from(record).skip(4)).unwrap()
}

#[test]
fn a_waiting_call_is_small() {
    let world = World::new();
    let root = world.root();
    let call = call(&GetattrArgs { object: FileHandle3(&root) });
    let rights = world.client(ALICE).rights.clone();
    let handle = world.volume.keys.open(&root).unwrap();
    let future = serve(world.volume.clone(), rights, handle, call, Vec::new());
    let bytes = size_of_val(&future);
    assert!(bytes <= FUTURE_BYTES_MAX, "the future of a call is {bytes} bytes");
}

#[test]
fn data_is_read_into_the_buffer_that_was_handed_in() {
    let world = World::new();
    let alice = world.client(ALICE);
    let file = alice.create(&world.root(), "f", 0o644);
    ok(alice.write(&file, 0, &[7; 5000]));
    let call = call(&ReadArgs { file: FileHandle3(&file), offset: 0, count: 8192 });
    let handle = world.volume.keys.open(&file).unwrap();
    let mut buffer = Vec::with_capacity(16 << 10);
    buffer.extend_from_slice(b"left over from another reply");
    let at = buffer.as_ptr();
    let served = block_on(serve(world.volume.clone(), alice.rights.clone(), handle, call, buffer));
    assert_eq!(served.reply.as_ptr(), at);
    assert_eq!(served.moved, 5000);
    let reply = reply(&served.reply);
    assert_eq!(ok(reply.results::<ReadArgs<'_>>().unwrap()).data, [7; 5000]);
}
