//! A text applied by the engine: the fill reaches every block once, and what follows finds it.

use super::*;
use std::time::Instant;
use weir_load::{Control, Target, prepare_step};

/// Operations of each kind, and their bytes, of each step on a directory of a file system.
fn applied(text: &str, directory: &Path) -> Vec<Vec<(String, u64, u64)>> {
    let target = Target::Path(directory.into());
    let control = Control::new();
    let apply = |step: &Step| {
        let mut ready =
            prepare_step(&target.clone().into(), &step.loads, &control, &mut |_, _| {}).unwrap();
        let record = ready.run(Instant::now(), &control, |_| {}).unwrap();
        let (total, _) = record.results(&step.name).unwrap();
        assert!(total.is_clean(), "{}: {total:?}", step.name);
        total
            .by_operation
            .iter()
            .map(|(name, op)| (name.clone(), op.operations, op.bytes))
            .collect()
    };
    steps(text).iter().map(apply).collect()
}

#[test]
fn a_fill_writes_every_block_once_and_reads_find_it() {
    let dir = tempfile::tempdir().unwrap();
    // 3 files of 17 requests, which 2 threads can't share evenly.
    let text = "validate=yes\nsd=sd,lun=/v/f%d,count=(1,3),size=1088k,threads=2\n\
                wd=fill,sd=sd*,rdpct=0,seekpct=eof,xfersize=64k\n\
                wd=read,sd=sd*,rdpct=100,seekpct=seq,xfersize=64k\n\
                rd=rd1,wd=fill,iorate=max,elapsed=10m\nrd=rd2,wd=read,iorate=max,maxdata=1,elapsed=10m\n";
    let done = applied(text, dir.path());
    let op = |step: usize, name: &str| {
        let found = done[step].iter().find(|(own, ..)| own == name);
        found.map(|(_, count, bytes)| (*count, *bytes))
    };
    assert_eq!(op(0, "write"), Some((3 * 17, 3 * 1088 * 1024)), "{done:?}");
    // Each thread reads a sixth of all, rounded up to whole requests.
    assert_eq!(op(1, "read"), Some((6 * 9, 6 * 9 * 65_536)), "{done:?}");
    for name in ["f1", "f2", "f3"] {
        let path = dir.path().join(Workload::default().directory).join(name);
        let bytes = std::fs::read(path).unwrap();
        assert_eq!(bytes.len(), 1088 * 1024);
        assert!(bytes.chunks(65_536).all(|block| block.iter().any(|byte| *byte != 0)), "{name}");
    }
}
