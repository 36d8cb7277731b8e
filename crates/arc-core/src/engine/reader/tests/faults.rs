//! What may become of a directory, or of the right to read it, while a reader has it open.

use std::{io::ErrorKind, path::Path, sync::Arc};

use super::{DAY, Machine, contents, write};
use crate::{
    ColumnTypes, Comparison, Engine, Error, OnConflict, Predicate,
    maintenance::verify::files_below,
    vfs::{CrashFs, Fault, FaultFs, Operation, Vfs},
};

fn files(fs: &CrashFs) -> Vec<std::path::PathBuf> {
    files_below(fs, Path::new("/store")).unwrap_or_default()
}

/// Removes all that there is of the directory.
fn remove(fs: &CrashFs) {
    files(fs).iter().for_each(|file| fs.remove_file(file).unwrap());
    let mut folders = vec![Path::new("/store").to_owned()];
    let mut at = 0;
    while let Some(folder) = folders.get(at).cloned() {
        folders.extend(fs.list(&folder).unwrap().into_iter().map(|entry| folder.join(entry.name)));
        at += 1;
    }
    folders.iter().rev().for_each(|folder| fs.remove_dir(folder).unwrap());
}

/// Puts other bytes under a name.
fn replace(fs: &CrashFs, path: &Path, bytes: &[u8]) {
    fs.remove_file(path).unwrap();
    fs.create_new(path).unwrap().write_all_at(&[bytes], 0).unwrap();
}

#[test]
fn columns_that_become_wider_are_followed() {
    let machine = Machine::new();
    let options = crate::Options {
        column_types: ColumnTypes::new().on_conflict(OnConflict::Widen),
        compaction: false,
        wal_segment_bytes: 64 << 10,
        ..crate::Options::default()
    };
    let builder = || machine.builder().options(options.clone());
    let writer = builder().open().unwrap();
    let reader = builder().open_reader().unwrap();
    let of_a = Predicate::compare("h", Comparison::Equal, "a");
    let steps: [(&str, &dyn Fn()); 7] = [
        ("integers", &|| write(&writer, &format!("m,h=a v=1i {DAY}"))),
        ("a float", &|| write(&writer, &format!("m,h=a v=1.5 {}", DAY + 1))),
        ("a flush", &|| _ = writer.flush().unwrap()),
        ("a text", &|| write(&writer, &format!("m,h=b v=\"x\" {}", DAY + 2))),
        ("a delete", &|| _ = writer.delete("d", "m", &of_a).unwrap()),
        ("a flush of that", &|| _ = writer.flush().unwrap()),
        ("a merge", &|| _ = writer.compact().unwrap()),
    ];
    for (step, act) in steps {
        act();
        assert_eq!(contents(&reader), contents(&writer), "after {step}");
        assert_eq!(contents(&builder().open_reader().unwrap()), contents(&writer), "opened after {step}");
    }
}

#[test]
fn eight_readers_see_the_same() {
    let machine = Machine::new();
    let (writer, _) = machine.open();
    let readers: Vec<Engine> = (0..8).map(|_| machine.builder().open_reader().unwrap()).collect();
    for n in 0..6 {
        write(&writer, &format!("m,h=a v=1 {}", DAY + n));
        if n % 2 == 1 {
            writer.flush().unwrap();
            writer.compact().unwrap();
        }
        readers.iter().for_each(|reader| assert_eq!(contents(reader), contents(&writer), "{n}"));
    }
}

#[test]
fn a_directory_that_vanishes_is_an_error_and_no_folder_is_made_for_it() {
    let machine = Machine::new();
    let (writer, reader) = machine.open();
    write(&writer, &format!("m,h=a v=1 {DAY}"));
    writer.flush().unwrap();
    let before = contents(&reader);
    writer.close().unwrap();
    let kept: Vec<_> = files(&machine.fs).into_iter().map(|path| (machine.fs.read(&path).unwrap(), path)).collect();
    remove(&machine.fs);
    for _ in 0..2 {
        let error = reader.tables("d").unwrap_err();
        assert!(matches!(&error, Error::Corrupt { .. } | Error::Io { .. }), "{error}");
        assert!(error.to_string().contains("/store"), "{error}");
        // Renewing its lease, it makes nothing: another engine may be about to begin there.
        machine.clock.pass(61);
        let _ = super::reader_of(&reader).renew();
        assert!(machine.fs.list(Path::new("/store")).is_err(), "{:?}", files(&machine.fs));
    }
    let error = machine.builder().open_reader().unwrap_err();
    assert!(matches!(&error, Error::NotADataDirectory { .. }), "{error}");
    // It comes back, as a file system does that is mounted again.
    for (bytes, path) in kept {
        machine.fs.create_dir_all(path.parent().unwrap()).unwrap();
        machine.fs.create_new(&path).unwrap().write_all_at(&[&bytes], 0).unwrap();
    }
    assert_eq!(contents(&reader), before);
}

