//! Every kind of damage is found at its place, and a directory that is whole is clean.

mod rows;

use std::path::{Path, PathBuf};

use super::*;
use crate::{
    Durability, Engine, Options, WriteOptions,
    vfs::{CrashFs, Image},
};

const ROOT: &str = "/store";

fn engine(fs: &CrashFs) -> Engine {
    let flush_after = std::time::Duration::from_secs(1 << 30);
    let options = Options { wal_segment_bytes: 64 << 10, flush_after, ..Options::default() };
    fs.create_dir_all(Path::new(ROOT)).unwrap();
    Engine::builder(ROOT).options(options).vfs(std::sync::Arc::new(fs.clone())).open().unwrap()
}

fn write(engine: &Engine, lines: &str) {
    assert_eq!(engine.write_lp("d", lines.as_bytes()).unwrap().rejected_points, 0);
}

/// A directory with on-time and late files of two days and two tables, 140 commits, and a log.
fn sample() -> Image {
    let fs = CrashFs::new();
    let open = engine(&fs);
    for round in 0..140_i64 {
        if round < 4 {
            let day = 86_400_000_000_000 * (round % 2);
            write(
                &open,
                &format!("m,host=a,x=1 v={round},t=\"text\" {}\nm,host=b v={round} {}", day + round, day + round),
            );
            write(&open, &format!("m,host=a,x=1 w={round}i 1\nn u={round}u {round}"));
        } else {
            open.create_database(&format!("empty{round}")).unwrap();
        }
        open.flush().unwrap();
    }
    for n in 0..6 {
        write(&open, &format!("m,host=c{n} late{n}=true {n}"));
    }
    // What kill -9 leaves before the log has come to rest and is sealed: dropping the engine would
    // flush nothing either.
    let image = fs.current();
    assert!(open.verify().unwrap().is_clean(), "{}", open.verify().unwrap());
    image
}

fn verified(image: &Image) -> VerifyReport {
    let fs = CrashFs::from_image(image);
    let before = fs.current();
    let report = verify_on(&fs, Path::new(ROOT)).unwrap();
    assert_eq!(fs.current(), before, "verification changes nothing");
    report
}

fn find(image: &Image, part: &str) -> Vec<PathBuf> {
    image.files().filter(|path| path.display().to_string().contains(part)).map(Path::to_owned).collect()
}

fn damaged(image: &Image, path: &Path, damage: impl FnOnce(&mut Vec<u8>)) -> Image {
    let mut image = image.clone();
    let mut bytes = image.get(path).unwrap().to_vec();
    damage(&mut bytes);
    image.set(path, bytes);
    image
}

/// Asserts that the report has an error at this path.
#[track_caller]
fn has_error(report: &VerifyReport, path: &Path, what: &str) {
    assert!(!report.is_clean(), "{}: {report}", path.display());
    let found = |finding: &&Finding| finding.severity == Severity::Error && finding.path == path;
    let texts: Vec<_> = report.findings.iter().filter(found).map(|finding| finding.what.as_str()).collect();
    assert!(texts.iter().any(|text| text.contains(what)), "{what:?} of {} is not in {report}", path.display());
}

#[test]
fn a_whole_directory_is_clean_and_counted() {
    let image = sample();
    let report = verified(&image);
    assert_eq!(report.findings, [], "{report}");
    let totals = report.totals;
    assert_eq!((totals.files, totals.rows), (find(&image, ".parquet").len() as u64, totals.rows));
    assert!(totals.files >= 10 && totals.rows >= 14, "{report}");
    // Six writes, each with a column of its own.
    assert_eq!((totals.frames, totals.points), (12, 6), "{report}");
    assert!(report.to_string().ends_with("/store: clean (0 errors, 0 warnings)"), "{report}");
}

#[test]
fn every_flipped_byte_of_a_data_file_is_found() {
    let image = sample();
    for path in find(&image, ".parquet").iter().take(2) {
        let len = image.get(path).unwrap().len();
        for byte in (0..len).step_by(len / 40) {
            has_error(&verified(&damaged(&image, path, |bytes| bytes[byte] ^= 4)), path, "its crc32c is");
        }
    }
}

#[test]
fn data_files_cut_off_missing_or_swapped_are_found() {
    let image = sample();
    let paths = find(&image, ".parquet");
    let (a, b) = (&paths[0], &paths[1]);
    let whole = image.get(a).unwrap().len();
    for len in [0, 3, whole - 1] {
        has_error(&verified(&damaged(&image, a, |bytes| bytes.truncate(len))), a, "bytes, the manifest says");
    }
    has_error(&verified(&damaged(&image, a, |bytes| bytes.push(0))), a, "bytes, the manifest says");
    let mut missing = image.clone();
    missing.remove(a);
    has_error(&verified(&missing), a, "it is missing");
    let mut swapped = image.clone();
    swapped.set(a, image.get(b).unwrap().to_vec());
    swapped.set(b, image.get(a).unwrap().to_vec());
    let report = verified(&swapped);
    has_error(&report, a, "the manifest says");
    has_error(&report, b, "the manifest says");
}

