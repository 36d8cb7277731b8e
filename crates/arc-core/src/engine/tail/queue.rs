//! What waits for the reader of one tail.
//!
//! Owns how much may wait. Filled by one thread, which it never holds up, and emptied by the
//! tail's reader, which may wait for rows as a thread or as a task.

use std::{collections::VecDeque, sync::Arc, task::Waker, time::Duration};

use crate::{
    Error,
    buffer::Chunk,
    memory::MemoryBudget,
    sync::{self, Condvar, Mutex},
};

/// Bytes that may wait. What comes when nothing waits is taken whatever its size: so it is this,
/// and the rows of one write.
pub(super) const MOST_WAITING_BYTES: usize = 16 << 20;

/// Rows that are handed out at once, but for those of one write.
const BATCH_ROWS: usize = 64 << 10;

/// Why a tail has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine) enum TailEnding {
    /// Its reader was too slow.
    Overrun,
    /// The process that writes has let go of a part of the log before it was read.
    Released,
    /// The table was dropped.
    Dropped,
    /// The engine takes no more writes.
    Closed(String),
    /// The rows could not be read.
    Failed(String),
}

impl TailEnding {
    pub(super) fn into_error(self, database: &str, table: &str) -> Error {
        let busy = |reason| Error::Busy { reason, retry_after: Duration::ZERO };
        match self {
            Self::Overrun => busy(
                "the tail has ended: rows came faster than they were taken, and those that follow are left out; \
                 begin another one",
            ),
            Self::Released => busy(
                "the tail has ended: the process that writes has flushed rows before they were read here; begin another \
                 one",
            ),
            Self::Dropped => Error::TableNotFound { database: database.to_owned(), table: table.to_owned() },
            Self::Closed(reason) => Error::Closed { reason },
            Self::Failed(reason) => Error::internal(reason),
        }
    }
}

/// What a reader gets.
#[derive(Debug)]
pub(super) enum TakenRows {
    Rows(Vec<Arc<Chunk>>),
    /// There is nothing yet.
    Nothing,
    End(TailEnding),
}

/// See the module.
#[derive(Debug)]
pub(super) struct TailQueue {
    waiting: Mutex<WaitingRows>,
    changed: Condvar,
    memory: Arc<MemoryBudget>,
}

#[derive(Debug, Default)]
struct WaitingRows {
    chunks: VecDeque<(Arc<Chunk>, usize)>,
    bytes: usize,
    ending: Option<TailEnding>,
    /// The task that waits.
    waker: Option<Waker>,
}

impl TailQueue {
    pub(super) fn new(memory: &Arc<MemoryBudget>) -> Arc<Self> {
        Arc::new(Self { waiting: Mutex::default(), changed: Condvar::default(), memory: Arc::clone(memory) })
    }

    /// Adds rows that take `bytes`. Ends the tail if there is no space for them.
    pub(super) fn add(&self, chunk: &Arc<Chunk>, bytes: usize) {
        let mut waiting = self.waiting.lock();
        if waiting.ending.is_some() {
            return;
        }
        let fits = waiting.chunks.is_empty() || waiting.bytes.saturating_add(bytes) <= MOST_WAITING_BYTES;
        if fits && self.memory.try_take(bytes) {
            waiting.bytes += bytes;
            waiting.chunks.push_back((Arc::clone(chunk), bytes));
        } else {
            waiting.ending = Some(TailEnding::Overrun);
        }
        let waker = waiting.waker.take();
        drop(waiting);
        self.wake(waker);
    }

    /// Ends the tail after what waits, unless it has ended.
    pub(super) fn end(&self, ending: &TailEnding) {
        let mut waiting = self.waiting.lock();
        waiting.ending.get_or_insert_with(|| ending.clone());
        let waker = waiting.waker.take();
        drop(waiting);
        self.wake(waker);
    }

    fn wake(&self, waker: Option<Waker>) {
        self.changed.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Returns whether it takes no more rows.
    pub(super) fn has_ended(&self) -> bool {
        self.waiting.lock().ending.is_some()
    }

    /// Takes rows, and waits for them for a while.
    pub(super) fn take_within(&self, patience: Duration) -> TakenRows {
        // Longer than any thread waits.
        let until = sync::now() + patience.min(Duration::from_secs(1 << 30));
        let mut waiting = self.waiting.lock();
        loop {
            match waiting.take(&self.memory) {
                TakenRows::Nothing if sync::now() < until => {}
                taken => return taken,
            }
            self.changed.wait_until(&mut waiting, until);
        }
    }

    /// Takes rows; if there are none, has `waker` woken once there are.
    pub(super) fn poll(&self, waker: &Waker) -> TakenRows {
        let mut waiting = self.waiting.lock();
        let taken = waiting.take(&self.memory);
        if matches!(taken, TakenRows::Nothing) {
            waiting.waker = Some(waker.clone());
        }
        taken
    }
}

impl WaitingRows {
    fn take(&mut self, memory: &MemoryBudget) -> TakenRows {
        let (mut chunks, mut rows) = (Vec::new(), 0);
        while let Some((chunk, bytes)) =
            self.chunks.pop_front_if(|(chunk, _)| rows == 0 || rows + chunk.len() <= BATCH_ROWS)
        {
            rows += chunk.len();
            self.bytes = self.bytes.saturating_sub(bytes);
            memory.give(bytes);
            chunks.push(chunk);
        }
        match (chunks.is_empty(), &self.ending) {
            (false, _) => TakenRows::Rows(chunks),
            (true, None) => TakenRows::Nothing,
            (true, Some(ending)) => TakenRows::End(ending.clone()),
        }
    }
}

impl Drop for TailQueue {
    fn drop(&mut self) {
        self.memory.give(self.waiting.lock().bytes);
    }
}
