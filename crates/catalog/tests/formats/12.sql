-- A catalogue as the versions of format 12 wrote it.
PRAGMA user_version = 12;
CREATE TABLE meta (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    instance TEXT NOT NULL,
    generation INTEGER NOT NULL
) STRICT;
CREATE TABLE pools (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    level TEXT NOT NULL,
    size_bytes INTEGER NOT NULL CHECK (size_bytes > 0),
    qos TEXT NOT NULL,
    directory TEXT UNIQUE,
    throughput INTEGER CHECK (throughput > 0),
    iops INTEGER CHECK (iops > 0)
) STRICT;
CREATE TABLE volumes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    pool INTEGER NOT NULL REFERENCES pools (id) ON DELETE RESTRICT,
    quota_bytes INTEGER NOT NULL CHECK (quota_bytes > 0),
    throughput INTEGER CHECK (throughput > 0),
    ceiling_throughput INTEGER CHECK (ceiling_throughput > 0),
    ceiling_iops INTEGER CHECK (ceiling_iops > 0),
    iops INTEGER CHECK (iops > 0),
    weight INTEGER CHECK (weight > 0),
    file_throughput INTEGER CHECK (file_throughput > 0),
    file_iops INTEGER CHECK (file_iops > 0),
    nfs INTEGER NOT NULL DEFAULT 1 CHECK (nfs IN (0, 1)),
    smb INTEGER NOT NULL DEFAULT 0 CHECK (smb IN (0, 1)),
    smb_encrypt INTEGER NOT NULL DEFAULT 0
        CHECK (smb_encrypt IN (0, 1)),
    smb_hidden INTEGER NOT NULL DEFAULT 0 CHECK (smb_hidden IN (0, 1)),
    smb_abe INTEGER NOT NULL DEFAULT 0 CHECK (smb_abe IN (0, 1)),
    metadata_cache INTEGER CHECK (metadata_cache IN (0, 1))
) STRICT;
CREATE INDEX volumes_by_pool ON volumes (pool);
CREATE TABLE export_rules (
    volume INTEGER NOT NULL REFERENCES volumes (id) ON DELETE CASCADE,
    network TEXT NOT NULL,
    access TEXT NOT NULL,
    squash TEXT NOT NULL,
    anon_uid INTEGER NOT NULL,
    anon_gid INTEGER NOT NULL,
    PRIMARY KEY (volume, network)
) STRICT, WITHOUT ROWID;
CREATE TABLE condemned (
    volume INTEGER PRIMARY KEY,
    directory TEXT NOT NULL
) STRICT;

CREATE TABLE nsm (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    state INTEGER NOT NULL
) STRICT;
CREATE TABLE monitored_hosts (
    address TEXT NOT NULL,
    name BLOB NOT NULL,
    local TEXT NOT NULL,
    PRIMARY KEY (address, name, local)
) STRICT, WITHOUT ROWID;
CREATE TABLE levels (
    name TEXT PRIMARY KEY,
    rate_per_tib INTEGER NOT NULL CHECK (rate_per_tib > 0),
    volume_ceiling INTEGER CHECK (volume_ceiling > 0)
) STRICT, WITHOUT ROWID;
CREATE TABLE credits (
    volume INTEGER PRIMARY KEY REFERENCES volumes (id) ON DELETE CASCADE,
    credits INTEGER NOT NULL CHECK (credits >= 0)
) STRICT;
CREATE TABLE requests (
    key BLOB PRIMARY KEY,
    request BLOB NOT NULL,
    at INTEGER NOT NULL,
    answer BLOB
) STRICT;
CREATE TABLE calibrations (
    directory TEXT PRIMARY KEY,
    at INTEGER NOT NULL,
    version TEXT NOT NULL,
    host TEXT NOT NULL,
    kernel TEXT NOT NULL,
    processor TEXT NOT NULL,
    processors INTEGER NOT NULL,
    memory_bytes INTEGER NOT NULL,
    file_system TEXT NOT NULL,
    durability TEXT NOT NULL,
    jobs INTEGER NOT NULL,
    depth INTEGER NOT NULL,
    millis INTEGER NOT NULL,
    data_bytes INTEGER NOT NULL,
    others_rate INTEGER NOT NULL,
    others_iops INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE calibrated_cells (
    directory TEXT NOT NULL REFERENCES calibrations (directory) ON DELETE CASCADE,
    read_percent INTEGER NOT NULL CHECK (read_percent BETWEEN 0 AND 100),
    block_bytes INTEGER NOT NULL CHECK (block_bytes > 0),
    rate INTEGER NOT NULL CHECK (rate > 0),
    iops INTEGER NOT NULL CHECK (iops > 0),
    mean_nanos INTEGER NOT NULL,
    p99_nanos INTEGER NOT NULL,
    server_cpu_nanos INTEGER,
    saturated INTEGER NOT NULL CHECK (saturated IN (0, 1)),
    PRIMARY KEY (directory, read_percent, block_bytes)
) STRICT, WITHOUT ROWID;

CREATE TABLE accounts (
    rid INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    uid INTEGER UNIQUE CHECK (uid > 0),
    gid INTEGER NOT NULL,
    enabled INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1)),
    nt_hash BLOB
) STRICT;
CREATE UNIQUE INDEX gids_of_groups ON accounts (gid) WHERE uid IS NULL;
CREATE TABLE members (
    user_rid INTEGER NOT NULL REFERENCES accounts (rid) ON DELETE CASCADE,
    group_rid INTEGER NOT NULL REFERENCES accounts (rid) ON DELETE CASCADE,
    PRIMARY KEY (user_rid, group_rid)
) STRICT, WITHOUT ROWID;
CREATE INDEX members_by_group ON members (group_rid);
CREATE TABLE share_rules (
    volume INTEGER NOT NULL REFERENCES volumes (id) ON DELETE CASCADE,
    network TEXT,
    account INTEGER REFERENCES accounts (rid) ON DELETE RESTRICT,
    access TEXT NOT NULL
) STRICT;
CREATE INDEX share_rules_by_volume ON share_rules (volume);
CREATE INDEX share_rules_by_account ON share_rules (account);

