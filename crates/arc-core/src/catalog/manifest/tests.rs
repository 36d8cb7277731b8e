//! The manifest through its whole life: commits, snapshots, damage, fences, faults and the loss of
//! power.

#[cfg(feature = "object-store")]
mod faults;
mod location;
#[cfg(feature = "object-store-aws")]
mod s3;

use std::{
    collections::{BTreeMap, btree_map::Entry},
    path::PathBuf,
};

use arrow::datatypes::DataType;
use proptest::prelude::*;

use self::location::{At, DIR, Location, over_all_locations, path};
use super::*;
use crate::{
    Durability, FileTimeUnit, SequenceNumber,
    catalog::{DurabilityEdit, Fingerprint, IdempotencyRecord, NEWEST_VERSION, ReceiptsEdit, RetentionEdit, TableEdit},
    model::{Column, ColumnKind, ColumnStatistics, DataFile, FileTail, StatisticsValue, TableSchema},
    vfs::{Fault, FaultFs, Operation, Vfs},
};

fn schema(columns: usize) -> Arc<TableSchema> {
    let column = |i: usize| Column {
        name: format!("c{i}").into(),
        kind: ColumnKind::Field,
        data_type: if i.is_multiple_of(2) { DataType::Float64 } else { DataType::Date32 },
    };
    let columns = (0..columns).map(column).collect();
    Arc::new(TableSchema { database: "db".into(), table: "t".into(), has_primary_key: true, columns })
}

fn file(id: u64) -> DataFile {
    let text = |value: &str, exact| Some(StatisticsValue::Text { value: value.into(), exact });
    let float = |value| Some(StatisticsValue::Float(value));
    let column = |name: &str, min, max| ColumnStatistics { name: name.into(), null_count: id, min, max };
    DataFile {
        path: format!("data/db/t/day=2026-01-31/{id}.parquet"),
        bytes: u64::MAX - id,
        crc32c: u32::MAX,
        tail: id.is_multiple_of(3).then_some(FileTail { bytes: id, crc32c: u32::MAX }),
        rows: id,
        min_time: i64::MIN,
        max_time: i64::MAX,
        min_seq: id,
        max_seq: id,
        deleted_seq: 0,
        time_unit: if id.is_multiple_of(5) { FileTimeUnit::Millisecond } else { FileTimeUnit::Nanosecond },
        hourly: None,
        late: id.is_multiple_of(2),
        sorted_by: vec!["host".into(), "time".into()],
        columns: vec![column("host", text("", true), text("é", false)), column("f", float(-0.0), float(f64::INFINITY))],
    }
}

fn receipt(number: u64) -> IdempotencyRecord {
    IdempotencyRecord {
        key: format!("k{number}").into(),
        seq: SequenceNumber(number),
        time_ns: -9,
        request: Fingerprint { bytes: u64::MAX, crc: u32::MAX },
        points: number,
        rejected_points: 2,
        durability: Durability::Process,
    }
}

/// The edit that creates the table, then ones that add a file and a receipt each; receipts go after
/// a while.
fn edit(number: u64) -> ManifestEdit {
    let table = TableEdit { database: "db".into(), table: "t".into(), ..TableEdit::default() };
    let flushed = Some(SequenceNumber(number));
    if number == 0 {
        let tables = vec![TableEdit { schema: Some(schema(1)), ..table }];
        return ManifestEdit { flushed, databases_added: vec![("db".into(), -5)], tables, ..ManifestEdit::default() };
    }
    let tables = vec![TableEdit { files_added: vec![Arc::new(file(number))], ..table }];
    ManifestEdit {
        flushed,
        retentions: retentions(number),
        durabilities: durabilities(number),
        tables,
        receipts_added: vec![ReceiptsEdit { database: "db".into(), receipts: vec![receipt(number)] }],
        receipts_dropped: number.is_multiple_of(5).then(|| SequenceNumber(number - 2)),
        ..ManifestEdit::default()
    }
}

