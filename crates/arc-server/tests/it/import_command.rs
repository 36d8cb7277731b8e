//! `arc-server import`, the real binary: into a directory, into a server, interrupted and begun again.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

use arc_core::Engine;
use serde_json::{Value, json};

use crate::{process::Running, support::gzip};

fn command(arguments: &[&str], dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arc-server"));
    command.arg("import").args(arguments).current_dir(dir);
    command
}

fn import(arguments: &[&str], dir: &Path) -> Output {
    command(arguments, dir).output().unwrap()
}

/// Returns exit code, standard output and standard error.
fn said(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

fn sample(dir: &Path) {
    fs::write(dir.join("a.csv"), "time,host,v\n1700000000,a,1\n1700000001,b,2\nsoon,c,3\n").unwrap();
    fs::write(dir.join("b.lp.gz"), gzip(b"m,host=d v=4i 1700000002\nm,host=e v= 1\n")).unwrap();
    fs::write(dir.join("c.csv"), "a,b\n1,2\n").unwrap();
}

#[test]
fn a_directory_whose_files_are_elsewhere_is_opened_as_a_server_would() {
    let dir = tempfile::tempdir().unwrap();
    sample(dir.path());
    let (code, _, err) =
        said(&import(&["--data-dir", "own", "--object-store-url", "gs://arc/x", "b.lp.gz"], dir.path()));
    // The setting counts, and points are not stored here instead.
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("object_store_url") && err.contains("is not like s3://bucket/prefix"), "{err}");
    assert!(!dir.path().join("own").exists());
}

const FILES: [&str; 11] =
    ["--db", "t", "--table", "m", "--tags", "host", "--precision", "s", "a.csv", "b.lp.gz", "c.csv"];

#[test]
fn files_go_into_a_directory_or_a_server_and_refused_rows_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    sample(dir.path());
    let server = Running::start(&dir.path().join("served"));
    let url = server.url();
    for to in [["--data-dir", "own"], ["--url", &url]] {
        let arguments: Vec<&str> = FILES.into_iter().chain(to).chain(["--rejected", "bad.jsonl"]).collect();
        let (code, out, err) = said(&import(&arguments, dir.path()));
        assert_eq!(code, 1, "{out}{err}");
        let expected = "a.csv: 2 rows stored, 1 refused\n  host tag, v integer\nb.lp.gz: 1 rows stored, 1 refused\n";
        assert_eq!(out, expected);
        assert!(err.contains("a.csv, row 4, column time: \"soon\" is no time"), "{err}");
        assert!(err.contains("b.lp.gz, row 2, column"), "{err}");
        assert!(err.contains("cannot import c.csv: there is no column \"host\""), "{err}");
        let listed = fs::read_to_string(dir.path().join("bad.jsonl")).unwrap();
        let listed: Vec<Value> = listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(listed.len(), 2);
        assert_eq!(
            (&listed[0]["file"], &listed[0]["row"], &listed[0]["column"]),
            (&json!("a.csv"), &json!(4), &json!("time"))
        );
        let arguments: Vec<&str> = arguments.into_iter().chain(["--json"]).collect();
        let (code, out, _) = said(&import(&arguments, dir.path()));
        let again: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((code, &again[0]["rows"], &again[0]["rows_before"]), (1, &json!(0), &json!(2)), "{out}");
        assert_eq!(again[1]["rows_before"], 1);
    }
    let expected = json!([["a", 1], ["b", 2], ["d", 4]]);
    assert_eq!(server.query("SELECT host, v FROM m ORDER BY v"), expected);
    let own = Engine::open(dir.path().join("own")).unwrap();
    let rows: u64 = own.tables("t").unwrap().iter().map(|table| table.file_rows).sum();
    assert_eq!(rows, 3, "everything is flushed at the end");
}

