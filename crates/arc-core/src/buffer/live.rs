//! Buffered rows without those that deletes have taken.

use std::sync::Arc;

use super::ChunkRows;
use crate::{
    Result,
    model::{Tombstone, predicate::left},
};

/// Returns the buffered rows that no tombstone takes; makes no columns but those that these look
/// at.
pub(crate) fn live_rows<'t>(
    rows: ChunkRows,
    tombstones: impl IntoIterator<Item = &'t Arc<Tombstone>>,
) -> Result<ChunkRows> {
    tombstones.into_iter().try_fold(rows, |rows, tombstone| {
        let predicate = &tombstone.predicate;
        match left(&rows.named(predicate.columns())?, predicate)? {
            None => Ok(rows),
            Some(left) => Ok(rows.filter(&left)),
        }
    })
}
