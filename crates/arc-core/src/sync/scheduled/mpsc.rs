//! A bounded channel with one receiver.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        mpsc::{RecvError, TrySendError},
    },
};

use super::locks::{Condvar, Mutex};

/// Makes a channel that holds so many values.
#[must_use]
pub fn sync_channel<T>(bound: usize) -> (SyncSender<T>, Receiver<T>) {
    let state = ChannelState { values: VecDeque::new(), senders: 1, has_receiver: true };
    let channel = Arc::new(Channel { bound, state: Mutex::new(state), changed: Condvar::new() });
    (SyncSender(Arc::clone(&channel)), Receiver(channel))
}

#[derive(Debug)]
struct Channel<T> {
    bound: usize,
    state: Mutex<ChannelState<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct ChannelState<T> {
    values: VecDeque<T>,
    senders: usize,
    has_receiver: bool,
}

/// The end that sends.
#[derive(Debug)]
pub struct SyncSender<T>(Arc<Channel<T>>);

/// The end that receives.
#[derive(Debug)]
pub struct Receiver<T>(Arc<Channel<T>>);

impl<T> SyncSender<T> {
    /// Sends a value if there is room for it.
    ///
    /// # Errors
    ///
    /// With the value, if there is no room or no receiver.
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        let mut state = self.0.state.lock();
        if !state.has_receiver {
            return Err(TrySendError::Disconnected(value));
        }
        if state.values.len() >= self.0.bound {
            return Err(TrySendError::Full(value));
        }
        state.values.push_back(value);
        drop(state);
        self.0.changed.notify_all();
        Ok(())
    }
}

impl<T> Clone for SyncSender<T> {
    fn clone(&self) -> Self {
        self.0.state.lock().senders += 1;
        Self(Arc::clone(&self.0))
    }
}

impl<T> Drop for SyncSender<T> {
    fn drop(&mut self) {
        self.0.state.lock().senders -= 1;
        self.0.changed.notify_all();
    }
}

impl<T> Receiver<T> {
    /// Waits for a value.
    ///
    /// # Errors
    ///
    /// If there is none and no sender.
    pub fn recv(&self) -> Result<T, RecvError> {
        let mut state = self.0.state.lock();
        loop {
            if let Some(value) = state.values.pop_front() {
                return Ok(value);
            }
            if state.senders == 0 {
                return Err(RecvError);
            }
            self.0.changed.wait(&mut state);
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.0.state.lock().has_receiver = false;
    }
}
