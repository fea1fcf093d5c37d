//! The local state of a gateway: a directory with its lock, its random number, and the number of
//! its latest life.

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};
use weir_cluster::{GatewayId, Life, MachineId};

const LOCK: &str = "gateway.lock";
const FILE: &str = "gateway.json";
const NEW_FILE: &str = "gateway.json.new";
const VERSION: u16 = 1;
/// A file is read to this length: more than any has.
const FILE_BYTES_MAX: u64 = 4096;

/// The local state. As long as this exists, no other process has it.
#[derive(Debug)]
pub struct LocalState {
    directory: PathBuf,
    lock: File,
    content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    version: u16,
    gateway: u16,
    /// 16 hexadecimal digits.
    machine: String,
    /// The number of the latest life; 0 if there was none.
    life: u32,
}

/// A local state that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The directory or a file in it.
    #[error("the local state {}: {source}", path.display())]
    Io {
        /// The directory or file.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// Another process has it.
    #[error("another process is this gateway: it has the lock on {}", .0.display())]
    Locked(PathBuf),
    /// The file has something else in it.
    #[error("{} is no local state of a gateway", .0.display())]
    Damaged(PathBuf),
    /// The file is of a later version.
    #[error(
        "{} is in version {found}, which this program does not know: install a newer version of \
         Weir", path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u16,
    },
    /// It is another gateway's.
    #[error("{} is the local state of gateway {found}", path.display())]
    OtherGateway {
        /// The file.
        path: PathBuf,
        /// The gateway.
        found: GatewayId,
    },
    /// The numbers of lives are used up.
    #[error("the gateway has had as many lives as there are numbers")]
    NoNumbers,
}

impl Drop for LocalState {
    fn drop(&mut self) {
        // A process that another thread starts meanwhile has the file open until it runs its
        // program, and the lock with it.
        let _closed = flock(&self.lock, FlockOperation::Unlock);
    }
}

impl LocalState {
    /// Opens the local state of `gateway` in `directory`, which must exist, and locks it. If there
    /// is none yet, it is made, with a new random number.
    ///
    /// # Errors
    /// Another process has the lock, the state is another gateway's, damaged or of a later version,
    /// or the file system fails.
    pub fn open(directory: &Path, gateway: GatewayId) -> Result<Self, StateError> {
        let at = |path: PathBuf| move |source| StateError::Io { path, source };
        let path = directory.join(LOCK);
        let lock = File::options().create(true).truncate(false).write(true).open(&path);
        let lock = lock.map_err(at(path.clone()))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
            rustix::io::Errno::WOULDBLOCK => StateError::Locked(path.clone()),
            error => StateError::Io { path, source: error.into() },
        })?;
        let path = directory.join(FILE);
        let content = match File::open(&path) {
            Ok(file) => match Content::read(file).map_err(at(path.clone()))? {
                Some(Read::Content(content)) => Some(content),
                Some(Read::Newer(found)) => return Err(StateError::Newer { path, found }),
                None => None,
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some(Content {
                version: VERSION,
                gateway: gateway.0,
                machine: format!("{:016x}", RandomState::new().hash_one("machine")),
                life: 0,
            }),
            Err(source) => return Err(StateError::Io { path, source }),
        };
        let content = content.ok_or_else(|| StateError::Damaged(path.clone()))?;
        if content.gateway != gateway.0 {
            return Err(StateError::OtherGateway { path, found: GatewayId(content.gateway) });
        }
        Ok(Self { directory: directory.to_owned(), lock, content })
    }

    /// Removes the local state in `directory` if it is that of another gateway than `gateway`,
    /// which has the directory from now on. Its lives are counted anew: they are other lives.
    ///
    /// # Errors
    /// Another process has the lock, the state is damaged, or the file system fails.
    pub fn renew(directory: &Path, gateway: GatewayId) -> Result<(), StateError> {
        match Self::open(directory, gateway) {
            Err(StateError::OtherGateway { path, found }) => {
                let _lock = Self::open(directory, found)?;
                let at = |source| StateError::Io { path: path.clone(), source };
                fs::remove_file(&path).map_err(at)?;
                File::open(directory).and_then(|dir| dir.sync_all()).map_err(at)
            }
            opened => opened.map(drop),
        }
    }

    /// The random number of this state.
    #[must_use]
    pub fn machine(&self) -> MachineId {
        MachineId(u64::from_str_radix(&self.content.machine, 16).unwrap_or_default())
    }

    /// The gateway.
    #[must_use]
    pub fn gateway(&self) -> GatewayId {
        GatewayId(self.content.gateway)
    }

    /// Begins the next life. Its number is greater than that of any life before, and than
    /// `recorded`, the one in the gateway's record ([`recorded`](crate::Gateway::recorded)). It is
    /// synced to the disk when this returns.
    ///
    /// # Errors
    /// The state can't be written.
    pub fn begin(&mut self, recorded: u32) -> Result<Life, StateError> {
        let last = self.content.life.max(recorded);
        let number = last.checked_add(1).ok_or(StateError::NoNumbers)?;
        let content = Content { life: number, ..self.content.clone() };
        content.write(&self.directory).map_err(|source| {
            let path = self.directory.join(FILE);
            StateError::Io { path, source }
        })?;
        self.content = content;
        Ok(Life { gateway: self.gateway(), number })
    }
}

/// The version alone, which the file of every version has.
#[derive(Deserialize)]
struct VersionOnly {
    version: u16,
}

/// A file that was read.
enum Read {
    Content(Content),
    /// One of this later version.
    Newer(u16),
}

