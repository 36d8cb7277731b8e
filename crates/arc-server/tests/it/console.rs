//! The console: the page for browsers and its files, and documents that people keep.

use std::io::Read;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use hyper::Method;
use ring::digest;
use serde_json::{Value, json};

use crate::{
    auth::Closed,
    support::{Reply, Server},
};

const PATH: &str = "/api/v1/console/documents";
const BROWSER: (&str, &str) = ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");

fn unpacked(reply: &Reply) -> String {
    assert_eq!(reply.header("content-encoding"), "gzip");
    let mut text = String::new();
    flate2::read::GzDecoder::new(&*reply.body).read_to_string(&mut text).unwrap();
    text
}

#[tokio::test]
async fn browsers_get_the_page_and_programs_what_they_got_before() {
    let server = Server::new();
    let page = server.send(Method::GET, "/", &[BROWSER, ("accept-encoding", "gzip, deflate")], "").await;
    assert_eq!((page.status.as_u16(), page.header("content-type")), (200, "text/html; charset=utf-8"));
    let text = unpacked(&page);
    assert!(text.contains("<script type=\"module\" src=\"console/console.js\"></script>"), "{text}");
    // No style of an element, no address of another host, none that does not work behind a prefix.
    for unwanted in ["style=", "http://", "https://", "=\"/", "url(/", "onload="] {
        assert!(!text.contains(unwanted), "{unwanted}");
    }
    let policy = page.header("content-security-policy");
    assert!(
        policy.starts_with("default-src 'none'; script-src 'self' 'sha256-") && !policy.contains("unsafe"),
        "{policy}"
    );
    assert_eq!((page.header("x-content-type-options"), page.header("x-frame-options")), ("nosniff", "DENY"));
    let plain = server.send(Method::GET, "/", &[BROWSER], "").await;
    assert_eq!(String::from_utf8_lossy(&plain.body), text);
    for accept in ["*/*", "application/json", "text/html;q=0"] {
        server.send(Method::GET, "/", &[("accept", accept)], "").await.is(404, "Cannot GET /");
    }
    server.get("/").await.is(404, "Cannot GET /");
    let json = server.get("/health").await;
    assert_eq!(json.header("content-security-policy"), "default-src 'none'");
}

/// What is between the marks of each element of a name that has no attributes.
fn inner(page: &str, name: &str) -> Vec<String> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    page.split(&open).skip(1).map(|rest| rest.split_once(&close).unwrap().0.to_owned()).collect()
}

#[tokio::test]
async fn the_policy_names_the_style_and_the_script_of_the_page_as_it_is_served() {
    let server = Server::new();
    // A proxy with a prefix takes it away and passes the rest on, with heads of its own.
    let proxied = [BROWSER, ("x-forwarded-prefix", "/arc"), ("x-forwarded-host", "example.org")];
    for headers in [&[BROWSER][..], &proxied] {
        let page = server.send(Method::GET, "/", headers, "").await;
        let text = String::from_utf8(page.body.to_vec()).unwrap();
        let (scripts, styles) = (inner(&text, "script"), inner(&text, "style"));
        assert_eq!((scripts.len(), styles.len(), text.matches("<style").count()), (1, 1, 1));
        assert_eq!(text.matches("<script").count(), 2, "one more that is a file");
        let policy = page.header("content-security-policy");
        for (directive, inline) in [("script-src 'self' ", &scripts[0]), ("style-src ", &styles[0])] {
            assert!(inline.len() > 500, "{inline}");
            let hash = BASE64_STANDARD.encode(digest::digest(&digest::SHA256, inline.as_bytes()));
            assert!(policy.contains(&format!("; {directive}'sha256-{hash}';")), "{policy}");
        }
        // There is something to paint without the script.
        assert!(text.contains("<nav") && text.contains("Notebooks"), "{text}");
    }
}

