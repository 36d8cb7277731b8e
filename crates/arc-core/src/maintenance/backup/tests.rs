//! A backup is whole or not there, whatever happens while it is written, and what it is made from
//! does not change.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::*;
use crate::{
    Durability, Engine, Error, Options, VerifyReport, WriteOptions,
    maintenance::{
        copied_store::{ROOT, TARGET, disk, read, write},
        verify::verify_on,
    },
    vfs::{CrashFs, Fault, FaultFs, Image, Operation, stride},
};

fn engine(vfs: Arc<dyn Vfs>, root: &str) -> Engine {
    let flush_after = std::time::Duration::from_secs(1 << 30);
    let options = Options { wal_segment_bytes: 64 << 10, flush_after, ..Options::default() };
    Engine::builder(root).options(options).vfs(vfs).open().unwrap()
}

/// A disk with both parents, and an engine in the one.
fn store() -> (CrashFs, Engine) {
    let fs = disk();
    let engine = engine(Arc::new(fs.clone()), ROOT);
    (fs, engine)
}

/// The rows of a data directory, in files and in its log.
fn rows(report: &VerifyReport) -> u64 {
    assert!(report.is_clean(), "{report}");
    report.totals.rows + report.totals.points
}

fn verified(fs: &dyn Vfs, root: &str) -> VerifyReport {
    verify_on(fs, Path::new(root)).unwrap()
}

#[test]
fn a_backup_has_all_points_and_is_brought_up_to_date_by_what_it_lacks() {
    let (fs, open) = store();
    write(&open, 1);
    open.flush().unwrap();
    write(&open, 2);
    let mut seen = Vec::new();
    let first = open.backup_with(TARGET, |report| seen.push(*report)).unwrap();
    // What is not flushed is in the log, and stays there.
    assert_eq!((first.files, first.rows, first.linked_files, first.kept_files), (1, 1, 1, 0));
    assert_eq!((seen.len(), seen[0].files, seen[0].linked_files, seen[1].linked_files), (2, 1, 0, 1));
    assert!(first.log_bytes > 0 && open.stats().flushes == 1, "{first:?}");
    assert_eq!((rows(&verified(&fs, TARGET)), read(&fs, TARGET)), (2, 2));
    write(&open, 3);
    let longer = open.backup(TARGET).unwrap();
    assert_eq!((rows(&verified(&fs, TARGET)), read(&fs, TARGET), longer.kept_files), (3, 3, 1));
    open.flush().unwrap();
    let second = open.backup(TARGET).unwrap();
    assert_eq!((second.files, second.linked_files, second.kept_files, second.log_bytes), (2, 1, 1, 0));
    let again = open.backup(TARGET).unwrap();
    assert_eq!((again.files, again.linked_files, again.kept_files), (2, 0, 2));
    let report = verified(&fs, TARGET);
    assert_eq!((rows(&report), report.findings.len()), (3, 0), "{report}");
    // It opens, and another engine can be at work in each.
    let copy = engine(Arc::new(fs.clone()), TARGET);
    assert_eq!(copy.tables("d").unwrap()[0].file_rows, 3);
    write(&copy, 4);
    copy.close().unwrap();
    let error = open.backup(TARGET).unwrap_err();
    assert!(error.to_string().contains("it was opened and written to since"), "{error}");
}

#[test]
fn files_that_the_directory_no_longer_has_leave_the_backup_at_the_end() {
    let (fs, open) = store();
    for n in 0..3 {
        write(&open, n);
        open.flush().unwrap();
    }
    open.backup(TARGET).unwrap();
    open.close().unwrap();
    let vfs: Arc<dyn Vfs> = Arc::new(fs.clone());
    let mut state = survey_manifest(&fs, &manifest_dir(Path::new(ROOT))).unwrap().state;
    let gone = state.drop_files(|file| file.min_time == 1);
    let source = BackupSource { vfs: &vfs, root: Path::new(ROOT), state: &state, log: &[], logged: state.flushed };
    let report = Backup::begin(source, Path::new(TARGET)).unwrap().finish(&mut |_| {}).unwrap();
    assert_eq!((report.files, report.kept_files, report.removed_files), (2, 2, 1));
    assert_eq!(rows(&verified(&fs, TARGET)), 2);
    assert!(fs.read(&Path::new(TARGET).join(&gone[0].path)).is_err());
    assert!(fs.read(&Path::new(ROOT).join(&gone[0].path)).is_ok());
}

