//! SQL: plans one statement over the tables that the engine hands out, and streams its rows.
//!
//! Owns the DataFusion session, the catalog that SQL sees, the scan of data files and buffers, and
//! the merge of late rows. Never writes, never lists a directory, never lets a statement reach the
//! host: what a statement may do is decided on its plan. Called by `engine`, which implements
//! [`QueryTables`].
//!
//! # Futures
//!
//! Methods of DataFusion's traits that hold expressions, plans or its errors are written out, not as
//! `async fn` of `async_trait`: for each of those the compiler proves anew that every kind of
//! expression may go to another thread, which takes it 2.5 s a method, twice or three times. They plan
//! at once and return a future that is ready, or one that a free function has boxed.

mod account;
mod answer;
mod around;
mod asof;
mod buffer_filter;
mod buffers;
mod catalog;
mod change;
mod checked;
mod compat;
mod condition;
mod constants;
mod coop;
mod cost;
mod create;
mod deep;
mod deletes;
mod dialect;
mod dictionaries;
#[cfg(feature = "distributed")]
mod distributed;
mod error;
mod files;
mod functions;
mod grouping_sets;
mod growth;
mod guard;
mod hourly;
mod insert;
mod integer_division;
mod latest;
mod local;
mod lru;
mod merge;
mod one_view;
mod own_functions;
mod parameters;
mod part;
mod past;
mod planner;
mod planning;
mod pool;
mod pruned;
mod readers;
mod runs;
mod scale;
mod scoped;
mod semantics;
mod session;
mod show;
mod sized;
mod snapshots;
mod statement;
mod statistics;
mod table;
mod target;
#[cfg(test)]
mod tests;
mod texts;
mod times;
mod undictionary_group_keys;
mod unique_names;
mod unplanned;
mod walk;
mod wide_lists;
mod wide_rows;
mod window_memory;
mod windows;
mod written_out;

use std::{fmt::Debug, path::Path, sync::Arc, time::Duration};

use arrow::{array::RecordBatch, datatypes::SchemaRef};
use object_store::ObjectStore;
use tokio::time::{Instant, sleep, timeout_at};

pub use self::answer::{Answer, AnswerEnder};
pub(crate) use self::change::{Change, parse as parse_change};
#[cfg(feature = "distributed")]
pub use self::distributed::{ClusterStats, QueryCluster, QueryWorker};
pub(crate) use self::insert::{InsertRows as InsertedRows, placeholders as inserted_placeholders};
pub(crate) use self::snapshots::RestorePoint;
use self::{account::Accounts, planner::StatementPlanner};
pub use self::{
    pruned::ScannedFiles,
    statement::{Statement, StatementKind},
    target::ChangeTarget,
};
use crate::{Options, PastMoment, Result, SnapshotInfo, memory::MemoryBudget, model::TableSchema, view::TableView};

/// The tables that SQL can see; implemented by the engine.
pub(crate) trait QueryTables: Debug + Send + Sync + 'static {
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
    /// Returns the folder of a table's data files, below the data directory.
    fn folder(&self, database: &str, table: &str) -> String;
    /// Returns the tables as they were; they stay so, and readable, for as long as this is held.
    fn at(&self, moment: &PastMoment) -> Result<Arc<dyn QueryTables>>;
    /// Returns all snapshots.
    fn snapshots(&self) -> Result<Vec<SnapshotInfo>>;
    /// Returns the tables as one statement is to see all of them, if that is not what
    /// [`view`](Self::view) gives at any time. Called once for each, on a thread that may wait.
    fn pinned(&self) -> Result<Option<PinnedTables>> {
        Ok(None)
    }
}

/// The tables as one statement sees them.
#[derive(Debug)]
pub(crate) struct PinnedTables {
    pub(crate) tables: Arc<dyn QueryTables>,
    /// What keeps them so until all views are taken.
    pub(crate) pin: Box<dyn PlanningPin>,
}

/// Dropped once a statement is planned.
pub(crate) trait PlanningPin: Debug + Send {}

/// Where data files are.
#[derive(Debug)]
pub(crate) struct DataPlace<'a> {
    /// The data directory, which exists.
    pub(crate) dir: &'a Path,
    /// Where the data files are if not there.
    pub(crate) store: Option<Arc<dyn ObjectStore>>,
    /// Whether another process has the directory: then it may remove a data file though somebody
    /// still reads it, and nothing is spilled there. Otherwise what was spilled there is removed.
    pub(crate) is_anothers: bool,
}

/// What is known of a statement before it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Description {
    /// The columns of its answer. Where placeholders have no values yet, their types are a guess.
    pub columns: SchemaRef,
    /// Its placeholders: those with a number in order, named `$1` and so on, or else those with a
    /// name, without the `$`. The type is `Null` where the statement does not tell it.
    pub parameters: SchemaRef,
}

