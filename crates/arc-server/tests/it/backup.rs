//! Backups over HTTP and by command, verification and what both end with.

use std::{
    path::Path,
    process::{Command, Output},
};

use arc_core::Engine;
use serde_json::{Value, json};

use crate::support::Server;

fn with_backups(dir: &Path) -> Server {
    Server::with(|config| config.backup_dir = Some(dir.to_owned()))
}

/// Waits until no backup is under way and returns what became of the last one.
async fn ended(server: &Server) -> Value {
    loop {
        let status = server.get("/api/v1/backup/status").await.json();
        if status["status"] != "running" {
            return status;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_backup_is_started_and_ends_whole() {
    let dir = tempfile::tempdir().unwrap();
    let server = with_backups(dir.path());
    assert_eq!(server.get("/api/v1/backup/status").await.json(), json!({ "status": "idle" }));
    assert_eq!(server.get("/api/v1/backup").await.json(), json!({ "count": 0, "backups": [] }));
    server.lines("m v=1 1").await;
    server.engine.flush().unwrap();
    server.lines("m v=1 2").await;
    let query = json!({
        "name": "q", "database": "t", "source_measurement": "m", "destination_measurement": "n", "interval": "1h",
        "query": "SELECT time, v FROM m WHERE time >= {start_time} AND time < {end_time}",
    });
    assert_eq!(server.post("/api/v1/continuous_queries", query.to_string()).await.status, 201);
    let notebook = json!({"kind": "notebook", "name": "of pumps", "body": {"cells": []}});
    assert_eq!(server.post("/api/v1/console/documents", notebook.to_string()).await.status, 201);
    let reply = server.post("/api/v1/backup", "").await;
    assert_eq!(reply.status, 202, "{reply:?}");
    let id = reply.json()["backup_id"].as_str().unwrap().to_owned();
    assert!(id.starts_with("backup-20") && id.len() == "backup-20260131-235959-0123abcd".len(), "{id}");
    let status = ended(&server).await;
    assert_eq!(
        (&status["status"], &status["backup_id"], &status["error"]),
        (&json!("completed"), &json!(id), &Value::Null)
    );
    assert_eq!((&status["total_files"], &status["processed_files"]), (&json!(1), &json!(1)));
    assert!(status["log_bytes"].as_u64() > Some(0), "{status}");
    for name in ["continuous_queries.json", "console.json"] {
        let kept = |folder: &Path| std::fs::read(folder.join(name)).unwrap();
        assert_eq!(kept(&dir.path().join(&id)), kept(server.engine.path()));
    }
    let report = arc_core::verify(dir.path().join(&id)).unwrap();
    assert_eq!((report.findings.len(), report.totals.rows, report.totals.points), (0, 1, 1));
    let listed = server.get("/api/v1/backup").await.json();
    assert_eq!((&listed["count"], &listed["backups"][0]["id"]), (&json!(1), &json!(id)));
    assert_eq!(server.get(&format!("/api/v1/backup/{id}")).await.json()["status"], "completed");
    server.get("/api/v1/backup/nothing").await.is(404, "there is no backup");
    // A body that asks for something else starts none under another name.
    for body in ["[]", "\"nightly\"", "7", "null"] {
        server.post("/api/v1/backup", body).await.is(400, "expected {\"id\"");
    }
    server.get("/api/v1/backup/%FF").await.is(400, "UTF-8");
    assert_eq!(server.get("/api/v1/backup").await.json()["count"], 1);
}

#[tokio::test]
async fn a_named_backup_is_brought_up_to_date() {
    let dir = tempfile::tempdir().unwrap();
    let server = with_backups(dir.path());
    for (round, kept) in [(1, 0), (2, 1)] {
        server.lines(format!("m v=1 {round}")).await;
        server.engine.flush().unwrap();
        assert_eq!(server.post("/api/v1/backup", r#"{"id": "nightly"}"#).await.status, 202);
        let status = ended(&server).await;
        assert_eq!((&status["kept_files"], &status["total_files"]), (&json!(kept), &json!(round)), "{status}");
    }
}

#[tokio::test]
async fn a_client_can_write_nowhere_else() {
    let dir = tempfile::tempdir().unwrap();
    let server = with_backups(&dir.path().join("copies"));
    for id in ["", ".", "..", "../x", "a/b", "/etc/x", "a\\b", "a b", "ä", "a.b", &"x".repeat(65)] {
        let body = json!({ "id": id }).to_string();
        server.post("/api/v1/backup", body).await.is(400, "is no name of a backup");
    }
    server.post("/api/v1/backup", r#"{"id": 7}"#).await.is(400, "not a string");
    server.post("/api/v1/backup", "{").await.is(400, "Invalid request body");
    server.get("/api/v1/backup/a%2Fb").await.is(400, "is no name of a backup");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let server = Server::new();
    server.post("/api/v1/backup", "").await.is(404, "Cannot POST /api/v1/backup");
    server.get("/api/v1/backup").await.is(404, "Cannot GET /api/v1/backup");
}

#[tokio::test]
async fn a_backup_that_fails_says_why() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("taken")).unwrap();
    std::fs::write(dir.path().join("taken/thesis.doc"), "x").unwrap();
    let server = with_backups(dir.path());
    assert_eq!(server.post("/api/v1/backup", r#"{"id": "taken"}"#).await.status, 202);
    let status = ended(&server).await;
    assert_eq!(status["status"], "failed");
    assert!(status["error"].as_str().unwrap().contains("it is no backup and not empty"), "{status}");
    assert_eq!(std::fs::read_dir(dir.path().join("taken")).unwrap().count(), 1);
    assert_eq!(server.get("/api/v1/backup/taken").await.json()["status"], "incomplete");
}

/// Runs the binary with these arguments.
fn arc(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_arc-server")).args(arguments).output().unwrap()
}

/// Runs a command on a data directory; returns its exit status and all it printed.
fn on(data: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = arc(&[arguments, &["--data-dir", data.to_str().unwrap()]].concat());
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    (output.status.code(), text)
}

/// A data directory with one data file; returns the path of that.
fn store(data: &Path) -> std::path::PathBuf {
    let engine = Engine::open(data).unwrap();
    assert_eq!(engine.write_lp("d", b"m v=1 1\nm v=2 2").unwrap().points, 2);
    engine.close().unwrap();
    data.join(&Engine::open(data).unwrap().data_files("d", "m").unwrap()[0].path)
}

#[test]
fn verify_says_what_is_damaged_and_ends_with_1() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    assert_eq!(on(&data, &["verify"]).0, Some(2));
    let file = store(&data);
    let (code, text) = on(&data, &["verify"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("2 rows") && text.contains("clean (0 errors, 0 warnings)"), "{text}");
    let (code, text) = on(&data, &["verify", "--json"]);
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &report["clean"], &report["totals"]["rows"]), (Some(0), &json!(true), &json!(2)));
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let (code, text) = on(&data, &["verify"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains(file.to_str().unwrap()) && text.contains("its crc32c is"), "{text}");
    assert!(text.contains("arc-server repair --data-dir"), "{text}");
    let (code, text) = on(&data, &["verify", "--json"]);
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &report["findings"][0]["severity"]), (Some(1), &json!("error")));
    let engine = Engine::open(&data).unwrap();
    let (code, text) = on(&data, &["verify"]);
    assert!(code == Some(2) && text.contains("in use by another process"), "{text}");
    drop(engine);
}

#[test]
fn repair_says_what_it_gives_up_and_does_it_only_when_told() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let file = store(&data);
    let (code, text) = on(&data, &["repair"]);
    assert!(code == Some(0) && text.contains("nothing to repair"), "{text}");
    std::fs::write(&file, "x").unwrap();
    let (code, text) = on(&data, &["repair"]);
    assert!(code == Some(1) && text.contains("GIVES UP its 2 rows") && text.contains("Nothing was changed"), "{text}");
    assert_eq!(on(&data, &["verify"]).0, Some(1));
    let (code, text) = on(&data, &["repair", "--json"]);
    let plan: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &plan["applied"], &plan["steps"].as_array().unwrap().len()), (Some(1), &json!(false), &1));
    let (code, text) = on(&data, &["repair", "--apply"]);
    assert!(code == Some(0) && text.contains("clean (0 errors"), "{text}");
    assert_eq!(on(&data, &["verify"]).0, Some(0));
    assert_eq!(std::fs::read(data.join("lost").join(file.strip_prefix(&data).unwrap())).unwrap(), b"x");
    assert_eq!(on(&dir.path().join("nothing"), &["repair"]).0, Some(2));
}