/// Sets the durability of the database for some numbers, and takes it away again.
fn durabilities(number: u64) -> Vec<DurabilityEdit> {
    let durability = number.is_multiple_of(2).then_some(Durability::Memory);
    let edit = DurabilityEdit { database: "db".into(), durability };
    if number.is_multiple_of(3) { Vec::new() } else { vec![edit] }
}

/// Sets, for some numbers, the retention of the table or its database, and takes it away again.
fn retentions(number: u64) -> Vec<RetentionEdit> {
    let table = number.is_multiple_of(2).then(|| "t".to_owned());
    let retention_ns = Some(number).filter(|number| !number.is_multiple_of(5));
    let edit = RetentionEdit { database: "db".into(), table, retention_ns };
    if number.is_multiple_of(3) { Vec::new() } else { vec![edit] }
}

/// A stream with the genesis commit and `edits` more; returns the state after each number.
fn stream(vfs: &At, edits: u64) -> Vec<ManifestState> {
    let mut manifest = vfs.open().unwrap();
    let mut states = vec![ManifestState::default(), manifest.state().clone()];
    for number in 0..edits {
        manifest.commit(edit(number)).unwrap();
        states.push(manifest.state().clone());
    }
    states
}

fn flip(vfs: &At, path: &Path, offset: u64) {
    let mut bytes = vfs.read(path);
    bytes[usize::try_from(offset).unwrap()] ^= 0x20;
    vfs.replace(path, &bytes);
}

fn numbers(vfs: &At) -> (Vec<u64>, Vec<u64>) {
    let listing = vfs.listing();
    (listing.commits, listing.snapshots)
}

fn names_of(error: &Error) -> PathBuf {
    match error {
        Error::Corrupt { path, .. } => path.clone(),
        other => panic!("{other}"),
    }
}

over_all_locations! {
    a_stream_that_was_opened_has_an_object_and_is_empty
    what_was_committed_is_there_after_opening_again
    the_payloads_are_as_documented
    snapshots_come_every_128_commits_and_the_commits_since_the_older_one_stay
    a_damaged_snapshot_costs_nothing
    after_a_damaged_snapshot_the_next_commit_writes_one_and_the_damaged_one_goes
    two_damaged_snapshots_are_an_error_that_names_the_newest
    any_damage_to_a_needed_commit_is_an_error_that_names_it
    a_gap_is_an_error_and_old_commits_are_not_needed
    a_commit_of_another_history_breaks_the_chain
    a_writer_that_was_overtaken_stops
    a_newer_version_is_neither_skipped_nor_called_damage
    edits_that_do_not_fit_are_refused_and_change_nothing
    a_commit_is_as_large_as_its_edit_whatever_is_live
}

#[test]
fn a_commit_in_which_any_call_fails_in_a_folder_is_whole_or_absent() {
    a_commit_in_which_any_call_fails_is_whole_or_absent(Location::Folder);
}

#[cfg(feature = "object-store")]
#[test]
fn a_commit_in_which_any_call_fails_in_a_durable_store_is_whole_or_absent() {
    a_commit_in_which_any_call_fails_is_whole_or_absent(Location::Durable);
}

#[test]
fn no_acknowledged_commit_is_lost_from_a_folder_with_the_power() {
    no_acknowledged_commit_is_lost_with_the_power(Location::Folder);
}

#[cfg(feature = "object-store")]
#[test]
fn no_acknowledged_commit_is_lost_from_a_durable_store_with_the_power() {
    no_acknowledged_commit_is_lost_with_the_power(Location::Durable);
}

fn a_stream_that_was_opened_has_an_object_and_is_empty(location: Location) {
    let vfs = location.fresh();
    assert_eq!(*vfs.open().unwrap().state(), ManifestState::default());
    assert_eq!(numbers(&vfs), (vec![1], vec![]));
    assert_eq!(*vfs.open().unwrap().state(), ManifestState::default());
    assert_eq!(numbers(&vfs), (vec![1], vec![]));
}

