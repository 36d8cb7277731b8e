//! Bulk ingest: the rows of a stream into one table, in parts that are each stored as a whole.

use std::{collections::VecDeque, mem};

use adbc_core::{
    error::{Error, Result, Status},
    options::{IngestMode, OptionStatement, OptionValue},
};
use arc_core::{Durability, ErrorKind, PendingWrite, Precision, WriteOptions};
use arrow::array::{RecordBatch, RecordBatchReader};

use crate::{
    connection::Shared,
    errors::{OrAdbc as _, cancelled, invalid, of_engine, unsupported},
    objects::check_catalog,
    options::{DURABILITY, PRECISION, TAGS, TIME, flag, parsed, text, unknown_to_set},
    runtime::{Cancel, guarded},
};

/// Bytes of a part.
const PART_BYTES: usize = 16 << 20;
/// Parts that may wait to be durable while further ones come in.
const PARTS_AHEAD: usize = 3;

/// Where rows go, and how.
#[derive(Debug, Default)]
pub(crate) struct Ingest {
    table: Option<String>,
    database: Option<String>,
    mode: Option<IngestMode>,
    tags: Option<String>,
    time: Option<String>,
    precision: Option<Precision>,
    durability: Option<Durability>,
}

impl Ingest {
    pub(crate) fn has_target(&self) -> bool {
        self.table.is_some()
    }

    /// Forgets where rows go, for SQL comes in their place. How they go stays.
    pub(crate) fn clear_target(&mut self) {
        (self.table, self.database, self.mode) = (None, None, None);
    }

    pub(crate) fn set(&mut self, key: &OptionStatement, value: OptionValue) -> Result<()> {
        let name = key.as_ref();
        match (key, name) {
            (OptionStatement::Temporary, _) => {
                if flag(name, &value)? {
                    return Err(unsupported("there are no temporary tables"));
                }
            }
            (OptionStatement::TargetTable, _) => self.table = Some(text(name, value)?),
            (OptionStatement::TargetCatalog, _) => check_catalog(Some(&text(name, value)?))?,
            (OptionStatement::TargetDbSchema, _) => self.database = Some(text(name, value)?),
            (OptionStatement::IngestMode, _) => self.mode = Some(text(name, value)?.parse()?),
            (_, TAGS) => self.tags = Some(text(name, value)?),
            (_, TIME) => self.time = Some(text(name, value)?),
            (_, PRECISION) => self.precision = Some(parsed(name, &text(name, value)?, "ns, us, ms, s, m or h")?),
            (_, DURABILITY) => {
                self.durability = Some(parsed(name, &text(name, value)?, "disk, process or memory")?);
            }
            _ => return Err(unknown_to_set(name)),
        }
        Ok(())
    }

    pub(crate) fn get(&self, key: &OptionStatement) -> Option<String> {
        match (key, key.as_ref()) {
            (OptionStatement::TargetTable, _) => self.table.clone(),
            (OptionStatement::TargetDbSchema, _) => self.database.clone(),
            (OptionStatement::IngestMode, _) => self.mode.map(String::from),
            (_, TAGS) => self.tags.clone(),
            (_, TIME) => self.time.clone(),
            (_, DURABILITY) => self.durability.map(|durability| durability.to_string()),
            _ => None,
        }
    }

    fn options(&self, shared: &Shared) -> WriteOptions {
        let mut options = shared.write_options();
        if let Some(tags) = &self.tags {
            options = options.tags(tags.split(',').map(str::trim).filter(|tag| !tag.is_empty()));
        }
        if let Some(time) = &self.time {
            options = options.time_column(time.as_str());
        }
        if let Some(precision) = self.precision {
            options = options.precision(precision);
        }
        if let Some(durability) = self.durability {
            options = options.durability(durability);
        }
        options
    }

