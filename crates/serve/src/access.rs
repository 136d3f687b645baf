//! Who may ask: looked at before anything else is done with a request.
//!
//! - The `Host` has to be one of ours: a name that somebody makes point at 127.0.0.1 (DNS rebinding) is not.
//! - What changes anything comes from a page of ours: its `Origin` is this server's, and it knows the page's token.
//! - Beyond this machine nothing is shown without the token that was printed (a cookie that it was exchanged for, or `Authorization: Bearer`).

use std::net::IpAddr;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use axum::http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, Method, StatusCode, Uri};

/// Header that a page proves itself with when it asks for a stop.
pub const PAGE_TOKEN: &str = "x-plimsoll-token";

/// The rules of one server.
pub struct PageAccess {
    /// Of the address that is listened on.
    pub port: u16,
    pub scheme: &'static str,
    /// Names that it may be called by, beside addresses.
    pub names: Vec<String>,
    /// Only addresses of this machine are ours.
    pub loopback: bool,
    /// Without it nothing is shown. `None`: on this machine alone.
    pub token: Option<String>,
    /// What a browser has once it showed the token.
    pub session: String,
    /// What pages prove themselves with.
    pub page_token: String,
}

/// Without its secrets.
impl std::fmt::Debug for PageAccess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PageAccess")
            .field("port", &self.port)
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

/// What becomes of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Admission {
    Go,
    /// The token was right: it is exchanged for a cookie, and out of the address.
    Welcome {
        location: String,
    },
    Refuse(StatusCode, &'static str),
}

impl PageAccess {
    /// Looks at a request's head.
    pub fn admit(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Admission {
        let text = |name| headers.get(name).and_then(|v| v.to_str().ok());
        let hosts = headers.get_all(HOST).iter().count();
        let Some(host) = text(HOST).filter(|h| hosts == 1 && self.is_ours(h)) else {
            return Admission::Refuse(
                StatusCode::FORBIDDEN,
                "This is not the address that Plimsoll serves. Use the one that it printed.",
            );
        };
        if let Some(answer) = self.of_token(method, uri, headers) {
            return answer;
        }
        let own = format!("{}://{host}", self.scheme);
        if method == Method::GET || method == Method::HEAD {
            // A page of ours asks without an origin, or with its own; data is for no other.
            let strange = headers.get_all(ORIGIN).iter().any(|o| o.as_bytes() != own.as_bytes());
            if strange && uri.path().starts_with("/api/") {
                return Admission::Refuse(
                    StatusCode::FORBIDDEN,
                    "This is asked by the page of Plimsoll only.",
                );
            }
            return Admission::Go;
        }
        if method != Method::POST {
            return Admission::Refuse(StatusCode::METHOD_NOT_ALLOWED, "There is nothing here to change so.");
        }
        if text(ORIGIN) != Some(own.as_str()) || headers.get_all(ORIGIN).iter().count() != 1 {
            return Admission::Refuse(
                StatusCode::FORBIDDEN,
                "A run is stopped from its own page only, and this request came from another.",
            );
        }
        if !headers.get(PAGE_TOKEN).and_then(|v| v.to_str().ok()).is_some_and(|t| same(t, &self.page_token)) {
            return Admission::Refuse(
                StatusCode::FORBIDDEN,
                "The page's token is not this server's. Reload the page.",
            );
        }
        Admission::Go
    }

    /// `None`: it may go on.
    fn of_token(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Option<Admission> {
        let token = self.token.as_deref()?;
        let cookies = headers.get_all(COOKIE).iter().filter_map(|v| v.to_str().ok());
        let name = format!("{}=", self.cookie_name());
        let mut shown =
            cookies.flat_map(|c| c.split(';')).filter_map(|c| c.trim().strip_prefix(name.as_str()));
        let typed = query(uri, "token").filter(|_| method == Method::GET);
        // Out of the address, also of one who has the cookie by now: it would stay in the history of the browser, and in what is copied.
        let bare = || Admission::Welcome { location: own_path(uri) };
        if shown.any(|c| same(c, &self.session)) {
            return typed.map(|_| bare());
        }
        let bearer = headers.get(AUTHORIZATION).and_then(|v| v.to_str().ok());
        if bearer.and_then(|v| v.strip_prefix("Bearer ")).is_some_and(|t| same(t.trim(), token)) {
            return None;
        }
        if typed.is_some_and(|t| same(t, token)) {
            return Some(bare());
        }
        Some(Admission::Refuse(
            StatusCode::UNAUTHORIZED,
            "Open the whole address that Plimsoll printed, with its token; programs send it as Authorization: Bearer TOKEN.",
        ))
    }

    /// Of the cookie: cookies do not tell ports apart.
    pub fn cookie_name(&self) -> String {
        format!("plimsoll-{}", self.port)
    }

    fn is_ours(&self, host: &str) -> bool {
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !port.is_empty() => {
                (name, port.parse().ok())
            }
            _ => (host, Some(if self.scheme == "https" { 443 } else { 80 })),
        };
        if port != Some(self.port) {
            return false;
        }
        let bare = name.strip_prefix('[').and_then(|n| n.strip_suffix(']')).unwrap_or(name);
        match bare.parse::<IpAddr>() {
            // An address cannot be made to point elsewhere.
            Ok(ip) => !self.loopback || ip.is_loopback(),
            Err(_) => {
                name.eq_ignore_ascii_case("localhost")
                    || self.names.iter().any(|n| n.eq_ignore_ascii_case(name))
            }
        }
    }
}

/// The path, as one of this server: `//elsewhere/x` would be that of another.
fn own_path(uri: &Uri) -> String {
    format!("/{}", uri.path().trim_start_matches('/'))
}

/// The value of a name in a query, as it stands there.
pub fn query<'a>(uri: &'a Uri, name: &str) -> Option<&'a str> {
    let mut pairs = uri.query()?.split('&').filter_map(|p| p.split_once('='));
    pairs.find(|(n, _)| *n == name).map(|(_, v)| v)
}

