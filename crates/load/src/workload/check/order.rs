//! Distributions of random order, and the order of blocks and files.

use super::{Checked, refuse};
use crate::workload::{Draw, FileOrder, Operation, Pattern, Positions, Starts, Workload, Zone};

/// Most zones of a file.
const ZONES_MAX: usize = 256;

impl Workload {
    pub(super) fn check_draw(&self) -> Checked {
        match &self.draw {
            Draw::Zipf { theta }
                if !(*theta > 0.0 && *theta <= 5.0 && (theta - 1.0).abs() > 1e-6) =>
            {
                refuse(format!("theta is {theta}; it must be greater than 0, at most 5, and not 1"))
            }
            Draw::Pareto { h } if !(*h > 0.0 && *h < 1.0) => {
                refuse(format!("h of Pareto's law is {h}; it must be over 0 and below 1"))
            }
            Draw::Normal { deviation_percent } if !(0.0..=100.0).contains(deviation_percent) => {
                refuse(format!("the deviation is {deviation_percent} %; it must be from 0 to 100"))
            }
            Draw::Zoned { zones } => check_zones(zones),
            _ => Ok(()),
        }
    }

    /// Skipped bytes, visits of random places, and files in turn.
    pub(super) fn check_order(&self) -> Checked {
        let pattern = match self.operation {
            Operation::Data { pattern, .. } => Some(pattern),
            _ => None,
        };
        if self.skip_bytes != 0 {
            if pattern != Some(Pattern::Sequential) || self.starts == Starts::Interlocked {
                return refuse(
                    "only sequential jobs with a cursor of their own can skip bytes".into(),
                );
            }
            if self.skip_bytes.unsigned_abs() >= self.least_room() {
                let (skip, room) = (self.skip_bytes, self.least_room());
                return refuse(format!(
                    "{skip} bytes skipped between two requests leave the region of {room} bytes"
                ));
            }
        }
        if self.positions == Positions::ByDirection
            && (pattern != Some(Pattern::Sequential) || self.starts == Starts::Interlocked)
        {
            return refuse(
                "only sequential jobs with cursors of their own can have one for each direction"
                    .into(),
            );
        }
        if let Some(visit) = self.visit
            && (pattern != Some(Pattern::Random) || visit.requests < 2)
        {
            return refuse("two or more requests from one place need random order".into());
        }
        if self.file_order == FileOrder::InTurn {
            let mixes = self.operation == Operation::Mix
                || matches!(pattern, Some(Pattern::Mixed { .. }))
                || self.visit.is_some();
            if mixes || self.starts == Starts::Interlocked {
                return refuse(
                    "files in turn need one operation, one order, cursors of the jobs' own, and \
                     one request from each place"
                        .into(),
                );
            }
        }
        Ok(())
    }
}

/// Zones that are not too many, none of them empty, and that fit into a file.
fn check_zones(zones: &[Zone]) -> Checked {
    if zones.is_empty() || zones.len() > ZONES_MAX {
        return refuse(format!("{} zones; there must be from 1 to {ZONES_MAX}", zones.len()));
    }
    if !zones.iter().all(|zone| zone.size_percent > 0.0) {
        return refuse("a zone of a file is empty; each has a size over 0 %".into());
    }
    let requests: u32 = zones.iter().map(|zone| u32::from(zone.requests_percent)).sum();
    if requests != 100 {
        return refuse(format!("the requests of the zones add up to {requests} %, not to 100 %"));
    }
    let size: f64 = zones.iter().map(|zone| zone.size_percent).sum();
    if size > 100.0 + 1e-6 {
        return refuse(format!("the zones add up to {size} % of the file, more than it has"));
    }
    Ok(())
}
