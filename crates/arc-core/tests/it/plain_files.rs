//! What other programs see of a table: a glob over its folder has each row once, whatever older
//! states, readers and queries still need.

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use arc_core::{Engine, EngineBuilder, Options, PastMoment};
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::support::{HandClock, number, shown, write};

const SECOND: i64 = 1_000_000_000;
/// 2026-01-01T00:00:00Z.
const START: i64 = 1_767_225_600 * SECOND;
const BEFORE: &str = "pump FOR SYSTEM_TIME AS OF '2026-01-01T00:00:10Z'";

/// An engine with the default history and time of grace, that flushes and merges when told to.
fn quiet(path: &Path, clock: &HandClock) -> EngineBuilder {
    let mut options = Options::default();
    (options.compaction, options.compaction_files, options.pack_bytes) = (false, 2, 0);
    options.flush_after = Duration::from_secs(1 << 30);
    Engine::builder(path).options(options).clock(Arc::new(clock.clone()))
}

/// Four rows in four files, as of `BEFORE`; the clock is later by a minute.
fn filled(path: &Path) -> (Engine, HandClock) {
    let clock = HandClock::default();
    clock.set(START);
    let engine = quiet(path, &clock).open().unwrap();
    for n in 0..4 {
        clock.set(START + n * SECOND);
        write(&engine, "plant", &format!("pump,id={n} rpm=1i {}", START + n));
        engine.flush().unwrap();
    }
    clock.set(START + 60 * SECOND);
    (engine, clock)
}

/// All files below a folder that a glob for Parquet finds.
fn found(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            files.extend(found(&path));
        } else if path.extension().is_some_and(|ending| ending == "parquet") {
            files.push(path);
        }
    }
    files
}

/// Rows that a glob over the folder of a table finds.
fn globbed(root: &Path, table: &str) -> i64 {
    let rows = |path: &PathBuf| {
        let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
        reader.metadata().file_metadata().num_rows()
    };
    found(&root.join("data/plant").join(table)).iter().map(rows).sum()
}

fn count(engine: &Engine, of: &str) -> i64 {
    number(engine, "plant", &format!("SELECT count(*) FROM {of}"))
}

#[test]
fn each_row_is_there_once_right_after_a_merge() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = filled(dir.path());
    assert_eq!((globbed(dir.path(), "pump"), count(&engine, "pump")), (4, 4));
    assert!(engine.compact().unwrap().merges > 0);
    assert_eq!((globbed(dir.path(), "pump"), count(&engine, "pump")), (4, 4));
    assert!(engine.stats().retired_files > 0, "they are there for older states");
    assert_eq!(count(&engine, BEFORE), 4);
}

#[test]
fn each_row_is_there_once_after_a_delete_a_drop_and_a_retention() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, clock) = filled(dir.path());
    engine.execute("plant", "DELETE FROM pump WHERE id = '0'").unwrap();
    engine.flush().unwrap();
    engine.compact().unwrap();
    assert_eq!((globbed(dir.path(), "pump"), count(&engine, "pump"), count(&engine, BEFORE)), (3, 3, 4));
    engine.execute("plant", "DROP TABLE pump").unwrap();
    assert_eq!(found(&dir.path().join("data")), Vec::<PathBuf>::new());
    assert_eq!(count(&engine, BEFORE), 4);
    write(&engine, "plant", &format!("fan,id=1 rpm=1i {START}"));
    engine.flush().unwrap();
    engine.set_retention("plant", None, Some(Duration::from_secs(600))).unwrap();
    clock.set(START + 3 * 86_400 * SECOND);
    engine.compact().unwrap();
    assert_eq!((globbed(dir.path(), "fan"), count(&engine, "fan")), (0, 0));
}

#[test]
fn whoever_needs_the_old_files_finds_them() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("store");
    let (engine, clock) = filled(&root);
    engine.execute("plant", "CREATE SNAPSHOT monday").unwrap();
    let reader = quiet(&root, &clock).open_reader().unwrap();
    assert_eq!(count(&reader, "pump"), 4);
    engine.compact().unwrap();
    let snapshot = "pump AT (SNAPSHOT => 'monday')";
    let check = |engine: &Engine| {
        for of in ["pump", BEFORE, snapshot] {
            assert_eq!(count(engine, of), 4, "{of}");
        }
        assert_eq!(globbed(&root, "pump"), 4);
    };
    check(&engine);
    check(&reader);
    check(&quiet(&root, &clock).open_reader().unwrap());
    assert!(engine.verify().unwrap().is_clean());
    let branch = dir.path().join("branch");
    let moment = PastMoment::Snapshot("monday".into());
    assert_eq!(engine.branch_at(&branch, &moment).unwrap().linked_files, 4);
    assert_eq!((globbed(&branch, "pump"), count(&quiet(&branch, &clock).open().unwrap(), "pump")), (4, 4));
    let backup = dir.path().join("backup");
    engine.backup(&backup).unwrap();
    assert_eq!(globbed(&backup, "pump"), 4);
    reader.close().unwrap();
    engine.close().unwrap();
    assert!(arc_core::verify(&root).unwrap().is_clean());
    assert!(arc_core::plan_repair(&root).unwrap().is_empty());
    arc_core::restore(&root, dir.path().join("restored")).unwrap();
    assert_eq!(globbed(&dir.path().join("restored"), "pump"), 4);
    let engine = quiet(&root, &clock).open().unwrap();
    check(&engine);
    drop(engine);
    check(&quiet(&root, &clock).open().unwrap());
}

