//! One request to a server that is not the storage: who gives keys, says which machine this is, or has a page of metrics. Bounded in time and bytes; no proxy is
//! asked, no redirect followed, and a connection is used once.

use plimsoll_model::plan::TlsSpec;
use plimsoll_s3::credentials::{WEB_MOST_BYTES, WebAnswer, WebRequest, WebTrouble};

use super::connection::Connection;
use crate::target::s3::tls::client_config;

/// Whether these settings can be used, before anybody is asked: why not, by file.
pub fn check_tls(tls: &TlsSpec) -> Result<(), String> {
    client_config(tls).map(drop)
}

/// Asks, and waits for the whole answer. `ca_file`: who is trusted for https, in place of the system's roots.
pub fn fetch(request: &WebRequest, ca_file: Option<&str>) -> Result<WebAnswer, WebTrouble> {
    let tls = TlsSpec { ca_file: ca_file.map(str::to_owned), ..TlsSpec::default() };
    fetch_up_to(request, &tls, WEB_MOST_BYTES)
}

/// The same for answers of up to so many bytes.
pub fn fetch_up_to(request: &WebRequest, tls: &TlsSpec, most_bytes: usize) -> Result<WebAnswer, WebTrouble> {
    let unsent = |what: String| WebTrouble { connected: false, what };
    let WebRequest { method, endpoint, path, headers, body, limit } = request;
    let host = endpoint.host_header(None);
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nhost:{host}\r\nuser-agent:plimsoll/{}\r\nconnection:close\r\n",
        env!("CARGO_PKG_VERSION")
    );
    for (name, value) in headers {
        if value.bytes().any(|b| b.is_ascii_control()) {
            return Err(unsent(format!(
                "the header {name} for {endpoint} holds a character that cannot be sent"
            )));
        }
        head.push_str(&format!("{name}:{value}\r\n"));
    }
    if *method != "GET" {
        head.push_str(&format!("content-length:{}\r\n", body.len()));
    }
    head.push_str("\r\n");
    let mut connection = Connection::to(endpoint, None, tls, (*limit, most_bytes)).map_err(unsent)?;
    let answer = connection.exchange(head.as_bytes(), body.as_bytes(), false);
    let answer = answer.map_err(|lost| WebTrouble { connected: lost.connected, what: lost.message })?;
    Ok(WebAnswer { status: answer.head.status, body: answer.body })
}