#[test]
fn where_there_are_no_links_files_are_copied_and_compared() {
    let (fs, open) = store();
    write(&open, 1);
    open.close().unwrap();
    let faulty = FaultFs::new(Arc::new(fs.clone()));
    faulty.set(Fault::nth(1, ErrorKind::CrossesDevices).of(Operation::HardLink).from_then_on());
    let open = engine(Arc::new(faulty), ROOT);
    let report = open.backup(TARGET).unwrap();
    assert_eq!((report.linked_files, report.copied_files, report.copied_bytes), (0, 1, report.bytes));
    assert_eq!(rows(&verified(&fs, TARGET)), 1);
    let file = Path::new(ROOT).join(&open.data_files("d", "m").unwrap()[0].path);
    fs.open(&file).unwrap().write_all_at(&[b"damage"], 9).unwrap();
    let error = open.backup("/copies/b").unwrap_err();
    assert!(matches!(&error, Error::Corrupt { path, .. } if *path == file), "{error}");
    assert!(verify_on(&fs, Path::new("/copies/b")).is_err(), "half a backup is no data directory");
}

#[test]
fn a_backup_goes_nowhere_else() {
    let (fs, open) = store();
    write(&open, 1);
    let cases = [
        ("/store/backup", "one inside the other"),
        ("/store", "one inside the other"),
        ("/", "one inside the other"),
        ("/full", "it is no backup and not empty: it has /full/x"),
        ("/other", "it is no backup and not empty"),
    ];
    fs.create_dir_all(Path::new("/full")).unwrap();
    fs.create_new(Path::new("/full/x")).unwrap();
    fs.create_dir_all(Path::new("/other")).unwrap();
    engine(Arc::new(fs.clone()), "/other").close().unwrap();
    for (target, expected) in cases {
        let error = open.backup(target).unwrap_err();
        assert!(matches!(error, Error::BadTarget { .. }) && error.to_string().contains(expected), "{error}");
    }
    open.backup(TARGET).unwrap();
    let other = engine(Arc::new(fs.clone()), "/other");
    let error = other.backup(TARGET).unwrap_err();
    assert!(error.to_string().contains("it is a backup of /store"), "{error}");
}

/// What a copy may be: absent, or whole with one of these numbers of rows.
fn is_whole_or_absent(image: &Image, target: &str, allowed: &[u64], case: &str) -> Option<u64> {
    let fs = CrashFs::from_image(image);
    match verify_on(&fs, Path::new(target)) {
        Ok(report) => {
            let found = rows(&report);
            assert!(allowed.contains(&found), "{case}: {found} rows");
            Some(found)
        }
        Err(error) => {
            assert!(matches!(error, Error::NotADataDirectory { .. }), "{case}: {error}");
            None
        }
    }
}

/// Opens a copy and counts its rows.
fn opened(image: &Image, root: &str) -> u64 {
    let copy = engine(Arc::new(CrashFs::from_image(image)), root);
    let table = &copy.tables("d").unwrap()[0];
    table.file_rows + table.buffered_rows
}

/// Writes a point that fills half a segment of the log.
fn write_large(engine: &Engine, n: i64) {
    let text = "x".repeat(30 << 10);
    let line = format!("m,host=h{} n={n}i,text=\"{text}\" {n}", n % 3);
    assert_eq!(engine.write_lp("d", line.as_bytes()).unwrap().points, 1);
}

#[test]
fn a_power_cut_leaves_the_source_and_a_backup_with_all_that_the_older_one_had() {
    let (fs, open) = store();
    // Operations before and after each backup, and the rows that it has.
    let mut backups: Vec<(usize, usize, u64)> = Vec::new();
    let mut n = 0;
    for steps in ["wb", "wwwb", "wwfwb", "b", "wwwwwwwfb", "wwb", "wfwwwb"] {
        for step in steps.chars() {
            match step {
                'w' => {
                    n += 1;
                    write_large(&open, n);
                }
                'f' => drop(open.flush().unwrap()),
                _ => {
                    let before = fs.operations();
                    open.backup(TARGET).unwrap();
                    backups.push((before, fs.operations(), n.unsigned_abs()));
                }
            }
        }
    }
    let first = backups[0].0;
    for cut in fs.power_cuts().skip(first).step_by(stride(3)) {
        let at = cut.operations();
        // The first backup makes every folder, which can each be lost.
        let images = if at <= backups[0].1 { 60 } else { 3 };
        for image in cut.images(at as u64, images) {
            let case = format!("after operation {at} of {backups:?}");
            let least = backups.iter().rfind(|(_, after, _)| *after <= at).map(|(.., rows)| *rows);
            let most = backups.iter().rfind(|(before, ..)| *before <= at).map_or(0, |(.., rows)| *rows);
            let allowed: Vec<u64> = (least.unwrap_or(1)..=most).collect();
            let target = is_whole_or_absent(&image, TARGET, &allowed, &case);
            assert!(target.is_some() || least.is_none(), "{case}");
            assert!(target.is_none_or(|rows| opened(&image, TARGET) == rows), "{case}");
            let acknowledged: Vec<u64> = (least.unwrap_or(1)..=n.unsigned_abs()).collect();
            assert!(is_whole_or_absent(&image, ROOT, &acknowledged, &case).is_some(), "{case}");
        }
    }
}

