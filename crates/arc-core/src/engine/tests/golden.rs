//! Directories of every format that there has been, kept for good: `tests/golden/<format>/` of the
//! crate.
//!
//! A format's name is the newest version of a manifest object, the number of kinds of frames, and
//! the version of data files. Each folder has `data`, what a kill left of
//! [`scenario`](super::scenario) when builds wrote that format, without the zeros at the ends of
//! segments; `backup`, a backup of it; and `contents`, what is in either. The later ones have
//! `repaired`, too: what a repair made of it after its first frame was damaged, and
//! `contents.repaired`; since version 5 `store`, for which see `golden_store`; and since version 6
//! `edge`, the same directory after its rows were pushed, and `centre`, which they were pushed to, with
//! `contents.centre`.
//!
//! When a format changes, [`each_format_has_a_directory`] fails until `UPDATE_GOLDEN=1` was set for
//! it once, which adds the new format's folder. It never writes one that is there: to write the
//! current one anew, remove it first.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use arrow::array::{ArrayRef, Float64Array, RecordBatch, TimestampNanosecondArray};

use super::{
    contents::contents,
    scenario::{BLOCK, Era, Still, carry_out},
};
use crate::{
    Engine, Options, PushOptions, catalog::NEWEST_VERSION, datafile, engine::frame::FrameKind, plan_repair, repair,
    verify,
};

/// Size of the segments in a golden directory, the smallest that may be set.
const SEGMENT_BYTES: usize = 64 << 10;

fn golden() -> PathBuf {
    PathBuf::from("tests/golden")
}

fn open(path: &Path, pack_tables: usize) -> Engine {
    let options = Options {
        flush_after: Duration::from_secs(1 << 30),
        compaction: false,
        compaction_files: 2,
        wal_segment_bytes: SEGMENT_BYTES as u64,
        pack_tables,
        history: Duration::ZERO,
        ..Options::default()
    };
    Engine::builder(path).options(options).clock(Arc::new(Still)).open().unwrap()
}

/// Copies what a directory has of its own; `file` says what becomes of a file's bytes.
fn copy(from: &Path, to: &Path, file: &dyn Fn(&str, Vec<u8>) -> Vec<u8>) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            if !["tmp", "lost"].contains(&name.as_str()) {
                copy(&entry.path(), &to.join(&name), file);
            }
        } else if !name.starts_with("spare") && name != "LOCK" && !BLOCK.ends_with(&name) {
            fs::write(to.join(&name), file(&name, fs::read(entry.path()).unwrap())).unwrap();
        }
    }
}

/// Copies a golden directory to where it may be changed.
fn restore(from: &Path, to: &Path) {
    let is_cut_off = ["data", "edge", "centre"].iter().any(|name| from.ends_with(name));
    copy(from, to, &|name, mut bytes| {
        if name.ends_with(".wal") && is_cut_off {
            bytes.resize(bytes.len().next_multiple_of(SEGMENT_BYTES), 0);
        }
        bytes
    });
}

fn without_zeros(name: &str, mut bytes: Vec<u8>) -> Vec<u8> {
    if name.ends_with(".wal") {
        let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        bytes.truncate(end.next_multiple_of(8).min(bytes.len()));
    }
    bytes
}

/// Returns database, table, files and rows in files of each table.
fn seen(engine: &Engine) -> Vec<(String, String, usize, u64)> {
    let of = |database: &crate::DatabaseInfo| engine.tables(&database.name).unwrap();
    let row = |info: crate::TableInfo| {
        (info.schema.database.to_string(), info.schema.table.to_string(), info.files, info.file_rows)
    };
    engine.databases().iter().flat_map(of).map(row).collect()
}

/// Opens a directory as a process that only reads, which leaves it as it is.
fn what_a_reader_sees(path: &Path) -> Vec<(String, String, usize, u64)> {
    let reader = Engine::builder(path).clock(Arc::new(Still)).open_reader().unwrap();
    let seen = seen(&reader);
    reader.close().unwrap();
    seen
}