INSERT INTO meta VALUES (1, '00112233445566778899aabbccddeeff', 17);
INSERT INTO pools VALUES (2, 'fast', 'premium', 4398046511104, 'auto', NULL, NULL, NULL);
INSERT INTO pools VALUES (5, 'shared', 'standard', 10995116277760, 'manual', '/srv/shared', NULL, NULL);
INSERT INTO volumes VALUES (3, 'home', 2, 1099511627776, NULL, 104857600, 500, NULL, NULL, 62914560, 70, 1, 1, 0, 1, 0, 0);
INSERT INTO volumes VALUES (7, 'scratch', 5, 107374182400, 50331648, NULL, NULL, NULL, NULL, NULL, NULL, 1, 0, 0, 0, 0, NULL);
UPDATE sqlite_sequence SET seq = 9 WHERE name = 'volumes';
INSERT INTO export_rules VALUES (3, '10.0.0.0/8', 'rw', 'root', 65534, 65534);
INSERT INTO export_rules VALUES (3, '10.9.0.0/16', 'ro', 'all', 1000, 1001);
INSERT INTO export_rules VALUES (7, 'fd00::/8', 'rw', 'none', 65534, 65534);
INSERT INTO condemned VALUES (9, '/srv/shared/volumes/9');
INSERT INTO nsm VALUES (1, 41);
INSERT INTO monitored_hosts VALUES ('10.0.0.2', x'ff006f6464', '10.0.0.1');
INSERT INTO levels VALUES ('elastic', 33554432, 4718592000);
INSERT INTO credits VALUES (3, 123456);
INSERT INTO requests VALUES (x'0707070707070707070707070707070707070707070707070707070707070707', x'0808080808080808080808080808080808080808080808080808080808080808', 1000, x'7b7d');
INSERT INTO calibrations VALUES ('/srv/shared', 1700000000, '0.9.0', 'nas', '6.12', 'cpu', 4, 8589934592, 'xfs', 'power', 4, 16, 3000, 1073741824, 0, 0);
INSERT INTO calibrated_cells VALUES ('/srv/shared', 100, 65536, 1073741824, 16384, 500000, 900000, NULL, 1);
INSERT INTO sqlite_sequence VALUES ('accounts', 999);
INSERT INTO accounts VALUES (1000, 'anna', 5001, 5001, 1, NULL);
INSERT INTO accounts VALUES (1001, 'staff', NULL, 6001, 1, NULL);
INSERT INTO members VALUES (1000, 1001);
INSERT INTO share_rules VALUES (3, '10.0.0.0/8', 1000, 'rw');