/// Takes as long whatever differs.
fn same(a: &str, b: &str) -> bool {
    verify_slices_are_equal(a.as_bytes(), b.as_bytes()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn access(token: Option<&str>) -> PageAccess {
        PageAccess {
            port: 9741,
            scheme: if token.is_some() { "https" } else { "http" },
            names: vec!["bench-1".into()],
            loopback: token.is_none(),
            token: token.map(str::to_owned),
            session: "session".into(),
            page_token: "page".into(),
        }
    }

    fn ask(a: &PageAccess, method: Method, uri: &str, headers: &[(&'static str, &str)]) -> u16 {
        let mut map = HeaderMap::new();
        for (n, v) in headers {
            map.append(*n, HeaderValue::from_str(v).unwrap());
        }
        match a.admit(&method, &uri.parse().unwrap(), &map) {
            Admission::Go => 200,
            Admission::Welcome { location } => {
                assert!(!location.contains("token"));
                303
            }
            Admission::Refuse(status, _) => status.as_u16(),
        }
    }

    #[test]
    fn only_our_own_names_are_answered() {
        let a = access(None);
        for host in ["127.0.0.1:9741", "localhost:9741", "LOCALHOST:9741", "[::1]:9741", "bench-1:9741"] {
            assert_eq!(ask(&a, Method::GET, "/", &[("host", host)]), 200, "{host}");
        }
        for host in [
            "evil.example:9741",
            "127.0.0.1",
            "127.0.0.1:1",
            "10.0.0.1:9741",
            "localhost.evil.example:9741",
            "",
        ] {
            assert_eq!(ask(&a, Method::GET, "/", &[("host", host)]), 403, "{host}");
        }
        assert_eq!(ask(&a, Method::GET, "/", &[]), 403);
        let two = [("host", "127.0.0.1:9741"), ("host", "evil.example:9741")];
        assert_eq!(ask(&a, Method::GET, "/", &two), 403);
        // Beyond this machine an address is ours, and a name that is not ours is not.
        let wide = access(Some("secret"));
        let with =
            |host| ask(&wide, Method::GET, "/", &[("host", host), ("cookie", "plimsoll-9741=session")]);
        assert_eq!((with("192.0.2.7:9741"), with("evil.example:9741")), (200, 403));
    }

    #[test]
    fn what_changes_anything_comes_from_our_own_page() {
        let a = access(None);
        let host = ("host", "localhost:9741");
        let post =
            |more: &[(&'static str, &str)]| ask(&a, Method::POST, "/runs/r/stop", &[&[host], more].concat());
        let own = ("origin", "http://localhost:9741");
        assert_eq!(post(&[own, ("x-plimsoll-token", "page")]), 200);
        assert_eq!(post(&[own]), 403);
        assert_eq!(post(&[own, ("x-plimsoll-token", "pagf")]), 403);
        assert_eq!(post(&[("x-plimsoll-token", "page")]), 403);
        for origin in ["http://evil.example", "null", "http://127.0.0.1:9741", "https://localhost:9741"] {
            assert_eq!(post(&[("origin", origin), ("x-plimsoll-token", "page")]), 403, "{origin}");
        }
        assert_eq!(ask(&a, Method::DELETE, "/", &[host]), 405);
    }

    #[test]
    fn data_is_given_to_no_page_of_somebody_else() {
        let a = access(None);
        let host = ("host", "localhost:9741");
        let api =
            |more: &[(&'static str, &str)]| ask(&a, Method::GET, "/api/runs", &[&[host], more].concat());
        assert_eq!((api(&[]), api(&[("origin", "http://localhost:9741")])), (200, 200));
        for origin in ["http://evil.example", "null", "http://127.0.0.1:9741", "https://localhost:9741"] {
            assert_eq!(api(&[("origin", origin)]), 403, "{origin}");
        }
        let wide = access(Some("secret"));
        assert_eq!(ask(&wide, Method::GET, "/api/runs", &[("host", "192.0.2.7:9741")]), 401);
    }

    #[test]
    fn beyond_this_machine_nothing_is_shown_without_the_token() {
        let a = access(Some("secret"));
        let get = |uri: &str, more: &[(&'static str, &str)]| {
            ask(&a, Method::GET, uri, &[&[("host", "192.0.2.7:9741")], more].concat())
        };
        assert_eq!(get("/", &[]), 401);
        assert_eq!(get("/metrics?token=wrong", &[]), 401);
        assert_eq!(get("/runs/r?token=secret", &[]), 303);
        assert_eq!(get("/", &[("cookie", "a=b; plimsoll-9741=session")]), 200);
        // Opened a second time, with the cookie: the token leaves the address all the same.
        assert_eq!(get("/runs/r?token=secret", &[("cookie", "plimsoll-9741=session")]), 303);
        let uri = "//evil.example/x?token=secret".parse::<Uri>().unwrap();
        assert_eq!(own_path(&uri), "/evil.example/x");
        assert_eq!(get("/", &[("cookie", "plimsoll-9741=secret")]), 401);
        assert_eq!(get("/metrics", &[("authorization", "Bearer secret")]), 200);
        assert_eq!(get("/metrics", &[("authorization", "Bearer secre")]), 401);
    }
}
