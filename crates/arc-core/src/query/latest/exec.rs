//! The plan node that finds the newest rows while it runs.

use std::{fmt, sync::Arc};

use arrow::array::RecordBatch;
use datafusion::{
    common::{DataFusionError, Result, assert_eq_or_internal_err, runtime::SpawnedTask, tree_node::TreeNodeRecursion},
    execution::{SendableRecordBatchStream, TaskContext, memory_pool::MemoryConsumer},
    physical_expr::{Distribution, EquivalenceProperties, PhysicalExpr},
    physical_plan::{
        DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements, Partitioning, PlanProperties,
        execution_plan::{Boundedness, EmissionType},
        metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet},
        stream::RecordBatchStreamAdapter,
    },
};
use futures::{FutureExt, Stream, StreamExt, TryStreamExt, future::BoxFuture, stream};

use super::{
    best::NewestSoFar,
    cache::KnownFile,
    job::{NewestRowsJob, PartRows, WantedNewest, mask},
    of_all,
    read::{DataFileReader, joined},
    rows,
    search::{FoundNewest, search},
};

/// See the module. Its inputs are the merges of late rows.
#[derive(Debug)]
pub(super) struct LatestExec {
    job: Arc<NewestRowsJob>,
    merged: Vec<Arc<dyn ExecutionPlan>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl LatestExec {
    pub(super) fn new(job: Arc<NewestRowsJob>, merged: Vec<Arc<dyn ExecutionPlan>>) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&job.output_schema)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Self { job, merged, properties: Arc::new(properties), metrics: ExecutionPlanMetricsSet::new() }
    }

    fn count(&self, is: fn(&PartRows) -> bool) -> usize {
        self.job.parts.iter().filter(|part| is(&part.rows)).count()
    }
}

impl DisplayAs for LatestExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = match self.job.newest {
            WantedNewest::OfEachKey => format!("keys=[{}]", self.job.key_names.join(", ")),
            WantedNewest::OfAll { rows, .. } => format!("rows={rows}"),
        };
        let files = self.count(|rows| matches!(rows, PartRows::File(_)));
        let buffers = self.count(|rows| matches!(rows, PartRows::Buffer { .. }));
        match t {
            DisplayFormatType::TreeRender => writeln!(f, "{rows}\nfiles={files}\nbuffers={buffers}"),
            _ => write!(f, "LatestExec: {rows}, files={files}, buffers={buffers}"),
        }
    }
}

impl ExecutionPlan for LatestExec {
    fn name(&self) -> &'static str {
        "LatestExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition; self.merged.len()])
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.merged.iter().collect()
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        assert_eq_or_internal_err!(children.len(), self.merged.len(), "LatestExec has an input for each merge");
        Ok(Arc::new(Self::new(Arc::clone(&self.job), children)))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.job.on_index.as_ref().map_or(Ok(TreeNodeRecursion::Continue), f)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        assert_eq_or_internal_err!(partition, 0, "LatestExec has one partition");
        let merged = self.merged.iter().map(|input| input.execute(0, Arc::clone(&context)));
        let counter = |name: &'static str| MetricBuilder::new(&self.metrics).counter(name, partition);
        let run = Execution {
            merged: merged.map(|rows| rows.map(Some)).collect::<Result<_>>()?,
            reader: DataFileReader { schema: Arc::clone(&self.job.schema), context },
            job: Arc::clone(&self.job),
        };
        let (parts_read, output_rows) = (counter("parts_with_rows"), counter("output_rows"));
        let batches = match self.job.newest {
            WantedNewest::OfEachKey => stream::once(run.of_each_key()).try_flatten().boxed(),
            WantedNewest::OfAll { rows, ties } => of_all::batches(run, rows, ties).boxed(),
        };
        let counted = batches.inspect_ok(move |batch| {
            parts_read.add(1);
            output_rows.add(batch.num_rows());
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), counted)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// Notes which rows of a part are the newest so far. Of an index that is not remembered, the others
/// are given up.
fn add(job: &NewestRowsJob, best: &mut NewestSoFar, part: usize, found: FoundNewest) -> Result<FoundNewest> {
    let passes = match &job.on_index {
        Some(condition) => Some(mask(condition, found.known.decoded(&job.index_schema)?)?),
        None => None,
    };
    let won = best.add(part, found.index(), passes.as_ref());
    if found.is_remembered(&job.cache) || won.len() == found.index().rows.len() {
        return Ok(found);
    }
    best.keep_only(part, &won);
    let known = Arc::new(KnownFile::new(found.index().only(&won)));
    Ok(FoundNewest { known, rows: found.rows })
}

/// One execution.
pub(super) struct Execution {
    pub(super) job: Arc<NewestRowsJob>,
    pub(super) reader: DataFileReader,
    /// The inputs, until they are read.
    pub(super) merged: Vec<Option<SendableRecordBatchStream>>,
}

impl Execution {
    /// Takes the input that a part is made of, if it is one.
    pub(super) fn input_of(&mut self, part: usize) -> Option<SendableRecordBatchStream> {
        match self.job.parts.get(part).map(|part| &part.rows) {
            Some(PartRows::Merged(input)) => self.merged.get_mut(*input)?.take(),
            _ => None,
        }
    }

    pub(super) fn width(&self) -> usize {
        self.reader.context.session_config().target_partitions()
    }

    /// Returns batches that have the newest row of each key: first finds out which they are, then
    /// reads them.
    async fn of_each_key(mut self) -> Result<stream::BoxStream<'static, Result<RecordBatch>>> {
        let width = self.width();
        let reservation = MemoryConsumer::new("LatestExec").register(self.reader.context.memory_pool());
        let (mut best, mut found): (NewestSoFar, Vec<FoundNewest>) = (NewestSoFar::default(), Vec::new());
        let mut held = 0;
        let mut searches = self.searches().buffered(width);
        while let Some(next) = searches.try_next().await? {
            let Some(next) = next else { continue };
            let in_flight = next.index().size() * width;
            let next = add(&self.job, &mut best, found.len(), next)?;
            held += next.index().size();
            found.push(next);
            reservation.try_resize(best.size() + held + in_flight)?;
        }
        let entries = best.entries(found.len());
        let rows = found.into_iter().zip(entries).filter(|(_, entries)| !entries.is_empty()).map(|(found, entries)| {
            let rows = rows::rows(Arc::clone(&self.job), self.reader.clone(), found, entries);
            in_its_turn(rows)
        });
        let batches = stream::iter(rows.collect::<Vec<_>>()).buffered(width);
        // The indexes are held until the last row is made.
        Ok(batches.inspect(move |_: &Result<RecordBatch, DataFusionError>| _ = &reservation).boxed())
    }

    /// Returns a search of each part.
    fn searches(&mut self) -> impl Stream<Item = BoxFuture<'static, Result<Option<FoundNewest>>>> + use<> {
        let (job, reader) = (Arc::clone(&self.job), self.reader.clone());
        let searches = (0..job.parts.len())
            .map(|part| in_its_turn(search(Arc::clone(&job), reader.clone(), part, self.input_of(part))));
        stream::iter(searches.collect::<Vec<_>>())
    }
}

/// Makes a task of some work, not before it is asked for.
fn in_its_turn<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> BoxFuture<'static, Result<T>> {
    async move { joined(SpawnedTask::spawn(work)).await }.boxed()
}