fn what_was_committed_is_there_after_opening_again(location: Location) {
    let vfs = location.fresh();
    for edits in [0, 1, 126, 127, 128, 129, 255, 256, 383, 390] {
        let vfs = vfs.fork();
        let states = stream(&vfs, edits);
        assert_eq!(Some(vfs.open().unwrap().state()), states.last(), "{edits} edits");
    }
}

fn the_payloads_are_as_documented(location: Location) {
    let file = serde_json::json!({
        "path": "data/db/t/day=2026-01-31/3.parquet", "bytes": u64::MAX - 3, "crc32c": u32::MAX, "rows": 3,
        "tail": {"bytes": 3, "crc32c": u32::MAX},
        "min_time": i64::MIN, "max_time": i64::MAX, "min_seq": 3, "max_seq": 3, "late": false,
        "sorted_by": ["host", "time"],
        "columns": [
            {
                "name": "host", "null_count": 3,
                "min": {"Text": {"value": "", "exact": true}}, "max": {"Text": {"value": "é", "exact": false}},
            },
            {"name": "f", "null_count": 3, "min": {"Float": -0.0}, "max": null},
        ],
    });
    let column = serde_json::json!({"name": "c0", "type": "float64"});
    let schema = serde_json::json!({"database": "db", "table": "t", "keyed": true, "columns": [column]});
    let mut added = edit(3);
    added.receipts_dropped = Some(SequenceNumber(1));
    let receipt = serde_json::json!(["k3", 3, -9, u64::MAX, u32::MAX, 3, 2, "process"]);
    added.durabilities = vec![DurabilityEdit { database: "db".into(), durability: Some(Durability::Process) }];
    // JSON has no infinity.
    Arc::make_mut(&mut added.tables[0].files_added[0]).columns[1].max = None;
    added.retentions = [None, Some("t")]
        .map(|table| RetentionEdit {
            database: "db".into(),
            table: table.map(Into::into),
            retention_ns: table.map_or(Some(9), |_| Some(7)),
        })
        .to_vec();
    let vfs = location.fresh();
    let mut manifest = vfs.open().unwrap();
    manifest.commit(edit(0)).unwrap();
    manifest.commit(added).unwrap();
    manifest.write_snapshot().unwrap();
    let cases = [
        (ObjectId::commit(1), serde_json::json!({})),
        (
            ObjectId::commit(2),
            serde_json::json!({
                "flushed": 0, "databases_added": [["db", -5]],
                "tables": [{"database": "db", "table": "t", "schema": schema}],
            }),
        ),
        (
            ObjectId::commit(3),
            serde_json::json!({
                "flushed": 3,
                "retentions": [
                    {"database": "db", "retention_ns": 9}, {"database": "db", "table": "t", "retention_ns": 7},
                ],
                "durabilities": [{"database": "db", "durability": "process"}],
                "tables": [{"database": "db", "table": "t", "files_added": [file]}],
                "receipts_added": [{"database": "db", "receipts": [receipt]}], "receipts_dropped": 1,
            }),
        ),
        (
            ObjectId::snapshot(3),
            serde_json::json!({
                "flushed": 3,
                "databases": {"db": {
                    "created_ns": -5, "retention_ns": 9, "durability": "process",
                    "tables": {"t": {"schema": schema, "retention_ns": 7, "files": [file]}},
                    "receipts": [receipt],
                }},
            }),
        ),
    ];
    for (id, expected) in cases {
        let payload = vfs.read(&path(id)).split_off(48);
        let found: serde_json::Value = rmp_serde::from_slice(&payload).unwrap();
        assert_eq!(found, expected, "{id:?}");
    }
}

fn snapshots_come_every_128_commits_and_the_commits_since_the_older_one_stay(location: Location) {
    let cases = [
        (126, 1..=127, vec![]),
        (127, 1..=128, vec![128]),
        (254, 1..=255, vec![128]),
        (255, 129..=256, vec![128, 256]),
        (300, 129..=301, vec![128, 256]),
        (383, 257..=384, vec![256, 384]),
    ];
    for (edits, commits, snapshots) in cases {
        let vfs = location.fresh();
        stream(&vfs, edits);
        assert_eq!(numbers(&vfs), (commits.collect(), snapshots), "{edits} edits");
    }
}

