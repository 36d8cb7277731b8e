//! Opens one file for the rows whose times are asked for.

use std::{borrow::Cow, collections::VecDeque, ops::Range, sync::Arc};

use arrow::{
    array::{AsArray, RecordBatch},
    compute::cast,
    datatypes::TimestampNanosecondType,
};
use datafusion::{
    common::{DataFusionError, Result, ScalarValue, internal_datafusion_err},
    datasource::{
        listing::{FileRange, PartitionedFile},
        physical_plan::{
            FileOpenFuture, FileOpener, FileScanConfig, FileSource, ParquetSource,
            parquet::{ParquetAccessPlan, ParquetFileReaderFactory, RowGroupAccess},
        },
    },
    physical_expr::{PhysicalExpr, conjunction},
};
use futures::{FutureExt, Stream, StreamExt, TryStreamExt, stream, stream::BoxStream};
use object_store::ObjectStore;
use parquet::{
    arrow::{
        ParquetRecordBatchStreamBuilder, ProjectionMask, arrow_reader::RowSelection, async_reader::AsyncFileReader,
    },
    basic::{LogicalType, TimeUnit},
    file::{
        metadata::{ParquetMetaData, RowGroupMetaData},
        statistics::Statistics as ColumnBounds,
    },
};

use super::{
    cache::{GroupKey, TimesCache},
    pieces::{Noting, PackedTimes, Selected},
    range::TimeRange,
    relaxed::relaxed,
    sorting::{EndOfTime, Look, Sorting},
    source::InTimeOrder,
};
use crate::{FileTimeUnit, model::TIME_COLUMN};

/// Rows of a piece of a file that such a sort takes at a time.
const PIECE_ROWS: usize = 3 << 20;

type RowStream = BoxStream<'static, Result<RecordBatch>>;

/// How the files of one partition are opened.
#[derive(Debug, Clone)]
pub(super) struct FileOpening {
    /// Does not look at the time of rows.
    pub(super) all: ParquetSource,
    /// Leaves out rows whose time is not wanted.
    pub(super) looking: ParquetSource,
    pub(super) wanted: Option<TimeRange>,
    pub(super) few: bool,
    pub(super) sorting: Option<Sorting>,
    /// What else rows must meet; it may get stricter while they are read.
    pub(super) condition: Option<Arc<dyn PhysicalExpr>>,
    pub(super) reader: Arc<dyn ParquetFileReaderFactory>,
    pub(super) cache: Arc<TimesCache>,
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) config: Arc<FileScanConfig>,
    pub(super) partition: usize,
}

impl FileOpener for FileOpening {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        match self.whole(&file) {
            Some(source) => self.open_by(source, file),
            None => Ok(rows(self.clone(), file).boxed()),
        }
    }
}

impl FileOpening {
    /// Returns what opens a file that is opened as a whole.
    fn whole(&self, file: &PartitionedFile) -> Option<&ParquetSource> {
        let bounds = bounds(file);
        let all_wanted = self.wanted_of(bounds).is_none();
        let pays = !all_wanted || self.sorting.is_some();
        let splits = pays && !self.few && bounds.is_some() && file.extensions.contains::<InTimeOrder>();
        match (splits, all_wanted) {
            (true, _) => None,
            (false, true) => Some(&self.all),
            (false, false) => Some(&self.looking),
        }
    }

    /// Returns which times of a file are wanted, if not all are.
    fn wanted_of(&self, bounds: Option<TimeRange>) -> Option<TimeRange> {
        self.wanted.filter(|wanted| !bounds.is_some_and(|bounds| wanted.covers(bounds)))
    }

    /// Returns the times out of which no row of a file is wanted, as far as is known at this
    /// moment.
    fn still_wanted(&self, file: &PartitionedFile) -> TimeRange {
        let bounds = bounds(file).unwrap_or(TimeRange::ALL);
        let wanted = self.wanted.unwrap_or(TimeRange::ALL).and(bounds);
        match (&self.condition, &file.statistics) {
            (Some(condition), Some(known)) => wanted.and(TimeRange::implied(condition, known)),
            _ => wanted,
        }
    }

