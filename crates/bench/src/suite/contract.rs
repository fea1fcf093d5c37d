//! The limits that contracts of Weir volumes set to a test, said before it starts.

use super::wanted::Wanted;
use std::collections::{BTreeMap, BTreeSet};
use weir_report::figure;
use weir_results::Contract;
use weir_scenario::scenario::{Scenario, Step};

/// A rate up to so many times the contract is the contract itself, as it was measured: tests that
/// are about a contract publish up to 2.7 % more than its limit.
const ABOUT: f64 = 1.03;

/// Sentences about the steps of `scenario` whose published or asked rates are above the contracts
/// of their volumes; `contracts` are by the name of the target.
#[must_use]
pub fn above_contracts(scenario: &Scenario, contracts: &BTreeMap<String, Contract>) -> Vec<String> {
    let published = farthest_above(scenario, contracts, Wanted::of);
    let asked = farthest_above(scenario, contracts, Wanted::asked);
    let published = published.map(|above| format!("published for {above}"));
    let asked = asked.map(|above| format!("asked for by {above}"));
    let told = published.into_iter().chain(asked);
    told.map(|above| {
        format!(
            "{}: {above}. The contract will be the limit, not the server; `weir size` gives the \
             quota and the level for a rate",
            scenario.name
        )
    })
    .collect()
}

/// The step whose rate is above its limit by the greatest factor, with both in words.
fn farthest_above<'a>(
    scenario: &'a Scenario,
    contracts: &BTreeMap<String, Contract>,
    wanted: impl Fn(&'a Step) -> Option<Wanted<'a>>,
) -> Option<String> {
    let mut farthest: Option<(f64, String)> = None;
    for step in scenario.steps.iter().filter(|step| moves_data(step)) {
        let Some((wanted, limit)) = wanted(step).zip(Limit::of(step, contracts)) else { continue };
        let rates = [(wanted.mibps, Some(limit.mibps), "MiB/s"), (wanted.iops, limit.iops, "IOPS")];
        for (rate, most, unit) in rates {
            let Some(most) = most.filter(|most| rate > *most * ABOUT) else { continue };
            if farthest.as_ref().is_none_or(|(times, _)| rate / most > *times) {
                let (name, permits) = (wanted.name, limit.permits());
                let (rate_words, most_words) = (figure(rate), figure(most));
                let words = format!("step {name}: {rate_words} {unit}; {permits} {most_words}");
                farthest = Some((rate / most, words));
            }
        }
    }
    farthest.map(|(_, words)| words)
}

fn moves_data(step: &Step) -> bool {
    step.loads.iter().all(weir_load::workload::Workload::moves_data)
}

/// The contracts of all volumes of a step, added.
struct Limit {
    volumes: Vec<String>,
    mibps: f64,
    /// Absent if one of the volumes has no limit.
    iops: Option<f64>,
}

impl Limit {
    /// Nothing if the contract of one target is not known.
    fn of(step: &Step, contracts: &BTreeMap<String, Contract>) -> Option<Self> {
        let targets: BTreeSet<&str> = step.loads.iter().map(|load| &*load.target).collect();
        let mut all = Self { volumes: Vec::new(), mibps: 0.0, iops: Some(0.0) };
        for target in targets {
            let contract = contracts.get(target)?;
            if all.volumes.contains(&contract.volume) {
                continue;
            }
            all.volumes.push(contract.volume.clone());
            all.mibps += as_rate(contract.bytes_per_second) / 1_048_576.0;
            all.iops = all.iops.zip(contract.iops).map(|(sum, one)| sum + as_rate(one));
        }
        Some(all)
    }

