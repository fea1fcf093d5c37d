//! The targets besides the load: are they there, is there room, and the directories that the suite
//! makes and removes.

mod nfs;
mod owner;
mod path;

use owner::{MARK, Owner};
use std::collections::BTreeSet;
use weir_load::control::Control;
use weir_load::engine::{Limits, SmbTop, Waits, path_room};
use weir_load::error::BenchError;
use weir_load::target::{Target, Targets};
use weir_load::workload::Location;

/// Looks after the directories of targets.
pub trait Place {
    /// Are the targets there?
    ///
    /// # Errors
    /// [`BenchError`] says why not, and what to do.
    fn reach(&mut self) -> Result<(), BenchError>;

    /// Bytes that may still be written to the target of this name; `None` if it does not tell.
    ///
    /// # Errors
    /// [`BenchError`] if it can't be asked.
    fn room(&mut self, target: &str) -> Result<Option<u64>, BenchError>;

    /// A name of the target's file system: targets of the same one share the room on it.
    ///
    /// # Errors
    /// [`BenchError`] if it can't be asked for.
    fn file_system(&mut self, target: &str) -> Result<String, BenchError>;

    /// The limits of the target of this name.
    ///
    /// # Errors
    /// [`BenchError`] if it can't be asked.
    fn limits(&mut self, target: &str) -> Result<Limits, BenchError>;

    /// Makes the directory `at` for the suite alone, or finds it empty, or empties it if a killed
    /// run of this machine made it. It holds a mark of this run then.
    ///
    /// # Errors
    /// [`BenchError`] if something else is in it, or if it can't be made.
    fn claim(&mut self, at: &Location) -> Result<Claim, BenchError>;

    /// Removes the mark of this run from the directory `at`, whose files stay.
    ///
    /// # Errors
    /// [`BenchError`] if it can't be removed.
    fn release(&mut self, at: &Location) -> Result<(), BenchError>;

    /// Removes everything in the directory `at`, the mark of this run last, and itself if
    /// `with_directory`. One that is not there is removed already.
    ///
    /// # Errors
    /// [`BenchError`] names what could not be removed.
    fn clear(&mut self, at: &Location, with_directory: bool) -> Result<(), BenchError>;
}

/// How a directory came to be that of this run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// It was made, by this run or the killed one.
    pub made: bool,
    /// The process of the killed run whose files were removed.
    pub abandoned: Option<u32>,
}

/// A [`Place`] reached from this process.
pub struct TargetPlace {
    targets: Targets,
    control: Control,
    /// The directories that it claimed, by the number in their marks.
    claimed: Vec<Location>,
    /// The claimed directories that could not be cleared: they still have their marks.
    uncleared: BTreeSet<Location>,
}

impl TargetPlace {
    /// At `targets`.
    #[must_use]
    pub fn new(targets: impl Into<Targets>) -> Self {
        let (control, claimed, uncleared) = (Control::new(), Vec::new(), BTreeSet::new());
        Self { targets: targets.into(), control, claimed, uncleared }
    }

    /// A stop by `control` ends its waits for answers of the targets.
    #[must_use]
    pub fn stopped_by(self, control: &Control) -> Self {
        Self { control: control.clone(), ..self }
    }
}

impl Place for TargetPlace {
    fn reach(&mut self) -> Result<(), BenchError> {
        let waits = Waits::checking(&self.control);
        self.targets.iter().try_for_each(|(_, target)| match target {
            Target::Nfs(target) => nfs::NfsTop::open(target, &waits).map(drop),
            Target::Smb(target) => SmbTop::open(target, &waits).map(drop),
            Target::Path(target) => target.all().try_for_each(path::reach),
        })
    }

    fn room(&mut self, target: &str) -> Result<Option<u64>, BenchError> {
        let waits = Waits::checking(&self.control);
        match self.targets.get(target)? {
            Target::Nfs(target) => nfs::NfsTop::open(target, &waits)?.room(),
            Target::Smb(target) => SmbTop::open(target, &waits)?.room(),
            Target::Path(target) => path_room(&target.root).map(Some),
        }
    }

