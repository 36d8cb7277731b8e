//! Who may ask, while nobody has to log in: no web page that a browser on this machine, or next to it, has open.
//!
//! A page may send requests to any address, and reads the answers of its own name, which it can point at this server
//! (DNS rebinding). So a request has to name the server by something that no page's owner can give it, and what a browser
//! says about the page must not be another one's. Programs send neither `Origin` nor `Sec-Fetch-Site`, and name the server
//! as they were given it. Never looks at paths or bodies.

use std::net::IpAddr;

use hyper::{
    HeaderMap, Request, StatusCode,
    header::{self, HeaderName},
    http::uri::Authority,
};

use crate::errors::Failure;

/// What browsers say about the page that sends a request, also where they send no `Origin`.
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The names and pages that are let in.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    /// In lower case; `*` is any.
    hosts: Vec<String>,
    origin: Option<String>,
}

impl Access {
    /// Lets in `hosts`, this machine's own name, and the pages of `origin`.
    pub(crate) fn new(hosts: &[String], origin: Option<&str>) -> Self {
        let own = sysinfo::System::host_name();
        let hosts = hosts.iter().chain(&own).map(|name| name.to_ascii_lowercase()).collect();
        Self { hosts, origin: origin.map(str::to_owned) }
    }

    /// Refuses a request with 403 that a page may have sent which has no business here.
    pub(crate) fn check<B>(&self, request: &Request<B>) -> Result<(), Failure> {
        let headers = request.headers();
        if headers.get_all(header::HOST).iter().nth(1).is_some() {
            return Err(Failure::bad_request("the header Host comes twice"));
        }
        // HTTP/2 has it in the address, HTTP/1.1 in a header, and some send both. HTTP/1.0 may have none; browsers do not speak it.
        for host in headers.get_all(header::HOST) {
            let text = host.to_str().map_err(|_| refused("the header Host is no text"))?;
            self.check_host(text)?;
        }
        if let Some(authority) = request.uri().authority() {
            self.check_host(authority.as_str())?;
        }
        self.check_origin(headers, request.uri().authority())
    }

    fn check_host(&self, text: &str) -> Result<(), Failure> {
        let authority: Option<Authority> = text.parse().ok();
        let host = authority.as_ref().map_or("", Authority::host).trim_end_matches('.').to_ascii_lowercase();
        let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(&host);
        let is_known = address.parse::<IpAddr>().is_ok()
            || host == "localhost"
            || host.ends_with(".localhost")
            || self.hosts.iter().any(|known| known == "*" || *known == host);
        if is_known {
            return Ok(());
        }
        Err(refused(&format!(
            "the host {:?} is not a name of this server; use its IP address or localhost, or name it in the setting \
             allowed_hosts",
            text.chars().take(100).collect::<String>()
        )))
    }

    fn check_origin(&self, headers: &HeaderMap, authority: Option<&Authority>) -> Result<(), Failure> {
        if self.origin.as_deref() == Some("*") {
            return Ok(());
        }
        let Some(origin) = headers.get(header::ORIGIN) else {
            return match headers.get(SITE) {
                Some(site) if site == "cross-site" => Err(refused("a page of another site may not send requests here")),
                _ => Ok(()),
            };
        };
        let host = headers.get(header::HOST).map(|host| host.as_bytes());
        let host = host.or(authority.map(|authority| authority.as_str().as_bytes()));
        let own = |scheme: &[u8]| {
            host.is_some_and(|host| {
                origin.as_bytes().strip_prefix(scheme).is_some_and(|of| of.eq_ignore_ascii_case(host))
            })
        };
        let is_named = self.origin.as_ref().is_some_and(|named| origin.as_bytes() == named.as_bytes());
        if is_named || own(b"http://") || own(b"https://") {
            return Ok(());
        }
        let text = String::from_utf8_lossy(origin.as_bytes());
        let text: String = text.chars().take(100).collect();
        Err(refused(&format!("pages of {text:?} may not send requests here; the setting cors_origin names whose may")))
    }
}

fn refused(text: &str) -> Failure {
    Failure::new(StatusCode::FORBIDDEN, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(address: &str, headers: &[(&str, &str)]) -> Request<()> {
        let mut request = Request::get(address);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap()
    }

    #[test]
    fn the_server_is_named_by_what_no_page_can_be_called() {
        let access = Access::new(&["Arc.example".to_owned()], None);
        let own = sysinfo::System::host_name().unwrap();
        for (host, is_known) in [
            ("127.0.0.1", true),
            ("127.0.0.1:8000", true),
            ("192.168.7.7:1", true),
            ("[::1]:8000", true),
            ("[fe80::1]", true),
            ("localhost:8000", true),
            ("LOCALHOST", true),
            ("localhost.", true),
            ("a.localhost:8000", true),
            ("arc.example:8000", true),
            ("ARC.example.", true),
            (own.as_str(), true),
            ("evil.example", false),
            ("evil.example:8000", false),
            ("arc.example.evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("localhost.evil.example", false),
            ("evillocalhost", false),
            ("evil.example@127.0.0.1x", false),
            ("a", false),
            ("", false),
            ("a b", false),
            ("[::1", false),
        ] {
            assert_eq!(access.check_host(host).is_ok(), is_known, "{host:?}");
            let checked = access.check(&asked("/health", &[("host", host)]));
            assert_eq!(checked.is_ok(), is_known, "{host:?}");
        }
        assert!(access.check(&asked("/health", &[])).is_ok());
        assert!(access.check(&asked("http://evil.example/health", &[])).is_err());
        assert!(access.check(&asked("http://localhost:1/health", &[])).is_ok());
        assert!(access.check(&asked("http://localhost/", &[("host", "evil.example")])).is_err());
        for second in ["localhost", "evil.example"] {
            let twice = access.check(&asked("/", &[("host", "localhost"), ("host", second)])).unwrap_err();
            assert!(twice.status == 400 && twice.message.contains("comes twice"), "{}", twice.message);
        }
        assert!(Access::new(&["*".to_owned()], None).check_host("evil.example").is_ok());
    }

    #[test]
    fn pages_of_others_are_refused() {
        let (local, any) = (("host", "127.0.0.1:8000"), Some("*"));
        let named = Some("https://console.example");
        for (headers, origin, good) in [
            (vec![local], None, true),
            (vec![local, ("origin", "http://evil.example")], None, false),
            (vec![local, ("origin", "null")], None, false),
            (vec![local, ("origin", "http://127.0.0.1:8000")], None, true),
            (vec![local, ("origin", "http://127.0.0.1:3000")], None, false),
            (vec![local, ("sec-fetch-site", "cross-site")], None, false),
            (vec![local, ("sec-fetch-site", "same-origin")], None, true),
            (vec![local, ("sec-fetch-site", "none")], None, true),
            (vec![local, ("origin", "https://console.example"), ("sec-fetch-site", "cross-site")], named, true),
            (vec![local, ("sec-fetch-site", "cross-site")], named, false),
            (vec![local, ("origin", "https://console.example.evil")], named, false),
            (vec![local, ("origin", "http://evil.example"), ("sec-fetch-site", "cross-site")], any, true),
            (vec![("host", "evil.example"), ("origin", "http://evil.example")], any, false),
        ] {
            let access = Access::new(&[], origin);
            let checked = access.check(&asked("/write", &headers));
            assert_eq!(checked.is_ok(), good, "{headers:?} {origin:?}");
        }
    }
}