fn text(contents: &[String]) -> String {
    contents.join("\n") + "\n"
}

/// Damages the first frame of a write, and adds what a repair makes of the directory.
fn write_repaired(folder: &Path, scratch: &Path) {
    let path = scratch.join("repaired");
    restore(&folder.join("data"), &path);
    let segment = fs::read_dir(path.join("wal")).unwrap().map(|entry| entry.unwrap().path()).min().unwrap();
    let mut bytes = fs::read(&segment).unwrap();
    let line = b"cpu,host=a x=3.25 11";
    let at = bytes.windows(line.len()).position(|window| window == line).unwrap();
    bytes[at] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let plan = plan_repair(&path).unwrap();
    assert!(plan.hopeless.is_empty(), "{plan}");
    repair(&path, &plan).unwrap();
    let engine = open(&path, 64);
    fs::write(folder.join("contents.repaired"), text(&contents(&engine))).unwrap();
    drop(engine);
    copy(&path, &folder.join("repaired"), &|_, bytes| bytes);
}

/// Pushes what a directory has to an empty one, and adds both.
fn write_pushed(folder: &Path, scratch: &Path) {
    let paths = ["edge", "centre"].map(|name| scratch.join(name));
    restore(&folder.join("data"), &paths[0]);
    let [edge, centre] = [0, 1].map(|at| open(&paths[at], 2));
    edge.push(&centre, &PushOptions::default(), &mut |_| {}).unwrap();
    fs::write(folder.join("contents.centre"), text(&contents(&centre))).unwrap();
    copy(&paths[0], &folder.join("edge"), &without_zeros);
    copy(&paths[1], &folder.join("centre"), &without_zeros);
}

#[test]
fn each_format_has_a_directory() {
    let format = format!("{NEWEST_VERSION}-{}-{}", FrameKind::ALL.len(), datafile::FORMAT);
    let folder = golden().join(&format);
    if !folder.exists() && std::env::var("UPDATE_GOLDEN").is_ok() {
        let dir = tempfile::tempdir().unwrap();
        let (data, backup) = (dir.path().join("data"), dir.path().join("backup"));
        let engine = carry_out(Era::TimeUnits, |pack_tables| open(&data, pack_tables));
        let contents = contents(&engine);
        // As a kill leaves it, with all frames: a backup may flush.
        copy(&data, &folder.join("data"), &without_zeros);
        engine.backup(&backup).unwrap();
        copy(&backup, &folder.join("backup"), &|_, bytes| bytes);
        fs::write(folder.join("contents"), text(&contents)).unwrap();
        write_repaired(&folder, dir.path());
        write_pushed(&folder, dir.path());
    }
    let how = "set UPDATE_GOLDEN=1 for this test once, look at what it adds, and commit it";
    assert!(folder.exists(), "there is no golden directory of the format {format} yet: {how}");
}

#[test]
fn directories_of_all_formats_open_with_what_they_had() {
    let mut formats = 0;
    for folder in fs::read_dir(golden()).unwrap().map(|entry| entry.unwrap().path()) {
        for name in
            ["data", "backup", "repaired", "edge", "centre"].into_iter().filter(|name| folder.join(name).exists())
        {
            let expected = match name {
                "repaired" | "centre" => format!("contents.{name}"),
                _ => "contents".to_owned(),
            };
            let expected = fs::read_to_string(folder.join(expected)).unwrap();
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("data");
            restore(&folder.join(name), &path);
            let check = |engine: &Engine, what: &str| {
                let found = text(&contents(engine));
                let differ = expected.lines().zip(found.lines()).find(|(expected, found)| expected != found);
                assert!(expected == found, "{} {name}, {what}: {differ:?}", folder.display());
            };
            let report = verify(&path).unwrap();
            assert!(report.is_clean(), "{} {name}: {report}", folder.display());
            let read = what_a_reader_sees(&path);
            let engine = open(&path, 2);
            check(&engine, "opened");
            // Older builds do not say what they have acknowledged: then it is what the log proves.
            let is_said = path.join("wal/acknowledged").exists() && folder.file_name().is_some_and(|of| of >= "4");
            let found = seen(&engine);
            assert!(if is_said { read == found } else { read.len() <= found.len() }, "{} {name}", folder.display());
            let has_snapshot =
                !["backup", "centre"].contains(&name) && folder.file_name().is_some_and(|format| format >= "4");
            assert_eq!(engine.snapshots().len(), usize::from(has_snapshot), "{} {name}", folder.display());
            engine.flush().unwrap();
            check(&engine, "flushed");
            engine.compact().unwrap();
            engine.unpack().unwrap();
            check(&engine, "merged");
            engine.close().unwrap();
            check(&open(&path, 64), "opened again");
        }
        formats += 1;
    }
    assert!(formats >= 2, "{formats}");
}

