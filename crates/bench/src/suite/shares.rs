//! Rates that are a share of what an earlier step reached.

use std::collections::BTreeMap;
use weir_load::workload::{Rate, Workload};

/// The loads with numbers in place of shares. `reached` has the operations a second of the steps
/// before.
///
/// # Errors
/// A sentence that says which step has no figures.
pub(super) fn resolve(
    loads: &[Workload],
    reached: &BTreeMap<String, f64>,
) -> Result<Vec<Workload>, String> {
    let resolved = |load: &Workload| {
        let mut load = load.clone();
        if let Rate::Share { of, percent } = &load.rate {
            let iops = reached.get(of).filter(|iops| **iops > 0.0).ok_or_else(|| {
                format!("its rate is {percent} % of that of step {of:?}, which has no result")
            })?;
            load.rate = Rate::Operations(iops * percent / 100.0);
        }
        Ok(load)
    };
    loads.iter().map(resolved).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_becomes_a_number_and_other_rates_stay() {
        let share = |percent| Rate::Share { of: "max".to_owned(), percent };
        let load = |rate| Workload { rate, ..Workload::default() };
        let reached = BTreeMap::from([("max".to_owned(), 5000.0), ("dead".to_owned(), 0.0)]);
        let loads = [load(share(40.0)), load(Rate::Bytes(7.0))];
        let resolved = resolve(&loads, &reached).unwrap();
        assert_eq!(resolved[0].rate, Rate::Operations(2000.0));
        assert_eq!(resolved[1].rate, Rate::Bytes(7.0));
        for of in ["dead", "none"] {
            let rate = Rate::Share { of: of.to_owned(), percent: 1.0 };
            let complaint = resolve(&[load(rate)], &reached).unwrap_err();
            assert!(complaint.contains(of), "{complaint}");
        }
    }
}