fn a_damaged_snapshot_costs_nothing(location: Location) {
    for edits in [127, 130, 255, 300] {
        let vfs = location.fresh();
        let states = stream(&vfs, edits);
        let (_, snapshots) = numbers(&vfs);
        let newest = path(ObjectId::snapshot(*snapshots.last().unwrap()));
        let len = vfs.read(&newest).len() as u64;
        for offset in [0, 8, 12, 16, 24, 28, 32, 40, 44, 48, len / 2, len - 1] {
            let vfs = vfs.fork();
            flip(&vfs, &newest, offset);
            assert_eq!(Some(vfs.open().unwrap().state()), states.last(), "{edits} edits, byte {offset}");
        }
    }
}

fn after_a_damaged_snapshot_the_next_commit_writes_one_and_the_damaged_one_goes(location: Location) {
    let vfs = location.fresh();
    stream(&vfs, 300);
    flip(&vfs, &path(ObjectId::snapshot(256)), 60);
    let mut manifest = vfs.open().unwrap();
    assert_eq!(numbers(&vfs), ((129..=301).collect(), vec![128, 256]));
    manifest.commit(edit(300)).unwrap();
    assert_eq!(numbers(&vfs), ((129..=302).collect(), vec![128, 302]));
    assert_eq!(vfs.open().unwrap().state(), manifest.state());
}

fn two_damaged_snapshots_are_an_error_that_names_the_newest(location: Location) {
    let vfs = location.fresh();
    stream(&vfs, 300);
    for number in [128, 256] {
        flip(&vfs, &path(ObjectId::snapshot(number)), 60);
    }
    assert_eq!(names_of(&vfs.open().unwrap_err()), path(ObjectId::snapshot(256)));
}

fn any_damage_to_a_needed_commit_is_an_error_that_names_it(location: Location) {
    let vfs = location.fresh();
    stream(&vfs, 4);
    for number in 1..=5 {
        let path = path(ObjectId::commit(number));
        let len = vfs.read(&path).len() as u64;
        for offset in 0..len {
            let vfs = vfs.fork();
            flip(&vfs, &path, offset);
            assert_eq!(names_of(&vfs.open().unwrap_err()), path, "byte {offset}");
        }
        for len in [0, 1, len / 2, len - 1] {
            let vfs = vfs.fork();
            vfs.replace(&path, &vfs.read(&path)[..usize::try_from(len).unwrap()]);
            assert_eq!(names_of(&vfs.open().unwrap_err()), path, "cut to {len} bytes");
        }
    }
}

fn a_gap_is_an_error_and_old_commits_are_not_needed(location: Location) {
    let vfs = location.fresh();
    let states = stream(&vfs, 200);
    for number in [129, 150, 200] {
        let vfs = vfs.fork();
        vfs.remove(&path(ObjectId::commit(number)));
        assert_eq!(names_of(&vfs.open().unwrap_err()), path(ObjectId::commit(number)));
    }
    for number in 1..=128 {
        vfs.remove(&path(ObjectId::commit(number)));
    }
    assert_eq!(Some(vfs.open().unwrap().state()), states.last());
}

fn a_commit_of_another_history_breaks_the_chain(location: Location) {
    let (one, other) = (location.fresh(), location.fresh());
    stream(&one, 4);
    let mut manifest = other.open().unwrap();
    manifest.commit(ManifestEdit { databases_added: vec![("db".into(), 7)], ..edit(0) }).unwrap();
    manifest.commit(edit(1)).unwrap();
    let id = ObjectId::commit(3);
    one.remove(&path(id));
    one.replace(&path(id), &other.read(&path(id)));
    let error = one.open().unwrap_err();
    assert!(matches!(&error, Error::Corrupt { offset: PREVIOUS_OFFSET, .. }), "{error}");
    assert_eq!(names_of(&error), path(id));
}

