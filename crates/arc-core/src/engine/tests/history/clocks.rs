//! A clock that goes ahead for a moment, or is put back, hides nothing that was answered and keeps
//! nothing for ever.

use super::*;

const DAYS: i64 = 40 * 86_400;

impl Recorded {
    fn now(&self) -> i64 {
        self.clock.now_ns()
    }

    /// Checks that the state of now is what there is, for both, and also once a table is restored to it.
    fn check_now(&self) {
        let is = contents(&self.engine);
        assert_eq!(self.at(self.now()).unwrap(), is);
        let tables: Vec<_> = self.engine.tables("d").unwrap_or_default();
        for table in tables {
            self.engine.restore_table("d", &table.schema.table, &PastMoment::Time(self.now())).unwrap();
        }
        assert_eq!(contents(&self.engine), is);
    }

    /// Compares what there was at each time with what there can have been.
    fn check_possible(&self) {
        let now_ns = self.now();
        let times: Vec<i64> = self.states.iter().map(|(time_ns, _)| *time_ns).filter(|at| *at <= now_ns).collect();
        for time_ns in times {
            let is = self.at(time_ns);
            let Ok(is) = is else {
                assert!(matches!(is, Err(Error::OutsideHistory { .. })), "{is:?}");
                continue;
            };
            // All that was answered by then, and of what came later only what came when the clock was ahead.
            let last = self.states.iter().rposition(|(at, _)| *at <= time_ns).unwrap();
            let mut may_be = vec![&self.states[last].1];
            for (at, was) in &self.states[last + 1..] {
                if *at > now_ns || Some(&was) == may_be.last() {
                    may_be.push(was);
                } else {
                    break;
                }
            }
            assert!(may_be.contains(&&is), "{}: {} lines", time_ns - START, is.len());
        }
    }
}

#[derive(Debug, Clone)]
enum Clocked {
    Step(Step),
    Ahead(i64),
    Back(i64),
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_was_answered_is_missing_wherever_the_clock_was(
        steps in vec(prop_oneof![
            4 => super::step().prop_map(Clocked::Step),
            1 => (1..60_i64).prop_map(Clocked::Ahead),
            1 => (1..60_i64).prop_map(Clocked::Back),
        ], 1..16)
    ) {
        let mut recorded = Recorded::new(options(50));
        for step in steps {
            match step {
                Clocked::Step(step) => recorded.step(step),
                Clocked::Ahead(seconds) => recorded.clock.advance(seconds),
                Clocked::Back(seconds) => {
                    recorded.clock.advance(-seconds);
                    // Without anything that says so, nobody could know of it later.
                    recorded.line(&format!("back v={seconds} {seconds}"));
                }
            }
            assert_eq!(recorded.at(recorded.now()).unwrap(), contents(&recorded.engine));
            recorded.record();
        }
        recorded.check_possible();
        recorded.check_now();
        recorded.reopen(true);
        recorded.check_possible();
        recorded.check_now();
    }
}

#[test]
fn one_commit_or_write_while_the_clock_is_ahead_hides_nothing_of_what_comes_later() {
    for is_commit in [true, false] {
        let mut recorded = Recorded::new(options(3_600));
        recorded.line("m,h=a v=0 1");
        recorded.record();
        recorded.clock.advance(DAYS);
        recorded.line("m,h=b v=0 1");
        if is_commit {
            recorded.engine.flush().unwrap();
        }
        recorded.clock.advance(1 - DAYS);
        recorded.check_now();
        for value in 0..12 {
            recorded.record();
            recorded.line(&format!("m,h=a v={value} {value}"));
            recorded.check_now();
        }
        recorded.reopen(true);
        recorded.check_now();
        recorded.check_possible();
    }
}

#[test]
fn what_came_while_the_clock_was_ahead_is_forgotten_as_everything_else() {
    let mut recorded = Recorded::new(options(100));
    for life in 0..3 {
        recorded.clock.advance(DAYS);
        recorded.line("m,h=a v=0 1");
        recorded.engine.flush().unwrap();
        recorded.line("m,h=a v=1 1");
        recorded.engine.flush().unwrap();
        recorded.engine.compact().unwrap();
        recorded.clock.advance(-DAYS);
        for round in 0..150 {
            recorded.clock.advance(1);
            recorded.line(&format!("m,h=a v={round} 1"));
            recorded.engine.flush().unwrap();
            recorded.engine.compact().unwrap();
        }
        let stats = recorded.engine.stats();
        assert!(stats.retired_files <= 220, "{life}: {}", stats.retired_files);
        recorded.reopen(life == 1);
    }
    recorded.clock.advance(101);
    recorded.line("m,h=a v=0 1");
    recorded.engine.flush().unwrap();
    recorded.clock.advance(101);
    recorded.engine.compact().unwrap();
    assert_eq!(recorded.engine.stats().retired_files, 0);
    let image = recorded.fs.current();
    let commits = image.files().filter(|path| path.starts_with("/data/meta/0")).count();
    assert!(commits < 300, "{commits}");
}

#[test]
fn a_state_that_is_kept_at_hand_is_made_anew_once_the_clock_was_put_back() {
    let mut recorded = Recorded::new(options(3_600));
    recorded.line("m,h=a v=1 1");
    recorded.record();
    let asked_ns = recorded.now() + 10 * SECOND;
    recorded.clock.advance(1_000);
    for value in 0..3 {
        recorded.line(&format!("m,h=b v={value} 2"));
        recorded.engine.flush().unwrap();
        recorded.clock.advance(1);
    }
    assert_eq!(recorded.at(asked_ns).unwrap(), recorded.states[0].1);
    recorded.clock.advance(-1_000);
    recorded.line("m,h=c v=3 3");
    recorded.engine.flush().unwrap();
    let is = contents(&recorded.engine);
    recorded.clock.advance(20);
    assert_eq!(recorded.at(asked_ns).unwrap(), is);
}
