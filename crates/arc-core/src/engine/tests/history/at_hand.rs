//! An older state that is asked for again is not made again, and nothing that is kept for that outlives
//! its use.

use std::sync::Arc;

use super::{Recorded, SECOND, options};
use crate::{
    engine::{EngineRole, history::PastState},
    model::PastMoment,
};

/// Asks the writer and the reader for the state of a time.
fn both(recorded: &Recorded, time_ns: i64) -> [Arc<PastState>; 2] {
    let EngineRole::Reader(reader) = &recorded.reader.inner.role else { panic!("it is no reader") };
    drop(reader.pin().unwrap());
    let moment = PastMoment::Time(time_ns);
    [recorded.engine.writer().unwrap().past_state(&moment).unwrap(), reader.past_state(&moment).unwrap()]
}

fn are_same(some: &[Arc<PastState>; 2], others: &[Arc<PastState>; 2]) -> [bool; 2] {
    std::array::from_fn(|nth| Arc::ptr_eq(&some[nth], &others[nth]))
}

#[test]
fn a_state_is_made_once_unless_frames_may_still_belong_to_it() {
    let mut recorded = Recorded::new(options(3_600));
    recorded.line("m,h=a v=1 1");
    recorded.engine.flush().unwrap();
    recorded.line("m,h=b v=2 2");
    recorded.record();
    let time_ns = recorded.states[0].0;
    let first = both(&recorded, time_ns);
    assert_eq!(are_same(&first, &both(&recorded, time_ns)), [true; 2], "nothing came in between");
    recorded.line("m,h=c v=3 3");
    let cut = both(&recorded, time_ns);
    assert_eq!(are_same(&first, &cut), [false; 2], "no frame had been too late for it");
    assert_eq!(are_same(&cut, &both(&recorded, time_ns)), [true; 2], "nothing came in between");
    for value in 4..6 {
        recorded.engine.flush().unwrap();
        recorded.line(&format!("m,h=d v={value} {value}"));
    }
    let whole = both(&recorded, time_ns);
    recorded.line("m,h=e v=6 6");
    recorded.engine.flush().unwrap();
    assert_eq!(are_same(&whole, &both(&recorded, time_ns)), [true; 2], "two flushes came after it");
    recorded.record();
    recorded.check();
}

#[test]
fn only_the_few_last_are_kept() {
    let mut recorded = Recorded::new(options(3_600));
    for round in 0..6 {
        recorded.line(&format!("m v={round} {round}"));
        recorded.record();
    }
    let times: Vec<i64> = recorded.states.iter().map(|(time_ns, _)| *time_ns).collect();
    let first = both(&recorded, times[0]);
    for time_ns in &times[1..4] {
        both(&recorded, *time_ns);
    }
    assert_eq!(are_same(&first, &both(&recorded, times[0])), [true; 2]);
    both(&recorded, times[4]);
    assert_eq!(are_same(&first, &both(&recorded, times[0])), [true; 2], "it was asked for, others were not");
    for time_ns in &times[1..5] {
        both(&recorded, *time_ns);
    }
    assert_eq!(are_same(&first, &both(&recorded, times[0])), [false; 2]);
    recorded.check();
}

#[test]
fn what_is_too_old_or_not_asked_for_keeps_no_rows_and_no_files() {
    for (history, rest) in [(3_600, 61), (30, 31)] {
        let mut recorded = Recorded::new(options(history));
        recorded.line("m,h=a v=1 1");
        recorded.engine.flush().unwrap();
        recorded.line("m,h=b v=2 2");
        recorded.record();
        recorded.line("m,h=c v=3 3");
        recorded.engine.flush().unwrap();
        let used = recorded.engine.writer().unwrap().memory.used();
        let weak = both(&recorded, recorded.states[0].0).map(|state| Arc::downgrade(&state));
        assert!(weak.iter().all(|state| state.strong_count() == 1));
        assert!(recorded.engine.writer().unwrap().memory.used() > used, "its rows count");
        recorded.clock.advance(rest);
        let EngineRole::Reader(reader) = &recorded.reader.inner.role else { panic!("it is no reader") };
        reader.renew().unwrap();
        recorded.engine.compact().unwrap();
        assert!(weak.iter().all(|state| state.strong_count() == 0), "{history}");
        assert_eq!(recorded.engine.writer().unwrap().memory.used(), used);
    }
}

#[test]
fn what_is_known_of_tables_and_files_counts_as_their_rows_do() {
    let mut recorded = Recorded::new(options(3_600));
    let lines: String = (0..300).map(|nth| format!("t{nth},h=a v={nth},w=\"text\" {nth}\n")).collect();
    recorded.line(&lines);
    recorded.snapshot();
    recorded.record();
    recorded.line("m v=1 1");
    recorded.engine.flush().unwrap();
    let shared = recorded.engine.writer().unwrap();
    let used = shared.memory.used();
    for moment in [PastMoment::Time(recorded.states[0].0), PastMoment::Snapshot("s0".into())] {
        let before = shared.memory.used();
        let state = shared.past_state(&moment).unwrap();
        let taken = shared.memory.used() - before;
        assert!(taken == state.held_bytes() && taken > 300 << 10, "{moment:?}: {taken}");
    }
    recorded.clock.advance(61);
    recorded.engine.compact().unwrap();
    assert_eq!(recorded.engine.writer().unwrap().memory.used(), used);
}

#[test]
fn a_large_state_is_not_kept() {
    let mut options = options(3_600);
    options.memory_bytes = 32 << 20;
    let mut recorded = Recorded::new(options);
    for round in 0..40 {
        recorded.line(&format!("m text=\"{}{round}\" {round}", "x".repeat(30_000)));
    }
    recorded.record();
    recorded.line("m v=1 1");
    let time_ns = recorded.states[0].0;
    assert!(both(&recorded, time_ns)[0].held_bytes() > 1 << 20);
    assert_eq!(are_same(&both(&recorded, time_ns), &both(&recorded, time_ns)), [false; 2]);
    assert_eq!(recorded.at(time_ns + SECOND / 2).unwrap(), recorded.states[0].1);
}
