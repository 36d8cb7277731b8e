//! Rows of a directory that nobody serves, handed to a server or another directory.

use std::{
    cell::RefCell,
    path::Path,
    process::{Command, Output},
};

use arc_core::{AdoptOutcome, CutName, Engine, Error, PushOptions, PushTarget, Upload};
use bytes::Bytes;
use hyper::Method;
use serde_json::{Value, json};

use crate::{
    auth::Closed,
    process::{Connection, Running, start_closed},
};

fn write(dir: &Path, lines: &str) {
    let engine = Engine::open(dir).unwrap();
    assert!(engine.write_lp("t", lines.as_bytes()).unwrap().points > 0);
    engine.close().unwrap();
}

fn push(dir: &Path, to: &str, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arc-server"));
    command.env_remove("ARC_TOKEN").args(["push", "--to", to, "--data-dir"]).arg(dir).args(more);
    command.output().unwrap()
}

fn report(done: &Output) -> Value {
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).unwrap()
}

#[test]
fn a_server_gets_each_row_once() {
    let dir = tempfile::tempdir().unwrap();
    let (edge, data) = (dir.path().join("edge"), dir.path().join("data"));
    let server = Running::start(&data);
    // As random bits, of which nothing can be left out.
    let bits = |n: u64| {
        let mixed = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 1
    };
    let lines: String = (0..200_000_u64).map(|n| format!("m,h=a{} v={}i {n}000000\n", n % 7, bits(n))).collect();
    write(&edge, &lines);
    let rate = ["--json", "--bytes-per-second", "64MiB"];
    let done = report(&push(&edge, &server.url(), &rate));
    assert_eq!((&done["cuts"], &done["rows"]), (&json!(1), &json!(200_000)), "{done}");
    assert!(done["sent_bytes"].as_u64() > Some(1 << 20), "more than one piece: {done}");
    assert_eq!(report(&push(&edge, &server.url(), &rate))["cuts"], 0);
    let posted = Connection::open(server.address).unwrap().post("/write?db=t", "m,h=a0 v=-1i 0\nm,h=z v=1i 1").unwrap();
    assert_eq!(posted.0, 204);
    write(&edge, "m,h=a0 v=-2i 0\nm,h=b,rack=r v=2i 2");
    assert_eq!(report(&push(&edge, &server.url(), &rate))["rows"], 2);
    let asked = "SELECT count(*), count(rack), min(v) FROM m";
    assert_eq!(server.query(asked), json!([[200_002, 1, -2]]));
    server.kill();
    let server = Running::start(&data);
    assert_eq!(server.query(asked), json!([[200_002, 1, -2]]));
    assert_eq!(report(&push(&edge, &server.url(), &rate))["cuts"], 0);
    server.kill();
    // And another directory that nobody serves.
    let other = dir.path().join("other");
    assert_eq!(report(&push(&edge, other.to_str().unwrap(), &rate))["rows"], 200_002);
    assert!(arc_core::verify(&other).unwrap().is_clean());
    assert!(arc_core::verify(&data).unwrap().is_clean());
    // The first again.
    let done = push(&edge, data.to_str().unwrap(), &[]);
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(String::from_utf8_lossy(&done.stdout).contains("has everything"), "{done:?}");
}

#[test]
fn what_cannot_be_done_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let (edge, data) = (dir.path().join("edge"), dir.path().join("data"));
    write(&edge, "m v=1i 1");
    let (server, _) = start_closed(&data);
    let url = server.url();
    for (to, more, code, said) in [
        ("s3://bucket/x", &[][..], 2, "HTTP"),
        ("http://127.0.0.1:9", &[], 1, "127.0.0.1:9"),
        (url.as_str(), &[], 1, "authentication"),
        (edge.to_str().unwrap(), &[], 2, "in use"),
        (url.as_str(), &["--bytes-per-second", "fast"], 2, "64KiB"),
    ] {
        let done = push(&edge, to, more);
        let text = String::from_utf8_lossy(&done.stderr).to_lowercase();
        assert!(done.status.code() == Some(code) && text.contains(&said.to_lowercase()), "{to}: {done:?}");
    }
    let token = data.join("admin.token");
    assert_eq!(report(&push(&edge, &url, &["--json", "--token-file", token.to_str().unwrap()]))["rows"], 1);
    // A copy of the directory from before, with something of its own.
    let copy = dir.path().join("copy");
    let engine = Engine::open(&edge).unwrap();
    engine.backup(&copy).unwrap();
    engine.close().unwrap();
    write(&edge, "m v=2i 2");
    push(&edge, &url, &["--token-file", token.to_str().unwrap()]);
    write(&copy, "m v=3i 3");
    let done = push(&copy, &url, &["--token-file", token.to_str().unwrap()]);
    assert_eq!(done.status.code(), Some(2), "{done:?}");
    assert!(String::from_utf8_lossy(&done.stderr).contains("restored"), "{done:?}");
    server.kill();
}

