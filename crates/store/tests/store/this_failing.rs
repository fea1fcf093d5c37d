//! Renaming one object on a file system that cannot refuse to replace another.

use crate::common::{Faulty, ROOT};
use crate::this::{leads, rename};
use rustix::io::Errno;
use weir_core::FsError;
use weir_core::store::Replace;
use weir_store::testing::{Fault, Kind, Rule, When};

#[test]
fn a_file_system_that_cannot_refuse_to_replace_is_asked_without() {
    let faulty = Faulty::new();
    faulty.run(|bed| {
        bed.create(&bed.root(), b"f", 0o600, &ROOT).unwrap();
        bed.create(&bed.root(), b"g", 0o600, &ROOT).unwrap();
    });
    let go = |to: &'static str| {
        faulty.run(move |bed| {
            let (root, file) = (bed.root(), bed.lookup(&bed.root(), b"f").unwrap());
            let done = rename(bed, &file, (&root, "f"), (&root, to), Replace::No);
            let id = bed.attr(&file).fileid;
            (done, leads(bed, &root, "f").is_ok(), leads(bed, &root, to) == Ok(id))
        })
    };
    let fail = |errno, when| {
        let rule = Rule::new(&[Kind::Rename], &faulty.directory, Fault::Fail(errno));
        faulty.kernel.add(rule.when(when))
    };
    let never = fail(Errno::INVAL, When::Always);
    assert_eq!(go("h"), (Err(FsError::Invalid), true, false));
    assert_eq!(faulty.kernel.hits(never), 2, "with and without");
    faulty.kernel.lift(never);
    // Made by somebody else meanwhile.
    let there = fail(Errno::EXIST, When::First(1));
    assert_eq!(go("h"), (Err(FsError::Exists), true, false));
    faulty.kernel.lift(there);
    let once = fail(Errno::INVAL, When::First(1));
    assert_eq!(go("h"), (Ok(()), false, true));
    assert_eq!(faulty.kernel.hits(once), 1);
}
