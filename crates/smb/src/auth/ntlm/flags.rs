//! Flags of the negotiation (MS-NLMP §2.2.2.5).

use bitflags::bitflags;

bitflags! {
    /// `NegotiateFlags`, as far as they have a meaning here.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Flags: u32 {
        /// Names are in UTF-16.
        const UNICODE = 1;
        /// The server shall give its name.
        const REQUEST_TARGET = 1 << 2;
        /// Messages can be signed.
        const SIGN = 1 << 4;
        /// Messages can be sealed.
        const SEAL = 1 << 5;
        /// The protocol NTLM.
        const NTLM = 1 << 9;
        /// Messages have signatures, which may be dummies.
        const ALWAYS_SIGN = 1 << 15;
        /// The name in a CHALLENGE is that of a server.
        const TARGET_TYPE_SERVER = 1 << 17;
        /// The keys and signatures of NTLMv2.
        const EXTENDED_SESSION_SECURITY = 1 << 19;
        /// The CHALLENGE has pairs of names and values.
        const TARGET_INFO = 1 << 23;
        /// The message has a version. Its value has no effect, but some clients leave its eight
        /// bytes out of AUTHENTICATE if the CHALLENGE has no version, which moves the MIC.
        const VERSION = 1 << 25;
        /// Keys of 128 bits.
        const KEYS_128 = 1 << 29;
        /// The client chooses the session key.
        const KEY_EXCHANGE = 1 << 30;
        /// Keys of 56 bits; without effect beside [`Flags::KEYS_128`].
        const KEYS_56 = 1 << 31;
    }
}

impl Flags {
    /// The flags without which no login is accepted.
    pub(super) const REQUIRED: Self =
        Self::UNICODE.union(Self::EXTENDED_SESSION_SECURITY).union(Self::KEYS_128);

    /// Flags that a CHALLENGE repeats if the client set them.
    const REPEATED: Self = Self::REQUEST_TARGET
        .union(Self::SIGN)
        .union(Self::SEAL)
        .union(Self::ALWAYS_SIGN)
        .union(Self::VERSION)
        .union(Self::KEYS_128)
        .union(Self::KEY_EXCHANGE)
        .union(Self::KEYS_56);

    /// The flags of the CHALLENGE that answers these.
    pub(super) fn answered(self) -> Self {
        let ours = Self::UNICODE
            .union(Self::NTLM)
            .union(Self::EXTENDED_SESSION_SECURITY)
            .union(Self::TARGET_INFO);
        let target = if self.contains(Self::REQUEST_TARGET) {
            Self::TARGET_TYPE_SERVER
        } else {
            Self::empty()
        };
        self.intersection(Self::REPEATED).union(ours).union(target)
    }

    /// Does the client choose the session key (MS-NLMP §3.2.5.1.2)?
    pub(super) fn exchanges_key(self) -> bool {
        self.contains(Self::KEY_EXCHANGE) && self.intersects(Self::SIGN.union(Self::SEAL))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The flags of Windows 10 in "SMB 2 and SMB 3 security in Windows 10".
    #[test]
    fn the_answer_to_a_windows_client() {
        let client = Flags::from_bits_retain(0xE208_8297);
        assert_eq!(client.answered().bits(), 0xE28A_8215);
    }

    #[test]
    fn a_key_is_exchanged_only_where_it_is_used() {
        assert!((Flags::KEY_EXCHANGE | Flags::SIGN).exchanges_key());
        assert!((Flags::KEY_EXCHANGE | Flags::SEAL).exchanges_key());
        assert!(!(Flags::KEY_EXCHANGE | Flags::ALWAYS_SIGN).exchanges_key());
        assert!(!(Flags::SIGN | Flags::SEAL).exchanges_key());
    }
}
