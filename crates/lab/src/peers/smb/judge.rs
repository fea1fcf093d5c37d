//! The SMB rows judged. Nothing here measures or prints.

use super::super::judge::{Bar, BarVerdict, Figures, at_least, at_most, judge};
use super::plan::{Or, Trial};
use super::{Servers, protection};
use crate::disk::Filesystem;
use crate::judge::Check;
use serde::Serialize;

/// The names of the bars.
pub(super) const CPU_RATIO: &str = "Weir ÷ smbd, CPU per operation";
pub(super) const RATE_RATIO: &str = "Weir ÷ smbd, operations per second";

/// How much of the cost of a cipher alone a protected operation may cost more than a plain one.
const CIPHER_FACTOR: f64 = 1.25;

/// Measured costs that a row is judged by besides its own, in µs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known {
    /// Of Weir in the row without protection.
    pub(crate) plain_us: Option<f64>,
    /// Of the cipher alone.
    pub(crate) openssl_us: Option<f64>,
}

/// One workload.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    /// The workload.
    pub(crate) workload: &'static str,
    /// The file system.
    pub(crate) filesystem: Filesystem,
    /// The protection of messages, in words.
    pub(crate) protection: &'static str,
    /// Weir.
    pub(crate) weir: Figures,
    /// smbd.
    pub(crate) smbd: Figures,
    /// The bare loop, with the like load over NFS.
    pub(crate) bare: Figures,
    /// The cost of the cipher alone, in µs, where messages are protected.
    pub(crate) openssl_us: Option<f64>,
    /// The highest processor time per request of smbd at which the row counts, in µs; absent where
    /// that is not known.
    pub(crate) smbd_bound_us: Option<f64>,
    /// The bars.
    pub(crate) bars: Vec<Bar>,
}

impl Row {
    /// Judges one workload, measured on Weir, smbd and the bare loop.
    pub(super) fn new(
        trial: &Trial,
        filesystem: Filesystem,
        [weir, smbd, bare]: Servers,
        known: Known,
    ) -> Self {
        let bare_us = bare.median.server_us;
        let smbd_bound_us = trial.smbd_bound_us(bare_us);
        let untuned = smbd_bound_us.is_some_and(|bound| smbd.median.server_us > bound);
        let void = if untuned {
            Some("smbd costs more than 1.15 times its known ratio to the bare loop")
        } else if smbd.median.generator_saturated || weir.median.generator_saturated {
            Some("the generator was the limit")
        } else {
            None
        };
        let smbd_us = smbd.median.server_us;
        let other_way = match trial.or {
            Or::Nothing => None,
            Or::Bare(factor) => Some(factor * bare_us / smbd_us),
            Or::Cipher { .. } => known
                .plain_us
                .zip(known.openssl_us)
                .map(|(plain, cipher)| CIPHER_FACTOR.mul_add(cipher, plain) / smbd_us),
        };
        let allowed = other_way.map_or(trial.cpu_ratio, |ratio| ratio.max(trial.cpu_ratio));
        let cpu = weir.median.server_us / smbd_us;
        let rate = weir.median.iops / smbd.median.iops;
        let bars = vec![
            judge(CPU_RATIO, cpu, Some(allowed), void.filter(|_| untuned), at_most),
            judge(RATE_RATIO, rate, Some(trial.rate_ratio), void, at_least),
        ];
        Self {
            workload: trial.name,
            filesystem,
            protection: protection(trial.security),
            weir,
            smbd,
            bare,
            openssl_us: known.openssl_us,
            smbd_bound_us,
            bars,
        }
    }

    /// The bar of this name.
    pub(super) fn bar(&self, what: &str) -> Option<&Bar> {
        self.bars.iter().find(|bar| bar.what == what)
    }
}

