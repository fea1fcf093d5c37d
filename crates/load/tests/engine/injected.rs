//! Campaigns against a server that damages data in every way there is, on the way in and on the
//! way out: what is reported is what was injected, block for block, and nothing else.

use crate::responder::{Hook, Responder, Verdict, count, offset, offset_at, redirect};
use crate::{READ, WRITE, workload};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use weir_load::{
    Control, Draw, Layout, Operation, Pattern, Region, RunResult, VerifyScope, Workload, prepare,
};
use weir_nfs::v3::wire::Status;

const FILES: u64 = 4;
/// Of each kind.
const VICTIMS: usize = 12;
/// The offset to which lost writes go.
const FAR: u64 = 1 << 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Flip,
    Stale,
    Swapped,
    Torn,
    Lost,
}

const KINDS: [Kind; 5] = [Kind::Flip, Kind::Stale, Kind::Swapped, Kind::Torn, Kind::Lost];

/// File and block number.
type Block = (u64, u64);
type Found = BTreeSet<(Block, Kind)>;

/// The side of the damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Writes,
    Reads,
}

#[derive(Clone, Copy, Debug)]
struct Campaign {
    side: Side,
    block_bytes: u32,
    /// Blocks of a file; the load visits the first three quarters, the rest is only laid out.
    blocks: u64,
    pattern: Pattern,
    operations: u64,
    seed: u64,
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap()
}

/// A small generator of its own, so that the choice depends on the seed alone.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % bound
    }
}

/// The damage to a block, every time.
#[derive(Clone, Copy, Debug)]
enum Damage {
    /// This bit of the block.
    Flip(u64),
    Stale,
    /// The other one, in the same file.
    Swapped(u64),
    /// From this byte on.
    Torn(usize),
    Lost,
}

impl Campaign {
    /// The damage by block, none befalling two.
    fn plan(&self) -> BTreeMap<Block, Damage> {
        let (mut dice, mut plan) = (Dice(self.seed), BTreeMap::new());
        let bytes = u64::from(self.block_bytes);
        for kind in KINDS {
            let mut left = VICTIMS;
            while left > 0 {
                // A stale or torn block must have been written twice.
                let visited = matches!(kind, Kind::Stale | Kind::Torn);
                let room = if visited { self.blocks / 4 * 3 } else { self.blocks };
                let file = dice.below(FILES);
                let (one, other) = (dice.below(room), dice.below(room));
                let taken = plan.contains_key(&(file, one));
                if taken || (kind == Kind::Swapped && plan.contains_key(&(file, other))) {
                    continue;
                }
                let damage = match kind {
                    Kind::Flip => Damage::Flip(dice.below(bytes * 8)),
                    Kind::Stale => Damage::Stale,
                    Kind::Torn => Damage::Torn(512 + index(dice.below(bytes - 1024))),
                    Kind::Lost => Damage::Lost,
                    Kind::Swapped if one == other => continue,
                    Kind::Swapped => {
                        plan.insert((file, other), Damage::Swapped(one));
                        Damage::Swapped(other)
                    }
                };
                plan.insert((file, one), damage);
                left -= 1;
            }
        }
        plan
    }

    fn load(&self) -> Workload {
        let bytes = u64::from(self.block_bytes);
        Workload {
            block_bytes: self.block_bytes,
            jobs: 4,
            files: u32::try_from(FILES).unwrap(),
            file_bytes: self.blocks * bytes,
            region: Region { bytes: Some(self.blocks / 4 * 3 * bytes), ..Region::default() },
            layout: Layout::Written { block_bytes: self.block_bytes },
            draw: Draw::Permuted,
            depth: 16,
            connections: 4,
            threads: 2,
            seed: self.seed,
            verify: Some(VerifyScope::All),
            verify_reads: true,
            ..workload(self.pattern, 30, self.operations)
        }
    }

    fn run(&self, hook: Hook) -> RunResult {
        let server = Responder::with_hook(hook);
        let prepared = prepare(&server.target(), &self.load()).unwrap();
        prepared.run(&Control::new(), |_| {}).unwrap()
    }

