//! Idempotency keys: who is writing under which key now, and the receipts of those who have.
//!
//! Owns the rules for a write that is sent again. Never touches log or manifest: the key travels in
//! the write's own frame (`frame`), and from the flush of its rows on in the manifest (`flush`), so
//! that it is there if and only if the points are. Called by `write` before anything is decoded, by
//! `commit` when the outcome is known, by `flush` and `open`.
//!
//! Receipts are kept in the order of their writes, as rows are: fresh ones, frozen ones that the
//! next commit of the manifest takes along, committed ones. The oldest are forgotten first.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use foldhash::fast::RandomState;
use futures::channel::oneshot;
use hashbrown::HashMap;

use super::{frame::FrameKind, write::WriteRequest};
use crate::{
    Error, Result, SequenceNumber, Written,
    catalog::{Fingerprint, IdempotencyRecord, ManifestState, ReceiptsEdit},
    model::TIME_COLUMN,
    sync::Mutex,
    wal::body_checksum,
};

type ReceiptSender = oneshot::Sender<Result<Written>>;

/// See the module.
#[derive(Debug)]
pub(super) struct IdempotencyKeys {
    limit: usize,
    window: Duration,
    replayed: AtomicU64,
    state: Mutex<KeysState>,
}

#[derive(Debug, Default)]
struct KeysState {
    databases: HashMap<Arc<str>, HashMap<Arc<str>, KeySlot, RandomState>, RandomState>,
    /// Oldest first.
    order: VecDeque<KeptEntry>,
    /// The ordinal that the next receipt will have.
    end: u64,
    /// Ordinals below this are frozen.
    frozen: u64,
    /// Ordinals below this are in the manifest, or forgotten.
    committed: u64,
    /// Number of the newest write whose receipt was forgotten, and what the manifest knows of it.
    dropped: SequenceNumber,
    dropped_committed: SequenceNumber,
}

/// A receipt in its place.
#[derive(Debug)]
struct KeptEntry {
    /// Counts up from the first receipt ever; those of a dropped database leave gaps.
    ordinal: u64,
    database: Arc<str>,
    receipt: IdempotencyRecord,
}

/// What a key stands for.
#[derive(Debug)]
enum KeySlot {
    /// A write under way, and who waits for its outcome.
    Claimed(Box<(Fingerprint, Vec<ReceiptSender>)>),
    /// The ordinal of a receipt.
    Kept(u64),
}

/// What a write that has a key is to do.
#[derive(Debug)]
pub(super) enum Claimed {
    /// Go on: nothing has written under this key.
    New(KeyClaim),
    /// Answer this receipt.
    Kept(IdempotencyRecord),
    /// Wait for the answer of a write under way.
    Waiting(oneshot::Receiver<Result<Written>>),
}

/// What the next commit of the manifest is to say of receipts.
#[derive(Debug)]
pub(super) struct ReceiptsRound {
    pub(super) added: Vec<ReceiptsEdit>,
    pub(super) dropped: Option<SequenceNumber>,
    until: u64,
}

impl IdempotencyKeys {
    /// Begins with the receipts that the manifest has.
    pub(super) fn new(limit: usize, window: Duration, manifest: &ManifestState) -> Self {
        let mut receipts: Vec<(Arc<str>, IdempotencyRecord)> = Vec::new();
        for (name, database) in &manifest.databases {
            let name: Arc<str> = name.as_str().into();
            receipts.extend(database.receipts.iter().map(|receipt| (Arc::clone(&name), receipt.clone())));
        }
        receipts.sort_by_key(|(_, receipt)| receipt.seq);
        let mut state = KeysState::default();
        receipts.into_iter().for_each(|(database, receipt)| state.keep(database, receipt, limit));
        state.frozen = state.end;
        state.committed = state.end;
        Self { limit, window, replayed: AtomicU64::new(0), state: Mutex::new(state) }
    }

    /// Keeps the receipt of a write that was replayed from the log.
    pub(super) fn restore(&self, database: Arc<str>, receipt: IdempotencyRecord) {
        self.state.lock().keep(database, receipt, self.limit);
    }

    /// Forgets the receipts of a database that is dropped, at the drop's place in the order of
    /// writes. The manifest forgets those that it has with the database.
    pub(super) fn forget(&self, database: &str) {
        let mut state = self.state.lock();
        if let Some(keys) = state.databases.get_mut(database) {
            // A write under way may be one after the drop.
            keys.retain(|_, slot| matches!(slot, KeySlot::Claimed(_)));
            if keys.is_empty() {
                state.databases.remove(database);
            }
        }
        state.order.retain(|kept| &*kept.database != database);
    }

