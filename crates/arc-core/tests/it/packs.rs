//! Tables with little to flush share a file, the pack, which lives as long as one of them needs it.

use std::{
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use arc_core::{
    CompactionReport, Comparison, Engine, EngineBuilder, ErrorKind, Options, Predicate, RepairStep, datafile::DataFile,
    plan_repair, repair, restore, store::ObjectStorage, verify, verify_in_store,
};
use arrow::record_batch::RecordBatchReader;
use bytes::Bytes;
use object_store::{ObjectStore, memory::InMemory};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::support::{HandClock, number, quiet, shown, write};

const DAY_NS: i64 = 86_400_000_000_000;
const TABLES: i64 = 5;

/// An engine at noon of the first day, for which little is up to 64 KiB, three tables are many, and
/// two files enough to be merged.
fn builder(path: &Path, clock: &HandClock) -> EngineBuilder {
    let mut options = Options::default();
    (options.pack_tables, options.pack_bytes) = (3, 64 << 10);
    (options.compaction_files, options.compaction_grace, options.history) = (2, Duration::ZERO, Duration::ZERO);
    options.compaction_quiet = Duration::from_secs(60);
    let builder = quiet(path).options(options).compaction(false).flush_after(Duration::from_secs(1 << 30));
    builder.clock(Arc::new(clock.clone()))
}

fn open(path: &Path) -> (Engine, HandClock) {
    let clock = HandClock::default();
    clock.set(DAY_NS / 2);
    (builder(path, &clock).open().unwrap(), clock)
}

/// Writes a point to each of the small tables, and 3,000 to a large one; flushes them.
fn flush(engine: &Engine, n: i64) -> Vec<String> {
    let small: String = (0..TABLES).map(|table| format!("small{table},host=h{n} n={n}i {n}\n")).collect();
    let large: String = (0..3_000).map(|row| format!("large,host=h{row} n={n}i,text=\"{row}\" {n}\n")).collect();
    write(engine, "d", &(small + &large));
    engine.flush().unwrap().files
}

/// The files below a folder, by the end of their names.
fn files(dir: &Path, suffix: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, suffix));
        } else if path.to_str().unwrap().ends_with(suffix) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn count(engine: &Engine, table: i64) -> i64 {
    number(engine, "d", &format!("SELECT count(*) FROM small{table}"))
}

fn rows_of(engine: &Engine, table: i64) -> Vec<String> {
    let shown = shown(engine, "d", &format!("SELECT host, CAST(time AS BIGINT) AS time, n FROM small{table}"));
    shown.lines().filter(|line| line.contains("h1")).map(str::to_owned).collect()
}

/// The rows of the small tables, as text.
fn rows(engine: &Engine) -> String {
    let table = |table| format!("SELECT {table} AS t, host, CAST(time AS BIGINT) AS time, n FROM small{table}");
    let all = (0..TABLES).map(table).collect::<Vec<_>>().join(" UNION ALL ");
    shown(engine, "d", &format!("{all} ORDER BY t, time"))
}

/// Compacts until nothing reads what was replaced: the caller that planned a query may hold it for
/// a moment more.
fn let_go(engine: &Engine) {
    while engine.stats().retired_files > 0 {
        engine.compact().unwrap();
    }
}

fn compact_all(engine: &Engine) -> CompactionReport {
    let first = engine.compact().unwrap();
    let_go(engine);
    first
}

fn part(bytes: &[u8], range: Range<u64>) -> Vec<u8> {
    bytes[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()].to_vec()
}

