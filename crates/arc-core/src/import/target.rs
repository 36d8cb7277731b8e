//! Where an import goes: an engine in this process, or whatever else takes writes that have a key.

use arrow::array::RecordBatch;
use bytes::Bytes;

use crate::{ColumnTypes, Engine, Error, Rejected, Result, WriteOptions, Written, model::Column};

/// A piece of a file on its way into a store.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ImportWrite {
    /// The database.
    pub database: String,
    /// What is to be stored.
    pub body: ImportBody,
    /// How; the key in it names the piece.
    pub options: WriteOptions,
}

/// What a piece of a file is made of.
#[derive(Debug, Clone)]
pub enum ImportBody {
    /// Line protocol.
    Lines(Bytes),
    /// Rows of one table; the column `time` has nanoseconds.
    Rows {
        /// The table.
        table: String,
        /// The rows.
        batch: RecordBatch,
    },
}

/// What a target says of a piece that it has stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportReceipt {
    /// Points stored.
    pub points: u64,
    /// Points refused, all of them counted.
    pub refused: u64,
    /// The first of them.
    pub refusals: Vec<Rejected>,
    /// Whether they were stored by an earlier write of the same piece.
    pub replayed: bool,
}

impl From<Written> for ImportReceipt {
    fn from(written: Written) -> Self {
        Self {
            points: written.points,
            refused: written.rejected_points,
            refusals: written.rejected,
            replayed: written.replayed,
        }
    }
}

/// Waits for the answer to a write that was handed over.
pub type ImportAnswer = Box<dyn FnOnce() -> Result<ImportReceipt> + Send>;

/// Takes the pieces of a file, in their order, each under the key that its options have.
///
/// [`Error::Busy`], from either call, means that the same piece may be handed over again.
pub trait ImportTarget: Sync {
    /// Hands a piece over; it is stored in the order of the calls.
    ///
    /// # Errors
    ///
    /// Why it is not stored.
    fn submit(&self, write: &ImportWrite) -> Result<ImportAnswer>;

    /// Returns the columns that a table has by now; none if it does not exist.
    ///
    /// # Errors
    ///
    /// Why that cannot be said.
    fn columns(&self, database: &str, table: &str) -> Result<Vec<Column>>;

    /// Returns how strict a table is about types, which need not be there: a target that does not
    /// know says nothing, and types are then those of the table or the narrowest.
    ///
    /// # Errors
    ///
    /// Why that cannot be said.
    fn column_types(&self, _database: &str, _table: &str) -> Result<ColumnTypes> {
        Ok(ColumnTypes::default())
    }
}

impl ImportTarget for Engine {
    fn submit(&self, write: &ImportWrite) -> Result<ImportAnswer> {
        let (database, options) = (write.database.as_str(), &write.options);
        let pending = match &write.body {
            ImportBody::Lines(lines) => self.submit_lp(database, lines.clone(), options)?,
            ImportBody::Rows { table, batch } => {
                self.submit_batches(database, table, std::slice::from_ref(batch), options)?
            }
        };
        Ok(Box::new(move || pending.wait().map(Into::into)))
    }

    fn columns(&self, database: &str, table: &str) -> Result<Vec<Column>> {
        match self.schema(database, table) {
            Ok(schema) => Ok(schema.columns.clone()),
            Err(Error::DatabaseNotFound { .. } | Error::TableNotFound { .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn column_types(&self, database: &str, table: &str) -> Result<ColumnTypes> {
        Ok(self.effective_column_types(database, Some(table)))
    }
}
