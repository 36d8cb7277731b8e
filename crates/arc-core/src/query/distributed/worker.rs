//! What executes the parts of other nodes' queries: within this node's own memory and time.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use datafusion::{
    common::{DataFusionError, Result, exec_datafusion_err, exec_err, internal_err, tree_node::TreeNodeRecursion},
    execution::{SendableRecordBatchStream, SessionState, TaskContext},
    logical_expr::ScalarUDF,
    physical_expr::PhysicalExpr,
    physical_optimizer::PhysicalOptimizerRule,
    physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, stream::RecordBatchStreamAdapter},
};
use datafusion_distributed::{
    DistributedConfig, DistributedExt, LocalWorkerContext, Worker, WorkerPlanRewriteEvent,
    WorkerPlanRewriteEventResponse, WorkerQueryContext,
};
use futures::{StreamExt, future, stream};
use http::HeaderMap;
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::{
    super::{
        account::{Account, Accounts},
        coop, deep, functions,
        runs::GroupRuns,
        session, sized,
        times::TimesCache,
        wide_rows, window_memory,
    },
    codec::ScanCodec,
};

/// How many milliseconds are left of the time of a query.
pub(super) const TIME_HEADER: &str = "x-arc-query-time-ms";
/// Most bytes that a query may hold.
pub(super) const MEMORY_HEADER: &str = "x-arc-query-memory-bytes";

/// Executes parts of the queries of other nodes.
///
/// Whoever may call it may read every data file that this node may read: the calls have to be
/// guarded by what calls them.
#[derive(Clone)]
pub struct QueryWorker {
    worker: Worker,
    tasks: Arc<AtomicUsize>,
}

impl fmt::Debug for QueryWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryWorker").field("tasks", &self.tasks()).finish_non_exhaustive()
    }
}

impl QueryWorker {
    /// Returns the service that other nodes call, by gRPC.
    #[must_use]
    pub fn routes(&self) -> tonic::service::Routes {
        tonic::service::Routes::new(self.worker.clone().into_worker_server())
    }

    /// Returns what has the library execute here what is for `url`.
    pub(super) fn local(&self, url: Url) -> LocalWorkerContext {
        self.worker.to_local_worker_context(url)
    }

    /// Returns how many streams of rows of other nodes' queries it has at this moment.
    #[must_use]
    pub fn tasks(&self) -> usize {
        self.tasks.load(Ordering::Relaxed)
    }
}

/// Returns the worker of a node whose own queries start from `base`.
pub(in crate::query) fn worker(
    base: &SessionState,
    accounts: &Arc<Accounts>,
    memory_bytes: usize,
    timeout: Duration,
) -> QueryWorker {
    let tasks: Arc<AtomicUsize> = Arc::default();
    let sessions = Sessions {
        tasks: Arc::clone(&tasks),
        base: base.clone(),
        accounts: Arc::clone(accounts),
        limit_bytes: functions::limit(memory_bytes),
        timeout,
    };
    let sessions = move |context| future::ready(sessions.build(context));
    let worker = Worker::from_session_builder(sessions).with_version(env!("CARGO_PKG_VERSION"));
    QueryWorker { worker, tasks }
}

/// Makes the session of each part: functions and settings as for this node's own queries.
struct Sessions {
    base: SessionState,
    accounts: Arc<Accounts>,
    limit_bytes: usize,
    timeout: Duration,
    /// Counts what there is at this moment.
    tasks: Arc<AtomicUsize>,
}

/// A stream of rows of another node's query, until dropped. The plan that it is of is no measure of
/// work: the library keeps it until the next call.
#[derive(Debug)]
struct Task(Arc<AtomicUsize>);