#[test]
fn small_tables_share_a_file_of_whole_parquet_files_and_large_ones_have_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = open(dir.path());
    assert_eq!(flush(&engine, 1).len(), 6);
    let (packs, own) = (files(dir.path(), ".pack"), files(dir.path(), ".parquet"));
    assert_eq!((packs.len(), own.len()), (1, 1));
    assert!(own[0].to_str().unwrap().contains("data/d/large/day=1970-01-01/"), "{own:?}");
    for table in 0..TABLES {
        let file = engine.data_files("d", &format!("small{table}")).unwrap().remove(0);
        let (pack, range) = file.packed().unwrap();
        assert_eq!(dir.path().join(pack), packs[0]);
        let bytes = std::fs::read(&packs[0]).unwrap();
        let bytes = bytes[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()].to_vec();
        assert_eq!((bytes.len() as u64, bytes.get(..4)), (file.bytes, Some(b"PAR1".as_slice())));
        let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes)).unwrap().build().unwrap();
        assert_eq!(reader.schema().field(0).name(), "time");
        assert_eq!(reader.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 1);
    }
    let before = rows(&engine);
    assert_eq!(before.lines().count(), 4 + 5, "{before}");
    assert_eq!(number(&engine, "d", "SELECT count(*) FROM large"), 3_000);
    // Two tables are not many.
    write(&engine, "d", "small0 n=2i 2\nsmall1 n=2i 2\n");
    engine.flush().unwrap();
    assert_eq!((files(dir.path(), ".pack").len(), files(dir.path(), ".parquet").len()), (1, 3));
    drop(engine);
    let report = verify(dir.path()).unwrap();
    assert!(report.findings.is_empty() && report.totals.files == 8, "{report}");
    let (engine, _) = open(dir.path());
    assert_eq!((0..TABLES).map(|table| count(&engine, table)).collect::<Vec<_>>(), [2, 2, 1, 1, 1]);
}

#[test]
fn a_pack_says_whose_data_files_it_holds() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = open(dir.path());
    flush(&engine, 1);
    let bytes = std::fs::read(&files(dir.path(), ".pack")[0]).unwrap();
    assert!(bytes.starts_with(b"ARCPACK1") && bytes.ends_with(b"ARCPACK1"));
    let end = bytes.len() - 16;
    let length = usize::try_from(u64::from_le_bytes(bytes[end..end + 8].try_into().unwrap())).unwrap();
    let said = std::str::from_utf8(&bytes[end - length..end]).unwrap();
    let mut found: Vec<&str> = said.lines().collect();
    found.sort_unstable();
    let known = (0..TABLES).map(|table| {
        let file = engine.data_files("d", &format!("small{table}")).unwrap().remove(0);
        let range = file.packed().unwrap().1;
        let (offset, bytes) = (range.start, file.bytes);
        format!(
            "{{\"database\":\"d\",\"table\":\"small{table}\",\"day\":\"1970-01-01\",\"offset\":{offset},\"bytes\":{bytes}}}"
        )
    });
    assert_eq!(found, known.collect::<Vec<_>>());
}

#[test]
fn packed_files_are_merged_into_a_newer_pack_and_have_files_of_their_own_when_their_day_is_over() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, clock) = open(dir.path());
    for n in 1..=2 {
        flush(&engine, n);
    }
    let before = rows(&engine);
    assert_eq!(files(dir.path(), ".pack").len(), 2);
    let commits = files(&dir.path().join("meta"), "").len();
    let report = engine.compact().unwrap();
    assert_eq!((report.merges, report.files_in, report.files_out), (6, 12, 6), "{report:?}");
    assert_eq!(files(&dir.path().join("meta"), "").len(), commits + 1, "all of it by one commit");
    assert_eq!(rows(&engine), before);
    let_go(&engine);
    let packs = files(dir.path(), ".pack");
    assert_eq!((packs.len(), files(dir.path(), ".parquet").len()), (1, 1), "the packs of the flushes are gone");
    assert_eq!(engine.compact().unwrap(), Default::default(), "there is no more to do");
    flush(&engine, 3);
    // A file that is alone in its day moves as well.
    write(&engine, "d", &format!("small0 n=9i {DAY_NS}\nsmall1 n=9i {DAY_NS}\nsmall2 n=9i {DAY_NS}\n"));
    engine.flush().unwrap();
    clock.set(3 * DAY_NS);
    let before = rows(&engine);
    engine.compact().unwrap();
    assert_eq!(rows(&engine), before);
    let_go(&engine);
    assert_eq!((files(dir.path(), ".pack").len(), files(dir.path(), ".parquet").len()), (0, 5 + 3 + 1));
    assert!(!dir.path().join("data/_packs").exists(), "an empty folder goes");
    assert_eq!(engine.compact().unwrap(), Default::default(), "and that is the end of it");
    drop(engine);
    let report = verify(dir.path()).unwrap();
    assert!(report.findings.is_empty(), "{report}");
}

