//! Records from another process: nothing in them may break the sums or commands a terminal. A
//! process can still lie about what it measured; who wants to rule that out must own its machine.

use super::Record;
use std::collections::BTreeMap;
use weir_core::text::brief;

/// Most of anything that is counted: the sums of a thousand processes fit into 64 bits.
const COUNT_MAX: u64 = 1 << 54;
/// Most seconds of processor time, and most percent: sums stay finite.
const FIGURE_MAX: f64 = 1e12;
/// Most texts of one kind.
const TEXTS_MAX: usize = 1000;

impl Record {
    /// Makes its texts harmless, and keeps so many of them as people read.
    pub fn tame(&mut self) {
        self.target = brief(&self.target);
        self.clients.iter_mut().for_each(|client| *client = brief(client));
        for texts in [&mut self.addresses, &mut self.faults, &mut self.notes.errors] {
            tame_keys(texts);
        }
        self.marks.truncate(TEXTS_MAX);
        self.marks.iter_mut().for_each(|mark| mark.label = brief(&mark.label));
        if let Some(verify) = &mut self.verify {
            verify.details.truncate(TEXTS_MAX);
            verify.details.iter_mut().for_each(|detail| *detail = brief(detail));
        }
    }

    /// Can these be figures of a load with so many jobs?
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, jobs: u32) -> Result<(), String> {
        let counted = self.notes.jobs.len();
        if u32::try_from(counted).map_or(true, |counted| counted > jobs) {
            return Err(format!("it reported {counted} jobs of a load that has {jobs}"));
        }
        let counts =
            [&self.faults, &self.addresses].into_iter().flat_map(BTreeMap::values).copied();
        let connections = &self.connections;
        let all = counts.chain([connections.opened, connections.lost, connections.unanswered]);
        let verify = self.verify.iter().flat_map(|found| {
            let passed = [found.in_passing, found.in_passing_mismatches];
            let read = [found.checked, found.uncertain, found.unread, found.mismatches];
            passed.into_iter().chain(read)
        });
        let generator = &self.generator;
        let figures = [
            generator.cpu_s,
            generator.busiest_thread_percent,
            generator.machine_busy_percent,
            generator.cpu_us_per_op,
        ];
        if !self.notes.sums_stay_under(COUNT_MAX)
            || sum(all.chain(verify)).is_none_or(|sum| sum > COUNT_MAX)
            || figures.iter().any(|figure| !(0.0..=FIGURE_MAX).contains(figure))
        {
            return Err("it reported figures that nothing can have".to_owned());
        }
        Ok(())
    }
}

fn sum(counts: impl Iterator<Item = u64>) -> Option<u64> {
    counts.into_iter().try_fold(0_u64, u64::checked_add)
}

/// Texts that become the same are counted together.
fn tame_keys(counts: &mut BTreeMap<String, u64>) {
    for (text, count) in std::mem::take(counts).into_iter().take(TEXTS_MAX) {
        let sum = counts.entry(brief(&text)).or_default();
        *sum = sum.saturating_add(count);
    }
}
