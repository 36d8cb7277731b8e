//! Planning: from a statement to what runs, in order: its cost, its logical plan, whether that is
//! allowed, its physical plan.

use std::{mem, sync::Arc};

use arrow::{
    array::{ArrayRef, AsArray, RecordBatch, StringArray},
    datatypes::Schema,
};
use datafusion::{
    catalog::CatalogProviderList,
    common::{DataFusionError, ResolvedTableReference, TableReference, config::ConfigNonZeroUsize},
    execution::{SendableRecordBatchStream, TaskContext, runtime_env::RuntimeEnv, session_state::SessionState},
    logical_expr::{Explain, LogicalPlan, PlanType, ToStringifiedPlan},
    physical_plan::{ExecutionPlan, execute_stream, stream::RecordBatchStreamAdapter},
    sql::{parser::Statement as Parsed, sqlparser::ast::ObjectName},
};
use futures::{StreamExt, executor, stream};

use super::{
    Description, PinnedTables, PlanningPin, QueryTables, ScannedFiles,
    account::Account,
    catalog::Catalogs,
    compat, constants,
    coop::{self, Over},
    cost::{self, Widths},
    deep, error, functions, growth, guard, latest, parameters,
    past::{self, Moment, TablesInTime},
    planning::{self, Threads},
    scale, scoped, session, show, sized,
    statement::{self, ReadRequest, Statement, refuse},
    unplanned::{self, FunctionKind},
    wide_lists, wide_rows, window_memory, windows, written_out,
};
#[cfg(feature = "distributed")]
use super::{account::Accounts, distributed};
use crate::{Error, PastMoment, Result, model::TableSchema};

/// What DataFusion says of a `SELECT` that gives two of its columns one name.
const SAME_NAMES: &str = "require unique expression names";

/// What it says where one of the two is a table's column.
const SAME_AS_COLUMN: &str = "which would be ambiguous";

/// What it says where two columns below a `SELECT` have one name, since names leave casts out.
const SAME_BUT_CAST: &str = "duplicate unqualified field name";

/// Columns that a table is taken to have which is not one of ours, such as one of the information
/// schema.
const OTHER_WIDTH: usize = 32;

/// Makes running plans of statements.
#[derive(Debug)]
pub(super) struct StatementPlanner {
    tables: Arc<dyn QueryTables>,
    base: SessionState,
    /// What is remembered of data files.
    latest: Arc<latest::NewestRowsCache>,
    /// What all queries share.
    memory_bytes: usize,
    /// Most bytes that one function may make for one batch.
    limit_bytes: usize,
    threads: Threads,
    /// The nodes that queries are spread over.
    #[cfg(feature = "distributed")]
    cluster: std::sync::OnceLock<Arc<distributed::Cluster>>,
}

impl StatementPlanner {
    pub(super) fn new(tables: Arc<dyn QueryTables>, base: SessionState, memory_bytes: usize) -> Self {
        Self {
            tables,
            base,
            latest: Arc::new(latest::NewestRowsCache::new(scale::latest_bytes(memory_bytes))),
            memory_bytes,
            limit_bytes: functions::limit(memory_bytes),
            threads: Threads::new(),
            #[cfg(feature = "distributed")]
            cluster: std::sync::OnceLock::new(),
        }
    }

    /// Spreads queries over the nodes of `cluster` from now on.
    #[cfg(feature = "distributed")]
    pub(super) fn join(
        &self,
        nodes: Arc<dyn distributed::QueryCluster>,
        accounts: &Arc<Accounts>,
        timeout: std::time::Duration,
    ) -> Result<()> {
        let cluster = distributed::Cluster::new(nodes, self.worker(accounts, timeout))?;
        // A second one does not count.
        let _ = self.cluster.set(Arc::new(cluster));
        Ok(())
    }

    #[cfg(feature = "distributed")]
    pub(super) fn cluster_stats(&self) -> Option<distributed::ClusterStats> {
        self.cluster.get().map(|cluster| cluster.stats())
    }

