//! A Parquet source that knows of a condition on time, and leaves it out of the Parquet library's
//! hands where it can.

use std::{fmt, sync::Arc};

use datafusion::{
    common::{Result, config::ConfigOptions, tree_node::TreeNodeRecursion},
    datasource::{
        listing::PartitionedFile,
        physical_plan::{FileOpener, FileScanConfig, FileSource, ParquetSource, parquet::ParquetFileReaderFactory},
        table_schema::TableSchema,
    },
    execution::config::SessionConfig,
    physical_expr::{
        EquivalenceProperties, PhysicalExpr, PhysicalSortExpr, conjunction, expressions::DynamicFilterTracking,
        projection::ProjectionExprs,
    },
    physical_plan::{
        DisplayFormatType, SortOrderPushdownResult, filter_pushdown::FilterPushdownPropagation,
        metrics::ExecutionPlanMetricsSet,
    },
};
use object_store::ObjectStore;

use super::{
    cache::TimesCache,
    opening::{self, FileOpening},
    range::TimeRange,
    sorting::Sorting,
};

/// Said of a file: its rows are in order of (tags, time), so that finding out where its times lie
/// pays.
#[derive(Debug, Clone, Copy)]
pub(in crate::query) struct InTimeOrder;

/// See the module. Gives no row of a file with a time out of its range.
#[derive(Debug, Clone)]
pub(in crate::query) struct TimedSource {
    parquet: ParquetSource,
    time: Option<Timed>,
    reader: Arc<dyn ParquetFileReaderFactory>,
    cache: Arc<TimesCache>,
    /// Whether conditions on tags leave so few rows that those are looked at one by one.
    few: bool,
    sort: Option<Sorting>,
    /// The order that rows are wanted in, as it came down.
    #[cfg(feature = "distributed")]
    order: Vec<PhysicalSortExpr>,
}

/// A range of times, and the condition that says so, over the columns of the table.
#[derive(Debug, Clone)]
struct Timed {
    range: TimeRange,
    condition: Arc<dyn PhysicalExpr>,
}

impl TimedSource {
    /// Returns a source of the rows with a time in `range`; `few` where conditions on tags leave
    /// few of them.
    pub(in crate::query) fn new(
        config: &SessionConfig,
        parquet: ParquetSource,
        range: Option<TimeRange>,
        few: bool,
    ) -> Result<Self> {
        let reader = parquet.parquet_file_reader_factory().cloned();
        let reader = reader.ok_or_else(|| datafusion::common::internal_datafusion_err!("a source without a reader"))?;
        let schema = parquet.table_schema().table_schema();
        let time = range.map(|range| range.condition(schema).map(|condition| Timed { range, condition }));
        let cache = config.get_extension::<TimesCache>().unwrap_or_else(|| Arc::new(TimesCache::new(0)));
        Ok(Self {
            time: time.transpose()?,
            parquet,
            reader,
            cache,
            few,
            sort: None,
            #[cfg(feature = "distributed")]
            order: Vec::new(),
        })
    }

    /// Returns the range of times, if not all are wanted, and whether few rows of each are.
    pub(in crate::query) fn wanted(&self) -> (TimeRange, bool) {
        (self.time.as_ref().map_or(TimeRange::ALL, |time| time.range), self.few)
    }

    /// Returns what rows must meet beside their time, over the columns of the table.
    pub(in crate::query) fn conditions(&self) -> Option<Arc<dyn PhysicalExpr>> {
        self.parquet.filter()
    }

    /// Returns the order that rows are wanted in, as it came down.
    #[cfg(feature = "distributed")]
    pub(in crate::query) fn order(&self) -> &[PhysicalSortExpr] {
        &self.order
    }

    /// Returns the source of those rows that meet `conditions`, too.
    #[cfg(feature = "distributed")]
    pub(in crate::query) fn with_conditions(self, conditions: Arc<dyn PhysicalExpr>) -> Self {
        Self { parquet: self.parquet.with_predicate(conditions), ..self }
    }

    /// Returns the source of the rows with a time in `range`, in place of that which it has.
    pub(in crate::query) fn with_times(&self, range: TimeRange) -> Result<Self> {
        let condition = || range.condition(self.parquet.table_schema().table_schema());
        let time = (range != TimeRange::ALL).then(condition);
        let time = time.map(|condition| condition.map(|condition| Timed { range, condition }));
        Ok(Self { time: time.transpose()?, ..self.clone() })
    }

