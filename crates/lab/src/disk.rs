//! File systems in files: made, mounted, throttled, cut from power, and gone with the mount
//! namespace.

use crate::process::run;
use anyhow::{Context, Result};
use serde::Serialize;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The file of the first version of control groups that throttles block devices.
const THROTTLE: &str = "/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device";
/// The files that throttle operations.
const THROTTLE_IOPS: [&str; 2] = [
    "/sys/fs/cgroup/blkio/blkio.throttle.read_iops_device",
    "/sys/fs/cgroup/blkio/blkio.throttle.write_iops_device",
];

/// A kind of file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Filesystem {
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
}

impl Filesystem {
    /// Both.
    pub(crate) const ALL: [Self; 2] = [Self::Ext4, Self::Xfs];

    /// The file system's name, as `mkfs` and `mount` know it.
    #[must_use]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }
}

/// A file system on a loop device. Dropping it unmounts it and removes the image.
#[derive(Debug)]
pub(crate) struct Disk {
    image: PathBuf,
    mount: PathBuf,
    /// The files and words that lift each throttle.
    throttled: Vec<(&'static str, String)>,
}

impl Disk {
    /// Makes a file system of `bytes` in a sparse file in `dir`, and mounts it.
    pub(crate) fn make(dir: &Path, name: &str, kind: Filesystem, bytes: u64) -> Result<Self> {
        let image = dir.join(format!("{name}.img"));
        let mount = dir.join(name);
        let file =
            File::create(&image).with_context(|| format!("can't make {}", image.display()))?;
        file.set_len(bytes)?;
        std::fs::create_dir_all(&mount)?;
        let disk = Self { image, mount, throttled: Vec::new() };
        let quiet = if kind == Filesystem::Ext4 { "-qF" } else { "-qf" };
        run(Command::new(format!("mkfs.{}", kind.name())).arg(quiet).arg(&disk.image))?;
        run(Command::new("mount")
            .args(["-t", kind.name(), "-o", "loop,noatime"])
            .args([&disk.image, &disk.mount]))?;
        Ok(disk)
    }

    /// The mount point.
    pub(crate) fn path(&self) -> &Path {
        &self.mount
    }

    /// Limits all writes to the device to `bytes_per_second`.
    pub(crate) fn throttle(&mut self, bytes_per_second: u64) -> Result<()> {
        self.hold(THROTTLE, bytes_per_second)
    }

    /// Limits the device to this many reads and as many writes per second.
    pub(crate) fn throttle_iops(&mut self, per_second: u64) -> Result<()> {
        THROTTLE_IOPS.iter().try_for_each(|file| self.hold(file, per_second))
    }

    fn hold(&mut self, file: &'static str, rate: u64) -> Result<()> {
        let device = std::fs::metadata(&self.mount)?.dev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        std::fs::write(file, format!("{major}:{minor} {rate}\n"))
            .with_context(|| format!("cannot throttle {major}:{minor} with {file}"))?;
        self.throttled.push((file, format!("{major}:{minor} 0\n")));
        Ok(())
    }

    /// Stops the file system at once, as a power cut would: nothing more reaches the device, not
    /// even its journal (the ioctl behind `shutdown` without a flush of the log). What had been
    /// handed to the device before counts as written: the device itself loses nothing.
    pub(crate) fn cut(&self) -> Result<()> {
        run(Command::new("xfs_io").args(["-x", "-c", "shutdown"]).arg(&self.mount))
    }

    /// Mounts the file system again after [`Disk::cut`], from what is on the device.
    pub(crate) fn restore(&self) -> Result<()> {
        run(Command::new("umount").arg(&self.mount))?;
        run(Command::new("mount").args(["-o", "loop,noatime"]).args([&self.image, &self.mount]))
    }

    /// Writes everything that is only in memory to the device.
    pub(crate) fn sync(&self) -> Result<()> {
        let directory = File::open(&self.mount)?;
        rustix::fs::syncfs(&directory).context("can't sync")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        for (file, lift) in self.throttled.drain(..) {
            if let Err(error) = std::fs::write(file, lift) {
                weir_report::errln!("the throttle of {} stays: {error}", self.mount.display());
            }
        }
        if let Err(error) = run(Command::new("umount").arg(&self.mount)) {
            weir_report::errln!("{error:#}");
            return;
        }
        for gone in [std::fs::remove_dir(&self.mount), std::fs::remove_file(&self.image)] {
            if let Err(error) = gone {
                weir_report::errln!("{}: {error}", self.image.display());
            }
        }
    }
}

/// Can block devices be throttled here?
pub(crate) fn can_throttle() -> bool {
    Path::new(THROTTLE).exists()
}