fn a_writer_that_was_overtaken_stops(location: Location) {
    let vfs = location.fresh();
    let mut first = vfs.open().unwrap();
    let mut second = vfs.open().unwrap();
    first.commit(edit(0)).unwrap();
    let error = second.commit(ManifestEdit { databases_added: vec![("db".into(), 9)], ..edit(0) }).unwrap_err();
    let expected = "the engine is closed to writes: another writer has written ";
    let expected = format!("{expected}{}", path(ObjectId::commit(2)).display());
    assert_eq!(error.to_string(), expected);
    assert_eq!(*second.state(), ManifestState::default());
    assert_eq!(second.commit(edit(0)).unwrap_err().to_string(), expected);
    first.commit(edit(1)).unwrap();
    assert_eq!(vfs.open().unwrap().state(), first.state());
    assert!(vfs.listing().temporary.is_empty());
}

fn a_newer_version_is_neither_skipped_nor_called_damage(location: Location) {
    let vfs = location.fresh();
    stream(&vfs, 127);
    let snapshot = path(ObjectId::snapshot(128));
    let mut bytes = vfs.read(&snapshot);
    let newer = NEWEST_VERSION + 1;
    bytes[8..12].copy_from_slice(&newer.to_le_bytes());
    let checksum = crc32c::crc32c(&bytes[..44]);
    bytes[44..48].copy_from_slice(&checksum.to_le_bytes());
    vfs.replace(&snapshot, &bytes);
    assert!(matches!(vfs.open().unwrap_err(), Error::NewerFormat { found, .. } if found == newer));
}

#[test]
fn temporary_files_are_removed_and_foreign_ones_left_alone() {
    let vfs = Location::Folder.fresh();
    let states = stream(&vfs, 3);
    let ours = ["00000000000000000005.1.tmp", "00000000000000000009.77.tmp", "00000000000000000128.snapshot.2.tmp"];
    let foreign = ["notes.txt", "00000000000000000005.tmp", "x.1.tmp", "00000000000000000005.bak"];
    for name in ours.iter().chain(&foreign) {
        vfs.fs.create_new(&Path::new(DIR).join(name)).unwrap();
    }
    let mut manifest = vfs.open().unwrap();
    assert_eq!(Some(manifest.state()), states.last());
    manifest.commit(edit(3)).unwrap();
    let left: Vec<_> = vfs.fs.list(Path::new(DIR)).unwrap().into_iter().map(|entry| entry.name).collect();
    assert!(ours.iter().all(|name| !left.contains(&(*name).to_owned())), "{left:?}");
    assert!(foreign.iter().all(|name| left.contains(&(*name).to_owned())), "{left:?}");
}

