//! Calls of the file system that fail: no frame is durable without its sync, and the next open is
//! clean.

use std::{collections::BTreeSet, io};

use super::*;
use crate::vfs::{Fault, FaultFs, Forgets, Operation, Site};

/// How far a scenario came.
#[derive(Debug, Default)]
struct Outcome {
    /// Frames handed to `append`, whether it succeeded or not.
    tried: u64,
    durable: u64,
    released: u64,
    error: Option<Error>,
}

/// Appends, syncs, rolls, recycles, makes spares and opens again, until a call fails.
fn run(vfs: &Arc<dyn Vfs>, outcome: &mut Outcome) -> Result<()> {
    for round in 0..4 {
        let (mut wal, _) = open_at(Arc::clone(vfs), Path::new(DIR), outcome.released)?;
        outcome.durable = wal.durable_seq().0;
        for step in 0..5 {
            let last = wal.last_seq().0;
            outcome.tried = last + 7;
            check_failure(append(&mut wal, last + 1..=last + 7), &mut wal)?;
            if step % 2 == 0 {
                check_failure(wal.sync(), &mut wal)?;
                outcome.durable = wal.last_seq().0;
            }
        }
        outcome.released = outcome.durable - 10;
        wal.release(SequenceNumber(outcome.released))?;
        if round == 2 {
            wal.spare_maker().make()?;
        }
    }
    Ok(())
}

/// After a failed append or sync the log takes nothing more, unless it says that it is as it was.
fn check_failure(result: Result<()>, wal: &mut Wal) -> Result<()> {
    if result.is_err() && wal.is_failed() {
        let next = wal.last_seq().0 + 1;
        for later in [append(wal, next..=next), wal.sync(), wal.release(SequenceNumber(1))] {
            assert!(matches!(later, Err(Error::Closed { .. })));
        }
    }
    result
}

/// Runs the scenario with one fault and checks what is left; returns the error, and the sites
/// called and failed.
fn run_with(fault: Fault) -> (Option<Error>, BTreeSet<Site>, BTreeSet<Site>) {
    let crash = CrashFs::new();
    let faulty = FaultFs::new(Arc::new(crash.clone()));
    faulty.set(fault);
    let mut outcome = Outcome::default();
    let vfs: Arc<dyn Vfs> = Arc::new(faulty.clone());
    outcome.error = run(&vfs, &mut outcome).err();
    let killed = std::iter::once(crash.current());
    for image in killed.chain(crash.power_cut().images(fault.nth, 6)) {
        let (mut wal, replayed) = open_image(&image, outcome.released).unwrap();
        let last = wal.last_seq().0;
        assert_eq!(replayed, entries(outcome.released + 1..=last));
        assert!((outcome.durable..=outcome.tried.max(outcome.durable)).contains(&last), "{last}, {outcome:?}");
        append(&mut wal, last + 1..=last + 1).unwrap();
    }
    (outcome.error, faulty.called().into_keys().collect(), faulty.failed().into_keys().collect())
}

#[test]
fn whichever_call_fails_it_is_reported_and_every_synced_frame_is_there_again() {
    use io::ErrorKind::{Interrupted, Other, StorageFull};
    let (mut called, mut failed) = (BTreeSet::new(), BTreeSet::new());
    for (kind, short_write, from_then_on) in
        [(Other, false, false), (StorageFull, false, true), (StorageFull, true, false), (Interrupted, true, true)]
    {
        for nth in 1.. {
            let fault = Fault { operation: None, nth, from_then_on, error: kind, short_write, short_read: false };
            let (error, sites, failures) = run_with(fault);
            if failures.is_empty() {
                assert!(error.is_none() && nth > 100, "{nth} calls, {error:?}");
                break;
            }
            assert!(error.is_some(), "{failures:?} failed unheard");
            called.extend(sites);
            failed.extend(failures);
        }
    }
    assert_eq!(called, failed, "every site has failed");
}

