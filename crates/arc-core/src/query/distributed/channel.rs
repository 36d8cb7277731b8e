//! The ways to workers, which notice what fails on them.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use arrow::array::RecordBatch;
use async_trait::async_trait;
use datafusion::{
    common::{DataFusionError, Result},
    execution::TaskContext,
    physical_plan::metrics::ExecutionPlanMetricsSet,
};
use datafusion_distributed::{
    ChannelResolver, CoordinatorToWorkerMsg, ExecuteTaskRequest, GetWorkerInfoRequest, GetWorkerInfoResponse,
    SetPlanRequest, WorkerChannel, WorkerToCoordinatorMsg, grpc,
};
use futures::{StreamExt, stream::BoxStream};
use http::HeaderMap;
use url::Url;

use super::{
    super::error::{busy, external},
    cluster::Cluster,
};

/// Whether a worker failed during a query.
#[derive(Debug, Default)]
pub(super) struct Failed(AtomicBool);

impl Failed {
    /// Returns whether one failed since this was asked last.
    pub(super) fn take(&self) -> bool {
        self.0.swap(false, Ordering::AcqRel)
    }
}

/// The ways of one query.
#[derive(Debug)]
pub(super) struct Channels(Arc<Cluster>);

impl Channels {
    pub(super) fn new(cluster: &Arc<Cluster>) -> Self {
        Self(Arc::clone(cluster))
    }
}

#[async_trait]
impl ChannelResolver for Channels {
    async fn get_worker_client_for_url(&self, url: &Url) -> Result<Box<dyn WorkerChannel>> {
        let channel = grpc::BoxCloneSyncChannel::new(self.0.nodes().channel(url));
        let watch = Watch { cluster: Arc::clone(&self.0), worker: url.clone(), failed: None };
        Ok(Box::new(WatchedChannel { channel: grpc::create_worker_client(channel), watch }))
    }
}

/// Notices where a worker failed, which is not where it said what is wrong with a query.
#[derive(Clone)]
struct Watch {
    cluster: Arc<Cluster>,
    worker: Url,
    failed: Option<Arc<Failed>>,
}

impl Watch {
    fn of(&self, context: &TaskContext) -> Self {
        Self { failed: context.session_config().get_extension::<Failed>(), ..self.clone() }
    }

    fn noticed<T>(&self, done: Result<T>) -> Result<T> {
        done.map_err(|error| {
            if !is_of_transport(&error) {
                return error;
            }
            self.cluster.rest(&self.worker, &error);
            self.failed.iter().for_each(|failed| failed.0.store(true, Ordering::Release));
            external(busy("a node of the cluster failed while it computed a part of the query"))
        })
    }
}

/// Returns whether an error came from the way to a worker: those that it sends come as their own.
fn is_of_transport(error: &DataFusionError) -> bool {
    match error {
        DataFusionError::External(external) => {
            external.is::<tonic::Status>() || external.is::<tonic::transport::Error>()
        }
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => is_of_transport(inner),
        DataFusionError::Shared(inner) => is_of_transport(inner),
        _ => false,
    }
}

struct WatchedChannel {
    channel: Box<dyn WorkerChannel>,
    watch: Watch,
}

impl fmt::Debug for WatchedChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchedChannel").field("worker", &self.watch.worker).finish_non_exhaustive()
    }
}

#[async_trait]
impl WorkerChannel for WatchedChannel {
    async fn coordinator_channel(
        &mut self,
        headers: HeaderMap,
        request: SetPlanRequest,
        messages: BoxStream<'static, CoordinatorToWorkerMsg>,
        metrics: ExecutionPlanMetricsSet,
        context: &Arc<TaskContext>,
    ) -> Result<BoxStream<'static, Result<WorkerToCoordinatorMsg>>> {
        let watch = self.watch.of(context);
        let answers = self.channel.coordinator_channel(headers, request, messages, metrics, context).await;
        Ok(watch.noticed(answers)?.map(move |answer| watch.noticed(answer)).boxed())
    }

    async fn execute_task(
        &mut self,
        headers: HeaderMap,
        request: ExecuteTaskRequest,
        metrics: ExecutionPlanMetricsSet,
        context: &Arc<TaskContext>,
    ) -> Result<Vec<BoxStream<'static, Result<RecordBatch>>>> {
        let watch = self.watch.of(context);
        let partitions = watch.noticed(self.channel.execute_task(headers, request, metrics, context).await)?;
        let watched = partitions.into_iter().map(|rows| {
            let watch = watch.clone();
            rows.map(move |batch| watch.noticed(batch)).boxed()
        });
        Ok(watched.collect())
    }

    async fn get_worker_info(&mut self, request: GetWorkerInfoRequest) -> Result<GetWorkerInfoResponse> {
        self.channel.get_worker_info(request).await
    }
}
