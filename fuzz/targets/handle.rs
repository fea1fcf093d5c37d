//! File handles: only what the key sealed opens, and one changed bit closes it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_core::limits::OBJECT_KEY_BYTES_MAX;
use weir_core::{FileHandle, HandleKey, ObjectKey, SnapshotId, VolumeId};

fuzz_target!(|input: &[u8]| {
    let key = HandleKey::new(&[7; 16]);
    if let Ok(handle) = key.open(input) {
        let sealed = key.seal(&handle);
        let same = sealed.as_bytes() == input;
        assert!(same || input[0] == 1, "only sealed bytes open, or those of version 1");
        assert_eq!(key.open(sealed.as_bytes()), Ok(handle));
    }
    let Some(([flip, rest @ ..], object)) = input.split_first_chunk::<13>() else { return };
    let [a, b, c, d, e, f, g, h, i, j, k, l] = *rest;
    let object = &object[..object.len().min(OBJECT_KEY_BYTES_MAX)];
    let handle = FileHandle {
        volume: VolumeId(u32::from_be_bytes([a, b, c, d])),
        snapshot: SnapshotId(u32::from_be_bytes([e, f, g, h])),
        key: ObjectKey::new(object)
            .expect("it was cut to fit")
            .born(u32::from_be_bytes([i, j, k, l])),
    };
    let mut sealed = key.seal(&handle).as_bytes().to_vec();
    let opened = key.open(&sealed).expect("sealed with this key");
    assert_eq!((opened, key.seal(&opened).as_bytes()), (handle, sealed.as_slice()));
    let bit = usize::from(*flip) % (sealed.len() * 8);
    sealed[bit / 8] ^= 1 << (bit % 8);
    assert!(key.open(&sealed).is_err(), "bit {bit} is not covered by the seal");
});