fn edits_that_do_not_fit_are_refused_and_change_nothing(location: Location) {
    let vfs = location.fresh();
    let mut manifest = vfs.open().unwrap();
    (0..2).for_each(|number| manifest.commit(edit(number)).unwrap());
    let before = manifest.state().clone();
    let table = || TableEdit { database: "db".into(), table: "t".into(), ..TableEdit::default() };
    let of = |tables| ManifestEdit { tables, ..ManifestEdit::default() };
    let databases = |names: &[&str]| ManifestEdit {
        databases_added: names.iter().map(|name| ((*name).to_owned(), 0)).collect(),
        ..ManifestEdit::default()
    };
    let other_column = |schema: Arc<TableSchema>| {
        let mut schema = TableSchema::clone(&schema);
        schema.columns[0].data_type = DataType::Int64;
        Some(Arc::new(schema))
    };
    let at = |path: &str| DataFile { path: path.into(), ..file(9) };
    let removed =
        |paths: &[&str]| TableEdit { files_removed: paths.iter().map(|p| (*p).to_owned()).collect(), ..table() };
    let retention = |database: &str, table: Option<&str>, retention_ns| ManifestEdit {
        retentions: vec![RetentionEdit { database: database.into(), table: table.map(Into::into), retention_ns }],
        ..ManifestEdit::default()
    };
    let durability = |database: &str| ManifestEdit {
        durabilities: vec![DurabilityEdit { database: database.into(), durability: None }],
        ..ManifestEdit::default()
    };
    let receipts = |database: &str, numbers: &[u64]| ManifestEdit {
        flushed: Some(SequenceNumber(9)),
        receipts_added: vec![ReceiptsEdit {
            database: database.into(),
            receipts: numbers.iter().copied().map(receipt).collect(),
        }],
        ..ManifestEdit::default()
    };
    let path = file(1).path;
    let adds = |files: Vec<DataFile>| files.into_iter().map(Arc::new).collect();
    let cases = [
        ("flushed", ManifestEdit { flushed: Some(SequenceNumber(0)), ..ManifestEdit::default() }),
        ("added twice", databases(&["db"])),
        ("added twice", databases(&["new", "new"])),
        ("no such database", of(vec![TableEdit { database: "nowhere".into(), ..table() }])),
        ("named twice", of(vec![table(), table()])),
        ("no schema", of(vec![TableEdit { table: "new".into(), ..table() }])),
        ("a schema of table", of(vec![TableEdit { table: "new".into(), schema: Some(schema(1)), ..table() }])),
        ("grow", of(vec![TableEdit { schema: Some(schema(0)), ..table() }])),
        ("grow", of(vec![TableEdit { schema: other_column(schema(1)), ..table() }])),
        ("removed and not there", of(vec![removed(&["data/db/t/none"])])),
        ("removed and not there", of(vec![removed(&[&path, &path])])),
        ("added twice", of(vec![TableEdit { files_added: adds(vec![file(1)]), ..table() }])),
        ("added twice", of(vec![TableEdit { files_added: adds(vec![file(2), file(2)]), ..table() }])),
        ("added twice", of(vec![TableEdit { files_added: adds(vec![file(1)]), ..removed(&[&path]) }])),
        ("no path", of(vec![TableEdit { files_added: adds(vec![at("data/../../x")]), ..table() }])),
        ("no path", of(vec![TableEdit { files_added: adds(vec![at("/etc/passwd")]), ..table() }])),
        ("no path", of(vec![TableEdit { files_added: adds(vec![at("")]), ..table() }])),
        ("not there", retention("nowhere", None, Some(1))),
        ("not there", retention("db", Some("none"), None)),
        ("nothing at all", retention("db", Some("t"), Some(0))),
        ("which is not there", durability("nowhere")),
        ("which is not there", receipts("nowhere", &[1])),
        ("out of order", receipts("db", &[9, 8])),
        ("out of order", receipts("db", &[0])),
        ("not yet flushed", receipts("db", &[10])),
    ];
    for (reason, edit) in cases {
        let error = manifest.commit(edit).unwrap_err();
        assert!(matches!(error, Error::Internal { .. }) && error.to_string().contains(reason), "{reason}: {error}");
        assert_eq!(*manifest.state(), before, "{reason}");
    }
    manifest.commit(of(vec![TableEdit { schema: Some(schema(3)), files_removed: vec![path], ..table() }])).unwrap();
    assert_eq!(vfs.open().unwrap().state(), manifest.state());
}

fn a_commit_is_as_large_as_its_edit_whatever_is_live(location: Location) {
    let size = |edits: u64| {
        let vfs = location.fresh();
        let mut manifest = vfs.open().unwrap();
        manifest.commit(edit(0)).unwrap();
        let many = (1..=edits).flat_map(|number| edit(1_000 + number).tables.remove(0).files_added).collect();
        let table = TableEdit { files_added: many, ..edit(1).tables.remove(0) };
        manifest.commit(ManifestEdit { tables: vec![table], ..ManifestEdit::default() }).unwrap();
        manifest.commit(edit(1)).unwrap();
        vfs.read(&path(ObjectId::commit(4))).len()
    };
    assert_eq!(size(1), size(2_000));
}

