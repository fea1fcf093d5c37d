//! Which volumes a transaction touched: SQLite's triggers note them as the rows change, whoever
//! changes them. So a change of one volume among thousands reads one back, and not all.
//!
//! Tables and triggers are temporary: they belong to the connection and are never in the file.

use crate::error::Result;
use rusqlite::Connection;
use std::collections::BTreeSet;
use weir_core::VolumeId;

/// The id that stands for all volumes, as a pool or a level changes theirs. No volume has it: ids
/// of volumes begin at 1.
const ALL: u32 = 0;

const NOTE: &str = "
    PRAGMA temp_store = MEMORY;
    CREATE TEMP TABLE touched (volume INTEGER PRIMARY KEY);
    CREATE TEMP TRIGGER volumes_made AFTER INSERT ON main.volumes
        BEGIN INSERT OR IGNORE INTO touched VALUES (new.id); END;
    CREATE TEMP TRIGGER volumes_changed AFTER UPDATE ON main.volumes
        BEGIN INSERT OR IGNORE INTO touched VALUES (old.id), (new.id); END;
    CREATE TEMP TRIGGER volumes_deleted AFTER DELETE ON main.volumes
        BEGIN INSERT OR IGNORE INTO touched VALUES (old.id); END;
    CREATE TEMP TRIGGER rules_made AFTER INSERT ON main.export_rules
        BEGIN INSERT OR IGNORE INTO touched VALUES (new.volume); END;
    CREATE TEMP TRIGGER rules_changed AFTER UPDATE ON main.export_rules
        BEGIN INSERT OR IGNORE INTO touched VALUES (old.volume), (new.volume); END;
    CREATE TEMP TRIGGER rules_deleted AFTER DELETE ON main.export_rules
        BEGIN INSERT OR IGNORE INTO touched VALUES (old.volume); END;
    CREATE TEMP TRIGGER pools_made AFTER INSERT ON main.pools
        BEGIN INSERT OR IGNORE INTO touched VALUES (0); END;
    CREATE TEMP TRIGGER pools_changed AFTER UPDATE ON main.pools
        BEGIN INSERT OR IGNORE INTO touched VALUES (0); END;
    CREATE TEMP TRIGGER pools_deleted AFTER DELETE ON main.pools
        BEGIN INSERT OR IGNORE INTO touched VALUES (0); END;
    CREATE TEMP TRIGGER levels_made AFTER INSERT ON main.levels
        BEGIN INSERT OR IGNORE INTO touched VALUES (0); END;
    CREATE TEMP TRIGGER levels_changed AFTER UPDATE ON main.levels
        BEGIN INSERT OR IGNORE INTO touched VALUES (0); END;
    CREATE TEMP TRIGGER levels_deleted AFTER DELETE ON main.levels
        BEGIN INSERT OR IGNORE INTO touched VALUES (0); END;
    CREATE TEMP TRIGGER calibrations_made AFTER INSERT ON main.calibrations
        BEGIN INSERT OR IGNORE INTO touched VALUES (0); END;
    CREATE TEMP TRIGGER cells_made AFTER INSERT ON main.calibrated_cells
        BEGIN INSERT OR IGNORE INTO touched VALUES (0); END;
    CREATE TEMP TRIGGER calibrations_changed AFTER UPDATE ON main.calibrations
        BEGIN INSERT OR IGNORE INTO touched VALUES (0); END;
    CREATE TEMP TRIGGER cells_changed AFTER UPDATE ON main.calibrated_cells
        BEGIN INSERT OR IGNORE INTO touched VALUES (0); END;
    CREATE TEMP TRIGGER calibrations_deleted AFTER DELETE ON main.calibrations
        BEGIN INSERT OR IGNORE INTO touched VALUES (0); END;
    CREATE TEMP TRIGGER cells_deleted AFTER DELETE ON main.calibrated_cells
        BEGIN INSERT OR IGNORE INTO touched VALUES (0); END;
";

/// The part of a snapshot that is no longer true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Touched {
    /// A pool, a level or what file systems hold, and so any volume.
    Everything,
    /// Only these volumes and their export rules.
    Volumes(BTreeSet<VolumeId>),
}

/// Has `db` note what is touched from now on.
pub(crate) fn note(db: &Connection) -> Result<()> {
    Ok(db.execute_batch(NOTE)?)
}

