//! Signing reports with the key of this data directory.

use ring::signature::{Ed25519KeyPair, KeyPair as _};
use weir_api::{ALGORITHM, Report, SignedReport, hexadecimal, signed_text};

/// The server's key.
pub(crate) struct Signer(Ed25519KeyPair);

impl Signer {
    /// The key pair whose secret seed is `secret` (RFC 8032 §5.1.5). None if it is invalid, which
    /// no seed of this length is.
    pub(crate) fn new(secret: &[u8; 32]) -> Option<Self> {
        Ed25519KeyPair::from_seed_unchecked(secret).ok().map(Self)
    }

    /// The public key, in hexadecimal digits.
    pub(crate) fn public_key(&self) -> String {
        hexadecimal(self.0.public_key().as_ref())
    }

    /// `report`, signed.
    ///
    /// # Errors
    /// None in practice: it writes to memory.
    pub(crate) fn sign(&self, report: &Report) -> serde_json::Result<SignedReport> {
        Ok(self.signed(serde_json::to_string(report)?))
    }

    fn signed(&self, report: String) -> SignedReport {
        let signature = self.0.sign(signed_text(&report).as_bytes());
        SignedReport {
            weir_signed_report: 1,
            algorithm: ALGORITHM.to_owned(),
            public_key: self.public_key(),
            signature: hexadecimal(signature.as_ref()),
            report,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key of the server that signed the report in `fixtures`.
    const SECRET: [u8; 32] = [
        0x1b, 0x73, 0x91, 0xfc, 0x4a, 0x9f, 0x43, 0x46, 0x14, 0x96, 0xa3, 0xeb, 0x59, 0x60, 0x50,
        0x5d, 0x14, 0x0a, 0xb9, 0x01, 0x91, 0xd0, 0xa8, 0x5f, 0xc3, 0x52, 0x09, 0x47, 0xe5, 0x2b,
        0x59, 0x2e,
    ];

    #[test]
    fn a_key_of_weir_0_1_0_signs_as_it_did() {
        let text = include_str!("../../../api/tests/fixtures/signed-report.json");
        let before: SignedReport = serde_json::from_str(text).unwrap();
        assert_eq!(Signer::new(&SECRET).unwrap().signed(before.report.clone()), before);
    }
}