#[test]
fn another_directory_in_its_place_is_never_mixed_with_what_was_there() {
    for commits in 0..6 {
        let machine = Machine::new();
        let (writer, reader) = machine.open();
        write(&writer, &format!("m,h=a v=1 {DAY}\nm,h=b v=1 {DAY}"));
        writer.flush().unwrap();
        write(&writer, &format!("m,h=c v=1 {DAY}"));
        assert_eq!(contents(&reader), contents(&writer));
        writer.close().unwrap();
        drop(writer);
        remove(&machine.fs);
        let other = machine.builder().open().unwrap();
        for n in 0..commits {
            write(&other, &format!("other,h=a v=1 {}", DAY + n));
            other.flush().unwrap();
        }
        // With fewer commits than there were it is not noticed yet: what was there is what is seen.
        match reader.tables("d") {
            Ok(tables) => assert!(tables.iter().all(|table| &*table.schema.table == "m"), "{commits}: {tables:?}"),
            Err(error) => assert!(matches!(&error, Error::Corrupt { .. } | Error::Io { .. }), "{commits}: {error}"),
        }
        assert_eq!(contents(&machine.builder().open_reader().unwrap()), contents(&other), "opened anew");
    }
}

#[test]
fn what_a_newer_build_has_written_is_refused_with_its_version() {
    let machine = Machine::new();
    let (writer, reader) = machine.open();
    write(&writer, &format!("m,h=a v=1 {DAY}"));
    writer.close().unwrap();
    let marker = Path::new("/store/ARC");
    let known = machine.fs.read(marker).unwrap();
    replace(&machine.fs, marker, b"{\"arc_format\":99}\n");
    let error = machine.builder().open_reader().unwrap_err();
    assert!(matches!(&error, Error::NewerFormat { found: 99, .. }), "{error}");
    replace(&machine.fs, marker, &known);
    // The next commit, by a build that knows more. Its checksums are right: the version alone says it.
    let meta = Path::new("/store/meta/0");
    let newest = files_below(&machine.fs, meta).unwrap().into_iter().filter(|path| path.extension().is_none()).max();
    let (newest, mut bytes) = (newest.clone().unwrap(), machine.fs.read(&newest.unwrap()).unwrap());
    let number: u64 = newest.file_name().unwrap().to_str().unwrap().parse().unwrap();
    bytes[8..12].copy_from_slice(&99_u32.to_le_bytes());
    bytes[16..24].copy_from_slice(&(number + 1).to_le_bytes());
    let checksum = crc32c::crc32c(&bytes[..44]);
    bytes[44..48].copy_from_slice(&checksum.to_le_bytes());
    let next = meta.join(format!("{:020}", number + 1));
    machine.fs.create_new(&next).unwrap().write_all_at(&[&bytes], 0).unwrap();
    for error in [reader.tables("d").unwrap_err(), machine.builder().open_reader().unwrap_err()] {
        assert!(matches!(&error, Error::NewerFormat { found: 99, .. }), "{error}");
    }
    machine.fs.remove_file(&next).unwrap();
    assert_eq!(reader.tables("d").unwrap().len(), 1, "once it is gone the next look is right");
}

#[test]
fn without_the_right_to_read_it_says_what_and_goes_on_once_it_has_it() {
    for operation in [Operation::List, Operation::Read, Operation::OpenRead] {
        let machine = Machine::new();
        let (writer, _) = machine.open();
        write(&writer, &format!("m,h=a v=1 {DAY}"));
        let faults = Arc::new(FaultFs::new(Arc::new(machine.fs.clone())));
        let of = || machine.builder().vfs(Arc::<FaultFs>::clone(&faults));
        let reader = of().open_reader().unwrap();
        let denied = Fault::nth(1, ErrorKind::PermissionDenied).of(operation).from_then_on();
        write(&writer, &format!("m,h=a v=1 {}", DAY + 1));
        writer.flush().unwrap();
        faults.set(denied);
        if let Err(error) = reader.tables("d") {
            assert!(error.to_string().contains("/store"), "{operation:?}: {error}");
        }
        // Whatever it needs is refused here: what a listing or reading of the manifest is for opening.
        if operation != Operation::OpenRead {
            let error = of().open_reader().unwrap_err();
            assert!(matches!(&error, Error::Io { path, .. } if path.starts_with("/store")), "{operation:?}: {error}");
        }
        faults.clear();
        assert_eq!(contents(&reader), contents(&writer), "{operation:?}");
    }
}

#[test]
fn without_the_right_to_write_and_without_locks_it_reads_all_the_same() {
    let machine = Machine::new();
    let (writer, _) = machine.open();
    for (operation, error) in [
        (Operation::CreateDirAll, ErrorKind::PermissionDenied),
        (Operation::CreateNew, ErrorKind::PermissionDenied),
        (Operation::WriteAllAt, ErrorKind::StorageFull),
        (Operation::Rename, ErrorKind::Unsupported),
        (Operation::Lock, ErrorKind::Unsupported),
    ] {
        let faults = Arc::new(FaultFs::new(Arc::new(machine.fs.clone())));
        faults.set(Fault::nth(1, error).of(operation).from_then_on());
        let reader = machine.builder().vfs(Arc::<FaultFs>::clone(&faults)).open_reader().unwrap();
        write(&writer, &format!("m,h=a v=1 {DAY}"));
        writer.flush().unwrap();
        assert_eq!(contents(&reader), contents(&writer), "{operation:?}");
        drop(reader);
    }
    assert_eq!(
        machine
            .fs
            .list(Path::new("/store/readers"))
            .map_or(0, |left| left.iter().filter(|e| !e.name.ends_with("tmp")).count()),
        0
    );
}
