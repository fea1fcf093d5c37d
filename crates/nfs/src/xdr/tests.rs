//! Tests of the primitives.

use super::{Decode, Encode, List, Reader, Writer, XdrError, decode};
use alloc::vec::Vec;
use proptest::prelude::*;

#[test]
fn numbers_are_big_endian() {
    let mut out = Writer::default();
    out.u32(0x0102_0304);
    out.u64(0x0506_0708_090a_0b0c);
    out.bool(true);
    assert_eq!(out.as_bytes(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 0, 0, 1]);
}

#[test]
fn a_boolean_is_zero_or_one() {
    assert_eq!(Reader::new(&[0, 0, 0, 0]).bool(), Ok(false));
    assert_eq!(Reader::new(&[0, 0, 0, 1]).bool(), Ok(true));
    let error = XdrError::BadDiscriminant { what: "bool", value: 256 };
    assert_eq!(Reader::new(&[0, 0, 1, 0]).bool(), Err(error));
}

#[test]
fn opaque_data_is_padded_with_zeros() {
    for (data, bytes) in [
        (&b""[..], &b"\0\0\0\0"[..]),
        (b"a", b"\0\0\0\x01a\0\0\0"),
        (b"ab", b"\0\0\0\x02ab\0\0"),
        (b"abc", b"\0\0\0\x03abc\0"),
        (b"abcd", b"\0\0\0\x04abcd"),
    ] {
        let mut out = Writer::default();
        out.opaque(data);
        assert_eq!(out.as_bytes(), bytes);
        let mut input = Reader::new(bytes);
        assert_eq!(input.opaque("data", 4), Ok(data));
        assert_eq!(input.finish(), Ok(()));
    }
}

#[test]
fn pad_bytes_may_have_any_value_but_must_be_there() {
    assert_eq!(Reader::new(b"\0\0\0\x01axyz").opaque("data", 4), Ok(&b"a"[..]));
    let error = XdrError::Truncated { needed: 3, left: 2 };
    assert_eq!(Reader::new(b"\0\0\0\x01axy").opaque("data", 4), Err(error));
}

#[test]
fn a_length_over_its_bound_is_refused_before_anything_else() {
    let bytes = u32::MAX.to_be_bytes();
    let error = XdrError::TooLong { what: "name", len: u32::MAX as usize, max: 255 };
    assert_eq!(Reader::new(&bytes).opaque("name", 255), Err(error));
    assert_eq!(Reader::new(&bytes).count("name", 255), Err(error));
    let error = XdrError::Truncated { needed: u32::MAX as usize, left: 0 };
    assert_eq!(Reader::new(&bytes).opaque("name", usize::MAX), Err(error));
    assert_eq!(Reader::new(&5u32.to_be_bytes()).count("array", 5), Ok(5));
}

#[test]
fn what_is_left_over_is_counted() {
    let mut input = Reader::new(&[0; 9]);
    assert_eq!(input.u64(), Ok(0));
    assert_eq!(input.rest(), [0]);
    assert_eq!(input.finish(), Err(XdrError::Trailing { left: 1 }));
}

#[test]
fn a_vector_can_be_taken_out_and_put_back() {
    let mut out = Writer::new(b"before".to_vec());
    out.u32(0);
    let mut vec = out.into_vec();
    vec.push(b'!');
    let mut out = Writer::new(vec);
    out.patch(6, &[1, 2, 3, 4]);
    assert_eq!(out.position(), 11);
    out.truncate(10);
    assert_eq!(out.into_vec(), b"before\x01\x02\x03\x04");
}

#[cfg(debug_assertions)]
#[test]
#[should_panic(expected = "never written")]
fn a_patch_beyond_the_end_is_a_mistake() {
    let mut out = Writer::default();
    out.u32(0);
    out.patch(1, &[0; 4]);
}

#[test]
fn an_option_is_a_flag_and_the_value() {
    let bytes = [0, 0, 0, 1, 0, 0, 0, 9];
    assert_eq!(decode::<Option<u32>>(&bytes), Ok(Some(9)));
    assert_eq!(decode::<Option<u32>>(&[0; 4]), Ok(None));
    let error = XdrError::BadDiscriminant { what: "bool", value: 9 };
    assert_eq!(decode::<Option<u32>>(&bytes[4..]), Err(error));
}

proptest! {
    #[test]
    fn lists_give_their_elements_in_order(elements: Vec<u64>) {
        let mut out = Writer::default();
        for element in &elements {
            Some(*element).encode(&mut out);
        }
        None::<u64>.encode(&mut out);
        out.u32(77);
        let mut input = Reader::new(out.as_bytes());
        let list = List::<'_, u64>::decode(&mut input).unwrap();
        prop_assert_eq!(list.iter().collect::<Vec<_>>(), elements);
        prop_assert_eq!(input.u32(), Ok(77));
        let mut again = Writer::default();
        list.encode(&mut again);
        prop_assert_eq!(again.as_bytes(), &out.as_bytes()[..out.position() - 4]);
    }

    #[test]
    fn opaque_data_survives(data: Vec<u8>, more: u32) {
        let mut out = Writer::default();
        out.opaque(&data);
        out.u32(more);
        let mut input = Reader::new(out.as_bytes());
        prop_assert_eq!(input.opaque("data", data.len()), Ok(&data[..]));
        prop_assert_eq!(input.u32(), Ok(more));
    }
}
