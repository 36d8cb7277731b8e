//! Planning, on threads of its own: it recurses as deep as a statement is, and keeps a core busy.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread,
};

use arrow::{
    array::{ArrayRef, RecordBatch, StringArray},
    datatypes::Schema,
};
use datafusion::{
    catalog::CatalogProviderList,
    common::{DataFusionError, ResolvedTableReference, TableReference, config::ConfigNonZeroUsize},
    execution::{SendableRecordBatchStream, TaskContext, runtime_env::RuntimeEnv, session_state::SessionState},
    logical_expr::LogicalPlan,
    physical_plan::{ExecutionPlan, execute_stream, stream::RecordBatchStreamAdapter},
    sql::parser::Statement,
};
use futures::{StreamExt, executor, stream};
use tokio::{
    runtime::Handle,
    sync::{Semaphore, oneshot},
};

use super::{
    Description, ScannedFiles, Tables,
    account::Account,
    catalog::Catalogs,
    constants, error, functions, give_way, guard, latest, parameters, scale, session, show, spellings,
    statement::{self, Request},
    window_memory,
};
use crate::{Error, Result, catalog::TableSchema};

/// Stack of a planning thread. Only pages that are touched take memory.
const STACK_BYTES: usize = 64 << 20;

/// What DataFusion says of a `SELECT` that gives two of its columns one name.
const SAME_NAMES: &str = "require unique expression names";

/// Makes running plans of statements.
#[derive(Debug)]
pub(super) struct Planner {
    tables: Arc<dyn Tables>,
    base: SessionState,
    /// What is remembered of data files.
    latest: Arc<latest::Cache>,
    /// What all queries share.
    memory_bytes: usize,
    /// Most bytes that one function may make for one batch.
    limit_bytes: usize,
    /// One permit for each thread that may plan at a time.
    permits: Arc<Semaphore>,
}

impl Planner {
    pub(super) fn new(tables: Arc<dyn Tables>, base: SessionState, memory_bytes: usize) -> Self {
        let threads = 2 * thread::available_parallelism().map_or(1, usize::from);
        Self {
            tables,
            base,
            latest: Arc::new(latest::Cache::new(scale::latest_bytes(memory_bytes))),
            memory_bytes,
            limit_bytes: functions::limit(memory_bytes),
            permits: Arc::new(Semaphore::new(threads)),
        }
    }

    /// Returns the stream of a statement's answer, and how many data files it reads.
    pub(super) async fn plan(
        &self,
        database: &str,
        sql: &str,
        values: Option<&RecordBatch>,
        account: &Account,
    ) -> Result<(SendableRecordBatchStream, ScannedFiles)> {
        self.on_thread(self.planning(database, sql, values, account), Planning::run).await
    }

    /// Returns what a statement's answer will look like.
    pub(super) async fn describe(
        &self,
        database: &str,
        sql: &str,
        values: Option<&RecordBatch>,
        account: &Account,
    ) -> Result<Description> {
        self.on_thread(self.planning(database, sql, values, account), Planning::describe).await
    }

    fn planning(&self, database: &str, sql: &str, values: Option<&RecordBatch>, account: &Account) -> Planning {
        Planning {
            tables: Arc::clone(&self.tables),
            runtime: session::runtime_of(&self.base, account),
            state: session::query_state(&self.base, Arc::clone(&self.tables), Arc::clone(&self.latest), database),
            database: database.to_owned(),
            sql: sql.to_owned(),
            memory_bytes: self.memory_bytes,
            values: values.cloned(),
            limit_bytes: self.limit_bytes,
        }
    }

    /// Waits while too many others are planned.
    ///
    /// A caller that stops waiting does not stop the planning, which ends by itself and holds its permit until then.
    async fn on_thread<T: Send + 'static>(
        &self,
        mut planning: Planning,
        work: fn(&mut Planning) -> Result<T>,
    ) -> Result<T> {
        let runtime = Handle::try_current().map_err(|_| Error::internal("SQL needs a tokio runtime"))?;
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|e| Error::internal(e.to_string()))?;
        let (sender, receiver) = oneshot::channel();
        let work = move || {
            let _permit = permit;
            // Some plans start tasks.
            let _runtime = runtime.enter();
            let planned = catch_unwind(AssertUnwindSafe(move || work(&mut planning)));
            // The caller may have stopped waiting.
            let _ = sender.send(planned.unwrap_or_else(|panic| Err(error::panicked(&*panic))));
        };
        let thread = thread::Builder::new().name("arc-plan".to_owned()).stack_size(STACK_BYTES);
        thread.spawn(work).map_err(|_| error::busy("no thread for planning a query"))?;
        receiver.await.map_err(|e| Error::internal(e.to_string()))?
    }
}

