//! `weir smb`: the sessions, opens and locks of clients.

use super::{Global, Output, connect, print};
use anyhow::Result;
use clap::Subcommand;
use serde::Serialize;
use serde::de::DeserializeOwned;
use weir_api::{FileLock, FileUse, Pages, SmbOpen, SmbSession};

/// List and close the sessions, opens and locks of clients.
#[derive(Subcommand)]
pub(crate) enum SmbCommand {
    /// List the SMB sessions
    ///
    /// A session is a user who has logged in on a connection. SIGNING and CIPHER are the negotiated
    /// algorithms; a cipher in parentheses was not used for the last request.
    Sessions,
    /// List the files and directories that SMB clients have open
    ///
    /// ACCESS is what the open does with the file, and SHARING what it lets others do: r (read), w
    /// (write), d (delete or rename); an open without access is for attributes only. DELETE: the
    /// file will be deleted when it is closed.
    Opens,
    /// List the byte-range locks of SMB and NFS clients, and the requests that wait for one
    ///
    /// SMB clients are shown with user, address and open, NFS clients with name, address and
    /// process. NFS clients name files by handles, so for their locks the key of the file is shown
    /// instead of its path. LOCK is the ID for `weir smb close-lock`: it stays the same as long as
    /// the lock exists and the server runs.
    Locks,
    /// End SMB sessions, and close their opens
    ///
    /// Data that the clients have not written yet is lost. Clients may log in again; to keep a user
    /// out, use `weir user set --disable`.
    #[command(after_long_help = "\
Examples:
  weir smb close-session 172359102435328
  weir smb sessions --output json | jq '.[] | select(.user == \"alice\").id' | xargs weir smb \
close-session")]
    CloseSession {
        /// ID of the session
        #[arg(required = true, value_name = "ID")]
        sessions: Vec<u64>,
    },
    /// Close opens of SMB clients, and release their locks
    ///
    /// Data that the client has not written yet is lost. If the open was to delete the file, the
    /// file is deleted.
    CloseOpen {
        /// ID of the open
        #[arg(required = true, value_name = "ID")]
        opens: Vec<u64>,
    },
    /// Release byte-range locks of SMB and NFS clients, or cancel requests that wait for one
    ///
    /// Other clients can lock the range at once. The client that held the lock is not informed, and
    /// may continue to use the range: close a lock only if its client is gone or its program hangs.
    /// An SMB client gets an error when it unlocks the range. The locks of an NFS client that will
    /// not return are otherwise kept until the server restarts.
    ///
    /// A request that waits is cancelled: an SMB client gets CANCELLED. An NFS client is not
    /// informed, and asks again after a while (Linux: 30 seconds) if its program still waits.
    #[command(after_long_help = "\
Examples:
  weir smb close-lock 5f0c6a1de93b47d2a8417b6c90e2f35d
  weir smb locks --output json | jq -r '.[] | select(.client == \"192.0.2.7\" and \
.protocol == \"nfs\").id' | xargs weir smb close-lock")]
    CloseLock {
        /// ID of the lock, from the list of locks
        #[arg(required = true, value_name = "ID")]
        locks: Vec<String>,
    },
}

/// Runs `command`.
pub(crate) async fn run(global: &Global, command: &SmbCommand) -> Result<()> {
    let client = connect::client(global)?;
    let output = global.output;
    match command {
        SmbCommand::Sessions => {
            let header = [
                "session",
                "user",
                "client",
                "connection",
                "signing",
                "cipher",
                "since",
                "idle",
                "opens",
                "shares",
            ];
            list(output, client.smb_sessions(), &header, session_row).await
        }
        SmbCommand::Opens => {
            let header = [
                "open", "volume", "path", "user", "client", "session", "access", "sharing",
                "delete", "since",
            ];
            list(output, client.smb_opens(), &header, open_row).await
        }
        SmbCommand::Locks => {
            let header = ["lock", "volume", "path", "owner", "client", "range", "mode", "state"];
            list(output, client.locks(), &header, lock_row).await
        }
        SmbCommand::CloseSession { sessions } => {
            close_each(output, sessions, async |id| {
                let closed = client.close_smb_session(*id).await?;
                let SmbSession { user, client, opens, .. } = &closed;
                let done = format!("session {id} of {user} from {client} closed, {opens} open(s)");
                report(output, &closed, &done)
            })
            .await
        }
        SmbCommand::CloseOpen { opens } => {
            close_each(output, opens, async |id| {
                let closed = client.close_smb_open(*id).await?;
                let place = place(closed.path.as_deref(), &closed.file);
                let done = format!("open {id} of {place} in volume {} closed", closed.volume);
                report(output, &closed, &done)
            })
            .await
        }
        SmbCommand::CloseLock { locks } => {
            close_each(output, locks, async |id| {
                let closed = client.close_lock(id).await?;
                report(output, &closed, &lock_closed(&closed))
            })
            .await
        }
    }
}

/// Closes what has these IDs. A failure does not keep the others from being closed: it is printed,
/// and the last one is that of the command.
async fn close_each<I>(
    output: Output,
    ids: &[I],
    close: impl AsyncFn(&I) -> Result<()>,
) -> Result<()> {
    let mut failed = Ok(());
    for id in ids {
        if let Err(error) = close(id).await
            && let Err(earlier) = std::mem::replace(&mut failed, Err(error))
        {
            print::failure(&earlier, output);
        }
    }
    failed
}

