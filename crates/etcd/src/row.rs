//! The values of rows, as JSON. Not here: which rows there are.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use weir_cluster::timing::FENCES_MAX;
use weir_cluster::{
    Barrier, Came, Fence, Gateway, GatewayId, Generation, Group, Home, InvalidSession, Life,
    MachineId, Member, SessionId, Standing, Version,
};

/// A value is parsed up to this length: far more than any that is written.
pub(crate) const VALUE_BYTES_MAX: usize = 64 << 10;
/// Sessions of a life with Ceph that a row may name.
pub(crate) const SESSIONS_MAX: usize = 256;

/// Why a value is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error(
        "it is written in version {0}, which this program does not know; install a newer version"
    )]
    Newer(u16),
    #[error("{0}")]
    Damaged(String),
}

/// The version alone, which every value of every version has: the version in which it is written.
#[derive(Deserialize)]
struct VersionOnly {
    version: u16,
}

// A field that may be null has to be there: a row that lost one is damaged. So is one with a field
// that its version does not have: whoever changes a row writes all of it, and would drop the field.

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct GatewayRow {
    version: u16,
    /// 16 hexadecimal digits.
    machine: String,
    /// The number of the latest life.
    life: u32,
    /// Null if the latest life is no member.
    #[serde(deserialize_with = "Option::deserialize")]
    member: Option<MemberRow>,
    draining: bool,
    fences: Vec<FenceRow>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct MemberRow {
    since: u64,
    speaks: u16,
    sessions: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct FenceRow {
    life: u32,
    sessions: Vec<String>,
    #[serde(deserialize_with = "Option::deserialize")]
    in_force: Option<u64>,
    gone: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct GroupRow {
    version: u16,
    weight: u64,
    /// Null if the group has no home yet.
    #[serde(deserialize_with = "Option::deserialize")]
    home: Option<HomeRow>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct HomeRow {
    at: LifeRow,
    came: CameRow,
    #[serde(deserialize_with = "Option::deserialize")]
    to: Option<LifeRow>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LifeRow {
    gateway: u16,
    life: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum CameRow {
    New,
    Handed { from: LifeRow },
    Taken { from: LifeRow, barrier: u64 },
}

/// The version in which rows are written. Before the members have agreed on one, it is the first.
fn written(format: Version) -> u16 {
    format.max(Version(1)).0
}

fn encode(value: &impl Serialize) -> String {
    // Maps with text keys, numbers and texts can always be written.
    serde_json::to_string(value).unwrap_or_default()
}

fn decode<T: DeserializeOwned>(value: &[u8]) -> Result<T, Fault> {
    if value.len() > VALUE_BYTES_MAX {
        return Err(Fault::Damaged(format!("it has {} bytes", value.len())));
    }
    let damaged = |error: serde_json::Error| Fault::Damaged(error.to_string());
    let VersionOnly { version } = serde_json::from_slice(value).map_err(damaged)?;
    if version > Version::CURRENT.0 {
        return Err(Fault::Newer(version));
    }
    serde_json::from_slice(value).map_err(damaged)
}

/// A number alone: the generation, the format, a life, or what a gateway knows. These rows are
/// compared as guards, so they have one form for ever, which is that of a JSON number.
pub(crate) fn number(value: &[u8]) -> Result<u64, Fault> {
    let text = std::str::from_utf8(value).ok().filter(|text| text.len() <= 20);
    let number = text.and_then(|text| text.parse().ok().filter(|n: &u64| n.to_string() == text));
    number.ok_or_else(|| Fault::Damaged("it is no whole number".to_owned()))
}

pub(crate) fn gateway(value: &[u8]) -> Result<Gateway, Fault> {
    let row: GatewayRow = decode(value)?;
    let damaged = |what: &str| Fault::Damaged(what.to_owned());
    let machine = Some(row.machine.as_str()).filter(|digits| digits.len() == 16);
    let machine = machine
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .ok_or_else(|| damaged("its machine is not 16 hexadecimal digits"))?;
    if row.fences.len() > FENCES_MAX {
        return Err(damaged("it has more fences than there may be"));
    }
    let standing = match row.member {
        Some(MemberRow { since, speaks, sessions }) => Standing::In(Member {
            number: row.life,
            since: Generation(since),
            speaks: Version(speaks),
            sessions: read_sessions(&sessions)?,
        }),
        None => Standing::Out { number: row.life },
    };
    let fence = |row: FenceRow| {
        Ok(Fence {
            number: row.life,
            sessions: read_sessions(&row.sessions)?,
            in_force: row.in_force.map(Barrier),
            gone: row.gone,
        })
    };
    let fences = row.fences.into_iter().map(fence).collect::<Result<Vec<_>, Fault>>()?;
    Ok(Gateway { machine: MachineId(machine), standing, draining: row.draining, fences })
}

fn read_sessions(sessions: &[String]) -> Result<Vec<SessionId>, Fault> {
    if sessions.len() > SESSIONS_MAX {
        return Err(Fault::Damaged("it has more sessions than there may be".to_owned()));
    }
    let read = |text: &String| {
        text.parse().map_err(|error: InvalidSession| Fault::Damaged(error.to_string()))
    };
    sessions.iter().map(read).collect()
}

pub(crate) fn gateway_text(format: Version, gateway: &Gateway) -> String {
    let ids = |sessions: &[SessionId]| sessions.iter().map(ToString::to_string).collect();
    let member = gateway.member().map(|member| MemberRow {
        since: member.since.0,
        speaks: member.speaks.0,
        sessions: ids(&member.sessions),
    });
    let fence = |fence: &Fence| FenceRow {
        life: fence.number,
        sessions: ids(&fence.sessions),
        in_force: fence.in_force.map(|barrier| barrier.0),
        gone: fence.gone,
    };
    let row = GatewayRow {
        version: written(format),
        machine: format!("{:016x}", gateway.machine.0),
        life: gateway.number(),
        member,
        draining: gateway.draining,
        fences: gateway.fences.iter().map(fence).collect(),
    };
    encode(&row)
}

pub(crate) fn group(value: &[u8]) -> Result<Group, Fault> {
    let GroupRow { weight, home, .. } = decode(value)?;
    let home = home.map_or(Home::Nowhere, |HomeRow { at, came, to }| Home::At {
        life: at.life(),
        came: match came {
            CameRow::New => Came::New,
            CameRow::Handed { from } => Came::Handed { from: from.life() },
            CameRow::Taken { from, barrier } => {
                Came::Taken { from: from.life(), barrier: Barrier(barrier) }
            }
        },
        to: to.map(|to| to.life()),
    });
    Ok(Group { weight, home })
}

pub(crate) fn group_text(format: Version, group: Group) -> String {
    let home = match group.home {
        Home::Nowhere => None,
        Home::At { life, came, to } => Some(HomeRow {
            at: LifeRow::of(life),
            came: match came {
                Came::New => CameRow::New,
                Came::Handed { from } => CameRow::Handed { from: LifeRow::of(from) },
                Came::Taken { from, barrier } => {
                    CameRow::Taken { from: LifeRow::of(from), barrier: barrier.0 }
                }
            },
            to: to.map(LifeRow::of),
        }),
    };
    encode(&GroupRow { version: written(format), weight: group.weight, home })
}

impl LifeRow {
    fn of(life: Life) -> Self {
        Self { gateway: life.gateway.0, life: life.number }
    }

    fn life(&self) -> Life {
        Life { gateway: GatewayId(self.gateway), number: self.life }
    }
}
