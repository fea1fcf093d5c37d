//! A user of Ceph with the capabilities that the guide gives it, and no others: everything that a
//! gateway does is allowed.

use crate::common::{Bed, ROOT, block_on, conf, connect_as, new_path, options};
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;
use weir_core::{FsError, Store};
use weir_store::{
    Ceph, CephMonitors, Removal, StoreControl, claim_pool, move_volume, remove_volume,
};

const GUIDE: &str = include_str!("../../../../docs/cluster.md");
const USER: &str = "weir";
/// The name of the CephFS of `ceph.py`.
const FILE_SYSTEM: &str = "weir";

/// The command of the guide that makes the user.
fn documented() -> String {
    let (_, from) = GUIDE.split_once("`ceph auth get-or-create").unwrap();
    let (rest, _) = from.split_once('`').unwrap();
    let words: Vec<_> = rest.split_whitespace().collect();
    format!("auth get-or-create {}", words.join(" ").replace("NAME", FILE_SYSTEM))
}

/// Makes the user, and gives a configuration with its key alone.
fn configuration(conf: &Path, base: &Path) -> PathBuf {
    let (own, keyring) = (base.join("ceph.conf"), base.join("keyring"));
    let words = format!("exec ceph --conf \"$0\" --out-file \"$1\" {}", documented());
    let done = Command::new("sh").args(["-c", &words]).args([conf, &keyring]).output().unwrap();
    assert!(done.status.success(), "{words}: {}", String::from_utf8_lossy(&done.stderr));
    let text = std::fs::read_to_string(conf).unwrap();
    let of_all = format!("keyring = {}/keyring", conf.parent().unwrap().display());
    assert!(text.contains(&of_all), "{text}");
    let of_one = format!("keyring = {}", keyring.display());
    std::fs::write(&own, text.replace(&of_all, &of_one)).unwrap();
    own
}

/// The quota that CephFS itself keeps for the volume at `path`; 0 if there is none.
fn backstop(ceph: &Ceph, path: &str) -> u64 {
    let dealt = ceph.deal().unwrap();
    let mount = dealt.mount();
    let mut at = mount.top().unwrap();
    for part in path.split('/').filter(|part| !part.is_empty()).chain(["root"]) {
        at = mount.lookup(&at, &CString::new(part).unwrap()).unwrap().0;
    }
    let mut room = [0; 64];
    let found = mount.getxattr(&at, c"ceph.quota.max_bytes", &mut room);
    let text = String::from_utf8_lossy(&room[..found.unwrap_or(0)]).into_owned();
    text.trim_end_matches('\0').parse().unwrap_or(0)
}

#[test]
fn the_user_of_the_guide_may_do_what_a_gateway_does() {
    let Some(conf) = conf() else { return };
    let base = tempfile::tempdir().unwrap();
    let own = configuration(&conf, base.path());
    let ceph = Arc::new(connect_as(own.clone(), USER, 2));
    let (one, two, mark) = (format!("{}/one", new_path()), format!("{}/two", new_path()), "mark");
    for pool in [&one, &two] {
        claim_pool(&ceph, pool, mark).unwrap();
    }
    let (from, to) = (format!("{one}/volumes/7"), format!("{two}/volumes/7"));
    let bed = Bed::open(Arc::clone(&ceph), from.clone(), options());
    let file = bed.create(&bed.root(), b"f", 0o644, &ROOT).unwrap();
    bed.write(&file, 0, b"data").unwrap();
    block_on(bed.store.commit(&file)).unwrap();
    assert_eq!(bed.read(&file, 0, 100).unwrap().0, b"data");
    while backstop(&ceph, &from) == 0 {
        sleep(Duration::from_millis(20));
    }

    // Another gateway is fenced, and this one goes on.
    let fenced = Arc::new(connect_as(own.clone(), USER, 2));
    let other = Bed::open(Arc::clone(&fenced), format!("{one}/volumes/8"), options());
    let sessions = fenced.sessions().unwrap();
    let addresses: Vec<_> = sessions.into_iter().map(|session| session.addresses).collect();
    let monitors = CephMonitors::connect(&own, USER, 30).unwrap();
    let epoch = monitors.blocklist(&addresses, Duration::from_secs(600)).unwrap();
    ceph.wait_for_epoch(epoch).unwrap();
    let make =
        |number: u32| other.create(&other.root(), format!("g{number}").as_bytes(), 0o644, &ROOT);
    assert_eq!((0..).find_map(|number| make(number).err()), Some(FsError::Io));
    bed.write(&file, 0, b"more").unwrap();
    block_on(bed.store.commit(&file)).unwrap();

    drop(file);
    assert!(StoreControl::close_all(&[&bed.store]).iter().all(Result::is_ok));
    assert!(move_volume(&ceph, &from, &to).unwrap());
    bed.end();
    assert_eq!(remove_volume(&ceph, (&two, mark), &to, &|| false).unwrap(), Removal::Done);
    drop(fenced);
    other.end();
    Arc::into_inner(ceph).unwrap().disconnect();
}
