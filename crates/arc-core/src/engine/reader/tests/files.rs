//! Which files stay for a reader, and for how long.

use std::path::Path;

use super::{DAY, Machine, contents, reader_of, write};
use crate::{
    Engine,
    datafile::where_it_lies,
    vfs::{CrashFs, Vfs},
};

/// Data files on the disk.
fn on_disk(fs: &CrashFs) -> usize {
    fs.current().files().filter(|path| path.extension().is_some_and(|ending| ending == "parquet")).count()
}

fn leases(fs: &CrashFs) -> usize {
    fs.list(Path::new("/store/readers")).map_or(0, |entries| entries.len())
}

/// Two files that a merge makes one of.
fn two_files(writer: &Engine) {
    for n in 0..2 {
        write(writer, &format!("m,h=a v=1 {}", DAY + n));
        writer.flush().unwrap();
    }
}

fn renew(engine: &Engine, machine: &Machine) {
    use crate::clock::Clock;
    reader_of(engine).following.lock().renew(machine.clock.now_ns()).unwrap();
}

#[test]
fn what_a_view_has_stays_while_it_is_held_and_its_reader_lives() {
    let machine = Machine::new();
    let (writer, reader) = machine.open();
    two_files(&writer);
    let view = reader.view("d", "m").unwrap();
    assert_eq!((view.files.len(), leases(&machine.fs)), (2, 1));
    writer.compact().unwrap();
    assert_eq!(on_disk(&machine.fs), 3, "the inputs are still there");
    for _ in 0..20 {
        machine.clock.pass(10);
        renew(&reader, &machine);
        writer.compact().unwrap();
        assert_eq!(on_disk(&machine.fs), 3);
    }
    drop(view);
    renew(&reader, &machine);
    writer.compact().unwrap();
    assert_eq!(on_disk(&machine.fs), 1, "nothing reads them any more");
    assert_eq!(contents(&reader), contents(&writer));
    reader.close().unwrap();
    assert_eq!(leases(&machine.fs), 0);
}

#[test]
fn an_idle_reader_holds_nothing_that_it_has_not_handed_out() {
    let machine = Machine::new();
    let (writer, reader) = machine.open();
    two_files(&writer);
    assert_eq!(contents(&reader), contents(&writer));
    writer.compact().unwrap();
    assert_eq!(on_disk(&machine.fs), 3);
    renew(&reader, &machine);
    writer.compact().unwrap();
    assert_eq!(on_disk(&machine.fs), 1, "the renewal has moved on");
    assert_eq!(contents(&reader), contents(&writer));
}

#[test]
fn a_reader_that_is_stopped_or_dead_holds_nothing_for_ever_and_goes_on_when_it_wakes() {
    let machine = Machine::new();
    let (writer, reader) = machine.open();
    two_files(&writer);
    let view = reader.view("d", "m").unwrap();
    writer.compact().unwrap();
    machine.clock.pass(59);
    writer.compact().unwrap();
    assert_eq!(on_disk(&machine.fs), 3);
    machine.clock.pass(2);
    writer.compact().unwrap();
    assert_eq!(on_disk(&machine.fs), 1, "its lease has ended");
    write(&writer, &format!("m,h=a v=1 {}", DAY + 9));
    assert_eq!(contents(&reader), contents(&writer), "the next query is right");
    let again = reader.view("d", "m").unwrap();
    two_files(&writer);
    writer.compact().unwrap();
    let files = again.files.iter().chain(&view.files);
    let is_there = |path: &str| where_it_lies(&Path::new("/store").join(path), |path| machine.fs.read(path)).is_ok();
    assert_eq!(files.map(|file| is_there(&file.path)).collect::<Vec<_>>(), [true, false, false], "and holds again");
}

#[test]
fn a_writer_that_is_opened_again_leaves_what_is_leased() {
    let machine = Machine::new();
    let (writer, reader) = machine.open();
    two_files(&writer);
    let view = reader.view("d", "m").unwrap();
    writer.compact().unwrap();
    writer.close().unwrap();
    let writer = machine.builder().open().unwrap();
    writer.compact().unwrap();
    assert_eq!(on_disk(&machine.fs), 3);
    drop(view);
    renew(&reader, &machine);
    writer.compact().unwrap();
    assert_eq!(on_disk(&machine.fs), 1);
    reader.close().unwrap();
    // Without a lease the next opening removes what is left, as ever.
    two_files(&writer);
    writer.compact().unwrap();
    writer.close().unwrap();
    let reader = machine.builder().open_reader().unwrap();
    let writer = machine.builder().open().unwrap();
    assert_eq!(contents(&reader), contents(&writer));
}

#[test]
fn what_is_dropped_or_too_old_stays_for_a_view_as_well() {
    let machine = Machine::new();
    let (writer, reader) = machine.open();
    two_files(&writer);
    write(&writer, &format!("n,h=a v=1 {DAY}"));
    writer.flush().unwrap();
    let views = ["m", "n"].map(|table| reader.view("d", table).unwrap());
    writer.drop_table("d", "m").unwrap();
    writer.set_retention("d", None, Some(std::time::Duration::from_secs(60))).unwrap();
    writer.compact().unwrap();
    assert!(writer.tables("d").unwrap().iter().all(|table| table.files == 0));
    assert_eq!(on_disk(&machine.fs), 3);
    assert_eq!(contents(&reader), contents(&writer));
    drop(views);
    renew(&reader, &machine);
    writer.compact().unwrap();
    assert_eq!(on_disk(&machine.fs), 0);
}