    fn file_system(&mut self, target: &str) -> Result<String, BenchError> {
        let waits = Waits::checking(&self.control);
        Ok(match self.targets.get(target)? {
            Target::Nfs(target) => {
                let id = nfs::NfsTop::open(target, &waits)?.file_system()?;
                format!("nfs {} {id:x}", target.address)
            }
            Target::Smb(target) => format!("smb {} {}", target.address, target.share),
            Target::Path(target) => format!("path {:x}", path::device(&target.root)?),
        })
    }

    fn limits(&mut self, target: &str) -> Result<Limits, BenchError> {
        let waits = Waits::checking(&self.control);
        match self.targets.get(target)? {
            Target::Nfs(target) => nfs::NfsTop::open(target, &waits)?.limits(),
            Target::Smb(target) => Ok(SmbTop::open(target, &waits)?.limits()),
            Target::Path(_) => Ok(Limits::default()),
        }
    }

    fn claim(&mut self, at: &Location) -> Result<Claim, BenchError> {
        plain(&at.directory)?;
        let number = self.claimed.len();
        let mut top = self.top(at)?;
        let is_own =
            |number: usize| self.claimed.get(number) == Some(at) && self.uncleared.contains(at);
        let claim =
            claim(&mut *top, &at.directory, number, &is_own).map_err(|held| match held {
                Held::Failed(error) => error,
                Held::ByThisRun(other) => twice(at, self.claimed.get(other)),
            })?;
        self.claimed.push(at.clone());
        Ok(claim)
    }

    fn release(&mut self, at: &Location) -> Result<(), BenchError> {
        plain(&at.directory)?;
        unmark(&mut *self.top(at)?, &at.directory)
    }

    fn clear(&mut self, at: &Location, with_directory: bool) -> Result<(), BenchError> {
        plain(&at.directory)?;
        // It is not cleared until that has succeeded.
        self.uncleared.insert(at.clone());
        clear(&mut *self.top(at)?, &at.directory, with_directory)?;
        self.uncleared.remove(at);
        Ok(())
    }
}

impl TargetPlace {
    fn top(&self, at: &Location) -> Result<Box<dyn Top>, BenchError> {
        let waits = Waits::working(&self.control);
        Ok(match self.targets.get(&at.target)? {
            Target::Nfs(target) => Box::new(nfs::NfsTop::open(target, &waits)?),
            Target::Smb(target) => Box::new(SmbTop::open(target, &waits)?),
            Target::Path(target) => Box::new(path::PathTop(target.root.clone())),
        })
    }
}

/// Directories below the top of a target, by the names that lead to them.
trait Top {
    /// Makes a directory; `false` if it is there.
    fn make(&mut self, path: &[&str]) -> Result<bool, BenchError>;

    /// The first names in a directory, `.` and `..` left out; none if it is not there.
    fn names(&mut self, path: &[&str]) -> Result<Vec<String>, BenchError>;

    /// Removes what is in a directory, but for the entry `except` of it.
    fn empty(&mut self, path: &[&str], except: &str) -> Result<(), BenchError>;

    /// Removes an empty directory; `false` if it is not empty. One that is not there is removed
    /// already.
    fn remove(&mut self, path: &[&str]) -> Result<bool, BenchError>;
}

impl Top for SmbTop {
    fn make(&mut self, path: &[&str]) -> Result<bool, BenchError> {
        self.make(&path.join("/"))
    }

    fn names(&mut self, path: &[&str]) -> Result<Vec<String>, BenchError> {
        self.names(&path.join("/"))
    }

    fn empty(&mut self, path: &[&str], except: &str) -> Result<(), BenchError> {
        self.empty(&path.join("/"), except)
    }

    fn remove(&mut self, path: &[&str]) -> Result<bool, BenchError> {
        self.remove(&path.join("/"))
    }
}

/// Why a directory can't be claimed.
enum Held {
    /// This run claimed it before, with this number.
    ByThisRun(usize),
    Failed(BenchError),
}

impl From<BenchError> for Held {
    fn from(error: BenchError) -> Self {
        Self::Failed(error)
    }
}