impl Content {
    /// The content of a file, if it is one.
    fn read(file: File) -> io::Result<Option<Read>> {
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
        let version = serde_json::from_slice(&bytes).ok().map(|VersionOnly { version }| version);
        if let Some(found) = version.filter(|found| *found > VERSION) {
            return Ok(Some(Read::Newer(found)));
        }
        let content: Option<Self> = serde_json::from_slice(&bytes).ok();
        let content = content.filter(|content| {
            let is_number = u64::from_str_radix(&content.machine, 16).is_ok();
            content.version == VERSION && content.machine.len() == 16 && is_number
        });
        Ok(content.map(Read::Content))
    }

    /// Writes the file, so that at every moment the old or the new one is there.
    fn write(&self, directory: &Path) -> io::Result<()> {
        let new = directory.join(NEW_FILE);
        let mut file = File::create(&new)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.sync_all()?;
        fs::rename(&new, directory.join(FILE))?;
        File::open(directory)?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GATEWAY: GatewayId = GatewayId(3);
    /// A state as version 0.1.0 of commit db8735a3 left it.
    const LANDED: &str = include_str!("../tests/fixtures/gateway.json");

    #[test]
    fn the_lock_ends_with_its_owner_although_a_child_still_has_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let state = LocalState::open(directory.path(), GATEWAY).unwrap();
        // As a child has it between fork and exec.
        let _of_the_child = state.lock.try_clone().unwrap();
        let again = || LocalState::open(directory.path(), GATEWAY);
        assert!(matches!(again(), Err(StateError::Locked(_))));
        drop(state);
        again().unwrap();
    }

    #[test]
    fn numbers_grow_over_processes_and_beyond_the_record() {
        let directory = tempfile::tempdir().unwrap();
        let mut state = LocalState::open(directory.path(), GATEWAY).unwrap();
        let machine = state.machine();
        let number = |life: Result<Life, StateError>| life.unwrap().number;
        assert_eq!((number(state.begin(0)), number(state.begin(0))), (1, 2));
        drop(state);
        let mut state = LocalState::open(directory.path(), GATEWAY).unwrap();
        assert_eq!(state.machine(), machine);
        assert_eq!((number(state.begin(0)), number(state.begin(7))), (3, 8));
        assert!(matches!(state.begin(u32::MAX), Err(StateError::NoNumbers)));
        let other = tempfile::tempdir().unwrap();
        assert_ne!(LocalState::open(other.path(), GATEWAY).unwrap().machine(), machine);
    }

    #[test]
    fn one_process_has_it_and_it_belongs_to_one_gateway() {
        let directory = tempfile::tempdir().unwrap();
        let mut state = LocalState::open(directory.path(), GATEWAY).unwrap();
        state.begin(0).unwrap();
        let second = LocalState::open(directory.path(), GATEWAY);
        assert!(matches!(second, Err(StateError::Locked(_))), "{second:?}");
        drop(state);
        let other = LocalState::open(directory.path(), GatewayId(4)).unwrap_err();
        assert!(matches!(other, StateError::OtherGateway { found: GATEWAY, .. }), "{other}");
        LocalState::renew(directory.path(), GATEWAY).unwrap();
        assert_eq!(LocalState::open(directory.path(), GATEWAY).unwrap().content.life, 1);
        LocalState::renew(directory.path(), GatewayId(4)).unwrap();
        let mut renewed = LocalState::open(directory.path(), GatewayId(4)).unwrap();
        assert_eq!(renewed.begin(0).unwrap().number, 1);
        let held = LocalState::renew(directory.path(), GatewayId(4));
        assert!(matches!(held, Err(StateError::Locked(_))), "{held:?}");
    }

    #[test]
    fn a_damaged_state_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let whole = r#"{"version":1,"gateway":3,"machine":"0000000000000001","life":4}"#;
        let cases = [
            "",
            &whole[..30],
            &whole.replace(":1,", ":0,"),
            &whole.replace("0000000000000001", "1"),
            &whole.replace("0000000000000001", "x000000000000001"),
            &whole.replace("life", "lives"),
        ];
        for damaged in cases {
            fs::write(directory.path().join(FILE), damaged).unwrap();
            let error = LocalState::open(directory.path(), GATEWAY).unwrap_err();
            assert!(matches!(error, StateError::Damaged(_)), "{damaged}: {error}");
        }
        fs::write(directory.path().join(FILE), whole).unwrap();
        let mut state = LocalState::open(directory.path(), GATEWAY).unwrap();
        assert_eq!(state.begin(0).unwrap().number, 5);
    }

    #[test]
    fn the_state_that_the_first_version_left_is_read_and_written_in_its_form() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        fs::write(&path, LANDED).unwrap();
        let mut state = LocalState::open(directory.path(), GatewayId(1)).unwrap();
        let life = state.begin(0).unwrap();
        let written = fs::read_to_string(&path).unwrap();
        let number = |life: u32| format!("\"life\":{life}}}");
        assert_eq!(written.replace(&number(life.number), &number(life.number - 1)), LANDED);
    }

    #[test]
    fn a_newer_state_is_refused_with_words_and_stays_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        let newer = r#"{"version":2,"gateway":3,"machine":"1","life":4,"more":true}"#;
        fs::write(&path, newer).unwrap();
        for refused in [
            LocalState::open(directory.path(), GATEWAY).map(drop).unwrap_err(),
            LocalState::renew(directory.path(), GATEWAY).unwrap_err(),
        ] {
            assert!(matches!(refused, StateError::Newer { found: 2, .. }), "{refused}");
            assert!(refused.to_string().contains("install a newer version"), "{refused}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), newer);
    }
}
