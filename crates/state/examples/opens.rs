//! The costs of opens and locks: the memory of each, and the time for an open with its close and
//! for a lock with its unlock, beside 100,000 others.
//!
//! `cargo run --release -p weir-state --example opens`

use std::error::Error;
use std::time::Duration;
use weir_core::{Mono, ObjectKey, Origin, VolumeId};
use weir_state::{
    Ask, Client, File, Limits, Mode, OpenId, OpenMode, Owner, Part, Protocol, Range, Sharing, Span,
    Tables, Use,
};

const COUNT: u32 = 100_000;
const PAGE: u64 = 4096;
const READ_WRITE: OpenMode =
    OpenMode { access: Sharing::READ.union(Sharing::WRITE), share: Sharing::all() };
/// More than is opened and locked here.
const MANY: Use = Use { locks: 1 << 30, waiters: 1 << 30, opens: 1 << 30, ..Limits::SERVER.server };

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The bytes of this process in memory (`proc(5)`, `statm`).
fn resident() -> Result<u64> {
    let sizes = std::fs::read_to_string("/proc/self/statm")?;
    Ok(PAGE * sizes.split(' ').nth(1).ok_or("statm has no second number")?.parse::<u64>()?)
}

/// Prints the memory of each of [`COUNT`] objects, which `make` makes from their numbers.
fn memory(what: &str, mut make: impl FnMut(u32) -> Result<()>) -> Result<()> {
    let before = resident()?;
    (0..COUNT).try_for_each(&mut make)?;
    println!("{what}: {} bytes", resident()?.saturating_sub(before) / u64::from(COUNT));
    Ok(())
}

/// The processor time of this thread (`proc(5)`, `schedstat`).
fn processor_time() -> Result<Duration> {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos = times.split(' ').next().ok_or("schedstat is empty")?;
    Ok(Duration::from_nanos(nanos.parse()?))
}

/// Prints the mean processor time of `each`, so that others on the machine count little.
fn time(what: &str, mut each: impl FnMut() -> Result<()>) -> Result<()> {
    let began = processor_time()?;
    (0..COUNT).try_for_each(|_| each())?;
    println!("{what}: {:?}", (processor_time()? - began) / COUNT);
    Ok(())
}

fn file(number: u32) -> Result<File> {
    Ok(File { volume: VolumeId(1), object: ObjectKey::new(&number.to_be_bytes())? })
}

fn span(number: u32) -> Result<Span> {
    Ok(Span::new(u64::from(number) * 8, 8).ok_or("the span is invalid")?)
}

fn main() -> Result<()> {
    let limits = Limits {
        file: MANY,
        client: MANY,
        server: MANY,
        origin: Part::ALL,
        volume: Part::ALL,
        ..Limits::SERVER
    };
    let mut tables = Tables::<u32>::new(limits);
    tables.open(VolumeId(1));
    let (now, mut grants) = (Mono::default(), Vec::new());
    let client = Client::new(Protocol::Smb, Origin::default(), b"client");
    let mut opens = Vec::<OpenId>::with_capacity(COUNT as usize);
    memory("an open on a file of its own", |number| {
        opens.push(tables.open_file(&file(number)?, &client, READ_WRITE, false)?);
        Ok(())
    })?;
    let mut others = opens.iter();
    memory("a lock of an open on a file of its own", |_| {
        let open = others.next().ok_or("there are fewer opens")?;
        tables.lock_open(now, *open, span(0)?, Mode::Exclusive, None)?;
        Ok(())
    })?;
    let first = *opens.first().ok_or("there is no open")?;
    memory("a lock beside many on a file", |number| {
        tables.lock_open(now, first, span(number + 1)?, Mode::Exclusive, None)?;
        Ok(())
    })?;
    let second = tables.open_file(&file(0)?, &client, READ_WRITE, false)?;
    memory("a waiter", |number| {
        tables.lock_open(now, second, span(0)?, Mode::Exclusive, Some(number))?;
        Ok(())
    })?;
    let owner = Owner::new(Client::new(Protocol::Nlm, Origin::default(), b"host"), b"process");
    memory("a lock of a process on a file of its own", |number| {
        let (file, range) = (file(COUNT + number)?, Range::ALL);
        let ask = Ask { file, owner: owner.clone(), range, mode: Mode::Exclusive };
        tables.lock(now, &ask, false, None, &mut grants)?;
        Ok(())
    })?;
    let fresh = file(u32::MAX)?;
    time("an open and its close", || {
        let open = tables.open_file(&fresh, &client, READ_WRITE, false)?;
        let closed = tables.close_file(open, &mut grants).ok_or("it is closed")?;
        if closed.last { Ok(()) } else { Err("another open is left".into()) }
    })?;
    let open = tables.open_file(&fresh, &client, READ_WRITE, false)?;
    time("a lock and its unlock", || {
        tables.lock_open(now, open, span(0)?, Mode::Exclusive, None)?;
        Ok(tables.unlock_open(open, span(0)?, &mut grants)?)
    })
}