/// Hands files to an engine, and keeps what it is to adopt.
struct Keeping<'a>(&'a Engine, RefCell<Bytes>);

impl PushTarget for Keeping<'_> {
    fn adopted(&self, origin: &str) -> Result<Option<CutName>, Error> {
        self.0.adopted_cut(origin)
    }

    fn received(&self, upload: &Upload) -> Result<u64, Error> {
        self.0.received(upload)
    }

    fn send(&self, upload: &Upload, offset: u64, bytes: &Bytes) -> Result<u64, Error> {
        self.0.receive(upload, offset, bytes)
    }

    fn adopt(&self, adoption: &Bytes) -> Result<AdoptOutcome, Error> {
        self.1.replace(adoption.clone());
        Err(Error::Closed { reason: "kept".into() })
    }
}

#[tokio::test]
async fn rows_come_in_by_the_right_to_write_their_tables() {
    let dir = tempfile::tempdir().unwrap();
    let edge = Engine::open(dir.path().join("edge")).unwrap();
    assert_eq!(edge.write_lp("t", b"m v=1i 1\nn v=1i 1").unwrap().points, 2);
    let closed = Closed::new();
    let target = Keeping(&closed.server.engine, RefCell::default());
    edge.push(&target, &PushOptions::default(), &mut |_| {}).unwrap_err();
    let adoption = target.1.take();
    let send = async |token: &str, method: Method, path: &str, body: Bytes| {
        let bearer = format!("Bearer {token}");
        closed.server.send(method, path, &[("authorization", &bearer)], body).await
    };
    let id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    let file = format!("/api/v1/push/file?origin={id}&cut={id}&name=a&bytes=3");
    let reads = closed.token(json!({ "name": "r", "permissions": ["read"] })).await;
    for (method, path) in [
        (Method::GET, format!("/api/v1/push?origin={id}")),
        (Method::GET, file.clone()),
        (Method::PUT, format!("{file}&offset=0")),
        (Method::POST, "/api/v1/push/adopt".to_owned()),
    ] {
        assert_eq!(send(&reads, method, &path, adoption.clone()).await.status, 403, "{path}");
    }
    let one = closed.token(json!({ "name": "w", "permissions": ["write"], "databases": ["t"], "tables": ["m"] })).await;
    let reply = send(&one, Method::POST, "/api/v1/push/adopt", adoption.clone()).await;
    reply.is(403, "there is no database \"t\"");
    assert!(closed.server.engine.databases().iter().all(|database| &*database.name != "t"));
    closed.server.engine.create_database("t").unwrap();
    send(&one, Method::POST, "/api/v1/push/adopt", adoption.clone()).await.is(403, "\"n\"");
    // What is wrong is said, and is no fault of the server's.
    let writes = closed.token(json!({ "name": "a", "permissions": ["write"] })).await;
    for (method, path, body, status, said) in [
        (Method::GET, "/api/v1/push", "", 400, "origin"),
        (Method::GET, "/api/v1/push?origin=../x", "", 400, "ULID"),
        (Method::GET, "/api/v1/push/file?origin=1", "", 400, "bytes"),
        (Method::PUT, &format!("{file}&offset=3"), "xyz", 400, "3 bytes"),
        (Method::PUT, &file.replace("name=a", "name=..%2Fa"), "xyz", 400, "offset"),
        (Method::PUT, &format!("{}&offset=0", file.replace("name=a", "name=..%2Fa")), "x", 400, "name"),
        (Method::POST, "/api/v1/push/adopt", "no MessagePack", 400, "pushed"),
    ] {
        send(&writes, method, path, Bytes::from(body.to_owned())).await.is(status, said);
    }
    let reply = send(&writes, Method::PUT, &format!("{file}&offset=0"), Bytes::from("ab")).await;
    assert_eq!(reply.json(), json!({ "received": 2 }));
    for files in [2, 0] {
        let reply = send(&writes, Method::POST, "/api/v1/push/adopt", adoption.clone()).await;
        assert_eq!(reply.json()["adopted"]["files"], files, "{reply:?}");
    }
}

#[test]
fn a_server_that_only_reads_takes_no_rows() {
    let dir = tempfile::tempdir().unwrap();
    let (edge, data) = (dir.path().join("edge"), dir.path().join("data"));
    write(&edge, "m v=1i 1");
    let writer = Running::start(&data);
    let reader = Running::start_with(&data, &["--reader"]);
    let done = push(&edge, &reader.url(), &[]);
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    assert!(String::from_utf8_lossy(&done.stderr).contains("only reads"), "{done:?}");
    assert_eq!(report(&push(&edge, &writer.url(), &["--json"]))["rows"], 1);
    assert_eq!(reader.query("SELECT v FROM m"), json!([[1]]));
    reader.kill();
    writer.kill();
}
