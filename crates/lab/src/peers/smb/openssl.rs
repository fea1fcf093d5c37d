//! The cost of a cipher alone, as `openssl speed` measures it.

use anyhow::{Context, Result, ensure};
use std::process::Command;

/// Seconds of one measurement.
const SECONDS: &str = "2";

/// Microseconds of processor time that `cipher` takes for `bytes` bytes.
pub(super) fn microseconds(cipher: &str, bytes: u32) -> Result<f64> {
    let mut command = Command::new("openssl");
    command.args(["speed", "-mr", "-seconds", SECONDS, "-bytes", &bytes.to_string()]);
    // An algorithm without a cipher's interface goes without the option.
    if cipher == "ghash" {
        command.arg(cipher)
    } else {
        command.args(["-evp", cipher])
    };
    let output = command.output().context("starting openssl")?;
    ensure!(output.status.success(), "openssl speed failed: {}", output.status);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rate = bytes_per_second(&text).with_context(|| format!("openssl speed said {text:?}"))?;
    Ok(f64::from(bytes) / rate * 1e6)
}

/// The figure in a line such as `+F:25:AES-128-GCM:5737312711.11`.
fn bytes_per_second(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("+F:"))?;
    let rate: f64 = line.rsplit(':').next()?.trim().parse().ok()?;
    (rate > 0.0).then_some(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_the_last_figure_of_its_line() {
        let text = "+H:65536\n+F:25:AES-128-GCM:5737312711.11\n";
        assert_eq!(bytes_per_second(text), Some(5_737_312_711.11));
        assert_eq!(bytes_per_second("+H:65536\n+F:26:ghash:0\n"), None);
        assert_eq!(bytes_per_second("Doing ghash"), None);
    }
}
