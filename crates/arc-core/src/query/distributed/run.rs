//! The rows of a plan whose parts are executed by workers, begun again where a worker fails before
//! the first of them.

use std::{collections::HashMap, sync::Arc, thread};

use arrow::array::RecordBatch;
use datafusion::{
    common::{
        Result, exec_datafusion_err, internal_datafusion_err,
        tree_node::{TreeNode, TreeNodeRecursion},
    },
    execution::{SendableRecordBatchStream, TaskContext, session_state::SessionState},
    physical_plan::{
        ExecutionPlan, ExecutionPlanProperties, coalesce_partitions::CoalescePartitionsExec, execute_stream,
        execution_plan::reset_plan_states, stream::RecordBatchStreamAdapter,
    },
};
use datafusion_distributed::{DistributedExt, DistributedLeafExec, RouteTasksEvent, RouteTasksEventResponse};
use futures::{StreamExt, executor, stream};
use http::{HeaderMap, HeaderValue};
use tokio::{runtime::Handle, sync::oneshot, time::Instant};
use url::Url;

use super::{
    super::planning::STACK_BYTES,
    channel::{Channels, Failed},
    cluster::{Cluster, Counted},
    codec::ScanCodec,
    given,
    leaf::SentScan,
    parts::Cutting,
    worker::{MEMORY_HEADER, TIME_HEADER, scalar_functions},
};

/// How one query is spread over the nodes of a cluster.
pub(in crate::query) struct Spread {
    pub(in crate::query) cluster: Arc<Cluster>,
    /// The session that the plan was made in.
    pub(in crate::query) state: SessionState,
    /// What the plan is executed in.
    pub(in crate::query) context: TaskContext,
    /// When its time is over.
    pub(in crate::query) deadline: Instant,
    /// Most bytes that it may hold on each node.
    pub(in crate::query) memory_bytes: usize,
    /// Most bytes that one function may make for one batch.
    pub(in crate::query) limit_bytes: usize,
}

impl Spread {
    /// Returns the rows of `plan`.
    pub(in crate::query) async fn execute(self, plan: Arc<dyn ExecutionPlan>) -> Result<SendableRecordBatchStream> {
        let workers = self.cluster.workers();
        if workers.len() < 2 {
            return execute_stream(plan, Arc::new(self.context));
        }
        let failed = Arc::new(Failed::default());
        let Some(first) = self.begin(&plan, &workers, &failed).await? else {
            return execute_stream(plan, Arc::new(self.context));
        };
        self.cluster.count(Counted::Divided);
        let schema = first.schema();
        let running = Attempt { spread: Arc::new(self), plan, failed, rows: first, has_given: false };
        let rows = stream::unfold(Some(running), |running| async move { running?.next().await });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }

    /// Returns the rows of a plan with its parts at `workers`, if any pays to be sent.
    async fn begin(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        workers: &[Url],
        failed: &Arc<Failed>,
    ) -> Result<Option<SendableRecordBatchStream>> {
        let context = self.workers_context();
        let mut cutting = Cutting {
            workers,
            min_bytes: self.cluster.nodes().min_scan_bytes(),
            partitions: self.state.config().target_partitions(),
            context: &context,
            cut: 0,
            kept: 0,
        };
        let cut = match cutting.cut(plan) {
            Ok(cut) if cutting.cut > 0 && cut.schema() == plan.schema() => cut,
            Ok(_) => {
                if cutting.cut > 0 || cutting.kept > 0 {
                    self.cluster.count(Counted::Kept);
                }
                return Ok(None);
            }
            Err(error) => {
                tracing::warn!(%error, "a query runs on this node alone, as its plan could not be divided");
                self.cluster.count(Counted::Kept);
                return Ok(None);
            }
        };
        let one: Arc<dyn ExecutionPlan> = match cut.output_partitioning().partition_count() {
            1 => cut,
            _ => Arc::new(CoalescePartitionsExec::new(cut)),
        };
        let mut state = self.state.clone();
        self.configure(&mut state, failed)?;
        let executable = given::executable(one, &state).await?;
        let context = TaskContext::from(&state).with_runtime(self.context.runtime_env());
        execute_stream(executable, Arc::new(context)).map(Some)
    }

    /// Returns a context with the functions that workers have, in which the bytes of operators are
    /// read to compare them.
    fn workers_context(&self) -> TaskContext {
        let mut config = self.state.config().clone();
        config.set_distributed_user_codec(ScanCodec);
        let functions = scalar_functions(&self.state, self.limit_bytes);
        TaskContext::new(
            None,
            self.state.session_id().to_owned(),
            config,
            functions.into_iter().map(|function| (function.name().to_owned(), function)).collect(),
            HashMap::new(),
            self.state.aggregate_functions().clone(),
            self.state.window_functions().clone(),
            self.context.runtime_env(),
        )
    }

