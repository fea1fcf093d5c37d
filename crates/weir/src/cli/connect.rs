//! Reaching the server, and what to say when it can't be reached.

use super::{Global, print};
use anyhow::{Context, Result, anyhow, bail};
use std::future::Future;
use std::io::ErrorKind;
use std::path::Path;
use weir_api::{Client, ClientError};

/// Longest token file that is read, in bytes.
const TOKEN_BYTES_MAX: u64 = 4096;

/// Runs a command that speaks to a server.
pub(crate) fn with_client<T>(
    global: &Global,
    command: impl Future<Output = Result<T>>,
) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(command).map_err(|error| explain(global, error))
}

/// The server that the options name.
pub(crate) fn client(global: &Global) -> Result<Client> {
    let client = any_client(global)?;
    Ok(match &global.if_match {
        Some(etag) => client.if_match(etag.trim_matches('"')),
        None => client,
    })
}

fn any_client(global: &Global) -> Result<Client> {
    if let Some(url) = &global.server {
        let token = global.token_file.as_deref().map(read_token).transpose()?;
        return Ok(Client::tcp(host_and_port(url)?, token));
    }
    let data = global.data.as_deref();
    let data = data.ok_or_else(|| {
        print::usage(
            "which server? give --data DIR, set WEIR_DATA, or give --server http://HOST:PORT",
        )
    })?;
    Ok(Client::local(data))
}

fn host_and_port(url: &str) -> Result<String> {
    if url.starts_with("https://") {
        bail!(print::usage(
            "the API has no TLS of its own: use http:// over a network you trust, or a tunnel"
        ));
    }
    let rest = url.strip_prefix("http://").unwrap_or(url).trim_end_matches('/');
    let has_port = rest
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if !has_port || rest.contains('/') {
        bail!(print::usage(&format!("{url:?} is no http://HOST:PORT")));
    }
    Ok(rest.to_owned())
}

fn read_token(path: &Path) -> Result<String> {
    let length = path.metadata().with_context(|| format!("token file {}", path.display()))?.len();
    if length > TOKEN_BYTES_MAX {
        bail!("token file {}: over {TOKEN_BYTES_MAX} bytes is no token", path.display());
    }
    let token =
        std::fs::read_to_string(path).with_context(|| format!("token file {}", path.display()))?;
    let token = token.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        bail!("token file {} holds no token", path.display());
    }
    Ok(token.to_owned())
}

/// Adds what to do about an error that has a cause outside of the request.
fn explain(global: &Global, error: anyhow::Error) -> anyhow::Error {
    let data = global.data.as_deref().unwrap_or(Path::new("DIR")).display();
    match error.downcast_ref() {
        Some(ClientError::Unreachable { source, .. }) if global.server.is_none() => {
            match source.kind() {
                ErrorKind::PermissionDenied => anyhow!(
                    "only the owner of {data} may speak to its server: run this as that user, or use --server with --token-file"
                ),
                _ => anyhow!(
                    "no server is running on {data}: start it with `weir serve --data {data}`"
                ),
            }
        }
        Some(ClientError::Refused { status: 401, error }) if error.code == "unauthorized" => {
            anyhow!(
                "the server wants a token that it knows: give --token-file with one that `weir token create` made there, or with a copy of api.token from its data directory"
            )
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_by_host_and_port() {
        assert_eq!(host_and_port("http://nas.example:7437/").unwrap(), "nas.example:7437");
        assert_eq!(host_and_port("[::1]:7437").unwrap(), "[::1]:7437");
        for wrong in ["https://nas:1", "http://nas", "nas:x", ":7437", "http://nas:1/v1"] {
            assert!(host_and_port(wrong).is_err(), "{wrong}");
        }
    }
}
