//! Reports signed with the server's key, and their offline verification.

use crate::watch::Report;
use ring::signature::{ED25519, UnparsedPublicKey};
use serde::{Deserialize, Serialize};

/// Prefix of the signed text, so that a signature of this key is valid for reports only.
pub const SIGNED_PREFIX: &str = "weir signed report 1\n";

/// The only supported algorithm.
pub const ALGORITHM: &str = "Ed25519";

/// A report with a signature. The signed text is [`SIGNED_PREFIX`] followed by the text of the
/// report, byte for byte: verification does not depend on how JSON is formatted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SignedReport {
    /// Version of this format: 1.
    pub weir_signed_report: u32,
    /// Signature algorithm: `Ed25519`.
    pub algorithm: String,
    /// The server's public key, 64 hexadecimal digits.
    pub public_key: String,
    /// The signature, 128 hexadecimal digits.
    pub signature: String,
    /// A [`Report`] as JSON, in a string.
    pub report: String,
}

/// Why a signed report is not trusted.
#[derive(Debug, thiserror::Error)]
pub enum SignedReportError {
    /// The text is not a report that this version can verify.
    #[error("not a signed report that this version can verify: {0}")]
    Unreadable(String),
    /// The report was signed with another key.
    #[error("the report is signed by the key {found}, not by {wanted}")]
    OtherKey {
        /// The key in the file.
        found: String,
        /// The expected key.
        wanted: String,
    },
    /// The report was changed, or the signature belongs to another text.
    #[error("the signature is invalid: the report was changed after it was signed")]
    Forged,
}

impl SignedReport {
    /// The report, if its signature fits, and its key is `key` where one is given (hexadecimal).
    ///
    /// # Errors
    /// [`SignedReportError`].
    pub fn verify(&self, key: Option<&str>) -> Result<Report, SignedReportError> {
        let unreadable = |what: &str| SignedReportError::Unreadable(what.to_owned());
        if self.weir_signed_report != 1 || self.algorithm != ALGORITHM {
            return Err(unreadable("unsupported format version or algorithm"));
        }
        if let Some(wanted) = key
            && !wanted.trim().eq_ignore_ascii_case(&self.public_key)
        {
            let (found, wanted) = (self.public_key.clone(), wanted.trim().to_owned());
            return Err(SignedReportError::OtherKey { found, wanted });
        }
        let key: [u8; 32] =
            digits(&self.public_key).ok_or_else(|| unreadable("invalid public key"))?;
        let signature: [u8; 64] =
            digits(&self.signature).ok_or_else(|| unreadable("invalid signature format"))?;
        UnparsedPublicKey::new(&ED25519, key)
            .verify(signed_text(&self.report).as_bytes(), &signature)
            .map_err(|_| SignedReportError::Forged)?;
        serde_json::from_str(&self.report).map_err(|error| unreadable(&error.to_string()))
    }
}

/// The signed text of a report's JSON.
#[must_use]
pub fn signed_text(report: &str) -> String {
    format!("{SIGNED_PREFIX}{report}")
}

/// `bytes` as hexadecimal digits.
#[must_use]
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes encoded by hexadecimal digits, if the number of digits is right.
fn digits<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{REPORT_VERSION, Window};
    use ring::signature::{Ed25519KeyPair, KeyPair as _};

    fn signed() -> SignedReport {
        let key = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
        let report = Report {
            version: REPORT_VERSION,
            volume: "home".into(),
            volume_id: 1,
            pool: "fast".into(),
            server: "0.1.0".into(),
            made_at: 1_700_000_000,
            resolution_seconds: 60,
            whole: Window { error: Some(-0.25), ..Window::default() },
            recent: Vec::new(),
            periods: Vec::new(),
            conditions: Vec::new(),
            missing: Vec::new(),
        };
        let report = serde_json::to_string(&report).unwrap();
        SignedReport {
            weir_signed_report: 1,
            algorithm: ALGORITHM.to_owned(),
            public_key: hexadecimal(key.public_key().as_ref()),
            signature: hexadecimal(key.sign(signed_text(&report).as_bytes()).as_ref()),
            report,
        }
    }

    #[test]
    fn a_report_is_what_was_signed() {
        let signed = signed();
        assert_eq!(signed.verify(None).unwrap().volume, "home");
        let key = signed.public_key.to_uppercase();
        assert!(signed.verify(Some(&key)).is_ok());
        // Written and read again, it is the same text.
        let text = serde_json::to_string_pretty(&signed).unwrap();
        let again: SignedReport = serde_json::from_str(&text).unwrap();
        assert!(again.verify(None).is_ok());
    }

    #[test]
    fn a_report_that_weir_0_1_0_signed_is_valid() {
        let text = include_str!("../tests/fixtures/signed-report.json");
        let mut signed: SignedReport = serde_json::from_str(text).unwrap();
        let key = "7f6883d401782e609cb611048f6334c750cb1110e756fbbffc1fe09ae3f44f90";
        assert_eq!(signed.verify(Some(key)).unwrap().volume, "home");
        signed.report = signed.report.replacen("\"home\"", "\"work\"", 1);
        assert!(matches!(signed.verify(Some(key)), Err(SignedReportError::Forged)));
    }

    #[test]
    fn what_was_changed_is_found() {
        let good = signed();
        let forged = |change: &dyn Fn(&mut SignedReport)| {
            let mut changed = good.clone();
            change(&mut changed);
            changed.verify(None).unwrap_err()
        };
        let words = forged(&|one| one.report = one.report.replace("-0.25", "-0.01"));
        assert!(matches!(words, SignedReportError::Forged));
        let blank = forged(&|one| one.report.push(' '));
        assert!(matches!(blank, SignedReportError::Forged));
        let signature = forged(&|one| one.signature.replace_range(0..1, "x"));
        assert!(matches!(signature, SignedReportError::Unreadable(_)));
        let short = forged(&|one| one.public_key.truncate(60));
        assert!(matches!(short, SignedReportError::Unreadable(_)));
        let version = forged(&|one| one.weir_signed_report = 2);
        assert!(matches!(version, SignedReportError::Unreadable(_)));
        let other = good.verify(Some(&"00".repeat(32))).unwrap_err();
        assert!(matches!(other, SignedReportError::OtherKey { .. }));
    }

    #[test]
    fn bytes_and_digits_are_the_same() {
        assert_eq!(digits::<2>(&hexadecimal(&[0, 255])), Some([0, 255]));
        assert_eq!(digits::<2>("00f"), None);
        assert_eq!(digits::<2>("+1f0"), None);
    }
}
