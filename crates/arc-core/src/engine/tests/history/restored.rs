//! What comes back is there, and whole: a state whose files are gone is none that can be asked for.

use super::*;
use crate::{
    Durability,
    compaction::{Keep, moves},
    engine::compaction::Round,
};

fn at(time_ns: i64) -> PastMoment {
    PastMoment::Time(time_ns)
}

fn write(engine: &Engine, lines: &str) {
    assert!(engine.write_lp("d", lines.as_bytes()).unwrap().points > 0);
}

/// Writes a table in some files, which are merged a second after the time that is returned.
fn merged(engine: &Engine, clock: &Hand) -> i64 {
    for value in 0..4 {
        write(engine, &format!("m,h=a v={value} {value}"));
        engine.flush().unwrap();
        clock.advance(1);
    }
    let before_ns = clock.now_ns();
    clock.advance(1);
    assert_eq!(engine.compact().unwrap().merges, 1);
    clock.advance(1);
    before_ns
}

/// Checks that a state can neither be asked for nor come back, and that nothing becomes of trying.
fn check_gone(engine: &Engine, moment: &PastMoment) {
    let was = contents(engine);
    let asked = engine.writer().unwrap().past_state(moment);
    assert!(matches!(asked, Err(Error::OutsideHistory { .. })), "{asked:?}");
    check_refused(engine, moment);
    assert_eq!(contents(engine), was);
}

fn check_refused(engine: &Engine, moment: &PastMoment) {
    let refused = engine.restore_table("d", "m", moment).unwrap_err();
    assert!(matches!(refused, Error::OutsideHistory { .. }), "{refused}");
}

#[test]
fn a_state_whose_files_went_under_a_shorter_history_is_not_known_under_a_longer_one() {
    let (fs, clock) = (CrashFs::new(), Hand::new());
    let engine = open(&fs, &clock, &options(0));
    let before_ns = merged(&engine, &clock);
    let was = contents(&engine);
    engine.close().unwrap();
    let engine = open(&fs, &clock, &options(3_600));
    check_gone(&engine, &at(before_ns));
    engine.restore_table("d", "m", &at(before_ns + SECOND)).unwrap();
    clock.advance(10_000);
    engine.compact().unwrap();
    assert_eq!(contents(&engine), was);
}

#[test]
fn a_state_that_was_given_up_is_not_known_after_a_restart() {
    let (fs, clock) = (CrashFs::new(), Hand::new());
    let engine = open(&fs, &clock, &options(3_600));
    let before_ns = merged(&engine, &clock);
    engine.restore_table("d", "m", &at(before_ns)).unwrap();
    engine.compact().unwrap();
    clock.advance(1);
    engine.writer().unwrap().give_up_history();
    check_gone(&engine, &at(before_ns));
    write(&engine, "m,h=a v=9 9");
    engine.flush().unwrap();
    let was = contents(&engine);
    let killed = CrashFs::from_image(&fs.current());
    drop(engine);
    let engine = open(&killed, &clock, &options(3_600));
    check_gone(&engine, &at(before_ns));
    engine.restore_table("d", "m", &at(clock.now_ns())).unwrap();
    assert_eq!(contents(&engine), was);
}

#[test]
fn a_table_comes_back_from_files_that_are_there_and_whole() {
    let (fs, clock) = (CrashFs::new(), Hand::new());
    let engine = open(&fs, &clock, &options(3_600));
    write(&engine, "m,h=a v=1 1");
    let was = contents(&engine);
    engine.create_snapshot("kept").unwrap();
    engine.drop_table("d", "m").unwrap();
    engine.flush().unwrap();
    let kept = PastMoment::Snapshot("kept".into());
    let image = fs.current();
    let file = image.files().find(|path| path.starts_with("/data/past")).unwrap().to_owned();
    let bytes = fs.read(&file).unwrap();
    fs.remove_file(&file).unwrap();
    check_refused(&engine, &kept);
    assert!(engine.tables("d").unwrap().is_empty(), "nothing is half done");
    let write_file = |bytes: &[u8]| {
        let found = fs.create_new(&file).unwrap();
        found.write_all_at(&[bytes], 0).unwrap();
    };
    write_file(&bytes[..bytes.len() - 1]);
    let refused = engine.restore_table("d", "m", &kept).unwrap_err();
    assert!(matches!(refused, Error::Corrupt { .. }), "{refused}");
    fs.remove_file(&file).unwrap();
    write_file(&bytes);
    engine.restore_table("d", "m", &kept).unwrap();
    assert_eq!(contents(&engine), was);
}

