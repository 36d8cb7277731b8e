//! Columns that change their type: whether the values that are there allow it.
//!
//! An integer beyond 2^53 may be none that a float can be, and nothing has looked at those in
//! buffers. So a column of integers becomes one of floats only after all of its integers have been
//! looked at, those in the queue, too: writes of the database that were decoded before are decoded
//! again, and none is decoded until that is settled (decision 023). Anything can be text, so there
//! nothing is looked at.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use arrow::datatypes::DataType;

use super::{logged::schema_change, queue::over_budget, schema::LockedSchema};
use crate::{
    Error, Result,
    ingest::{Staged, StagedTable},
    registry::Database,
};

/// Types that are about to change. What was decoded before is outdated from then on, and nothing of
/// the database is decoded while this is held.
#[derive(Debug, Default)]
pub(super) struct Settled(Option<Arc<Database>>);

impl Settled {
    fn begin(database: &Arc<Database>) -> Self {
        database.type_changes.fetch_add(1, Ordering::AcqRel);
        Self(Some(Arc::clone(database)))
    }
}

impl Drop for Settled {
    fn drop(&mut self) {
        if let Some(database) = &self.0 {
            database.type_changes.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl LockedSchema<'_> {
    /// Finds out whether columns can become what a request makes of them, if it changes any. Called
    /// with the schema lock held; what it returns is dropped once the change is queued, or is not
    /// going to be.
    ///
    /// `None` if they cannot: their table knows it from then on, and the request is to be decoded
    /// again.
    pub(super) fn settle_types(&self, staged: &Staged, max_wait: Duration) -> Result<Option<Settled>> {
        let Some(first) = staged.tables.iter().find(|table| !table.widened.is_empty()) else {
            return Ok(Some(Settled::default()));
        };
        let to_floats: Vec<(&StagedTable, usize)> = staged.tables.iter().flat_map(to_floats).collect();
        if to_floats.is_empty() {
            return Ok(Some(Settled::begin(&staged.database)));
        }
        if max_wait.is_zero() {
            // It takes a sync of the log, which is for a thread that may wait.
            return Err(over_budget());
        }
        let mut settled = Settled::default();
        // Says nothing new; once it is applied, so is all that was queued before.
        let barrier = schema_change(&first.base.schema, false, self.context.clock.now_ns())?;
        let answer = self.queue.push_change(barrier, None, || settled = Settled::begin(&staged.database))?;
        crate::sync::block_on(answer).unwrap_or_else(|_| Err(Error::unanswered()))?;
        for (table, column) in to_floats {
            if !table.table.fits_floats(column)? {
                return Ok(None);
            }
        }
        Ok(Some(settled))
    }
}

/// Returns the columns of a table that a request makes floats.
fn to_floats(table: &StagedTable) -> impl Iterator<Item = (&StagedTable, usize)> {
    let widened = table.widened.iter().filter(|(_, column)| column.data_type == DataType::Float64);
    widened.map(move |(column, _)| (table, *column))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_decoded_while_a_column_changes_its_type_is_decoded_again() {
        let database = Arc::new(Database::new("d", 0, false));
        assert!(!Staged::new(&database).is_outdated());
        // By a thread that has looked just before.
        let settled = Settled::begin(&database);
        let during = Staged::new(&database);
        assert!(during.is_outdated(), "the change is not through");
        drop(settled);
        assert!(during.is_outdated());
        assert!(!Staged::new(&database).is_outdated());
    }
}
