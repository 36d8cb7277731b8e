//! Engines that read what another one keeps in an object store.

use std::{path::Path, sync::Arc, time::Duration};

use arc_core::{Engine, Error, Options};
use object_store::ObjectStore;
use tempfile::tempdir;

use super::{builder, in_memory, open, storage};
use crate::support::{HandClock, number, query, quiet, write};

fn reader(path: &Path, store: &Arc<dyn ObjectStore>) -> arc_core::Result<Engine> {
    builder(path, store).open_reader()
}

fn count(engine: &Engine) -> i64 {
    number(engine, "d", "SELECT count(*) FROM m")
}

#[test]
fn a_reader_from_anywhere_follows_what_is_flushed_and_one_beside_the_writer_all() {
    let (dir, own, store) = (tempdir().unwrap(), tempdir().unwrap(), in_memory());
    let writer = open(dir.path(), &store);
    write(&writer, "d", "m,host=a x=1 1\nm,host=b x=2 2\n");
    writer.flush().unwrap();
    let (far, near) = (reader(&own.path().join("new"), &store).unwrap(), reader(dir.path(), &store).unwrap());
    write(&writer, "d", "m,host=c x=3 3\n");
    assert_eq!((count(&far), count(&near), count(&writer)), (2, 3, 3));
    for n in 4..20 {
        write(&writer, "d", &format!("m,host=h{n} x={n} {n}\n"));
        writer.flush().unwrap();
        assert_eq!((count(&far), count(&near)), (n, n));
    }
    writer.compact().unwrap();
    writer.execute("d", "DELETE FROM m WHERE host = 'a'").unwrap();
    assert_eq!((count(&far), count(&near)), (19, 18));
    writer.flush().unwrap();
    writer.compact().unwrap();
    assert_eq!((count(&far), count(&near)), (18, 18));
    writer.execute("d", "DROP TABLE m").unwrap();
    writer.flush().unwrap();
    for engine in [&far, &near] {
        assert_eq!(engine.tables("d").unwrap().len(), 0);
        assert!(matches!(engine.write_lp("d", b"m x=1 1"), Err(Error::ReadOnly)));
    }
    // What a reader has in a folder of its own keeps nobody from opening it again.
    far.close().unwrap();
    drop(far);
    assert_eq!(reader(&own.path().join("new"), &store).unwrap().tables("d").unwrap().len(), 0);
}

#[test]
fn a_reader_beside_a_log_does_not_mix_it_with_what_another_directory_has() {
    let (dir, other, store) = (tempdir().unwrap(), tempdir().unwrap(), in_memory());
    let writer = open(dir.path(), &store);
    write(&writer, "d", "m x=1 1\n");
    writer.flush().unwrap();
    write(&writer, "d", "m x=2 2\n");
    let near = reader(dir.path(), &store).unwrap();
    assert_eq!(count(&near), 2);
    drop(writer);
    let new = quiet(other.path()).object_store(storage(&store).take_over(true)).open().unwrap();
    write(&new, "d", "m x=5 5\n");
    new.flush().unwrap();
    let error = query(&near, "d", "SELECT count(*) FROM m").unwrap_err();
    assert!(matches!(error, Error::OtherStore { .. }), "{error}");
    assert!(error.to_string().contains("has taken the object store over"), "{error}");
}

#[test]
fn older_states_are_those_that_were_flushed() {
    let (dir, own, store) = (tempdir().unwrap(), tempdir().unwrap(), in_memory());
    let mut options = Options::default();
    (options.wal_segment_bytes, options.compaction) = (64 << 10, false);
    let of = |path: &Path| Engine::builder(path).options(options.clone()).object_store(storage(&store));
    let writer = of(dir.path()).open().unwrap();
    write(&writer, "d", "m,host=a x=1 1\n");
    writer.flush().unwrap();
    writer.create_snapshot("first").unwrap();
    write(&writer, "d", "m,host=b x=2 2\n");
    writer.flush().unwrap();
    let far = of(own.path()).open_reader().unwrap();
    assert_eq!(number(&far, "d", "SELECT count(*) FROM m AT (SNAPSHOT => 'first')"), 1);
    assert_eq!(far.snapshots()[0].name, "first");
    std::thread::sleep(Duration::from_millis(20));
    // What is not flushed is no part of it: the log is elsewhere.
    write(&writer, "d", "m,host=c x=3 3\n");
    let as_of = "SELECT count(*) FROM m FOR SYSTEM_TIME AS OF now() - INTERVAL '5 milliseconds'";
    assert_eq!(number(&far, "d", as_of), 2);
}

#[test]
fn a_state_of_now_is_not_kept_by_a_reader_whose_clock_is_ahead() {
    let (dir, own, store) = (tempdir().unwrap(), tempdir().unwrap(), in_memory());
    let of = |path: &Path, seconds: i64| {
        let mut options = Options::default();
        (options.wal_segment_bytes, options.compaction) = (64 << 10, false);
        let clock = HandClock::default();
        clock.set(seconds * 1_000_000_000);
        Engine::builder(path).options(options).object_store(storage(&store)).clock(Arc::new(clock))
    };
    let writer = of(dir.path(), 1_000).open().unwrap();
    write(&writer, "d", "m x=1 1\n");
    writer.flush().unwrap();
    let far = of(own.path(), 1_010).open_reader().unwrap();
    for n in 1..4 {
        assert_eq!(number(&far, "d", "SELECT count(*) FROM m FOR SYSTEM_TIME AS OF '1970-01-01T00:16:45Z'"), n);
        write(&writer, "d", &format!("m x=1 {}\n", n + 1));
        writer.flush().unwrap();
    }
}

#[test]
fn what_is_no_store_of_arc_or_another_one_is_refused() {
    let (dir, own, store) = (tempdir().unwrap(), tempdir().unwrap(), in_memory());
    let absent = reader(own.path(), &store).unwrap_err();
    assert!(matches!(&absent, Error::NotADataDirectory { .. }), "{absent}");
    assert!(absent.to_string().contains("no manifest below this prefix"), "{absent}");
    drop(open(dir.path(), &store));
    // A data directory that has its files itself, and one of another store.
    let local = tempdir().unwrap();
    let engine = quiet(local.path()).open().unwrap();
    write(&engine, "d", "m x=1 1\n");
    let error = reader(local.path(), &store).unwrap_err();
    assert!(matches!(&error, Error::OtherStore { .. }), "{error}");
    let (other, elsewhere) = (in_memory(), tempdir().unwrap());
    drop(open(elsewhere.path(), &other));
    let error = reader(elsewhere.path(), &store).unwrap_err();
    assert!(error.to_string().contains("name its own or an empty folder"), "{error}");
    // Without the store, the directory is refused as ever.
    let error = quiet(dir.path()).open_reader().unwrap_err();
    assert!(error.to_string().contains("in an object store, which has to be named"), "{error}");
    assert_eq!(reader(own.path(), &store).unwrap().databases().len(), 0);
}
