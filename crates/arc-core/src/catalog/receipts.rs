//! Receipts that are kept for idempotency keys, as the manifest has them.
//!
//! Owns their bytes (docs/format.md, "Kept receipts"). Never decides how long a receipt is kept:
//! `engine` does, and each commit says what is added and what is dropped.

use std::{borrow::Cow, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{ManifestEdit, ManifestState};
use crate::{Durability, SequenceNumber};

/// What tells a request from another one with the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fingerprint {
    /// Size of the body.
    pub(crate) bytes: u64,
    /// CRC-32C of the body, then of what says how it is read.
    pub(crate) crc: u32,
}

/// The receipt of a write that had an idempotency key. Of fixed size but for the key, which clones
/// share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IdempotencyRecord {
    pub(crate) key: Arc<str>,
    /// Of the write's frame; of a write that is not logged, of the frame before it.
    pub(crate) seq: SequenceNumber,
    /// When the write was received, in nanoseconds since the epoch.
    pub(crate) time_ns: i64,
    pub(crate) request: Fingerprint,
    pub(crate) points: u64,
    pub(crate) rejected_points: u64,
    pub(crate) durability: Durability,
}

/// The new receipts of one database, in order of their sequence numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReceiptsEdit {
    pub(crate) database: String,
    pub(crate) receipts: Vec<IdempotencyRecord>,
}

impl ManifestState {
    /// Says why the receipts of an edit cannot be added.
    pub(super) fn check_receipts(&self, edit: &ManifestEdit) -> Result<(), String> {
        let flushed = edit.flushed.unwrap_or(self.flushed);
        for ReceiptsEdit { database, receipts } in &edit.receipts_added {
            let known = self.databases.get(database);
            if known.is_none() && !edit.databases_added.iter().any(|(added, _)| added == database) {
                return Err(format!("receipts of database {database:?}, which is not there"));
            }
            let last = known.and_then(|known| known.receipts.back()).map(|receipt| receipt.seq);
            let numbers = receipts.iter().map(|receipt| receipt.seq);
            if !last.into_iter().chain(numbers).chain([flushed]).is_sorted() {
                return Err(format!(
                    "receipts of database {database:?} are out of order, or of writes not yet flushed"
                ));
            }
        }
        Ok(())
    }

    /// Forgets what is dropped, then adds.
    pub(crate) fn apply_receipts(&mut self, added: Vec<ReceiptsEdit>, dropped: Option<SequenceNumber>) {
        if let Some(dropped) = dropped {
            for database in self.databases.values_mut() {
                let kept_from = database.receipts.partition_point(|receipt| receipt.seq <= dropped);
                database.receipts.drain(..kept_from);
            }
        }
        for ReceiptsEdit { database, receipts } in added {
            if let Some(database) = self.databases.get_mut(&database) {
                database.receipts.extend(receipts);
            }
        }
    }
}

/// An array instead of a map: there may be hundreds of thousands of them in a snapshot.
#[derive(Serialize, Deserialize)]
struct ReceiptRecord<'a>(Cow<'a, str>, SequenceNumber, i64, u64, u32, u64, u64, Durability);

impl Serialize for IdempotencyRecord {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self { key, seq, time_ns, request, points, rejected_points, durability } = self;
        let key = Cow::Borrowed(key.as_ref());
        ReceiptRecord(key, *seq, *time_ns, request.bytes, request.crc, *points, *rejected_points, *durability)
            .serialize(to)
    }
}

impl<'de> Deserialize<'de> for IdempotencyRecord {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let ReceiptRecord(key, seq, time_ns, bytes, crc, points, rejected_points, durability) =
            ReceiptRecord::deserialize(from)?;
        let request = Fingerprint { bytes, crc };
        Ok(Self { key: key.as_ref().into(), seq, time_ns, request, points, rejected_points, durability })
    }
}
