//! An independent NFSv3 client, with a codec and a mount protocol of its own, against the built
//! server: what is written is read back, also after a restart and a crash.

use crate::test_server::TestServer;
use nfs3_client::nfs3_types::nfs3::*;
use nfs3_client::nfs3_types::rpc::{auth_unix, opaque_auth};
use nfs3_client::nfs3_types::xdr_codec::Opaque;
use nfs3_client::tokio::{TokioConnector, TokioIo};
use nfs3_client::{Nfs3Connection, Nfs3ConnectionBuilder};
use tokio::net::TcpStream;

type Connection = Nfs3Connection<TokioIo<TcpStream>>;

async fn mount_as(server: &TestServer, volume: &str, uid: u32) -> Connection {
    let auth = auth_unix { uid, gid: uid, ..auth_unix::default() };
    Nfs3ConnectionBuilder::new(TokioConnector, "127.0.0.1", format!("/{volume}"))
        .connect_from_privileged_port(false)
        .mount_port(server.address().port())
        .nfs3_port(server.address().port())
        .credential(opaque_auth::auth_unix(&auth))
        .mount()
        .await
        .unwrap()
}

fn at<'a>(dir: &nfs_fh3, name: &'a [u8]) -> diropargs3<'a> {
    diropargs3 { dir: dir.clone(), name: filename3(Opaque::borrowed(name)) }
}

async fn create(client: &mut Connection, name: &[u8]) -> nfs_fh3 {
    let args = CREATE3args {
        where_: at(&client.root_nfs_fh3(), name),
        how: createhow3::GUARDED(sattr3 { mode: Nfs3Option::Some(0o644), ..sattr3::default() }),
    };
    client.create(&args).await.unwrap().unwrap().obj.unwrap()
}

async fn write(
    client: &mut Connection,
    file: &nfs_fh3,
    offset: u64,
    data: &[u8],
    stable: stable_how,
) -> WRITE3resok {
    let count = u32::try_from(data.len()).unwrap();
    let args =
        WRITE3args { file: file.clone(), offset, count, stable, data: Opaque::borrowed(data) };
    client.write(&args).await.unwrap().unwrap()
}

async fn read(client: &mut Connection, file: &nfs_fh3, offset: u64, count: u32) -> Vec<u8> {
    let args = READ3args { file: file.clone(), offset, count };
    client.read(&args).await.unwrap().unwrap().data.as_ref().to_vec()
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| u8::try_from((at * 7 + at / 251) % 256).unwrap()).collect()
}

#[tokio::test]
async fn what_is_written_is_read_back_in_pieces_of_any_size() {
    let server = TestServer::start();
    server.volume("v", "1TiB");
    let mut client = mount_as(&server, "v", 0).await;
    let file = create(&mut client, b"file").await;
    let data = pattern(3 << 20);
    for (at, piece) in (0..).step_by(1 << 20).zip(data.chunks(1 << 20)) {
        write(&mut client, &file, at, piece, stable_how::UNSTABLE).await;
    }
    let commit = COMMIT3args { file: file.clone(), offset: 0, count: 0 };
    client.commit(&commit).await.unwrap().unwrap();
    for (offset, count) in [(0, 1 << 20), (1, 4096), (1_048_575, 2), ((3 << 20) - 5, 100)] {
        let end = data.len().min(offset + count);
        let count = u32::try_from(count).unwrap();
        let got = read(&mut client, &file, u64::try_from(offset).unwrap(), count).await;
        assert!(got == data[offset..end], "{count} bytes at {offset}");
    }
    let beyond = READ3args { file, offset: 5 << 20, count: 10 };
    let beyond = client.read(&beyond).await.unwrap().unwrap();
    assert!(beyond.eof && beyond.data.as_ref().is_empty());
}