impl Task {
    fn begin(tasks: &Arc<AtomicUsize>) -> Self {
        tasks.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(tasks))
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Sessions {
    fn build(&self, context: WorkerQueryContext) -> Result<SessionState> {
        let WorkerQueryContext { mut builder, headers } = context;
        if self.accounts.is_full() {
            return Err(DataFusionError::ResourcesExhausted("a worker has hardly any memory left".to_owned()));
        }
        let left = number(&headers, TIME_HEADER)?.map_or(self.timeout, Duration::from_millis);
        let deadline = Instant::now() + left.min(self.timeout);
        let most =
            number(&headers, MEMORY_HEADER)?.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
        let account = self.accounts.open(deadline, most);

        let mut config = builder.config().take().unwrap_or_default();
        let distributed = DistributedConfig::from_config_options(config.options())?.clone();
        let batch_rows = distributed.shuffle_batch_size;
        *config.options_mut() = self.base.config_options().as_ref().clone();
        config.set_distributed_option_extension(distributed);
        config.options_mut().extensions.insert(account.over().clone());
        if batch_rows > 0 {
            config = config.with_batch_size(batch_rows);
        }
        if let Some(times) = self.base.config().get_extension::<TimesCache>() {
            config.set_extension(times);
        }
        config.set_distributed_user_codec(ScanCodec);
        let runtime = session::runtime_of(&self.base, &account);
        let (limit_bytes, tasks, account) = (self.limit_bytes, Arc::clone(&self.tasks), Arc::new(account));
        config.set_distributed_worker_plan_rewrite_handler(move |event: WorkerPlanRewriteEvent<'_>| {
            let plan = GroupRuns.optimize(event.plan, event.session_config.options())?;
            let over = account.over();
            let plan = window_memory::wrap(coop::wrap(plan, over)?, over)?;
            let plan = deep::wrap(wide_rows::wrap(sized::wrap(plan, limit_bytes)?, limit_bytes)?)?;
            Ok(WorkerPlanRewriteEventResponse::new(Arc::new(TimeLimitExec {
                input: plan,
                account: Arc::clone(&account),
                tasks: Arc::clone(&tasks),
            })))
        });
        let state = builder
            .with_config(config)
            .with_runtime_env(runtime)
            .with_scalar_functions(scalar_functions(&self.base, self.limit_bytes))
            .with_aggregate_functions(self.base.aggregate_functions().values().map(Arc::clone).collect())
            .with_window_functions(self.base.window_functions().values().map(Arc::clone).collect());
        Ok(state.build())
    }
}

/// Returns the functions that a part of a plan may have: those of statements, and those of rules.
pub(super) fn scalar_functions(base: &SessionState, limit_bytes: usize) -> Vec<Arc<ScalarUDF>> {
    base.scalar_functions().values().map(Arc::clone).chain(functions::unnamed(limit_bytes)).collect()
}

/// Returns the number that a header has.
fn number(headers: &HeaderMap, name: &str) -> Result<Option<u64>> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    number.map(Some).ok_or_else(|| exec_datafusion_err!("the header {name} has to be a number"))
}

/// Ends with the time of its query, whether or not the node that asked still does.
#[derive(Debug)]
struct TimeLimitExec {
    input: Arc<dyn ExecutionPlan>,
    /// Without it the query would have ended, for those that ask.
    account: Arc<Account>,
    /// Counts the streams of rows that are read from it.
    tasks: Arc<AtomicUsize>,
}

impl DisplayAs for TimeLimitExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TimeLimitExec")
    }
}

impl ExecutionPlan for TimeLimitExec {
    fn name(&self) -> &'static str {
        "TimeLimitExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => {
                Ok(Arc::new(Self { input, account: Arc::clone(&self.account), tasks: Arc::clone(&self.tasks) }))
            }
            _ => internal_err!("TimeLimitExec has one input"),
        }
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (rows, account) = (self.input.execute(partition, context)?, Arc::clone(&self.account));
        let begun = (rows, Task::begin(&self.tasks), account);
        let rows = stream::try_unfold(begun, move |(mut rows, task, account)| async move {
            match timeout_at(account.deadline(), rows.next()).await {
                Ok(batch) => Ok(batch.transpose()?.map(|batch| (batch, (rows, task, account)))),
                Err(_) => exec_err!("the time of the query is over"),
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}
