//! Columns that change their type: whether the values that are there allow it.
//!
//! An integer beyond 2^53 may be none that a float can be, and nobody has looked at those in buffers. So a column of integers
//! becomes one of floats only after all of its integers have been looked at, those in the queue, too: writes of the
//! database that were decoded before are decoded again, and none is decoded until that is settled (decision 023).

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use super::{
    queue::{QueuedFrame, no_room},
    shared::Shared,
    write::schema_change,
};
use crate::{Error, Result, ingest::Staged, registry::Database};

/// While this is held nothing is decoded or queued for a database; what was decoded before is outdated then and afterwards.
pub(super) struct Settling(Arc<Database>);

impl Drop for Settling {
    fn drop(&mut self) {
        self.0.type_changes.fetch_add(1, Ordering::AcqRel);
    }
}

impl Shared {
    /// Finds out whether columns can become what a request makes of them. Called with the schema lock held.
    ///
    /// `Ok(None)` if they cannot: their table knows it from then on, and the request is to be decoded again.
    pub(super) fn settle_types(&self, staged: &Staged, max_wait: Duration) -> Result<Option<Settling>> {
        if max_wait.is_zero() {
            // It takes a sync of the log, which is for a thread that may wait.
            return Err(no_room());
        }
        let widened = || staged.tables.iter().filter(|table| !table.widened.is_empty());
        let Some(first) = widened().next() else { return Err(Error::internal("no column changes its type")) };
        let mut settling = None;
        // Says nothing new; once it is applied, so is all that was queued before.
        let barrier: QueuedFrame = schema_change(&first.base.schema, false);
        let answer = self.queue.push_change(barrier, || {
            staged.database.type_changes.fetch_add(1, Ordering::AcqRel);
            settling = Some(Settling(Arc::clone(&staged.database)));
        })?;
        futures::executor::block_on(answer).unwrap_or_else(|_| Err(Error::unanswered()))?;
        for table in widened() {
            for (column, _) in &table.widened {
                if !table.table.fits_floats(*column)? {
                    return Ok(None);
                }
            }
        }
        Ok(settling)
    }
}