/// Forgets what was touched.
pub(crate) fn begin(db: &Connection) -> Result<()> {
    db.execute("DELETE FROM temp.touched", [])?;
    Ok(())
}

/// The part touched since [`begin`].
pub(crate) fn since(db: &Connection) -> Result<Touched> {
    let mut query = db.prepare_cached("SELECT volume FROM temp.touched")?;
    let volumes = query.query_map([], |row| Ok(VolumeId(row.get(0)?)))?;
    let volumes = volumes.collect::<rusqlite::Result<BTreeSet<_>>>()?;
    let everything = volumes.contains(&VolumeId(ALL));
    Ok(if everything { Touched::Everything } else { Touched::Volumes(volumes) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    fn touched(db: &Connection, change: &str) -> Touched {
        begin(db).unwrap();
        db.execute_batch(change).unwrap();
        since(db).unwrap()
    }

    #[test]
    fn every_table_that_a_snapshot_is_read_from_is_noted() {
        let dir = tempfile::tempdir().unwrap();
        let db = schema::open(&dir.path().join("weir.db")).unwrap();
        note(&db).unwrap();
        let volumes = |ids: &[u32]| Touched::Volumes(ids.iter().copied().map(VolumeId).collect());
        let pool = "INSERT INTO pools (name, level, size_bytes, qos) VALUES ('p', 'l', 1, 'auto')";
        assert_eq!(touched(&db, pool), Touched::Everything);
        assert_eq!(touched(&db, "UPDATE pools SET size_bytes = 2"), Touched::Everything);
        assert_eq!(touched(&db, "INSERT INTO levels VALUES ('l', 1)"), Touched::Everything);
        assert_eq!(touched(&db, "UPDATE levels SET rate_per_tib = 2"), Touched::Everything);
        assert_eq!(touched(&db, "DELETE FROM levels"), Touched::Everything);
        let volume =
            "INSERT INTO volumes (name, pool, quota_bytes) VALUES ('a', 1, 1), ('b', 1, 1)";
        assert_eq!(touched(&db, volume), volumes(&[1, 2]));
        assert_eq!(touched(&db, "UPDATE volumes SET name = 'c' WHERE id = 2"), volumes(&[2]));
        let rule = "INSERT INTO export_rules VALUES (1, 'n', 'rw', 'none', 1, 1)";
        assert_eq!(touched(&db, rule), volumes(&[1]));
        assert_eq!(touched(&db, "UPDATE export_rules SET volume = 2"), volumes(&[1, 2]));
        assert_eq!(touched(&db, "INSERT INTO credits VALUES (1, 5)"), volumes(&[]));
        assert_eq!(touched(&db, "DELETE FROM export_rules"), volumes(&[2]));
        assert_eq!(touched(&db, "DELETE FROM volumes WHERE id = 1"), volumes(&[1]));
        assert_eq!(touched(&db, "DELETE FROM volumes; DELETE FROM pools"), Touched::Everything);
        let measured = "'', '', '', '', 1, 1, '', '', 1, 1, 1, 1, 0, 0";
        let kept = format!("INSERT INTO calibrations VALUES ('/d', 1, {measured})");
        assert_eq!(touched(&db, &kept), Touched::Everything);
        let cell = "INSERT INTO calibrated_cells VALUES ('/d', 0, 4096, 1, 1, 1, 1, NULL, 0)";
        assert_eq!(touched(&db, cell), Touched::Everything);
        assert_eq!(touched(&db, "DELETE FROM calibrations"), Touched::Everything);
        let snapshot =
            ["pools", "volumes", "export_rules", "levels", "calibrations", "calibrated_cells"];
        // Note a table that is added to the snapshot here: rules of a volume that goes go with it.
        assert_eq!(
            touched(
                &db,
                &format!("{pool}; {volume}; {rule}")
                    .replace("(1, 'n'", "(3, 'n'")
                    .replace("'p', 'l'", "'q', 'l'")
                    .replace(", 1, 1)", ", 2, 1)")
            ),
            Touched::Everything
        );
        assert_eq!(touched(&db, "DELETE FROM volumes WHERE id = 3"), volumes(&[3]));
        assert!(snapshot.iter().all(|table| NOTE.contains(&format!("main.{table}"))));
    }
}