async fn list<T: Serialize + DeserializeOwned>(
    output: Output,
    pages: Pages<'_, T>,
    header: &[&str],
    row: impl Fn(T) -> Vec<String>,
) -> Result<()> {
    let all = pages.all().await?;
    match output {
        Output::Json => print::json(&all),
        Output::Table => print::table(header, all.into_iter().map(row)),
    }
}

fn report(output: Output, closed: &impl Serialize, done: &str) -> Result<()> {
    match output {
        Output::Json => print::json(closed),
        Output::Table => print::line(done),
    }
}

fn session_row(session: SmbSession) -> Vec<String> {
    let cipher = match session.cipher {
        None => "none".to_owned(),
        Some(cipher) if session.encrypted => cipher,
        Some(cipher) => format!("({cipher})"),
    };
    let required = if session.signing_required { "" } else { ", optional" };
    vec![
        session.id.to_string(),
        session.user,
        session.client,
        session.connection.to_string(),
        format!("{}{required}", session.signing),
        cipher,
        session.since,
        format!("{} s", session.idle_seconds),
        session.opens.to_string(),
        session.shares.join(","),
    ]
}

fn open_row(open: SmbOpen) -> Vec<String> {
    vec![
        open.id.to_string(),
        open.volume,
        place(open.path.as_deref(), &open.file),
        unless_known(open.user),
        unless_known(open.client),
        open.session.to_string(),
        letters(&open.access),
        letters(&open.sharing),
        if open.delete_pending { "yes" } else { "no" }.to_owned(),
        unless_known(open.since),
    ]
}

fn lock_row(lock: FileLock) -> Vec<String> {
    let (owner, range) = (owner(&lock), range(&lock));
    vec![
        lock.id,
        lock.volume,
        place(lock.path.as_deref(), &lock.file),
        owner,
        unless_known(lock.client),
        range,
        lock.mode.to_string(),
        if lock.waiting { "waiting" } else { "held" }.to_owned(),
    ]
}

/// A lock that was released, or a request that was cancelled, in words.
fn lock_closed(lock: &FileLock) -> String {
    let (kind, done) =
        if lock.waiting { ("request for a lock", "cancelled") } else { ("lock", "released") };
    let FileLock { id, volume, path, file, .. } = lock;
    let (owner, range, place) = (owner(lock), range(lock), place(path.as_deref(), file));
    format!("{kind} {id} of {owner}, on bytes {range} of {place} in volume {volume} {done}")
}

/// The owner of a lock in the words of its protocol.
fn owner(lock: &FileLock) -> String {
    match (lock.open, &lock.host) {
        (Some(open), _) => format!("{}, open {open}", unless_known(lock.user.clone())),
        (None, Some(host)) => match lock.process {
            Some(process) => format!("{host}, process {process}"),
            None => host.clone(),
        },
        (None, None) => unless_known(None),
    }
}

/// The first byte of a lock and its length.
fn range(lock: &FileLock) -> String {
    let length = lock.length.map_or_else(|| "to the end".to_owned(), |bytes| format!("+{bytes}"));
    format!("{} {length}", lock.offset)
}

/// The path of a file, or else its key.
fn place(path: Option<&str>, key: &str) -> String {
    match path {
        Some("") => ".".to_owned(),
        Some(path) => path.to_owned(),
        None => format!("(file {key})"),
    }
}

fn unless_known(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

/// Uses of a file as letters.
fn letters(uses: &[FileUse]) -> String {
    if uses.is_empty() {
        return "-".to_owned();
    }
    let letter = |one: &FileUse| match one {
        FileUse::Read => 'r',
        FileUse::Write => 'w',
        FileUse::Delete => 'd',
    };
    uses.iter().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_api::{LockMode, Protocol};

    fn lock() -> FileLock {
        FileLock {
            id: "5f0c".into(),
            volume: "home".into(),
            path: None,
            file: "81ff".into(),
            protocol: Protocol::Nfs,
            client: Some("192.0.2.7".into()),
            host: Some("pc".into()),
            process: Some(77),
            user: None,
            session: None,
            open: None,
            offset: 5,
            length: None,
            mode: LockMode::Shared,
            waiting: false,
        }
    }

    #[test]
    fn a_lock_is_shown_with_its_owner_in_the_words_of_its_protocol() {
        let row = lock_row(lock());
        let expected = [
            "5f0c",
            "home",
            "(file 81ff)",
            "pc, process 77",
            "192.0.2.7",
            "5 to the end",
            "shared",
            "held",
        ];
        assert_eq!(row, expected);
        let (path, user) = (Some("a/b".to_owned()), Some("ann".to_owned()));
        let smb = FileLock {
            path,
            user,
            host: None,
            open: Some(9),
            length: Some(0),
            waiting: true,
            ..lock()
        };
        let closed = "request for a lock 5f0c of ann, open 9, on bytes 5 +0 of a/b in volume home \
                      cancelled";
        assert_eq!(lock_closed(&smb), closed);
        let expected =
            ["5f0c", "home", "a/b", "ann, open 9", "192.0.2.7", "5 +0", "shared", "waiting"];
        assert_eq!(lock_row(smb), expected);
        let closed = "lock 5f0c of pc, process 77, on bytes 5 to the end of (file 81ff) in volume \
                      home released";
        assert_eq!(lock_closed(&lock()), closed);
    }

    #[test]
    fn uses_are_letters_and_the_top_directory_has_a_name() {
        assert_eq!(letters(&[FileUse::Read, FileUse::Delete]), "rd");
        assert_eq!((letters(&[]).as_str(), place(Some(""), "81").as_str()), ("-", "."));
    }
}