    fn open_reader(&self, file: &PartitionedFile) -> Result<Box<dyn AsyncFileReader>> {
        Ok(self.reader.create_reader(self.partition, file.clone(), None, self.all.metrics())?)
    }

    /// Returns where the times of a row group lie; reads them if nothing did.
    async fn times(&self, file: &PartitionedFile, row_group: usize) -> Result<Arc<PackedTimes>> {
        let key = GroupKey::new(&file.object_meta, row_group);
        if let Some(known) = self.cache.get(&key) {
            return Ok(known);
        }
        let builder = ParquetRecordBatchStreamBuilder::new(self.open_reader(file)?).await?;
        let leaf = time_leaf(builder.metadata())?;
        let unit = unit_of(builder.metadata(), leaf);
        let mask = ProjectionMask::leaves(builder.parquet_schema(), [leaf]);
        let mut batches = builder.with_projection(mask).with_row_groups(vec![row_group]).build()?;
        let mut noting = Noting::default();
        while let Some(batch) = batches.try_next().await? {
            let time = batch.columns().first().ok_or_else(|| internal_datafusion_err!("no times"))?;
            let times = match unit {
                FileTimeUnit::Nanosecond => Arc::clone(time),
                _ => cast(time, &FileTimeUnit::Nanosecond.time_type())?,
            };
            let times = times.as_primitive_opt::<TimestampNanosecondType>();
            let times = times.ok_or_else(|| internal_datafusion_err!("times that are none"))?;
            noting.push(times.values());
        }
        let times = Arc::new(noting.finish());
        self.cache.put(key, &times);
        Ok(times)
    }

    /// Opens a file as a Parquet source does: in steps, some of which read and some of which bring
    /// rows.
    fn open_by(&self, source: &ParquetSource, file: PartitionedFile) -> Result<FileOpenFuture> {
        let files = source.create_morselizer(Arc::clone(&self.store), &self.config, self.partition)?;
        let mut planners = VecDeque::from([files.plan_file(file)?]);
        let open = async move {
            let mut rows = Vec::new();
            while let Some(planner) = planners.pop_front() {
                let Some(mut plan) = planner.plan()? else { continue };
                rows.extend(plan.take_morsels().into_iter().map(|morsel| morsel.into_stream()));
                planners.extend(plan.take_ready_planners());
                if let Some(pending) = plan.take_pending_planner() {
                    planners.push_back(pending.await?);
                }
            }
            Ok(stream::iter(rows).flatten().boxed())
        };
        Ok(open.boxed())
    }

    /// Opens the chosen rows of a file.
    async fn open_chosen(&self, mut file: PartitionedFile, chosen: ChosenRows) -> Result<RowStream> {
        if chosen.plan.row_group_index_iter().next().is_none() {
            return Ok(stream::empty().boxed());
        }
        let source = if chosen.certain { &self.all } else { &self.looking };
        file.range = None;
        file.extensions.insert(chosen.plan);
        let source = self.with_first_column_first(source)?;
        self.open_by(&source, file)?.await
    }

    /// Lets a source look at the column that a sort begins with before it reads the others.
    fn with_first_column_first<'a>(&self, source: &'a ParquetSource) -> Result<Cow<'a, ParquetSource>> {
        let first = self.sorting.as_ref().and_then(|sorting| sorting.first.as_ref());
        let (Some(first), Some(condition), Some(all)) = (first, &self.condition, source.filter()) else {
            return Ok(Cow::Borrowed(source));
        };
        Ok(match relaxed(condition, first)? {
            Some(relaxed) => Cow::Owned(source.with_predicate(conjunction([relaxed, all]))),
            None => Cow::Borrowed(source),
        })
    }
}

/// Rows of a file that are opened together.
struct ChosenRows {
    plan: ParquetAccessPlan,
    /// Whether their times need not be looked at.
    certain: bool,
}

/// A row group that may have rows that are wanted.
struct RowGroupCandidate {
    row_group: usize,
    rows: usize,
    bounds: TimeRange,
    /// What was opened before.
    opened: Vec<Range<usize>>,
}