#[test]
fn the_marker_is_checked() {
    let image = sample();
    let marker = Path::new(ROOT).join("ARC");
    for (contents, what) in [("", "it should be"), ("{\"arc_format\":0}", "version 0"), ("{\"arc", "it should be")] {
        let report = verified(&damaged(&image, &marker, |bytes| *bytes = contents.into()));
        has_error(&report, &marker, what);
        assert_eq!(report.findings.len(), 1, "all else is whole: {report}");
    }
    let mut missing = image.clone();
    missing.remove(&marker);
    has_error(&verified(&missing), &marker, "it is missing");
    let newer = CrashFs::from_image(&damaged(&image, &marker, |bytes| *bytes = "{\"arc_format\":9}".into()));
    assert!(matches!(verify_on(&newer, Path::new(ROOT)), Err(Error::NewerFormat { found: 9, .. })));
}

#[test]
fn every_object_of_the_manifest_is_checked() {
    let image = sample();
    let objects = find(&image, "/meta/0/");
    // With one snapshot, all commits are kept.
    assert_eq!((objects.len(), find(&image, ".snapshot").len()), (142, 1));
    // The newest, the oldest, and some in between.
    for path in objects.iter().step_by(9).chain(objects.iter().rev().take(3)) {
        let len = image.get(path).unwrap().len();
        for byte in [0, 9, 17, 25, 29, 33, 41, 45, len - 1] {
            let report = verified(&damaged(&image, path, |bytes| bytes[byte] ^= 1));
            has_error(&report, path, "");
        }
        has_error(&verified(&damaged(&image, path, |bytes| bytes.truncate(len - 1))), path, "");
        has_error(&verified(&damaged(&image, path, |bytes| bytes.clear())), path, "it ends in its header");
        let is_last =
            objects.iter().rposition(|other| !other.ends_with(".snapshot")) == objects.iter().position(|o| o == path);
        let is_snapshot = path.extension().is_some();
        if !is_last && !is_snapshot {
            let mut missing = image.clone();
            missing.remove(path);
            has_error(&verified(&missing), path, "it is missing");
        }
    }
    let mut swapped = image.clone();
    swapped.set(&objects[3], image.get(&objects[4]).unwrap().to_vec());
    has_error(&verified(&swapped), &objects[3], "it is not the object that its name says");
    let mut nothing = image.clone();
    objects.iter().for_each(|path| nothing.remove(path));
    has_error(&verified(&nothing), &Path::new(ROOT).join("meta"), "the manifest is missing");
}

#[test]
fn damage_of_the_log_is_an_error_where_it_had_been_synced_and_a_warning_where_not() {
    let image = sample();
    let path = &find(&image, ".wal")[0];
    let segment = image.get(path).unwrap();
    let frames = crate::wal::frame_locations(segment, path);
    assert!(frames.len() > 12);
    let unflushed = frames.len() - 12;
    for (index, (offset, len, seq)) in frames.iter().enumerate() {
        for byte in [5, 30, len - 1] {
            let report = verified(&damaged(&image, path, |bytes| bytes[offset + byte] ^= 1));
            // The last write is two frames of one group, which no later frame proves.
            if index < unflushed {
                assert_eq!(report.findings, [], "flushed frames are not needed: {report}");
            } else if index < frames.len() - 2 {
                has_error(&report, path, &format!("frame {seq} "));
                assert_eq!(report.findings[0].offset, Some(*offset as u64), "{report}");
            } else {
                assert!(report.is_clean(), "{report}");
            }
        }
    }
    // A torn write of the last group: its first frame is gone, its second is there.
    let (offset, ..) = frames[frames.len() - 2];
    let report = verified(&damaged(&image, path, |bytes| bytes[offset] ^= 1));
    assert_eq!((report.count(Severity::Error), report.count(Severity::Warning)), (0, 1), "{report}");
    let mut missing = image.clone();
    missing.remove(path);
    has_error(&verified(&missing), &Path::new(ROOT).join("wal"), "there is no segment of the log");
}

#[test]
fn damage_to_the_last_group_is_an_error_once_the_log_is_sealed() {
    let fs = CrashFs::new();
    let open = engine(&fs);
    write(&open, "m v=1 1");
    write(&open, "m v=2 2");
    drop(open);
    let image = fs.current();
    let report = verified(&image);
    assert!(report.findings.is_empty(), "a seal is nothing to tell of: {report}");
    let path = find(&image, ".wal").remove(0);
    let (offset, len, seq) = *crate::wal::frame_locations(image.get(&path).unwrap(), &path).last().unwrap();
    for byte in [5, 30, len - 1] {
        let report = verified(&damaged(&image, &path, |bytes| bytes[offset + byte] ^= 1));
        has_error(&report, &path, &format!("frame {seq} "));
        assert_eq!(report.findings[0].offset, Some(offset as u64), "{report}");
    }
}

