//! Dropped tables and databases: gone at once and for good, and what takes their name is new.

use std::{sync::Arc, time::Duration};

use arc_core::{
    Engine, ErrorKind, Executed, Options,
    vfs::{CrashFs, RealVfs, Vfs},
};

use crate::support::{check_crashed, number, open, query, quiet, shown, write};

fn no_grace(path: &std::path::Path) -> Engine {
    let mut options = Options::default();
    (options.compaction_grace, options.history) = (Duration::ZERO, Duration::ZERO);
    quiet(path).options(options).compaction(false).flush_after(Duration::from_secs(1 << 30)).open().unwrap()
}

#[test]
fn a_table_that_takes_the_name_has_its_own_columns_and_points() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = no_grace(dir.path());
    for flushes in [false, true] {
        write(&engine, "d", "m,host=a v=1i 1\nother v=1 1");
        if flushes {
            engine.flush().unwrap();
        }
        engine.drop_table("d", "m").unwrap();
        assert_eq!(query(&engine, "d", "SELECT * FROM m").unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(engine.drop_table("d", "m").unwrap_err().kind(), ErrorKind::NotFound);
        // The same series, whose bytes were known; a field that was an integer, and a tag less.
        write(&engine, "d", "m,host=a v=\"text\" 1\nm,zone=z w=1 2");
        for _ in 0..2 {
            assert_eq!(number(&engine, "d", "SELECT count(*) FROM m WHERE v = 'text' OR w = 1"), 2);
            assert_eq!(number(&engine, "d", "SELECT count(*) FROM other"), 1);
            drop(engine);
            engine = no_grace(dir.path());
        }
        engine.drop_table("d", "m").unwrap();
        engine.compact().unwrap();
        assert!(engine.stats().retired_files == 0 && engine.stats().buffered_rows == 0, "{:?}", engine.stats());
    }
    drop(engine);
    assert!(arc_core::verify(dir.path()).unwrap().findings.is_empty());
    assert_eq!(open(dir.path()).tables("d").unwrap().len(), 1);
}

#[test]
fn a_database_goes_with_all_it_has_and_can_be_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let engine = no_grace(dir.path());
    write(&engine, "d", "m v=1 1");
    engine.set_retention("d", None, Some(Duration::MAX)).unwrap();
    write(&engine, "d", "n v=1 1");
    let view = engine.view("d", "m").unwrap();
    engine.drop_database("d").unwrap();
    assert!(engine.databases().is_empty());
    assert_eq!(engine.drop_database("d").unwrap_err().kind(), ErrorKind::NotFound);
    engine.compact().unwrap();
    assert!(view.files.iter().all(|file| dir.path().join(file.past_path().unwrap()).is_file()), "held by the view");
    drop(view);
    assert_eq!(engine.compact().unwrap().removed_files, 1);
    write(&engine, "d", "m,t=x u=2i 5");
    drop(engine);
    let engine = no_grace(dir.path());
    assert_eq!((engine.databases()[0].retention, engine.tables("d").unwrap().len()), (None, 1));
    assert!(shown(&engine, "d", "SELECT t, u FROM m").contains("| x | 2 |"));
    engine.drop_database("d").unwrap();
    engine.create_database("d").unwrap();
    drop(engine);
    assert!(open(dir.path()).tables("d").unwrap().is_empty());
}

#[test]
fn sql_drops_where_it_is_asked_to_and_nowhere_else() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    write(&engine, "d", "m v=1 1\nn v=1 1");
    write(&engine, "e", "m v=1 1");
    assert_eq!(query(&engine, "d", "DROP TABLE m").unwrap_err().kind(), ErrorKind::InvalidInput);
    let cases = [
        ("DROP TABLE m", Some(Executed::Dropped)),
        ("DROP TABLE m", None),
        ("DROP TABLE IF EXISTS m", Some(Executed::NothingToDrop)),
        ("DROP TABLE IF EXISTS nowhere.m", Some(Executed::NothingToDrop)),
        ("DROP TABLE e.m", Some(Executed::Dropped)),
        ("DROP DATABASE e", Some(Executed::Dropped)),
        ("DROP DATABASE e", None),
        ("DROP DATABASE IF EXISTS e", Some(Executed::NothingToDrop)),
    ];
    for (sql, expected) in cases {
        match (engine.execute("d", sql), expected) {
            (found, Some(expected)) => assert_eq!(found.unwrap(), expected, "{sql}"),
            (found, None) => assert_eq!(found.unwrap_err().kind(), ErrorKind::NotFound, "{sql}"),
        }
    }
    assert_eq!(engine.databases().len(), 1);
    assert_eq!(engine.tables("d").unwrap().len(), 1);
}

