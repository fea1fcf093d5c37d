//! Messages of SMB and the payloads in them: whatever decodes is encoded to bytes that decode to
//! the same again, and keeps the invariants of its kind.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_fuzz::smb::kinds::KINDS;

fuzz_target!(|input: &[u8]| {
    let Some((selector, bytes)) = input.split_first() else { return };
    let Some((name, again)) = KINDS.get(usize::from(*selector)) else { return };
    let Some(once) = again(bytes) else { return };
    assert_eq!(again(&once).as_ref(), Some(&once), "{name}");
});