    /// Injects the whole plan; what is reported has to be the plan.
    fn check(&self) {
        let plan = self.plan();
        let server = Arc::new(Mutex::new(Faults { plan: plan.clone(), ..Faults::of(*self) }));
        let at_work = Arc::clone(&server);
        let result = self.run(Arc::new(move |procedure, args: &mut Vec<u8>| {
            at_work.lock().unwrap().meddle(procedure, args)
        }));
        let wanted: Found = plan.iter().map(|(block, damage)| (*block, damage.kind())).collect();
        assert_eq!(wanted.len(), VICTIMS * (KINDS.len() + 1), "both of what is swapped");
        let reported = found(&result, u64::from(self.block_bytes));
        let missed: Vec<_> = wanted.difference(&reported).collect();
        let invented: Vec<_> = reported.difference(&wanted).collect();
        assert!(missed.is_empty() && invented.is_empty(), "{self:?}: {missed:?} {invented:?}");
        let verify = result.verify.as_ref().unwrap();
        assert_eq!(verify.checked, self.blocks * FILES, "{self:?}");
        let afterwards = verify.mismatches - verify.in_passing_mismatches;
        assert_eq!(afterwards, wanted.len() as u64, "{self:?}");
        assert!(verify.in_passing_mismatches > 0, "{self:?}");
        assert!(!result.is_clean());
    }
}

impl Damage {
    const fn kind(self) -> Kind {
        match self {
            Self::Flip(_) => Kind::Flip,
            Self::Stale => Kind::Stale,
            Self::Swapped(_) => Kind::Swapped,
            Self::Torn(_) => Kind::Torn,
            Self::Lost => Kind::Lost,
        }
    }
}

/// The server's memory of what it did wrong.
struct Faults {
    campaign: Campaign,
    plan: BTreeMap<Block, Damage>,
    /// Files by their handles, in the order in which they were laid out.
    files: HashMap<Vec<u8>, u64>,
    /// The first content of what is to be stale or torn.
    firsts: HashMap<Block, Vec<u8>>,
}

impl Faults {
    fn of(campaign: Campaign) -> Self {
        Self { campaign, plan: BTreeMap::new(), files: HashMap::new(), firsts: HashMap::new() }
    }

    fn place(&mut self, args: &[u8]) -> (u64, u64) {
        let next = self.files.len() as u64;
        let handle = args[..offset_at(args)].to_vec();
        let file = *self.files.entry(handle).or_insert(next);
        (file, offset(args) / u64::from(self.campaign.block_bytes))
    }

    fn meddle(&mut self, procedure: u32, args: &mut [u8]) -> Verdict {
        if procedure != READ && procedure != WRITE {
            return Verdict::Serve;
        }
        let place = self.place(args);
        assert_eq!(count(args), self.campaign.block_bytes);
        let Some(damage) = self.plan.get(&place).copied() else { return Verdict::Serve };
        match (procedure, self.campaign.side) {
            (WRITE, Side::Writes) => self.write(args, place, damage),
            (WRITE, Side::Reads) => {
                let data = &args[offset_at(args) + 20..];
                self.firsts.entry(place).or_insert_with(|| data.to_vec());
            }
            (READ, Side::Reads) => return self.read(args, place, damage),
            _ => {}
        }
        Verdict::Serve
    }

    fn write(&mut self, args: &mut [u8], place: Block, damage: Damage) {
        let data = offset_at(args) + 20;
        let is_first = !self.firsts.contains_key(&place);
        let first = self.firsts.entry(place).or_insert_with(|| args[data..].to_vec());
        match damage {
            Damage::Flip(bit) => args[data + index(bit / 8)] ^= 1 << (bit % 8),
            Damage::Swapped(other) => redirect(args, other * u64::from(self.campaign.block_bytes)),
            Damage::Torn(from) => args[data + from..].copy_from_slice(&first[from..]),
            // The last block of a file must not make it shorter.
            Damage::Lost => args[data..].fill(0),
            Damage::Stale if is_first => {}
            Damage::Stale => redirect(args, FAR),
        }
    }

