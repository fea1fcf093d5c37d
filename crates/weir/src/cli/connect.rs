//! Reaching the server, and what to say when it can't be reached.

use super::{Global, print};
use anyhow::{Context, Result, anyhow, bail};
use std::future::Future;
use std::io::ErrorKind;
use std::net::{TcpListener, ToSocketAddrs};
use std::path::Path;
use weir_api::{Client, ClientError, Trust};

/// Longest file of certificates that is read, in bytes.
const SMALL_BYTES_MAX: u64 = 1 << 20;
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
        let (secured, address) = host_and_port(url)?;
        if !secured {
            return Ok(Client::tcp(address, token));
        }
        return Ok(Client::tls(address, token, &trust(global)?)?);
    }
    let data = global.data.as_deref();
    let data = data.ok_or_else(|| {
        print::usage(
            "no server given: use --data DIR, set WEIR_DATA, or use --server http://HOST:PORT",
        )
    })?;
    Ok(Client::local(data))
}

/// Is the server that the options name on this machine, as far as its address tells?
pub(crate) fn is_here(global: &Global) -> Result<bool> {
    let Some(url) = &global.server else { return Ok(true) };
    let (_, address) = host_and_port(url)?;
    let mut found = address.to_socket_addrs().with_context(|| format!("address of {url}"))?;
    // Only addresses of this machine can be listened at.
    Ok(found.any(|address| TcpListener::bind((address.ip(), 0)).is_ok()))
}

/// By what the server is to be known.
fn trust(global: &Global) -> Result<Trust> {
    match (&global.fingerprint, &global.cacert) {
        (Some(fingerprint), _) => Ok(Trust::Fingerprint(*fingerprint)),
        (None, Some(path)) => Ok(Trust::Authorities(read_small(path, "certificates")?)),
        (None, None) => bail!(print::usage(
            "https:// requires --fingerprint or --cacert: the server logs its fingerprint at startup, and `weir health` on its machine shows it"
        )),
    }
}

/// Is TLS to be spoken, and with whom?
fn host_and_port(url: &str) -> Result<(bool, String)> {
    let secured = url.starts_with("https://");
    let rest = url.strip_prefix("http://").or(url.strip_prefix("https://")).unwrap_or(url);
    let rest = rest.trim_end_matches('/');
    let has_port = rest
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if !has_port || rest.contains('/') {
        bail!(print::usage(&format!("{url:?} is not http://HOST:PORT or https://HOST:PORT")));
    }
    Ok((secured, rest.to_owned()))
}

/// The content of a file of a few KiB, with `what` it should hold.
fn read_small(path: &Path, what: &str) -> Result<Vec<u8>> {
    let named = || format!("file with {what} {}", path.display());
    let length = path.metadata().with_context(named)?.len();
    if length > SMALL_BYTES_MAX {
        bail!("{}: larger than {SMALL_BYTES_MAX} bytes", named());
    }
    std::fs::read(path).with_context(named)
}

fn read_token(path: &Path) -> Result<String> {
    let length = path.metadata().with_context(|| format!("token file {}", path.display()))?.len();
    if length > TOKEN_BYTES_MAX {
        bail!("token file {}: larger than {TOKEN_BYTES_MAX} bytes", path.display());
    }
    let token =
        std::fs::read_to_string(path).with_context(|| format!("token file {}", path.display()))?;
    let token = token.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        bail!("token file {} does not contain a token", path.display());
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
                    "only the owner of {data} can connect to its server: run this command as that user, or use --server with --token-file"
                ),
                _ => anyhow!(
                    "no server is running for {data}: start it with `weir serve --data {data}`"
                ),
            }
        }
        Some(ClientError::Broken(_)) if global.server.as_ref().is_some_and(|url| !url.starts_with("https://")) => {
            error.context("if the server uses TLS on this address (the default for addresses other than loopback), use https://")
        }
        Some(ClientError::Refused { status: 401, error }) if error.code == "unauthorized" => {
            anyhow!(
                "the server requires a valid token: use --token-file with the output of `weir token create`, or with a copy of api.token from its data directory"
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
        let named = |text: &str| host_and_port(text).unwrap();
        assert_eq!(named("http://nas.example:7437/"), (false, "nas.example:7437".to_owned()));
        assert_eq!(named("https://nas:1"), (true, "nas:1".to_owned()));
        assert_eq!(named("[::1]:7437"), (false, "[::1]:7437".to_owned()));
        for wrong in ["ftp://nas:1", "http://nas", "nas:x", ":7437", "http://nas:1/v1"] {
            assert!(host_and_port(wrong).is_err(), "{wrong}");
        }
    }
}
