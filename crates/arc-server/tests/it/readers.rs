//! Other processes that read a directory while a server writes it.

use std::{
    path::Path,
    process::Command,
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::process::{Connection, Running, load};

const WRITERS: usize = 2;

/// Small files and segments, which come and go while the test runs.
const BUSY: [&str; 12] = [
    "--flush-after",
    "150ms",
    "--compaction-grace",
    "0s",
    "--wal-segment-bytes",
    "64KiB",
    "--pack-bytes",
    "0",
    "--delete-enabled",
    "true",
    "--compaction-quiet",
    "0s",
];

fn writer(dir: &Path) -> Running {
    let switches: Vec<&str> = BUSY.iter().copied().filter(|word| *word != "true").collect();
    Running::start_with(dir, &switches)
}

fn reader(dir: &Path) -> Running {
    Running::start_with(dir, &["--reader"])
}

fn post(server: &Running, path: &str, body: &str) -> (u16, String) {
    let (status, body) = Connection::open(server.address).unwrap().post(path, body).unwrap();
    (status, String::from_utf8(body).unwrap())
}

fn change(server: &Running, sql: &str) {
    let (status, body) = post(server, "/api/v1/query?db=t", &json!({ "sql": sql }).to_string());
    assert_eq!(status, 200, "{sql}: {body}");
}

/// Rows, and the last value, of each writer: those of the first that is there on.
fn seen(server: &Running) -> Option<Vec<[u64; 3]>> {
    let sql = json!({ "sql": "SELECT CAST(w AS BIGINT), count(*), max(v) FROM m GROUP BY 1 ORDER BY 1" }).to_string();
    let (status, body) = Connection::open(server.address).ok()?.post("/api/v1/query?db=t", &sql).ok()?;
    let text = String::from_utf8(body).unwrap();
    if status == 404 {
        return Some(Vec::new());
    }
    assert_eq!(status, 200, "{text}");
    let rows = serde_json::from_str::<Value>(&text).unwrap()["data"].clone();
    let row = |row: &Value| [0, 1, 2].map(|at| row[at].as_u64().unwrap());
    Some(rows.as_array().unwrap().iter().map(row).collect())
}

/// Asks a reader until told to stop: each answer is a prefix of what was sent, has all that was acknowledged before it was
/// asked, and no less than the one before.
fn watch(server: &Running, acknowledged: &[AtomicU64; 8], (answers, is_over): (&AtomicU64, &AtomicBool)) {
    let mut last = [0_u64; 8];
    while !is_over.load(Ordering::SeqCst) {
        let before: Vec<u64> = acknowledged.iter().map(|count| count.load(Ordering::SeqCst)).collect();
        let Some(rows) = seen(server) else { continue };
        let mut now = [0; 8];
        for [writer, count, newest] in rows {
            assert_eq!(count, newest + 1, "writer {writer}: nothing is missing, nothing is there twice");
            assert_eq!(count % 10, 0, "writer {writer}: no half of a write");
            now[usize::try_from(writer).unwrap()] = count;
        }
        for writer in 0..8 {
            assert!(
                now[writer] >= 10 * before[writer],
                "writer {writer}: {} of {} acknowledged",
                now[writer],
                before[writer]
            );
            assert!(now[writer] >= last[writer], "writer {writer}: from {} back to {}", last[writer], now[writer]);
        }
        last = now;
        answers.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn readers_see_all_that_is_acknowledged_and_never_go_back_whoever_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let acknowledged: [AtomicU64; 8] = Default::default();
    let (answers, is_over): ([AtomicU64; 2], _) = (Default::default(), AtomicBool::new(false));
    let first = writer(dir.path());
    let readers = [reader(dir.path()), reader(dir.path())];
    reader(dir.path()).kill();
    thread::scope(|scope| {
        let watch = |(server, answers)| watch(server, &acknowledged, (answers, &is_over));
        let watchers: Vec<_> = readers.iter().zip(&answers).map(|pair| scope.spawn(move || watch(pair))).collect();
        let mut server = first;
        for round in 0..3 {
            let (sender, receiver) = mpsc::channel();
            let address = server.address;
            for writer in 0..WRITERS {
                let sender = sender.clone();
                scope.spawn(move || load(address, round * WRITERS + writer, &sender));
            }
            drop(sender);
            let count = |writer: usize| {
                acknowledged[writer].fetch_add(1, Ordering::SeqCst);
            };
            receiver.iter().take(600).for_each(count);
            server.kill();
            receiver.iter().for_each(count);
            server = writer(dir.path());
        }
        let has_enough = |answers: &AtomicU64| answers.load(Ordering::SeqCst) >= 10;
        while !answers.iter().all(has_enough) && !watchers.iter().any(thread::ScopedJoinHandle::is_finished) {
            thread::sleep(Duration::from_millis(10));
        }
        is_over.store(true, Ordering::SeqCst);
        watchers.into_iter().for_each(|watcher| watcher.join().unwrap());
        let all = seen(&server);
        assert_eq!(readers.each_ref().map(seen), [all.clone(), all]);
    });
}

#[test]
fn after_each_change_readers_answer_as_the_writer_does() {
    let dir = tempfile::tempdir().unwrap();
    let server = writer(dir.path());
    let readers = [reader(dir.path()), reader(dir.path())];
    let ask = |server: &Running| {
        let mut connection = Connection::open(server.address).unwrap();
        let asked = |sql: &str| {
            let (status, body) = connection.post("/api/v1/query?db=t", &json!({ "sql": sql }).to_string()).unwrap();
            let answer: Value = serde_json::from_slice(&body).unwrap();
            (status, answer["columns"].clone(), answer["data"].clone())
        };
        [
            "SELECT * FROM k ORDER BY time, h",
            "SELECT h, count(*), max(v) FROM k GROUP BY h ORDER BY h",
            "SHOW DATABASES",
        ]
        .map(asked)
    };
    // A sequence that is no different from run to run.
    let mut state = 7_u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    };
    for step in 0..150 {
        let (host, time) = (next(4), 1_700_000_000_000_000_000 + next(40) * 3_600_000_000_000);
        match next(20) {
            0 => {
                let asked = json!({ "database": "t", "measurement": "k", "where": format!("h = '{host}'") });
                assert!([200, 404].contains(&post(&server, "/api/v1/delete", &asked.to_string()).0));
            }
            1 if step > 20 => change(&server, "DROP TABLE IF EXISTS k"),
            2 | 3 => assert_eq!(post(&server, "/api/v1/write/line-protocol/flush", "").0, 200),
            4 => assert!(post(&server, "/api/v1/compaction/trigger", "").0 < 300),
            5 => assert_eq!(post(&server, "/write?db=t", &format!("k,h={host} c{}=1 {time}", next(3))).0, 204),
            _ => assert_eq!(post(&server, "/write?db=t", &format!("k,h={host} v={step} {time}")).0, 204),
        }
        let expected = ask(&server);
        for reader in &readers {
            assert_eq!(ask(reader), expected, "step {step}");
        }
    }
}

#[test]
fn a_reader_refuses_changes_and_says_what_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let server = writer(dir.path());
    assert_eq!(post(&server, "/write?db=t", "m,h=a v=1 1700000000000000000").0, 204);
    let reader = Running::start_with(dir.path(), &["--reader", "--delete-enabled"]);
    for (path, body) in [
        ("/write?db=t", "m,h=a v=2"),
        ("/api/v1/databases", r#"{"name":"x"}"#),
        ("/api/v1/query?db=t", r#"{"sql":"INSERT INTO m (time, h, v) VALUES (1, 'b', 2)"}"#),
        ("/api/v1/query?db=t", r#"{"sql":"DROP TABLE m"}"#),
        ("/api/v1/compaction/trigger", ""),
    ] {
        let (status, answer) = post(&reader, path, body);
        assert!(status == 405 && answer.contains("only reads"), "{path} {body}: {status} {answer}");
    }
    let get = |path: &str| {
        let body = get_body(reader.address, path);
        serde_json::from_str::<Value>(&body).unwrap()
    };
    assert_eq!(get("/health")["role"], "reader");
    assert_eq!(get("/ready")["status"], "ready");
    assert_eq!(get("/ready/write")["status"], "not_ready");
    assert_eq!(reader.query("SELECT count(*) FROM m"), json!([[1]]));
}

/// Returns the body of what a path says.
fn get_body(address: std::net::SocketAddr, path: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

#[test]
fn sql_asks_a_directory_that_a_server_has_and_one_that_none_has() {
    let dir = tempfile::tempdir().unwrap();
    let ask = |sql: &str, format: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_arc-server"));
        command.args(["sql", sql, "--database", "t", "--format", format, "--data-dir"]).arg(dir.path());
        let done = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (done.status.code(), text(&done.stdout), text(&done.stderr))
    };
    let (code, _, error) = ask("SELECT 1", "csv");
    assert!(
        code == Some(2) && error.contains("no data directory") || error.contains("not a data directory"),
        "{error}"
    );
    let server = writer(dir.path());
    assert_eq!(post(&server, "/write?db=t", "m,h=a v=1 1700000000000000000").0, 204);
    let sql = "SELECT h, v FROM m";
    assert_eq!(ask(sql, "csv"), (Some(0), "h,v\na,1\n".to_owned(), String::new()));
    assert_eq!(ask(sql, "ndjson").1, "{\"h\":\"a\",\"v\":1}\n");
    assert!(ask(sql, "table").1.contains("| a | 1.0 |"), "{}", ask(sql, "table").1);
    let (code, _, error) = ask("DROP TABLE m", "csv");
    assert!(code == Some(1) && error.contains("only reads"), "{error}");
    assert_eq!(ask("SELECT x FROM m", "csv").0, Some(1));
    server.kill();
    assert_eq!(ask(sql, "csv").1, "h,v\na,1\n", "after kill -9");
}

#[test]
fn a_reader_answers_about_older_states_as_the_writer_does() {
    let dir = tempfile::tempdir().unwrap();
    let server = Running::start_with(dir.path(), &["--delete-enabled", "--flush-after", "1h"]);
    let reader = reader(dir.path());
    let write = |line: &str| assert_eq!(post(&server, "/write?db=t", line).0, 204);
    let now = || server.query("SELECT CAST(now() AS VARCHAR)")[0][0].as_str().unwrap().to_owned();
    write("m,h=a v=1 1700000000000000000");
    let mut times = vec![now()];
    change(&server, "CREATE SNAPSHOT first");
    write("m,h=b v=2 1700000000000000000");
    times.push(now());
    let of_a = json!({ "database": "t", "measurement": "m", "where": "h = 'a'" });
    assert_eq!(post(&server, "/api/v1/delete", &of_a.to_string()).0, 200);
    times.push(now());
    let flush = || assert_eq!(post(&server, "/api/v1/write/line-protocol/flush", "").0, 200);
    flush();
    change(&server, "DROP TABLE m");
    flush();
    assert!(post(&server, "/api/v1/compaction/trigger", "").0 < 300);
    let ask = |sql: &str, expected: Value| {
        for asked in [&server, &reader] {
            assert_eq!(asked.query(sql), expected, "{sql}");
        }
    };
    for (time, expected) in times.iter().zip([json!([["a"]]), json!([["a"], ["b"]]), json!([["b"]])]) {
        ask(&format!("SELECT h FROM m FOR SYSTEM_TIME AS OF '{time}' ORDER BY h"), expected);
    }
    ask("SELECT h FROM m AT (SNAPSHOT => 'first')", json!([["a"]]));
    assert_eq!(reader.query("SHOW SNAPSHOTS"), server.query("SHOW SNAPSHOTS"));
    assert_eq!(reader.query("SHOW SNAPSHOTS")[0][2], 1, "it keeps a file that no table has");
    for (sql, status, reason) in [
        ("SELECT * FROM m AT (SNAPSHOT => 'none')", 404, "does not exist"),
        ("SELECT * FROM m FOR SYSTEM_TIME AS OF '2020-01-01T00:00:00Z'", 400, "nothing is known"),
    ] {
        for asked in [&server, &reader] {
            let (code, body) = post(asked, "/api/v1/query?db=t", &json!({ "sql": sql }).to_string());
            assert!(code == status && body.contains(reason), "{sql}: {code} {body}");
        }
    }
}

#[test]
fn probes_are_answered_from_the_last_look_and_questions_from_a_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let server = Running::start_with(dir.path(), &["--flush-after", "1h"]);
    let reader = reader(dir.path());
    assert_eq!(post(&server, "/write?db=t", "m,h=a v=1 1700000000000000000").0, 204);
    let get = |path: &str| serde_json::from_str::<Value>(&get_body(reader.address, path)).unwrap();
    let is_known = || get("/debug/vars").get("database:t").is_some();
    let tables = || {
        let metrics = get_body(reader.address, "/metrics");
        metrics.lines().find_map(|line| line.strip_prefix("arc_tables ")?.parse::<u64>().ok()).unwrap()
    };
    assert_eq!(get("/ready")["status"], "ready");
    let (before, was_known) = (tables(), is_known());
    assert!(!was_known, "nothing has looked");
    assert!(get("/api/v1/databases")["databases"].as_array().unwrap().iter().any(|database| database["name"] == "t"));
    assert_eq!(get("/api/v1/measurements?database=t")["count"], 1);
    assert_eq!(get("/query?q=SHOW%20MEASUREMENTS&db=t")["results"][0]["series"][0]["values"][0][0], "m");
    assert!(is_known() && tables() > before);
}
