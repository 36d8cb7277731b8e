//! The scheduler: of all threads of a schedule one runs at a time, until it comes to a step.
//!
//! They are threads of the system, so that code under it needs no more than this facade; each waits
//! for its turn. Time is a number that grows a little with each step, and jumps to the next
//! deadline when nothing can run.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::Thread,
    time::Duration,
};

use super::{
    order::{ScheduleOrder, mix},
    schedule::{Outcome, Schedule},
};

/// What a step takes.
const STEP_NS: u64 = 1_000;
/// How long a schedule may stand still in truth before it is given up: a thread waits for something
/// that the scheduler does not know.
const STUCK_AFTER: Duration = Duration::from_secs(60);

thread_local! {
    static ME: RefCell<Option<Me>> = const { RefCell::new(None) };
}

/// The thread that asks, in its schedule.
#[derive(Debug, Clone)]
pub(super) struct Me {
    world: Arc<World>,
    thread: usize,
}

/// Returns the thread that asks, if it is in a schedule.
pub(super) fn me() -> Option<Me> {
    ME.try_with(|me| me.try_borrow().ok().and_then(|me| me.clone())).ok().flatten()
}

/// One schedule.
#[derive(Debug)]
pub(super) struct World {
    state: Mutex<WorldState>,
    ended: Condvar,
}