    /// Returns what executes parts of other nodes' queries.
    #[cfg(feature = "distributed")]
    pub(super) fn worker(&self, accounts: &Arc<Accounts>, timeout: std::time::Duration) -> distributed::QueryWorker {
        distributed::worker(&self.base, accounts, self.memory_bytes, timeout)
    }

    /// Returns how many statements are planned now, and how many of them no caller waits for any
    /// more.
    pub(super) fn threads(&self) -> (usize, usize) {
        self.threads.counts()
    }

    /// Returns the stream of a statement's answer, and how many data files it reads.
    pub(super) async fn plan(
        &self,
        database: &str,
        statement: &Statement,
        values: Option<&RecordBatch>,
        account: &Account,
    ) -> Result<(SendableRecordBatchStream, ScannedFiles)> {
        let mut planning = self.planning(database, statement, values, account);
        self.threads.run(move || planning.run()).await
    }

    /// Plans as [`plan`](Self::plan), over other tables than all other statements.
    pub(super) async fn plan_over(
        &self,
        tables: Arc<dyn QueryTables>,
        statement: &Statement,
        values: &RecordBatch,
        account: &Account,
    ) -> Result<(SendableRecordBatchStream, ScannedFiles)> {
        let mut planning = self.planning("", statement, Some(values), account);
        planning.all_tables = Arc::clone(&tables);
        planning.see(tables);
        self.threads.run(move || planning.run()).await
    }

    /// Returns what a statement's answer will look like.
    pub(super) async fn describe(
        &self,
        database: &str,
        statement: &Statement,
        values: Option<&RecordBatch>,
        account: &Account,
    ) -> Result<Description> {
        let mut planning = self.planning(database, statement, values, account);
        self.threads.run(move || planning.describe()).await
    }

    fn planning(
        &self,
        database: &str,
        statement: &Statement,
        values: Option<&RecordBatch>,
        account: &Account,
    ) -> StatementPlanning {
        let tables = scoped::of(statement, &self.tables);
        StatementPlanning {
            runtime: session::runtime_of(&self.base, account),
            over: account.over().clone(),
            all_tables: Arc::clone(&self.tables),
            state: session::query_state(
                &self.base,
                Arc::clone(&tables),
                Arc::clone(&self.latest),
                (database, statement.local_tables()),
                account.over(),
            ),
            tables,
            latest: Arc::clone(&self.latest),
            database: database.to_owned(),
            statement: statement.clone(),
            memory_bytes: self.memory_bytes,
            values: values.cloned(),
            limit_bytes: self.limit_bytes,
            #[cfg(feature = "distributed")]
            cluster: self.cluster.get().map(|cluster| (Arc::clone(cluster), account.deadline())),
        }
    }
}

/// One statement on its way to a plan.
struct StatementPlanning {
    /// Those that there are, and those that the statement sees.
    all_tables: Arc<dyn QueryTables>,
    tables: Arc<dyn QueryTables>,
    /// Whether no caller waits for the answer any more.
    over: Over,
    /// With the query's own pool.
    runtime: Arc<RuntimeEnv>,
    state: SessionState,
    latest: Arc<latest::NewestRowsCache>,
    database: String,
    statement: Statement,
    memory_bytes: usize,
    /// Values for the statement's placeholders, if they are known.
    values: Option<RecordBatch>,
    limit_bytes: usize,
    /// The nodes that it is spread over, and when its time is over.
    #[cfg(feature = "distributed")]
    cluster: Option<(Arc<distributed::Cluster>, tokio::time::Instant)>,
}

/// A statement that may be run: what it says is known already, or has to be computed.
enum Planned {
    Known(RecordBatch),
    Logical(LogicalPlan),
}