#[test]
fn a_stopped_directory_is_backed_up_and_restored() {
    let dir = tempfile::tempdir().unwrap();
    let (data, copy, new) = (dir.path().join("data"), dir.path().join("copy"), dir.path().join("new"));
    let (code, text) = on(&data, &["backup", "--to", copy.to_str().unwrap()]);
    assert!(code == Some(2) && text.contains("is not a data directory") && !data.exists(), "{text}");
    let file = store(&data);
    let policies = "retention.json";
    std::fs::write(data.join(policies), "kept as it is").unwrap();
    let (code, text) = on(&data, &["backup", "--to", copy.to_str().unwrap()]);
    assert!(code == Some(0) && text.contains("1 data files with 2 rows"), "{text}");
    let (code, text) = on(&data, &["backup", "--json", "--to", copy.to_str().unwrap()]);
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &report["kept_files"]), (Some(0), &json!(1)));
    let (code, text) = on(&new, &["restore", "--from", copy.to_str().unwrap()]);
    assert!(code == Some(0) && text.contains("2 rows"), "{text}");
    assert_eq!(on(&new, &["verify"]).0, Some(0));
    assert_eq!(std::fs::read_to_string(new.join(policies)).unwrap(), "kept as it is");
    std::fs::remove_file(data.join(policies)).unwrap();
    assert_eq!(on(&data, &["backup", "--to", copy.to_str().unwrap()]).0, Some(0));
    assert!(!copy.join(policies).exists());
    let (code, text) = on(&new, &["restore", "--from", copy.to_str().unwrap()]);
    assert!(code == Some(2) && text.contains("it is not empty"), "{text}");
    let damaged = copy.join(file.strip_prefix(&data).unwrap());
    std::fs::write(&damaged, "x").unwrap();
    let (code, text) = on(&dir.path().join("other"), &["restore", "--from", copy.to_str().unwrap()]);
    assert!(code == Some(1) && text.contains(damaged.to_str().unwrap()), "{text}");
    assert_eq!(arc(&["backup"]).status.code(), Some(2), "--to is missing");
}

