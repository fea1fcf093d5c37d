//! Volumes as earlier versions left them, made here by hand: each is opened by this version with
//! all that is in it.

use crate::common::{Bed, options, places};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use weir_core::FileKind;
use weir_store::{LocalStore, OpenError, StoreControl, volume_format};

/// The content of `meta/usage` after a stop of an earlier version of format 1: cleanly by its own
/// rules, cleanly by those of today, and not cleanly.
const FORMAT_1: [Option<&str>; 4] =
    [Some("4096\n"), None, Some("weir-usage 2 clean 12288\n"), Some("weir-usage 2 open 0 20000\n")];

/// A volume of format 1, whose directories the first versions left open.
fn make(volume: &Path, usage: Option<&str>) {
    for name in ["meta", "snap", "root/dir"] {
        std::fs::create_dir_all(volume.join(name)).unwrap();
    }
    std::fs::set_permissions(volume, PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::write(volume.join("meta/format"), "weir-volume 1\n").unwrap();
    if let Some(usage) = usage {
        std::fs::write(volume.join("meta/usage"), usage).unwrap();
    }
    std::fs::write(volume.join("root/file"), [7; 5000]).unwrap();
    std::fs::set_permissions(volume.join("root/file"), PermissionsExt::from_mode(0o640)).unwrap();
    std::fs::hard_link(volume.join("root/file"), volume.join("root/dir/again")).unwrap();
    std::fs::write(volume.join("root/dir/small"), "small").unwrap();
    symlink("dir/small", volume.join("root/link")).unwrap();
}

#[test]
fn a_volume_of_every_earlier_version_is_opened_with_all_that_is_in_it() {
    for place in places() {
        for (number, usage) in FORMAT_1.into_iter().enumerate() {
            let volume = place.path().join(number.to_string());
            make(&volume, usage);
            let key = std::fs::metadata(volume.join("root/file")).unwrap().ino();
            assert_eq!(volume_format(&volume).unwrap(), 1);
            assert_eq!(volume.metadata().unwrap().mode() & 0o777, 0o755, "looking mends nothing");

            let bed = Bed::open(volume.clone(), options(), place.name);
            let file = bed.lookup(&bed.root(), b"file").unwrap();
            assert_eq!(bed.read(&file, 0, 8192).unwrap(), (vec![7; 5000], true));
            let attr = bed.attr(&file);
            assert_eq!((attr.mode, attr.nlink, attr.fileid), (0o640, 2, key));
            let dir = bed.lookup(&bed.root(), b"dir").unwrap();
            let small = bed.lookup(&dir, b"small").unwrap();
            assert_eq!(bed.read(&small, 0, 100).unwrap().0, b"small");
            let link = bed.lookup(&bed.root(), b"link").unwrap();
            assert_eq!(bed.attr(&link).kind, FileKind::Symlink);
            while !bed.store.usage().exact {
                std::thread::yield_now();
            }
            assert_eq!(bed.store.usage().bytes, 12288, "{usage:?}");
            assert_eq!(volume.metadata().unwrap().mode() & 0o777, 0o700);
            // The volume goes on from there.
            let new = bed.create(&dir, b"new", 0o600, &crate::common::ROOT).unwrap();
            bed.write(&new, 0, &[1; 100]).unwrap();
            bed.store.close().unwrap();
            assert_eq!(bed.reopen().usage().bytes, 16384);
        }
    }
}

#[test]
fn looking_at_a_format_opens_and_makes_nothing() {
    let place = tempfile::tempdir().unwrap();
    let volume = place.path().join("volume");
    assert!(matches!(volume_format(&volume), Err(OpenError::Directory { .. })));
    make(&volume, None);
    let format = volume.join("meta/format");
    for (text, newer) in [("weir-volume 99\n", true), ("weir-volume 0\n", false), ("", false)] {
        std::fs::write(&format, text).unwrap();
        let refused = volume_format(&volume).unwrap_err();
        assert_eq!(matches!(refused, OpenError::NewerFormat { found: 99, .. }), newer, "{refused}");
        assert!(LocalStore::open(&volume, &options()).is_err());
    }
    std::fs::remove_file(&format).unwrap();
    assert!(volume_format(&volume).is_err());
    assert_eq!(volume.join("meta").read_dir().unwrap().count(), 0);
}
