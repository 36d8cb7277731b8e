//! Older states in SQL: tables as they were at a time or in a snapshot, and tables that become so
//! again.

use std::{path::Path, sync::Arc, time::Duration};

use arc_core::{Engine, ErrorKind, Executed, Options};

use crate::support::{HandClock, query, quiet, shown, write};

const SECOND: i64 = 1_000_000_000;
/// 2026-01-01T00:00:00Z.
const START: i64 = 1_767_225_600 * SECOND;

fn open(path: &Path, clock: &HandClock) -> Engine {
    let mut options = Options::default();
    (options.history, options.compaction, options.compaction_files) = (Duration::from_secs(600), false, 2);
    options.flush_after = Duration::from_secs(1 << 30);
    quiet(path).options(options).clock(Arc::new(clock.clone())).open().unwrap()
}

/// Rows of three seconds: written, flushed, one deleted, a column added.
fn filled(path: &Path) -> (Engine, HandClock) {
    let clock = HandClock::default();
    clock.set(START);
    let engine = open(path, &clock);
    write(&engine, "plant", "pump,id=7 rpm=1 1\npump,id=8 rpm=2 2");
    clock.set(START + SECOND);
    write(&engine, "plant", "pump,id=7 rpm=3 1");
    engine.flush().unwrap();
    clock.set(START + 2 * SECOND);
    engine.execute("plant", "DELETE FROM pump WHERE id = '8'").unwrap();
    clock.set(START + 3 * SECOND);
    write(&engine, "plant", "pump,id=9 rpm=4,bar=1.5 3");
    (engine, clock)
}

fn sum(engine: &Engine, of: &str) -> String {
    let answer = shown(engine, "plant", &format!("SELECT count(*) AS n, sum(rpm) AS s FROM {of}"));
    let line = answer.lines().nth(3).unwrap_or_default();
    line.split('|').map(str::trim).filter(|cell| !cell.is_empty()).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_table_is_read_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, clock) = filled(dir.path());
    clock.set(START + 60 * SECOND);
    let check = |engine: &Engine| {
        for (of, expected) in [
            ("pump", "2 7.0"),
            ("pump FOR SYSTEM_TIME AS OF '2026-01-01T00:00:00Z'", "2 3.0"),
            ("pump FOR SYSTEM_TIME AS OF '2026-01-01 00:00:01.5'", "2 5.0"),
            ("pump FOR SYSTEM_TIME AS OF TIMESTAMP '2026-01-01T00:00:02Z'", "1 3.0"),
            ("plant.pump FOR SYSTEM_TIME AS OF TIMESTAMP '2026-01-01' + INTERVAL '1 second' AS p", "2 5.0"),
            ("pump AT (TIMESTAMP => '2026-01-01T00:00:03Z')", "2 7.0"),
            ("pump AT (TIMESTAMP => '2026-01-01') AS p WHERE p.rpm > 1", "1 2.0"),
            ("(SELECT * FROM pump AT (TIMESTAMP => '2026-01-01T00:00:00Z')) AS p", "2 3.0"),
        ] {
            assert_eq!(sum(engine, of), expected, "{of}");
        }
        let two = "pump AS a JOIN pump FOR SYSTEM_TIME AS OF '2026-01-01T00:00:00Z' AS b ON a.id = b.id";
        let both = shown(engine, "plant", &format!("SELECT a.rpm AS now, b.rpm AS before FROM {two}"));
        assert!(both.contains("| 3.0 | 1.0    |"), "{both}");
        let with = "WITH old AS (SELECT id FROM pump FOR SYSTEM_TIME AS OF '2026-01-01T00:00:01Z') \
                    SELECT id FROM old WHERE id NOT IN (SELECT id FROM pump)";
        assert!(shown(engine, "plant", with).contains("| 8  |"));
        let columns = shown(engine, "plant", "SELECT * FROM pump AT (TIMESTAMP => '2026-01-01T00:00:01Z')");
        assert!(!columns.contains("bar") && columns.contains("rpm"), "{columns}");
        let named = shown(engine, "plant", "SELECT pump.id FROM pump FOR SYSTEM_TIME AS OF '2026-01-01T00:00:02Z'");
        assert!(named.contains("| 7  |"), "{named}");
        // Elsewhere it is a name like any other.
        assert!(shown(engine, "plant", "SELECT at.id FROM pump at WHERE at.rpm = 4").contains("| 9  |"));
        let explained = shown(engine, "plant", "EXPLAIN SELECT id FROM pump AT (TIMESTAMP => '2026-01-01T00:00:03Z')");
        assert!(explained.contains("plant.pump: ") && !explained.contains('\0'), "{explained}");
    };
    check(&engine);
    engine.flush().unwrap();
    engine.compact().unwrap();
    check(&engine);
    engine.close().unwrap();
    check(&open(dir.path(), &clock));
}