    /// Stores all rows; returns how many, once they are durable.
    pub(crate) fn run(
        &self,
        shared: &Shared,
        cancel: &Cancel,
        mut rows: Box<dyn RecordBatchReader + Send>,
    ) -> Result<i64> {
        cancel.begin();
        let database = self.database.as_deref().filter(|name| !name.is_empty()).unwrap_or(&shared.database);
        let table = self.table.as_deref().unwrap_or_default();
        guarded(|| {
            // A stream that cannot be read at all takes no table away.
            let first = rows.find(|batch| batch.as_ref().map_or(true, |batch| batch.num_rows() > 0));
            let first = first.transpose().map_err(|error| unreadable(&error))?;
            let options = self.options(shared);
            if self.mode == Some(IngestMode::Replace) {
                // Rows that no table takes do not cost the one that is there, and neither do none.
                let Some(first) = &first else {
                    return Err(invalid(
                        "there are no rows, and a table is made by its first one; DROP TABLE takes one away",
                    ));
                };
                shared.engine.check_batches(database, table, std::slice::from_ref(first), &options).or_adbc()?;
            }
            self.make_room(shared, database, table)?;
            let mut storing =
                Storing { shared, cancel, target: (database, table), options, pending: VecDeque::new(), rows: 0 };
            let stored = storing.all(first.map(Ok).into_iter().chain(rows));
            // Whatever failed, what was queued before is stored.
            let rest = storing.acknowledge(0);
            stored.and(rest).map(|()| storing.rows).map_err(|error| storing.with_count(error))
        })
    }

    /// Does what the mode says where the table is there, or is not.
    fn make_room(&self, shared: &Shared, database: &str, table: &str) -> Result<()> {
        let is_there = match shared.engine.schema(database, table) {
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(of_engine(&error)),
        };
        match (is_there, self.mode.unwrap_or(IngestMode::Create)) {
            (true, IngestMode::Create) => {
                let error = arc_core::Error::TableExists { database: database.to_owned(), table: table.to_owned() };
                Err(of_engine(&error))
            }
            (true, IngestMode::Replace) => shared.engine.drop_table(database, table).or_adbc(),
            (false, IngestMode::Append) => {
                let error = arc_core::Error::TableNotFound { database: database.to_owned(), table: table.to_owned() };
                Err(of_engine(&error))
            }
            _ => Ok(()),
        }
    }
}

/// A stream that is being stored.
struct Storing<'a> {
    shared: &'a Shared,
    cancel: &'a Cancel,
    target: (&'a str, &'a str),
    options: WriteOptions,
    pending: VecDeque<PendingWrite>,
    /// Rows acknowledged.
    rows: i64,
}

impl Storing<'_> {
    fn all(
        &mut self,
        rows: impl Iterator<Item = std::result::Result<RecordBatch, arrow::error::ArrowError>>,
    ) -> Result<()> {
        let (mut part, mut bytes) = (Vec::new(), 0);
        for batch in rows {
            if self.cancel.was_asked() {
                return Err(cancelled());
            }
            let batch = batch.map_err(|error| unreadable(&error))?;
            let pieces = batch.get_array_memory_size().div_ceil(PART_BYTES).max(1);
            let rows_of_piece = batch.num_rows().div_ceil(pieces).max(1);
            for first in (0..batch.num_rows()).step_by(rows_of_piece) {
                part.push(batch.slice(first, rows_of_piece.min(batch.num_rows() - first)));
                bytes += batch.get_array_memory_size() / pieces;
                if bytes >= PART_BYTES {
                    bytes = 0;
                    self.submit(&mem::take(&mut part))?;
                }
            }
        }
        if part.is_empty() { Ok(()) } else { self.submit(&part) }
    }

    fn submit(&mut self, part: &[RecordBatch]) -> Result<()> {
        let (database, table) = self.target;
        let pending = self.shared.engine.submit_batches(database, table, part, &self.options).or_adbc()?;
        self.pending.push_back(pending);
        self.acknowledge(PARTS_AHEAD)
    }

    /// Waits until no more than `ahead` parts wait to be durable; all that was queued is counted, whatever fails.
    fn acknowledge(&mut self, ahead: usize) -> Result<()> {
        let mut result = Ok(());
        while self.pending.len() > ahead {
            let Some(pending) = self.pending.pop_front() else { break };
            match pending.wait().or_adbc() {
                Ok(written) => self.rows += i64::try_from(written.points).unwrap_or(i64::MAX),
                Err(error) => result = result.and(Err(error)),
            }
        }
        result
    }

    fn with_count(&self, error: Error) -> Error {
        if self.rows == 0 {
            return error;
        }
        Error { message: format!("{}; the first {} rows of the stream are stored", error.message, self.rows), ..error }
    }
}

fn unreadable(error: &arrow::error::ArrowError) -> Error {
    Error::with_message_and_status(format!("the rows cannot be read: {error}"), Status::InvalidData)
}