#[tokio::test]
async fn handles_survive_a_restart_and_the_write_verifier_changes() {
    let mut server = TestServer::start();
    server.volume("v", "1TiB");
    let mut client = mount_as(&server, "v", 0).await;
    let file = create(&mut client, b"file").await;
    let first = write(&mut client, &file, 0, b"stable", stable_how::FILE_SYNC).await;
    assert_eq!(first.committed, stable_how::FILE_SYNC);
    for signal in ["TERM", "KILL"] {
        server.restart(signal);
        let mut client = mount_as(&server, "v", 0).await;
        assert_eq!(read(&mut client, &file, 0, 100).await, b"stable");
        let again = write(&mut client, &file, 0, b"stable", stable_how::UNSTABLE).await;
        assert_ne!(again.verf.0, first.verf.0, "clients must resend what was not committed");
    }
}

#[tokio::test]
async fn a_volume_moves_to_another_pool_under_its_clients() {
    let mut server = TestServer::start();
    server.volume("v", "1TiB");
    let mut client = mount_as(&server, "v", 0).await;
    let file = create(&mut client, b"file").await;
    let first = write(&mut client, &file, 0, b"before", stable_how::UNSTABLE).await;
    server.weir(&["pool", "create", "other", "--level", "extreme", "--size", "4TiB"]);
    server.weir(&["volume", "move", "v", "--to", "other"]);
    // On the same connection, by the same handle, and with nothing to be sent again.
    let again = write(&mut client, &file, 6, b" and after", stable_how::UNSTABLE).await;
    assert_eq!(again.verf.0, first.verf.0);
    assert_eq!(read(&mut client, &file, 0, 100).await, b"before and after");
    create(&mut client, b"new").await;
    let shown = server.weir(&["volume", "show", "v"]);
    assert!(shown.contains("128 MiB/s") && shown.contains("other"), "{shown}");
    assert!(server.data().join("pools/2/volumes/1/root/new").exists());
    server.weir(&["pool", "delete", "pool"]);
    server.restart("KILL");
    let mut client = mount_as(&server, "v", 0).await;
    assert_eq!(read(&mut client, &file, 0, 100).await, b"before and after");
}

#[tokio::test]
async fn a_handle_of_one_volume_opens_nothing_in_another() {
    let server = TestServer::start();
    server.volume("one", "1TiB");
    server.volume("two", "1TiB");
    let mut one = mount_as(&server, "one", 0).await;
    let mut two = mount_as(&server, "two", 0).await;
    let file = create(&mut one, b"file").await;
    let into_other = LINK3args { file: file.clone(), link: at(&two.root_nfs_fh3(), b"link") };
    let (status, _) = error(two.link(&into_other).await.unwrap());
    assert_eq!(status, nfsstat3::NFS3ERR_XDEV);
    let across = RENAME3args {
        from: at(&one.root_nfs_fh3(), b"file"),
        to: at(&two.root_nfs_fh3(), b"file"),
    };
    let (status, _) = error(one.rename(&across).await.unwrap());
    assert_eq!(status, nfsstat3::NFS3ERR_XDEV);
    assert_ne!(fsid(&mut one).await, fsid(&mut two).await);
}

async fn fsid(client: &mut Connection) -> u64 {
    let args = GETATTR3args { object: client.root_nfs_fh3() };
    client.getattr(&args).await.unwrap().unwrap().obj_attributes.fsid
}

fn error<T, E>(result: Nfs3Result<T, E>) -> (nfsstat3, E) {
    match result {
        Nfs3Result::Err(error) => error,
        Nfs3Result::Ok(_) => panic!("it should have been refused"),
    }
}

#[tokio::test]
async fn modes_are_enforced_for_every_user() {
    let server = TestServer::start();
    server.volume("v", "1TiB");
    let mut root = mount_as(&server, "v", 0).await;
    let file = create(&mut root, b"private").await;
    write(&mut root, &file, 0, b"secret", stable_how::UNSTABLE).await;
    let close = SETATTR3args {
        object: file.clone(),
        new_attributes: sattr3 { mode: Nfs3Option::Some(0o600), ..sattr3::default() },
        guard: Nfs3Option::None,
    };
    root.setattr(&close).await.unwrap().unwrap();
    let mut other = mount_as(&server, "v", 1000).await;
    let (status, _) = error(other.read(&READ3args { file, offset: 0, count: 10 }).await.unwrap());
    assert_eq!(status, nfsstat3::NFS3ERR_ACCES);
}

