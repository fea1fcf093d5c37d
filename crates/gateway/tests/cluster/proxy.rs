//! Links that can be cut: everything between two machines goes through these.

use std::net::SocketAddr;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Passes connections on to `target` as long as they are not cut, for ever.
pub(crate) async fn run(listener: TcpListener, target: SocketAddr, cut: watch::Receiver<bool>) {
    while let Ok((incoming, _)) = listener.accept().await {
        tokio::spawn(pass(incoming, target, cut.clone()));
    }
}

async fn pass(mut incoming: TcpStream, target: SocketAddr, mut cut: watch::Receiver<bool>) {
    if *cut.borrow() {
        return;
    }
    let Ok(mut outgoing) = TcpStream::connect(target).await else { return };
    tokio::select! {
        // How a connection ends is between its ends.
        _ = copy_bidirectional(&mut incoming, &mut outgoing) => {}
        _ = cut.wait_for(|cut| *cut) => {}
    }
}
