//! Through `nfs3_client`: a connection for each request in flight.

use crate::{Load, Outcome, measure};
use nfs3_client::Nfs3ConnectionBuilder;
use nfs3_client::nfs3_types::nfs3::{
    GETATTR3args, LOOKUP3args, Nfs3Result, READ3args, WRITE3args, diropargs3, filename3, nfs_fh3,
    stable_how,
};
use nfs3_client::nfs3_types::rpc::{auth_unix, opaque_auth};
use nfs3_client::nfs3_types::xdr_codec::Opaque;
use nfs3_client::tokio::{TokioConnector, TokioIo};
use std::rc::Rc;
use tokio::net::TcpStream;

type Connection = nfs3_client::Nfs3Connection<TokioIo<TcpStream>>;

pub async fn run(load: Rc<Load>) -> Outcome<()> {
    let mut streams = Vec::new();
    for _ in 0..load.depth {
        let auth = auth_unix { uid: 0, gid: 0, ..auth_unix::default() };
        let connection = Nfs3ConnectionBuilder::new(TokioConnector, "127.0.0.1", &load.export)
            .mount_port(load.port)
            .nfs3_port(load.port)
            .connect_from_privileged_port(false)
            .credential(opaque_auth::auth_unix(&auth))
            .mount()
            .await?;
        streams.push(stream(Rc::clone(&load), connection));
    }
    measure(load, streams).await
}

async fn find(connection: &mut Connection, path: &str) -> Outcome<nfs_fh3> {
    let mut found = connection.root_nfs_fh3();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        let name = filename3(Opaque::borrowed(part.as_bytes()));
        let args = LOOKUP3args { what: diropargs3 { dir: found, name } };
        match connection.lookup(&args).await? {
            Nfs3Result::Ok(ok) => found = ok.object,
            Nfs3Result::Err((status, _)) => return Err(format!("LOOKUP: {status:?}").into()),
        }
    }
    Ok(found)
}

async fn stream(load: Rc<Load>, mut connection: Connection) -> Outcome<()> {
    let file = find(&mut connection, &load.path).await?;
    let data = vec![7; usize::try_from(load.block)?];
    loop {
        let well = match load.operation.as_str() {
            "read" => {
                let args =
                    READ3args { file: file.clone(), offset: load.place(), count: load.block };
                match connection.read(&args).await? {
                    Nfs3Result::Ok(ok) => ok.count == load.block,
                    Nfs3Result::Err(_) => false,
                }
            }
            "write" => {
                let args = WRITE3args {
                    file: file.clone(),
                    offset: load.place(),
                    count: load.block,
                    stable: stable_how::UNSTABLE,
                    data: Opaque::borrowed(&data),
                };
                matches!(connection.write(&args).await?, Nfs3Result::Ok(_))
            }
            _ => {
                let args = GETATTR3args { object: file.clone() };
                matches!(connection.getattr(&args).await?, Nfs3Result::Ok(_))
            }
        };
        if !well {
            return Err("not answered as asked".into());
        }
        if !load.done() {
            return Ok(());
        }
    }
}