/// Every bar as a rule.
pub(crate) fn checks(rows: &[Row]) -> impl Iterator<Item = Check> {
    rows.iter().flat_map(|row| {
        row.bars.iter().map(move |bar| {
            let rule = format!("{} on {}: {}", row.workload, row.filesystem.name(), bar.what);
            let passed = matches!(bar.verdict, BarVerdict::Pass | BarVerdict::Reported);
            Check::new(rule, format!("{:.2}", bar.value), passed)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::measure::Sample;
    use super::super::plan::TRIALS;
    use super::*;

    fn figures(server_us: f64, iops: f64) -> Figures {
        Figures::new(vec![Sample { server_us, iops, ..Sample::default() }])
    }

    fn row(name: &str, weir: Figures, smbd: Figures, bare_us: f64, known: Known) -> Row {
        let trial = TRIALS.iter().find(|trial| trial.name == name).unwrap();
        Row::new(trial, Filesystem::Xfs, [weir, smbd, figures(bare_us, 1e6)], known)
    }

    fn verdicts(row: &Row) -> [BarVerdict; 2] {
        [row.bars[0].verdict, row.bars[1].verdict]
    }

    #[test]
    fn each_bar_is_met_up_to_its_bound() {
        use BarVerdict::{Miss, Pass};
        let small = |weir: Figures| {
            let smbd = figures(10.0, 100_000.0);
            verdicts(&row("SMB 4 KiB random read", weir, smbd, 2.0, Known::default()))
        };
        assert_eq!(small(figures(5.0, 160_000.0)), [Pass, Pass]);
        assert_eq!(small(figures(5.1, 160_000.0)), [Miss, Pass]);
        assert_eq!(small(figures(5.0, 159_000.0)), [Pass, Miss]);
    }

    #[test]
    fn a_large_operation_may_cost_what_the_bare_loop_does() {
        use BarVerdict::{Miss, Pass};
        let large = |weir_us: f64, bare_us: f64| {
            let (weir, smbd) = (figures(weir_us, 120.0), figures(30.0, 100.0));
            verdicts(&row("SMB 64 KiB sequential read", weir, smbd, bare_us, Known::default()))
        };
        assert_eq!(large(24.0, 17.0), [Pass, Pass]);
        assert_eq!(large(25.0, 17.0), [Miss, Pass]);
        assert_eq!(large(25.0, 22.0), [Pass, Pass]);
    }

    #[test]
    fn a_protected_operation_may_cost_what_the_plain_one_and_the_cipher_do() {
        use BarVerdict::{Miss, Pass};
        let sealed = |weir_us: f64, known: Known| {
            let (weir, smbd) = (figures(weir_us, 120.0), figures(40.0, 100.0));
            verdicts(&row("SMB 64 KiB read, sealed", weir, smbd, 17.0, known))
        };
        let known = Known { plain_us: Some(25.0), openssl_us: Some(10.0) };
        assert_eq!(sealed(37.0, known), [Pass, Pass]);
        assert_eq!(sealed(38.0, known), [Miss, Pass]);
        assert_eq!(sealed(34.0, Known::default()), [Pass, Pass]);
        assert_eq!(sealed(34.5, Known::default()), [Miss, Pass]);
    }

    #[test]
    fn a_row_is_void_where_smbd_is_not_itself() {
        use BarVerdict::{Pass, Void};
        let smbd = |us: f64| {
            let (weir, smbd) = (figures(2.0, 500.0), figures(us, 100.0));
            verdicts(&row("SMB 4 KiB random read", weir, smbd, 2.0, Known::default()))
        };
        let bound = 1.15 * 9.2 / 1.85 * 2.0;
        assert_eq!(smbd(bound - 0.1), [Pass, Pass]);
        assert_eq!(smbd(bound + 0.1), [Void, Void]);
        let limited =
            Figures::new(vec![Sample { generator_saturated: true, ..figures(2.0, 500.0).median }]);
        let row = row("SMB ECHO", limited, figures(20.0, 100.0), 1.5, Known::default());
        assert_eq!(verdicts(&row), [Pass, Void]);
    }
}