    /// Returns what opens the files.
    pub(in crate::query) fn reader(&self) -> &Arc<dyn ParquetFileReaderFactory> {
        &self.reader
    }

    fn over(&self, parquet: &Arc<dyn FileSource>) -> Result<Arc<dyn FileSource>> {
        let Some(parquet) = parquet.downcast_ref::<ParquetSource>() else {
            return datafusion::common::internal_err!("a Parquet source became another one");
        };
        Ok(Arc::new(Self { parquet: parquet.clone(), ..self.clone() }))
    }

    /// Returns the Parquet source that looks at the time of each row.
    fn looking(&self) -> ParquetSource {
        match &self.time {
            Some(time) => {
                let all = self.parquet.filter().into_iter().chain([Arc::clone(&time.condition)]);
                self.parquet.with_predicate(conjunction(all))
            }
            None => self.parquet.clone(),
        }
    }

    /// Returns a source for few rows of each series: the Parquet library decodes whole batches for
    /// what it may need again.
    fn without_predicate_cache(&self) -> Self {
        let mut options = self.parquet.table_parquet_options().clone();
        options.global.max_predicate_cache_size = Some(0);
        Self { parquet: self.parquet.clone().with_table_parquet_options(options), ..self.clone() }
    }

    /// Returns how rows are sorted, if by time among others, and if their number is limited.
    fn limited_sort(&self) -> Option<Sorting> {
        let predicate = self.parquet.filter()?;
        let is_limited = DynamicFilterTracking::classify(&predicate).contains_dynamic_filter();
        self.sort.clone().filter(|_| is_limited)
    }
}

impl FileSource for TimedSource {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let sorting = self.limited_sort().filter(|_| !config.preserve_order);
        let source = if sorting.is_some() && !self.few { self.without_predicate_cache() } else { self.clone() };
        Ok(Arc::new(FileOpening {
            looking: source.looking(),
            all: source.parquet,
            wanted: self.time.as_ref().map(|time| time.range),
            few: self.few,
            sorting,
            condition: self.parquet.filter(),
            reader: Arc::clone(&self.reader),
            cache: Arc::clone(&self.cache),
            store,
            config: Arc::new(config.clone()),
            partition,
        }))
    }

    fn reorder_files(&self, mut files: Vec<PartitionedFile>) -> Vec<PartitionedFile> {
        let Some(sort) = self.limited_sort() else { return self.parquet.reorder_files(files) };
        // The Parquet source keeps the order of files that are equal to it, or turns all of it
        // round.
        files.sort_by_key(|file| opening::bounds(file).map(|bounds| sort.time.rank(bounds)));
        if sort.first_descends {
            files.reverse();
        }
        let files = self.parquet.reorder_files(files);
        files.into_iter().flat_map(opening::split).collect()
    }

    fn table_schema(&self) -> &TableSchema {
        self.parquet.table_schema()
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        let parquet = self.parquet.with_batch_size(batch_size);
        // What comes back is a Parquet source.
        self.over(&parquet).unwrap_or(parquet)
    }

    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        self.looking().filter()
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        self.parquet.projection()
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        self.parquet.metrics()
    }

    fn file_type(&self) -> &str {
        self.parquet.file_type()
    }

    fn fmt_extra(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.looking().fmt_extra(t, f)
    }

    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        let FilterPushdownPropagation { filters, updated_node } = self.parquet.try_pushdown_filters(filters, config)?;
        let updated_node = updated_node.map(|parquet| self.over(&parquet)).transpose()?;
        Ok(FilterPushdownPropagation { filters, updated_node })
    }

    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
        properties: &EquivalenceProperties,
    ) -> Result<SortOrderPushdownResult<Arc<dyn FileSource>>> {
        let sorted = Self {
            sort: Sorting::of(order),
            #[cfg(feature = "distributed")]
            order: order.to_vec(),
            ..self.clone()
        };
        Ok(match self.parquet.try_pushdown_sort(order, properties)? {
            SortOrderPushdownResult::Exact { inner } => SortOrderPushdownResult::Exact { inner: self.over(&inner)? },
            SortOrderPushdownResult::Inexact { inner } => {
                SortOrderPushdownResult::Inexact { inner: sorted.over(&inner)? }
            }
            SortOrderPushdownResult::Unsupported => SortOrderPushdownResult::Unsupported,
        })
    }

    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn FileSource>>> {
        let parquet = self.parquet.try_pushdown_projection(projection)?;
        parquet.map(|parquet| self.over(&parquet)).transpose()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.looking().apply_expressions(f)
    }
}