/// Makes a directory, or finds it empty, or takes that of killed runs over, or that of an earlier
/// claim of this run that could not be cleared; `is_own` knows its number. The mark of this run is
/// in it then, as the only one: of runs that mark a directory at the same time, each sees the marks
/// of those that did so before it, and withdraws.
fn claim(
    top: &mut dyn Top,
    directory: &str,
    number: usize,
    is_own: &dyn Fn(usize) -> bool,
) -> Result<Claim, Held> {
    let made = top.make(&[directory])?;
    let ended = if made { Vec::new() } else { ended_runs(top, directory, is_own)? };
    let made = made || ended.iter().any(|owner| owner.made);
    let own = Owner::this(made, number).name();
    top.make(&[directory, MARK])?;
    top.make(&[directory, MARK, &own])?;
    let names = top.names(&[directory, MARK])?;
    let known = |name: &String| *name == own || ended.iter().any(|owner| owner.name() == *name);
    if !names.contains(&own) || !names.iter().all(known) {
        top.remove(&[directory, MARK, &own])?;
        let others = names.iter().filter(|name| !known(name)).filter_map(|name| Owner::parse(name));
        return Err(occupied(directory, User::of(others)).into());
    }
    if ended.iter().any(|owner| owner.made || owner.is_this()) {
        top.empty(&[directory], MARK)?;
    }
    for owner in &ended {
        top.remove(&[directory, MARK, &owner.name()])?;
    }
    let killed = ended.iter().find(|owner| !owner.is_this());
    Ok(Claim { made, abandoned: killed.map(Owner::process) })
}

/// The killed runs, and earlier claims of this one, that left their marks in a directory that is
/// there; none if it is empty.
fn ended_runs(
    top: &mut dyn Top,
    directory: &str,
    is_own: &dyn Fn(usize) -> bool,
) -> Result<Vec<Owner>, Held> {
    let inside = top.names(&[directory])?;
    if inside.is_empty() {
        return Ok(Vec::new());
    }
    let names = top.names(&[directory, MARK])?;
    let owners: Option<Vec<Owner>> = names.iter().map(|name| Owner::parse(name)).collect();
    let Some(owners) = owners else { return Err(occupied(directory, User::Elsewhere).into()) };
    let held = |owner: &&Owner| owner.is_this() && !is_own(owner.number);
    if let Some(own) = owners.iter().find(held) {
        return Err(Held::ByThisRun(own.number));
    }
    if !owners.iter().all(|owner| owner.is_this() || owner.has_ended() == Some(true)) {
        return Err(occupied(directory, User::of(owners.into_iter())).into());
    }
    if owners.iter().any(|owner| owner.made || owner.is_this())
        || inside.iter().all(|name| name == MARK)
    {
        return Ok(owners);
    }
    Err(match owners.first() {
        // A directory that no run made may hold other people's files since.
        Some(owner) => left(directory, owner).into(),
        None => occupied(directory, User::Unknown).into(),
    })
}

/// Removes everything in a directory, the mark last: the next run knows the files of a run that is
/// killed here.
fn clear(top: &mut dyn Top, directory: &str, with_directory: bool) -> Result<(), BenchError> {
    top.empty(&[directory], MARK)?;
    unmark(top, directory)?;
    if with_directory && !top.remove(&[directory])? {
        return Err(BenchError::Workload(format!(
            "the directory {directory} is not empty: somebody else uses it"
        )));
    }
    Ok(())
}

/// Removes the marks of this run from a directory.
fn unmark(top: &mut dyn Top, directory: &str) -> Result<(), BenchError> {
    for name in top.names(&[directory, MARK])? {
        if Owner::parse(&name).is_some_and(|owner| owner.is_this()) {
            top.remove(&[directory, MARK, &name])?;
        }
    }
    // It stays if another run has just marked the directory; that run withdraws or goes on.
    top.remove(&[directory, MARK]).map(drop)
}