#[test]
fn frames_that_are_whole_and_make_no_sense_are_found() {
    let fs = CrashFs::new();
    let open = engine(&fs);
    write(&open, "m v=1 1");
    let image = fs.current();
    drop(open);
    let path = find(&image, ".wal").remove(0);
    let (offset, _, _) = crate::wal::frame_locations(image.get(&path).unwrap(), &path)[1];
    // A schema frame that says nothing, with checksums that are right.
    let forged = damaged(&image, &path, |bytes| crate::wal::forge_body(bytes, &path, offset));
    let report = verified(&forged);
    has_error(&report, &path, "frame 2: ");
    assert_eq!(report.findings[0].offset, Some(offset as u64));
}

#[test]
fn files_that_only_a_snapshot_has_are_checked_and_are_no_leftovers() {
    let fs = CrashFs::from_image(&sample());
    let open = engine(&fs);
    open.create_snapshot("kept").unwrap();
    open.drop_database("d").unwrap();
    open.flush().unwrap();
    assert!(open.verify().unwrap().is_clean());
    let image = fs.current();
    let past = find(&image, "/past/");
    assert!(!past.is_empty());
    drop(open);
    let report = verified(&image);
    assert!(report.findings.is_empty(), "{report}");
    for path in &past {
        let report = verified(&damaged(&image, path, |bytes| bytes[20] ^= 1));
        assert!(!report.is_clean() && report.to_string().contains("snapshot kept: "), "{report}");
    }
    let list = &find(&image, ".kept")[0];
    let report = verified(&damaged(&image, list, |bytes| bytes[50] ^= 1));
    assert!(!report.is_clean() && report.to_string().contains("the next opening makes it anew"), "{report}");
    fs.remove_file(&past[0]).unwrap();
    let report = verified(&fs.current());
    assert!(!report.is_clean() && report.to_string().contains("snapshot kept: it is missing"), "{report}");
}

#[test]
fn a_list_of_the_files_of_snapshots_that_lacks_one_is_found() {
    let fs = CrashFs::from_image(&sample());
    let open = engine(&fs);
    open.create_snapshot("kept").unwrap();
    open.close().unwrap();
    drop(open);
    let (vfs, dir) = (fs.clone(), Path::new(ROOT).join("meta/0"));
    let (path, list) = crate::catalog::listed_files(&vfs, &dir).unwrap().unwrap();
    let mut list = list.unwrap();
    list.forget_one_file();
    fs.remove_file(&path).unwrap();
    let vfs: std::sync::Arc<dyn Vfs> = std::sync::Arc::new(fs.clone());
    let location = std::sync::Arc::new(crate::store::FolderLocation::new(vfs, &dir));
    crate::catalog::Manifest::open_at(location).unwrap().write_kept(&list);
    let report = verified(&fs.current());
    assert!(!report.is_clean() && report.to_string().contains("of snapshot kept"), "{report}");
}

#[test]
fn leftovers_are_information() {
    let image = sample();
    let orphan = "data/d/m/day=1970-01-01/01ARZ3NDEKTSV4RRFFQ69G5FAV.parquet";
    let mut with = image.clone();
    for name in [orphan, "meta/0/00000000000000000999.1.tmp", "lost/wal/x"] {
        with.set(&Path::new(ROOT).join(name), b"x".to_vec());
    }
    let report = verified(&with);
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.findings.iter().filter(|finding| finding.severity == Severity::Info).count(), 3, "{report}");
}

#[test]
fn what_is_no_data_directory_or_is_in_use_is_refused() {
    let fs = CrashFs::new();
    let root = Path::new(ROOT);
    assert!(matches!(verify_on(&fs, root), Err(Error::NotADataDirectory { .. })));
    fs.create_dir_all(root).unwrap();
    assert!(matches!(verify_on(&fs, root), Err(Error::NotADataDirectory { .. })));
    let open = engine(&fs);
    assert!(matches!(verify_on(&fs, root), Err(Error::InUse { .. })));
    open.close().unwrap();
    assert!(verify_on(&fs, root).unwrap().is_clean());
}

#[test]
fn points_that_are_in_memory_only_are_nobodys_business() {
    let fs = CrashFs::new();
    let open = engine(&fs);
    let memory = WriteOptions::new().durability(Durability::Memory);
    let body = bytes::Bytes::from_static(b"m v=1 1");
    assert_eq!(open.submit_lp("d", body, &memory).unwrap().wait().unwrap().points, 1);
    assert!(open.verify().unwrap().is_clean());
    open.close().unwrap();
    let closed = open.verify().unwrap_err();
    assert_eq!(closed.kind(), crate::ErrorKind::Closed);
    assert_eq!(verified(&fs.current()).totals.rows, 1);
}
