//! What a write answers.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use futures::channel::oneshot;

use crate::{Durability, Error, Result};

/// How many rejected lines a receipt names; the others are counted.
pub const MAX_REJECTED: usize = 100;

/// Receipt of one write: everything in the request was either stored or is named here.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a write can reject some of its lines"]
#[non_exhaustive]
pub struct Written {
    /// Points stored.
    pub points: u64,
    /// Points (lines, rows, items) refused, all of them counted.
    pub rejected_points: u64,
    /// The first [`MAX_REJECTED`] refusals, in the order of the request.
    pub rejected: Vec<Rejected>,
    /// What the stored points survive.
    pub durability: Durability,
    /// Whether this is the receipt of an earlier write with the same [idempotency
    /// key](crate::WriteOptions::idempotency_key), and nothing was stored now.
    pub replayed: bool,
}

/// One refused line, row or item of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rejected {
    /// Physical line of line protocol, or number of the item or row; the first is 1.
    pub line: u64,
    /// Byte in that line where the error is, the first is 1; 0 where a position means nothing.
    pub column: u64,
    /// What was found and what was expected, naming the table and column.
    pub reason: String,
}

impl Rejected {
    /// Makes the refusal of a line as another store has reported it.
    ///
    /// ```
    /// let refused = arc_core::Rejected::new(2, 15, "expected a value for field \"rpm\"");
    /// assert_eq!((refused.line, refused.column), (2, 15));
    /// ```
    #[must_use]
    pub fn new(line: u64, column: u64, reason: impl Into<String>) -> Self {
        Self { line, column, reason: reason.into() }
    }
}

/// A write under way: decoded, checked and queued for the log.
///
/// Await it, or block in [`PendingWrite::wait`]. Dropping it does not take the write back.
#[derive(Debug)]
#[must_use = "a write is acknowledged only by its answer"]
pub struct PendingWrite {
    pub(crate) answer: oneshot::Receiver<Result<Written>>,
}

impl PendingWrite {
    /// A write whose answer is known.
    pub(crate) fn answered(written: Written) -> Self {
        let (sender, answer) = oneshot::channel();
        // The receiver is right here.
        let _ = sender.send(Ok(written));
        Self { answer }
    }

    /// Blocks until the write is as durable as asked for.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// use arc_core::WriteOptions;
    ///
    /// let pending = engine.submit_lp("plant", "pump,id=7 rpm=1450i".into(), &WriteOptions::new())?;
    /// // The thread may do something else here.
    /// assert_eq!(pending.wait()?.points, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unknown`](crate::ErrorKind::Unknown) if the log failed at this write: whether
    /// its points survive is known when the engine is opened again. Nothing is stored after
    /// [`Closed`](crate::ErrorKind::Closed), where it had failed before, and after
    /// [`StorageFull`](crate::ErrorKind::StorageFull) and [`Io`](crate::ErrorKind::Io).
    pub fn wait(self) -> Result<Written> {
        crate::sync::block_on(self)
    }
}

impl Future for PendingWrite {
    type Output = Result<Written>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.answer).poll(cx).map(|answer| answer.unwrap_or_else(|_| Err(Error::unanswered())))
    }
}