/// Returns the rows of a file whose times are wanted, and maybe others that do not meet the
/// condition.
async fn rows(opening: FileOpening, file: PartitionedFile) -> Result<RowStream> {
    if opening.still_wanted(&file).is_empty() {
        return Ok(stream::empty().boxed());
    }
    let metadata = opening.open_reader(&file)?.get_metadata(None).await?;
    let candidates = candidates(&metadata, &file, opening.still_wanted(&file))?;
    let row_groups = metadata.num_row_groups();
    match opening.sorting.as_ref().map(|sorting| sorting.time) {
        Some(end) => Ok(in_looks(opening, file, candidates, row_groups, end).boxed()),
        None => at_once(&opening, file, candidates, row_groups).await,
    }
}

/// Opens all that is wanted.
async fn at_once(
    opening: &FileOpening,
    file: PartitionedFile,
    candidates: Vec<RowGroupCandidate>,
    row_groups: usize,
) -> Result<RowStream> {
    let mut chosen = ChosenRows { plan: ParquetAccessPlan::new_none(row_groups), certain: true };
    for mut candidate in candidates {
        let wanted = opening.still_wanted(&file);
        choose(opening, &file, &mut candidate, wanted, &mut chosen).await?;
    }
    opening.open_chosen(file, chosen).await
}

/// Opens a few rows at one end of time, and then those others that may still be wanted.
fn in_looks(
    opening: FileOpening,
    file: PartitionedFile,
    mut candidates: Vec<RowGroupCandidate>,
    row_groups: usize,
    end: EndOfTime,
) -> impl Stream<Item = Result<RecordBatch>> + Send {
    candidates.sort_by_key(|candidate| end.rank(candidate.bounds));
    let state = (opening, file, candidates, Look::ALL.into_iter());
    let streams = stream::try_unfold(state, move |(opening, file, mut candidates, mut looks)| async move {
        let Some(look) = looks.next() else { return Ok::<_, DataFusionError>(None) };
        let mut chosen = ChosenRows { plan: ParquetAccessPlan::new_none(row_groups), certain: true };
        let wanted = opening.still_wanted(&file);
        for (key, candidate) in candidates.iter_mut().enumerate() {
            let within = wanted.and(look.times(key, candidate.bounds, end));
            choose(&opening, &file, candidate, within, &mut chosen).await?;
        }
        let opened = opening.open_chosen(file.clone(), chosen).await?;
        Ok(Some((opened, (opening, file, candidates, looks))))
    });
    streams.try_flatten()
}

/// Adds the rows of a row group with these times, but those that were opened before.
async fn choose(
    opening: &FileOpening,
    file: &PartitionedFile,
    candidate: &mut RowGroupCandidate,
    within: TimeRange,
    chosen: &mut ChosenRows,
) -> Result<()> {
    if within.and(candidate.bounds).is_empty() {
        return Ok(());
    }
    let all = [Range { start: 0, end: candidate.rows }];
    let selected = if within.covers(candidate.bounds) {
        Selected { ranges: all.to_vec(), certain: true }
    } else {
        opening.times(file, candidate.row_group).await?.select(within)
    };
    let selected = selected.without(&candidate.opened);
    chosen.certain &= selected.certain || opening.wanted_of(bounds(file)).is_none();
    let access = match selected.ranges.as_slice() {
        [] => RowGroupAccess::Skip,
        ranges if *ranges == all => RowGroupAccess::Scan,
        ranges => {
            RowGroupAccess::Selection(RowSelection::from_consecutive_ranges(ranges.iter().cloned(), candidate.rows))
        }
    };
    chosen.plan.set(candidate.row_group, access);
    // There are two looks at most, and no caller asks after the second.
    candidate.opened = selected.ranges;
    Ok(())
}