    /// Asks what to do about a write with a key.
    ///
    /// # Errors
    ///
    /// [`Error::IdempotencyKeyReused`] if the key stands for another write.
    pub(super) fn claim(
        self: &Arc<Self>,
        database: &str,
        key: &str,
        request: Fingerprint,
        time_ns: i64,
    ) -> Result<Claimed> {
        let mut state = self.state.lock();
        match state.find(database, key) {
            Some(FoundKey::Claimed(first, waiting)) => {
                check_same(database, key, first, request)?;
                let (answer, receiver) = oneshot::channel();
                waiting.push(answer);
                Ok(Claimed::Waiting(receiver))
            }
            Some(FoundKey::Kept(receipt)) => {
                check_same(database, key, receipt.request, request)?;
                let receipt = receipt.clone();
                self.replayed.fetch_add(1, Ordering::Relaxed);
                Ok(Claimed::Kept(receipt))
            }
            None => {
                let (database, key): (Arc<str>, Arc<str>) = (database.into(), key.into());
                let claimed = KeySlot::Claimed(Box::new((request, Vec::new())));
                state.databases.entry(Arc::clone(&database)).or_default().insert(Arc::clone(&key), claimed);
                Ok(Claimed::New(KeyClaim { keys: Arc::clone(self), database, key, request, time_ns, settled: false }))
            }
        }
    }

    /// Marks all receipts as those of rows that are frozen now.
    pub(super) fn freeze(&self) {
        let mut state = self.state.lock();
        state.frozen = state.end;
    }

    /// Forgets what is past the window, and returns what the commit that flushes the frozen rows is
    /// to say.
    pub(super) fn round(&self, now_ns: i64) -> ReceiptsRound {
        let mut state = self.state.lock();
        let window_ns = i64::try_from(self.window.as_nanos()).unwrap_or(i64::MAX);
        let expired = now_ns.saturating_sub(window_ns);
        while state.order.front().is_some_and(|kept| kept.receipt.time_ns < expired) {
            state.forget_oldest();
        }
        let mut added: BTreeMap<Arc<str>, Vec<IdempotencyRecord>> = BTreeMap::new();
        for KeptEntry { database, receipt, .. } in state.frozen() {
            added.entry(Arc::clone(database)).or_default().push(receipt.clone());
        }
        let edit = |(database, receipts): (Arc<str>, _)| ReceiptsEdit { database: database.to_string(), receipts };
        let dropped = Some(state.dropped).filter(|dropped| *dropped > state.dropped_committed);
        ReceiptsRound { added: added.into_iter().map(edit).collect(), dropped, until: state.frozen }
    }

    /// Notes that a round is in the manifest.
    pub(super) fn committed(&self, round: &ReceiptsRound) {
        let mut state = self.state.lock();
        state.committed = state.committed.max(round.until);
        state.dropped_committed = round.dropped.unwrap_or(state.dropped_committed);
    }

    /// Returns how many writes were answered with the receipt of an earlier one.
    pub(super) fn replayed(&self) -> u64 {
        self.replayed.load(Ordering::Relaxed)
    }
}

