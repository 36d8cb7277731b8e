//! Retention through the public interface: what is past it goes, and nothing else.

use std::{path::Path, sync::Arc, time::Duration};

use arc_core::{Engine, ErrorKind};

use crate::support::{HandClock, number, quiet, shown, write};

const DAY_NS: i64 = 86_400_000_000_000;
const DAY: Duration = Duration::from_secs(86_400);

fn open(path: &Path, clock: &HandClock) -> Engine {
    quiet(path).clock(Arc::new(clock.clone())).open().unwrap()
}

fn days(engine: &Engine, table: &str) -> String {
    let sql = format!("SELECT CAST(time AS BIGINT) / {DAY_NS} AS d FROM {table} ORDER BY 1");
    let digits = |line: &str| line.chars().filter(char::is_ascii_digit).collect::<String>();
    shown(engine, "d", &sql).lines().map(digits).filter(|day| !day.is_empty()).collect::<Vec<_>>().join(" ")
}

#[test]
fn files_go_once_all_of_their_rows_are_past_the_retention() {
    let dir = tempfile::tempdir().unwrap();
    let clock = HandClock::default();
    clock.set(10 * DAY_NS);
    let engine = open(dir.path(), &clock);
    let lines: String =
        (0..10).map(|day| format!("m,h=a x=1 {}\nkept,h=a x=1 {}\n", day * DAY_NS, day * DAY_NS)).collect();
    write(&engine, "d", &lines);
    engine.flush().unwrap();
    assert_eq!(engine.compact().unwrap().expired_files, 0, "nothing is set");
    engine.set_retention("d", None, Some(3 * DAY)).unwrap();
    engine.set_retention("d", Some("kept"), Some(Duration::MAX)).unwrap();
    assert_eq!(engine.compact().unwrap().expired_files, 7);
    assert_eq!(days(&engine, "m"), "7 8 9");
    assert_eq!(days(&engine, "kept"), "0 1 2 3 4 5 6 7 8 9");
    clock.set(10 * DAY_NS + 1);
    assert_eq!(engine.compact().unwrap().expired_files, 1, "day 7 has one row, at its beginning");
    assert_eq!(engine.stats().expired_files, 8);
    drop(engine);
    // The setting, and what it did, are there after a restart.
    let engine = open(dir.path(), &clock);
    assert_eq!(days(&engine, "m"), "8 9");
    assert_eq!(engine.databases()[0].retention, Some(3 * DAY));
    let of = |engine: &Engine| engine.tables("d").unwrap().iter().map(|table| table.retention).collect::<Vec<_>>();
    assert_eq!(of(&engine)[1], Some(3 * DAY));
    assert!(of(&engine)[0] > Some(100_000 * DAY));
    engine.set_retention("d", Some("kept"), None).unwrap();
    assert_eq!(of(&engine), [Some(3 * DAY); 2], "the database's again");
    engine.set_retention("d", None, None).unwrap();
    assert_eq!(of(&engine), [None, None]);
    clock.set(100 * DAY_NS);
    assert_eq!(engine.compact().unwrap().expired_files, 0);
}

#[test]
fn points_that_are_too_old_on_arrival_are_stored_and_go_with_the_next_round() {
    let dir = tempfile::tempdir().unwrap();
    let clock = HandClock::default();
    clock.set(10 * DAY_NS);
    let engine = open(dir.path(), &clock);
    write(&engine, "d", &format!("m,h=a x=1 {}", 9 * DAY_NS));
    // Not in the manifest yet: setting it flushes.
    engine.set_retention("d", Some("m"), Some(DAY)).unwrap();
    write(&engine, "d", "m,h=a x=1 5\nm,h=b x=1 5");
    assert_eq!(days(&engine, "m"), "0 0 9");
    assert_eq!(engine.compact().unwrap().expired_files, 0, "unflushed rows stay");
    assert_eq!(days(&engine, "m"), "0 0 9");
    engine.flush().unwrap();
    assert_eq!(engine.compact().unwrap().expired_files, 2, "one on time, one late");
    assert_eq!(days(&engine, "m"), "9");
}

#[test]
fn a_merge_leaves_rows_out_that_are_past_the_retention() {
    let dir = tempfile::tempdir().unwrap();
    let clock = HandClock::default();
    let engine = open(dir.path(), &clock);
    let hour = DAY_NS / 24;
    for half in 0..2 {
        let lines: String = (0..24).map(|i| format!("m,h={half} x={i} {}\n", i * hour)).collect();
        write(&engine, "d", &lines);
        engine.flush().unwrap();
    }
    engine.set_retention("d", Some("m"), Some(DAY)).unwrap();
    clock.set(DAY_NS + 6 * hour);
    let report = engine.compact().unwrap();
    assert_eq!((report.expired_files, report.rows_in, report.rows_out), (0, 48, 36), "{report:?}");
    assert_eq!(number(&engine, "d", "SELECT CAST(min(time) AS BIGINT) FROM m"), 6 * hour);
    // Later versions of rows that are left out come alone.
    write(&engine, "d", &format!("m,h=0 y=1 {hour}"));
    assert_eq!(number(&engine, "d", "SELECT count(*) FROM m"), 37);
}

#[test]
fn what_cannot_be_kept_for_any_time_or_is_not_there_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path(), &HandClock::default());
    write(&engine, "d", "m x=1 1");
    let error = engine.set_retention("d", None, Some(Duration::ZERO)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    for (database, table) in [("none", None), ("d", Some("none"))] {
        let error = engine.set_retention(database, table, Some(DAY)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains("none"), "{error}");
    }
}
