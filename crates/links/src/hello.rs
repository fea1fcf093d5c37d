//! The introduction at the begin of a link: the dialling gateway, and the versions of the messages
//! that both know.
//!
//! The gateway that dialled sends a [`Hello`], the other an [`Answer`], each in a frame of its own.
//! These two never change: a later version of Weir adds versions of what follows them.

use crate::bytes::{Rest, TooShort, put_life};
use weir_cluster::{Life, Version};

/// The begin of a hello.
const MAGIC: &[u8; 8] = b"WEIRLINK";
/// Oldest version of the messages that this program knows. The newest is [`Version::CURRENT`].
pub const VERSION_OLDEST: Version = Version(1);
/// Longest reason of a refusal, in bytes.
const REASON_BYTES_MAX: usize = 512;

const WELCOME: u8 = 1;
const REFUSAL: u8 = 2;

/// The introduction of the gateway that dials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The dialling life; of a helper, its gateway with the number 0.
    pub from: Life,
    /// The oldest version of the messages that it knows.
    pub oldest: Version,
    /// The newest.
    pub newest: Version,
}

/// The answer to a [`Hello`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The link is open.
    Welcome {
        /// The dialled life; of a helper, its gateway with the number 0.
        from: Life,
        /// The version of the messages that follow.
        version: Version,
    },
    /// The link is closed after this.
    Refusal {
        /// Why, in words.
        reason: String,
    },
}

/// Bytes that are no introduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the introduction is malformed")]
pub struct Malformed;

impl From<TooShort> for Malformed {
    fn from(_: TooShort) -> Self {
        Self
    }
}

impl Hello {
    /// The introduction of `from`, who runs this program.
    #[must_use]
    pub fn of(from: Life) -> Self {
        Self { from, oldest: VERSION_OLDEST, newest: Version::CURRENT }
    }

    /// The bytes of the introduction.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.oldest.0.to_be_bytes());
        bytes.extend(self.newest.0.to_be_bytes());
        put_life(&mut bytes, self.from);
        bytes
    }

    /// The introduction in `bytes`.
    ///
    /// # Errors
    /// It is none.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut rest = Rest(bytes.strip_prefix(MAGIC).ok_or(Malformed)?);
        let (oldest, newest) = (rest.version()?, rest.version()?);
        let from = rest.life()?;
        if rest.0.is_empty() { Ok(Self { from, oldest, newest }) } else { Err(Malformed) }
    }

    /// The answer of `own`: the newest version that both know, or the reason why there can be no
    /// link.
    #[must_use]
    pub fn answer(&self, own: Life) -> Answer {
        let (from, to) = (self.from.gateway, own.gateway);
        let reason = if from == to {
            format!("this is gateway {to}: another process has its number")
        } else if self.newest < VERSION_OLDEST || self.oldest > Version::CURRENT {
            format!(
                "gateway {to} knows versions {VERSION_OLDEST} to {} of messages, and gateway {from} \
                 versions {} to {}: upgrade the older one first to a version between",
                Version::CURRENT,
                self.oldest,
                self.newest
            )
        } else {
            let version = self.newest.min(Version::CURRENT);
            return Answer::Welcome { from: own, version };
        };
        Answer::Refusal { reason }
    }
}