impl StatementPlanning {
    fn run(&mut self) -> Result<(SendableRecordBatchStream, ScannedFiles)> {
        let _pin = self.pin_tables()?;
        match self.planned()? {
            Planned::Known(batch) => Ok((one_batch(batch), ScannedFiles::default())),
            Planned::Logical(plan) => {
                let explains = matches!(plan, LogicalPlan::Explain(_) | LogicalPlan::Analyze(_));
                let physical = executor::block_on(self.physical(&self.bound(plan)?))?;
                // What a plan is made of is told of one node.
                let stream = if explains { self.executed(physical) } else { self.spread(physical) };
                let stream = stream.map_err(error::from_datafusion)?;
                let stream = if explains { self.with_scans(stream)? } else { stream };
                let files = self.catalogs().map(Catalogs::scanned_files).unwrap_or_default();
                Ok((self.pin(stream), files))
            }
        }
    }

    /// Returns the rows of a plan, which are computed by this node.
    fn executed(&self, plan: Arc<dyn ExecutionPlan>) -> Result<SendableRecordBatchStream, DataFusionError> {
        let context = TaskContext::from(&self.state).with_runtime(Arc::clone(&self.runtime));
        execute_stream(plan, Arc::new(context))
    }

    #[cfg(not(feature = "distributed"))]
    fn spread(&self, plan: Arc<dyn ExecutionPlan>) -> Result<SendableRecordBatchStream, DataFusionError> {
        self.executed(plan)
    }

    /// Returns the rows of a plan, parts of which are computed by the nodes of the cluster, if there
    /// is one.
    #[cfg(feature = "distributed")]
    fn spread(&self, plan: Arc<dyn ExecutionPlan>) -> Result<SendableRecordBatchStream, DataFusionError> {
        let Some((cluster, deadline)) = &self.cluster else { return self.executed(plan) };
        let spread = distributed::Spread {
            cluster: Arc::clone(cluster),
            state: self.state.clone(),
            context: TaskContext::from(&self.state).with_runtime(Arc::clone(&self.runtime)),
            deadline: *deadline,
            memory_bytes: self.statement.memory_limit_bytes(),
            limit_bytes: self.limit_bytes,
        };
        executor::block_on(spread.execute(plan))
    }

    /// Puts the tables in place as this statement sees them; what is returned keeps them so until
    /// all views are taken.
    fn pin_tables(&mut self) -> Result<Option<Box<dyn PlanningPin>>> {
        let Some(PinnedTables { tables, pin }) = self.all_tables.pinned()? else { return Ok(None) };
        self.see(scoped::of(&self.statement, &tables));
        Ok(Some(pin))
    }

    /// Has the statement find these tables from now on.
    fn see(&mut self, tables: Arc<dyn QueryTables>) {
        let local = self.statement.local_tables().of(&self.database);
        let catalogs = Catalogs::new(Arc::clone(&tables), Arc::clone(&self.latest), local);
        self.tables = tables;
        self.state.register_catalog_list(Arc::new(catalogs));
    }

    fn describe(&mut self) -> Result<Description> {
        let _pin = self.pin_tables()?;
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
        let known = match statement::request(&self.statement)? {
            ReadRequest::ShowSnapshots => show::snapshots(&self.tables.snapshots()?, self.statement.scope().is_none())?,
            ReadRequest::ShowDatabases => show::databases(&*self.tables)?,
            ReadRequest::ShowTables(asked) => {
                let asked = asked.map(|name| self.database_of(name));
                show::tables(&*self.tables, asked.as_deref(), &self.database)?
            }
            ReadRequest::ShowColumns(database, table) => {
                let database = database.map_or_else(|| self.database.clone(), |name| self.database_of(name));
                show::columns(&*self.tables, &database, &table)?
            }
            ReadRequest::ShowSeries(database, table) => {
                let database = database.map_or_else(|| self.database.clone(), |name| self.database_of(name));
                let sql = show::series(&*self.tables, &database, &table)?;
                return executor::block_on(self.logical(parsed(&sql)?)).map(Planned::Logical);
            }
            ReadRequest::Plan(statement) => return executor::block_on(self.query(*statement)).map(Planned::Logical),
        };
        self.values.as_ref().map_or(Ok(()), |values| parameters::check(&Schema::empty(), values))?;
        Ok(Planned::Known(known))
    }