#[test]
fn what_cannot_be_asked_for_is_said_with_what_can() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, clock) = filled(dir.path());
    clock.set(START + 60 * SECOND);
    for (of, kind, expected) in [
        ("pump FOR SYSTEM_TIME AS OF '2025-12-31'", ErrorKind::InvalidInput, "history begins at 2026-01-01T00:00:00Z"),
        ("pump AT (TIMESTAMP => '2026-01-02')", ErrorKind::InvalidInput, "2026-01-02T00:00:00Z is in the future"),
        ("pump AT (TIMESTAMP => rpm)", ErrorKind::InvalidInput, "rpm"),
        ("pump AT (TIMESTAMP => NULL)", ErrorKind::InvalidInput, "is null"),
        ("pump AT (TIMESTAMP => (SELECT max(time) FROM pump))", ErrorKind::InvalidInput, "no constant time"),
        ("pump AT (TIMESTAMP => 'yesterday')", ErrorKind::InvalidInput, "yesterday"),
        ("pump AT (SNAPSHOT => 'none')", ErrorKind::NotFound, "snapshot \"none\" does not exist"),
        (
            "fan AT (TIMESTAMP => '2026-01-01T00:00:01Z')",
            ErrorKind::NotFound,
            "\"fan\" does not exist in database \"plant\"",
        ),
        (
            "other.plant.pump AT (TIMESTAMP => '2026-01-01T00:00:01Z')",
            ErrorKind::NotFound,
            "does not exist in database \"other.plant\"",
        ),
    ] {
        let error = query(&engine, "plant", &format!("SELECT count(*) FROM {of}")).unwrap_err();
        assert!(error.kind() == kind && error.to_string().contains(expected), "{of}: {error}");
    }
    clock.set(START + 3_600 * SECOND);
    let of = "SELECT * FROM pump FOR SYSTEM_TIME AS OF '2026-01-01T00:10:00Z'";
    let error = query(&engine, "plant", of).unwrap_err();
    assert!(error.to_string().contains("history begins at 2026-01-01T00:50:00Z"), "{error}");
}

#[test]
fn snapshots_are_made_shown_read_and_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, clock) = filled(dir.path());
    let run = |sql: &str| engine.execute("plant", sql);
    assert_eq!(run("CREATE SNAPSHOT monday").unwrap(), Executed::Created);
    assert_eq!(run("CREATE SNAPSHOT IF NOT EXISTS monday").unwrap(), Executed::NothingToCreate);
    assert_eq!(run("CREATE SNAPSHOT monday").unwrap_err().kind(), ErrorKind::InvalidInput);
    run("DROP TABLE pump").unwrap();
    clock.set(START + 7_200 * SECOND);
    engine.compact().unwrap();
    let of_monday = "pump AT (SNAPSHOT => 'monday')";
    assert_eq!(sum(&engine, of_monday), "2 7.0");
    let snapshots = shown(&engine, "plant", "SHOW SNAPSHOTS;");
    assert!(snapshots.contains("| monday | 2026-01-01T00:00:03Z |"), "{snapshots}");
    engine.close().unwrap();
    let engine = open(dir.path(), &clock);
    let run = |sql: &str| engine.execute("plant", sql);
    assert_eq!(sum(&engine, of_monday), "2 7.0");
    assert_eq!(run("RESTORE TABLE pump AS OF SNAPSHOT monday").unwrap(), Executed::Restored);
    assert_eq!(sum(&engine, "pump"), "2 7.0");
    assert_eq!(run("DROP SNAPSHOT monday").unwrap(), Executed::Dropped);
    assert_eq!(run("DROP SNAPSHOT IF EXISTS monday").unwrap(), Executed::NothingToDrop);
    assert_eq!(run("DROP SNAPSHOT monday").unwrap_err().kind(), ErrorKind::NotFound);
    clock.set(START + 72_000 * SECOND);
    engine.compact().unwrap();
    assert_eq!(sum(&engine, "pump"), "2 7.0");
}

