//! One link to a server, from its beginning until its addresses are gone, and the end of the
//! server's process. Not here: what the helper knows, and which process it serves.

use crate::daemon::Machine;
use crate::seat::Taken;
use crate::stream::{Broken, Incoming, send};
use crate::wire::{Request, ToHelper, ToServer, Why, WireError};
use std::convert::Infallible;
use std::io;
use std::os::unix::net::UnixStream as BlockingStream;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;
use weir_address::{End, HelperError, ServerProcess, run};
use weir_cluster::{Life, MachineId};

/// Time for a process to say which life it is, and for it to take a last message.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest wait for the end of a process in one call of the kernel.
const WAIT_AT_ONCE: Duration = Duration::from_secs(3600);
/// Answers that were not sent yet. Beyond: no more requests are read.
const ANSWERS_MAX: usize = 16;
/// Bytes of reports that are carried in one message.
const REPORT_BYTES_MAX: usize = 16 << 10;

/// The process at the other end of a link: its number, and its descriptor.
type Server = (i32, Arc<ServerProcess>);

/// Waits until the helper is to end.
pub(crate) async fn stop(stopped: &mut watch::Receiver<bool>) {
    // An error: the helper has ended.
    drop(stopped.wait_for(|stop| *stop).await);
}

/// A refusal: for the program, and in words.
type Refused = (Why, String);

/// Serves a connection until it ends, or the helper does. When this returns, its addresses are
/// gone.
pub(crate) async fn serve(
    stream: UnixStream,
    machine: Arc<Machine>,
    mut stopped: watch::Receiver<bool>,
) {
    let opened = tokio::select! {
        opened = timeout(PATIENCE, open(stream, &machine)) => opened,
        () = stop(&mut stopped) => return,
    };
    let session = match opened {
        Ok(Ok(session)) => session,
        Ok(Err(error)) => {
            tracing::warn!(%error, "refused a connection to the helper");
            return;
        }
        Err(_) => {
            tracing::warn!("closed a connection to the helper on which nothing was said");
            return;
        }
    };
    session.serve(&machine, stopped).await;
}

/// A link whose process has the seat.
struct Session {
    incoming: Incoming,
    outgoing: OwnedWriteHalf,
    process: Arc<ServerProcess>,
    life: (MachineId, Life),
    /// The answer to its first request.
    answer: ToServer,
}

/// Finds out which process has connected and which life it is, and gives it the seat.
async fn open(stream: UnixStream, machine: &Arc<Machine>) -> Result<Session, Broken> {
    let peer = stream.peer_cred()?;
    let server = match peer.pid() {
        Some(pid) if peer.uid() == machine.server_uid => {
            Ok((pid, Arc::new(ServerProcess::of_link(&stream)?)))
        }
        _ => Err(format!("user {} may not be the server of this machine", peer.uid())),
    };
    let (reading, mut outgoing) = stream.into_split();
    let server = match server {
        Ok(server) => server,
        Err(words) => return Err(refuse(&mut outgoing, 0, (Why::Other, words)).await),
    };
    // An answer to this comes from a process that lived when its descriptor was there already, so
    // that the descriptor is not of a later process with the same number.
    send(&mut outgoing, &ToServer::Welcome.encode()).await?;
    let mut incoming = Incoming::new(reading);
    let ToHelper::Request(number, request) = ToHelper::decode(&incoming.next().await?)? else {
        return Err(WireError::Malformed.into());
    };
    let (life, is_new) = match request {
        Request::Announce(state, life) => ((state, life), true),
        Request::Attach(state, life) => ((state, life), false),
        _ => return Err(WireError::Malformed.into()),
    };
    let process = Arc::clone(&server.1);
    let known = match admit(machine, server, life, is_new) {
        Ok(known) => known,
        Err(refused) => return Err(refuse(&mut outgoing, number, refused).await),
    };
    let answer = match is_new {
        true => ToServer::Done(number),
        false => ToServer::Attached { number, known },
    };
    Ok(Session { incoming, outgoing, process, life, answer })
}