#[derive(Debug)]
struct WorldState {
    threads: Vec<Simulated>,
    order: ScheduleOrder,
    steps: u64,
    most_steps: u64,
    switches: u64,
    now_ns: u64,
    hash: u64,
    /// The thread that is slow while it reads, and for how long.
    slow: Option<(&'static str, Duration)>,
    /// Writers that wait for a lock, by its address: readers do not overtake them.
    writers: BTreeMap<usize, usize>,
    failure: Option<String>,
    has_ended: bool,
}

#[derive(Debug)]
struct Simulated {
    name: String,
    run: ThreadRun,
    turn: Arc<ThreadTurn>,
    timed_out: bool,
    /// Locks that it has alone, and those that it shares.
    held: [usize; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ThreadRun {
    Ready,
    Waits { on: usize, until_ns: Option<u64> },
    Ended,
}

/// How a thread is told that it goes on.
#[derive(Debug, Default)]
struct ThreadTurn {
    is_mine: AtomicBool,
    thread: OnceLock<Thread>,
}

impl ThreadTurn {
    fn give(&self) {
        self.is_mine.store(true, Ordering::SeqCst);
        // One that has not begun yet looks before it waits.
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    fn wait(&self) {
        let _ = self.thread.set(std::thread::current());
        while !self.is_mine.swap(false, Ordering::SeqCst) {
            std::thread::park();
        }
    }
}

/// How a thread has a lock.
#[derive(Debug, Clone, Copy)]
pub(super) enum HeldLock {
    Alone,
    Shared,
}

/// The address that those wait on who wait for the end of a thread.
fn end_of(thread: usize) -> usize {
    usize::MAX - thread
}

impl World {
    pub(super) fn new(schedule: &Schedule) -> Arc<Self> {
        let state = WorldState {
            threads: Vec::new(),
            order: ScheduleOrder::new(schedule.strategy, schedule.seed),
            steps: 0,
            most_steps: schedule.most_steps,
            switches: 0,
            now_ns: 0,
            hash: schedule.seed,
            slow: schedule.slow,
            writers: BTreeMap::new(),
            failure: None,
            has_ended: false,
        };
        Arc::new(Self { state: Mutex::new(state), ended: Condvar::new() })
    }

    fn state(&self) -> MutexGuard<'_, WorldState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a thread, which can run at once.
    pub(super) fn add(self: &Arc<Self>, name: &str) -> Me {
        let mut state = self.state();
        state.order.add();
        let thread = state.threads.len();
        let turn = Arc::default();
        state.threads.push(Simulated {
            name: name.to_owned(),
            run: ThreadRun::Ready,
            turn,
            timed_out: false,
            held: [0; 2],
        });
        Me { world: Arc::clone(self), thread }
    }

    /// Lets the first thread go and waits until all have ended, or the schedule has failed. Then
    /// those that are left wait for ever.
    pub(super) fn run(&self) -> Outcome {
        let mut state = self.state();
        if let Some(first) = state.threads.first() {
            first.turn.give();
        }
        let mut steps = 0;
        while !state.has_ended && state.failure.is_none() {
            let (locked, timeout) = self.ended.wait_timeout(state, STUCK_AFTER).unwrap_or_else(PoisonError::into_inner);
            state = locked;
            if timeout.timed_out() && steps == state.steps && !state.has_ended {
                state.failure = Some("a thread waits for something that the scheduler does not know".to_owned());
            }
            steps = state.steps;
        }
        Outcome {
            steps: state.steps,
            switches: state.switches,
            hash: state.hash,
            time: Duration::from_nanos(state.now_ns),
            failure: state.failure.clone(),
        }
    }
}

impl WorldState {
    fn note(&mut self, number: u64) {
        self.hash = mix(self.hash.rotate_left(5) ^ number);
    }

    fn wake(&mut self, on: usize) {
        for thread in &mut self.threads {
            if matches!(thread.run, ThreadRun::Waits { on: waits, .. } if waits == on) {
                thread.run = ThreadRun::Ready;
            }
        }
    }

    /// Returns who goes on, after time has gone on where nothing can.
    fn next(&mut self, current: usize) -> Option<usize> {
        loop {
            let mut first = None;
            for thread in &mut self.threads {
                if let ThreadRun::Waits { until_ns: Some(until_ns), .. } = thread.run {
                    if until_ns <= self.now_ns {
                        (thread.run, thread.timed_out) = (ThreadRun::Ready, true);
                    } else {
                        first = Some(until_ns.min(first.unwrap_or(until_ns)));
                    }
                }
            }
            let ready = (0..).zip(&self.threads).filter(|(_, thread)| thread.run == ThreadRun::Ready);
            let ready: Vec<usize> = ready.map(|(number, _)| number).collect();
            if !ready.is_empty() {
                return self.order.choose(self.steps, current, &ready);
            }
            self.now_ns = first?;
        }
    }

    /// Returns how long a thread does nothing now, while it shares a lock and has none alone.
    fn slowness(&mut self, number: usize) -> Option<Duration> {
        let (name, time) = self.slow?;
        let is_slow =
            |thread: &Simulated| thread.name == name && thread.held.first() == Some(&0) && thread.held != [0, 0];
        (self.threads.get(number).is_some_and(is_slow) && self.order.below(4) == 0).then_some(time)
    }

    fn waiting(&self) -> String {
        let waits = |thread: &&Simulated| matches!(thread.run, ThreadRun::Waits { .. });
        let names: Vec<&str> = self.threads.iter().filter(waits).map(|thread| thread.name.as_str()).collect();
        names.join(", ")
    }
}

impl Me {
    /// Makes this thread the one that `me` returns, and waits for its turn.
    pub(super) fn enter(self) {
        let turn = self.turn();
        ME.set(Some(self));
        turn.wait();
    }

    fn turn(&self) -> Arc<ThreadTurn> {
        let state = self.world.state();
        state.threads.get(self.thread).map(|thread| Arc::clone(&thread.turn)).unwrap_or_default()
    }

    /// Adds a thread to the schedule.
    pub(super) fn add(&self, name: &str) -> Me {
        self.world.add(name)
    }

    pub(super) fn number(&self) -> usize {
        self.thread
    }

    /// One step: the thread that is chosen goes on.
    pub(super) fn step(&self) {
        if std::thread::panicking() {
            return;
        }
        let mut state = self.world.state();
        if let Some(time) = state.slowness(self.thread) {
            drop(state);
            self.wait(end_of(self.thread), Some(time));
            state = self.world.state();
        }
        self.switch(state);
    }

    /// Notes that this thread has a lock, alone or with others.
    pub(super) fn takes(&self, kind: HeldLock) {
        let mut state = self.world.state();
        if let Some(count) = state.threads.get_mut(self.thread).and_then(|thread| thread.held.get_mut(kind as usize)) {
            *count += 1;
        }
    }

    /// Notes that it has it no more, and lets those go on that wait for it.
    pub(super) fn gives(&self, kind: HeldLock, on: usize) {
        let mut state = self.world.state();
        if let Some(count) = state.threads.get_mut(self.thread).and_then(|thread| thread.held.get_mut(kind as usize)) {
            *count = count.saturating_sub(1);
        }
        state.wake(on);
    }

    fn switch(&self, mut state: MutexGuard<'_, WorldState>) {
        state.steps += 1;
        state.now_ns += STEP_NS;
        if state.steps > state.most_steps {
            let waiting = state.waiting();
            return self.fail(state, format!("it does not end; waiting: {waiting}"));
        }
        let Some(next) = state.next(self.thread) else {
            let waiting = state.waiting();
            return self.fail(state, format!("deadlock; waiting: {waiting}"));
        };
        state.note(next as u64);
        if next == self.thread {
            return;
        }
        state.switches += 1;
        let turn_of = |number: usize| state.threads.get(number).map(|thread| Arc::clone(&thread.turn));
        let (mine, theirs) = (turn_of(self.thread), turn_of(next));
        let has_ended = state.threads.get(self.thread).is_some_and(|thread| thread.run == ThreadRun::Ended);
        drop(state);
        if let Some(turn) = theirs {
            turn.give();
        }
        if let (Some(turn), false) = (mine, has_ended) {
            turn.wait();
        }
    }

    /// Ends the schedule; this thread and all others stay where they are.
    fn fail(&self, mut state: MutexGuard<'_, WorldState>, failure: String) {
        state.failure.get_or_insert(failure);
        self.world.ended.notify_all();
        drop(state);
        loop {
            std::thread::park();
        }
    }

    /// Ends the schedule because of what this thread has found.
    pub(super) fn found(&self, failure: String) {
        let state = self.world.state();
        let name = state.threads.get(self.thread).map_or("?", |thread| thread.name.as_str());
        let failure = format!("{name}: {failure}");
        self.fail(state, failure);
    }

    /// Waits until a thread wakes those that wait on `on`, or for the time; returns whether that
    /// was over.
    pub(super) fn wait(&self, on: usize, time: Option<Duration>) -> bool {
        let mut state = self.world.state();
        let until_ns = time.map(|time| state.now_ns.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)));
        if let Some(thread) = state.threads.get_mut(self.thread) {
            (thread.run, thread.timed_out) = (ThreadRun::Waits { on, until_ns }, false);
        }
        self.switch(state);
        let state = self.world.state();
        state.threads.get(self.thread).is_some_and(|thread| thread.timed_out)
    }

    /// Lets all go on that wait on `on`.
    pub(super) fn wake(&self, on: usize) {
        self.world.state().wake(on);
    }

    /// Lets one go on of those that wait on `on`, any of them; returns whether there was one.
    pub(super) fn wake_one(&self, on: usize) -> bool {
        let mut state = self.world.state();
        let waits =
            |(_, thread): &(usize, &Simulated)| matches!(thread.run, ThreadRun::Waits { on: waits, .. } if waits == on);
        let waiting: Vec<usize> = (0..).zip(&state.threads).filter(waits).map(|(number, _)| number).collect();
        if waiting.is_empty() {
            return false;
        }
        let at = state.order.below(waiting.len());
        if let Some(thread) = waiting.get(at).and_then(|number| state.threads.get_mut(*number)) {
            thread.run = ThreadRun::Ready;
        }
        true
    }

    /// Waits until a thread has ended.
    pub(super) fn join(&self, thread: usize) {
        self.step();
        loop {
            let state = self.world.state();
            if state.threads.get(thread).is_none_or(|thread| thread.run == ThreadRun::Ended) {
                return;
            }
            drop(state);
            self.wait(end_of(thread), None);
        }
    }

    /// Ends this thread.
    pub(super) fn end(&self) {
        ME.set(None);
        let mut state = self.world.state();
        if let Some(thread) = state.threads.get_mut(self.thread) {
            thread.run = ThreadRun::Ended;
        }
        state.wake(end_of(self.thread));
        if state.threads.iter().all(|thread| thread.run == ThreadRun::Ended) {
            state.has_ended = true;
            self.world.ended.notify_all();
            return;
        }
        self.switch(state);
    }

    /// Notes that a writer waits for the lock at an address, or no longer does.
    pub(super) fn writer_waits(&self, on: usize, waits: bool) {
        let mut state = self.world.state();
        let count = state.writers.entry(on).or_default();
        *count = if waits { *count + 1 } else { count.saturating_sub(1) };
        if *count == 0 {
            state.writers.remove(&on);
        }
    }

    pub(super) fn has_writer_waiting(&self, on: usize) -> bool {
        self.world.state().writers.contains_key(&on)
    }

    pub(super) fn now(&self) -> Duration {
        Duration::from_nanos(self.world.state().now_ns)
    }

    pub(super) fn steps(&self) -> u64 {
        self.world.state().steps
    }

    /// Makes a number part of what has to be the same in each run of a seed.
    pub(super) fn note(&self, number: u64) {
        self.world.state().note(number);
    }

    /// Draws a number below `end`.
    pub(super) fn draw(&self, end: usize) -> usize {
        self.world.state().order.below(end)
    }
}