#[test]
fn a_check_says_what_an_import_would_and_stores_nothing() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.csv"), "time,host,v\n1700000000,a,1\n1700000000,a,2\n1700000001,b,2\nsoon,c,3\n")
        .unwrap();
    fs::write(dir.path().join("a.lp"), "m,host=a v=1i 1700000000\nm,host=b v=\"x\" 1700000001\n").unwrap();
    let server = Running::start(&dir.path().join("served"));
    let url = server.url();
    let words = ["--db", "t", "--table", "m", "--tags", "host", "--precision", "s"];
    let run = |more: &[&str]| said(&import(&[&words[..], more].concat(), dir.path()));
    let types = "\n  host tag, v integer\n";
    let merged = "1 refused, 1 merged with rows of the same tags and time";
    // There is no directory yet, and there is none afterwards.
    let (code, out, err) = run(&["--check", "--data-dir", "own", "a.csv"]);
    assert_eq!((code, &out), (1, &format!("a.csv: 3 rows would be stored, {merged}{types}")), "{err}");
    assert!(err.contains("a.csv, row 5, column time: \"soon\" is no time"), "{err}");
    assert!(!dir.path().join("own").exists());
    fs::create_dir(dir.path().join("empty")).unwrap();
    assert_eq!(run(&["--check", "--data-dir", "empty", "a.csv"]).1, out);
    assert_eq!(run(&["--check", "--data-dir", ".", "a.csv"]).0, 2);
    let (code, out, err) = run(&["--check", "--url", &url, "a.csv"]);
    assert_eq!((code, out), (1, format!("a.csv: 3 rows would be stored, {merged}{types}")), "{err}");
    assert_eq!(server.query("SELECT count(*) FROM information_schema.tables WHERE table_name = 'm'"), json!([[0]]));
    // What is stored says the types, also to a check beside the process that has the directory open.
    run(&["--url", &url, "a.csv"]);
    for to in [["--url", &url], ["--data-dir", "served"]] {
        let (code, out, err) = run(&[&["--check", "--json"], &to[..], &["a.lp", "a.csv"]].concat());
        let files: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((code, &files[0]["refused"], &files[1]["rows"]), (1, &json!(1), &json!(3)), "{out}{err}");
        assert_eq!((&files[0]["check"], &files[1]["rows_merged"]), (&json!(true), &json!(2)), "{out}");
    }
    assert_eq!(server.query("SELECT host, v FROM m ORDER BY host"), json!([["a", 2], ["b", 2]]));
    let (_, out, err) = run(&["--data-dir", "own", "a.csv", "a.lp"]);
    let stored = format!("a.csv: 3 rows stored, {merged}{types}a.lp: 1 rows stored, {merged}\n");
    assert_eq!(out, stored, "{err}");
}

#[test]
fn cells_of_csv_have_the_types_that_the_settings_of_a_server_say() {
    let dir = tempfile::tempdir().unwrap();
    let settings = ["--string-columns", "attr_*", "--on-conflict", "widen"];
    let server = Running::start_with(&dir.path().join("served"), &settings);
    let url = server.url();
    for (n, cells) in ["1,1.50", "x,007"].into_iter().enumerate() {
        fs::write(dir.path().join("a.csv"), format!("time,v,attr_a\n{n},{cells}\n")).unwrap();
        let (code, out, err) =
            said(&import(&["--db", "t", "--table", "a/b", "--precision", "ns", "--url", &url, "a.csv"], dir.path()));
        assert!(code == 0 && out.starts_with("a.csv: 1 rows stored, 0 refused\n"), "{out}{err}");
    }
    let stored = server.query("SELECT v, attr_a FROM \"a/b\" ORDER BY time");
    assert_eq!(stored, json!([["1", "1.50"], ["x", "007"]]));
}

#[test]
fn an_import_that_is_killed_goes_on_without_doubling() {
    let dir = tempfile::tempdir().unwrap();
    let rows = 400_000;
    let lines: String = (0..rows).map(|n| format!("{n},h{},{n}.5\n", n % 10)).collect();
    fs::write(dir.path().join("a.csv"), format!("time,host,v\n{lines}")).unwrap();
    let server = Running::start(&dir.path().join("served"));
    let url = server.url();
    // Without tags rows append: a second copy would show.
    let arguments = ["--db", "t", "--table", "m", "--precision", "ms", "--url", &url, "a.csv"];
    let stored = || {
        let tables = server.query("SELECT count(*) FROM information_schema.tables WHERE table_name = 'm'");
        if tables == json!([[0]]) { 0 } else { server.query("SELECT count(*) FROM m")[0][0].as_u64().unwrap() }
    };
    let mut first = command(&arguments, dir.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while stored() == 0 && first.try_wait().unwrap().is_none() {}
    first.kill().unwrap();
    first.wait().unwrap();
    let (code, out, err) = said(&import(&arguments, dir.path()));
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("there from an earlier import"), "{out}");
    assert_eq!(stored(), rows);
}

