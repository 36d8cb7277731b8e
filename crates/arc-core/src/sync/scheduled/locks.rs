//! Locks: those of parking_lot, which are never waited for inside a schedule.
//!
//! A thread of a schedule waits for the scheduler to wake it, and then finds the lock free, for
//! nothing else runs. The address of a lock names it.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    time::Duration,
};

use parking_lot::WaitTimeoutResult;

use super::{
    time::Instant,
    world::{HeldLock, Me, me},
};

/// A mutex.
#[derive(Default)]
pub struct Mutex<T>(parking_lot::Mutex<T>);

/// A mutex that is locked.
pub struct MutexGuard<'a, T> {
    lock: &'a Mutex<T>,
    guard: parking_lot::MutexGuard<'a, T>,
}

impl<T> Mutex<T> {
    /// Makes a mutex.
    pub const fn new(value: T) -> Self {
        Self(parking_lot::Mutex::new(value))
    }

    /// Waits until it is free, and locks it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        if let Some(me) = me() {
            me.step();
            self.wait_until_free(&me);
        }
        self.taken(self.0.lock())
    }

    /// Locks it if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        if let Some(me) = me() {
            me.step();
        }
        self.0.try_lock().map(|guard| self.taken(guard))
    }

    /// Waits until it is free, but not for longer than `time`.
    pub fn try_lock_for(&self, time: Duration) -> Option<MutexGuard<'_, T>> {
        let Some(me) = me() else { return self.0.try_lock_for(time).map(|guard| self.taken(guard)) };
        let deadline = Instant::now() + time;
        me.step();
        while self.0.is_locked() {
            let left = deadline.time_left();
            if left.is_zero() {
                return None;
            }
            me.wait(self.address(), Some(left));
        }
        self.0.try_lock().map(|guard| self.taken(guard))
    }

    fn taken<'a>(&'a self, guard: parking_lot::MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        if let Some(me) = me() {
            me.takes(HeldLock::Alone);
        }
        MutexGuard { lock: self, guard }
    }

    /// Returns whether a thread has it.
    pub fn is_locked(&self) -> bool {
        self.0.is_locked()
    }

    /// Returns what is in it.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }

    /// Returns what was in it.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    fn wait_until_free(&self, me: &Me) {
        while self.0.is_locked() {
            me.wait(self.address(), None);
        }
    }
}

impl<T> MutexGuard<'_, T> {
    /// Does something while the mutex is free.
    pub fn unlocked<R>(guard: &mut Self, work: impl FnOnce() -> R) -> R {
        let lock = guard.lock;
        parking_lot::MutexGuard::unlocked(&mut guard.guard, || {
            let Some(me) = me() else { return work() };
            me.gives(HeldLock::Alone, lock.address());
            let done = work();
            me.step();
            lock.wait_until_free(&me);
            me.takes(HeldLock::Alone);
            done
        })
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        // It is free by the time that they run.
        if let Some(me) = me() {
            me.gives(HeldLock::Alone, self.lock.address());
        }
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

impl<T: fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guard.fmt(f)
    }
}

/// A condition that threads wait for.
#[derive(Debug, Default)]
pub struct Condvar(parking_lot::Condvar);

impl Condvar {
    /// Makes one.
    #[must_use]
    pub const fn new() -> Self {
        Self(parking_lot::Condvar::new())
    }

    /// Waits until it is notified.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        match me() {
            Some(me) => drop(self.wait_in(&me, guard, None)),
            None => self.0.wait(&mut guard.guard),
        }
    }

    /// Waits until it is notified, but not for longer than `time`.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, time: Duration) -> Waited {
        match me() {
            Some(me) => self.wait_in(&me, guard, Some(time)),
            None => self.0.wait_for(&mut guard.guard, time).into(),
        }
    }

    /// Waits until it is notified, but not beyond `deadline`.
    pub fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, deadline: Instant) -> Waited {
        self.wait_for(guard, deadline.time_left())
    }

    /// Wakes one of those that wait, any of them; returns whether there was one.
    pub fn notify_one(&self) -> bool {
        match me() {
            Some(me) => {
                me.step();
                me.wake_one(self.address())
            }
            None => self.0.notify_one(),
        }
    }

    /// Wakes all that wait.
    pub fn notify_all(&self) {
        match me() {
            Some(me) => {
                me.step();
                me.wake(self.address());
            }
            None => drop(self.0.notify_all()),
        }
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    fn wait_in<T>(&self, me: &Me, guard: &mut MutexGuard<'_, T>, time: Option<Duration>) -> Waited {
        let lock = guard.lock;
        parking_lot::MutexGuard::unlocked(&mut guard.guard, || {
            me.gives(HeldLock::Alone, lock.address());
            let timed_out = me.wait(self.address(), time);
            lock.wait_until_free(me);
            me.takes(HeldLock::Alone);
            Waited { timed_out }
        })
    }
}

