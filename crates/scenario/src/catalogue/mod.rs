//! Published tests of storage services, each by name, at their original size.
//!
//! A test is data: tables of what was published beside the load that gave it. Making it fit a
//! machine is [`crate::scenario::scale`]'s work. Where a publication is silent (requests in flight,
//! run times), the choice is ours and the test's `about` says so. What needs an ability
//! that no engine has yet is listed all the same, as waiting; a like load over another protocol
//! stands under a name of its own and carries no published figures. `docs/bench-catalogue.md` is
//! made from it ([`document`]).

mod anf;
mod audit;
mod azure;
mod build;
mod contract;
pub mod document;
mod eda;
mod gcnv;
pub mod pairs;
#[cfg(test)]
mod tests;
mod vdbench;

use crate::scenario::{Language, Scenario, Step, scale};

/// The protocol that a test speaks to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// NFSv3, or a mounted path.
    Nfs,
    /// SMB 3.
    Smb,
}

impl Protocol {
    /// For tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nfs => "NFSv3",
            Self::Smb => "SMB",
        }
    }
}

/// One line of the list of tests.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The test's name.
    pub name: String,
    /// For people.
    pub title: String,
    /// The test's protocol.
    pub protocol: Protocol,
    /// The number of steps.
    pub steps: usize,
    /// Does any step carry published figures?
    pub published: bool,
    /// Minutes that one run takes at its original size, laying out the files included.
    pub minutes: f64,
    /// Why it can't be run yet.
    pub waiting: Option<String>,
}

/// A test, and what it speaks.
struct Test {
    protocol: Protocol,
    scenario: Scenario,
}

impl Test {
    /// Over NFSv3 or on a path.
    fn nfs(head: &Head<'_>, steps: Vec<Step>) -> Self {
        Self { protocol: Protocol::Nfs, scenario: head.scenario(steps, None) }
    }

    /// On this number of addresses of the server.
    fn on_addresses(mut self, addresses: u32) -> Self {
        self.scenario.addresses = Some(addresses);
        self
    }

    /// Over SMB.
    fn smb(head: &Head<'_>, steps: Vec<Step>) -> Self {
        Self { protocol: Protocol::Smb, scenario: head.scenario(steps, None) }
    }

    /// Over several channels of one SMB session, which the engine can't have yet.
    fn smb_channels(head: &Head<'_>, steps: Vec<Step>) -> Self {
        let waiting = "SMB Multichannel: the suite has one connection for each session".to_owned();
        Self { protocol: Protocol::Smb, scenario: head.scenario(steps, Some(waiting)) }
    }
}

/// The name of a test, and its source.
#[derive(Clone, Copy)]
struct Head<'a> {
    name: &'a str,
    title: &'a str,
    about: &'a str,
    source: Option<&'a str>,
    chart: crate::scenario::Chart,
}

impl Head<'_> {
    fn scenario(&self, steps: Vec<Step>, waiting: Option<String>) -> Scenario {
        Scenario {
            name: self.name.to_owned(),
            title: self.title.to_owned(),
            about: self.about.to_owned(),
            source: self.source.map(str::to_owned),
            language: Language::Catalogue,
            chart: self.chart,
            steps: build::sharing_files(steps),
            changes: Vec::new(),
            waiting,
            addresses: None,
            target: None,
            text: None,
            hosts: Vec::new(),
        }
    }
}

fn tests() -> Vec<Test> {
    let mut tests = anf::tests();
    tests.extend(vdbench::tests());
    tests.extend(gcnv::tests());
    tests.extend(azure::tests());
    tests.extend(eda::tests());
    tests.extend(contract::tests());
    tests
}

/// All tests, in the order in which they are listed.
#[must_use]
pub fn all() -> Vec<Entry> {
    let entry = |test: Test| Entry {
        minutes: scale::estimate(&test.scenario, 1).as_secs_f64() / 60.0,
        steps: test.scenario.steps.len(),
        published: test.scenario.steps.iter().any(|step| step.published.is_some()),
        name: test.scenario.name,
        title: test.scenario.title,
        protocol: test.protocol,
        waiting: test.scenario.waiting,
    };
    tests().into_iter().map(entry).collect()
}

/// The protocol of the test of this name.
#[must_use]
pub fn protocol(name: &str) -> Option<Protocol> {
    tests().into_iter().find(|test| test.scenario.name == name).map(|test| test.protocol)
}

/// The test of this name at its original size; upper and lower case are the same.
///
/// # Errors
/// A sentence that names the nearest name, or the command that lists them.
pub fn scenario(name: &str) -> Result<Scenario, String> {
    let wanted = name.trim().to_lowercase();
    let mut names = Vec::new();
    for test in tests() {
        if test.scenario.name == wanted {
            return Ok(test.scenario);
        }
        names.push(test.scenario.name);
    }
    Err(match nearest(&wanted, &names) {
        Some(near) => format!("no test is called {name:?}; did you mean {near}?"),
        None => format!("no test is called {name:?}; `weir bench list` names them all"),
    })
}

/// The name that has most of the words of `wanted`, and of several the one that takes fewest
/// changes to become it, if it has all words or the changes are at most a third of it; else the
/// first that begins with it.
fn nearest<'a>(wanted: &str, names: &'a [String]) -> Option<&'a str> {
    let close = names.iter().map(|name| (lacking(wanted, name), distance(wanted, name), name));
    let best = close.min_by_key(|(lacking, changes, _)| (*lacking, *changes));
    if let Some((lacking, changes, name)) = best
        && (lacking == 0 || changes <= wanted.len() / 3)
    {
        return Some(name);
    }
    let mut beginning = names.iter().filter(|name| !wanted.is_empty() && name.starts_with(wanted));
    beginning.next().map(String::as_str)
}

/// The number of words of `wanted` that `name` lacks.
fn lacking(wanted: &str, name: &str) -> usize {
    let has = |word: &&str| name.split('-').any(|own| own == *word);
    wanted.split('-').filter(|word| !has(word)).count()
}

/// Characters to insert, remove or replace (Levenshtein).
fn distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.chars().count()).collect();
    for (line, have) in (1..).zip(from.chars()) {
        let mut diagonal = line - 1;
        let mut left = line;
        for (cell, want) in row.iter_mut().skip(1).zip(to.chars()) {
            let replaced = diagonal + usize::from(have != want);
            diagonal = *cell;
            left = replaced.min(diagonal + 1).min(left + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = line;
        }
    }
    row.last().copied().unwrap_or(0)
}
