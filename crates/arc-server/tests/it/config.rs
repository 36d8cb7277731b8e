//! Settings: four layers, and errors that say what, where and what instead.

use std::{ffi::OsString, fs, path::Path, process::Command, time::Duration};

use arc_core::Durability;
use arc_server::{Config, ConfigError, LogFormat, load};

fn environment(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

fn with_file(text: &str, variables: &[(&str, &str)], flags: &[(&'static str, &str)]) -> Result<Config, ConfigError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("arc.toml");
    fs::write(&path, text).unwrap();
    load(flags.iter().map(|(key, value)| (*key, (*value).to_owned())), Some(&path), environment(variables))
}

#[test]
fn a_flag_beats_the_environment_beats_the_file_beats_the_default() {
    let config = with_file(
        "http = '127.0.0.1:1'\nmax_body_bytes = '1MiB'\nflush_after = '1s'\nmax_connections = 7\nno_auth = true\n",
        &[("ARC_HTTP", "127.0.0.1:2"), ("ARC_MAX_BODY_BYTES", "2MiB"), ("OTHER", "x"), ("HOME", "/")],
        &[("http", "127.0.0.1:3"), ("log_format", "json"), ("durability", "memory")],
    )
    .unwrap();
    assert_eq!(config.http.port(), 3);
    assert_eq!(config.limits.body_bytes, 2 << 20);
    assert_eq!(config.engine.flush_after, Duration::from_secs(1));
    assert_eq!(config.limits.connections, 7);
    assert_eq!(config.log.format, LogFormat::Json);
    assert_eq!(config.engine.durability, Durability::Memory);
    assert!(config.no_auth);
    assert_eq!(config.limits.decompressed_bytes, Config::default().limits.decompressed_bytes);
}

#[test]
fn nothing_given_is_the_default() {
    assert_eq!(load([], None, []).unwrap(), Config::default());
}

#[test]
fn the_file_can_be_named_by_the_environment() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("arc.toml");
    fs::write(&path, "http = '127.0.0.1:9'").unwrap();
    let config = load([], None, environment(&[("ARC_CONFIG", path.to_str().unwrap())])).unwrap();
    assert_eq!(config.http.port(), 9);
}

#[test]
fn every_mistake_is_named() {
    type Pairs = &'static [(&'static str, &'static str)];
    let cases: [(&str, Pairs, Pairs, &[&str]); 12] = [
        ("flush_afer = '1s'", &[], &[], &["unknown setting \"flush_afer\"", "arc.toml", "did you mean flush_after?"]),
        ("[server]\nport = 1", &[], &[], &["[server]", "arc.toml", "has no tables"]),
        ("flush_after = 10", &[], &[], &["flush_after = \"10\"", "arc.toml", "expected a duration"]),
        ("flush_after = ['1s']", &[], &[], &["flush_after", "expected a duration"]),
        ("http = ", &[], &[], &["arc.toml is not a TOML file"]),
        ("a = 1\na = 2", &[], &[], &["arc.toml is not a TOML file"]),
        ("", &[("ARC_HTPP", "x")], &[], &["unknown environment variable ARC_HTPP", "did you mean ARC_HTTP?"]),
        (
            "",
            &[("ARC_DURABILITY", "yes")],
            &[],
            &["durability = \"yes\"", "ARC_DURABILITY", "memory, process, disk or remote"],
        ),
        ("", &[("ARC_MAX_BODY_BYTES", "")], &[], &["max_body_bytes", "expected a size"]),
        ("", &[], &[("http", "here")], &["http = \"here\"", "flag --http", "expected an address"]),
        ("", &[], &[("max_connections", "0")], &["max_connections", "at least 1"]),
        (
            "no_auth = true",
            &[],
            &[("http", "0.0.0.0:8000")],
            &["refusing to serve on 0.0.0.0:8000", "leave out --no-auth"],
        ),
    ];
    for (file, variables, flags, expected) in cases {
        let error = with_file(file, variables, flags).unwrap_err().to_string();
        for text in expected {
            assert!(error.contains(text), "{text:?} is not in {error:?}");
        }
    }
}

#[test]
fn a_file_that_is_not_there_is_an_error() {
    let error = load([], Some(Path::new("/nowhere/arc.toml")), []).unwrap_err();
    assert!(error.to_string().contains("/nowhere/arc.toml"), "{error}");
}

#[test]
fn other_machines_need_a_token() {
    let config = with_file("http = '0.0.0.0:8000'", &[], &[]).unwrap();
    assert!(!config.no_auth);
    for (http, flight, is_fine) in [
        ("[::1]:8000", "none", true),
        ("127.0.0.1:8000", "127.7.7.7:1", true),
        ("127.0.0.1:8000", "0.0.0.0:8001", false),
        ("[::]:8000", "none", false),
    ] {
        let flags = [("http", http), ("flight", flight), ("no_auth", "true")].map(|(key, text)| (key, text.to_owned()));
        assert_eq!(load(flags, None, []).is_ok(), is_fine, "{http} {flight}");
    }
}

#[test]
fn variables_of_test_builds_are_left_alone() {
    assert!(load([], None, environment(&[("ARC_CRASH_POINT", "flush-1"), ("ARC_TOKEN", "x")])).is_ok());
}

fn run(arguments: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arc-server"));
    let output = command.args(arguments).envs(variables.iter().copied()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_binary_ends_with_2_when_told_what_cannot_be() {
    for (arguments, variables, expected) in [
        (&["--http", "nowhere"][..], &[][..], "http = \"nowhere\" from flag --http"),
        (&["serve", "--durability", "yes"], &[], "expected memory, process, disk or remote"),
        (&["quickstart", "--http", "nowhere"], &[], "flag --http"),
        (&["--http", "0.0.0.0:0", "--no-auth"], &[], "refusing to serve"),
        (&["quickstart", "--http", "0.0.0.0:0"], &[], "refusing to serve"),
        (&["--allow-unauthenticated"], &[], "--allow-unauthenticated"),
        (&["--config", "/nowhere.toml"], &[], "/nowhere.toml"),
        (&[], &[("ARC_DATADIR", "1")], "unknown environment variable ARC_DATADIR; did you mean ARC_DATA_DIR?"),
        (&["--nonsense"], &[], "--nonsense"),
        (&["nonsense"], &[], "nonsense"),
        (&["serve", "--once"], &[], "--once"),
    ] {
        let (code, _, errors) = run(arguments, variables);
        assert_eq!(code, Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(expected), "{expected:?} is not in {errors:?}");
    }
}

#[test]
fn variables_of_others_are_no_reason_not_to_start() {
    let service = [("ARC_SERVICE_HOST", "10.0.0.1"), ("ARC_PORT", "tcp://10.0.0.1:8000"), ("ARC_HOME", "/opt/arc")];
    let (code, shown, errors) = run(&["config"], &service);
    assert_eq!(code, Some(0), "{errors}");
    assert!(!shown.contains("10.0.0.1"), "{shown}");
}

#[test]
fn an_option_that_the_engine_refuses_ends_with_2() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let arguments = ["--wal-segment-bytes", "1", "--http", "127.0.0.1:0", "--data-dir", data.to_str().unwrap()];
    let (code, _, errors) = run(&arguments, &[]);
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.starts_with("arc-server: option wal_segment_bytes is not valid"), "{errors}");
}

#[test]
fn help_and_version_are_no_errors() {
    let (code, out, _) = run(&["--version"], &[]);
    assert_eq!((code, out.trim()), (Some(0), concat!("arc-server ", env!("CARGO_PKG_VERSION"))));
    let (code, out, _) = run(&["--help"], &[]);
    assert_eq!(code, Some(0));
    // However the lines are wrapped.
    let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in ["--data-dir", "[default: 127.0.0.1:8000]", "[env: ARC_DURABILITY]", "quickstart", "--no-auth"] {
        assert!(out.contains(expected), "{expected}: {out}");
    }
}

#[test]
fn a_data_directory_that_is_not_ours_ends_with_1() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("thesis.txt"), "mine").unwrap();
    let path = dir.path().to_str().unwrap();
    let (code, _, errors) = run(&["--data-dir", path, "--http", "127.0.0.1:0"], &[]);
    assert_eq!(code, Some(1), "{errors}");
    assert!(errors.contains("is not a data directory"), "{errors}");
}
