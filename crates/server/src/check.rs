//! Looking whether a data directory is as this server needs it: what the catalogue finds, and the
//! formats of the volumes, which the store knows.

use std::path::Path;
use weir_catalog::{Finding, Report, Result};

/// Checks the data directory `data` without changing anything. `served` is a backup of the
/// catalogue from the server that uses it, if one does.
///
/// # Errors
/// The errors of [`weir_catalog::check`].
pub fn check(data: &Path, served: Option<&[u8]>) -> Result<Report> {
    let mut report = weir_catalog::check(data, served)?;
    // Missing volumes are among the findings already.
    for volume in report.snapshot.volumes().filter(|volume| volume.directory.is_dir()) {
        if let Err(error) = weir_store::volume_format(&volume.directory) {
            let cause = std::error::Error::source(&error);
            let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
            let told = format!("volume {}: {error}{cause}", volume.name);
            report.findings.push(Finding::error("volume_format", told));
        }
    }
    Ok(report)
}
