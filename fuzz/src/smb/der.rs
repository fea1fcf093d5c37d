//! The tokens of SPNEGO once more, as places in their bytes: it shares nothing with the reader of
//! the crate, whose decisions it is used to check. It takes the same liberties with lengths.

use std::ops::Range;

/// The content of the object identifier of NTLMSSP.
const NTLMSSP: &[u8] = &[0x2b, 6, 1, 4, 1, 0x82, 0x37, 2, 2, 0x0a];

/// The first token of a client.
pub(super) struct Init {
    /// The encoding of the list of mechanisms.
    pub(super) list: Range<usize>,
    /// NTLMSSP is the first of them.
    pub(super) is_ntlmssp_first: bool,
    /// The token of the first.
    pub(super) token: Option<Range<usize>>,
}

/// A later token.
pub(super) struct Resp {
    /// The token of the mechanism.
    pub(super) token: Option<Range<usize>>,
    /// The code over the list of mechanisms.
    pub(super) mic: Option<Range<usize>>,
}

/// The place of the content of the element with `tag` that begins at `at`, and of what is behind it
/// up to the same end.
fn element(bytes: &[u8], at: &Range<usize>, tag: u8) -> Option<(Range<usize>, Range<usize>)> {
    let part = bytes.get(at.clone())?;
    if *part.first()? != tag {
        return None;
    }
    let first = *part.get(1)?;
    let (head, length) = if first < 0x80 {
        (2, usize::from(first))
    } else {
        let digits = usize::from(first & 0x7f);
        let length = part.get(2..2 + digits).filter(|_| (1..=4).contains(&digits))?;
        (2 + digits, length.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)))
    };
    let content = at.start + head..at.start + head + length;
    (content.end <= at.end).then(|| (content.clone(), content.end..at.end))
}

/// The content of the octet string in the field `number`, if the field is there; and the rest.
fn octets(
    bytes: &[u8],
    at: Range<usize>,
    number: u8,
) -> Option<(Option<Range<usize>>, Range<usize>)> {
    match element(bytes, &at, 0xa0 | number) {
        None => Some((None, at)),
        Some((field, rest)) => Some((Some(element(bytes, &field, 4)?.0), rest)),
    }
}

pub(super) fn init(bytes: &[u8]) -> Option<Init> {
    let (outer, _) = element(bytes, &(0..bytes.len()), 0x60)?;
    let (_, inner) = element(bytes, &outer, 6)?;
    let (inner, _) = element(bytes, &inner, 0xa0)?;
    let (fields, _) = element(bytes, &inner, 0x30)?;
    let (list, mut rest) = element(bytes, &fields, 0xa0)?;
    let (mechanisms, _) = element(bytes, &list, 0x30)?;
    let (first, _) = element(bytes, &mechanisms, 6)?;
    if let Some((_, after)) = element(bytes, &rest, 0xa1) {
        rest = after;
    }
    let (token, _) = octets(bytes, rest, 2)?;
    Some(Init { list, is_ntlmssp_first: bytes.get(first)? == NTLMSSP, token })
}

pub(super) fn resp(bytes: &[u8]) -> Option<Resp> {
    let (outer, _) = element(bytes, &(0..bytes.len()), 0xa1)?;
    let (mut rest, _) = element(bytes, &outer, 0x30)?;
    for state_or_mechanism in [0xa0, 0xa1] {
        if let Some((_, after)) = element(bytes, &rest, state_or_mechanism) {
            rest = after;
        }
    }
    let (token, rest) = octets(bytes, rest, 2)?;
    let (mic, _) = octets(bytes, rest, 3)?;
    Some(Resp { token, mic })
}
