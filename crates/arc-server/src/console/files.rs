//! The files of the page, as they are in the program: compressed, with a tag that tells whether a browser has them already.
//!
//! Never asks who wants them: they are the same on every server and say nothing about what is in one.

use std::{io::Read, sync::LazyLock};

use axum::{
    body::Body,
    extract::{Path, Request, rejection::PathRejection},
    response::{IntoResponse, Response},
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use flate2::read::GzDecoder;
use hyper::{
    HeaderMap, StatusCode, Uri,
    header::{self, HeaderValue},
};
use ring::digest;

use crate::{errors::Failure, http::accept::wishes};

/// What a browser lets the page do; `None` would be a page that was built wrongly.
static POLICY: LazyLock<Option<HeaderValue>> = LazyLock::new(|| {
    let page = FILES.iter().find(|file| file.name == PAGE)?;
    policy(&String::from_utf8(plain(page.gzipped)?).ok()?)
});
const PREFIX: &str = "/console/";
const PAGE: &str = "index.html";

/// One file of the page.
struct PageFile {
    name: &'static str,
    content_type: &'static str,
    gzipped: &'static [u8],
}

macro_rules! files {
    ($($name:literal: $content_type:literal),* $(,)?) => {
        [$(PageFile {
            name: $name,
            content_type: $content_type,
            gzipped: include_bytes!(concat!("../../console/dist/", $name, ".gz")),
        }),*]
    };
}

/// All files; `console/build.js` makes exactly these.
static FILES: [PageFile; 6] = files! {
    "index.html": "text/html; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
    "editor.js": "text/javascript; charset=utf-8",
    "chart.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "licences.txt": "text/plain; charset=utf-8",
};

static TAGS: LazyLock<Vec<String>> = LazyLock::new(|| FILES.iter().map(|file| tag(file.gzipped)).collect());

/// `GET /`: the page, for who asks for a page. Programs are told what they always were.
pub(crate) async fn page(request: Request) -> Result<Response, Failure> {
    if !wants_page(request.headers()) {
        return Err(missing(request.uri()));
    }
    let mut response = serve(PAGE, request.headers()).ok_or_else(Failure::bug)?;
    response.headers_mut().append(header::VARY, HeaderValue::from_static("Accept"));
    Ok(response)
}

/// `GET /console/{file}`.
pub(crate) async fn file(name: Result<Path<String>, PathRejection>, request: Request) -> Result<Response, Failure> {
    serve(&name?.0, request.headers()).ok_or_else(|| missing(request.uri()))
}

/// Returns whether a request is one for the page or a file of it, which anybody may send.
pub(crate) fn is_public(uri: &Uri, headers: &HeaderMap) -> bool {
    uri.path().starts_with(PREFIX) || (uri.path() == "/" && wants_page(headers))
}

fn wants_page(headers: &HeaderMap) -> bool {
    wishes(headers, header::ACCEPT).iter().any(|wish| wish.name == "text/html" && wish.weight > 0)
}

fn missing(uri: &Uri) -> Failure {
    Failure::new(StatusCode::NOT_FOUND, format!("Cannot GET {}", uri.path()))
}

fn serve(name: &str, headers: &HeaderMap) -> Option<Response> {
    let (file, tag) = FILES.iter().zip(TAGS.iter()).find(|(file, _)| file.name == name)?;
    let has = |tag: &str| {
        let known = headers.get_all(header::IF_NONE_MATCH).into_iter().filter_map(|value| value.to_str().ok());
        known.flat_map(|value| value.split(',')).any(|known| known.trim().trim_start_matches("W/") == tag)
    };
    let gzip = wishes(headers, header::ACCEPT_ENCODING).iter().any(|wish| wish.name == "gzip" && wish.weight > 0);
    let mut response = if has(tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else if gzip {
        Body::from(file.gzipped).into_response()
    } else {
        Body::from(plain(file.gzipped)?).into_response()
    };
    let is_whole = response.status() == StatusCode::OK;
    let answered = response.headers_mut();
    if is_whole {
        answered.insert(header::CONTENT_TYPE, HeaderValue::from_static(file.content_type));
        if gzip {
            answered.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
    }
    answered.insert(header::ETAG, HeaderValue::try_from(tag).ok()?);
    // A browser keeps them and asks each time whether there are newer ones.
    answered.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    answered.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    answered.insert(header::CONTENT_SECURITY_POLICY, POLICY.clone()?);
    answered.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    Some(response)
}

/// Writes the policy of a page: its own files and requests to this server, nothing that is embedded, and of what is written into a page
/// the one script and the one style that this page has, named by their hashes. Text never becomes markup, wherever it came from.
fn policy(page: &str) -> Option<HeaderValue> {
    let script = hash(inner(page, "script")?);
    let style = hash(inner(page, "style")?);
    let policy = format!(
        "default-src 'none'; script-src 'self' '{script}'; style-src '{style}'; connect-src 'self'; img-src 'self' data: blob:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    );
    HeaderValue::try_from(policy).ok()
}

/// Returns what is in the first element of a name that has no attributes.
fn inner<'a>(page: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = page.split_once(&format!("<{name}>"))?;
    Some(rest.split_once(&format!("</{name}>"))?.0)
}

fn hash(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(digest::digest(&digest::SHA256, text.as_bytes())))
}

fn plain(gzipped: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::new();
    GzDecoder::new(gzipped).read_to_end(&mut plain).ok()?;
    Some(plain)
}

fn tag(bytes: &[u8]) -> String {
    let hash = digest::digest(&digest::SHA256, bytes);
    let digits: String = hash.as_ref().iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    format!("\"{digits}\"")
}
