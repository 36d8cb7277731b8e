//! What a reader does not do, and where it cannot be opened.

use std::{any::Any, io, path::Path, sync::Arc, time::Duration};

use super::{DAY, Machine, contents, write};
use crate::{
    ColumnTypes, Comparison, Durability, Engine, Error, ErrorKind, Predicate,
    vfs::{CrashFs, DirEntry, Fault, FaultFs, Vfs, VfsFile},
    wal::tests::files_but_spares,
};

/// A file system that is mounted for reading only.
#[derive(Debug)]
struct ReadOnlyFs(CrashFs);

fn refused<T>() -> io::Result<T> {
    Err(io::ErrorKind::ReadOnlyFilesystem.into())
}

impl Vfs for ReadOnlyFs {
    fn create_dir_all(&self, _: &Path) -> io::Result<()> {
        refused()
    }
    fn create_new(&self, _: &Path) -> io::Result<Box<dyn VfsFile>> {
        refused()
    }
    fn open(&self, _: &Path) -> io::Result<Box<dyn VfsFile>> {
        refused()
    }
    fn open_read(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        self.0.open_read(path)
    }
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.0.read(path)
    }
    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        refused()
    }
    fn rename_new(&self, _: &Path, _: &Path) -> io::Result<()> {
        refused()
    }
    fn hard_link(&self, _: &Path, _: &Path) -> io::Result<()> {
        refused()
    }
    fn remove_file(&self, _: &Path) -> io::Result<()> {
        refused()
    }
    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        refused()
    }
    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        refused()
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        self.0.list(dir)
    }
    fn lock(&self, _: &Path) -> io::Result<Box<dyn Any + Send + Sync>> {
        refused()
    }
}

#[test]
fn it_needs_no_right_to_write() {
    let machine = Machine::new();
    let (writer, _) = machine.open();
    let reader = machine.builder().vfs(Arc::new(ReadOnlyFs(machine.fs.clone()))).open_reader().unwrap();
    for n in 0..5 {
        write(&writer, &format!("m,h=a v=1 {}", DAY + n));
        assert_eq!(contents(&reader), contents(&writer));
        writer.flush().unwrap();
        writer.compact().unwrap();
        assert_eq!(contents(&reader), contents(&writer));
    }
}

#[test]
fn it_writes_nothing_but_its_lease() {
    let machine = Machine::new();
    let (writer, reader) = machine.open();
    write(&writer, &format!("m,h=a v=1 {DAY}"));
    writer.flush().unwrap();
    reader.close().unwrap();
    let before = files_but_spares(&machine.fs);
    let reader = machine.builder().open_reader().unwrap();
    assert_eq!(contents(&reader), contents(&writer));
    let more: Vec<_> = files_but_spares(&machine.fs).into_iter().filter(|path| !before.contains(path)).collect();
    assert!(more.len() == 1 && more[0].starts_with("/store/readers"), "{more:?}");
    drop(reader);
    assert_eq!(files_but_spares(&machine.fs), before);
}

#[test]
fn every_change_is_refused_and_says_why() {
    let machine = Machine::new();
    let (writer, reader) = machine.open();
    write(&writer, &format!("m,h=a v=1 {DAY}"));
    let of_a = Predicate::compare("h", Comparison::Equal, "a");
    let changes: [(&str, crate::Result<()>); 12] = [
        ("write", reader.write_lp("d", b"m,h=a v=1").map(drop)),
        ("write to a database that is not there", reader.write_lp("e", b"m,h=a v=1").map(drop)),
        ("delete", reader.delete("d", "m", &of_a).map(drop)),
        ("drop table", reader.drop_table("d", "m")),
        ("drop database", reader.drop_database("d")),
        ("create", reader.create_database("e")),
        ("retention", reader.set_retention("d", None, Some(Duration::from_secs(1)))),
        ("durability", reader.set_database_durability("d", Some(Durability::Disk))),
        ("types", reader.set_column_types("d", None, &ColumnTypes::new())),
        ("flush", reader.flush().map(drop)),
        ("compact", reader.compact().map(drop)),
        ("backup", reader.backup("/backup").map(drop)),
    ];
    for (change, done) in changes {
        let error = done.unwrap_err();
        assert!(matches!(error, Error::ReadOnly), "{change}: {error}");
        assert!(error.to_string().contains("only reads") && error.kind() == ErrorKind::InvalidInput);
    }
    assert_eq!(contents(&reader), contents(&writer));
}

#[test]
fn what_is_no_data_directory_is_not_made_one() {
    let machine = Machine::new();
    let error = machine.builder().open_reader().unwrap_err();
    assert!(matches!(&error, Error::NotADataDirectory { .. }), "{error}");
    assert_eq!(machine.fs.current().files().count(), 0);
    let _: Engine = machine.builder().open().unwrap();
    assert!(machine.builder().open_reader().is_ok());
}

#[test]
fn whichever_call_fails_the_next_look_is_right() {
    for nth in 1.. {
        let machine = Machine::new();
        let (writer, _) = machine.open();
        let faults = Arc::new(FaultFs::new(Arc::new(machine.fs.clone())));
        let reader = machine.builder().vfs(Arc::<FaultFs>::clone(&faults)).open_reader().unwrap();
        let change = |n: i64| {
            write(&writer, &format!("m,h=a v=1 {}", DAY + n));
            writer.flush().unwrap();
            write(&writer, &format!("m,h=a v=1,w{n}=2 {}", DAY + n + 1));
            writer.compact().unwrap();
        };
        change(0);
        assert_eq!(contents(&reader), contents(&writer));
        change(10);
        change(20);
        faults.set(Fault::nth(nth, io::ErrorKind::Other));
        let looked = reader.tables("d");
        assert!(looked.is_ok() || !faults.failed().is_empty(), "call {nth}");
        if let Ok(tables) = looked {
            assert_eq!(tables, writer.tables("d").unwrap(), "call {nth}");
        }
        let is_done = faults.failed().is_empty();
        faults.clear();
        assert_eq!(contents(&reader), contents(&writer), "after call {nth}");
        if is_done {
            assert!(nth > 8, "{nth}");
            break;
        }
    }
}
