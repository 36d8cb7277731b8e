//! A statement: SQL with the values for its placeholders, or rows on their way into a table.

use std::{collections::VecDeque, sync::Arc};

use adbc_core::{
    CancelHandle, Optionable, PartitionedResult, Statement,
    error::Result,
    options::{OptionStatement, OptionValue},
};
use arc_core::{Description, Executed, StatementKind};
use arrow::{
    array::{RecordBatch, RecordBatchIterator, RecordBatchReader},
    datatypes::{Schema, SchemaRef},
    error::ArrowError,
};
use serde::{Deserialize, Serialize};

use crate::{
    connection::Shared,
    errors::{OrAdbc as _, invalid, of_engine, state, stream_error, unsupported},
    ingest::Ingest,
    options::{BY_NAME, DICTIONARIES, flag, only_texts, unknown},
    rows::{self, Reader, Rows},
    runtime::{Cancel, Canceller, wait_or_cancel},
};

/// A statement of a connection.
pub struct ArcStatement {
    shared: Shared,
    cancel: Arc<Cancel>,
    sql: Option<arc_core::Statement>,
    bound: Option<Reader>,
    ingest: Ingest,
}

impl std::fmt::Debug for ArcStatement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArcStatement").field("sql", &self.sql).field("ingest", &self.ingest).finish_non_exhaustive()
    }
}

/// What is asked for by one descriptor of a partition.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Partition {
    pub(crate) database: String,
    pub(crate) sql: String,
}

impl Partition {
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        serde_json::from_slice(bytes).map_err(|error| invalid(format!("this is no partition of this driver: {error}")))
    }
}

impl ArcStatement {
    pub(crate) fn new(shared: Shared) -> Self {
        Self { shared, cancel: Arc::default(), sql: None, bound: None, ingest: Ingest::default() }
    }

    fn sql(&self) -> Result<arc_core::Statement> {
        let statement = self.sql.clone().ok_or_else(|| state("the statement has no SQL yet"))?;
        if self.shared.only_reads && statement.kind().is_change() {
            return Err(state("this connection only reads"));
        }
        Ok(statement)
    }

    /// Returns the values that were bound, a batch for each row.
    fn rows_of_values(&mut self) -> Result<VecDeque<RecordBatch>> {
        let mut rows = VecDeque::new();
        for batch in self.bound.take().into_iter().flatten() {
            let batch = batch?;
            rows.extend((0..batch.num_rows()).map(|row| batch.slice(row, 1)));
        }
        Ok(rows)
    }

    /// Runs a statement that changes data, once for each row of values. Returns how many rows it wrote.
    fn change(&mut self, statement: &arc_core::Statement) -> Result<Option<i64>> {
        self.cancel.begin();
        if self.bound.is_none() {
            return self.change_once(statement, None);
        }
        if statement.kind() != StatementKind::Insert {
            return Err(invalid("of the statements that change data, INSERT alone takes values"));
        }
        let mut written = 0;
        for values in self.rows_of_values()? {
            let stored = |error: adbc_core::error::Error| adbc_core::error::Error {
                message: format!("{}; {written} rows are stored", error.message),
                ..error
            };
            written += self.change_once(statement, Some(values)).map_err(stored)?.unwrap_or_default();
        }
        Ok(Some(written))
    }

    fn change_once(&self, statement: &arc_core::Statement, values: Option<RecordBatch>) -> Result<Option<i64>> {
        let (engine, database) = (Arc::clone(&self.shared.engine), self.shared.database.clone());
        let (statement, options) = (statement.clone(), self.shared.write_options());
        let done = wait_or_cancel(&self.cancel, async move {
            let done = engine.run(&database, &statement, values.as_ref(), &options).await;
            done.map_err(|error| of_engine(&error))
        })?;
        Ok(match done {
            Executed::Inserted(written) => Some(i64::try_from(written.points).unwrap_or(i64::MAX)),
            _ => None,
        })
    }

    fn describe(&self) -> Result<Description> {
        let statement = self.sql()?;
        self.cancel.begin();
        let (engine, database) = (Arc::clone(&self.shared.engine), self.shared.database.clone());
        wait_or_cancel(&self.cancel, async move {
            engine.describe(&database, &statement, None).await.map_err(|error| of_engine(&error))
        })
    }

    /// Returns whether the SQL changes data and takes no values: there is nothing of it to describe.
    fn takes_no_values(&self) -> Result<bool> {
        let kind = self.sql()?.kind();
        Ok(kind.is_change() && kind != StatementKind::Insert)
    }

    fn columns(&self) -> Result<SchemaRef> {
        if self.sql()?.kind().is_change() {
            return Ok(Arc::new(Schema::empty()));
        }
        Ok(rows::layout(&self.describe()?.columns, self.shared.dictionaries))
    }
}

impl Optionable for ArcStatement {
    type Option = OptionStatement;

    fn set_option(&mut self, key: OptionStatement, value: OptionValue) -> Result<()> {
        if key.as_ref() == DICTIONARIES {
            self.shared.dictionaries = flag(DICTIONARIES, &value)?;
            return Ok(());
        }
        if key.as_ref() == BY_NAME {
            // Values are found by the names of `$name` or the places of `$1`, whichever the statement has.
            return flag(BY_NAME, &value).map(drop);
        }
        if matches!(key, OptionStatement::Incremental) {
            return if flag(key.as_ref(), &value)? { Err(unsupported("partitions come all at once")) } else { Ok(()) };
        }
        self.ingest.set(&key, value)
    }

