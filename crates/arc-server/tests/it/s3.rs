//! The real binary with its data files on an S3 server, which `scripts/s3` starts: killed under load, and opened again.

use std::{
    path::Path,
    process::{Command, Output},
    sync::mpsc,
    thread,
};

use serde_json::{Value, json};

use crate::process::{Connection, Running, load, on_s3};

/// Settings of a server whose files are in the bucket `arc`; it flushes and merges all the time.
fn arguments(prefix: &str) -> Vec<String> {
    let endpoint = std::env::var("ARC_S3_ENDPOINT").expect("ARC_S3_ENDPOINT is the URL of an S3 server");
    let url = format!("s3://arc/{prefix}");
    let settings = [
        ("object-store-url", url.as_str()),
        ("object-store-endpoint", &endpoint),
        ("flush-after", "50ms"),
        // The days of the points are long over.
        ("compaction-quiet", "50ms"),
        ("compaction-grace", "0s"),
    ];
    settings.iter().flat_map(|(name, value)| [format!("--{name}"), (*value).to_owned()]).collect()
}

fn start(dir: &Path, prefix: &str) -> Running {
    let arguments = arguments(prefix);
    Running::start_with(dir, &arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

fn run(command: &str, dir: &Path, arguments: &[String]) -> Output {
    let mut arc = Command::new(env!("CARGO_BIN_EXE_arc-server"));
    on_s3(&mut arc);
    arc.arg(command).arg("--data-dir").arg(dir).args(arguments).output().unwrap()
}

/// Verifies a directory that nobody has open.
fn verify(dir: &Path, prefix: &str) -> Value {
    let mut arguments = arguments(prefix);
    arguments.push("--json".to_owned());
    let output = run("verify", dir, &arguments);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&text).unwrap()
}

fn numbers(answer: &Value) -> Vec<u64> {
    answer[0].as_array().unwrap().iter().filter_map(Value::as_u64).collect()
}

#[test]
#[ignore = "needs an S3 server; run scripts/s3"]
fn points_on_s3_survive_kill_9_once() {
    let dir = tempfile::tempdir().unwrap();
    for round in 1..=6_usize {
        let server = start(dir.path(), "server/kills");
        let (sender, acknowledged) = mpsc::channel();
        let address = server.address;
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let sender = sender.clone();
                thread::spawn(move || load(address, round * 100 + writer, &sender))
            })
            .collect();
        drop(sender);
        let mut writes = [0_u64; 2];
        // At another moment of flushes and merges each time.
        for writer in acknowledged.iter().take(100 + 150 * round) {
            writes[writer - round * 100] += 1;
        }
        server.kill();
        for writer in acknowledged.iter() {
            writes[writer - round * 100] += 1;
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        let report = verify(dir.path(), "server/kills");
        assert_eq!(report["clean"], json!(true), "{report}");
        let server = start(dir.path(), "server/kills");
        for (writer, writes) in writes.into_iter().enumerate() {
            let id = round * 100 + writer;
            let sql = format!("SELECT count(*), count(DISTINCT v), min(v), max(v) FROM m WHERE w = '{id}'");
            let found = numbers(&server.query(&sql));
            // The write that was under way may be there, as a whole, or not; nothing else may.
            assert!([writes * 10, writes * 10 + 10].contains(&found[0]), "{writes} writes: {found:?}");
            assert_eq!(found[1..], [found[0], 0, found[0] - 1], "each value is there once");
        }
        server.kill();
    }
    assert!(!dir.path().join("data").exists(), "no data file is in the directory");
    let report = verify(dir.path(), "server/kills");
    assert!(report["totals"]["files"].as_u64().is_some_and(|files| files > 0), "{report}");
}