#[test]
fn a_stopped_directory_is_unpacked_with_what_is_in_its_log() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    assert!(on(&data, &["unpack"]).0 == Some(2) && !data.exists());
    let engine = Engine::builder(&data).compaction(false).open().unwrap();
    let lines = |n: i64| (0..64).map(|table| format!("t{table} v={n} {n}\n")).collect::<String>();
    assert_eq!(engine.write_lp("d", lines(1).as_bytes()).unwrap().points, 64);
    engine.flush().unwrap();
    assert!(engine.data_files("d", "t7").unwrap()[0].packed().is_some());
    assert_eq!(engine.write_lp("d", lines(2).as_bytes()).unwrap().points, 64);
    drop(engine);
    // Older states have what they had in packs.
    let (code, text) = on(&data, &["unpack", "--history", "0"]);
    assert!(code == Some(0) && text.contains("64 data files have files of their own now"), "{text}");
    assert!(!data.join("data/_packs").exists());
    let (code, text) = on(&data, &["unpack", "--json"]);
    assert_eq!((code, serde_json::from_str::<Value>(&text).unwrap()), (Some(0), json!({ "moved_files": 0 })));
    assert_eq!(std::fs::read_dir(data.join("data/d/t7")).unwrap().count(), 1);
    let (code, text) = on(&data, &["verify"]);
    assert!(code == Some(0) && text.contains("128 rows"), "{text}");
}

#[test]
fn a_server_that_finds_damage_points_at_what_helps() {
    let dir = tempfile::tempdir().unwrap();
    store(dir.path());
    std::fs::write(dir.path().join("ARC"), "").unwrap();
    let (code, text) = on(dir.path(), &["--http", "127.0.0.1:0"]);
    assert_eq!(code, Some(1));
    for expected in ["ARC is damaged", "arc-server verify --data-dir", "arc-server repair --data-dir"] {
        assert!(text.contains(expected), "{text}");
    }
}
