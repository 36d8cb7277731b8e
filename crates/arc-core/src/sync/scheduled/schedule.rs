//! Running something under a schedule, and asking for a step from inside.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use super::world::{Me, World, me};

pub use super::order::{Draws, Strategy};

/// What decides a schedule.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    /// Of all draws.
    pub seed: u64,
    /// How they are drawn.
    pub strategy: Strategy,
    /// Steps after which it counts as one that does not end.
    pub most_steps: u64,
    /// The name of a thread that takes so long now and then while it shares a lock with others, and
    /// has none alone: as a thread does who decodes a large request.
    pub slow: Option<(&'static str, Duration)>,
}

/// What became of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Steps of all threads.
    pub steps: u64,
    /// Steps at which another thread went on.
    pub switches: u64,
    /// Of who went on at each step, and of all that was [noted](note).
    pub hash: u64,
    /// The time that has gone by in it.
    pub time: Duration,
    /// Why it has failed: a panic, a deadlock, no end.
    pub failure: Option<String>,
}

/// Runs `root` and all threads that it starts, one at a time, until all have ended.
///
/// After a failure the threads that are left stay for as long as the process does.
pub fn run(schedule: &Schedule, root: impl FnOnce() + Send + 'static) -> Outcome {
    let world = World::new(schedule);
    let first = world.add("root");
    let thread = std::thread::spawn(move || inside(first, root));
    let outcome = world.run();
    if outcome.failure.is_none() {
        let _ = thread.join();
    }
    outcome
}

/// Does the work of one thread of a schedule.
pub(super) fn inside<T>(me: Me, work: impl FnOnce() -> T) -> Option<T> {
    me.clone().enter();
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => {
            me.end();
            Some(done)
        }
        Err(panic) => {
            me.found(format!("panicked: {}", said(panic.as_ref())));
            None
        }
    }
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text")
}

/// Lets another thread go on, if it is chosen.
pub fn step() {
    if let Some(me) = me() {
        me.step();
    }
}

/// Makes a number part of the [hash](Outcome::hash).
pub fn note(number: u64) {
    if let Some(me) = me() {
        me.note(number);
    }
}

/// Draws a number below `end` for what the code under test leaves to chance; 0 outside of a
/// schedule.
#[must_use]
pub fn draw(end: usize) -> usize {
    me().map_or(0, |me| me.draw(end))
}

/// Returns the time since the schedule began.
#[must_use]
pub fn now() -> Duration {
    me().map_or(Duration::ZERO, |me| me.now())
}

/// Returns the steps so far.
#[must_use]
pub fn steps() -> u64 {
    me().map_or(0, |me| me.steps())
}