/// How a wait has ended.
#[derive(Debug, Clone, Copy)]
pub struct Waited {
    timed_out: bool,
}

impl Waited {
    /// Returns whether the time was over.
    #[must_use]
    pub fn timed_out(&self) -> bool {
        self.timed_out
    }
}

impl From<WaitTimeoutResult> for Waited {
    fn from(result: WaitTimeoutResult) -> Self {
        Self { timed_out: result.timed_out() }
    }
}

/// A lock that many may read. As with parking_lot's, no reader overtakes a writer that waits.
#[derive(Default)]
pub struct RwLock<T>(parking_lot::RwLock<T>);

/// A lock that is read.
pub struct RwLockReadGuard<'a, T> {
    lock: &'a RwLock<T>,
    guard: parking_lot::RwLockReadGuard<'a, T>,
}

/// A lock that is written.
pub struct RwLockWriteGuard<'a, T> {
    lock: &'a RwLock<T>,
    guard: parking_lot::RwLockWriteGuard<'a, T>,
}

impl<T> RwLock<T> {
    /// Makes one.
    pub const fn new(value: T) -> Self {
        Self(parking_lot::RwLock::new(value))
    }

    /// Waits until no thread writes or is about to.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        if let Some(me) = me() {
            me.step();
            while me.has_writer_waiting(self.address()) || self.0.is_locked_exclusive() {
                me.wait(self.address(), None);
            }
        }
        self.shared(self.0.read())
    }

    /// Waits until no thread writes, for a thread that may read it already.
    pub fn read_recursive(&self) -> RwLockReadGuard<'_, T> {
        if let Some(me) = me() {
            me.step();
            while self.0.is_locked_exclusive() {
                me.wait(self.address(), None);
            }
        }
        self.shared(self.0.read_recursive())
    }

    /// Waits until nothing reads or writes.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        if let Some(me) = me() {
            me.step();
            if self.0.is_locked() {
                me.writer_waits(self.address(), true);
                while self.0.is_locked() {
                    me.wait(self.address(), None);
                }
                me.writer_waits(self.address(), false);
            }
        }
        self.alone(self.0.write())
    }

    /// Locks it if nothing reads or writes.
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        if let Some(me) = me() {
            me.step();
        }
        self.0.try_write().map(|guard| self.alone(guard))
    }

    fn shared<'a>(&'a self, guard: parking_lot::RwLockReadGuard<'a, T>) -> RwLockReadGuard<'a, T> {
        if let Some(me) = me() {
            me.takes(HeldLock::Shared);
        }
        RwLockReadGuard { lock: self, guard }
    }

    fn alone<'a>(&'a self, guard: parking_lot::RwLockWriteGuard<'a, T>) -> RwLockWriteGuard<'a, T> {
        if let Some(me) = me() {
            me.takes(HeldLock::Alone);
        }
        RwLockWriteGuard { lock: self, guard }
    }

    /// Returns what is in it.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }

    /// Returns what was in it.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    fn gives(&self, kind: HeldLock) {
        if let Some(me) = me() {
            me.gives(kind, self.address());
        }
    }
}

impl<T> Drop for RwLockReadGuard<'_, T> {
    fn drop(&mut self) {
        self.lock.gives(HeldLock::Shared);
    }
}

impl<T> Drop for RwLockWriteGuard<'_, T> {
    fn drop(&mut self) {
        self.lock.gives(HeldLock::Alone);
    }
}

impl<T> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

impl<T: fmt::Debug> fmt::Debug for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guard.fmt(f)
    }
}

impl<T: fmt::Debug> fmt::Debug for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guard.fmt(f)
    }
}

impl<T: fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
