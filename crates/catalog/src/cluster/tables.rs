//! The tables of the catalogue as a cluster shares them. A row of a table here is a document of the
//! shared store, together with the rows of other tables that belong to it alone. A test compares
//! the list with the tables of the database, so that a new table or column gets its place here.

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A whole number.
    Integer,
    /// A text.
    Text,
    /// Bytes.
    Blob,
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    /// The name in the database and in documents.
    pub(crate) name: &'static str,
    /// The type.
    pub(crate) kind: Kind,
    /// Whether it may be NULL.
    pub(crate) nullable: bool,
    /// The format of the catalogue since which it exists.
    pub(crate) since: u32,
    /// The value that it has in documents of earlier formats; `None` is NULL.
    pub(crate) default: Option<i64>,
}

impl Column {
    const fn new(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, nullable: false, since: 0, default: None }
    }

    const fn or_null(self) -> Self {
        Self { nullable: true, ..self }
    }

    /// The column, which came with this format and had this value before.
    pub(crate) const fn added(self, since: u32, default: Option<i64>) -> Self {
        Self { since, default, ..self }
    }
}

/// The guard of a table's documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guarded {
    /// A change is valid only if no other change came before it.
    ByHead,
    /// One gateway at a time writes a document, so a change outside a guarded one needs no guard.
    ByOwner,
}

/// A table whose rows belong to rows of another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Child {
    /// The name.
    pub(crate) name: &'static str,
    /// The column that refers to the row it belongs to.
    pub(crate) parent: &'static str,
    /// The other columns.
    pub(crate) columns: &'static [Column],
    /// Most rows that belong to one row.
    pub(crate) rows_max: usize,
}

/// A table whose rows are documents.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    /// The name.
    pub(crate) name: &'static str,
    /// The columns of its key, never NULL.
    pub(crate) key: &'static [Column],
    /// The other columns.
    pub(crate) columns: &'static [Column],
    /// The tables whose rows belong to its rows.
    pub(crate) children: &'static [Child],
    /// The guard of its documents.
    pub(crate) guarded: Guarded,
}

const fn integer(name: &'static str) -> Column {
    Column::new(name, Kind::Integer)
}

const fn text(name: &'static str) -> Column {
    Column::new(name, Kind::Text)
}

const fn blob(name: &'static str) -> Column {
    Column::new(name, Kind::Blob)
}

/// The tables with counters of ids, which are in the head, each with the format since which they
/// are; in the order of these.
pub(crate) const COUNTED: [(&str, u32); 5] = [
    ("accounts", 0),
    ("pools", 0),
    ("volumes", 0),
    ("addresses", GATEWAYS),
    ("gateways", GATEWAYS),
];
/// The format that has addresses, gateways and pools on CephFS.
const GATEWAYS: u32 = 13;

/// All tables, those that others refer to first.
pub(crate) static TABLES: &[Table] = &[
    LEVELS,
    ACCOUNTS,
    POOLS,
    Table {
        name: "addresses",
        key: &[integer("id").added(GATEWAYS, None)],
        columns: &[text("address").added(GATEWAYS, None), integer("prefix").added(GATEWAYS, None)],
        children: &[],
        guarded: Guarded::ByHead,
    },
    VOLUMES,
    CALIBRATIONS,
    Table {
        name: "gateways",
        key: &[integer("id").added(GATEWAYS, None)],
        columns: &[
            text("name").added(GATEWAYS, None),
            text("links").added(GATEWAYS, None),
            text("helper").added(GATEWAYS, None),
        ],
        children: &[],
        guarded: Guarded::ByHead,
    },
    Table {
        name: "condemned",
        key: &[integer("volume")],
        columns: &[
            text("directory"),
            text("ceph_conf").or_null().added(GATEWAYS, None),
            text("ceph_user").or_null().added(GATEWAYS, None),
            integer("address").or_null().added(GATEWAYS, None),
        ],
        children: &[],
        guarded: Guarded::ByOwner,
    },
    Table {
        name: "credits",
        key: &[integer("volume")],
        columns: &[integer("credits")],
        children: &[],
        guarded: Guarded::ByOwner,
    },
    Table {
        name: "requests",
        key: &[blob("key")],
        columns: &[blob("request"), integer("at"), blob("answer").or_null()],
        children: &[],
        guarded: Guarded::ByOwner,
    },
    Table {
        name: "nsm",
        key: &[integer("one")],
        columns: &[integer("state")],
        children: &[],
        guarded: Guarded::ByHead,
    },
    // The address of ours comes first, so that the hosts of an address that moves stand together.
    Table {
        name: "monitored_hosts",
        key: &[text("local"), text("address"), blob("name")],
        columns: &[],
        children: &[],
        guarded: Guarded::ByOwner,
    },
];

const LEVELS: Table = Table {
    name: "levels",
    key: &[text("name")],
    columns: &[integer("rate_per_tib"), integer("volume_ceiling").or_null()],
    children: &[],
    guarded: Guarded::ByHead,
};

const ACCOUNTS: Table = Table {
    name: "accounts",
    key: &[integer("rid")],
    columns: &[
        text("name"),
        integer("uid").or_null(),
        integer("gid"),
        integer("enabled"),
        blob("nt_hash").or_null(),
    ],
    children: &[Child {
        name: "members",
        parent: "user_rid",
        columns: &[integer("group_rid")],
        rows_max: 1024,
    }],
    guarded: Guarded::ByHead,
};