#[test]
fn after_a_failed_sync_nothing_is_synced_again() {
    let faulty = FaultFs::new(Arc::new(CrashFs::new()));
    let (mut wal, _) = open_at(Arc::new(faulty.clone()), Path::new(DIR), 0).unwrap();
    append(&mut wal, 1..=3).unwrap();
    faulty.set(Fault::nth(1, io::ErrorKind::Other).of(Operation::SyncData));
    assert!(matches!(wal.sync(), Err(Error::Io { .. })));
    let calls = faulty.total_calls();
    assert!(matches!(wal.sync(), Err(Error::Closed { .. })));
    let Err(Error::Closed { reason }) = append(&mut wal, 4..=4) else { panic!("the log is failed") };
    assert!(reason.starts_with("the write-ahead log failed: "), "{reason}");
    assert!(matches!(wal.release(SequenceNumber(3)), Err(Error::Closed { .. })));
    assert_eq!((faulty.total_calls(), wal.durable_seq().0), (calls, 0));
}

#[test]
fn a_sync_does_not_make_durable_what_an_append_has_broken_meanwhile() {
    let faulty = FaultFs::new(Arc::new(CrashFs::new()));
    let (mut wal, _) = open_at(Arc::new(faulty.clone()), Path::new(DIR), 0).unwrap();
    append(&mut wal, 1..=3).unwrap();
    wal.want_sync();
    let sync = wal.begin_sync().unwrap();
    faulty.set(Fault::nth(1, io::ErrorKind::Other).of(Operation::WriteAllAt));
    assert!(matches!(append(&mut wal, 4..=4), Err(Error::Io { .. })));
    let calls = faulty.total_calls();
    assert!(matches!(sync.run(), Err(Error::Closed { .. })));
    assert!(wal.begin_sync().is_none());
    assert_eq!((faulty.total_calls(), wal.durable_seq().0), (calls, 0), "and no file is synced after that");
}

#[test]
fn frames_appended_during_a_sync_that_fails_are_in_no_other() {
    let faulty = FaultFs::new(Arc::new(CrashFs::new()));
    let (mut wal, _) = open_at(Arc::new(faulty.clone()), Path::new(DIR), 0).unwrap();
    append(&mut wal, 1..=3).unwrap();
    wal.want_sync();
    let sync = wal.begin_sync().unwrap();
    append(&mut wal, 4..=6).unwrap();
    wal.want_sync();
    faulty.set(Fault::nth(1, io::ErrorKind::Other).of(Operation::SyncData));
    assert!(matches!(sync.run(), Err(Error::Io { .. })));
    assert!(wal.begin_sync().is_none());
    assert!(matches!(append(&mut wal, 7..=7), Err(Error::Closed { .. })));
    assert_eq!(wal.durable_seq().0, 0);
}

#[test]
fn a_sync_that_is_given_up_fails_the_log() {
    let (mut wal, _) = open(&CrashFs::new(), 0).unwrap();
    append(&mut wal, 1..=1).unwrap();
    wal.want_sync();
    drop(wal.begin_sync().unwrap());
    assert!(matches!(append(&mut wal, 2..=2), Err(Error::Closed { .. })));
}

#[test]
fn a_disk_without_room_for_a_segment_refuses_and_goes_on_once_there_is() {
    let crash = CrashFs::new();
    let faulty = FaultFs::new(Arc::new(crash.clone()));
    let (mut wal, _) = open_at(Arc::new(faulty.clone()), Path::new(DIR), 0).unwrap();
    append(&mut wal, 1..=10).unwrap();
    faulty.set(Fault::nth(1, io::ErrorKind::StorageFull).of(Operation::CreateNew).from_then_on());
    let large = Entry { seq: 11, kind: 0, meta: vec![], body: vec![1; 10_000] };
    for group in [vec![large.clone()], entries(11..=25)] {
        assert!(matches!(append_all(&mut wal, &group), Err(Error::Io { .. })));
        assert!(!wal.is_failed());
        assert_eq!(wal.last_seq().0, 10);
    }
    assert!(wal.spare_maker().make().is_err());
    faulty.clear();
    append_all(&mut wal, std::slice::from_ref(&large)).unwrap();
    append(&mut wal, 12..=25).unwrap();
    let replayed = open(&crash, 0).unwrap().1;
    assert_eq!(replayed, [entries(1..=10), vec![large], entries(12..=25)].concat());
}

