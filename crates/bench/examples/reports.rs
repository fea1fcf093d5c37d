//! Writes example reports, for the check in a browser and for people who work on their looks:
//! the results as JSON, and all that `weir bench report` and `weir bench compare` make of them.
//!
//!     cargo run -p weir-bench --example reports -- DIRECTORY

#[path = "../tests/report/example.rs"]
mod example;

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use weir_bench::cli::compare::CompareArgs;
use weir_bench::cli::report::ReportArgs;
use weir_bench::cli::{Format, compare, report};
use weir_results::Results;

fn main() -> Result<()> {
    let out = PathBuf::from(std::env::args().nth(1).context("give a directory to write to")?);
    std::fs::create_dir_all(&out).with_context(|| format!("making {}", out.display()))?;
    let save = |name: &str, results: &Results| -> Result<PathBuf> {
        let path = out.join(name);
        std::fs::write(&path, serde_json::to_string_pretty(results)?)
            .with_context(|| format!("writing {}", path.display()))?;
        Ok(path)
    };
    let whole = save("whole.json", &example::results("weir", 1.0))?;
    let sound = save("sound.json", &example::sound())?;
    let other = save("other.json", &example::other())?;
    for path in [&whole, &sound] {
        let args = ReportArgs {
            results: vec![path.clone()],
            html: Some(path.with_extension("html")),
            csv: Some(path.with_extension("csv")),
        };
        report::run(&args, Format::Table)?;
    }
    let beside = |name: &str| Some(Path::new(&out).join(name));
    let results = vec![whole.clone(), other];
    let (html, json) = (beside("compared.html"), beside("compared.json"));
    compare::run(&CompareArgs { results, html, json }, Format::Table)?;
    let args = ReportArgs { results: vec![whole], html: None, csv: None };
    report::run(&args, Format::Table)?;
    Ok(())
}
