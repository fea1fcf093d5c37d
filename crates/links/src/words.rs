//! The words of gateways and helpers as messages of a link: the question for a promise, the
//! promise, the question to a helper and its word.
//!
//! A word is its version (16 bits), its kind (8 bits) and its fields, all numbers big-endian. What
//! has a newer version than this program's is told apart from what is malformed, because it is no
//! fault: the receiver ignores it.

use crate::bytes::{Rest, TooShort, put_life};
use weir_cluster::{Asked, Body, HelperWord, Life, MachineId, Message, Version};
use weir_core::Mono;

const ASK: u8 = 1;
const PROMISE: u8 = 2;
const QUESTION: u8 = 3;
const HELPER_WORD: u8 = 4;

/// A word on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// From a gateway to a gateway.
    Message(Message),
    /// From a gateway to the helper on another gateway's machine: does a life of it run?
    Question {
        /// The version of the question.
        version: Version,
        /// The life that asks.
        by: Life,
        /// The time on its clock, to return with the answer.
        at: Mono,
    },
    /// From a helper to a gateway.
    Helper(HelperWord),
}

/// Bytes that are no word of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WordError {
    /// They are a word of a newer version.
    #[error("a word of version {0}, which this program does not know")]
    Newer(Version),
    /// They are no word.
    #[error("the word is malformed")]
    Malformed,
}

impl From<TooShort> for WordError {
    fn from(_: TooShort) -> Self {
        Self::Malformed
    }
}

impl Word {
    /// The bytes of the word.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Self::Message(Message { version, from, body: Body::Ask { asked, in_vain } }) => {
                begin(&mut bytes, *version, ASK);
                put_life(&mut bytes, *from);
                put_time(&mut bytes, *asked);
                bytes.push((*in_vain).into());
            }
            Self::Message(Message { version, from, body: Body::Promise { to, asked } }) => {
                begin(&mut bytes, *version, PROMISE);
                put_life(&mut bytes, *from);
                put_life(&mut bytes, *to);
                put_time(&mut bytes, *asked);
            }
            Self::Question { version, by, at } => {
                begin(&mut bytes, *version, QUESTION);
                put_life(&mut bytes, *by);
                put_time(&mut bytes, *at);
            }
            Self::Helper(HelperWord { version, machine, life, runs, answers }) => {
                begin(&mut bytes, *version, HELPER_WORD);
                bytes.extend(machine.0.to_be_bytes());
                put_life(&mut bytes, *life);
                bytes.push((*runs).into());
                bytes.push(answers.is_some().into());
                if let Some(Asked { by, at, noted }) = answers {
                    put_life(&mut bytes, *by);
                    put_time(&mut bytes, *at);
                    bytes.push((*noted).into());
                }
            }
        }
        bytes
    }

    /// The word in `bytes`.
    ///
    /// # Errors
    /// They are none, or one of a newer version.
    pub fn decode(bytes: &[u8]) -> Result<Self, WordError> {
        let mut rest = Rest(bytes);
        let version = rest.version()?;
        if version > Version::CURRENT {
            return Err(WordError::Newer(version));
        }
        let [kind] = rest.take()?;
        let word = match kind {
            ASK => {
                let from = rest.life()?;
                let body = Body::Ask { asked: rest.time()?, in_vain: rest.truth()? };
                Self::Message(Message { version, from, body })
            }
            PROMISE => {
                let from = rest.life()?;
                let body = Body::Promise { to: rest.life()?, asked: rest.time()? };
                Self::Message(Message { version, from, body })
            }
            QUESTION => Self::Question { version, by: rest.life()?, at: rest.time()? },
            HELPER_WORD => {
                let machine = MachineId(u64::from_be_bytes(rest.take()?));
                let (life, runs) = (rest.life()?, rest.truth()?);
                let answers = if rest.truth()? { Some(rest.asked()?) } else { None };
                Self::Helper(HelperWord { version, machine, life, runs, answers })
            }
            _ => return Err(WordError::Malformed),
        };
        // A version is known by its number alone, so nothing may follow.
        if rest.0.is_empty() { Ok(word) } else { Err(WordError::Malformed) }
    }
}

fn begin(bytes: &mut Vec<u8>, version: Version, kind: u8) {
    bytes.extend(version.0.to_be_bytes());
    bytes.push(kind);
}

fn put_time(bytes: &mut Vec<u8>, time: Mono) {
    bytes.extend(time.0.to_be_bytes());
}