#[test]
fn a_delete_is_undone() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, clock) = filled(dir.path());
    clock.set(START + 60 * SECOND);
    engine.execute("plant", "RESTORE TABLE pump AS OF '2026-01-01T00:00:01Z'").unwrap();
    let check = |engine: &Engine| assert_eq!(sum(engine, "pump"), "2 5.0");
    check(&engine);
    // What comes later overwrites what came back.
    clock.set(START + 61 * SECOND);
    write(&engine, "plant", "pump,id=8 rpm=20 2");
    assert_eq!(sum(&engine, "pump"), "2 23.0");
    assert_eq!(sum(&engine, "pump AT (TIMESTAMP => '2026-01-01T00:01:00Z')"), "2 5.0");
    assert_eq!(sum(&engine, "pump AT (TIMESTAMP => '2026-01-01T00:00:03Z')"), "2 7.0");
    clock.set(START + 62 * SECOND);
    engine.execute("plant", "RESTORE TABLE pump AS OF TIMESTAMP '2026-01-01T00:00:00Z' + INTERVAL '1 minute'").unwrap();
    check(&engine);
    engine.compact().unwrap();
    check(&engine);
    drop(engine);
    let engine = open(dir.path(), &clock);
    check(&engine);
    assert!(engine.verify().unwrap().is_clean());
    // A dropped table comes back, and so does its database.
    clock.set(START + 63 * SECOND);
    engine.execute("plant", "DROP DATABASE plant").unwrap();
    clock.set(START + 64 * SECOND);
    engine.execute("plant", "RESTORE TABLE pump AS OF '2026-01-01T00:01:02Z'").unwrap();
    check(&engine);
    // The time is a constant: what another table has is not told in the error for it.
    for time in [
        "(SELECT max(id) FROM pump)",
        "CAST((SELECT string_agg(id, '') FROM plant.pump) AS TIMESTAMP)",
        "'x') AS TIMESTAMP)) FROM pump --",
        "(TABLE pump)",
        "(VALUES (now()))",
        "(WITH t AS (TABLE pump) TABLE t)",
    ] {
        let error = engine.execute("plant", &format!("RESTORE TABLE pump AS OF {time}")).unwrap_err();
        assert!(error.to_string().contains("RESTORE takes a constant time"), "{time}: {error}");
    }
    let error = engine.execute("plant", "RESTORE TABLE fan AS OF '2026-01-01T00:01:02Z'").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}

#[test]
fn now_is_the_time_at_which_a_statement_began() {
    let dir = tempfile::tempdir().unwrap();
    let engine = quiet(dir.path()).options(Options::default()).open().unwrap();
    write(&engine, "plant", "pump,id=7 rpm=1 1");
    assert_eq!(sum(&engine, "pump FOR SYSTEM_TIME AS OF now()"), "1 1.0");
    let old = "SELECT * FROM pump FOR SYSTEM_TIME AS OF now() - INTERVAL '1 day'";
    let error = query(&engine, "plant", old).unwrap_err();
    assert!(error.to_string().contains("history begins at"), "{error}");
}