#[test]
fn a_pack_stays_while_one_data_file_of_it_is_live_or_read() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = open(dir.path());
    flush(&engine, 1);
    let view = engine.view("d", "small4").unwrap();
    engine.drop_table("d", "small0").unwrap();
    engine.delete("d", "small1", &Predicate::True).unwrap();
    engine.flush().unwrap();
    engine.compact().unwrap();
    assert_eq!(files(dir.path(), ".pack").len(), 1);
    assert!(engine.data_files("d", "small1").unwrap().is_empty() && count(&engine, 2) == 1);
    engine.delete("d", "small2", &Predicate::compare("host", Comparison::Equal, "h1")).unwrap();
    engine.drop_table("d", "small4").unwrap();
    let retention = Some(Duration::from_secs(1));
    engine.set_retention("d", Some("small3"), retention).unwrap();
    engine.flush().unwrap();
    engine.compact().unwrap();
    assert_eq!(files(dir.path(), ".pack").len(), 1, "the view has it");
    drop(view);
    let_go(&engine);
    assert!(files(dir.path(), ".pack").is_empty());
    drop(engine);
    let report = verify(dir.path()).unwrap();
    assert!(report.findings.is_empty() && report.totals.files == 1, "{report}");
}

/// The data files of the small tables, and their bytes on disk.
fn live(engine: &Engine, dir: &Path) -> Vec<(DataFile, Vec<u8>)> {
    let files = (0..TABLES).flat_map(|table| engine.data_files("d", &format!("small{table}")).unwrap());
    let read = |file: Arc<DataFile>| {
        // A caller that holds the file itself reads it.
        let file = DataFile::clone(&file);
        let bytes = match file.packed() {
            Some((pack, range)) => part(&std::fs::read(dir.join(pack)).unwrap(), range),
            None => std::fs::read(dir.join(&file.path)).unwrap(),
        };
        (file, bytes)
    };
    files.map(read).collect()
}

#[test]
fn what_is_left_of_a_sparse_pack_moves_as_it_is_into_another_so_that_the_pack_goes() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = open(dir.path());
    flush(&engine, 1);
    let pack = files(dir.path(), ".pack").remove(0);
    // Two of five are left, and no merge is due.
    for table in ["small0", "small2", "small3"] {
        engine.drop_table("d", table).unwrap();
        engine.flush().unwrap();
        assert_eq!(compact_all(&engine).moved_files, 0, "{table}");
        assert_eq!(files(dir.path(), ".pack"), std::slice::from_ref(&pack));
    }
    let before: Vec<_> = [1, 4].iter().flat_map(|table| rows_of(&engine, *table)).collect();
    let small4 = || DataFile::clone(&engine.data_files("d", "small4").unwrap()[0]);
    let old = small4();
    let bytes = std::fs::read(&pack).unwrap();
    engine.drop_table("d", "small1").unwrap();
    engine.flush().unwrap();
    let report = compact_all(&engine);
    assert_eq!((report.moved_files, report.merges, engine.stats().moved_files), (1, 0, 1), "{report:?}");
    let moved = small4();
    assert_eq!(DataFile { path: old.path.clone(), ..moved.clone() }, old, "it is the same elsewhere");
    let left = files(dir.path(), ".pack");
    assert!(left.len() == 1 && left[0] != pack, "{left:?}");
    let (range, at) = (old.packed().unwrap().1, moved.packed().unwrap().1);
    assert_eq!(part(&std::fs::read(&left[0]).unwrap(), at), part(&bytes, range));
    assert_eq!(rows_of(&engine, 4), before[1..]);
    assert_eq!(compact_all(&engine), Default::default(), "a pack of one file is no sparse one");
    engine.close().unwrap();
    let report = verify(dir.path()).unwrap();
    assert!(report.findings.is_empty(), "{report}");
}

#[test]
fn unpacking_gives_each_packed_file_a_file_of_its_own_with_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, clock) = open(dir.path());
    flush(&engine, 1);
    flush(&engine, 2);
    let (before, old) = (rows(&engine), live(&engine, dir.path()));
    let report = engine.unpack().unwrap();
    assert_eq!((report.moved_files, report.merges), (10, 0), "{report:?}");
    let new = live(&engine, dir.path());
    for ((old, old_bytes), (new, new_bytes)) in old.iter().zip(&new) {
        assert!(new.packed().is_none() && new.path.contains("/day=1970-01-01/"), "{}", new.path);
        assert_eq!((&DataFile { path: old.path.clone(), ..new.clone() }, new_bytes), (old, old_bytes));
    }
    assert_eq!((old.len(), new.len(), rows(&engine)), (10, 10, before.clone()));
    assert_eq!(engine.unpack().unwrap().moved_files, 0);
    // They are merged as others are.
    assert_eq!(compact_all(&engine).files_in, 12);
    assert_eq!((files(dir.path(), ".pack").len(), files(dir.path(), ".parquet").len()), (0, 6));
    clock.set(3 * DAY_NS);
    engine.compact().unwrap();
    assert_eq!(rows(&engine), before);
    engine.close().unwrap();
    assert!(matches!(engine.unpack().unwrap_err().kind(), ErrorKind::Closed));
    let report = verify(dir.path()).unwrap();
    assert!(report.findings.is_empty(), "{report}");
}