#[test]
fn what_cannot_be_done_is_said_before_anything_is_stored() {
    let dir = tempfile::tempdir().unwrap();
    sample(dir.path());
    let served = dir.path().join("served");
    let _server = Running::start(&served);
    let cases: [(&[&str], i32, &str); 11] = [
        (&[], 2, "required"),
        (&["--format", "xml", "a.csv"], 2, "expected lp, csv, parquet or arrow"),
        (&["--type", "v=number", "a.csv"], 2, "expected float, integer"),
        (&["--time-format", "dd.mm.yyyy", "a.csv"], 2, "a pattern like %d.%m.%Y"),
        (&["--time-format", "excel", "--precision", "s", "a.csv"], 2, "cannot be used with"),
        (&["--data-dir", "new", "--table", "m", "-"], 1, "does not say its format"),
        (&["--data-dir", "new", "missing.csv"], 1, "cannot open missing.csv"),
        (&["--data-dir", "new", "a.csv"], 1, "which table it is for"),
        (&["--data-dir", "served", "--table", "m", "a.csv"], 2, "in use by another process"),
        (&["--url", "ftp://127.0.0.1:1", "--table", "m", "a.csv"], 1, "expected http://HOST:PORT or https://"),
        (&["--url", "http://127.0.0.1:1", "--table", "m", "a.csv"], 1, "cannot send to http://127.0.0.1:1"),
    ];
    for (arguments, expected, says) in cases {
        let (code, out, err) = said(&import(arguments, dir.path()));
        assert_eq!(code, expected, "{arguments:?}: {out}{err}");
        assert!(err.contains(says), "{arguments:?}: {err}");
    }
}

#[test]
fn what_comes_through_a_pipe_is_stored_and_described() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = ["--data-dir", "own", "--db", "t", "--table", "m", "--format", "csv", "--exclude", "skip", "-"];
    let mut child = command(&arguments, dir.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let body = "Date;,v;skip;word;\n20240131;1,5;1;NA;\n20240201;2;2;x;\n";
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), body.as_bytes()).unwrap();
    let (code, out, _) = said(&child.wait_with_output().unwrap());
    assert_eq!(code, 0, "{out}");
    assert_eq!(
        out,
        "-: 2 rows stored, 0 refused\n  ,v float, skip left out, word string (row 3: \"x\"), (no name) left out\n  \
         times: digits of YYYYMMDD\n"
    );
    // Times that may be anything have to be explained, before a row is stored.
    fs::write(dir.path().join("a.csv"), "time,v\n1,1\n").unwrap();
    let (code, _, err) = said(&import(&["--data-dir", "own", "--db", "t", "--table", "n", "a.csv"], dir.path()));
    assert!(code == 1 && err.contains("precision (s, ms, us, ns)"), "{err}");
    let (code, out, _) = said(&import(
        &["--data-dir", "own", "--db", "t", "--table", "n", "--time-format", "year", "a.csv"],
        dir.path(),
    ));
    assert_eq!(code, 1, "{out}");
    assert!(out.starts_with("a.csv: 0 rows stored, 1 refused"), "{out}");
}

#[test]
fn what_is_imported_into_a_directory_lies_in_files_of_its_table() {
    let dir = tempfile::tempdir().unwrap();
    let days = 100;
    let rows: String = (0..days).map(|day| format!("{},{day}\n", 1_700_000_000 + day * 86_400)).collect();
    fs::write(dir.path().join("a.csv"), format!("time,v\n{rows}")).unwrap();
    let (code, out, err) = said(&import(&["--data-dir", "own", "--db", "t", "--table", "m", "a.csv"], dir.path()));
    assert_eq!(
        (code, out.as_str()),
        (0, "a.csv: 100 rows stored, 0 refused\n  v integer\n  times: seconds since 1970\n"),
        "{err}"
    );
    let folders = fs::read_dir(dir.path().join("own/data/t/m")).unwrap();
    let files: usize = folders.map(|folder| fs::read_dir(folder.unwrap().path()).unwrap().count()).sum();
    assert_eq!(files, days, "none is in a pack");
}