/// One statement on its way to a plan.
struct Planning {
    tables: Arc<dyn Tables>,
    /// With the query's own pool.
    runtime: Arc<RuntimeEnv>,
    state: SessionState,
    database: String,
    sql: String,
    memory_bytes: usize,
    /// Values for the statement's placeholders, if they are known.
    values: Option<RecordBatch>,
    limit_bytes: usize,
}

/// A statement that may be run: what it says is known already, or has to be computed.
enum Planned {
    Known(RecordBatch),
    Logical(LogicalPlan),
}

impl Planning {
    fn run(&mut self) -> Result<(SendableRecordBatchStream, ScannedFiles)> {
        match self.planned()? {
            Planned::Known(batch) => Ok((one_batch(batch), ScannedFiles::default())),
            Planned::Logical(plan) => {
                let explains = matches!(plan, LogicalPlan::Explain(_) | LogicalPlan::Analyze(_));
                let physical = executor::block_on(self.physical(&self.bound(plan)?))?;
                let context = TaskContext::from(&self.state).with_runtime(Arc::clone(&self.runtime));
                let stream = execute_stream(physical, Arc::new(context)).map_err(error::from_datafusion)?;
                let stream = if explains { self.with_scans(stream)? } else { stream };
                let files = self.catalogs().map(Catalogs::scanned_files).unwrap_or_default();
                Ok((self.pin(stream), files))
            }
        }
    }

    fn describe(&mut self) -> Result<Description> {
        let no_parameters = || Arc::new(Schema::empty());
        match self.planned()? {
            Planned::Known(batch) => Ok(Description { columns: batch.schema(), parameters: no_parameters() }),
            Planned::Logical(plan) => {
                let parameters = parameters::of(&plan)?;
                if self.values.is_none() && !parameters.fields().is_empty() {
                    let columns = Arc::clone(plan.schema().inner());
                    return Ok(Description { columns, parameters });
                }
                // The logical plan's columns may differ in what can be null.
                let physical = executor::block_on(self.physical(&self.bound(plan)?))?;
                Ok(Description { columns: physical.schema(), parameters })
            }
        }
    }

    fn planned(&mut self) -> Result<Planned> {
        let known = match statement::parse(&self.sql)? {
            Request::ShowDatabases => show::databases(&*self.tables)?,
            Request::ShowTables(asked) => show::tables(&*self.tables, asked.as_deref(), &self.database)?,
            Request::ShowColumns(database, table) => {
                let database = database.as_deref().unwrap_or(&self.database);
                show::columns(&*self.tables, database, &table)?
            }
            Request::ShowSeries(database, table) => {
                let database = database.as_deref().unwrap_or(&self.database);
                let sql = show::series(&*self.tables, database, &table)?;
                let Request::Plan(statement) = statement::parse(&sql)? else {
                    return Err(Error::internal("SHOW SERIES asks no query"));
                };
                return executor::block_on(self.logical(*statement)).map(Planned::Logical);
            }
            Request::Plan(statement) => return executor::block_on(self.query(*statement)).map(Planned::Logical),
        };
        self.values.as_ref().map_or(Ok(()), |values| parameters::check(&Schema::empty(), values))?;
        Ok(Planned::Known(known))
    }

    /// Plans what people write, who mean other engines or repeat themselves now and then.
    async fn query(&mut self, mut statement: Statement) -> Result<LogicalPlan> {
        let tables = Arc::clone(&self.tables);
        let exists = |name: &str| tables.databases().iter().any(|database| database == name);
        spellings::translate(&mut statement, &self.database, &exists)?;
        let repeated = statement.clone();
        match self.logical(statement).await {
            Err(Error::Sql { reason }) if reason.contains(SAME_NAMES) => {
                let mut statement = repeated;
                spellings::tell_apart(&mut statement);
                self.logical(statement).await
            }
            planned => planned,
        }
    }

