//! Wire types of NFSv3: whatever decodes is encoded to bytes that decode to the same again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_fuzz::by_procedure;
use weir_nfs::client::RemoteCall;
use weir_nfs::xdr::{Decode, Encode, Writer, decode};

fuzz_target!(|input: &[u8]| {
    let Some((selector, bytes)) = input.split_first() else { return };
    let Some(once) = encoded_again(*selector, bytes) else { return };
    assert_eq!(encoded_again(*selector, &once).as_ref(), Some(&once));
});

/// The encoding of the type that `selector` names, decoded from `bytes`: arguments of that
/// procedure, or its results where the highest bit is set.
fn encoded_again(selector: u8, bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = None;
    let procedure = selector & 0x7f;
    if selector & 0x80 == 0 {
        by_procedure!(procedure, arguments(bytes, &mut out));
    } else {
        by_procedure!(procedure, results(bytes, &mut out));
    }
    out
}

fn arguments<'a, A: Decode<'a> + Encode>(bytes: &'a [u8], out: &mut Option<Vec<u8>>) {
    *out = decode::<A>(bytes).ok().map(|value| encoded(&value));
}

fn results<'a, A: RemoteCall>(bytes: &'a [u8], out: &mut Option<Vec<u8>>)
where
    A::Results<'a>: Encode,
{
    *out = decode::<A::Results<'a>>(bytes).ok().map(|value| encoded(&value));
}

fn encoded(value: &impl Encode) -> Vec<u8> {
    let mut out = Writer::default();
    value.encode(&mut out);
    out.into_vec()
}