/// Everything in a directory of the suite is removed, so it must lie below the target, whatever a
/// text says.
fn plain(directory: &str) -> Result<(), BenchError> {
    if directory.is_empty() || directory.starts_with('.') || directory.contains(['/', '\0']) {
        return Err(BenchError::Workload(format!("{directory:?} is not a plain directory name")));
    }
    Ok(())
}

/// The user of a directory that is not empty.
#[derive(Clone, Copy)]
enum User {
    /// A run that is active on this machine, by its process.
    Process(u32),
    /// A run of another machine, which may be active.
    Elsewhere,
    /// No run has marked it.
    Unknown,
}

impl User {
    /// The user of a directory that these runs marked.
    fn of(mut owners: impl Iterator<Item = Owner>) -> Self {
        let active = owners.find(|owner| !owner.is_this() && owner.has_ended() == Some(false));
        active.map_or(Self::Elsewhere, |owner| Self::Process(owner.process()))
    }
}

/// The error of a directory that is not empty.
fn occupied(directory: &str, user: User) -> BenchError {
    let who = match user {
        User::Process(process) => {
            return BenchError::Workload(format!(
                "process {process} of this machine uses the directory {directory} on the target: \
                 wait until it has ended, or use another directory with --dir"
            ));
        }
        User::Elsewhere => "another run uses it, or was killed on another machine",
        User::Unknown => "it was left by a run with --keep, or is somebody else's",
    };
    BenchError::Workload(format!(
        "the directory {directory} already exists on the target and is not empty: {who}. Use its \
         files with --reuse, use another directory with --dir, or remove it"
    ))
}

/// The error of a directory that this run claimed as `other` already.
fn twice(at: &Location, other: Option<&Location>) -> BenchError {
    let named = |at: &Location| match at.target.as_str() {
        "" => "the target without a name".to_owned(),
        name => format!("the target {name}"),
    };
    let other = other.map_or_else(|| "another target".to_owned(), named);
    BenchError::Workload(format!(
        "{other} and {} are one directory: the directory {} of both would hold the files of both. \
         Name each of them once",
        named(at),
        at.directory
    ))
}

