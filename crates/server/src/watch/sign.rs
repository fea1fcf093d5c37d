//! Signing reports with the key of this data directory.

use ed25519_dalek::{Signer as _, SigningKey};
use weir_api::{ALGORITHM, Report, SignedReport, hexadecimal, signed_text};

/// The server's key.
pub(crate) struct Signer(SigningKey);

impl Signer {
    /// The key that `secret` is.
    pub(crate) fn new(secret: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(secret))
    }

    /// The public key, in hexadecimal digits.
    pub(crate) fn public_key(&self) -> String {
        hexadecimal(self.0.verifying_key().as_bytes())
    }

    /// `report`, signed.
    ///
    /// # Errors
    /// None in practice: it writes to memory.
    pub(crate) fn sign(&self, report: &Report) -> serde_json::Result<SignedReport> {
        let report = serde_json::to_string(report)?;
        let signature = self.0.sign(signed_text(&report).as_bytes());
        Ok(SignedReport {
            weir_signed_report: 1,
            algorithm: ALGORITHM.to_owned(),
            public_key: self.public_key(),
            signature: hexadecimal(&signature.to_bytes()),
            report,
        })
    }
}