/// Runs SQL statements over [`QueryTables`].
#[derive(Debug)]
pub(crate) struct QueryEngine {
    planner: StatementPlanner,
    accounts: Arc<Accounts>,
    timeout: Duration,
}

/// How long a statement waits for memory before it is told to come back, and how often it looks.
const PATIENCE: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(20);

impl QueryEngine {
    /// Returns an engine that reads data files in `place`.
    pub(crate) fn new(
        tables: Arc<dyn QueryTables>,
        place: DataPlace<'_>,
        options: &Options,
        memory: Arc<MemoryBudget>,
    ) -> Result<Self> {
        let base = session::base_state(place, options, Arc::clone(&memory))?;
        Ok(Self {
            accounts: Accounts::new(memory),
            planner: StatementPlanner::new(tables, base, options.query_memory_bytes),
            timeout: options.query_timeout,
        })
    }

    /// Runs one statement with values for its placeholders; names without a database mean tables of
    /// `database`, which need not exist.
    ///
    /// Must be called within a tokio runtime that has its timer enabled: reading and the time limit
    /// run there.
    pub(crate) async fn sql(
        &self,
        database: &str,
        statement: &Statement,
        values: Option<&RecordBatch>,
    ) -> Result<Answer> {
        let deadline = Instant::now() + self.timeout;
        self.wait_for_memory(deadline).await?;
        let account = self.accounts.open(deadline, statement.memory_limit_bytes());
        let planned = timeout_at(deadline, self.planner.plan(database, statement, values, &account)).await;
        let (stream, files) = planned.map_err(|_| error::timed_out(self.timeout))??;
        Ok(Answer::new(stream, files, self.timeout, account))
    }

    /// Runs one statement over one table as it was when `view` was taken, whose name has its
    /// database in front. Must be called as [`sql`](Self::sql).
    pub(crate) async fn of_view(&self, view: TableView, statement: &Statement, values: &RecordBatch) -> Result<Answer> {
        let deadline = Instant::now() + self.timeout;
        self.wait_for_memory(deadline).await?;
        let account = self.accounts.open(deadline, statement.memory_limit_bytes());
        let tables = Arc::new(one_view::OneView(view));
        let planned = timeout_at(deadline, self.planner.plan_over(tables, statement, values, &account)).await;
        let (stream, files) = planned.map_err(|_| error::timed_out(self.timeout))??;
        Ok(Answer::new(stream, files, self.timeout, account))
    }

    async fn wait_for_memory(&self, deadline: Instant) -> Result<()> {
        let patience = deadline.min(Instant::now() + PATIENCE);
        while self.accounts.is_full() {
            if Instant::now() >= patience {
                return Err(error::busy("the process has hardly any memory left for a query (max_resident_bytes)"));
            }
            sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// Spreads queries over the nodes of `cluster` from now on. Only the first call counts.
    #[cfg(feature = "distributed")]
    pub(crate) fn join(&self, cluster: Arc<dyn QueryCluster>) -> Result<()> {
        self.planner.join(cluster, &self.accounts, self.timeout)
    }

    /// Returns what became of queries since this node joined a cluster, if it did.
    #[cfg(feature = "distributed")]
    pub(crate) fn cluster_stats(&self) -> Option<ClusterStats> {
        self.planner.cluster_stats()
    }

    /// Returns what executes parts of other nodes' queries here.
    #[cfg(feature = "distributed")]
    pub(crate) fn worker(&self) -> QueryWorker {
        self.planner.worker(&self.accounts, self.timeout)
    }

    /// Returns how many statements are planned now, and how many of them no caller waits for any
    /// more.
    pub(crate) fn planning(&self) -> (usize, usize) {
        self.planner.threads()
    }

    /// Returns how many queries had to end because the process was near its limit.
    pub(crate) fn ended(&self) -> u64 {
        self.accounts.ended()
    }

    /// Plans one statement without running it.
    pub(crate) async fn describe(
        &self,
        database: &str,
        statement: &Statement,
        values: Option<&RecordBatch>,
    ) -> Result<Description> {
        let deadline = Instant::now() + self.timeout;
        let account = self.accounts.open(deadline, statement.memory_limit_bytes());
        let described = self.planner.describe(database, statement, values, &account);
        let described = timeout_at(deadline, described).await;
        described.map_err(|_| error::timed_out(self.timeout))?
    }
}

/// Parses a statement at every door there is, and keeps nothing of it.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn parse_at_all_doors(sql: &str) {
    let Ok(statement) = Statement::parse(sql) else { return };
    let _ = (statement::request(&statement), change::parse(&statement), insert::placeholders(&statement));
}