    /// Returns the database that a name stands for.
    fn database_of(&self, name: String) -> String {
        let is_iox = name == compat::IOX && !self.tables.databases().contains(&name);
        if is_iox { self.database.clone() } else { name }
    }

    /// Plans what people write, who mean other engines or repeat themselves now and then.
    async fn query(&mut self, mut statement: Parsed) -> Result<LogicalPlan> {
        let tables = Arc::clone(&self.tables);
        let exists = |name: &str| tables.databases().iter().any(|database| database == name);
        compat::translate(&mut statement, &self.database, &exists)?;
        windows::write_out(&mut statement)?;
        let moments = past::take(&mut statement, &self.database)?;
        unplanned::check(&statement, &|name| self.function_kind(name))?;
        if !moments.is_empty() {
            self.go_back(moments).await?;
        }
        let (mut are_apart, mut casts_are_named) = (false, false);
        loop {
            match self.logical(statement.clone()).await {
                Err(Error::Sql { reason })
                    if !are_apart && [SAME_NAMES, SAME_AS_COLUMN].iter().any(|said| reason.contains(said)) =>
                {
                    are_apart = true;
                    compat::tell_apart(&mut statement)?;
                }
                // Of windows and groups it says so in other words, and their names are no different
                // after the above.
                Err(Error::Sql { reason })
                    if !casts_are_named && [SAME_BUT_CAST, SAME_NAMES].iter().any(|said| reason.contains(said)) =>
                {
                    casts_are_named = true;
                    compat::name_casts(&mut statement);
                }
                planned => return planned,
            }
        }
    }

    fn function_kind(&self, name: &str) -> Option<FunctionKind> {
        if self.state.scalar_functions().contains_key(name) || matches!(name, "unnest" | "unnest_outer") {
            return Some(FunctionKind::Scalar);
        }
        if let Some(function) = self.state.aggregate_functions().get(name) {
            return Some(functions::aggregate_kind(function));
        }
        self.state.window_functions().contains_key(name).then_some(FunctionKind::Window)
    }

    /// Returns the name that a function has itself, if this is another one.
    fn own_name(&self, called: &str) -> Option<String> {
        let own = match (self.state.scalar_functions().get(called), self.state.aggregate_functions().get(called)) {
            (Some(function), _) => function.name(),
            (None, Some(function)) => function.name(),
            (None, None) => self.state.window_functions().get(called)?.name(),
        };
        (own != called).then(|| own.to_owned())
    }

    /// Has tables be found as they were at each of some moments as well.
    async fn go_back(&mut self, moments: Vec<Moment>) -> Result<()> {
        let mut known = Vec::with_capacity(moments.len());
        for moment in moments {
            known.push(match moment {
                Moment::Snapshot(name) => PastMoment::Snapshot(name),
                Moment::Time(time) => {
                    let plan = self.guarded(parsed(&past::query_of(&time))?, Widths::default()).await?;
                    let plan = self.state.optimize(&plan).map_err(error::from_datafusion)?;
                    PastMoment::Time(past::time_of(&plan, &time)?)
                }
            });
        }
        self.see(Arc::new(TablesInTime::new(Arc::clone(&self.tables), &known)?));
        Ok(())
    }

    async fn logical(&mut self, statement: Parsed) -> Result<LogicalPlan> {
        let widths = cost::check(&statement, &|name| self.width(name))?;
        let Parsed::Explain(mut explain) = statement else { return self.guarded(statement, widths).await };
        if matches!(*explain.statement, Parsed::Explain(_)) {
            return refuse("EXPLAIN of EXPLAIN is not supported");
        }
        // A plan is written as text only once it is allowed: what is asked for is planned first,
        // and put in the place of another.
        let explained = mem::replace(&mut *explain.statement, parsed("VALUES (1)")?);
        let explained = Arc::new(self.guarded(explained, widths).await?);
        let plan = self.state.statement_to_plan(Parsed::Explain(explain)).await.map_err(error::from_datafusion)?;
        match plan {
            LogicalPlan::Explain(mut explain) => {
                explain.stringified_plans = vec![explained.to_stringified(PlanType::InitialLogicalPlan)];
                explain.plan = explained;
                Ok(LogicalPlan::Explain(explain))
            }
            LogicalPlan::Analyze(mut analyze) => {
                analyze.input = explained;
                Ok(LogicalPlan::Analyze(analyze))
            }
            _ => Err(Error::internal("EXPLAIN explains nothing")),
        }
    }

