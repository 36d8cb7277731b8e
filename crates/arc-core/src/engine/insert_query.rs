//! Rows of a query as writes: part by part while the query goes on, so that their number does not
//! matter.
//!
//! A part is a write like any other, stored as a whole or not at all. What was stored before a
//! failure is said in the error; nothing is taken back.

use std::{collections::VecDeque, future::Future, sync::Arc, thread};

use arrow::{
    array::{Array, ArrayRef, RecordBatch},
    datatypes::{Field, Schema, SchemaRef},
};
use futures::StreamExt;
use tokio::{runtime::Builder, task};

use super::{
    Engine,
    fitting::{fitted, plain},
    insert::{one_for_each_time, refuse, target_columns, type_of, write_options},
};
use crate::{
    Answer, ColumnTypes, Description, Error, FileTimeUnit, PendingWrite, Result, Statement, WriteOptions, Written,
    model::TableSchema,
    query::{Change, inserted_placeholders, parse_change},
};

/// Bytes and rows after which a part is cut off. The less memory there is, the fewer bytes.
const PART_BYTES: usize = 8 << 20;
const PART_ROWS: usize = 1 << 20;
const PARTS_IN_MEMORY: usize = 64;
/// Parts that may wait to be durable while the query goes on.
const PARTS_AHEAD: usize = 2;

/// A query, and the table that its rows are for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Insertion<'a> {
    /// Where the tables of the query are that it names without a database.
    default: &'a str,
    database: &'a str,
    table: &'a str,
    columns: &'a [String],
    query: &'a Statement,
}

impl<'a> Insertion<'a> {
    pub(super) fn new(
        default: &'a str,
        database: &'a str,
        table: &'a str,
        columns: &'a [String],
        query: &'a Statement,
    ) -> Self {
        Self { default, database, table, columns, query }
    }
}

impl Engine {
    /// Writes the rows of a query to a table that is there.
    pub(super) async fn insert_query(
        &self,
        insertion: Insertion<'_>,
        values: Option<&RecordBatch>,
        options: &WriteOptions,
    ) -> Result<Written> {
        self.writer()?;
        let Insertion { default, database, table, columns, query } = insertion;
        let schema = self.table(database, table)?.schema();
        let columns = target_columns(&schema, columns)?;
        let shape = Shape::new(&schema, &columns, self.effective_column_types(database, Some(table)))?;
        let answer = self.query(default, query, values).await?;
        shape.check(&answer)?;
        let options = write_options(&schema, &columns, options);
        let mut storing = Storing {
            engine: self,
            database,
            table,
            schema: &schema,
            unit: shape.types.rounds_to(),
            options,
            most_bytes: (self.options().memory_bytes / PARTS_IN_MEMORY).clamp(1, PART_BYTES),
            part: Vec::new(),
            part_rows: 0,
            part_bytes: 0,
            pending: VecDeque::new(),
            stored: None,
        };
        let result = storing.all(answer, &shape).await;
        // Whatever failed, what was queued before is stored.
        let result = result.and(storing.acknowledge(0).await);
        match (result, storing.stored) {
            (Ok(()), Some(written)) => Ok(written),
            // Nothing to store, which is checked all the same.
            (Ok(()), None) => self.submit_batches(database, table, &[shape.empty()], &storing.options)?.await,
            (Err(error), Some(written)) => Err(Error::InsertStopped { rows: written.points, source: Box::new(error) }),
            (Err(error), None) => Err(error),
        }
    }
}

impl Engine {
    /// Plans an `INSERT` without running it: the columns are those of its rows. A placeholder that
    /// stands for a whole value of `VALUES` has the type of the value's column.
    pub(super) async fn describe_insert(
        &self,
        default: &str,
        statement: &Statement,
        values: Option<&RecordBatch>,
    ) -> Result<Description> {
        let statement = statement.clone();
        let (target, table, columns, query) = match blocking(move || parse_change(&statement)).await? {
            Change::InsertQuery { database, table, columns, query } => (database, table, columns, query),
            Change::Insert { database, table, rows } => {
                (database, table, rows.columns, Statement::parse("VALUES (NULL)")?)
            }
            _ => return refuse("this is no INSERT".to_owned()),
        };
        let schema = self.table(target.as_deref().unwrap_or(default), &table)?.schema();
        let shape = Shape::new(&schema, &target_columns(&schema, &columns)?, ColumnTypes::default())?;
        let described = self.inner.query()?.describe(default, &query, values).await?;
        let types = blocking(move || inserted_placeholders(&query)).await?;
        let typed = described.parameters.fields().iter().map(|field| {
            let column =
                types.iter().find(|(id, _)| id.trim_start_matches('$') == field.name().trim_start_matches('$'));
            let column = column.and_then(|(_, at)| shape.schema.fields().get(*at));
            column.map_or_else(|| field.as_ref().clone(), |column| column.as_ref().clone().with_name(field.name()))
        });
        let parameters = Arc::new(Schema::new(typed.collect::<Vec<_>>()));
        Ok(Description { columns: shape.schema, parameters })
    }
}

/// The columns that are written, in the order of the query's.
struct Shape {
    table: String,
    schema: SchemaRef,
    types: ColumnTypes,
}

impl Shape {
    fn new(table: &TableSchema, columns: &[String], types: ColumnTypes) -> Result<Self> {
        let fields = columns.iter().map(|name| Ok(Field::new(name, type_of(table, name)?, true)));
        let schema = Arc::new(Schema::new(fields.collect::<Result<Vec<_>>>()?));
        Ok(Self { table: table.table.to_string(), schema, types })
    }