#[test]
fn of_points_that_tie_the_same_one_wins_after_a_table_came_back() {
    let (fs, clock) = (CrashFs::new(), Hand::new());
    // With a log between them, none of them would tie.
    let tied = Options { durability: Durability::Memory, compaction: false, ..options(3_600) };
    let engine = open(&fs, &clock, &tied);
    let flush = |value: i64, time: i64| {
        write(&engine, &format!("m,h=a v={value} {time}"));
        engine.flush().unwrap();
    };
    flush(0, 86_400 * SECOND);
    flush(1, 0);
    flush(2, 0);
    let table = engine.table("d", "m").unwrap();
    let two: Vec<_> = table.stored().files.iter().filter(|file| file.late).cloned().collect();
    flush(3, 0);
    assert!(two.len() == 2 && two[0].version() == table.stored().files.last().unwrap().version());
    engine.create_snapshot("kept").unwrap();
    let was = contents(&engine);
    // A merge that was planned before the third came.
    let (shared, mut round) = (engine.writer().unwrap(), Round::default());
    let task = moves(&two, |_| true).remove(0);
    let done = shared.run_undamaged(&table, task, Keep::default(), None, &mut round).unwrap();
    assert_eq!(shared.commit_and_retire(done.into_iter().collect(), &mut round).unwrap(), 1);
    engine.restore_table("d", "m", &PastMoment::Snapshot("kept".into())).unwrap();
    assert_eq!(contents(&engine), was);
    let killed = CrashFs::from_image(&fs.current());
    drop(engine);
    assert_eq!(contents(&open(&killed, &clock, &tied)), was);
}

#[test]
fn a_reader_sees_no_row_twice_of_a_table_that_came_back() {
    let mut recorded = Recorded::new(options(3_600));
    recorded.line("m,h=a v=1 100");
    recorded.snapshot();
    recorded.record();
    recorded.engine.drop_table("d", "m").unwrap();
    recorded.line("m,h=a v=2 50");
    recorded.engine.flush().unwrap();
    recorded.record();
    recorded.engine.restore_table("d", "m", &PastMoment::Snapshot("s0".into())).unwrap();
    recorded.line("m,h=a v=9 100");
    recorded.record();
    recorded.line("m,h=a v=10 100");
    recorded.record();
    recorded.check();
}

#[test]
fn a_snapshot_that_cannot_be_read_for_a_moment_loses_no_file() {
    for (history, has_list) in [(0, false), (10, false), (0, true)] {
        let (fs, clock) = (CrashFs::new(), Hand::new());
        let engine = open(&fs, &clock, &options(history));
        write(&engine, "m,h=a v=1 1");
        engine.create_snapshot("kept").unwrap();
        let was = contents(&engine);
        engine.close().unwrap();
        let image = fs.current();
        let is_snapshot =
            |path: &&Path| path.starts_with("/data/meta/0") && path.to_string_lossy().contains("snapshot");
        let object = image.files().find(is_snapshot).unwrap().to_owned();
        let bytes = fs.read(&object).unwrap();
        // The manifest goes on, so that the directory opens without that object, and no commit says the same.
        let engine = open(&fs, &clock, &options(history));
        for _ in 0..300 {
            clock.advance(1);
            engine.set_retention("d", None, Some(Duration::from_secs(1 << 30))).unwrap();
        }
        engine.close().unwrap();
        fs.remove_file(&object).unwrap();
        let list =
            fs.current().files().find(|path| path.extension().is_some_and(|end| end == "kept")).unwrap().to_owned();
        if !has_list {
            fs.remove_file(&list).unwrap();
        }
        let engine = open(&fs, &clock, &options(history));
        write(&engine, "m,h=c v=3 3");
        engine.flush().unwrap();
        engine.drop_database("d").unwrap();
        engine.flush().unwrap();
        clock.advance(10_000);
        engine.compact().unwrap();
        let kept = PastMoment::Snapshot("kept".into());
        assert!(engine.writer().unwrap().past_state(&kept).is_err());
        fs.create_new(&object).unwrap().write_all_at(&[&bytes], 0).unwrap();
        engine.compact().unwrap();
        let past = engine.writer().unwrap().past_state(&kept).unwrap();
        assert_eq!(contents_of(&engine, &past.registry), was);
        drop(past);
        let left = |engine: &Engine| engine.stats().retired_files;
        assert_eq!(left(&engine), 1, "what no snapshot has goes");
        engine.drop_snapshot("kept").unwrap();
        engine.compact().unwrap();
        assert_eq!(left(&engine), 0);
    }
}