/// The error of a directory that holds files, and that a killed run found.
fn left(directory: &str, owner: &Owner) -> BenchError {
    BenchError::Workload(format!(
        "the directory {directory} on the target holds files and the mark of a killed run (process \
         {}) that did not make the directory, so the files may be other people's: remove those of \
         the run and the mark {directory}/{MARK}, use the files with --reuse, or use another \
         directory with --dir",
        owner.process()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn nothing_but_a_directory_below_the_target_is_ever_emptied() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("precious"), "x").unwrap();
        let mut place = TargetPlace::new(Target::Path(root.path().into()));
        for directory in ["", ".", "..", "a/b", "/", "../x"] {
            let at = Location { directory: directory.to_owned(), ..Location::default() };
            assert!(place.claim(&at).is_err(), "{at:?}");
            assert!(place.clear(&at, true).is_err(), "{at:?}");
        }
        assert!(root.path().join("precious").exists());
    }

    fn location(directory: &str) -> Location {
        Location { directory: directory.to_owned(), ..Location::default() }
    }

    #[test]
    fn a_directory_is_claimed_once_and_released_with_its_files() {
        let root = tempfile::tempdir().unwrap();
        let mut place = TargetPlace::new(Target::Path(root.path().into()));
        let at = location("bench");
        assert_eq!(place.claim(&at).unwrap(), Claim { made: true, abandoned: None });
        assert!(place.claim(&at).is_err());
        std::fs::write(root.path().join("bench/file"), "x").unwrap();
        place.release(&at).unwrap();
        assert_eq!(std::fs::read_dir(root.path().join("bench")).unwrap().count(), 1);
        let refused = place.claim(&at).unwrap_err().to_string();
        assert!(refused.contains("--keep"), "{refused}");
        place.clear(&at, false).unwrap();
        assert_eq!(place.claim(&at).unwrap(), Claim { made: false, abandoned: None });
        place.clear(&at, true).unwrap();
        assert!(!root.path().join("bench").exists());
    }

    /// The name of a process of this machine that has ended: none has started at the time 1.
    fn ended(made: bool) -> String {
        let own = Owner::this(made, 0).name();
        let mut parts: Vec<&str> = own.split('.').collect();
        parts[2] = "1";
        parts.join(".")
    }

    /// Leaves the mark of a run in the directory `bench`, with a file beside.
    fn leave(root: &Path, owner: &str) {
        std::fs::create_dir_all(root.join("bench").join(MARK).join(owner)).unwrap();
        std::fs::write(root.join("bench/file"), "x").unwrap();
    }

    #[test]
    fn the_files_of_a_killed_run_are_removed_and_no_others() {
        let root = tempfile::tempdir().unwrap();
        let mut place = TargetPlace::new(Target::Path(root.path().into()));
        let at = location("bench");
        leave(root.path(), &ended(true));
        let process = std::process::id();
        assert_eq!(place.claim(&at).unwrap(), Claim { made: true, abandoned: Some(process) });
        assert!(!root.path().join("bench/file").exists());
        place.clear(&at, true).unwrap();
        let elsewhere = ended(true).replace(&Owner::this(true, 0).boot, "another-machine");
        leave(root.path(), &elsewhere);
        assert!(place.claim(&at).is_err());
        assert!(root.path().join("bench/file").exists());
    }

    #[test]
    fn a_run_that_is_active_on_this_machine_is_named_and_its_files_are_not_to_be_removed() {
        let root = tempfile::tempdir().unwrap();
        let mut other = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        leave(root.path(), &Owner::of_process(other.id()).name());
        let mut place = TargetPlace::new(Target::Path(root.path().into()));
        let refused = place.claim(&location("bench")).unwrap_err().to_string();
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(refused.contains(&format!("process {} of this machine", other.id())), "{refused}");
        assert!(!refused.contains("remove") && !refused.contains("--reuse"), "{refused}");
        place.claim(&location("bench")).expect("it has ended");
    }

    #[test]
    fn files_in_a_directory_that_a_killed_run_found_are_never_removed() {
        let root = tempfile::tempdir().unwrap();
        let mut place = TargetPlace::new(Target::Path(root.path().into()));
        let (at, file) = (location("bench"), root.path().join("bench/file"));
        leave(root.path(), &ended(false));
        let refused = place.claim(&at).unwrap_err().to_string();
        for way in ["bench/.weir-bench-run", "--reuse", "--dir"] {
            assert!(refused.contains(way), "{refused}");
        }
        assert!(file.exists());
        // The mark alone is the run's own.
        std::fs::remove_file(&file).unwrap();
        let process = std::process::id();
        assert_eq!(place.claim(&at).unwrap(), Claim { made: false, abandoned: Some(process) });
        place.clear(&at, false).unwrap();
        assert!(root.path().join("bench").exists());
    }

    #[test]
    fn two_targets_of_one_directory_are_told_by_name() {
        let root = tempfile::tempdir().unwrap();
        let link = root.path().join("link");
        std::os::unix::fs::symlink(root.path(), &link).unwrap();
        let targets = [("x", root.path()), ("other", Path::new("/proc")), ("y", &link)];
        let targets: Targets = targets
            .into_iter()
            .map(|(name, path)| (name.to_owned(), Target::Path(path.into())))
            .collect();
        let on = |target: &str| Location { target: target.to_owned(), ..location("bench") };
        let mut place = TargetPlace::new(targets);
        place.claim(&on("x")).unwrap();
        let refused = place.claim(&on("y")).unwrap_err().to_string();
        assert!(refused.contains("the target x and the target y are one directory"), "{refused}");
    }

    /// A directory in which another run leaves its mark just after this one has listed names so
    /// many times; and which fails after so many removals, as if the run were killed.
    struct Disturbed {
        top: path::PathTop,
        lists: u32,
        other: Option<String>,
        removals: u32,
    }

    impl Disturbed {
        fn new(root: &Path) -> Self {
            let top = path::PathTop(root.to_owned());
            Self { top, lists: 0, other: None, removals: u32::MAX }
        }

        fn removal(&mut self) -> Result<(), BenchError> {
            self.removals = self.removals.checked_sub(1).ok_or(BenchError::Worker)?;
            Ok(())
        }
    }

    impl Top for Disturbed {
        fn make(&mut self, path: &[&str]) -> Result<bool, BenchError> {
            self.top.make(path)
        }

        fn names(&mut self, path: &[&str]) -> Result<Vec<String>, BenchError> {
            let before = self.top.names(path)?;
            self.lists = self.lists.saturating_sub(1);
            if self.lists == 0
                && let Some(other) = self.other.take()
            {
                self.top.make(&["bench", MARK])?;
                self.top.make(&["bench", MARK, &other])?;
            }
            Ok(before)
        }

        fn empty(&mut self, path: &[&str], except: &str) -> Result<(), BenchError> {
            self.removal()?;
            self.top.empty(path, except)
        }

        fn remove(&mut self, path: &[&str]) -> Result<bool, BenchError> {
            self.removal()?;
            self.top.remove(path)
        }
    }

    #[test]
    fn of_two_runs_that_claim_at_the_same_time_the_later_withdraws() {
        let other = "1.1.1.1.0.elsewhere";
        for (killed_run, lists) in [(false, 1), (true, 1), (true, 2)] {
            let root = tempfile::tempdir().unwrap();
            let bench = root.path().join("bench");
            std::fs::create_dir(&bench).unwrap();
            if killed_run {
                leave(root.path(), &ended(true));
            }
            let other = Some(other.to_owned());
            let mut top = Disturbed { lists, other, ..Disturbed::new(root.path()) };
            let Err(Held::Failed(refused)) = claim(&mut top, "bench", 0, &|_| false) else {
                panic!("it was claimed twice")
            };
            assert!(refused.to_string().contains("another run uses it"), "{refused}");
            let mut marks = top.top.names(&["bench", MARK]).unwrap();
            marks.retain(|mark| *mark != ended(true));
            assert_eq!(marks, ["1.1.1.1.0.elsewhere"], "the own mark is withdrawn");
            assert_eq!(bench.join("file").exists(), killed_run, "nothing is removed");
        }
    }

    #[test]
    fn a_run_takes_a_directory_over_that_it_could_not_clear() {
        let root = tempfile::tempdir().unwrap();
        let mut top = Disturbed::new(root.path());
        assert!(claim(&mut top, "bench", 0, &|_| false).is_ok());
        let file = root.path().join("bench/file");
        std::fs::write(&file, "x").unwrap();
        top.removals = 0;
        assert!(clear(&mut top, "bench", true).is_err());
        let mut top = Disturbed::new(root.path());
        let held = claim(&mut top, "bench", 1, &|_| false);
        assert!(matches!(held, Err(Held::ByThisRun(0))), "another directory of the run");
        assert!(file.exists());
        let claimed = claim(&mut top, "bench", 1, &|number| number == 0);
        assert!(matches!(claimed, Ok(Claim { made: true, abandoned: None })));
        assert!(!file.exists());
    }

    #[test]
    fn a_run_that_is_killed_while_it_clears_leaves_a_directory_that_the_next_takes() {
        for removals in 0..4 {
            let root = tempfile::tempdir().unwrap();
            let mut top = Disturbed::new(root.path());
            assert!(claim(&mut top, "bench", 0, &|_| false).is_ok());
            std::fs::write(root.path().join("bench/file"), "x").unwrap();
            top.removals = removals;
            assert!(clear(&mut top, "bench", true).is_err(), "{removals} removals are too few");
            let marks = root.path().join("bench").join(MARK);
            let own = marks.join(Owner::this(true, 0).name());
            if own.exists() {
                std::fs::rename(own, marks.join(ended(true))).unwrap();
            }
            let mut top = Disturbed::new(root.path());
            assert!(claim(&mut top, "bench", 1, &|_| false).is_ok(), "after {removals} removals");
            clear(&mut top, "bench", false).unwrap();
            assert_eq!(top.top.names(&["bench"]).unwrap(), [""; 0]);
        }
    }
}
