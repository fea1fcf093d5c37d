//! A histogram as pairs of value and count: how it crosses from one process to another.

use super::recorder::histogram;
use hdrhistogram::Histogram;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

/// Digits that the histograms which cross have.
const DIGITS: u8 = 3;
/// Most buckets that such a histogram can have in use.
const BUCKETS_MAX: usize = 100_000;

/// Writes the buckets in use.
pub(super) fn serialize<S: Serializer>(
    histogram: &Histogram<u64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let used = histogram.iter_recorded();
    serializer.collect_seq(used.map(|step| (step.value_iterated_to(), step.count_at_value())))
}

/// Reads them back.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Histogram<u64>, D::Error> {
    let pairs = Vec::<(u64, u64)>::deserialize(deserializer)?;
    if pairs.len() > BUCKETS_MAX {
        return Err(D::Error::custom("a histogram with more buckets than there are"));
    }
    let mut all = histogram(DIGITS);
    for (value, count) in pairs {
        all.saturating_record_n(value, count);
    }
    Ok(all)
}
