//! SQL: plans one statement over the tables that the engine hands out, and streams its rows.
//!
//! Owns the DataFusion session, the catalog that SQL sees, the scan of data files and buffers, and the merge of late
//! rows. Never writes, never lists a directory, never lets a statement reach the host: what a statement may do is
//! decided on its plan. Called by `engine`, which implements [`Tables`].

mod answer;
mod buffers;
mod catalog;
mod error;
mod files;
mod merge;
mod part;
mod session;
mod statistics;
mod table;
#[cfg(test)]
mod tests;

use std::{fmt::Debug, path::Path, sync::Arc, time::Duration};

use datafusion::{
    execution::session_state::SessionState,
    physical_plan::execute_stream,
    sql::parser::{DFParserBuilder, Statement},
};
use tokio::time::Instant;

pub use self::answer::Answer;
use crate::{Error, Options, Result, catalog::TableSchema, view::TableView};

/// Longest statement accepted, in bytes.
const MAX_SQL_BYTES: usize = 1 << 20;

/// The tables that SQL can see; implemented by the engine.
pub(crate) trait Tables: Debug + Send + Sync + 'static {
    /// Returns the names of all databases.
    fn databases(&self) -> Vec<String>;
    /// Returns the names of a database's tables, or `None` when there is no such database.
    fn tables(&self, database: &str) -> Option<Vec<String>>;
    /// Returns the columns of a table.
    fn schema(&self, database: &str, table: &str) -> Option<Arc<TableSchema>>;
    /// Returns the rows of a table as they are now.
    fn view(&self, database: &str, table: &str) -> Result<Option<TableView>>;
    /// Returns how many live data files a table has, and their bytes.
    fn file_totals(&self, database: &str, table: &str) -> Option<(usize, u64)>;
}

/// Runs SQL statements over [`Tables`].
#[derive(Debug)]
pub(crate) struct QueryEngine {
    tables: Arc<dyn Tables>,
    base: SessionState,
    timeout: Duration,
}

impl QueryEngine {
    /// Returns an engine that reads data files below `data_dir`, which must exist.
    pub(crate) fn new(tables: Arc<dyn Tables>, data_dir: &Path, options: &Options) -> Result<Self> {
        let base = session::base_state(data_dir, options)?;
        Ok(Self { tables, base, timeout: options.query_timeout })
    }

    /// Runs one statement; names without a database mean tables of `database`.
    ///
    /// Must be called within a tokio runtime that has its timer enabled: planning, reading and the time limit run there.
    pub(crate) async fn sql(&self, database: &str, sql: &str) -> Result<Answer> {
        if sql.len() > MAX_SQL_BYTES {
            return Err(Error::Sql { reason: format!("the statement is longer than {MAX_SQL_BYTES} bytes") });
        }
        let deadline = Instant::now() + self.timeout;
        let state = session::query_state(&self.base, Arc::clone(&self.tables), database);
        let statement = parse(&state, sql)?;
        let plan = state.statement_to_plan(statement).await.map_err(error::from_datafusion)?;
        let physical = state.create_physical_plan(&plan).await.map_err(error::from_datafusion)?;
        let stream = execute_stream(physical, state.task_ctx()).map_err(error::from_datafusion)?;
        Ok(Answer::new(stream, deadline, self.timeout))
    }
}

fn parse(state: &SessionState, sql: &str) -> Result<Statement> {
    let limit = state.config_options().sql_parser.recursion_limit.get();
    let mut statements = DFParserBuilder::new(sql)
        .with_recursion_limit(limit)
        .build()
        .and_then(|mut parser| parser.parse_statements())
        .map_err(error::from_datafusion)?;
    match (statements.pop_front(), statements.is_empty()) {
        (Some(statement), true) => Ok(statement),
        (Some(_), false) => Err(Error::Sql { reason: "more than one statement".into() }),
        (None, _) => Err(Error::Sql { reason: "the statement is empty".into() }),
    }
}