#[test]
fn what_an_earlier_build_has_pushed_is_not_pushed_again() {
    let mut pairs = 0;
    for folder in fs::read_dir(golden()).unwrap().map(|entry| entry.unwrap().path()) {
        if !folder.join("edge").exists() {
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        let [edge, centre] = ["edge", "centre"].map(|name| {
            restore(&folder.join(name), &dir.path().join(name));
            open(&dir.path().join(name), 2)
        });
        let before = contents(&centre);
        let report = edge.push(&centre, &PushOptions::default(), &mut |_| {}).unwrap();
        assert_eq!((report.cuts, contents(&centre)), (0, before), "{}", folder.display());
        pairs += 1;
    }
    assert!(pairs >= 1);
}

#[test]
fn the_same_steps_come_to_the_same_as_ever() {
    for folder in fs::read_dir(golden()).unwrap().map(|entry| entry.unwrap().path()) {
        let format = folder.file_name().unwrap().to_str().unwrap();
        let era = match format {
            "1-6-1" => Era::First,
            "1-8-1" => Era::Changes,
            "3-9-1" | "3-10-1" => Era::Types,
            "4-10-1" | "5-10-1" | "6-10-1" => Era::Snapshots,
            _ => Era::TimeUnits,
        };
        let dir = tempfile::tempdir().unwrap();
        let engine = carry_out(era, |pack_tables| open(&dir.path().join("data"), pack_tables));
        let (path, found) = (folder.join("contents"), text(&contents(&engine)));
        // Of a directory that a build has written which could not say it.
        if !path.exists() && std::env::var("UPDATE_GOLDEN").is_ok() {
            fs::write(&path, &found).unwrap();
        }
        // Builds up to that of the last folder kept the width of a float that came first.
        let expected = fs::read_to_string(path).unwrap().replace("Field Float32", "Field Float64");
        let expected =
            expected.replace("=Float32:NaN", "=NaN:7ff8000000000000").replace("=Float32:0.1", "=0.10000000149011612");
        let differ = expected.lines().zip(found.lines()).find(|(expected, found)| expected != found);
        assert!(expected == found, "{format}: {differ:?}");
    }
}

#[test]
fn narrow_columns_of_earlier_builds_take_what_fits() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    restore(&golden().join("6-10-1/data"), &path);
    let engine = open(&path, 2);
    let write = |value: f64| {
        let columns: [(&str, ArrayRef); 2] = [
            ("time", Arc::new(TimestampNanosecondArray::from(vec![99]))),
            ("small", Arc::new(Float64Array::from(vec![value]))),
        ];
        engine.write_batch("d", "batches", &RecordBatch::try_from_iter(columns).unwrap())
    };
    assert_eq!(write(0.5).unwrap().points, 1);
    let error = write(0.1).unwrap_err().to_string();
    assert!(
        error.contains("\"small\"") && error.contains("is Float32, the write has float, and 0.1 in row 1"),
        "{error}"
    );
    assert!(text(&contents(&engine)).contains("\"small\"=Float32:0.5"));
}