impl Rest<'_> {
    fn time(&mut self) -> Result<Mono, TooShort> {
        self.take().map(u64::from_be_bytes).map(Mono)
    }

    fn truth(&mut self) -> Result<bool, WordError> {
        match self.take()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(WordError::Malformed),
        }
    }

    fn asked(&mut self) -> Result<Asked, WordError> {
        Ok(Asked { by: self.life()?, at: self.time()?, noted: self.truth()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_cluster::GatewayId;

    fn lives() -> impl Strategy<Value = Life> {
        (any::<u16>(), any::<u32>())
            .prop_map(|(gateway, number)| Life { gateway: GatewayId(gateway), number })
    }

    fn times() -> impl Strategy<Value = Mono> {
        any::<u64>().prop_map(Mono)
    }

    fn words() -> impl Strategy<Value = Word> {
        let version = Version::CURRENT;
        let message = move |from, body| Word::Message(Message { version, from, body });
        let helper = move |(machine, life, runs, answers)| {
            Word::Helper(HelperWord { version, machine: MachineId(machine), life, runs, answers })
        };
        let asked =
            (lives(), times(), any::<bool>()).prop_map(|(by, at, noted)| Asked { by, at, noted });
        prop_oneof![
            (lives(), times(), any::<bool>()).prop_map(move |(from, asked, in_vain)| message(
                from,
                Body::Ask { asked, in_vain }
            )),
            (lives(), lives(), times())
                .prop_map(move |(from, to, asked)| message(from, Body::Promise { to, asked })),
            (lives(), times()).prop_map(move |(by, at)| Word::Question { version, by, at }),
            (any::<u64>(), lives(), any::<bool>(), proptest::option::of(asked)).prop_map(helper),
        ]
    }

    proptest! {
        #[test]
        fn words_are_read_as_they_were_written(word in words()) {
            let bytes = word.encode();
            prop_assert_eq!(Word::decode(&bytes), Ok(word));
            for length in 0..bytes.len() {
                prop_assert_eq!(Word::decode(&bytes[..length]), Err(WordError::Malformed));
            }
            let longer = [bytes.as_slice(), &[0]].concat();
            prop_assert_eq!(Word::decode(&longer), Err(WordError::Malformed));
        }

        #[test]
        fn no_bytes_are_misread(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let near = [[0, 1].as_slice(), &bytes].concat();
            for bytes in [bytes, near] {
                if let Ok(word) = Word::decode(&bytes) {
                    prop_assert_eq!(word.encode(), bytes);
                }
            }
        }
    }

    #[test]
    fn the_bytes_of_words_stay_the_same() {
        let from = Life { gateway: GatewayId(1), number: 2 };
        let to = Life { gateway: GatewayId(3), number: 4 };
        let version = Version(1);
        let message = |body| Word::Message(Message { version, from, body }).encode();
        let ask = message(Body::Ask { asked: Mono(5), in_vain: true });
        assert_eq!(ask, b"\0\x01\x01\0\x01\0\0\0\x02\0\0\0\0\0\0\0\x05\x01");
        let promise = message(Body::Promise { to, asked: Mono(5) });
        assert_eq!(promise, b"\0\x01\x02\0\x01\0\0\0\x02\0\x03\0\0\0\x04\0\0\0\0\0\0\0\x05");
        let question = Word::Question { version, by: from, at: Mono(6) };
        assert_eq!(question.encode(), b"\0\x01\x03\0\x01\0\0\0\x02\0\0\0\0\0\0\0\x06");
        let answers = Some(Asked { by: to, at: Mono(7), noted: false });
        let word = HelperWord { version, machine: MachineId(8), life: from, runs: true, answers };
        assert_eq!(
            Word::Helper(word).encode(),
            b"\0\x01\x04\0\0\0\0\0\0\0\x08\0\x01\0\0\0\x02\x01\x01\0\x03\0\0\0\x04\0\0\0\0\0\0\0\x07\0"
        );
        // And they are read as what they were written for.
        assert_eq!(Word::decode(&Word::Helper(word).encode()), Ok(Word::Helper(word)));
        for (bytes, body) in [
            (ask, Body::Ask { asked: Mono(5), in_vain: true }),
            (promise, Body::Promise { to, asked: Mono(5) }),
        ] {
            assert_eq!(Word::decode(&bytes), Ok(Word::Message(Message { version, from, body })));
        }
    }

    #[test]
    fn a_word_of_a_newer_version_is_no_fault() {
        let newer = Version(Version::CURRENT.0 + 1);
        let bytes = [newer.0.to_be_bytes().as_slice(), &[99, 1, 2, 3]].concat();
        assert_eq!(Word::decode(&bytes), Err(WordError::Newer(newer)));
    }
}
