//! The notes of all lives, laid beside each other.

use crate::process::{Note, What};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// A gateway and the number of its life.
pub(crate) type Life = (u16, u32);

/// The notes of all lives.
pub(crate) struct Notes {
    lives: BTreeMap<Life, Vec<Note>>,
    killed: Vec<Life>,
}

/// A time during which a life might reply for a group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tenure {
    begin: u64,
    end: u64,
    life: Life,
}

impl Notes {
    /// Reads the notes in a directory. The last line of a life that was killed may be cut.
    pub(crate) fn read(base: &Path, killed: &[Life]) -> Self {
        let mut lives = BTreeMap::new();
        for entry in fs::read_dir(base).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            let Some(numbers) = name.strip_prefix("notes-") else { continue };
            let (gateway, number) = numbers.split_once('-').unwrap();
            let text = fs::read_to_string(&path).unwrap();
            let whole = text.rfind('\n').map_or("", |end| &text[..end]);
            let notes = whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            lives.insert((gateway.parse().unwrap(), number.parse().unwrap()), notes);
        }
        Self { lives, killed: killed.to_vec() }
    }

    pub(crate) fn lives(&self) -> impl Iterator<Item = Life> {
        self.lives.keys().copied()
    }

    pub(crate) fn of(&self, life: Life) -> &[Note] {
        self.lives.get(&life).map_or(&[], Vec::as_slice)
    }

    /// The time of the last reply for a group, and the life.
    pub(crate) fn last_reply(&self, group: u32) -> Option<(u64, Life)> {
        let last = |(life, notes): (&Life, &Vec<Note>)| {
            let replies = |note: &&Note| matches!(&note.what, What::Replies(_, groups) if groups.contains(&group));
            notes.iter().rev().find(replies).map(|note| (note.at, *life))
        };
        self.lives.iter().filter_map(last).max()
    }

    /// Has a life of these gateways had groups and no right, since `from`?
    pub(crate) fn has_lapsed(&self, gateways: &[u16], from: u64) -> bool {
        let own = self.lives.iter().filter(|(life, _)| gateways.contains(&life.0));
        own.flat_map(|(_, notes)| notes)
            .any(|note| note.at >= from && matches!(note.what, What::Lapsed(_)))
    }

    /// The words with which a life ended.
    pub(crate) fn end(&self, life: Life) -> Option<&str> {
        self.of(life).iter().find_map(|note| match &note.what {
            What::Ended(words) => Some(words.as_str()),
            _ => None,
        })
    }

    /// The times in which lives might reply for a group. A life that was killed might not after its
    /// last note; another one might until its right ended, unless it ended the service before.
    fn tenures(&self, group: u32) -> Vec<Tenure> {
        let mut tenures = Vec::new();
        for (&life, notes) in &self.lives {
            let was_killed = self.killed.contains(&life);
            let mut open: Option<(u64, u64, u64)> = None;
            let mut close = |open: &mut Option<(u64, u64, u64)>, at: u64| {
                if let Some((begin, last, until)) = open.take() {
                    let end = if was_killed { last } else { until.min(at).max(last) };
                    tenures.push(Tenure { begin, end, life });
                }
            };
            for note in notes {
                match &note.what {
                    What::Replies(until, groups) if groups.contains(&group) => {
                        let begin = open.map_or(note.at, |(begin, ..)| begin);
                        open = Some((begin, note.at, *until));
                    }
                    What::Stopped(stopped) if *stopped == group => close(&mut open, note.at),
                    What::Ended(_) => close(&mut open, note.at),
                    _ => {}
                }
            }
            close(&mut open, u64::MAX);
        }
        tenures.sort();
        tenures
    }

    /// The pairs of lives that might reply for one group at one time.
    pub(crate) fn overlaps(&self) -> Vec<(u32, Tenure, Tenure)> {
        let groups = 1..=crate::bed::GROUPS;
        groups.flat_map(|group| overlaps(group, &self.tenures(group))).collect()
    }

    /// Whoever took a group over did so after the blocklist of the life before was in force, and
    /// after that life could reply no more.
    pub(crate) fn check_takeovers(&self) {
        for notes in self.lives.values() {
            for note in notes {
                let What::Adopted(group, Some(from)) = note.what else { continue };
                let blocklisted = self
                    .lives
                    .values()
                    .flatten()
                    .filter(|note| note.what == What::Blocklisted(from.0, from.1));
                let first = blocklisted.map(|note| note.at).min();
                assert!(
                    first.is_some_and(|first| first <= note.at),
                    "{from:?}: {first:?}, {note:?}"
                );
                let before = self.tenures(group).into_iter().filter(|tenure| tenure.life == from);
                assert!(
                    before.clone().all(|tenure| tenure.end <= note.at),
                    "group {group}, {note:?}"
                );
            }
        }
    }

    /// The notes besides those of replies, in the order of their times.
    pub(crate) fn summary(&self) -> String {
        let mut all: Vec<(u64, Life, String)> = Vec::new();
        for (life, notes) in &self.lives {
            let mut last = "";
            for note in notes {
                let (kind, words) = match &note.what {
                    What::Replies(until, groups) => {
                        ("replies", format!("replies until {until} for {groups:?}"))
                    }
                    What::Lapsed(groups) => ("lapsed", format!("lapsed for {groups:?}")),
                    other => ("", format!("{other:?}")),
                };
                // Of equal ones in a row the first is enough.
                if kind.is_empty() || kind != last {
                    all.push((note.at, *life, words));
                }
                last = kind;
            }
        }
        all.sort();
        let start = all.first().map_or(0, |(at, ..)| *at);
        let mut text = String::new();
        for (at, life, words) in all {
            writeln!(text, "{:>8} ms {life:?} {words}", (at - start) / 1_000_000).unwrap();
        }
        text
    }
}

fn overlaps(group: u32, tenures: &[Tenure]) -> Vec<(u32, Tenure, Tenure)> {
    let mut wrong = Vec::new();
    for (index, first) in tenures.iter().enumerate() {
        for second in &tenures[index + 1..] {
            if first.life != second.life && first.end > second.begin {
                wrong.push((group, first.clone(), second.clone()));
            }
        }
    }
    wrong
}

#[test]
fn two_lives_at_one_time_are_found() {
    let replies = |at, until| Note { at, what: What::Replies(until, vec![1]) };
    let stopped = |at| Note { at, what: What::Stopped(1) };
    let of = |first: Vec<Note>, second: Vec<Note>, killed: &[Life]| {
        let lives = [((1, 1), first), ((2, 1), second)].into();
        Notes { lives, killed: killed.to_vec() }.overlaps().len()
    };
    let first = || vec![replies(10, 50), replies(20, 60)];
    assert_eq!(of(first(), vec![replies(59, 99)], &[]), 1, "the right of the first ends at 60");
    assert_eq!(of(first(), vec![replies(60, 99)], &[]), 0);
    assert_eq!(of(first(), vec![replies(25, 99)], &[(1, 1)]), 0, "it was killed");
    assert_eq!(of(first(), vec![replies(15, 99)], &[(1, 1)]), 1);
    let handed = [first(), vec![stopped(30)]].concat();
    assert_eq!(of(handed.clone(), vec![replies(31, 99)], &[]), 0);
    assert_eq!(of(handed, vec![replies(29, 99)], &[]), 1);
}