#[tokio::test]
async fn files_of_the_page_are_small_and_asked_for_once() {
    let server = Server::new();
    let mut bytes = 0;
    for (name, content_type) in [
        ("console.js", "text/javascript; charset=utf-8"),
        ("editor.js", "text/javascript; charset=utf-8"),
        ("chart.js", "text/javascript; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
        ("licences.txt", "text/plain; charset=utf-8"),
    ] {
        let path = format!("/console/{name}");
        let file = server.send(Method::GET, &path, &[("accept-encoding", "gzip")], "").await;
        assert_eq!((file.status.as_u16(), file.header("content-type")), (200, content_type), "{name}");
        assert!(unpacked(&file).len() > 100, "{name}");
        bytes += file.body.len();
        let tag = file.header("etag").to_owned();
        let again = server.send(Method::GET, &path, &[("if-none-match", &tag)], "").await;
        assert_eq!((again.status.as_u16(), again.body.len()), (304, 0), "{name}");
        let other = server.send(Method::GET, &path, &[("if-none-match", "\"x\"")], "").await;
        assert_eq!(other.status, 200);
    }
    assert!(bytes < 300_000, "{bytes}");
    for missing in ["/console/nothing.js", "/console/..%2Fconsole.js", "/console/%2e%2e"] {
        server.get(missing).await.is(404, "Cannot GET");
    }
    server.post("/console/console.js", "").await.is(405, "not allowed");
}

#[tokio::test]
async fn the_page_needs_no_token_and_what_is_in_the_server_does() {
    let Closed { server, .. } = Closed::new();
    assert_eq!(server.send(Method::GET, "/", &[BROWSER], "").await.status, 200);
    assert_eq!(server.get("/console/console.js").await.status, 200);
    for path in ["/", PATH, "/api/v1/console/documents/1", "/consolex"] {
        assert_eq!(server.get(path).await.status, 401, "{path}");
    }
    let wrong = server.send(Method::GET, PATH, &[BROWSER], "").await;
    assert_eq!(wrong.status, 401);
}

async fn made(server: &Server, name: &str) -> Value {
    let body = json!({"kind": "notebook", "name": name, "body": {"cells": []}});
    let reply = server.post(PATH, body.to_string()).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    reply.json()
}

#[tokio::test]
async fn documents_are_kept_over_a_restart() {
    let server = Server::new();
    let document = made(&server, "Halle <b>7</b> 😀").await;
    let path = format!("{PATH}/{}", document["id"]);
    assert_eq!((&document["version"], &document["editable"]), (&json!(1), &json!(true)));
    let change = json!({"version": 1, "body": {"cells": [{"text": "SELECT 1"}]}});
    let changed = server.send(Method::PUT, &path, &[], change.to_string()).await.json();
    assert_eq!((&changed["version"], &changed["name"]), (&json!(2), &json!("Halle <b>7</b> 😀")));
    let server = server.reopened();
    let kept = server.get(&path).await.json();
    assert_eq!(kept["body"], json!({"cells": [{"text": "SELECT 1"}]}));
    let list = server.get(&format!("{PATH}?kind=notebook")).await.json();
    assert_eq!((&list["count"], list["documents"][0].get("body")), (&json!(1), None));
    assert_eq!(server.get(&format!("{PATH}?kind=query")).await.json()["count"], 0);
    server.get(&format!("{PATH}?kind=page")).await.is(400, "expected query, notebook, dashboard or history");
    assert_eq!(server.send(Method::DELETE, &format!("{path}?version=2"), &[], "").await.status, 200);
    server.get(&path).await.is(404, "not found");
    // No number is used twice.
    assert_ne!(made(&server, "other").await["id"], document["id"]);
}

#[tokio::test]
async fn of_two_who_save_at_once_the_later_is_told() {
    let server = Server::new();
    let path = format!("{PATH}/{}", made(&server, "a").await["id"]);
    let save =
        async |name: &str| server.send(Method::PUT, &path, &[], json!({"version": 1, "name": name}).to_string()).await;
    assert_eq!(save("first").await.status, 200);
    save("second").await.is(409, "has version 2, and the change began with 1");
    assert_eq!(server.get(&path).await.json()["name"], "first");
    server.send(Method::DELETE, &format!("{path}?version=1"), &[], "").await.is(409, "version 2");
    server.send(Method::DELETE, &path, &[], "").await.is(400, "version");
    server.send(Method::PUT, &path, &[], json!({"name": "b"}).to_string()).await.is(400, "version");
    let other = json!({"version": 2, "kind": "query"}).to_string();
    server.send(Method::PUT, &path, &[], other).await.is(400, "does not change");
}

#[tokio::test]
async fn a_document_is_its_owners_until_it_is_shared() {
    let closed = Closed::new();
    let (one, other) = (closed.token(json!({"name": "one"})).await, closed.token(json!({"name": "other"})).await);
    let new = json!({"kind": "query", "name": "mine", "body": {"sql": "SELECT 1"}}).to_string();
    let document = closed.send(&one, Method::POST, PATH, &new).await.json();
    assert_eq!(document["owner"], "one");
    let path = format!("{PATH}/{}", document["id"]);
    closed.send(&other, Method::GET, &path, "").await.is(404, "not found");
    assert_eq!(closed.send(&other, Method::GET, PATH, "").await.json()["count"], 0);
    assert_eq!(closed.send(&closed.admin, Method::GET, &path, "").await.status, 200);
    let change = json!({"version": 1, "shared": true}).to_string();
    closed.send(&other, Method::PUT, &path, &change).await.is(404, "not found");
    assert_eq!(closed.send(&one, Method::PUT, &path, &change).await.status, 200);
    let seen = closed.send(&other, Method::GET, &path, "").await.json();
    assert_eq!((&seen["editable"], &seen["body"]["sql"]), (&json!(false), &json!("SELECT 1")));
    let change = json!({"version": 2, "name": "theirs"}).to_string();
    closed.send(&other, Method::PUT, &path, &change).await.is(403, "belongs to somebody else");
    closed.send(&other, Method::DELETE, &format!("{path}?version=2"), "").await.is(403, "belongs to somebody else");
}

#[tokio::test]
async fn nobody_takes_the_room_of_all() {
    let closed = Closed::new();
    let tokens = [json!({"name": "nothing", "permissions": []}), json!({"name": "reader", "permissions": ["read"]})];
    let [nothing, reader] = [closed.token(tokens[0].clone()).await, closed.token(tokens[1].clone()).await];
    let document = |n: usize, bytes: usize| {
        json!({"kind": "query", "name": format!("q{n}"), "body": {"sql": "x".repeat(bytes)}}).to_string()
    };
    let save = async |token: &str, body: &str| closed.send(token, Method::POST, PATH, body).await;
    save(&nothing, &document(0, 1)).await.is(403, "Permission denied");
    for n in 0..16 {
        assert_eq!(save(&reader, &document(n, 250_000)).await.status, 201, "{n}");
    }
    save(&reader, &document(16, 250_000)).await.is(400, "delete some of yours first");
    assert_eq!(save(&closed.admin, &document(0, 250_000)).await.status, 201);
}

#[tokio::test]
async fn what_is_no_document_is_refused_and_a_damaged_file_too() {
    let server = Server::new();
    for (body, expected) in [
        ("", "Invalid request body"),
        ("[]", "expected {"),
        (r#"{"kind": "query", "name": "a"}"#, "body is missing"),
        (r#"{"kind": "query", "name": "", "body": {}}"#, "the key name"),
        (r#"{"kind": "query", "name": "a", "body": {}, "version": 1}"#, "a new document has none"),
        (r#"{"kind": "query", "name": "a", "body": {}, "extra": 1}"#, "not known"),
    ] {
        server.post(PATH, body).await.is(400, expected);
    }
    let long = json!({"kind": "query", "name": "a", "body": {"sql": "x".repeat(300_000)}});
    server.post(PATH, long.to_string()).await.is(413, "262144 bytes");
    assert_eq!(server.get(PATH).await.json()["count"], 0);
    server.get(&format!("{PATH}/x")).await.is(400, "");
    let file = server.engine.path().join("console.json");
    for (text, expected) in [("{", "EOF"), (r#"{"version": 2, "next_id": 1, "documents": []}"#, "version 2")] {
        std::fs::write(&file, text).unwrap();
        let config = {
            let mut config = arc_server::Config::default();
            config.no_auth = true;
            config
        };
        let error = arc_server::App::new(server.engine.clone(), &config).unwrap_err().to_string();
        assert!(error.contains("console.json") && error.contains(expected), "{error}");
    }
}
