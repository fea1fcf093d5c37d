//! Gateways that do not belong to the cluster, and rows of etcd that none of its gateways wrote.

use super::fault::Fault;
use super::plan::BACK;
use super::scene::Scene;
use anyhow::{Context, Result};
use std::time::Duration;

/// Time for which a row stands.
const STANDS: Duration = Duration::from_secs(4);

pub(super) const FAULTS: [Fault; 6] = [
    Fault::quiet(
        "wrong-key",
        "A gateway with another key file wants to join. It is refused in words.",
        wrong_key,
    ),
    Fault::quiet(
        "name-taken",
        "A second gateway wants to join under the name of one. It is refused in words.",
        name_taken,
    ),
    Fault::quiet(
        "foreign-row",
        "A row that is none of Weir's stands below the records in etcd. The gateways name it and serve on.",
        |scene| record(scene, "cluster/nonsense", "nonsense"),
    ),
    Fault::quiet(
        "damaged-row",
        "A damaged row of a gateway stands in etcd. The gateways name it and serve on.",
        |scene| record(scene, "cluster/gateway/00099", "{"),
    ),
    Fault::quiet(
        "foreign-catalogue",
        "A row that is none of Weir's stands in the catalogue in etcd. Changes are refused by name, and the gateways serve on.",
        |scene| catalogue(scene, "catalog/nonsense", "{", None),
    ),
    Fault::quiet(
        "damaged-catalogue",
        "The row of a volume in the catalogue in etcd is damaged, and restored later. Changes are refused by name, and the gateways serve on.",
        volume,
    ),
];

fn wrong_key(scene: &mut Scene<'_>) -> Result<()> {
    let own = scene.stage.gateways.first().context("there are no gateways")?.key();
    let text = std::fs::read_to_string(&own)?;
    let wrong = own.with_extension("wrong");
    std::fs::write(&wrong, other_key(&text).context("the key file has no digits")?)?;
    std::fs::set_permissions(&wrong, std::fs::metadata(&own)?.permissions())?;
    let refused = scene.stranger(&wrong, "stranger", "wrong_cluster_key");
    std::fs::remove_file(&wrong)?;
    refused
}

/// The text of a key file with another key: its last digit is another one.
fn other_key(text: &str) -> Option<String> {
    let (at, last) = text.char_indices().rev().find(|(_, one)| one.is_ascii_hexdigit())?;
    let other = if last == '0' { '1' } else { '0' };
    let mut other_text = text.to_owned();
    other_text.replace_range(at..=at, &other.to_string());
    Some(other_text)
}

fn name_taken(scene: &mut Scene<'_>) -> Result<()> {
    let first = scene.stage.gateways.first().context("there are no gateways")?;
    let (key, name) = (first.key(), first.name());
    scene.stranger(&key, &name, "name_taken")
}

/// Has a row stand below the records for a while.
fn record(scene: &mut Scene<'_>, below: &str, value: &str) -> Result<()> {
    let before = scene.logs();
    scene.engines().etcd_row(below, Some(value))?;
    let named =
        scene.until("all gateways name the row", BACK, |scene| scene.all_say(&before, below));
    let held = scene.serves_for(STANDS);
    scene.engines().etcd_row(below, None)?;
    named?;
    held?;
    let again = "can be read again";
    scene.until("all gateways read on", BACK, |scene| scene.all_say(&before, again))
}

/// Damages the row of a volume: the last one, while changes are asked for to the first.
fn volume(scene: &mut Scene<'_>) -> Result<()> {
    let last = scene.stage.targets.last().context("there are no volumes")?.number;
    let row = &format!("catalog/rows/volumes/{last}");
    let whole = scene.engines().etcd_value(row)?;
    // As if its end were lost.
    let damaged = whole.strip_suffix('}').with_context(|| format!("{row}: {whole}"))?;
    catalogue(scene, row, damaged, Some(&whole))
}

/// Has a value stand in a row of the catalogue for a while. Before and afterwards it is another
/// one, or there is no such row.
fn catalogue(scene: &mut Scene<'_>, row: &str, value: &str, otherwise: Option<&str>) -> Result<()> {
    scene.engines().etcd_row(row, Some(value))?;
    let code = "cluster_row_damaged: ";
    let named = scene.until("a change is refused by name", BACK, |scene| {
        scene.change().is_err_and(|refused| refused.starts_with(code))
    });
    let held = scene.serves_for(STANDS);
    scene.engines().etcd_row(row, otherwise)?;
    named?;
    held?;
    scene.until("changes are accepted again", BACK, |scene| scene.change().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_key_differs_in_one_digit() {
        assert_eq!(other_key("# key\n0aF0\n").unwrap(), "# key\n0aF1\n");
        assert_eq!(other_key("ab").unwrap(), "a0");
        assert_eq!(other_key("-\n"), None);
    }
}
