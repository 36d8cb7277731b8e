//! Branches by command: of a directory that a server has and writes to.

use std::{
    path::Path,
    process::{Command, Output},
};

use serde_json::{Value, json};

use crate::process::{Connection, Running};

fn post(server: &Running, path: &str, body: &str) -> Value {
    let (status, answer) = Connection::open(server.address).unwrap().post(path, body).unwrap();
    assert!((200..300).contains(&status), "{path} {body}: {status} {}", String::from_utf8_lossy(&answer));
    serde_json::from_slice(&answer).unwrap_or_default()
}

fn change(server: &Running, sql: &str) {
    post(server, "/api/v1/query?db=t", &json!({ "sql": sql }).to_string());
}

fn branch(dir: &Path, to: &str, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arc-server"));
    command.args(["branch", "--to", to, "--data-dir"]).arg(dir).args(more);
    command.output().unwrap()
}

fn report(done: &Output) -> Value {
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).unwrap()
}

#[test]
fn a_branch_of_a_directory_in_use_is_a_directory_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let (data, to) = (dir.path().join("data"), dir.path().join("branch"));
    let server = Running::start_with(&data, &["--delete-enabled"]);
    post(&server, "/write?db=t", "m,h=a v=1 1700000000000000000");
    post(&server, "/api/v1/write/line-protocol/flush", "");
    post(&server, "/write?db=t", "m,h=b v=2 1700000001000000000");
    let made = report(&branch(&data, to.to_str().unwrap(), &["--json"]));
    assert_eq!((&made["files"], &made["linked_files"], &made["rows"]), (&json!(1), &json!(1), &json!(1)), "{made}");
    assert!(made["frames"].as_u64() > Some(0), "{made}");
    let other = Running::start_with(&to, &[]);
    post(&other, "/write?db=t", "m,h=c v=3 1700000002000000000");
    change(&server, "DROP TABLE m");
    post(&server, "/write?db=t", "m,h=d v=4 1700000003000000000");
    assert_eq!(other.query("SELECT h FROM m ORDER BY h"), json!([["a"], ["b"], ["c"]]));
    assert_eq!(server.query("SELECT h FROM m ORDER BY h"), json!([["d"]]));
    other.kill();
    server.kill();
    std::fs::remove_dir_all(&data).unwrap();
    assert!(arc_core::verify(&to).unwrap().is_clean());
}

#[test]
fn a_branch_begins_as_a_snapshot_or_a_time_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let server = Running::start_with(&data, &["--delete-enabled"]);
    post(&server, "/write?db=t", "m,h=a v=1 1700000000000000000");
    change(&server, "CREATE SNAPSHOT first");
    post(&server, "/write?db=t", "m,h=b v=2 1700000001000000000");
    let now = server.query("SELECT CAST(now() AS VARCHAR)")[0][0].as_str().unwrap().to_owned();
    let of_a = json!({ "database": "t", "measurement": "m", "where": "h = 'a'" });
    post(&server, "/api/v1/delete", &of_a.to_string());
    for (name, of, expected) in
        [("snapshot", ["--snapshot", "first"], json!([["a"]])), ("time", ["--at", now.as_str()], json!([["a"], ["b"]]))]
    {
        let to = dir.path().join(name);
        let text = branch(&data, to.to_str().unwrap(), &of);
        let said = String::from_utf8(text.stdout).unwrap();
        assert!(text.status.success() && said.contains("begins as commit"), "{said}");
        let other = Running::start_with(&to, &[]);
        assert_eq!(other.query("SELECT h FROM m ORDER BY h"), expected, "{name}");
        assert_eq!(other.query("SHOW SNAPSHOTS"), json!([]), "{name}");
        other.kill();
    }
}

#[test]
fn what_cannot_be_a_branch_is_refused_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let to = dir.path().join("to");
    let to = to.to_str().unwrap();
    let refused = |to: &str, more: &[&str], reason: &str| {
        let done = branch(&data, to, more);
        let said = String::from_utf8(done.stderr).unwrap();
        assert!(done.status.code() == Some(2) && said.contains(reason), "{to} {more:?}: {said}");
    };
    refused(to, &[], "not a data directory");
    let server = Running::start_with(&data, &[]);
    post(&server, "/write?db=t", "m,h=a v=1 1700000000000000000");
    refused("gs://bucket/branch", &[], "is not like s3://bucket/prefix");
    refused("s3://", &[], "is not like s3://bucket/prefix");
    refused(data.to_str().unwrap(), &[], "one inside the other");
    refused(data.join("branch").to_str().unwrap(), &[], "one inside the other");
    refused(to, &["--snapshot", "none"], "snapshot \"none\" does not exist");
    refused(to, &["--at", "2020-01-01T00:00:00Z"], "nothing is known any more of 2020-01-01T00:00:00Z");
    refused(to, &["--at", "2200-01-01T00:00:00Z"], "is in the future");
    refused(to, &["--at", "noon"], "expected a time such as");
    refused(to, &["--at", "2020-01-01T00:00:00Z", "--snapshot", "none"], "cannot be used with");
    assert!(!Path::new(to).exists(), "nothing was made");
    report(&branch(&data, to, &["--json"]));
    refused(to, &[], "it is a data directory already");
}