#[test]
fn a_power_cut_during_a_restore_leaves_a_whole_directory_or_none() {
    let (fs, open) = store();
    write_large(&open, 1);
    open.flush().unwrap();
    (2..6).for_each(|n| write_large(&open, n));
    open.backup(TARGET).unwrap();
    let before = fs.operations();
    let vfs: Arc<dyn Vfs> = Arc::new(fs.clone());
    let report = restore_on(&vfs, Path::new(TARGET), Path::new("/new")).unwrap();
    assert_eq!((report.rows, report.frames), (1, 4));
    let after = fs.operations();
    for cut in fs.power_cuts().skip(before).step_by(stride(3)) {
        for image in cut.images(7, 40) {
            let case = format!("after operation {} of {after}", cut.operations());
            if image.get(Path::new("/new/ARC")).is_some() {
                is_whole_or_absent(&image, "/new", &[5], &case);
                assert_eq!(opened(&image, "/new"), 5, "{case}");
            } else {
                assert!(cut.operations() < after, "{case}");
                // Either there is nothing of it, or it is refused for having no marker.
                let refused = Engine::builder("/new").vfs(Arc::new(CrashFs::from_image(&image))).open();
                let has_files = image.files().any(|path| path.starts_with("/new") && !path.ends_with("LOCK"));
                assert!(refused.is_err() || !has_files, "{case}");
            }
            assert_eq!(is_whole_or_absent(&image, TARGET, &[5], "the backup"), Some(5));
        }
    }
}

#[test]
fn points_that_are_in_no_log_are_in_the_backup_too() {
    let (fs, open) = store();
    write(&open, 1);
    let memory = WriteOptions::new().durability(Durability::Memory);
    assert_eq!(open.submit_lp("d", "m n=2i 2".into(), &memory).unwrap().wait().unwrap().points, 1);
    open.backup(TARGET).unwrap();
    assert_eq!((rows(&verified(&fs, TARGET)), open.stats().flushes), (2, 1));
    write(&open, 3);
    open.backup(TARGET).unwrap();
    assert_eq!((rows(&verified(&fs, TARGET)), open.stats().flushes), (3, 1));
}

#[test]
fn a_backup_that_has_lost_its_log_is_damaged() {
    let (fs, open) = store();
    write(&open, 1);
    open.flush().unwrap();
    (2..6).for_each(|n| write_large(&open, n));
    open.backup(TARGET).unwrap();
    let image = fs.current();
    let wal = Path::new(TARGET).join(WAL_DIR);
    let is_segment = |path: &&Path| path.starts_with(&wal) && path.extension().is_some_and(|end| end == "wal");
    let segments: Vec<PathBuf> = image.files().filter(is_segment).map(Path::to_owned).collect();
    assert!(segments.len() > 1);
    for gone in [&segments[..], &segments[segments.len() - 1..], &segments[..1]] {
        let fs = CrashFs::from_image(&image);
        gone.iter().for_each(|path| fs.remove_file(path).unwrap());
        assert!(!verified(&fs, TARGET).is_clean());
        let vfs: Arc<dyn Vfs> = Arc::new(fs.clone());
        let error = restore_on(&vfs, Path::new(TARGET), Path::new("/new")).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
        // Another backup makes up for it.
        let open = engine(Arc::new(fs.clone()), ROOT);
        open.backup(TARGET).unwrap();
        assert_eq!(rows(&verified(&fs, TARGET)), 5);
    }
}