    /// Plans a statement, if all that is in it is allowed.
    async fn guarded(&mut self, mut statement: Parsed, widths: Widths) -> Result<LogicalPlan> {
        growth::check(&statement)?;
        growth::call_by_own_names(&mut statement, &|name| self.own_name(name));
        let named = self.tables_named(&statement)?;
        let missing = named.into_iter().filter(|table| self.schema(table).is_none()).collect::<Vec<_>>();
        let plan = match self.wide(&statement, widths).await? {
            Some(plan) => plan,
            None => match self.state.statement_to_plan(statement).await {
                Ok(plan) => plan,
                Err(error) => return Err(not_found(&error, &missing).unwrap_or_else(|| error::from_datafusion(error))),
            },
        };
        let widest = guard::check(&plan)?;
        written_out::check(&plan).map_err(error::from_datafusion)?;
        let options = self.state.config_mut().options_mut();
        let rows = ConfigNonZeroUsize::try_new(scale::batch_rows(self.memory_bytes, widest));
        options.execution.batch_size = rows.map_err(error::from_datafusion)?;
        Ok(plan)
    }

    /// Plans a statement that has wide lists past the step that takes long of them; `None` if there are none, or it has to be
    /// planned as it is.
    async fn wide(&self, statement: &Parsed, widths: Widths) -> Result<Option<LogicalPlan>> {
        if widths.widest < wide_lists::MIN_WIDTH {
            return Ok(None);
        }
        if let Some(marked) = wide_lists::mark(statement, &|name| self.function_kind(name)) {
            if !marked.is_whole {
                widths.check_pairs()?;
            }
            match self.state.statement_to_plan(marked.statement).await {
                Ok(plan) => {
                    if let Some(plan) = wide_lists::unmark(plan).map_err(error::from_datafusion)? {
                        return Ok(Some(plan));
                    }
                }
                Err(error) if widths.check_pairs().is_err() => return Err(error::from_datafusion(error)),
                // The statement as it is tells it in its own words.
                Err(_) => {}
            }
        }
        widths.check_pairs()?;
        planning::check().map_err(error::from_datafusion)?;
        Ok(None)
    }

    /// Returns how many columns a table has that a statement names.
    fn width(&self, name: &ObjectName) -> usize {
        let mut parts = name.0.iter().rev().map(|part| part.as_ident().map(|ident| ident.value.as_str()));
        let table = parts.next().flatten().unwrap_or_default();
        let database = parts.next().flatten().unwrap_or(&self.database);
        // With the time.
        self.tables.schema(database, table).map_or(OTHER_WIDTH, |schema| schema.columns.len() + 1)
    }

    /// Puts values in the place of placeholders; each placeholder needs one.
    fn bound(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let none = RecordBatch::new_empty(Arc::new(Schema::empty()));
        parameters::bind(plan, self.values.as_ref().unwrap_or(&none))
    }

    async fn physical(&self, plan: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
        let optimized = match plan {
            // Otherwise each rule's plan would be written as text, for nothing.
            LogicalPlan::Explain(explain) if !explain.verbose => LogicalPlan::Explain(Explain {
                plan: Arc::new(self.state.optimize(&explain.plan).map_err(error::from_datafusion)?),
                stringified_plans: Vec::new(),
                logical_optimization_succeeded: true,
                ..explain.clone()
            }),
            other => self.state.optimize(other).map_err(error::from_datafusion)?,
        };
        guard::check_casts(&optimized)?;
        constants::check(&optimized, self.limit_bytes)?;
        let physical = self.state.query_planner().create_physical_plan(&optimized, &self.state).await;
        let physical = physical.and_then(|plan| coop::wrap(plan, &self.over));
        let physical = physical.and_then(|plan| window_memory::wrap(plan, &self.over));
        let physical = physical.and_then(|plan| sized::wrap(plan, self.limit_bytes));
        let physical = physical.and_then(|plan| wide_rows::wrap(plan, self.limit_bytes)).and_then(deep::wrap);
        physical.map_err(error::from_datafusion)
    }

