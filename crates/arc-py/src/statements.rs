//! Statements on their way to the engine: their text, values for their placeholders, and tables that they bring along.

use std::sync::Arc;

use arc_core::{Error, Executed, Statement, StatementKind, WriteOptions};
use arrow::{array::RecordBatch, compute::concat_batches, datatypes::Schema};
use pyo3::{prelude::*, types::PyDict};
use tokio::runtime::Runtime;

use crate::{answer::Answer, arguments::batches, errors::Raise as _, interrupt, progress::Progress, runtime};

/// One statement with what was given for it.
pub(crate) struct Given {
    statement: Statement,
    values: Option<RecordBatch>,
}

impl Given {
    pub(crate) fn new(
        py: Python<'_>,
        sql: &str,
        params: Option<Bound<'_, PyAny>>,
        tables: Option<Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut statement = Statement::parse(sql).raise(py)?;
        for (name, data) in tables.iter().flatten() {
            statement = statement.with_table(&name.extract::<String>()?, batches(&data)?).raise(py)?;
        }
        let values = params.map(|params| one_row(&params)).transpose()?;
        Ok(Self { statement, values })
    }
}

/// Returns values of placeholders as one batch; that it has one row is the engine's to check.
fn one_row(params: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    let batches = batches(params)?;
    let schema = batches.first().map_or_else(|| Arc::new(Schema::empty()), RecordBatch::schema);
    let joined = concat_batches(&schema, &batches).map_err(|e| Error::Sql { reason: e.to_string() });
    joined.raise(params.py())
}

/// Plans a statement that reads, and returns its answer.
pub(crate) fn query(py: Python<'_>, engine: arc_core::Engine, database: &str, given: Given) -> PyResult<Answer> {
    interrupt::note_thread(py)?;
    let runtime = runtime_for(py, &engine)?;
    let (asked, database) = (engine.clone(), database.to_owned());
    let planning = async move { asked.query(&database, &given.statement, given.values.as_ref()).await };
    let answer = py.detach(|| interrupt::wait(&runtime, planning, &mut Progress::new("planning")))?.raise(py)?;
    Ok(Answer::new(answer.with_reader_time(), runtime, engine))
}

/// Runs a statement that changes data. Returns which it was, and how many rows it wrote.
pub(crate) fn execute(
    py: Python<'_>,
    engine: arc_core::Engine,
    database: &str,
    given: Given,
) -> PyResult<(&'static str, Option<u64>)> {
    interrupt::note_thread(py)?;
    let runtime = runtime_for(py, &engine)?;
    let word = word(given.statement.kind());
    let database = database.to_owned();
    let change =
        async move { engine.run(&database, &given.statement, given.values.as_ref(), &WriteOptions::new()).await };
    let mut progress = Progress::new(word);
    let rows = match py.detach(|| interrupt::wait(&runtime, change, &mut progress))?.raise(py)? {
        Executed::Inserted(written) => Some(written.points),
        _ => None,
    };
    Ok((word, rows))
}

fn word(kind: StatementKind) -> &'static str {
    match kind {
        StatementKind::Insert => "insert",
        StatementKind::Create => "create",
        StatementKind::Delete => "delete",
        StatementKind::Drop => "drop",
        _ => "other",
    }
}

pub(crate) fn runtime_for(py: Python<'_>, engine: &arc_core::Engine) -> PyResult<Arc<Runtime>> {
    let action = "start threads for queries on";
    runtime::get().map_err(|source| Error::Io { action, path: engine.path().into(), source }).raise(py)
}