#[test]
fn where_nothing_is_to_be_packed_compaction_unpacks_what_is() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, clock) = open(dir.path());
    flush(&engine, 1);
    engine.close().unwrap();
    let mut options = Options::default();
    (options.pack_bytes, options.compaction_grace, options.history) = (0, Duration::ZERO, Duration::ZERO);
    let engine = builder(dir.path(), &clock).options(options).compaction(false).open().unwrap();
    let before = rows(&engine);
    assert_eq!(compact_all(&engine).moved_files, 5);
    assert_eq!((files(dir.path(), ".pack").len(), rows(&engine)), (0, before));
    assert_eq!(compact_all(&engine), Default::default());
}

#[test]
fn a_damaged_file_is_named_and_stays_in_its_pack_while_the_others_move() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = open(dir.path());
    flush(&engine, 1);
    let bad = engine.data_files("d", "small2").unwrap().remove(0);
    let pack = files(dir.path(), ".pack").remove(0);
    let mut bytes = std::fs::read(&pack).unwrap();
    bytes[usize::try_from(bad.packed().unwrap().1.start).unwrap() + 20] ^= 1;
    std::fs::write(&pack, &bytes).unwrap();
    let error = engine.unpack().unwrap_err();
    assert!(error.kind() == ErrorKind::Corrupt && error.to_string().contains(&bad.path), "{error}");
    let packed = live(&engine, dir.path()).into_iter().filter(|(file, _)| file.packed().is_some());
    assert_eq!(packed.map(|(file, _)| file.path).collect::<Vec<_>>(), std::slice::from_ref(&bad.path));
    assert_eq!((0..TABLES).filter(|table| *table != 2).map(|table| count(&engine, table)).sum::<i64>(), 4);
    // The rest of it is a sparse pack, which compaction would move as well; nothing of it is lost
    // meanwhile.
    assert!(engine.compact().is_err() && pack.exists());
}

#[test]
fn a_pack_that_no_manifest_names_goes_with_the_next_opening() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = open(dir.path());
    flush(&engine, 1);
    drop(engine);
    let pack = files(dir.path(), ".pack").remove(0);
    let orphan = pack.with_file_name("01JCVV2Y7K3M4N5P6Q7R8S9T0V.pack");
    let unfinished = pack.with_file_name("01JCVV2Y7K3M4N5P6Q7R8S9T0W.pack.tmp");
    let foreign = pack.with_file_name("mine.pack");
    for copy in [&orphan, &unfinished, &foreign] {
        std::fs::copy(&pack, copy).unwrap();
    }
    assert_eq!(verify(dir.path()).unwrap().findings.len(), 2);
    let (engine, _) = open(dir.path());
    assert!(pack.exists() && foreign.exists() && !orphan.exists() && !unfinished.exists());
    assert_eq!(count(&engine, 3), 1);
}

#[test]
fn damage_to_one_data_file_of_a_pack_costs_its_rows_and_no_others() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = open(dir.path());
    flush(&engine, 1);
    let bad = engine.data_files("d", "small2").unwrap().remove(0);
    drop(engine);
    let pack = files(dir.path(), ".pack").remove(0);
    let mut bytes = std::fs::read(&pack).unwrap();
    let start = usize::try_from(bad.packed().unwrap().1.start).unwrap();
    let damaged = {
        bytes[start + 20] ^= 1;
        bytes[start..start + usize::try_from(bad.bytes).unwrap()].to_vec()
    };
    std::fs::write(&pack, &bytes).unwrap();
    let report = verify(dir.path()).unwrap();
    assert_eq!(report.findings.len(), 1, "{report}");
    assert!(report.to_string().contains(&bad.path) && report.to_string().contains("crc32c"), "{report}");
    let (engine, _) = open(dir.path());
    drop(engine);
    let elsewhere = tempfile::tempdir().unwrap();
    let error = restore(dir.path(), elsewhere.path().join("restored")).unwrap_err();
    assert!(error.kind() == ErrorKind::Corrupt && error.to_string().contains(&bad.path), "{error}");
    let plan = plan_repair(dir.path()).unwrap();
    assert!(matches!(plan.steps.as_slice(), [RepairStep::DropDataFile { table, rows: 1, .. }] if table == "small2"));
    let report = repair(dir.path(), &plan).unwrap();
    assert!(report.is_clean(), "{report}");
    let lost = files(&dir.path().join("lost/data"), ".parquet");
    assert_eq!((lost.len(), std::fs::read(&lost[0]).unwrap() == damaged), (1, true));
    let (engine, _) = open(dir.path());
    assert_eq!((0..TABLES).map(|table| count(&engine, table)).collect::<Vec<_>>(), [1, 1, 0, 1, 1]);
    drop(engine);
    // Without its end, whatever lies there is gone.
    std::fs::write(&pack, &bytes[..100]).unwrap();
    let plan = plan_repair(dir.path()).unwrap();
    assert_eq!(plan.steps.len(), 4, "{plan}");
    assert!(repair(dir.path(), &plan).unwrap().is_clean());
}

