//! All continuous queries, kept in a file of the data directory, with what came of their executions.

use std::{path::Path, time::Duration};

use hyper::StatusCode;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use super::{
    query::{ContinuousQuery, QueryExecution, Window},
    request::WantedQuery,
};
use crate::{
    app::StartError,
    errors::Failure,
    kept::{KeptContent, KeptFile},
    retention::ExecutionStatus,
    timestamp,
};

/// Most queries that are kept.
const MAX_QUERIES: usize = 1_000;

/// What the file says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct QueryFile {
    version: u32,
    /// The number of the next query or execution; no number is used twice.
    next_id: u64,
    queries: Vec<ContinuousQuery>,
}

impl KeptContent for QueryFile {
    const FILE: &'static str = "continuous_queries.json";
    const CONTENT: &'static str = "continuous queries";
    const VERSION: u32 = 1;

    fn empty() -> Self {
        Self { version: Self::VERSION, next_id: 1, queries: Vec::new() }
    }

    fn version(&self) -> u32 {
        self.version
    }
}

/// The continuous queries of a data directory.
#[derive(Debug)]
pub(crate) struct ContinuousQueries {
    kept: KeptFile<QueryFile>,
    /// Wakes who waits for the next window.
    pub(super) changed: Notify,
}

/// What came of an execution.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) rows: u64,
    pub(super) took: Duration,
    pub(super) error: Option<String>,
}

impl ContinuousQueries {
    /// Reads the queries of a data directory, which may have none. What was running has failed.
    pub(crate) fn open(data_dir: &Path) -> Result<Self, StartError> {
        let kept = KeptFile::open(data_dir, |kept: &mut QueryFile| {
            let executions = kept.queries.iter_mut().flat_map(|query| &mut query.executions);
            for execution in executions.filter(|execution| execution.status == ExecutionStatus::Running) {
                execution.status = ExecutionStatus::Failed;
                execution.error = Some("the server ended before all rows were written".to_owned());
            }
        });
        Ok(Self { kept: kept?, changed: Notify::new() })
    }

    /// Returns all queries in the order they were made.
    pub(super) fn all(&self) -> Vec<ContinuousQuery> {
        self.kept.load().queries.clone()
    }

    pub(super) fn get(&self, id: u64) -> Result<ContinuousQuery, Failure> {
        let found = self.kept.load().queries.iter().find(|query| query.id == id).cloned();
        found.ok_or_else(|| missing(&id.to_string()))
    }

    /// Makes a query, if `may` agrees to it.
    pub(super) fn create(
        &self,
        wanted: WantedQuery,
        may: impl FnOnce(&ContinuousQuery) -> Result<(), Failure>,
    ) -> Result<ContinuousQuery, Failure> {
        self.change(|kept| {
            if kept.queries.len() >= MAX_QUERIES {
                let text = format!("there are {MAX_QUERIES} continuous queries, and may be no more");
                return Err(Failure::bad_request(text));
            }
            let now = timestamp::now_ns();
            let id = kept.take_id();
            let mut query = ContinuousQuery { id, created_ns: now, updated_ns: now, ..ContinuousQuery::default() };
            wanted.change(&mut query)?;
            may(&query)?;
            kept.check_name(&query)?;
            kept.queries.push(query.clone());
            Ok(query)
        })
    }

    /// Changes a query as `wanted` says, if `may` agrees to what it then is.
    pub(super) fn put(
        &self,
        id: u64,
        wanted: WantedQuery,
        may: impl FnOnce(&ContinuousQuery) -> Result<(), Failure>,
    ) -> Result<ContinuousQuery, Failure> {
        self.change(|kept| {
            let mut query = kept.find(id)?.clone();
            wanted.change(&mut query)?;
            may(&query)?;
            kept.check_name(&query)?;
            query.updated_ns = timestamp::now_ns();
            *kept.find(id)? = query.clone();
            Ok(query)
        })
    }

    pub(super) fn delete(&self, id: u64) -> Result<(), Failure> {
        self.change(|kept| {
            kept.find(id)?;
            kept.queries.retain(|query| query.id != id);
            Ok(())
        })
    }

    /// Notes that a query is about to be executed; returns the number of the execution.
    pub(super) fn begin(&self, id: u64, window: Window) -> Result<u64, Failure> {
        self.kept.change(|kept| {
            let number = kept.take_id();
            let query = kept.find(id)?;
            if query.executions.iter().any(|execution| execution.status == ExecutionStatus::Running) {
                let text = format!("continuous query {id} is being executed; wait for its end");
                return Err(Failure::new(StatusCode::CONFLICT, text));
            }
            let (started_ns, status) = (timestamp::now_ns(), ExecutionStatus::Running);
            let (written, took_ms, error) = (0, 0.0, None);
            query.remember(QueryExecution { id: number, started_ns, window, status, written, took_ms, error });
            Ok(number)
        })
    }

    /// Notes what came of an execution, unless its query was deleted meanwhile.
    pub(super) fn end(&self, id: u64, number: u64, outcome: Written) -> Result<(), Failure> {
        self.change(|kept| {
            let Some(query) = kept.queries.iter_mut().find(|query| query.id == id) else { return Ok(()) };
            let found = query.executions.iter_mut().find(|execution| execution.id == number);
            let Some(execution) = found else { return Ok(()) };
            let Written { rows, took, error } = outcome;
            execution.status = if error.is_some() { ExecutionStatus::Failed } else { ExecutionStatus::Completed };
            execution.written = rows;
            execution.took_ms = (took.as_secs_f64() * 1e6).round() / 1e3;
            execution.error = error;
            if execution.status == ExecutionStatus::Completed {
                let window = execution.window;
                query.moves_on(window, timestamp::now_ns());
            }
            Ok(())
        })
    }

    /// Keeps a change, and has the next window looked for anew.
    fn change<T>(&self, edit: impl FnOnce(&mut QueryFile) -> Result<T, Failure>) -> Result<T, Failure> {
        let made = self.kept.change(edit)?;
        self.changed.notify_one();
        Ok(made)
    }
}

impl QueryFile {
    fn take_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id = id.saturating_add(1);
        id
    }

    fn find(&mut self, id: u64) -> Result<&mut ContinuousQuery, Failure> {
        self.queries.iter_mut().find(|query| query.id == id).ok_or_else(|| missing(&id.to_string()))
    }

    fn check_name(&self, query: &ContinuousQuery) -> Result<(), Failure> {
        if self.queries.iter().any(|other| other.name == query.name && other.id != query.id) {
            return Err(Failure::bad_request(format!("there is a continuous query named {:?} already", query.name)));
        }
        Ok(())
    }
}

/// What is answered for a query that is not there.
pub(super) fn missing(id: &str) -> Failure {
    Failure::new(StatusCode::NOT_FOUND, format!("continuous query {id:?} not found"))
}