/// Returns the row groups of a file, or of the range of it, that may have rows with these times.
fn candidates(metadata: &ParquetMetaData, file: &PartitionedFile, wanted: TimeRange) -> Result<Vec<RowGroupCandidate>> {
    let leaf = time_leaf(metadata)?;
    let unit = unit_of(metadata, leaf);
    let whole = bounds(file).unwrap_or(TimeRange::ALL);
    let mut candidates = Vec::new();
    for (row_group, group) in metadata.row_groups().iter().enumerate() {
        let bounds = bounds_of(group, leaf, unit).unwrap_or(whole);
        if is_in_range(group, file.range.as_ref()) && !wanted.and(bounds).is_empty() {
            let rows = usize::try_from(group.num_rows()).map_err(|e| DataFusionError::External(e.into()))?;
            candidates.push(RowGroupCandidate { row_group, rows, bounds, opened: Vec::new() });
        }
    }
    Ok(candidates)
}

/// Says of a row group what the Parquet source says of it.
fn is_in_range(group: &RowGroupMetaData, range: Option<&FileRange>) -> bool {
    let first = group.columns().first();
    let offset = first.map(|first| first.dictionary_page_offset().unwrap_or_else(|| first.data_page_offset()));
    range.is_none_or(|range| offset.is_some_and(|offset| range.contains(offset)))
}

fn time_leaf(metadata: &ParquetMetaData) -> Result<usize> {
    let columns = metadata.file_metadata().schema_descr().columns();
    let leaf = columns.iter().position(|column| column.path().parts() == [TIME_COLUMN]);
    leaf.ok_or_else(|| internal_datafusion_err!("a data file without times"))
}

/// Returns the unit in which a file has its times.
fn unit_of(metadata: &ParquetMetaData, leaf: usize) -> FileTimeUnit {
    match metadata.file_metadata().schema_descr().column(leaf).logical_type_ref() {
        Some(LogicalType::Timestamp(of)) if of.unit == TimeUnit::MICROS => FileTimeUnit::Microsecond,
        Some(LogicalType::Timestamp(of)) if of.unit == TimeUnit::MILLIS => FileTimeUnit::Millisecond,
        _ => FileTimeUnit::Nanosecond,
    }
}

fn bounds_of(group: &RowGroupMetaData, leaf: usize, unit: FileTimeUnit) -> Option<TimeRange> {
    let time_ns = |time: i64| time.saturating_mul(unit.nanoseconds());
    match group.columns().get(leaf)?.statistics()? {
        ColumnBounds::Int64(bounds) => Some(TimeRange::new(time_ns(*bounds.min_opt()?), time_ns(*bounds.max_opt()?))),
        _ => None,
    }
}

/// Returns the least and the greatest time of a file, as listed.
pub(super) fn bounds(file: &PartitionedFile) -> Option<TimeRange> {
    let time = file.statistics.as_ref()?.column_statistics.first()?;
    match (time.min_value.get_value()?, time.max_value.get_value()?) {
        (ScalarValue::TimestampNanosecond(Some(min), _), ScalarValue::TimestampNanosecond(Some(max), _)) => {
            Some(TimeRange::new(*min, *max))
        }
        _ => None,
    }
}

/// Splits a file, or a range of it, in pieces of a few row groups.
pub(super) fn split(file: PartitionedFile) -> Vec<PartitionedFile> {
    let size = i64::try_from(file.object_meta.size).unwrap_or(i64::MAX);
    let whole = file.range.clone().unwrap_or(FileRange { start: 0, end: size });
    let rows = file.statistics.as_ref().and_then(|known| known.num_rows.get_value().copied()).unwrap_or_default();
    // As many as the whole file has: the smaller the range, the smaller the pieces.
    let pieces = i64::try_from(rows.div_ceil(PIECE_ROWS)).unwrap_or(1).max(1);
    let step = usize::try_from((size / pieces).max(1)).unwrap_or(usize::MAX);
    let starts = (whole.start..whole.end).step_by(step);
    let piece = |start: i64| {
        let end = start.saturating_add(i64::try_from(step).unwrap_or(i64::MAX)).min(whole.end);
        let mut piece = file.clone();
        piece.range = Some(FileRange { start, end });
        piece
    };
    starts.map(piece).collect()
}
