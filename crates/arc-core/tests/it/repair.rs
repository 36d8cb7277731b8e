//! Damage of every kind: refused, planned, repaired; what is missing then is what the plan said,
//! and nothing else.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use arc_core::{
    ColumnTypes, Engine, Error, ErrorKind, OnConflict, RepairPlan, RepairStep, plan_repair, repair, verify,
};
use arrow::{array::AsArray, datatypes::Int64Type};

use crate::support::{in_columns, open, query, quiet, write};

/// Points 0 to 2 in one data file, 3 to 5 in another, 6 to 11 in the log, of which 9 has a column
/// of its own, and so has 10, which is logged in columns.
fn store(dir: &Path) {
    let engine = open(dir);
    for n in 0..12 {
        let column = if [9, 10].contains(&n) { format!(",f{n}=true") } else { String::new() };
        let line = format!("m,k=a n={n}i{column} {n}");
        write(&engine, "d", &if n == 10 { in_columns(&line) } else { line });
        if [2, 5].contains(&n) {
            engine.flush().unwrap();
        }
    }
}

fn points(dir: &Path) -> BTreeSet<i64> {
    let engine = open(dir);
    let batches = query(&engine, "d", "SELECT n FROM m").unwrap();
    let numbers = batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec());
    let mut points = BTreeSet::new();
    numbers.for_each(|n| assert!(points.insert(n), "point {n} came twice"));
    points
}