#[test]
fn a_roll_without_file_descriptors_or_memory_is_refused_and_tried_again() {
    for operation in [Operation::CreateNew, Operation::Rename, Operation::SyncDir] {
        let crash = CrashFs::new();
        let faulty = FaultFs::new(Arc::new(crash.clone()));
        let (mut wal, _) = open_at(Arc::new(faulty.clone()), Path::new(DIR), 0).unwrap();
        append(&mut wal, 1..=3).unwrap();
        faulty.set(Fault::nth(1, io::ErrorKind::OutOfMemory).of(operation).from_then_on());
        let mut last = 3;
        for _ in 0..3 {
            let refused = loop {
                match append(&mut wal, last + 1..=last + 1) {
                    Ok(()) => last += 1,
                    Err(error) => break error,
                }
            };
            let Error::Io { source, .. } = &refused else { panic!("{operation:?}: {refused}") };
            assert_eq!(source.kind(), io::ErrorKind::OutOfMemory, "{operation:?}");
            assert_eq!((wal.is_failed(), wal.last_seq().0), (false, last), "{operation:?}");
            // What is there can be made durable meanwhile.
            if operation != Operation::SyncDir {
                wal.sync().unwrap();
            }
        }
        if operation == Operation::Rename {
            // It cannot be put back under its old name, either.
            continue;
        }
        faulty.clear();
        append(&mut wal, last + 1..=last + 40).unwrap();
        wal.sync().unwrap();
        for image in std::iter::once(crash.current()).chain(crash.power_cut().images(7, 6)) {
            let (wal, replayed) = open_image(&image, 0).unwrap();
            assert_eq!((replayed, wal.last_seq().0), (entries(1..=last + 40), last + 40), "{operation:?}");
        }
    }
}

#[test]
fn a_segment_that_was_made_ahead_needs_no_file_descriptor() {
    let faulty = FaultFs::new(Arc::new(CrashFs::new()));
    let (mut wal, _) = open_at(Arc::new(faulty.clone()), Path::new(DIR), 0).unwrap();
    append(&mut wal, 1..=3).unwrap();
    let opened = || [Operation::Open, Operation::CreateNew].map(|operation| faulty.calls(operation));
    let renamed = || faulty.calls(Operation::Rename);
    for round in 0..3 {
        wal.spare_maker().make().unwrap();
        assert!(!wal.spare_needed());
        let (before, renames) = (opened(), renamed());
        while renamed() == renames {
            let next = wal.last_seq().0 + 1;
            append(&mut wal, next..=next).unwrap();
        }
        assert_eq!(opened(), before, "round {round}");
        assert!(wal.spare_needed());
        // The next time one that was released is used.
        wal.sync().unwrap();
        wal.release(wal.last_seq()).unwrap();
    }
}

#[test]
fn a_segment_of_which_only_a_part_is_read_is_no_torn_tail() {
    let fs = CrashFs::new();
    let (mut wal, _) = open(&fs, 0).unwrap();
    append(&mut wal, 1..=40).unwrap();
    wal.sync().unwrap();
    let before = fs.current();
    assert!(files(&before, ".wal").len() > 1);
    let faults = FaultFs::new(Arc::new(fs.clone()));
    for nth in 1..=files(&before, ".wal").len() as u64 {
        faults.set(Fault::nth(nth, io::ErrorKind::Other).of(Operation::Read).short_read());
        let error = open_at(Arc::new(faults.clone()), Path::new(DIR), 0).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Corrupt, "{error}");
        assert_eq!(fs.current(), before);
    }
    assert_eq!(open(&fs, 0).unwrap().1, entries(1..=40));
}

#[test]
fn what_a_sync_that_failed_has_lost_is_written_again_by_the_next_open() {
    let fs = CrashFs::new();
    let faults = FaultFs::over(&fs, Forgets::Writes);
    let (mut wal, _) = open_at(Arc::new(faults.clone()), Path::new(DIR), 0).unwrap();
    append(&mut wal, 1..=20).unwrap();
    wal.sync().unwrap();
    append(&mut wal, 21..=30).unwrap();
    faults.set(Fault::nth(1, io::ErrorKind::Other).of(Operation::SyncData));
    wal.sync().unwrap_err();
    // The frames are seen, and a sync alone would not make them durable.
    assert_eq!(open(&CrashFs::from_image(&fs.power_cut().images(1, 1).next().unwrap()), 0).unwrap().1, entries(1..=20));
    assert_eq!(open(&fs, 0).unwrap().1, entries(1..=30));
    for image in fs.power_cut().images(1, 20) {
        assert_eq!(open_image(&image, 0).unwrap().1, entries(1..=30));
    }
}
