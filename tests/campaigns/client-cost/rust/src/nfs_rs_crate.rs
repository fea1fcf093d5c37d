//! Through `nfs-rs`: all requests on one connection.

use crate::{Load, Outcome, measure};
use bytes::Bytes;
use std::rc::Rc;
use std::sync::Arc;

pub async fn run(load: Rc<Load>) -> Outcome<()> {
    let url = format!(
        "nfs://127.0.0.1{}?version=3&nfsport={1}&mountport={1}&uid=0&gid=0&noresvport=true",
        load.export, load.port
    );
    let mount: Arc<dyn nfs_rs::Mount> = Arc::from(nfs_rs::parse_url_and_mount(&url).await?);
    let file = mount.lookup_path(&load.path).await?.fh;
    let stream = |_| stream(Rc::clone(&load), Arc::clone(&mount), file.clone());
    let streams = (0..load.depth).map(stream).collect();
    measure(Rc::clone(&load), streams).await
}

async fn stream(load: Rc<Load>, mount: Arc<dyn nfs_rs::Mount>, file: Bytes) -> Outcome<()> {
    let data = Bytes::from(vec![7; usize::try_from(load.block)?]);
    loop {
        match load.operation.as_str() {
            "read" => {
                let read = mount.read(file.clone(), load.place(), load.block).await?;
                if read.len() != data.len() {
                    return Err("a read was short".into());
                }
            }
            "write" => {
                mount.write(file.clone(), load.place(), data.clone()).await?;
            }
            _ => {
                mount.getattr(file.clone()).await?;
            }
        }
        if !load.done() {
            return Ok(());
        }
    }
}
