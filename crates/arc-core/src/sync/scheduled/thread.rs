//! Threads that are in the schedule of the thread that starts them.

use std::{
    io,
    num::NonZeroUsize,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use super::{
    schedule::inside,
    world::{Me, me},
};

/// Processors that a schedule has.
const CORES: NonZeroUsize = NonZeroUsize::new(4).expect("four is more than zero");

/// Returns how many threads can run at the same time.
///
/// # Errors
///
/// Those of [`std::thread::available_parallelism`].
pub fn available_parallelism() -> io::Result<NonZeroUsize> {
    if me().is_some() { Ok(CORES) } else { std::thread::available_parallelism() }
}

/// Waits for a while.
#[expect(clippy::disallowed_methods, reason = "a thread that is in no schedule waits as ever")]
pub fn sleep(time: Duration) {
    match me() {
        Some(me) => {
            let nobody = 0;
            me.wait((&raw const nobody) as usize, Some(time));
        }
        None => std::thread::sleep(time),
    }
}

/// Settings of a thread.
#[derive(Debug, Default)]
pub struct Builder {
    name: Option<String>,
}

impl Builder {
    /// Returns the defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the name.
    #[must_use]
    pub fn name(mut self, name: String) -> Self {
        self.name = Some(name);
        self
    }

    /// Starts a thread.
    ///
    /// # Errors
    ///
    /// That of the system.
    pub fn spawn<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> io::Result<JoinHandle<T>> {
        let name = self.name.unwrap_or_default();
        let me = me();
        let its = me.as_ref().map(|me| me.add(&name));
        let number = its.as_ref().map(Me::number);
        let thread = std::thread::Builder::new().name(name).spawn(move || run(its, work))?;
        if let Some(me) = me {
            me.step();
        }
        Ok(JoinHandle { thread, number })
    }
}

/// Does the work of a thread; `None` never comes to the thread that joins it, for then the schedule
/// has ended.
fn run<T>(me: Option<Me>, work: impl FnOnce() -> T) -> Option<T> {
    match me {
        Some(me) => inside(me, work),
        None => Some(work()),
    }
}

/// Starts a thread.
///
/// # Panics
///
/// Where the system has no thread left.
#[expect(clippy::expect_used, reason = "as `std::thread::spawn` does")]
pub fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    Builder::new().spawn(work).expect("the system has a thread")
}

/// What waits for a thread's end.
#[derive(Debug)]
pub struct JoinHandle<T> {
    thread: std::thread::JoinHandle<Option<T>>,
    number: Option<usize>,
}

impl<T> JoinHandle<T> {
    /// Waits for the end.
    ///
    /// # Errors
    ///
    /// With the thread's panic.
    pub fn join(self) -> std::thread::Result<T> {
        wait_for(self.number);
        self.thread.join().and_then(|done| done.ok_or_else(|| Box::new("the schedule has failed") as _))
    }
}

fn wait_for(number: Option<usize>) {
    if let (Some(me), Some(number)) = (me(), number) {
        me.join(number);
    }
}

/// Where threads may borrow from the thread that waits for them.
#[derive(Debug)]
pub struct Scope<'scope, 'env> {
    scope: &'scope std::thread::Scope<'scope, 'env>,
    numbers: Mutex<Vec<usize>>,
}

/// What waits for the end of a thread that borrows.
#[derive(Debug)]
pub struct ScopedJoinHandle<'scope, T> {
    thread: std::thread::ScopedJoinHandle<'scope, Option<T>>,
    number: Option<usize>,
}

/// Runs `work`, and waits for all threads that it starts.
pub fn scope<'env, T>(work: impl for<'scope> FnOnce(&Scope<'scope, 'env>) -> T) -> T {
    std::thread::scope(|scope| {
        let scope = Scope { scope, numbers: Mutex::default() };
        let done = work(&scope);
        let numbers = std::mem::take(&mut *scope.numbers.lock().unwrap_or_else(PoisonError::into_inner));
        numbers.into_iter().for_each(|number| wait_for(Some(number)));
        done
    })
}

impl<'scope> Scope<'scope, '_> {
    /// Starts a thread.
    pub fn spawn<T: Send + 'scope>(&self, work: impl FnOnce() -> T + Send + 'scope) -> ScopedJoinHandle<'scope, T> {
        let me = me();
        let its = me.as_ref().map(|me| me.add("scoped"));
        let number = its.as_ref().map(Me::number);
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner).extend(number);
        let thread = self.scope.spawn(move || run(its, work));
        if let Some(me) = me {
            me.step();
        }
        ScopedJoinHandle { thread, number }
    }
}

impl<T> ScopedJoinHandle<'_, T> {
    /// Waits for the end.
    ///
    /// # Errors
    ///
    /// With the thread's panic.
    pub fn join(self) -> std::thread::Result<T> {
        wait_for(self.number);
        self.thread.join().and_then(|done| done.ok_or_else(|| Box::new("the schedule has failed") as _))
    }
}
