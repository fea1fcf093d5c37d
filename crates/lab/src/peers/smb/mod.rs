//! SMB beside Samba's smbd: the same directory, the same user, the same load, in turns, and the
//! bare loop with the like load over NFS beside both.
//!
//! Not here: how a row is measured, which is the same for NFS.

mod judge;
mod openssl;
mod plan;
mod present;
mod servers;

use super::judge::Figures;
use super::{Run, measure, servers::bare};
use crate::disk::{Disk, Filesystem};
use anyhow::{Context, Result};
use weir_load::{SmbSecurity, Target};

pub(super) use judge::{Row, checks};
pub(super) use plan::TRIALS;
pub(super) use present::{line, section, table};
pub(super) use servers::PROGRAMS;

use judge::Known;
use plan::{Or, Trial};

impl Run<'_> {
    /// All SMB rows on one file system.
    pub(super) fn compare_smb(&mut self, filesystem: Filesystem) -> Result<()> {
        let trials: Vec<&Trial> =
            TRIALS.iter().filter(|trial| self.options.wants(trial.name)).collect();
        if trials.is_empty() {
            return Ok(());
        }
        let disk = Disk::make(&self.work, "smb", filesystem, super::DISK_BYTES)?;
        weir_report::errln!("laying files out for SMB on {}", filesystem.name());
        let (weir, directory) = servers::weir(&self.weir, &disk, &self.work)?;
        measure::lay_out(&weir.target, &self.times)?;
        let smbd = servers::smbd(&directory, &self.work)?;
        let bare = bare(&directory)?;
        for trial in trials {
            let mut sides = [&weir, &smbd, &bare].map(super::Peer::side);
            for side in &mut sides {
                if let Target::Smb(target) = &mut side.target {
                    target.security = trial.security;
                }
            }
            let figures = self.rounds(&disk, &trial.work(), &sides)?;
            let row = Row::new(trial, filesystem, figures, self.known(trial)?);
            weir_report::errln!("{}", line(&row));
            self.findings.smb.push(row);
            // The rows until here are kept if the comparison is interrupted.
            self.report()?.write()?;
        }
        Ok(())
    }

    /// The measured costs that a row is judged by besides its own.
    fn known(&self, trial: &Trial) -> Result<Known> {
        let Or::Cipher { of, cipher } = trial.or else { return Ok(Known::default()) };
        let plain = self.findings.smb.iter().find(|row| row.workload == of);
        let openssl_us = openssl::microseconds(cipher, trial.block_bytes)
            .context("measuring the cipher with openssl")?;
        Ok(Known {
            plain_us: plain.map(|row| row.weir.median.server_us),
            openssl_us: Some(openssl_us),
        })
    }
}

/// The names of the protections in tables.
const fn protection(security: SmbSecurity) -> &'static str {
    security.words()
}

/// The medians that a row compares.
type Servers = [Figures; 3];