    /// Adds to a plan what became of data files; plans have a column for what a row is about, and
    /// one for the text.
    fn with_scans(&self, plan: SendableRecordBatchStream) -> Result<SendableRecordBatchStream> {
        let scans = self.catalogs().map(Catalogs::scans).unwrap_or_default();
        let schema = plan.schema();
        if scans.is_empty() || schema.fields().len() != 2 {
            return Ok(plan);
        }
        let about: ArrayRef = Arc::new(StringArray::from_iter_values(scans.iter().map(|_| "data_files")));
        let columns = vec![about, Arc::new(StringArray::from(scans)) as ArrayRef];
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns)?;
        let plan = plan.map(|batch| shown_plan(&batch?)).chain(stream::iter([Ok(batch)]));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, plan)))
    }

    fn catalogs(&self) -> Option<&Catalogs> {
        let catalogs: &dyn CatalogProviderList = &**self.state.catalog_list();
        catalogs.downcast_ref::<Catalogs>()
    }

    /// Makes the rows hold what they are read from: the plan knows data files by their paths only,
    /// and a file that no view holds may be removed.
    fn pin(&self, stream: SendableRecordBatchStream) -> SendableRecordBatchStream {
        let views = Arc::clone(self.state.catalog_list());
        let pinned = stream.schema();
        Box::pin(RecordBatchStreamAdapter::new(pinned, stream.inspect(move |_| _ = &views)))
    }

    /// Returns the tables that the statement names. A name of its own, such as that of a common
    /// table expression in another branch, may be among them.
    fn tables_named(&self, statement: &Parsed) -> Result<Vec<ResolvedTableReference>> {
        let references = self.state.resolve_table_references(statement).map_err(error::from_datafusion)?;
        let resolve = |reference: TableReference| reference.resolve(session::CATALOG, &self.database);
        Ok(references.into_iter().map(resolve).collect())
    }

    fn schema(&self, table: &ResolvedTableReference) -> Option<Arc<TableSchema>> {
        (*table.catalog == *session::CATALOG).then(|| self.tables.schema(&table.schema, &table.table))?
    }
}

/// Parses a query of ours.
fn parsed(sql: &str) -> Result<Parsed> {
    match statement::request(&Statement::parse(sql)?)? {
        ReadRequest::Plan(parsed) => Ok(*parsed),
        _ => Err(Error::internal("a query of ours is none")),
    }
}

/// Returns the error that says which table is missing, if that is what `error` is about.
fn not_found(error: &DataFusionError, missing: &[ResolvedTableReference]) -> Option<Error> {
    let DataFusionError::Plan(message) = error.find_root() else { return None };
    let table = missing.iter().find(|table| *message == format!("table '{table}' not found"))?;
    let schema = past::shown(&table.schema);
    let database = match &*table.catalog {
        session::CATALOG => schema.to_owned(),
        other => format!("{other}.{schema}"),
    };
    Some(Error::TableNotFound { database, table: table.table.to_string() })
}

/// Returns rows of a plan with names of databases as people know them.
fn shown_plan(plan: &RecordBatch) -> Result<RecordBatch, DataFusionError> {
    let texts = plan.column(1).as_string_opt::<i32>();
    let texts = texts.ok_or_else(|| DataFusionError::Internal("a plan is no text".into()))?;
    let shown = StringArray::from_iter(texts.iter().map(|text| text.map(past::shown_in)));
    Ok(RecordBatch::try_new(plan.schema(), vec![Arc::clone(plan.column(0)), Arc::new(shown)])?)
}

fn one_batch(batch: RecordBatch) -> SendableRecordBatchStream {
    Box::pin(RecordBatchStreamAdapter::new(batch.schema(), stream::iter([Ok(batch)])))
}