#[test]
#[ignore = "needs an S3 server; run scripts/s3"]
fn what_was_written_to_s3_is_merged_found_and_backed_up() {
    let (dir, backup) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = start(dir.path(), "server/life");
    let mut connection = Connection::open(server.address).unwrap();
    // Two tables, with names that are encoded twice on their way: to a folder, and to a URL.
    for n in 0..40 {
        let lines = format!("m,h=a v={n}i {n}\nodd\\ näme%,h=b v={n}i {n}\n");
        assert_eq!(connection.post("/write?db=t", &lines).unwrap().0, 204);
        if n % 10 == 9 {
            let (status, _) = connection.post("/api/v1/compaction/trigger", "").unwrap();
            // 409 where the last one is not done yet.
            assert!((200..300).contains(&status) || status == 409, "{status}");
        }
    }
    for table in ["m", "\"odd näme%\""] {
        assert_eq!(server.query(&format!("SELECT count(*), sum(v) FROM {table}")), json!([[40, 780]]));
    }
    server.kill();
    let output = run("backup", dir.path(), &[arguments("server/life"), vec!["--to".into(), path(&backup)]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    // What was in the log only is in that of the backup.
    let engine = arc_core::Engine::open(backup.path()).unwrap();
    engine.flush().unwrap();
    let rows: u64 = engine.tables("t").unwrap().iter().map(|table| table.file_rows).sum();
    assert_eq!(rows, 80);
    let report = verify(dir.path(), "server/life");
    assert_eq!(report["clean"], json!(true), "{report}");
    // The directory cannot be opened without its store, nor the store with another directory.
    let output = run("verify", dir.path(), &[]);
    assert_eq!(output.status.code(), Some(2));
    let other = tempfile::tempdir().unwrap();
    let mut arc = Command::new(env!("CARGO_BIN_EXE_arc-server"));
    on_s3(&mut arc);
    let output =
        arc.args(["--http", "127.0.0.1:0", "--data-dir"]).arg(other.path()).args(arguments("server/life")).output();
    let errors = String::from_utf8(output.unwrap().stderr).unwrap();
    assert!(errors.contains("the object store is that of another data directory"), "{errors}");
}

/// A server on another machine, with a folder of its own, answers from the bucket; it asks for a token of its own.
#[test]
#[ignore = "needs an S3 server; run scripts/s3"]
fn another_machine_reads_the_bucket() {
    let (dir, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let writer = start(dir.path(), "server/read");
    let mut connection = Connection::open(writer.address).unwrap();
    assert_eq!(connection.post("/write?db=t", "m,h=a v=1i 1\nm,h=b v=2i 2\n").unwrap().0, 204);
    let reads = [arguments("server/read"), vec!["--reader".to_owned()]].concat();
    let folder = own.path().join("reader");
    // The bucket has nothing before the first flush, and a manifest once the writer was opened.
    let reader = Running::start_with(&folder, &reads.iter().map(String::as_str).collect::<Vec<_>>());
    let asked = || reader.query("SELECT count(*), sum(v) FROM m");
    let tables = || reader.query("SELECT count(*) FROM information_schema.tables WHERE table_name = 'm'");
    while tables() != json!([[1]]) {
        thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(asked(), json!([[2, 3]]));
    let mut connection = Connection::open(reader.address).unwrap();
    let (status, body) = connection.post("/write?db=t", "m,h=c v=3i 3\n").unwrap();
    assert_eq!(status, 405, "{}", String::from_utf8_lossy(&body));
    reader.kill();
    writer.kill();
    // Without --no-auth it makes a token of its own in its folder.
    let mut arc = Command::new(env!("CARGO_BIN_EXE_arc-server"));
    on_s3(&mut arc);
    let mut closed = arc.args(["--http", "127.0.0.1:0", "--data-dir"]).arg(&folder).args(&reads).spawn().unwrap();
    while !folder.join("admin.token").exists() {
        assert!(closed.try_wait().unwrap().is_none(), "it has ended");
        thread::sleep(std::time::Duration::from_millis(20));
    }
    closed.kill().unwrap();
    closed.wait().unwrap();
}

fn path(dir: &tempfile::TempDir) -> String {
    dir.path().display().to_string()
}

#[test]
#[ignore = "needs an S3 server; run scripts/s3"]
fn a_server_of_s3_is_probed_and_has_nothing_left() {
    let endpoint = std::env::var("ARC_S3_ENDPOINT").expect("ARC_S3_ENDPOINT is the URL of an S3 server");
    let probe = |url: &str, json: &[&str]| {
        let mut arc = Command::new(env!("CARGO_BIN_EXE_arc-server"));
        on_s3(&mut arc);
        arc.args(["store", "probe", "--object-store-url", url, "--object-store-endpoint", &endpoint]).args(json);
        arc.output().unwrap()
    };
    let output = probe("s3://arc/probed-by-command", &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("kept: of eight clients that put one name at once, one succeeds"), "{text}");
    let output = probe("s3://arc/probed-by-command", &["--json"]);
    let kept: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(kept["kept"].as_array().unwrap().len(), 6, "{kept}");
    let output = probe("s3://there-is-no-such-bucket/a", &[]);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
}