/// Any one call fails, once or for ever: `Ok` means durable, an error means before or after, and a
/// manifest that stays open knows which.
fn a_commit_in_which_any_call_fails_is_whole_or_absent(location: Location) {
    let before_commit = |snapshot_is_due: bool| {
        let vfs = location.fresh();
        stream(&vfs, if snapshot_is_due { 126 } else { 5 });
        vfs
    };
    for (snapshot_is_due, next) in [(false, 5), (true, 126)] {
        let start = before_commit(snapshot_is_due).fs.current();
        for (nth, from_then_on) in (1..30).flat_map(|nth| [(nth, false), (nth, true)]) {
            for error in [ErrorKind::StorageFull, ErrorKind::Other] {
                let memory = location.on(&start);
                let faults = FaultFs::new(Arc::new(memory.fs.clone()));
                let mut manifest = memory.open_through(&(Arc::new(faults.clone()) as _)).unwrap();
                let before = manifest.state().clone();
                let mut after = before.clone();
                after.apply(edit(next));
                let fault = Fault::nth(nth, error);
                faults.set(if from_then_on { fault.from_then_on() } else { fault });
                let result = manifest.commit(edit(next));
                faults.clear();
                let case = format!("call {nth}, for ever {from_then_on}, {error}: {result:?}");
                assert_eq!(*manifest.state(), if result.is_ok() { after.clone() } else { before.clone() }, "{case}");
                let reopened = memory.open().unwrap();
                assert!([&before, &after].contains(&reopened.state()), "{case}");
                assert!(result.is_err() || *reopened.state() == after, "{case}");
                let closed = manifest.closed.is_some();
                assert!(closed || reopened.state() == manifest.state(), "{case}");
                let again = manifest.commit(if result.is_ok() { edit(next + 1) } else { edit(next) });
                // A store of ours that could not sync a snapshot takes no more objects.
                let store_closed = location != Location::Folder && result.is_ok() && snapshot_is_due;
                assert!(again.is_err() == closed || store_closed, "{case}, then {again:?}");
                assert!(!closed || matches!(again, Err(Error::Closed { .. })), "{case}, then {again:?}");
                assert!(closed || memory.open().unwrap().state() == manifest.state(), "{case}");
            }
        }
    }
}

#[test]
fn a_rename_that_was_done_and_failed_counts_as_done() {
    let vfs = Location::Folder.fresh();
    stream(&vfs, 1);
    let faults = FaultFs::new(Arc::new(vfs.fs.clone()));
    let mut manifest = vfs.open_through(&(Arc::new(faults.clone()) as _)).unwrap();
    // The other writer is this one: the same bytes under the same number.
    let mut twin = vfs.open().unwrap();
    twin.commit(edit(1)).unwrap();
    manifest.commit(edit(1)).unwrap();
    assert_eq!(faults.calls(Operation::RenameNew), 1);
    assert_eq!(manifest.state(), twin.state());
    assert!(vfs.listing().temporary.is_empty());
}

/// Cuts the power after every operation around the first commits and around both snapshots.
fn no_acknowledged_commit_is_lost_with_the_power(location: Location) {
    for (skip, edits) in [(0, 3), (126, 2), (254, 2)] {
        let setup = location.fresh();
        let mut states = if skip == 0 { vec![ManifestState::default(); 2] } else { stream(&setup, skip) };
        let vfs = if skip == 0 { setup } else { setup.fork() };
        let first = states.len() - 1;
        let mut acknowledged = vec![];
        let mut manifest = vfs.open().unwrap();
        for number in skip..skip + edits {
            manifest.commit(edit(number)).unwrap();
            states.push(manifest.state().clone());
            acknowledged.push(vfs.fs.operations());
        }
        for cut in vfs.fs.power_cuts() {
            let done = acknowledged.iter().filter(|operations| **operations <= cut.operations()).count();
            // Long streams take long to open: the states in which all, nothing or the names alone
            // reached the disk.
            for image in cut.images(11, if skip == 0 { 12 } else { 3 }) {
                let reopened = location.on(&image).open().unwrap();
                let allowed = &states[first + done..states.len().min(first + done + 2)];
                let case = format!("{skip} edits, then {done}, operation {}", cut.operations());
                assert!(allowed.contains(reopened.state()), "{case}");
            }
        }
    }
}