enum FoundKey<'a> {
    Claimed(Fingerprint, &'a mut Vec<ReceiptSender>),
    Kept(&'a IdempotencyRecord),
}

impl KeysState {
    fn find(&mut self, database: &str, key: &str) -> Option<FoundKey<'_>> {
        match self.databases.get_mut(database)?.get_mut(key)? {
            KeySlot::Claimed(claim) => Some(FoundKey::Claimed(claim.0, &mut claim.1)),
            KeySlot::Kept(ordinal) => {
                let index = self.order.binary_search_by_key(ordinal, |kept| kept.ordinal).ok()?;
                self.order.get(index).map(|kept| FoundKey::Kept(&kept.receipt))
            }
        }
    }

    fn keep(&mut self, database: Arc<str>, receipt: IdempotencyRecord, limit: usize) {
        let ordinal = self.end;
        self.end += 1;
        let keys = self.databases.entry(Arc::clone(&database)).or_default();
        keys.insert(Arc::clone(&receipt.key), KeySlot::Kept(ordinal));
        self.order.push_back(KeptEntry { ordinal, database, receipt });
        while self.order.len() > limit {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some(KeptEntry { ordinal, database, receipt }) = self.order.pop_front() else { return };
        self.dropped = self.dropped.max(receipt.seq);
        // The key may stand for a later write already.
        if let Some(keys) = self.databases.get(&database)
            && matches!(keys.get(&receipt.key), Some(KeySlot::Kept(kept)) if *kept == ordinal)
        {
            self.free(&database, &receipt.key);
        }
    }

    fn free(&mut self, database: &Arc<str>, key: &Arc<str>) -> Option<KeySlot> {
        let keys = self.databases.get_mut(database)?;
        let slot = keys.remove(key);
        if keys.is_empty() {
            self.databases.remove(database);
        }
        slot
    }

    /// The receipts that are frozen and not yet in the manifest.
    fn frozen(&self) -> impl Iterator<Item = &KeptEntry> {
        let from = self.order.partition_point(|kept| kept.ordinal < self.committed);
        self.order.iter().skip(from).take_while(|kept| kept.ordinal < self.frozen)
    }
}

/// The right to write under a key. Dropped without an outcome it gives the key free: nothing was
/// stored.
#[derive(Debug)]
pub(super) struct KeyClaim {
    keys: Arc<IdempotencyKeys>,
    database: Arc<str>,
    key: Arc<str>,
    request: Fingerprint,
    time_ns: i64,
    settled: bool,
}

impl KeyClaim {
    /// Keeps the receipt of a write whose rows are in the buffers as number `seq`, and answers
    /// those who wait for it.
    pub(super) fn stored(self, seq: SequenceNumber, written: &Written) {
        self.kept(seq, written).answer(&|| Ok(Written { replayed: true, ..written.clone() }));
    }

    /// Keeps the receipt of a write whose rows are in the buffers as number `seq`; returns those
    /// who wait for its answer.
    pub(super) fn kept(mut self, seq: SequenceNumber, written: &Written) -> KeyWaiters {
        let receipt = IdempotencyRecord {
            key: Arc::clone(&self.key),
            seq,
            time_ns: self.time_ns,
            request: self.request,
            points: written.points,
            rejected_points: written.rejected_points,
            durability: written.durability,
        };
        self.release(Some(receipt))
    }

    /// Gives the key free, for the write had nothing to store: sending it again has the same
    /// outcome.
    pub(super) fn refused(mut self, written: &Written) {
        self.release(None).answer(&|| Ok(Written { replayed: true, ..written.clone() }));
    }

    /// Answers those who wait that nothing knows: the engine takes no more writes.
    pub(super) fn unknown(mut self, reason: &str) {
        self.release(None).answer(&|| Err(Error::OutcomeUnknown { reason: reason.to_owned() }));
    }

    /// Ends the claim; returns those who wait for its outcome.
    fn release(&mut self, receipt: Option<IdempotencyRecord>) -> KeyWaiters {
        self.settled = true;
        let mut state = self.keys.state.lock();
        let slot = state.free(&self.database, &self.key);
        if let Some(receipt) = receipt {
            state.keep(Arc::clone(&self.database), receipt, self.keys.limit);
        }
        drop(state);
        match slot {
            Some(KeySlot::Claimed(claim)) => KeyWaiters { keys: Some(Arc::clone(&self.keys)), waiting: claim.1 },
            _ => KeyWaiters::default(),
        }
    }
}

/// Those who wait for the outcome of a write that has their key.
#[derive(Debug, Default)]
pub(super) struct KeyWaiters {
    keys: Option<Arc<IdempotencyKeys>>,
    waiting: Vec<ReceiptSender>,
}

impl KeyWaiters {
    /// Answers them.
    pub(super) fn answer(self, answer: &dyn Fn() -> Result<Written>) {
        for waiting in self.waiting {
            let answer = answer();
            if let Some(keys) = &self.keys {
                keys.replayed.fetch_add(u64::from(answer.is_ok()), Ordering::Relaxed);
            }
            // Who has gone needs no answer.
            let _ = waiting.send(answer);
        }
    }
}

impl Drop for KeyClaim {
    fn drop(&mut self) {
        if !self.settled {
            self.release(None).answer(&|| {
                let reason = "another write with the same idempotency key failed and stored nothing";
                Err(Error::Busy { reason, retry_after: Duration::from_secs(1) })
            });
        }
    }
}

/// Returns what tells a request from others. Persistent: see docs/format.md, "Kept receipts".
pub(super) fn fingerprint(request: &WriteRequest) -> Fingerprint {
    let meta = &request.meta;
    let mut how = vec![request.kind as u8];
    // Saying the default is not another request. In MessagePack the default is to guess.
    let default_ns = i64::from(request.kind != FrameKind::MessagePack);
    how.extend(meta.precision_ns.unwrap_or(default_ns).to_le_bytes());
    let table = meta.table.as_deref().unwrap_or_default();
    let time_column = meta.time_column.as_deref().unwrap_or(TIME_COLUMN);
    for text in [table, time_column].into_iter().chain(meta.tags.iter().map(String::as_str)) {
        // Its length keeps `a`, `bc` from `ab`, `c`.
        how.extend((text.len() as u64).to_le_bytes());
        how.extend(text.as_bytes());
    }
    let crc = crc32c::crc32c_append(body_checksum(&request.body), &how);
    Fingerprint { bytes: request.body.len() as u64, crc }
}

fn check_same(database: &str, key: &str, first: Fingerprint, request: Fingerprint) -> Result<()> {
    let reason = if first.bytes != request.bytes {
        format!("its body had {} bytes, this one has {}", first.bytes, request.bytes)
    } else if first.crc != request.crc {
        "its body, or the parameters that say how it is read, were different".to_owned()
    } else {
        return Ok(());
    };
    Err(Error::IdempotencyKeyReused { database: database.to_owned(), key: key.to_owned(), reason })
}

/// Returns the answer that a kept receipt stands for. The reasons of refusals are not kept.
pub(super) fn answer(receipt: &IdempotencyRecord) -> Written {
    let IdempotencyRecord { points, rejected_points, durability, .. } = *receipt;
    Written { points, rejected_points, rejected: Vec::new(), durability, replayed: true }
}

#[cfg(test)]
mod tests;