    fn read(&self, args: &mut [u8], place: Block, damage: Damage) -> Verdict {
        let bytes = self.campaign.block_bytes as usize;
        let first = self.firsts.get(&place).cloned().unwrap_or_default();
        Verdict::Alter(Box::new(match damage {
            Damage::Swapped(other) => {
                redirect(args, other * bytes as u64);
                return Verdict::Serve;
            }
            damage => move |reply: &mut Vec<u8>| {
                let start = reply.len() - bytes;
                let data = &mut reply[start..];
                match damage {
                    Damage::Flip(bit) => data[index(bit / 8)] ^= 1 << (bit % 8),
                    Damage::Torn(from) => data[from..].copy_from_slice(&first[from..]),
                    Damage::Stale => data.copy_from_slice(&first),
                    Damage::Lost | Damage::Swapped(_) => data.fill(0),
                }
            },
        }))
    }
}

/// The details' findings, in passing and afterwards together.
fn found(result: &RunResult, block_bytes: u64) -> Found {
    let read = |detail: &String| {
        let (place, what) = detail.split_once(": ").unwrap();
        let (name, offset) = place.split_once(" at ").unwrap();
        let file = name.strip_prefix("file.").unwrap().parse().unwrap();
        let offset: u64 = offset.parse().unwrap();
        assert_eq!(offset % block_bytes, 0, "{detail}");
        let kind = match what {
            _ if what.starts_with("corrupt") || what.starts_with("no valid stamp") => Kind::Flip,
            _ if what.starts_with("stale") => Kind::Stale,
            _ if what.starts_with("misplaced") => Kind::Swapped,
            _ if what.starts_with("torn") => Kind::Torn,
            _ if what.starts_with("lost") => Kind::Lost,
            _ => unreachable!("{detail}"),
        };
        ((file, offset / block_bytes), kind)
    };
    result.verify.as_ref().unwrap().details.iter().map(read).collect()
}

fn campaigns(side: Side) -> [Campaign; 4] {
    let small = |pattern, seed| Campaign {
        side,
        block_bytes: 4096,
        blocks: 256,
        pattern,
        operations: 10_000,
        seed,
    };
    let large = |pattern, seed| Campaign {
        block_bytes: 65_536,
        blocks: 96,
        operations: 4000,
        ..small(pattern, seed)
    };
    [
        small(Pattern::Random, 1),
        small(Pattern::Sequential, 2),
        large(Pattern::Random, 3),
        large(Pattern::Sequential, 4),
    ]
}

#[test]
fn everything_injected_into_writes_is_reported_and_nothing_else() {
    campaigns(Side::Writes).iter().for_each(Campaign::check);
}

#[test]
fn everything_injected_into_reads_is_reported_and_nothing_else() {
    campaigns(Side::Reads).iter().for_each(Campaign::check);
}

#[test]
fn a_single_wrong_answer_is_reported_by_the_load_that_saw_it() {
    for block_bytes in [4096, 65_536] {
        let campaign = Campaign { block_bytes, blocks: 64, ..campaigns(Side::Reads)[0] };
        let load = Workload { verify: None, ..campaign.load() };
        // The read of this number is answered with a flipped bit, with zeros, or with the block
        // before it.
        let (reads, wrong) = (Mutex::new(0_u64), Arc::new(Mutex::new(Found::new())));
        let (noted, faults) = (Arc::clone(&wrong), Mutex::new(Faults::of(campaign)));
        let hook = move |procedure, args: &mut Vec<u8>| {
            if procedure == WRITE {
                faults.lock().unwrap().place(args);
            }
            if procedure != READ {
                return Verdict::Serve;
            }
            let mut reads = reads.lock().unwrap();
            *reads += 1;
            let (file, block) = faults.lock().unwrap().place(args);
            let note = |kind| {
                noted.lock().unwrap().insert(((file, block), kind));
            };
            let (at, bit) = (index(*reads % u64::from(block_bytes)), *reads % 8);
            let bytes = block_bytes as usize;
            match *reads % 100 {
                7 => {
                    note(Kind::Flip);
                    Verdict::Alter(Box::new(move |reply| {
                        let start = reply.len() - bytes;
                        reply[start + at.min(bytes - 9)] ^= 1 << bit;
                    }))
                }
                57 => {
                    note(Kind::Lost);
                    Verdict::Alter(Box::new(move |reply| {
                        let start = reply.len() - bytes;
                        reply[start..].fill(0);
                    }))
                }
                83 if block > 0 => {
                    note(Kind::Swapped);
                    redirect(args, (block - 1) * u64::from(block_bytes));
                    Verdict::Serve
                }
                _ => Verdict::Serve,
            }
        };
        let server = Responder::with_hook(Arc::new(hook));
        let result = prepare(&server.target(), &load).unwrap().run(&Control::new(), |_| {});
        let result = result.unwrap();
        let wrong = wrong.lock().unwrap();
        assert!(wrong.len() > 50, "{}", wrong.len());
        let reported = found(&result, u64::from(block_bytes));
        assert_eq!(reported, *wrong);
    }
}