/// Sends a refusal. Returns it as the reason for which the link ends.
async fn refuse(outgoing: &mut OwnedWriteHalf, number: u32, (why, words): Refused) -> Broken {
    let told = Broken::Told(words.clone());
    let refused = ToServer::Refused { number, words, why }.encode();
    send(outgoing, &refused).await.err().unwrap_or(told)
}

/// Gives the seat to a process, and takes note of its life. Returns whether the life is known.
fn admit(
    machine: &Arc<Machine>,
    (pid, process): Server,
    life: (MachineId, Life),
    is_new: bool,
) -> Result<bool, Refused> {
    let mut seat = machine.seat();
    let mut knowledge = machine.knowledge();
    let other = |words: String| (Why::Other, words);
    knowledge.check(life.1).map_err(|objection| other(objection.to_string()))?;
    let has_ended = seat.process().map_or(Ok(false), |process| process.has_ended());
    let has_ended = has_ended.map_err(|error| other(error.to_string()))?;
    let taken = seat.take((pid, Arc::clone(&process)), life, has_ended)?;
    if is_new && let Err(objection) = knowledge.announce(life.0, life.1, taken == Taken::Again) {
        seat.leave();
        if taken == Taken::First {
            seat.free();
        }
        return Err(other(objection.to_string()));
    }
    tracing::info!(life = %life.1, pid, is_new, "serving a life");
    if taken == Taken::First {
        // Were this to fail, nothing would be known of its end: the seat stays taken.
        let end = end_of(process).map_err(|error| {
            other(format!("the helper has no thread for it, and has to be restarted: {error}"))
        })?;
        tokio::spawn(follow_to_end(Arc::clone(machine), end, life));
    }
    Ok(knowledge.knows(life.0, life.1))
}

/// Starts a thread that waits for the end of a process. It tells nothing if the kernel does not.
fn end_of(process: Arc<ServerProcess>) -> io::Result<oneshot::Receiver<()>> {
    let (sender, end) = oneshot::channel();
    std::thread::Builder::new().name("end".to_owned()).spawn(move || {
        while let Ok(has_ended) = process.wait(WAIT_AT_ONCE) {
            if has_ended {
                // Nobody waits for it if the helper has ended meanwhile.
                let _ = sender.send(());
                return;
            }
        }
    })?;
    Ok(end)
}

/// Waits for the end of a process and until its addresses are gone. Only then it is said that its
/// life has ended, and another process may be served.
async fn follow_to_end(machine: Arc<Machine>, end: oneshot::Receiver<()>, life: (MachineId, Life)) {
    if end.await.is_err() {
        // The helper goes on to say that it runs.
        tracing::error!("cannot wait for the end of the server's process: restart the helper");
        return;
    }
    while !machine.seat().free() {
        machine.left.notified().await;
    }
    // Nothing else runs between: the helper's tasks share one thread.
    tracing::warn!(life = %life.1, "a life has ended");
    machine.knowledge().ended(life.0, life.1);
    machine.ended.notify_one();
}

impl Session {
    async fn serve(mut self, machine: &Arc<Machine>, mut stopped: watch::Receiver<bool>) {
        let (link, outcome) = match own_addresses(Arc::clone(&self.process), machine) {
            Ok(started) => started,
            Err(error) => {
                let words = format!("the helper cannot serve: {error}");
                drop(refuse(&mut self.outgoing, 0, (Why::Other, words)).await);
                leave(machine);
                return;
            }
        };
        let ended = tokio::select! {
            ended = carry(&mut self, machine, link) => ended,
            () = stop(&mut stopped) => Broken::Told("the helper ends".to_owned()),
        };
        tracing::info!(life = %self.life.1, error = %ended, "the link to the server has ended");
        // The link of the thread is closed by now: it removes all addresses once the process has
        // ended, and soon even if it does not.
        match outcome.await {
            Ok(Ok(end)) => tracing::info!(?end, "all addresses are removed"),
            Ok(Err(error)) => {
                tracing::error!(%error, "no addresses can be held");
                let refusal = refuse(&mut self.outgoing, 0, (Why::Other, error.to_string()));
                drop(timeout(PATIENCE, refusal).await);
            }
            Err(error) => {
                // Whether they are removed is not known: so nothing is said of the life, and nobody
                // else is served.
                tracing::error!(%error, "the thread of the addresses is gone: restart the helper");
                return;
            }
        }
        leave(machine);
    }
}