    fn empty(&self) -> RecordBatch {
        RecordBatch::new_empty(Arc::clone(&self.schema))
    }

    /// Refuses an answer with another number of columns, or types that can have no value in common
    /// with the table's.
    fn check(&self, answer: &Answer) -> Result<()> {
        let given = answer.schema();
        let (given_count, expected) = (given.fields().len(), self.schema.fields().len());
        if given_count != expected {
            return refuse(format!("the rows have {given_count} columns, and INSERT has {expected}"));
        }
        self.fitted(&RecordBatch::new_empty(given)).map(drop)
    }

    fn fitted(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let columns = self.schema.fields().iter().zip(batch.columns());
        let columns: Vec<ArrayRef> = columns
            .map(|(field, array)| {
                let (name, data_type) = (field.name(), field.data_type());
                match fitted(array, data_type, &self.table, name) {
                    // Made text, or the column something else, by those who do it for all writes.
                    Err(_) if self.types.gives_way(name, data_type) => plain(array),
                    fitted => fitted,
                }
            })
            .collect::<Result<_>>()?;
        let fields = self.schema.fields().iter().zip(&columns);
        let fields = fields.map(|(field, array)| field.as_ref().clone().with_data_type(array.data_type().clone()));
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns)?)
    }
}

/// An answer that is being stored.
struct Storing<'a> {
    engine: &'a Engine,
    database: &'a str,
    table: &'a str,
    schema: &'a TableSchema,
    /// What times are rounded to.
    unit: FileTimeUnit,
    options: WriteOptions,
    most_bytes: usize,
    /// The rows of the next part, so far.
    part: Vec<RecordBatch>,
    part_rows: usize,
    part_bytes: usize,
    /// With the rows that were merged into others before.
    pending: VecDeque<(PendingWrite, u64)>,
    /// All that is acknowledged.
    stored: Option<Written>,
}

impl Storing<'_> {
    async fn all(&mut self, mut answer: Answer, shape: &Shape) -> Result<()> {
        while let Some(batch) = answer.next().await {
            let batch = shape.fitted(&batch?)?;
            let mut from = 0;
            while from < batch.num_rows() {
                let each = size(&batch) / batch.num_rows();
                let fit = self.most_bytes.checked_div(each).unwrap_or(PART_ROWS).clamp(1, PART_ROWS);
                let rows = fit.min(batch.num_rows() - from);
                self.add(batch.slice(from, rows), each * rows).await?;
                from += rows;
            }
        }
        self.cut().await
    }

    async fn add(&mut self, rows: RecordBatch, bytes: usize) -> Result<()> {
        if self.part_bytes + bytes > self.most_bytes || self.part_rows + rows.num_rows() > PART_ROWS {
            self.cut().await?;
        }
        self.part_bytes += bytes;
        self.part_rows += rows.num_rows();
        self.part.push(rows);
        Ok(())
    }

    /// Hands the rows gathered so far to the engine.
    async fn cut(&mut self) -> Result<()> {
        let part = std::mem::take(&mut self.part);
        (self.part_rows, self.part_bytes) = (0, 0);
        if part.is_empty() {
            return Ok(());
        }
        let (part, merged_rows) = one_for_each_time(part, self.schema, self.unit, &self.options)?;
        let (engine, options) = (self.engine.clone(), self.options.clone());
        let (database, table) = (self.database.to_owned(), self.table.to_owned());
        let pending = blocking(move || engine.submit_batches(&database, &table, &part, &options)).await?;
        self.pending.push_back((pending, merged_rows));
        self.acknowledge(PARTS_AHEAD).await
    }

    /// Waits until no more than `ahead` parts wait to be durable; all that is stored is counted,
    /// whatever fails.
    async fn acknowledge(&mut self, ahead: usize) -> Result<()> {
        let mut result = Ok(());
        while self.pending.len() > ahead {
            let Some((pending, merged_rows)) = self.pending.pop_front() else { break };
            let written = pending.await.map(|written| Written { points: written.points + merged_rows, ..written });
            match written {
                Ok(written) => match &mut self.stored {
                    Some(stored) => stored.points += written.points,
                    None => self.stored = Some(written),
                },
                Err(error) => result = result.and(Err(error)),
            }
        }
        result
    }
}

/// Returns how many bytes the rows of a batch take, whatever they are a part of.
fn size(batch: &RecordBatch) -> usize {
    let of = |column: &dyn Array| column.to_data().get_slice_memory_size().unwrap_or(column.get_buffer_memory_size());
    batch.columns().iter().map(|column| of(column.as_ref())).sum()
}

/// Does what waits for the disk or for room on a thread that may.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    task::spawn_blocking(work).await.map_err(|e| Error::internal(e.to_string()))?
}

/// Waits for what needs a runtime, for a caller that may be in one or not.
pub(super) fn on_own_runtime<T: Send>(work: impl Future<Output = Result<T>> + Send) -> Result<T> {
    let run = || {
        let runtime = Builder::new_current_thread().enable_all().build();
        runtime.map_err(|e| Error::internal(e.to_string()))?.block_on(work)
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("arc-insert".to_owned());
        let running = thread.spawn_scoped(scope, run).map_err(|e| Error::internal(e.to_string()))?;
        running.join().unwrap_or_else(|_| Err(Error::internal("the thread of an INSERT has panicked")))
    })
}