impl Answer {
    /// The bytes of the answer.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Self::Welcome { from, version } => {
                bytes.push(WELCOME);
                bytes.extend(version.0.to_be_bytes());
                put_life(&mut bytes, *from);
            }
            Self::Refusal { reason } => {
                bytes.push(REFUSAL);
                bytes.extend(reason.bytes().take(REASON_BYTES_MAX));
            }
        }
        bytes
    }

    /// The answer in `bytes`.
    ///
    /// # Errors
    /// It is none, or welcomes in a version that this program does not know.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut rest = Rest(bytes);
        match rest.take()? {
            [WELCOME] => {
                let (version, from) = (rest.version()?, rest.life()?);
                let is_known = (VERSION_OLDEST..=Version::CURRENT).contains(&version);
                if is_known && rest.0.is_empty() {
                    Ok(Self::Welcome { from, version })
                } else {
                    Err(Malformed)
                }
            }
            // The words of a peer may be shown on a terminal.
            [REFUSAL] if rest.0.len() <= REASON_BYTES_MAX => {
                let reason = String::from_utf8_lossy(rest.0);
                let reason = reason.chars().filter(|c| !c.is_control()).collect();
                Ok(Self::Refusal { reason })
            }
            _ => Err(Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_cluster::GatewayId;

    fn life(gateway: u16, number: u32) -> Life {
        Life { gateway: GatewayId(gateway), number }
    }

    fn between(oldest: u16, newest: u16) -> Hello {
        Hello { from: life(1, 2), oldest: Version(oldest), newest: Version(newest) }
    }

    #[test]
    fn introductions_are_read_as_they_were_written() {
        let hello = Hello { from: life(u16::MAX, u32::MAX), ..between(1, 0xfffe) };
        let bytes = hello.encode();
        assert_eq!(Hello::decode(&bytes), Ok(hello));
        let welcome = Answer::Welcome { from: life(2, 7), version: Version::CURRENT };
        assert_eq!(Answer::decode(&welcome.encode()), Ok(welcome.clone()));
        for whole in [bytes, welcome.encode()] {
            for length in 0..whole.len() {
                assert_eq!(Hello::decode(&whole[..length]), Err(Malformed));
                assert!(Answer::decode(&whole[..length]).is_err() || whole[0] != WELCOME);
            }
            let longer = [whole.as_slice(), &[0]].concat();
            assert_eq!(Hello::decode(&longer), Err(Malformed));
        }
    }

    #[test]
    fn the_bytes_of_the_introduction_stay_the_same() {
        assert_eq!(between(1, 3).encode(), b"WEIRLINK\0\x01\0\x03\0\x01\0\0\0\x02");
        let welcome = Answer::Welcome { from: life(2, 3), version: Version(1) };
        assert_eq!(welcome.encode(), b"\x01\0\x01\0\x02\0\0\0\x03");
        let refusal = Answer::Refusal { reason: "no".to_owned() };
        assert_eq!(refusal.encode(), b"\x02no");
    }

    #[test]
    fn a_gateway_of_the_first_version_is_understood_and_understands() {
        // Bytes of commit db8735a3.
        let landed = b"WEIRLINK\0\x01\0\x01\0\x01\0\0\0\x02";
        let hello = Hello::decode(landed).unwrap();
        assert_eq!(hello, between(1, 1));
        let welcome = hello.answer(life(2, 3)).encode();
        assert_eq!(welcome, b"\x01\0\x01\0\x02\0\0\0\x03");
        let welcome = Answer::Welcome { from: life(2, 3), version: Version(1) };
        assert_eq!(Answer::decode(b"\x01\0\x01\0\x02\0\0\0\x03"), Ok(welcome));
    }

    #[test]
    fn the_newest_version_of_both_is_spoken() {
        let own = life(2, 1);
        let dialled = |oldest, newest| between(oldest, newest).answer(own);
        let welcome = |version| Answer::Welcome { from: own, version };
        assert_eq!(dialled(1, 1), welcome(Version(1)));
        assert_eq!(dialled(0, 9), welcome(Version::CURRENT), "a newer gateway and this one");
        let newer = Version::CURRENT.0 + 1;
        let Answer::Refusal { reason } = dialled(newer, 9) else {
            panic!("a gateway that knows no version of ours is welcome")
        };
        assert!(reason.contains(&format!("gateway 1 versions {newer} to 9")), "{reason}");
        assert!(matches!(dialled(0, 0), Answer::Refusal { .. }));
    }

    #[test]
    fn two_processes_of_one_number_are_told_so() {
        let Answer::Refusal { reason } = between(1, 1).answer(life(1, 1)) else {
            panic!("a process of the same number is welcome")
        };
        assert!(reason.contains("another process has its number"), "{reason}");
    }

    #[test]
    fn a_refusal_has_bounded_plain_words() {
        let reason = "\x1b[31mno\n".repeat(400);
        let Answer::Refusal { reason } =
            Answer::decode(&Answer::Refusal { reason }.encode()).unwrap()
        else {
            panic!("a refusal is read as a welcome")
        };
        assert!(reason.len() <= REASON_BYTES_MAX && !reason.contains(['\x1b', '\n']));
        assert_eq!(Answer::decode(&[&[REFUSAL], [b'a'; 513].as_slice()].concat()), Err(Malformed));
    }

    proptest! {
        #[test]
        fn no_bytes_are_misread(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(hello) = Hello::decode(&bytes) {
                prop_assert_eq!(hello.encode(), bytes);
            } else if let Ok(welcome @ Answer::Welcome { .. }) = Answer::decode(&bytes) {
                prop_assert_eq!(welcome.encode(), bytes);
            }
        }
    }
}