    async fn logical(&mut self, statement: Statement) -> Result<LogicalPlan> {
        let named = self.tables_named(&statement)?;
        let widest = named.iter().filter_map(|table| Some(self.schema(table)?.columns.len())).max().unwrap_or(1);
        let missing = named.into_iter().filter(|table| self.schema(table).is_none()).collect::<Vec<_>>();
        let options = self.state.config_mut().options_mut();
        let rows = ConfigNonZeroUsize::try_new(scale::batch_rows(self.memory_bytes, widest));
        options.execution.batch_size = rows.map_err(error::from_datafusion)?;
        let plan = match self.state.statement_to_plan(statement).await {
            Ok(plan) => plan,
            Err(error) => return Err(not_found(&error, &missing).unwrap_or_else(|| error::from_datafusion(error))),
        };
        guard::check(&plan)?;
        Ok(plan)
    }

    /// Puts values in the place of placeholders; each placeholder needs one.
    fn bound(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let none = RecordBatch::new_empty(Arc::new(Schema::empty()));
        parameters::bind(plan, self.values.as_ref().unwrap_or(&none))
    }

    async fn physical(&self, plan: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
        let optimized = self.state.optimize(plan).map_err(error::from_datafusion)?;
        constants::check(&optimized, self.limit_bytes)?;
        let physical = self.state.query_planner().create_physical_plan(&optimized, &self.state).await;
        physical.and_then(give_way::wrap).and_then(window_memory::wrap).map_err(error::from_datafusion)
    }

    /// Adds to a plan what became of data files; plans have a column for what a row is about, and one for the text.
    fn with_scans(&self, plan: SendableRecordBatchStream) -> Result<SendableRecordBatchStream> {
        let scans = self.catalogs().map(Catalogs::scans).unwrap_or_default();
        let schema = plan.schema();
        if scans.is_empty() || schema.fields().len() != 2 {
            return Ok(plan);
        }
        let about: ArrayRef = Arc::new(StringArray::from_iter_values(scans.iter().map(|_| "data_files")));
        let columns = vec![about, Arc::new(StringArray::from(scans)) as ArrayRef];
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns)?;
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, plan.chain(stream::iter([Ok(batch)])))))
    }

    fn catalogs(&self) -> Option<&Catalogs> {
        let catalogs: &dyn CatalogProviderList = &**self.state.catalog_list();
        catalogs.downcast_ref::<Catalogs>()
    }

    /// Makes the rows hold what they are read from: the plan knows data files by their paths only, and a file that no
    /// view holds may be removed.
    fn pin(&self, stream: SendableRecordBatchStream) -> SendableRecordBatchStream {
        let views = Arc::clone(self.state.catalog_list());
        let pinned = stream.schema();
        Box::pin(RecordBatchStreamAdapter::new(pinned, stream.inspect(move |_| _ = &views)))
    }

    /// Returns the tables that the statement names. A name of its own, such as that of a common table expression in another
    /// branch, may be among them.
    fn tables_named(&self, statement: &Statement) -> Result<Vec<ResolvedTableReference>> {
        let references = self.state.resolve_table_references(statement).map_err(error::from_datafusion)?;
        let resolve = |reference: TableReference| reference.resolve(session::CATALOG, &self.database);
        Ok(references.into_iter().map(resolve).collect())
    }

    fn schema(&self, table: &ResolvedTableReference) -> Option<Arc<TableSchema>> {
        (*table.catalog == *session::CATALOG).then(|| self.tables.schema(&table.schema, &table.table))?
    }
}

/// Returns the error that says which table is missing, if that is what `error` is about.
fn not_found(error: &DataFusionError, missing: &[ResolvedTableReference]) -> Option<Error> {
    let DataFusionError::Plan(message) = error.find_root() else { return None };
    let table = missing.iter().find(|table| *message == format!("table '{table}' not found"))?;
    let database = match &*table.catalog {
        session::CATALOG => table.schema.to_string(),
        other => format!("{other}.{}", table.schema),
    };
    Some(Error::TableNotFound { database, table: table.table.to_string() })
}

fn one_batch(batch: RecordBatch) -> SendableRecordBatchStream {
    Box::pin(RecordBatchStreamAdapter::new(batch.schema(), stream::iter([Ok(batch)])))
}