fn leave(machine: &Machine) {
    machine.seat().leave();
    machine.left.notify_one();
}

/// The outcome of the thread that owns the addresses. It ends when they are removed.
type Outcome = oneshot::Receiver<Result<End, HelperError>>;

/// Starts the thread that owns the addresses. Returns its link, and its outcome.
fn own_addresses(
    process: Arc<ServerProcess>,
    machine: &Machine,
) -> io::Result<(UnixStream, Outcome)> {
    let (ours, theirs) = BlockingStream::pair()?;
    ours.set_nonblocking(true)?;
    let ours = UnixStream::from_std(ours)?;
    let (sender, outcome) = oneshot::channel();
    let options = weir_address::Options { hook: machine.hook.clone(), ..Default::default() };
    std::thread::Builder::new().name("addresses".to_owned()).spawn(move || {
        // Nobody waits for it if the helper has ended meanwhile.
        drop(sender.send(run(theirs, &process, options)));
    })?;
    Ok((ours, outcome))
}

/// Carries messages in both directions until one of them ends. Returns the reason.
async fn carry(session: &mut Session, machine: &Machine, link: UnixStream) -> Broken {
    let (reports, requests) = link.into_split();
    let (answers, to_send) = mpsc::channel(ANSWERS_MAX);
    let Session { incoming, outgoing, life, answer, .. } = session;
    // Neither direction waits for the other: the server may wait for us to read.
    let ended = tokio::select! {
        ended = receive(machine, *life, incoming, (requests, answers)) => ended,
        ended = report(outgoing, answer, (reports, to_send)) => ended,
    };
    match ended {
        Ok(never) => match never {},
        Err(broken) => broken,
    }
}

/// Carries requests for addresses, and carries out all others.
async fn receive(
    machine: &Machine,
    life: (MachineId, Life),
    incoming: &mut Incoming,
    (mut requests, answers): (OwnedWriteHalf, mpsc::Sender<ToServer>),
) -> Result<Infallible, Broken> {
    loop {
        match ToHelper::decode(&incoming.next().await?)? {
            ToHelper::Address(bytes) => requests.write_all(&bytes).await?,
            ToHelper::Request(number, request) => {
                let answer = carry_out(machine, life, number, request)?;
                answers.send(answer).await.map_err(|_| Broken::Closed)?;
            }
        }
    }
}

fn carry_out(
    machine: &Machine,
    (state, life): (MachineId, Life),
    number: u32,
    request: Request,
) -> Result<ToServer, Broken> {
    let mut knowledge = machine.knowledge();
    let refused = |words: String, why| ToServer::Refused { number, words, why };
    let noted = match request {
        Request::Announce(..) | Request::Attach(..) => return Err(WireError::Malformed.into()),
        Request::Follow(servers) => {
            machine.mesh().follow(&servers);
            return Ok(ToServer::Done(number));
        }
        Request::Note(_) | Request::Unnote(_) if !knowledge.knows(state, life) => {
            return Ok(refused(format!("{life} is not known here"), Why::UnknownLife));
        }
        Request::Note(noted) => knowledge.note(noted),
        Request::Unnote(noted) => {
            knowledge.unnote(noted);
            Ok(())
        }
    };
    Ok(match noted {
        Ok(()) => ToServer::Done(number),
        Err(objection) => refused(objection.to_string(), Why::Other),
    })
}

/// Sends answers, and carries reports about addresses.
async fn report(
    outgoing: &mut OwnedWriteHalf,
    first: &ToServer,
    (mut reports, mut answers): (OwnedReadHalf, mpsc::Receiver<ToServer>),
) -> Result<Infallible, Broken> {
    send(outgoing, &first.encode()).await?;
    let mut space = [0; REPORT_BYTES_MAX];
    loop {
        let message = tokio::select! {
            answer = answers.recv() => answer.ok_or(Broken::Closed)?,
            count = reports.read(&mut space) => match count? {
                0 => return Err(Broken::Closed),
                count => ToServer::Address(space.get(..count).unwrap_or_default().to_vec()),
            },
        };
        send(outgoing, &message.encode()).await?;
    }
}
