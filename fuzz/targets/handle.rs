//! File handles: only what the key sealed opens, and one changed bit closes it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_core::limits::OBJECT_KEY_BYTES_MAX;
use weir_core::{FileHandle, HandleKey, ObjectKey, SnapshotId, VolumeId};

fuzz_target!(|input: &[u8]| {
    let key = HandleKey::new(&[7; 16]);
    if let Ok(handle) = key.open(input) {
        assert_eq!(key.seal(&handle).as_bytes(), input, "only sealed bytes open");
    }
    let Some(([flip, rest @ ..], object)) = input.split_first_chunk::<9>() else { return };
    let [a, b, c, d, e, f, g, h] = *rest;
    let object = &object[..object.len().min(OBJECT_KEY_BYTES_MAX)];
    let handle = FileHandle {
        volume: VolumeId(u32::from_be_bytes([a, b, c, d])),
        snapshot: SnapshotId(u32::from_be_bytes([e, f, g, h])),
        key: ObjectKey::new(object).expect("it was cut to fit"),
    };
    let mut sealed = key.seal(&handle).as_bytes().to_vec();
    assert_eq!(key.open(&sealed), Ok(handle));
    let bit = usize::from(*flip) % (sealed.len() * 8);
    sealed[bit / 8] ^= 1 << (bit % 8);
    assert!(key.open(&sealed).is_err(), "bit {bit} is not covered by the seal");
});