#[test]
fn a_call_that_fails_leaves_nothing_behind_that_another_try_minds() {
    for nth in 1.. {
        let (fs, open) = store();
        write(&open, 1);
        open.backup(TARGET).unwrap();
        write(&open, 2);
        open.close().unwrap();
        let faulty = FaultFs::new(Arc::new(fs.clone()));
        let open = engine(Arc::new(faulty.clone()), ROOT);
        (3..6).for_each(|n| write_large(&open, n));
        faulty.set(Fault::nth(nth, ErrorKind::Other));
        let failed = open.backup(TARGET).is_err();
        let has_failed = faulty.failed().values().sum::<u64>() > 0;
        faulty.clear();
        is_whole_or_absent(&fs.current(), TARGET, if failed { &[1, 2, 3, 4, 5] } else { &[5] }, &format!("call {nth}"));
        open.backup(TARGET).unwrap();
        assert_eq!(rows(&verified(&fs, TARGET)), 5, "call {nth}");
        if !has_failed {
            assert!(nth > 20);
            return;
        }
    }
}

#[test]
fn what_is_restored_is_whole_and_shares_nothing() {
    let (fs, open) = store();
    for n in 0..3 {
        write(&open, n);
    }
    open.flush().unwrap();
    write(&open, 3);
    open.backup(TARGET).unwrap();
    let vfs: Arc<dyn Vfs> = Arc::new(fs.clone());
    let restored = restore_on(&vfs, Path::new(TARGET), Path::new("/new/place")).unwrap();
    assert_eq!((restored.files, restored.rows, restored.frames), (1, 3, 1));
    assert_eq!((rows(&verified(&fs, "/new/place")), read(&fs, "/new/place")), (4, 4));
    let file = open.data_files("d", "m").unwrap()[0].path.clone();
    fs.open(&Path::new(ROOT).join(&file)).unwrap().write_all_at(&[b"damage"], 9).unwrap();
    assert_eq!(rows(&verified(&fs, "/new/place")), 4);
    let error = restore_on(&vfs, Path::new(TARGET), Path::new("/new/place")).unwrap_err();
    assert!(matches!(error, Error::BadTarget { .. }), "{error}");
    // The backup has the damage, by its link; it is refused by name, and nothing stays of the try.
    let error = restore_on(&vfs, Path::new(TARGET), Path::new("/new/other")).unwrap_err();
    assert!(matches!(&error, Error::Corrupt { path, .. } if *path == Path::new(TARGET).join(&file)), "{error}");
    assert_eq!(crate::maintenance::verify::files_below(&fs, Path::new("/new/other")).unwrap(), Vec::<PathBuf>::new());
}

#[test]
fn a_directory_with_a_log_is_restored_with_it_and_refused_where_it_is_damaged() {
    let (fs, open) = store();
    for n in 0..5 {
        write(&open, n);
    }
    let image = fs.current();
    drop(open);
    let vfs: Arc<dyn Vfs> = Arc::new(CrashFs::from_image(&image));
    let restored = restore_on(&vfs, Path::new(ROOT), Path::new("/new")).unwrap();
    assert_eq!((restored.files, restored.frames), (0, 7));
    assert_eq!(rows(&verified(vfs.as_ref(), "/new")), 5);
    let segment = image.files().find(|path| path.extension().is_some_and(|e| e == "wal")).unwrap().to_owned();
    vfs.open(&segment).unwrap().write_all_at(&[b"x"], 50).unwrap();
    let error = restore_on(&vfs, Path::new(ROOT), Path::new("/other")).unwrap_err();
    assert!(matches!(&error, Error::Corrupt { path, offset: 0, .. } if *path == segment), "{error}");
}

#[test]
fn every_damaged_object_of_a_backups_manifest_is_survived_or_refused() {
    let (fs, open) = store();
    write(&open, 1);
    open.flush().unwrap();
    open.backup(TARGET).unwrap();
    let image = fs.current();
    let meta = manifest_dir(Path::new(TARGET));
    let objects: Vec<PathBuf> = image.files().filter(|path| path.starts_with(&meta)).map(Path::to_owned).collect();
    assert_eq!(objects.len(), 3);
    for path in objects {
        let mut damaged = image.clone();
        let mut bytes = image.get(&path).unwrap().to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        damaged.set(&path, bytes);
        let fs = CrashFs::from_image(&damaged);
        assert!(!verified(&fs, TARGET).is_clean(), "{}", path.display());
        let vfs: Arc<dyn Vfs> = Arc::new(fs.clone());
        let restored = restore_on(&vfs, Path::new(TARGET), Path::new("/new"));
        match restored {
            Ok(report) => assert_eq!((report.rows, rows(&verified(&fs, "/new"))), (1, 1)),
            // The commit: then the newest snapshot is still whole, and nothing needs it.
            Err(error) => panic!("{}: {error}", path.display()),
        }
    }
}