/// A table of the model: columns, and paths of live files.
type ModelTable = (usize, Vec<u64>);

#[derive(Debug, Clone)]
enum Step {
    Flushed(u64),
    AddDatabase(u8),
    /// Adds columns and files and removes files, by draw, in one table.
    Table {
        database: u8,
        table: u8,
        columns: usize,
        files: usize,
        removed: Vec<prop::sample::Index>,
    },
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let removed = prop::collection::vec(any::<prop::sample::Index>(), 0..3);
    let step = prop_oneof![
        1 => (0..5_u64).prop_map(Step::Flushed),
        2 => (0..3_u8).prop_map(Step::AddDatabase),
        8 => (0..3_u8, 0..3_u8, 0..3_usize, 0..4_usize, removed).prop_map(|(database, table, columns, files, removed)| {
            Step::Table { database, table, columns, files, removed }
        }),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_edits_give_what_a_simple_model_gives(steps in steps()) {
        let vfs = Location::Folder.fresh();
        let mut manifest = vfs.open().unwrap();
        let mut flushed = 0;
        let mut model: BTreeMap<String, BTreeMap<String, ModelTable>> = BTreeMap::new();
        let mut next_file = 0;
        for step in steps {
            let mut edit = ManifestEdit::default();
            match step {
                Step::Reopen => manifest = vfs.open().unwrap(),
                Step::Flushed(more) => {
                    flushed += more;
                    edit.flushed = Some(SequenceNumber(flushed));
                }
                Step::AddDatabase(database) => {
                    let name = format!("db{database}");
                    if let Entry::Vacant(entry) = model.entry(name.clone()) {
                        edit.databases_added.push((name, i64::from(database)));
                        entry.insert(BTreeMap::new());
                    }
                }
                Step::Table { database, table, columns, files, removed } => {
                    let (database, table) = (format!("db{database}"), format!("t{table}"));
                    let Some(tables) = model.get_mut(&database) else { continue };
                    let is_new = !tables.contains_key(&table);
                    let (width, live) = tables.entry(table.clone()).or_default();
                    *width += columns;
                    let mut change = TableEdit { database: database.clone(), table: table.clone(), ..TableEdit::default() };
                    if columns > 0 || is_new {
                        let mut grown = TableSchema::clone(&schema(*width));
                        grown.database = database.into();
                        grown.table = table.into();
                        change.schema = Some(Arc::new(grown));
                    }
                    for index in removed {
                        if !live.is_empty() {
                            let id = live.remove(index.index(live.len()));
                            change.files_removed.push(file(id).path);
                        }
                    }
                    for id in next_file..next_file + files as u64 {
                        live.push(id);
                        change.files_added.push(Arc::new(file(id)));
                    }
                    next_file += files as u64;
                    edit.tables.push(change);
                }
            }
            manifest.commit(edit).unwrap();
        }
        for state in [manifest.state(), vfs.open().unwrap().state()] {
            prop_assert_eq!(state.flushed, SequenceNumber(flushed));
            prop_assert_eq!(state.databases.len(), model.len());
            for (name, tables) in &model {
                let database = &state.databases[name];
                prop_assert_eq!(format!("db{}", database.created_ns), name.as_str());
                prop_assert_eq!(database.tables.len(), tables.len());
                for (table, (columns, live)) in tables {
                    let found = state.table(name, table).unwrap();
                    prop_assert_eq!(&found.schema.columns, &schema(*columns).columns);
                    let files: Vec<_> = found.files.iter().map(|file| DataFile::clone(file)).collect();
                    prop_assert_eq!(files, live.iter().map(|id| file(*id)).collect::<Vec<_>>());
                }
            }
        }
    }
}
