//! The process dies at each named step of commit, flush and recovery, and its writes are sent again
//! to the next one: each is there exactly once.

use crate::{
    deaths::{POINTS, at_each, directory, run, say},
    retries::{WRITES, builder, send, send_all_again},
};

const PROCESS: &str = "retry_points::the_process_that_dies";

/// Not a test by itself: writes and flushes until it dies, and says which writes were acknowledged.
#[test]
#[ignore = "started by the test below"]
fn the_process_that_dies() {
    let Some(directory) = directory() else { return };
    let engine = builder(&directory).open().unwrap();
    for n in 0..WRITES {
        let _ = send(&engine, n).unwrap();
        say("acknowledged", n);
        if n % 2 == 1 {
            engine.flush().unwrap();
        }
    }
}

#[test]
fn after_a_death_at_any_step_a_retry_makes_it_exactly_once() {
    at_each(PROCESS, &POINTS, |directory, point, said| {
        let mut acknowledged = said.of("acknowledged");
        // The next process sends everything again from the start, and dies in its turn or not.
        acknowledged.extend(run(PROCESS, directory, point).of("acknowledged"));
        let engine = builder(directory).open().unwrap();
        send_all_again(&engine, &|n| acknowledged.contains(&n), point);
    });
}