#[test]
fn a_drop_of_which_only_the_log_knows_is_carried_out_when_the_engine_closes() {
    let root = std::path::PathBuf::from("/arc-drops");
    let fs = CrashFs::new();
    let builder = || {
        let mut options = Options::default();
        (options.compaction, options.compaction_grace, options.history) = (false, Duration::ZERO, Duration::ZERO);
        quiet(&root).options(options).vfs(Arc::new(fs.clone()) as Arc<dyn Vfs>)
    };
    let engine = builder().open().unwrap();
    write(&engine, "d", "m v=1 1");
    engine.flush().unwrap();
    let faulty = arc_core::vfs::FaultFs::new(Arc::new(fs.clone()));
    drop(engine);
    let engine = builder().vfs(Arc::new(faulty.clone())).open().unwrap();
    let file = root.join(&engine.data_files("d", "m").unwrap()[0].path);
    // The manifest never hears of it.
    let mut fault = arc_core::vfs::Fault::nth(1, std::io::ErrorKind::StorageFull);
    fault.from_then_on = true;
    faulty.set(fault.of(arc_core::vfs::Operation::CreateNew));
    engine.drop_table("d", "m").unwrap();
    drop(engine);
    assert!(fs.read(&file).is_ok());
    let engine = builder().open().unwrap();
    assert!(engine.tables("d").unwrap().is_empty());
    engine.close().unwrap();
    assert_eq!(fs.read(&file).unwrap_err().kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn writers_meanwhile_lose_nothing_that_was_acknowledged_after_the_drop() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.durability = arc_core::Durability::Process;
    let engine = quiet(dir.path()).options(options).compaction(false).flush_after(Duration::from_secs(1 << 30));
    let engine = engine.open().unwrap();
    for round in 0..20 {
        write(&engine, "d", "m,h=a v=1 1");
        std::thread::scope(|scope| {
            for writer in 0..3 {
                let engine = &engine;
                scope.spawn(move || {
                    for n in 0..20 {
                        write(engine, "d", &format!("m,h=w{writer} n={n}i {n}"));
                    }
                });
            }
            if round % 2 == 0 { engine.drop_table("d", "m") } else { engine.drop_database("d") }.unwrap();
            write(&engine, "d", "m,h=after v=2 7");
        });
        assert_eq!(number(&engine, "d", "SELECT count(*) FROM m WHERE h = 'after'"), 1);
        assert_eq!(number(&engine, "d", "SELECT count(*) FROM m WHERE h = 'a'"), 0);
    }
    let rows = "SELECT h, n, v, time FROM m ORDER BY h, time";
    let before = shown(&engine, "d", rows);
    drop(engine);
    assert_eq!(shown(&open(dir.path()), "d", rows), before, "replay makes the same of it");
}

#[test]
fn after_a_loss_of_power_at_any_moment_a_drop_is_done_or_not() {
    let root = std::env::temp_dir();
    let fs = CrashFs::new();
    fs.create_dir_all(&root).unwrap();
    for folder in root.ancestors() {
        fs.sync_dir(folder).unwrap();
    }
    let builder = quiet(&root.join("arc-drops")).vfs(Arc::new(fs.clone()) as Arc<dyn Vfs>);
    let mut options = Options::default();
    options.wal_segment_bytes = 64 << 10;
    let engine = builder.options(options).compaction(false).flush_after(Duration::from_secs(1 << 30)).open().unwrap();
    // Moments, and what there is from then on: the value in `m`, 0 for no table.
    let mut moments = vec![(0, 0)];
    for (step, value) in (1..=4).enumerate() {
        let line = if value % 2 == 0 { format!("m,h=a v=\"{value}\" 1") } else { format!("m,h=a v={value}i 1") };
        moments.push((fs.operations(), -1));
        write(&engine, "d", &line);
        moments.push((fs.operations(), value));
        if step % 2 == 1 {
            engine.flush().unwrap();
        }
        moments.push((fs.operations(), -1));
        if step < 2 { engine.drop_table("d", "m") } else { engine.drop_database("d") }.unwrap();
        moments.push((fs.operations(), 0));
    }
    drop(engine);
    let mut images = 0;
    for cut in fs.power_cuts() {
        let at = moments.iter().rposition(|(begun, _)| *begun <= cut.operations()).unwrap();
        for image in cut.images(cut.operations() as u64, 2) {
            images += 1;
            let dir = tempfile::tempdir().unwrap();
            image.write_to(dir.path()).unwrap();
            let path = dir.path().join(root.join("arc-drops").strip_prefix("/").unwrap());
            let open = || quiet(&path).vfs(Arc::new(RealVfs)).open().unwrap();
            check_crashed(&path, open, |engine| {
                let is_there = engine.tables("d").is_ok_and(|tables| !tables.is_empty());
                let sql = "SELECT CAST(CAST(v AS VARCHAR) AS BIGINT) FROM m";
                let found = if is_there { number(engine, "d", sql) } else { 0 };
                let (before, now) = (moments[at.saturating_sub(1)].1, moments[at].1);
                let next = moments.get(at + 1).map_or(now, |next| next.1);
                let expected = if now == -1 { vec![before, next] } else { vec![now] };
                assert!(expected.contains(&found), "{found}, not {expected:?} after {} operations", cut.operations());
            });
        }
    }
    assert!(images > 50, "only {images} images");
}
