//! Tokens of SPNEGO (RFC 4178 §4.2, MS-SPNG §2.2): bytes to types and back. Not the negotiation.

use super::Reason;
use super::der::{
    APPLICATION_0, Der, ENUMERATED, GENERAL_STRING, MALFORMED, OCTET_STRING, OID, SEQUENCE,
    context, element,
};
use crate::limits::MECHANISM_LIST_BYTES_MAX;
use alloc::vec::Vec;

/// The content of the object identifier of SPNEGO, 1.3.6.1.5.5.2.
const SPNEGO: &[u8] = &[0x2B, 6, 1, 5, 5, 2];
/// The content of the object identifier of NTLMSSP, 1.3.6.1.4.1.311.2.2.10.
pub(super) const NTLMSSP: &[u8] = &[0x2B, 6, 1, 4, 1, 0x82, 0x37, 2, 2, 0x0A];
/// The name in a server's hint (MS-SPNG §2.2.1).
const HINT_NAME: &[u8] = b"not_defined_in_RFC4178@please_ignore";

/// The first token of a client.
pub(super) struct Init<'a> {
    /// The encoding of the list of mechanisms, over which its code goes.
    pub(super) list: &'a [u8],
    /// Is NTLMSSP in the list?
    pub(super) has_ntlmssp: bool,
    /// Is NTLMSSP the first, so that the token is its?
    pub(super) is_ntlmssp_first: bool,
    /// The first token of the first mechanism.
    pub(super) token: Option<&'a [u8]>,
}

impl<'a> Init<'a> {
    /// Does the token begin as one of a client?
    pub(super) fn is_at(token: &[u8]) -> bool {
        token.first() == Some(&APPLICATION_0)
    }

    pub(super) fn parse(token: &'a [u8]) -> Result<Self, Reason> {
        let mut outer = Der::new(token).enter(APPLICATION_0)?;
        if outer.take(OID)? != SPNEGO {
            return Err(Reason::NoMechanism);
        }
        let mut fields = outer.enter(context(0))?.enter(SEQUENCE)?;
        let mut list = fields.enter(context(0))?;
        let encoding = list.rest();
        if encoding.len() > MECHANISM_LIST_BYTES_MAX {
            return Err(Reason::Malformed("list of mechanisms"));
        }
        let mut mechanisms = list.enter(SEQUENCE)?;
        let is_ntlmssp_first = mechanisms.take(OID)? == NTLMSSP;
        let mut has_ntlmssp = is_ntlmssp_first;
        while !mechanisms.rest().is_empty() {
            has_ntlmssp |= mechanisms.take(OID)? == NTLMSSP;
        }
        if !list.rest().is_empty() {
            return Err(MALFORMED);
        }
        fields.take_if(context(1))?;
        let token = match fields.enter_if(context(2))? {
            Some(mut token) => Some(token.take(OCTET_STRING)?),
            None => None,
        };
        Ok(Self { list: encoding, has_ntlmssp, is_ntlmssp_first, token })
    }
}

/// How far the negotiation is (RFC 4178 §4.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    /// All is done.
    Completed = 0,
    /// Another token must follow.
    Incomplete = 1,
    /// Another token must follow, and the list of mechanisms be vouched for.
    RequestMic = 3,
}

/// Any later token, of either side.
#[derive(Clone, Copy, Default)]
pub(super) struct Resp<'a> {
    /// The value of a [`State`]; a client sends none.
    pub(super) state: Option<u8>,
    /// Whether the mechanism is there, which only a server sends, and is NTLMSSP.
    pub(super) mechanism: Option<bool>,
    /// The token of the mechanism.
    pub(super) token: Option<&'a [u8]>,
    /// The code over the list of mechanisms.
    pub(super) list_mic: Option<&'a [u8]>,
}

impl<'a> Resp<'a> {
    pub(super) fn parse(token: &'a [u8]) -> Result<Self, Reason> {
        let mut fields = Der::new(token).enter(context(1))?.enter(SEQUENCE)?;
        let mut resp = Self::default();
        if let Some(mut state) = fields.enter_if(context(0))? {
            let [state] = state.take(ENUMERATED)? else { return Err(MALFORMED) };
            resp.state = Some(*state);
        }
        if let Some(mut mechanism) = fields.enter_if(context(1))? {
            resp.mechanism = Some(mechanism.take(OID)? == NTLMSSP);
        }
        if let Some(mut token) = fields.enter_if(context(2))? {
            resp.token = Some(token.take(OCTET_STRING)?);
        }
        if let Some(mut mic) = fields.enter_if(context(3))? {
            resp.list_mic = Some(mic.take(OCTET_STRING)?);
        }
        Ok(resp)
    }
}

/// A later token with its optional fields.
pub(super) fn resp(
    state: Option<State>,
    mechanism: Option<&[u8]>,
    token: Option<&[u8]>,
    list_mic: Option<&[u8]>,
) -> Vec<u8> {
    let field = |number, tag, content: Option<&[u8]>| {
        content
            .map_or_else(Vec::new, |content| element(context(number), &[&element(tag, &[content])]))
    };
    let state = state.map(|state| [state as u8]);
    let fields = [
        field(0, ENUMERATED, state.as_ref().map(|state| &state[..])),
        field(1, OID, mechanism),
        field(2, OCTET_STRING, token),
        field(3, OCTET_STRING, list_mic),
    ]
    .concat();
    element(context(1), &[&element(SEQUENCE, &[&fields])])
}

/// The token in a server's NEGOTIATE response: NTLMSSP and nothing else (MS-SPNG §3.2.5.2).
#[must_use]
pub fn hint() -> Vec<u8> {
    let name = element(context(0), &[&element(GENERAL_STRING, &[HINT_NAME])]);
    let hints = element(context(3), &[&element(SEQUENCE, &[&name])]);
    init(&list(&[NTLMSSP]), &hints)
}

/// The encoding of a list of mechanisms.
pub(super) fn list(mechanisms: &[&[u8]]) -> Vec<u8> {
    let oids: Vec<Vec<u8>> =
        mechanisms.iter().map(|mechanism| element(OID, &[mechanism])).collect();
    element(SEQUENCE, &[&oids.concat()])
}

/// A first token of a list and the fields after it.
fn init(list: &[u8], fields: &[u8]) -> Vec<u8> {
    let list = element(context(0), &[list]);
    let inner = element(context(0), &[&element(SEQUENCE, &[&list, fields])]);
    element(APPLICATION_0, &[&element(OID, &[SPNEGO]), &inner])
}

/// A client's first token.
#[cfg(any(test, feature = "client"))]
pub(super) fn client_init(list: &[u8], token: &[u8]) -> Vec<u8> {
    init(list, &element(context(2), &[&element(OCTET_STRING, &[token])]))
}