#[test]
fn a_server_without_fault_is_not_accused_even_if_writes_fail_and_are_done_again() {
    for campaign in campaigns(Side::Writes) {
        let laid_out = campaign.blocks * FILES;
        let writes = Mutex::new(0_u64);
        let result = campaign.run(Arc::new(move |procedure, _: &mut Vec<u8>| {
            if procedure == WRITE {
                let mut writes = writes.lock().unwrap();
                *writes += 1;
                if *writes > laid_out && writes.is_multiple_of(7) {
                    return Verdict::Fail(Status::JUKEBOX);
                }
            }
            Verdict::Serve
        }));
        let verify = result.verify.as_ref().unwrap();
        assert_eq!((verify.mismatches, verify.unread), (0, 0), "{:?}", verify.details);
        assert!(result.errors["NFS3ERR_JUKEBOX"] > 100 && !result.is_clean());
        assert!(verify.checked > laid_out / 2, "{verify:?}");
    }
}

#[test]
fn a_lost_connection_is_no_corruption() {
    let campaign = campaigns(Side::Writes)[0];
    let writes = Mutex::new(0_u64);
    let result = campaign.run(Arc::new(move |procedure, _: &mut Vec<u8>| {
        let mut writes = writes.lock().unwrap();
        *writes += u64::from(procedure == WRITE);
        if procedure == WRITE && *writes == 3000 { Verdict::Close } else { Verdict::Serve }
    }));
    let verify = result.verify.as_ref().unwrap();
    assert_eq!((verify.mismatches, result.connections.lost), (0, 1), "{:?}", verify.details);
    assert!(result.interrupted && !result.is_clean());
    assert_eq!(verify.unread, 0);
    assert_eq!(verify.checked + verify.uncertain, campaign.blocks * FILES, "{verify:?}");
}

#[test]
fn what_is_read_back_in_parts_or_later_is_compared_whole() {
    let campaign = campaigns(Side::Writes)[1];
    let reads = Mutex::new(0_u64);
    let hook = move |procedure, args: &mut Vec<u8>| {
        if procedure == READ {
            let mut reads = reads.lock().unwrap();
            *reads += 1;
            if reads.is_multiple_of(50) {
                return Verdict::Fail(Status::JUKEBOX);
            }
            if reads.is_multiple_of(3) {
                let (at, part) = (offset_at(args) + 8, count(args) / 3 + 1);
                args[at..at + 4].copy_from_slice(&part.to_be_bytes());
            }
        }
        Verdict::Serve
    };
    let load = Workload {
        operation: Operation::Data { pattern: Pattern::Sequential, read_percent: 0 },
        verify_reads: false,
        ..campaign.load()
    };
    let server = Responder::with_hook(Arc::new(hook));
    let result = prepare(&server.target(), &load).unwrap().run(&Control::new(), |_| {}).unwrap();
    let verify = result.verify.as_ref().unwrap();
    assert_eq!((verify.checked, verify.mismatches), (campaign.blocks * FILES, 0), "{verify:?}");
    assert!(result.is_clean());
}

#[test]
fn a_file_that_ends_too_early_is_told_by_the_load_that_reads_it() {
    let load = Workload {
        verify_reads: true,
        layout: Layout::Written { block_bytes: 4096 },
        ..workload(Pattern::Sequential, 100, 256)
    };
    let server = Responder::with_hook(Arc::new(|procedure, args: &mut Vec<u8>| {
        if procedure == READ && offset(args) == 9 * 4096 {
            redirect(args, (1 << 20) - 1000);
        }
        Verdict::Serve
    }));
    let result = prepare(&server.target(), &load).unwrap().run(&Control::new(), |_| {}).unwrap();
    let details = &result.verify.as_ref().unwrap().details;
    assert_eq!(details.len(), 1, "{details:?}");
    assert!(
        details[0].contains("at 36864: lost write: the file ends after 1000 bytes"),
        "{details:?}"
    );
}