    fn get_option_string(&self, key: OptionStatement) -> Result<String> {
        match key.as_ref() {
            DICTIONARIES => Ok(self.shared.dictionaries.to_string()),
            name => self.ingest.get(&key).ok_or_else(|| unknown(name)),
        }
    }

    only_texts!(OptionStatement);
}

impl Statement for ArcStatement {
    fn bind(&mut self, batch: RecordBatch) -> Result<()> {
        let schema = batch.schema();
        self.bind_stream(Box::new(RecordBatchIterator::new([Ok::<_, ArrowError>(batch)], schema)))
    }

    fn bind_stream(&mut self, reader: Reader) -> Result<()> {
        self.bound = Some(reader);
        Ok(())
    }

    fn execute(&mut self) -> Result<Reader> {
        if self.ingest.has_target() {
            self.execute_update()?;
            return Ok(nothing());
        }
        let statement = self.sql()?;
        if statement.kind().is_change() {
            self.change(&statement)?;
            return Ok(nothing());
        }
        if self.bound.is_none() {
            return Ok(Box::new(Rows::of(&self.shared, &self.cancel, statement, None)?));
        }
        let mut values = self.rows_of_values()?;
        let Some(first) = values.pop_front() else {
            return Ok(Box::new(RecordBatchIterator::new([], self.columns()?)));
        };
        let first = Rows::of(&self.shared, &self.cancel, statement.clone(), Some(first))?;
        let (shared, cancel) = (self.shared.clone(), Arc::clone(&self.cancel));
        Ok(Box::new(EachRow { schema: first.schema(), rows: Some(first), values, shared, cancel, statement }))
    }

    fn execute_update(&mut self) -> Result<Option<i64>> {
        if self.ingest.has_target() {
            if self.shared.only_reads {
                return Err(state("this connection only reads"));
            }
            let rows = self.bound.take().ok_or_else(|| state("there are no rows to write: bind them first"))?;
            return self.ingest.run(&self.shared, &self.cancel, rows).map(Some);
        }
        let statement = self.sql()?;
        if statement.kind().is_change() {
            return self.change(&statement);
        }
        let mut rows = 0;
        for batch in self.execute()? {
            rows += batch?.num_rows();
        }
        Ok(Some(i64::try_from(rows).unwrap_or(i64::MAX)))
    }

    fn execute_schema(&mut self) -> Result<Schema> {
        Ok(self.columns()?.as_ref().clone())
    }

    fn execute_partitions(&mut self) -> Result<PartitionedResult> {
        let statement = self.sql()?;
        if statement.kind().is_change() || self.bound.is_some() {
            return Err(unsupported("partitions are of a statement that reads, without values"));
        }
        let schema = self.columns()?.as_ref().clone();
        let partition = Partition { database: self.shared.database.clone(), sql: statement.text().to_owned() };
        let partition = serde_json::to_vec(&partition).map_err(|error| invalid(error.to_string()))?;
        Ok(PartitionedResult { partitions: vec![partition], schema, rows_affected: -1 })
    }

    fn get_parameter_schema(&self) -> Result<Schema> {
        if self.takes_no_values()? {
            return Ok(Schema::empty());
        }
        // One value makes no dictionary, and not every language has them.
        Ok(rows::layout(&self.describe()?.parameters, false).as_ref().clone())
    }

    fn prepare(&mut self) -> Result<()> {
        if self.takes_no_values()? { Ok(()) } else { self.describe().map(drop) }
    }

    fn set_sql_query(&mut self, query: impl AsRef<str>) -> Result<()> {
        self.sql = Some(arc_core::Statement::parse(query.as_ref()).or_adbc()?);
        self.ingest.clear_target();
        Ok(())
    }

    fn set_substrait_plan(&mut self, _plan: impl AsRef<[u8]>) -> Result<()> {
        Err(unsupported("plans of Substrait are not taken; send SQL"))
    }

    fn get_cancel_handle(&self) -> Box<dyn CancelHandle> {
        Box::new(Canceller(Arc::clone(&self.cancel)))
    }
}

fn nothing() -> Reader {
    Box::new(RecordBatchIterator::new([], Arc::new(Schema::empty())))
}

/// The answers to one statement for each row of its values, one after the other.
struct EachRow {
    schema: SchemaRef,
    rows: Option<Rows>,
    values: VecDeque<RecordBatch>,
    shared: Shared,
    cancel: Arc<Cancel>,
    statement: arc_core::Statement,
}

impl Iterator for EachRow {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.rows.as_mut()?.next() {
                return Some(batch);
            }
            self.rows = None;
            let values = self.values.pop_front()?;
            match Rows::of(&self.shared, &self.cancel, self.statement.clone(), Some(values)) {
                Ok(rows) if rows.schema() == self.schema => self.rows = Some(rows),
                Ok(_) => {
                    let text = "the columns are of other types for other values: cast them in the SELECT list";
                    return Some(Err(ArrowError::SchemaError(text.into())));
                }
                Err(error) => return Some(Err(stream_error(&error))),
            }
        }
    }
}

impl RecordBatchReader for EachRow {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