    fn permits(&self) -> String {
        match self.volumes.as_slice() {
            [one] => format!("the contract of volume {one} permits"),
            all => format!("the contracts of volumes {} permit together", all.join(", ")),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "limits are far below 2^53")]
fn as_rate(limit: u64) -> f64 {
    limit as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::testing::{scenario, step};
    use weir_load::workload::{Rate, Workload};
    use weir_scenario::scenario::Published;

    fn contracts(of: &[(&str, &str, u64, Option<u64>)]) -> BTreeMap<String, Contract> {
        let contract = |(target, volume, mib, iops): &(&str, &str, u64, Option<u64>)| {
            let contract = Contract {
                volume: (*volume).to_owned(),
                bytes_per_second: mib << 20,
                iops: *iops,
                base_iops: None,
            };
            ((*target).to_owned(), contract)
        };
        of.iter().map(contract).collect()
    }

    fn test(loads: Vec<Workload>, published: Option<Published>) -> Scenario {
        let step = Step { loads, published, ..step("large") };
        Scenario { steps: vec![step], ..scenario(&[]) }
    }

    fn load(target: &str, rate: Rate) -> Workload {
        Workload { target: target.to_owned(), block_bytes: 65_536, rate, ..Workload::default() }
    }

    #[test]
    fn a_published_rate_above_the_contract_is_told_before_the_run() {
        let published = |mibps| Some(Published { mibps: Some(mibps), ..Published::default() });
        let test = |mibps| test(vec![load("", Rate::Unlimited)], published(mibps));
        let told = above_contracts(&test(4500.0), &contracts(&[("", "vol", 128, None)]));
        assert_eq!(told.len(), 1, "{told:?}");
        for part in ["published for step large: 4\u{2009}500 MiB/s", "volume vol permits 128."] {
            assert!(told[0].contains(part), "{part}: {told:?}");
        }
        assert_eq!(above_contracts(&test(128.0), &contracts(&[("", "vol", 128, None)])), [""; 0]);
        // 128 MiB/s in blocks of 64 KiB are 2,048 operations a second.
        let told = above_contracts(&test(128.0), &contracts(&[("", "vol", 500, Some(1900))]));
        assert!(
            told[0].contains("2\u{2009}048 IOPS") && told[0].contains("permits 1\u{2009}900."),
            "{told:?}"
        );
        assert_eq!(above_contracts(&test(4500.0), &BTreeMap::new()), [""; 0]);
    }

    #[test]
    fn small_limits_keep_their_digits_and_tests_about_a_contract_have_no_note() {
        let rate = |mibps: f64| test(vec![load("", Rate::Bytes(mibps * 1_048_576.0))], None);
        let quarter = BTreeMap::from([(
            String::new(),
            Contract { volume: "vol".to_owned(), bytes_per_second: 1 << 18, ..Contract::default() },
        )]);
        let told = above_contracts(&rate(2.0), &quarter);
        assert!(told[0].contains("2.00 MiB/s; ") && told[0].contains("permits 0.25."), "{told:?}");
        let of = |name: &str, kib: u64| {
            let contract = Contract { bytes_per_second: kib << 10, ..Contract::default() };
            let scenario = weir_scenario::catalogue::scenario(name).unwrap();
            above_contracts(&scenario, &[(String::new(), contract)].into())
        };
        assert_eq!(of("anf-qos-auto-100gib", 1600), [""; 0]);
        assert_eq!(of("anf-qos-pair-3tib", 48 << 10), [""; 0]);
        assert_eq!(of("anf-qos-pair-3tib", 16 << 10).len(), 1, "another contract");
    }

    #[test]
    fn targets_on_one_volume_have_its_contract_once() {
        let rate = Rate::Bytes(100.0 * 1_048_576.0);
        let test = test(vec![load("a", rate.clone()), load("b", rate)], None);
        let told =
            above_contracts(&test, &contracts(&[("a", "vol", 128, None), ("b", "vol", 128, None)]));
        assert!(told.len() == 1 && told[0].contains("volume vol permits 128."), "{told:?}");
    }

    #[test]
    fn contracts_of_several_volumes_count_together_and_only_if_all_are_known() {
        let rate = Rate::Bytes(100.0 * 1_048_576.0);
        let test = test(vec![load("a", rate.clone()), load("b", rate)], None);
        let both = |mib| contracts(&[("a", "va", mib, None), ("b", "vb", 64, Some(1))]);
        let told = above_contracts(&test, &both(128));
        assert_eq!(told.len(), 1, "{told:?}");
        for part in ["asked for by step large: 200 MiB/s", "volumes va, vb permit together 192."] {
            assert!(told[0].contains(part), "{part}: {told:?}");
        }
        assert_eq!(above_contracts(&test, &both(136)), [""; 0], "200 MiB/s");
        assert_eq!(above_contracts(&test, &contracts(&[("a", "va", 1, None)])), [""; 0]);
    }
}
