//! The three sides: what they are, and one step on all of them.

use crate::answer::{Answer, Body};
use crate::direct::Direct;
use crate::generate::Plan;
use crate::step::{Op, Step};
use crate::usage::data_below;
use crate::wire::{Host, Wire};
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use weir_control::ServerConfig;
use weir_core::SetAttr;
use weir_core::testing::MemStore;
use weir_store::{
    Descriptors, Durability, LocalStore, Options, Pool, StoreControl, prepare_process,
    reset_identity,
};

/// `TMPFS_MAGIC` of statfs(2).
const TMPFS_MAGIC: rustix::fs::FsWord = 0x0102_1994;

/// The store in memory, the local store, and a server with a local store behind it, each with a
/// volume of its own.
pub(crate) struct Sides {
    model: Direct<MemStore>,
    local: Direct<LocalStore>,
    wire: Wire,
    options: Options,
    local_directory: PathBuf,
    on_tmpfs: bool,
    _directory: tempfile::TempDir,
}

/// The sides' answers, where they differ.
#[derive(Clone, Debug)]
pub(crate) struct Difference {
    pub(crate) text: String,
}

impl Sides {
    pub(crate) fn new(plan: &Plan) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let &Plan { quota_bytes, cached_objects_max, metadata_cache, .. } = plan;
        let settings =
            ServerConfig { cached_objects_max, metadata_cache, ..ServerConfig::default() };
        let options = Options {
            quota_bytes,
            namespace_durability: Durability::Process,
            metadata_cache,
            cached_objects_max,
            descriptors: Descriptors::new(16_384),
            pool: pool(),
        };
        let local_directory = directory.path().join("local");
        let local = LocalStore::open(&local_directory, &options).unwrap();
        let host = Host::start(&directory.path().join("server"), quota_bytes, &settings);
        let mut sides = Self {
            model: Direct::new(MemStore::with_quota(quota_bytes)).with_kernel_policy(),
            local: Direct::new(local),
            wire: Wire::new(host),
            options,
            local_directory,
            on_tmpfs: rustix::fs::statfs(directory.path()).unwrap().f_type == TMPFS_MAGIC,
            _directory: directory,
        };
        let set = SetAttr { mode: Some(0o777), ..SetAttr::default() };
        let op = Op::Setattr { object: 0, set, guard: crate::step::Guard::None };
        sides.play(&as_root(op)).unwrap();
        sides
    }

    /// Carries out a step everywhere. Gives the answer on which all agree.
    pub(crate) fn play(&mut self, step: &Step) -> Result<Answer, Difference> {
        let takes_list_away = matches!(step.op, Op::Setacl { access: Some(0), .. });
        let pages = matches!(step.op, Op::Page { .. });
        if self.on_tmpfs && (takes_list_away || pages) {
            // There alone the set-group-id bit may go with the list, and names that nobody touched
            // have been seen to come twice in pages around a rename over another name.
            return Ok(Answer::ok(vec![], Body::Nothing));
        }
        if step.op == Op::Restart {
            self.local.store.close().unwrap();
            self.local.store = LocalStore::open(&self.local_directory, &self.options).unwrap();
        }
        let model = self.model.play(step);
        let local = self.local.play(step);
        let wire = self.wire.play(step);
        if model == local && local == wire && wire.complaints.is_empty() {
            return Ok(model);
        }
        let mut text = String::new();
        for (side, answer) in
            [("in memory", model), ("local store", local), ("over the wire", wire)]
        {
            writeln!(text, "  {side:>13}: {answer:?}").unwrap();
        }
        Err(Difference { text })
    }

    /// The bytes that all sides say are in use are those that the files on both disks hold.
    pub(crate) fn compare_usage(&mut self) -> Result<(), Difference> {
        let answer = self.play(&as_root(Op::Fsstat { object: 0 }))?;
        let Body::Space { total, free, .. } = answer.body else { unreachable!("{answer:?}") };
        // The last operation was some user's.
        reset_identity().unwrap();
        let roots = [self.local_directory.join("root"), self.wire.host.volume_root()];
        let held = roots.map(|root| data_below(&root));
        if held == [total - free; 2] {
            return Ok(());
        }
        let text = format!("  {} bytes are in use, the files hold {held:?}\n", total - free);
        Err(Difference { text })
    }
}

impl Drop for Sides {
    fn drop(&mut self) {
        reset_identity().unwrap();
        if !std::thread::panicking() {
            self.local.store.close().unwrap();
            self.wire.stop();
        }
    }
}

/// A step of the test's own.
pub(crate) fn as_root(op: Op) -> Step {
    Step { by: 0, again: crate::step::Again::No, op }
}

/// The threads of the local store, for all seeds.
fn pool() -> Arc<Pool> {
    static POOL: OnceLock<Arc<Pool>> = OnceLock::new();
    Arc::clone(POOL.get_or_init(|| {
        prepare_process().unwrap();
        Pool::new(2).unwrap()
    }))
}

/// Everything that is there, in the end: lists every directory and asks everything about every
/// object in it, as root.
pub(crate) fn walk(sides: &mut Sides) -> Result<u64, Difference> {
    walk::whole(sides)
}

mod walk {
    use super::{Difference, Sides, as_root};
    use crate::answer::{Answer, Body, Seen};
    use crate::step::{At, Op, SLOTS, With};
    use weir_core::FileKind;

    /// Each object gets a slot of its own beyond those of the steps; by which slot held it before
    /// the sides show which names are one object's.
    pub(super) fn whole(sides: &mut Sides) -> Result<u64, Difference> {
        let (mut next, mut pending, mut objects) = (SLOTS, vec![0], 0);
        while let Some(dir) = pending.pop() {
            let with = With::Objects { dir_count: 8192 };
            let listed = play(sides, Op::List { dir, with, bytes: 32 << 10 })?;
            let Body::Names(names) = listed.body else { unreachable!("{listed:?}") };
            for name in names.into_keys().filter(|name| name.0 != b"." && name.0 != b"..") {
                let into = next;
                next += 1;
                let found = play(sides, Op::Lookup { at: At { dir, name }, into })?;
                objects += 1;
                let seen = found.told[0].as_ref().unwrap();
                look_at(sides, into, seen)?;
                if seen.kind == FileKind::Directory {
                    pending.push(into);
                }
            }
        }
        Ok(objects)
    }

    fn look_at(sides: &mut Sides, object: usize, seen: &Seen) -> Result<(), Difference> {
        play(sides, Op::Getacl { object })?;
        match seen.kind {
            FileKind::Symlink => drop(play(sides, Op::Readlink { object })?),
            FileKind::Regular => {
                // Data is near the front and at the end; in between may be a very large hole.
                let count = 1 << 19;
                play(sides, Op::Read { object, offset: 0, count })?;
                let offset = seen.size.unwrap().saturating_sub(1 << 16);
                play(sides, Op::Read { object, offset, count })?;
            }
            _ => {}
        }
        Ok(())
    }

    fn play(sides: &mut Sides, op: Op) -> Result<Answer, Difference> {
        sides.play(&as_root(op)).map_err(|difference| {
            let text = "in the walk over everything at the end\n".to_owned() + &difference.text;
            Difference { text }
        })
    }
}
