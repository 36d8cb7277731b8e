//! What the handle and the engine's threads share: the owners of everything that is locked, and the
//! context that is lent to them.
//!
//! Holds no lock itself: what an owner has can be reached by its methods only. Its other methods,
//! which stand in the files of what they do, need several owners.
//!
//! # Order of locks
//!
//! A thread that has one of these takes, or waits for, only those below it.
//!
//! 1. The turn of the [`Compactor`].
//! 2. The manifest of [`EngineManifest`], or the schema of [`EngineSchema`]; never both. A thread
//!    that has one of them may wait for the committers: for a freeze, or for a change of schema.
//! 3. The turn to commit of the [`Queue`] and what the committers hand on (`commit`, `apply`).
//! 4. The rows of a table.
//! 5. For a moment each, without waiting: the queue itself, which publishes what is new while it is
//!    locked, the [`EngineLog`], [`Retired`], [`Leftovers`], [`FlushSignal`], [`Past`], and the
//!    [`IdempotencyKeys`].

use std::{
    ops::Deref,
    sync::{Arc, atomic::Ordering},
};

#[cfg(feature = "object-store")]
use super::remote::ship::Shipping;
use super::{
    compactor::Compactor, context::EngineContext, cuts::Cuts, flush_signal::FlushSignal, folders::EngineFolders,
    history::Past, idempotency::IdempotencyKeys, leftovers::Leftovers, log::EngineLog, manifest::EngineManifest,
    queue::Queue, remote::RemoteAcks, retired::Retired, schema::EngineSchema, tail::Tails, unflushed::Unflushed,
};
use crate::ingest::{DecodePool, Encoders};

/// Everything of one open engine but its threads and its lock.
#[derive(Debug)]
pub(super) struct Shared {
    /// What is plain: settings, clock, counters.
    pub(super) context: Arc<EngineContext>,
    /// Which databases, tables and columns there are.
    pub(super) schema: EngineSchema,
    /// The order of everything, in front of the log.
    pub(super) queue: Arc<Queue>,
    /// Who gets what is acknowledged.
    pub(super) tails: Tails,
    /// Threads that help to decode.
    pub(super) decode_pool: DecodePool,
    /// What makes frames of decoded rows.
    pub(super) encoders: Encoders,
    /// Who writes under which key, and who has.
    pub(super) keys: Arc<IdempotencyKeys>,
    /// The frames of what is not flushed, and of what older states need.
    pub(super) log: EngineLog,
    /// Which data files there are.
    pub(super) manifest: EngineManifest,
    /// What the next flush will take.
    pub(super) unflushed: Unflushed,
    /// Who waits for the object store to have the log, and what puts it there.
    pub(super) remote: RemoteAcks,
    #[cfg(feature = "object-store")]
    pub(super) shipping: Option<Shipping>,
    /// When it begins.
    pub(super) flush_signal: FlushSignal,
    /// Where data files are published and removed.
    pub(super) folders: Arc<EngineFolders>,
    /// Data files that are live no longer.
    pub(super) retired: Arc<Retired>,
    /// Data files that never were.
    pub(super) leftovers: Leftovers,
    /// Who merges, and when.
    pub(super) compactor: Compactor,
    /// Where rows are parted that were handed to other directories.
    pub(super) cuts: Cuts,
    /// The older states that can be asked for.
    pub(super) past: Past,
}

/// What is plain is there for all who have the engine, as it is for its owners.
impl Deref for Shared {
    type Target = EngineContext;

    fn deref(&self) -> &EngineContext {
        &self.context
    }
}

impl Shared {
    /// Notes that there are unflushed rows and asks for a flush if those that came since the last
    /// freeze are too many.
    pub(super) fn note_buffered(&self) {
        let full = self.unflushed.is_too_much(self.counters.wal_bytes.load(Ordering::Relaxed), &self.options);
        self.flush_signal.note_write(full);
    }
}

#[cfg(test)]
mod tests;