#[test]
fn a_backup_brings_a_pack_once() {
    let dir = tempfile::tempdir().unwrap();
    let (data, copy) = (dir.path().join("data"), dir.path().join("copy"));
    let (engine, _) = open(&data);
    flush(&engine, 1);
    let report = engine.backup(&copy).unwrap();
    assert_eq!((report.files, report.linked_files, report.kept_files), (6, 6, 0), "{report:?}");
    flush(&engine, 2);
    let report = engine.backup(&copy).unwrap();
    assert_eq!((report.files, report.linked_files, report.kept_files), (12, 6, 6), "{report:?}");
    assert_eq!(files(&copy, ".pack").len(), 2);
    engine.compact().unwrap();
    let before = rows(&engine);
    let report = engine.backup(&copy).unwrap();
    assert_eq!((report.files, report.linked_files, report.removed_files), (6, 6, 4), "{report:?}");
    drop(engine);
    assert!(verify(&copy).unwrap().findings.is_empty());
    let restored = dir.path().join("restored");
    assert_eq!(restore(&copy, &restored).unwrap().files, 6);
    assert_eq!(files(&restored, ".pack").len(), 1);
    assert_eq!(rows(&open(&restored).0), before);
}

#[test]
fn packs_lie_in_an_object_store_like_any_object() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), HandClock::default());
    clock.set(DAY_NS / 2);
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let storage = || ObjectStorage::new(Arc::clone(&store), "some/prefix");
    let open = || builder(dir.path(), &clock).object_store(storage()).open().unwrap();
    let packs = || {
        let listed = futures::StreamExt::collect::<Vec<_>>(store.list(Some(&"some/prefix/data/_packs".into())));
        futures::executor::block_on(listed).len()
    };
    let engine = open();
    for n in 1..=2 {
        flush(&engine, n);
    }
    let before = rows(&engine);
    assert_eq!(packs(), 2);
    drop(engine);
    let engine = open();
    assert_eq!(rows(&engine), before);
    assert!(engine.verify().unwrap().findings.is_empty());
    assert_eq!(engine.compact().unwrap().merges, 6);
    let_go(&engine);
    assert_eq!((packs(), rows(&engine)), (1, before.clone()));
    let elsewhere = tempfile::tempdir().unwrap();
    let (copy, restored) = (elsewhere.path().join("copy"), elsewhere.path().join("restored"));
    assert_eq!(engine.backup(&copy).unwrap().copied_files, 6);
    restore(&copy, &restored).unwrap();
    assert_eq!(rows(&builder(&restored, &clock).open().unwrap()), before);
    clock.set(2 * DAY_NS);
    engine.compact().unwrap();
    assert_eq!(rows(&engine), before);
    engine.close().unwrap();
    let report = verify_in_store(dir.path(), storage()).unwrap();
    assert!(report.is_clean(), "{report}");
}

/// Byte 8 of a manifest object is its version; a build that knows no packs reads versions up to 2.
#[test]
fn only_a_manifest_that_names_packs_is_refused_by_builds_that_know_none() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = open(dir.path());
    write(&engine, "d", "m n=1i 1");
    engine.flush().unwrap();
    flush(&engine, 1);
    drop(engine);
    let versions = files(&dir.path().join("meta/0"), "").into_iter().map(|path| std::fs::read(path).unwrap()[8]);
    assert_eq!(versions.collect::<Vec<_>>(), [1, 1, 3]);
}