const POOLS: Table = Table {
    name: "pools",
    key: &[integer("id")],
    columns: &[
        text("name"),
        text("level"),
        integer("size_bytes"),
        text("qos"),
        text("directory").or_null(),
        integer("throughput").or_null(),
        integer("iops").or_null(),
        text("ceph_conf").or_null().added(GATEWAYS, None),
        text("ceph_user").or_null().added(GATEWAYS, None),
        text("ceph_path").or_null().added(GATEWAYS, None),
    ],
    children: &[],
    guarded: Guarded::ByHead,
};

const VOLUMES: Table = Table {
    name: "volumes",
    key: &[integer("id")],
    columns: &[
        text("name"),
        integer("pool"),
        integer("quota_bytes"),
        integer("throughput").or_null(),
        integer("ceiling_throughput").or_null(),
        integer("ceiling_iops").or_null(),
        integer("iops").or_null(),
        integer("weight").or_null(),
        integer("file_throughput").or_null(),
        integer("file_iops").or_null(),
        integer("nfs"),
        integer("smb"),
        integer("smb_encrypt"),
        integer("smb_hidden"),
        integer("smb_abe"),
        integer("metadata_cache").or_null(),
        integer("address").or_null().added(GATEWAYS, None),
    ],
    children: &[
        Child {
            name: "export_rules",
            parent: "volume",
            columns: &[
                text("network"),
                text("access"),
                text("squash"),
                integer("anon_uid"),
                integer("anon_gid"),
            ],
            rows_max: 256,
        },
        Child {
            name: "share_rules",
            parent: "volume",
            columns: &[text("network").or_null(), integer("account").or_null(), text("access")],
            rows_max: 256,
        },
    ],
    guarded: Guarded::ByHead,
};

const CALIBRATIONS: Table = Table {
    name: "calibrations",
    key: &[text("directory")],
    columns: &[
        integer("at"),
        text("version"),
        text("host"),
        text("kernel"),
        text("processor"),
        integer("processors"),
        integer("memory_bytes"),
        text("file_system"),
        text("durability"),
        integer("jobs"),
        integer("depth"),
        integer("millis"),
        integer("data_bytes"),
        integer("others_rate"),
        integer("others_iops"),
    ],
    children: &[Child {
        name: "calibrated_cells",
        parent: "directory",
        columns: &[
            integer("read_percent"),
            integer("block_bytes"),
            integer("rate"),
            integer("iops"),
            integer("mean_nanos"),
            integer("p99_nanos"),
            integer("server_cpu_nanos").or_null(),
            integer("saturated"),
        ],
        rows_max: 256,
    }],
    guarded: Guarded::ByHead,
};

/// The number of counters in a head of this format.
pub(crate) fn counted(format: u32) -> usize {
    COUNTED.iter().filter(|(_, since)| *since <= format).count()
}

/// The table of this name.
pub(crate) fn named(name: &str) -> Option<&'static Table> {
    TABLES.iter().find(|table| table.name == name)
}

const _: () = {
    use crate::limits::{CELLS_MAX, EXPORT_RULES_MAX, GROUPS_OF_USER_MAX, SHARE_RULES_MAX};
    assert!(GROUPS_OF_USER_MAX <= 1024 && CELLS_MAX <= 256);
    assert!(EXPORT_RULES_MAX <= 256 && SHARE_RULES_MAX <= 256);
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;
    use std::collections::BTreeMap;

    /// Of each table of the database, its columns by name: type, NOT NULL.
    fn found() -> BTreeMap<String, BTreeMap<String, (String, bool)>> {
        let db = schema::in_memory().unwrap();
        let mut names = db
            .prepare(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
            )
            .unwrap();
        let names: Vec<String> =
            names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        let columns = |table: &String| {
            let mut query = db
                .prepare("SELECT name, type, \"notnull\" OR pk FROM pragma_table_info(?1)")
                .unwrap();
            query
                .query_map([table], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))
                .unwrap()
                .map(Result::unwrap)
                .collect()
        };
        names.iter().map(|table| (table.clone(), columns(table))).collect()
    }

    fn declared<'a>(columns: impl Iterator<Item = &'a Column>) -> BTreeMap<String, (String, bool)> {
        let of = |column: &Column| {
            let kind = match column.kind {
                Kind::Integer => "INTEGER",
                Kind::Text => "TEXT",
                Kind::Blob => "BLOB",
            };
            (column.name.to_owned(), (kind.to_owned(), !column.nullable))
        };
        columns.map(of).collect()
    }

    #[test]
    fn every_table_and_column_of_the_database_has_its_place() {
        let mut found = found();
        // Its content is in the head.
        assert!(found.remove("meta").is_some());
        for table in TABLES {
            let own = found.remove(table.name).unwrap_or_default();
            let told = declared(table.key.iter().chain(table.columns));
            assert_eq!(own, told, "{}", table.name);
            for child in table.children {
                let mut own = found.remove(child.name).unwrap_or_default();
                assert!(own.remove(child.parent).is_some(), "{}", child.name);
                assert_eq!(own, declared(child.columns.iter()), "{}", child.name);
            }
        }
        assert!(found.is_empty(), "these tables have no place in a cluster: {found:?}");
    }
}