/// The files below `dir` whose paths end in `suffix`, sorted.
fn files(dir: &Path, suffix: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(self::files(&path, suffix));
        } else if path.to_str().unwrap().ends_with(suffix) {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn change(path: &Path, damage: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).unwrap();
    damage(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

/// Damages the log where a text stands for the first time: the bytes from `before` in front of it,
/// so many.
fn damage_log(dir: &Path, text: &str, before: usize, count: usize) {
    let segment = files(dir, ".wal").remove(0);
    change(&segment, |bytes| {
        let at = bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap() - before;
        bytes[at..at + count].iter_mut().for_each(|byte| *byte ^= 0x55);
    });
}

fn data_file(dir: &Path, index: usize) -> PathBuf {
    files(&dir.join("data"), ".parquet").remove(index)
}

fn last_commit(dir: &Path) -> PathBuf {
    dir.join("meta/0/00000000000000000003")
}

fn flip(path: &Path) {
    change(path, |bytes| *bytes.last_mut().unwrap() ^= 1);
}

/// Repairs a damaged directory and returns the plan.
fn repaired(dir: &Path) -> RepairPlan {
    assert!(!verify(dir).unwrap().is_clean());
    let before = files(dir, "");
    let plan = plan_repair(dir).unwrap();
    assert_eq!(files(dir, ""), before, "planning changes nothing");
    assert!(!plan.is_empty() && plan.hopeless.is_empty(), "{plan}");
    let report = repair(dir, &plan).unwrap();
    assert!(report.is_clean(), "{plan}\n{report}");
    assert!(plan_repair(dir).unwrap().is_empty());
    plan
}

#[test]
fn what_is_missing_after_a_repair_is_what_the_plan_gives_up() {
    type Damage = fn(&Path);
    let cases: [(&str, Damage, bool, &[i64], &str); 17] = [
        ("marker", |dir| change(&dir.join("ARC"), Vec::clear), true, &[], "gives up nothing"),
        ("marker gone", |dir| std::fs::remove_file(dir.join("ARC")).unwrap(), true, &[], "gives up nothing"),
        ("data file", |dir| flip(&data_file(dir, 0)), false, &[0, 1, 2], "GIVES UP its 3 rows"),
        ("data file gone", |dir| std::fs::remove_file(data_file(dir, 1)).unwrap(), false, &[3, 4, 5], "it is missing"),
        ("data file cut", |dir| change(&data_file(dir, 1), |b| b.truncate(9)), false, &[3, 4, 5], "it has 9 bytes"),
        ("body", |dir| damage_log(dir, "m,k=a n=8i", 0, 1), true, &[8], "GIVES UP frame 11 ("),
        ("meta", |dir| damage_log(dir, "m,k=a n=8i", 1, 1), true, &[8], "a meta that fails its checksum"),
        ("header", |dir| damage_log(dir, "m,k=a n=8i", 60, 60), true, &[8], "has no valid header"),
        ("first needed", |dir| damage_log(dir, "m,k=a n=6i", 0, 1), true, &[6], "GIVES UP frame 9 ("),
        ("many", |dir| damage_log(dir, "m,k=a n=7i", 0, 150), true, &[7, 8], "GIVES UP 2 frames"),
        // The schema frame is made again from the write after it.
        ("schema", |dir| damage_log(dir, "f9", 0, 2), true, &[], "1 lost changes of schema"),
        ("schema and write", |dir| damage_log(dir, "f9", 0, 60), true, &[9], "GIVES UP frame 13 ("),
        ("schema of rows", |dir| damage_log(dir, "f10", 0, 3), true, &[], "1 lost changes of schema"),
        ("commit", |dir| flip(&last_commit(dir)), true, &[], "gives up nothing: the log has"),
        ("first commit", |dir| flip(&dir.join("meta/0/00000000000000000001")), true, &[], "gives up nothing"),
        ("middle commit", |dir| flip(&dir.join("meta/0/00000000000000000002")), true, &[], "gives up nothing: the log"),
        (
            "commit, file and frame",
            |dir| {
                flip(&dir.join("meta/0/00000000000000000003"));
                damage_log(dir, "m,k=a n=8i", 0, 1);
                flip(&data_file(dir, 0));
            },
            true,
            &[0, 1, 2, 8],
            "gives up nothing: the log has",
        ),
    ];
    for (name, damage, refused, missing, said) in cases {
        let dir = tempfile::tempdir().unwrap();
        store(dir.path());
        damage(dir.path());
        if refused {
            let error = Engine::open(dir.path()).err().unwrap_or_else(|| panic!("{name}: it opened"));
            assert!([ErrorKind::Corrupt, ErrorKind::InvalidInput].contains(&error.kind()), "{name}: {error}");
        }
        let plan = repaired(dir.path());
        assert!(plan.to_string().contains(said), "{name}: {said:?} is not in {plan}");
        let expected: BTreeSet<i64> = (0..12).filter(|n| !missing.contains(n)).collect();
        for _ in 0..2 {
            assert_eq!(points(dir.path()), expected, "{name}: {plan}");
            assert!(verify(dir.path()).unwrap().is_clean());
        }
    }
}

#[test]
fn what_is_taken_out_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    store(dir.path());
    let file = data_file(dir.path(), 0);
    flip(&file);
    damage_log(dir.path(), "m,k=a n=8i", 0, 1);
    let segment = files(dir.path(), ".wal").remove(0);
    let (damaged, log) = (std::fs::read(&file).unwrap(), std::fs::read(&segment).unwrap());
    let plan = repaired(dir.path());
    assert!(matches!(plan.steps[0], RepairStep::DropDataFile { rows: 3, .. }), "{plan}");
    let lost = |path: &Path| dir.path().join("lost").join(path.strip_prefix(dir.path()).unwrap());
    assert!(!file.exists() && !segment.exists());
    assert_eq!(std::fs::read(lost(&file)).unwrap(), damaged);
    assert_eq!(std::fs::read(lost(&segment)).unwrap(), log);
    assert_eq!(files(&dir.path().join("lost/meta"), "").len(), 3);
}

#[test]
fn files_of_a_lost_commit_are_kept_from_being_removed() {
    let dir = tempfile::tempdir().unwrap();
    store(dir.path());
    for segment in files(dir.path(), ".wal") {
        std::fs::remove_file(segment).unwrap();
    }
    flip(&last_commit(dir.path()));
    let file = data_file(dir.path(), 1);
    let plan = repaired(dir.path());
    let kept = RepairStep::KeepUnnamed { path: file.clone() };
    assert!(format!("{plan:?}").contains("KeepUnnamed") && plan.to_string().contains("GIVES UP"), "{plan} {kept:?}");
    assert_eq!(points(dir.path()), BTreeSet::from([0, 1, 2]));
    assert!(!file.exists() && dir.path().join("lost").join(file.strip_prefix(dir.path()).unwrap()).exists());
}

#[test]
fn nothing_is_done_without_a_plan_that_still_holds() {
    let dir = tempfile::tempdir().unwrap();
    store(dir.path());
    let empty = plan_repair(dir.path()).unwrap();
    assert!(empty.is_empty(), "{empty}");
    flip(&data_file(dir.path(), 0));
    let error = repair(dir.path(), &empty).unwrap_err();
    assert!(matches!(error, Error::InvalidOption { .. }), "{error}");
    assert!(!verify(dir.path()).unwrap().is_clean());
    let engine = open(dir.path());
    assert!(matches!(plan_repair(dir.path()), Err(Error::InUse { .. })));
    assert!(matches!(repair(dir.path(), &empty), Err(Error::InUse { .. })));
    drop(engine);
}

#[test]
fn a_manifest_of_which_too_little_is_left_is_not_guessed() {
    let dir = tempfile::tempdir().unwrap();
    store(dir.path());
    for object in files(&dir.path().join("meta"), "") {
        std::fs::remove_file(object).unwrap();
    }
    let plan = plan_repair(dir.path()).unwrap();
    assert!(plan.is_empty() && plan.hopeless.len() == 1, "{plan}");
    assert!(plan.to_string().contains("restore a backup"), "{plan}");
    let report = repair(dir.path(), &plan).unwrap();
    assert!(!report.is_clean());
    assert_eq!(files(&dir.path().join("data"), ".parquet").len(), 2, "nothing was removed");
}

#[test]
fn a_lost_change_of_type_is_told_from_the_writes_behind_it_or_becomes_text() {
    // What is written after the change, and what the column is then.
    let cases: [(&[&str], &str, &[&str]); 3] = [
        (&["m n=3i 3"], "Utf8", &["1", "2.5", "3"]),
        (&["m n=3i,h9=1 3"], "Float64", &["1.0", "2.5", "3.0"]),
        (&["m n=\"x\",h9=1 3", "m n=4i 4"], "Utf8", &["1", "2.5", "x", "4"]),
    ];
    for (behind, data_type, expected) in cases {
        let dir = tempfile::tempdir().unwrap();
        let widen = ColumnTypes::new().on_conflict(OnConflict::Widen);
        let open = || quiet(dir.path()).column_types(widen.clone()).open().unwrap();
        let engine = open();
        for line in ["m n=1i 1", "m n=2.5,g9=1 2"].iter().chain(behind) {
            write(&engine, "d", line);
        }
        drop(engine);
        damage_log(dir.path(), "g9", 0, 2);
        let plan = repaired(dir.path()).to_string();
        let said = format!("changes column \"n\" of table \"m\" to {data_type}, which keeps its values");
        assert!(plan.contains(&said) && plan.matches("GIVES UP").count() == 1, "{said}: {plan}");
        let engine = open();
        let batches = query(&engine, "d", "SELECT CAST(n AS VARCHAR) AS n FROM m ORDER BY time").unwrap();
        let found = batches.iter().flat_map(|batch| batch.column(0).as_string::<i32>().iter().flatten());
        assert_eq!(found.collect::<Vec<_>>(), expected, "{plan}");
    }
}
