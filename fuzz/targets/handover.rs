//! Images of volumes that move: whatever stands behind a right checksum is refused, or is an image
//! that is read again as it is written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_cluster::{GatewayId, Life};
use weir_core::VolumeId;
use weir_handover::{Image, Move, with_head};

/// The move of all images in the corpus.
const OF: Move = Move {
    volume: VolumeId(7),
    from: Life { gateway: GatewayId(1), number: 4 },
    to: Life { gateway: GatewayId(2), number: 9 },
};

fuzz_target!(|input: &[u8]| {
    assert!(Image::decode(input, OF).is_err(), "its checksum cannot be right");
    let Ok(image) = Image::decode(&with_head(input), OF) else { return };
    let Ok(written) = image.encode(OF) else { return };
    let again = Image::decode(&written, OF).unwrap();
    assert_eq!((again.hosts.len(), again.replies.len()), (image.hosts.len(), image.replies.len()));
    assert_eq!(again.locks, image.locks);
});