#[tokio::test]
async fn an_exclusive_create_repeated_gives_the_same_file() {
    let server = TestServer::start();
    server.volume("v", "1TiB");
    let mut client = mount_as(&server, "v", 0).await;
    let root = client.root_nfs_fh3();
    let exclusive = |verifier| CREATE3args {
        where_: at(&root, b"once"),
        how: createhow3::EXCLUSIVE(createverf3(verifier)),
    };
    let first = client.create(&exclusive(*b"verifier")).await.unwrap().unwrap();
    let again = client.create(&exclusive(*b"verifier")).await.unwrap().unwrap();
    assert_eq!(first.obj.unwrap(), again.obj.unwrap());
    let (status, _) = error(client.create(&exclusive(*b"another!")).await.unwrap());
    assert_eq!(status, nfsstat3::NFS3ERR_EXIST);
}

#[tokio::test]
async fn a_big_directory_is_listed_whole_in_small_pages_also_across_a_restart() {
    let mut server = TestServer::start();
    server.volume("v", "1TiB");
    let mut client = mount_as(&server, "v", 0).await;
    for number in 0..500 {
        create(&mut client, format!("file-{number:03}").as_bytes()).await;
    }
    let mut names = Vec::new();
    let (mut cookie, mut cookieverf) = (0, cookieverf3::default());
    let mut restarted = false;
    loop {
        let args = READDIR3args { dir: client.root_nfs_fh3(), cookie, cookieverf, count: 1024 };
        let page = client.readdir(&args).await.unwrap().unwrap();
        for entry in page.reply.entries.into_inner() {
            cookie = entry.cookie;
            names.push(entry.name.0.as_ref().to_vec());
        }
        cookieverf = page.cookieverf;
        if page.reply.eof {
            break;
        }
        if names.len() > 100 && !restarted {
            restarted = true;
            server.restart("TERM");
            client = mount_as(&server, "v", 0).await;
        }
    }
    names.sort();
    names.retain(|name| name.starts_with(b"file-"));
    let whole: Vec<_> = (0..500).map(|number| format!("file-{number:03}").into_bytes()).collect();
    assert!(names == whole, "{} names", names.len());
}

#[tokio::test]
async fn the_quota_is_shown_changed_and_kept() {
    let server = TestServer::start();
    server.volume("v", "100MiB");
    let mut client = mount_as(&server, "v", 0).await;
    assert_eq!(total_bytes(&mut client).await, 100 << 20);
    let file = create(&mut client, b"file").await;
    let megabyte = vec![1; 1 << 20];
    let mut full = None;
    for at in 0..200u64 {
        let args = WRITE3args {
            file: file.clone(),
            offset: at << 20,
            count: 1 << 20,
            stable: stable_how::UNSTABLE,
            data: Opaque::borrowed(&megabyte),
        };
        if let Nfs3Result::Err((status, _)) = client.write(&args).await.unwrap() {
            full = Some((at, status));
            break;
        }
    }
    let (at, status) = full.unwrap();
    assert!(at <= 100, "{at} MiB fitted in");
    assert_eq!(status, nfsstat3::NFS3ERR_DQUOT);
    server.weir(&["volume", "resize", "v", "200MiB"]);
    assert_eq!(total_bytes(&mut client).await, 200 << 20);
    write(&mut client, &file, at << 20, &megabyte, stable_how::UNSTABLE).await;
}

async fn total_bytes(client: &mut Connection) -> u64 {
    let args = FSSTAT3args { fsroot: client.root_nfs_fh3() };
    client.fsstat(&args).await.unwrap().unwrap().tbytes
}