    async fn again(&self, plan: Arc<dyn ExecutionPlan>, failed: &Arc<Failed>) -> Result<SendableRecordBatchStream> {
        let plan = reset_plan_states(plan)?;
        let workers = self.cluster.workers();
        if workers.len() > 1
            && let Some(rows) = self.begin(&plan, &workers, failed).await?
        {
            return Ok(rows);
        }
        let context = TaskContext::from(&self.state).with_runtime(self.context.runtime_env());
        execute_stream(plan, Arc::new(context))
    }

    /// Sets what the library needs to know of this query.
    fn configure(&self, state: &mut SessionState, failed: &Arc<Failed>) -> Result<()> {
        let batch_rows = state.config().batch_size();
        let config = state.config_mut();
        config.set_distributed_channel_resolver(Channels::new(&self.cluster));
        config.set_distributed_user_codec(ScanCodec);
        config.set_distributed_route_tasks_handler(routed);
        config.set_distributed_local_worker_context(self.cluster.own_share());
        config.set_distributed_metrics_collection(false)?;
        config.set_distributed_shuffle_batch_size(batch_rows)?;
        config.set_distributed_passthrough_headers(self.headers()?)?;
        config.set_extension(Arc::clone(failed));
        Ok(())
    }

    /// Returns what each worker is told beside the plan.
    fn headers(&self) -> Result<HeaderMap> {
        let value = |text: String| HeaderValue::try_from(text).map_err(|e| internal_datafusion_err!("{e}"));
        let left = self.deadline.saturating_duration_since(Instant::now());
        let mut headers = self.cluster.nodes().headers();
        headers.insert(TIME_HEADER, value(left.as_millis().to_string())?);
        headers.insert(MEMORY_HEADER, value(self.memory_bytes.to_string())?);
        Ok(headers)
    }
}

/// Returns the workers of the tasks of a part, which its scan has in their order.
fn routed(event: RouteTasksEvent<'_>) -> Option<Result<RouteTasksEventResponse>> {
    let mut found = None;
    let walked = event.plan.apply(|plan| {
        if let Some(leaf) = plan.downcast_ref::<DistributedLeafExec>()
            && let Some(scan) = leaf.original().downcast_ref::<SentScan>()
        {
            found = Some(scan.workers().to_vec());
        }
        Ok(TreeNodeRecursion::Continue)
    });
    let workers = found.ok_or_else(|| internal_datafusion_err!("a part of a plan that is for no worker"));
    Some(walked.and(workers).map(RouteTasksEventResponse::new))
}

/// A query while its rows are read.
struct Attempt {
    spread: Arc<Spread>,
    plan: Arc<dyn ExecutionPlan>,
    failed: Arc<Failed>,
    rows: SendableRecordBatchStream,
    has_given: bool,
}

impl Attempt {
    async fn next(mut self) -> Option<(Result<RecordBatch>, Option<Self>)> {
        loop {
            match self.rows.next().await? {
                Ok(batch) => {
                    self.has_given |= batch.num_rows() > 0;
                    return Some((Ok(batch), Some(self)));
                }
                Err(_) if !self.has_given && self.failed.take() => match self.restart().await {
                    Ok(rows) => self.rows = rows,
                    Err(error) => return Some((Err(error), None)),
                },
                Err(error) => return Some((Err(error), None)),
            }
        }
    }

    /// Begins again without the workers that failed, on this node alone if no other is left. No row
    /// was given yet, so none comes twice.
    fn restart(&self) -> impl Future<Output = Result<SendableRecordBatchStream>> + Send + use<> {
        let (spread, plan, failed) = (Arc::clone(&self.spread), Arc::clone(&self.plan), Arc::clone(&self.failed));
        restarted(spread, plan, failed)
    }
}

async fn restarted(
    spread: Arc<Spread>,
    plan: Arc<dyn ExecutionPlan>,
    failed: Arc<Failed>,
) -> Result<SendableRecordBatchStream> {
    spread.cluster.count(Counted::Retried);
    let (sender, receiver) = oneshot::channel();
    let runtime = Handle::current();
    let work = move || {
        let _runtime = runtime.enter();
        // The caller may have stopped waiting.
        let _ = sender.send(executor::block_on(spread.again(plan, &failed)));
    };
    // A plan may be as deep as a statement is.
    let thread = thread::Builder::new().name("arc-plan".to_owned()).stack_size(STACK_BYTES);
    thread.spawn(work).map_err(|e| exec_datafusion_err!("no thread for planning a query: {e}"))?;
    receiver.await.map_err(|e| internal_datafusion_err!("{e}"))?
}