#[test]
fn a_table_that_is_restored_is_in_its_folder_again() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, clock) = filled(dir.path());
    for (n, step) in ["DELETE FROM pump WHERE id < '3'", "DROP TABLE pump"].into_iter().enumerate() {
        let now = START + (61 + i64::try_from(n).unwrap()) * SECOND;
        clock.set(now);
        engine.execute("plant", step).unwrap();
        engine.flush().unwrap();
        engine.compact().unwrap();
        clock.set(now + SECOND / 2);
        engine.execute("plant", "RESTORE TABLE pump AS OF '2026-01-01T00:00:10Z'").unwrap();
        assert_eq!((globbed(dir.path(), "pump"), count(&engine, "pump")), (4, 4), "{step}");
        assert!(engine.verify().unwrap().is_clean());
    }
    engine.close().unwrap();
    let engine = quiet(dir.path(), &clock).open().unwrap();
    assert_eq!((globbed(dir.path(), "pump"), count(&engine, "pump"), count(&engine, BEFORE)), (4, 4, 4));
}

#[test]
fn a_file_that_a_crash_left_at_the_wrong_place_is_put_right_by_opening() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, clock) = filled(dir.path());
    let old = found(&dir.path().join("data"));
    engine.compact().unwrap();
    engine.close().unwrap();
    drop(engine);
    let past = |path: &Path| dir.path().join("past").join(path.file_name().unwrap());
    // As if the power had failed before the files were moved, and before restored ones came back.
    let live = found(&dir.path().join("data"));
    std::fs::rename(past(&old[0]), &old[0]).unwrap();
    std::fs::rename(&live[0], past(&live[0])).unwrap();
    assert!(arc_core::verify(dir.path()).unwrap().is_clean());
    assert_eq!(count(&quiet(dir.path(), &clock).open_reader().unwrap(), "pump"), 4);
    let engine = quiet(dir.path(), &clock).open().unwrap();
    assert_eq!(found(&dir.path().join("data")), live);
    assert!(past(&old[0]).exists());
    assert_eq!((count(&engine, "pump"), count(&engine, BEFORE)), (4, 4), "{}", shown(&engine, "plant", "SHOW TABLES"));
}

#[test]
fn what_nothing_needs_any_more_leaves_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, clock) = filled(dir.path());
    engine.compact().unwrap();
    assert_eq!(found(&dir.path().join("past")).len(), 4);
    clock.set(START + 2 * 3_600 * SECOND);
    engine.compact().unwrap();
    assert_eq!(found(&dir.path().join("past")), Vec::<PathBuf>::new());
    engine.execute("plant", "DELETE FROM pump WHERE id = '0'").unwrap();
    engine.flush().unwrap();
    engine.compact().unwrap();
    assert_eq!(found(&dir.path().join("past")).len(), 1);
    drop(engine);
    // A snapshot or history that is over is known by the manifest: what is left is an orphan.
    clock.set(START + 4 * 3_600 * SECOND);
    let engine = quiet(dir.path(), &clock).open().unwrap();
    assert_eq!(found(&dir.path().join("past")), Vec::<PathBuf>::new());
    assert_eq!((globbed(dir.path(), "pump"), count(&engine, "pump")), (3, 3));
}

#[test]
fn queries_that_run_while_files_move_to_and_fro_are_right() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, clock) = filled(dir.path());
    engine.execute("plant", "CREATE SNAPSHOT monday").unwrap();
    let reader = quiet(dir.path(), &clock).open_reader().unwrap();
    std::thread::scope(|scope| {
        for engine in [&engine, &reader] {
            scope.spawn(move || {
                for _ in 0..60 {
                    assert_eq!(count(engine, "pump AT (SNAPSHOT => 'monday')"), 4);
                    let now = count(engine, "pump");
                    assert!(now == 1 || now == 4, "{now}");
                }
            });
        }
        for _ in 0..20 {
            engine.execute("plant", "DELETE FROM pump WHERE id < '3'").unwrap();
            engine.flush().unwrap();
            engine.compact().unwrap();
            assert_eq!(globbed(dir.path(), "pump"), 1);
            engine.execute("plant", "RESTORE TABLE pump AS OF SNAPSHOT monday").unwrap();
            assert_eq!(globbed(dir.path(), "pump"), 4);
        }
    });
}
