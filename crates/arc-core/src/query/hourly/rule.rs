//! The rule that finds aggregates over files whose hours can answer.

use std::{ops::Range, sync::Arc};

use datafusion::{
    common::{
        Result, Statistics,
        config::ConfigOptions,
        tree_node::{Transformed, TransformedResult, TreeNode},
    },
    datasource::{
        listing::PartitionedFile,
        physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder},
        source::DataSourceExec,
    },
    physical_expr::{PhysicalExpr, expressions::Column},
    physical_optimizer::PhysicalOptimizerRule,
    physical_plan::{
        ChildrenPropertiesMode, ExecutionPlan, ExecutionPlanProperties, InputOrderMode, Partitioning,
        ReplaceChildrenOptions,
        aggregates::{AggregateExec, AggregateMode},
        coalesce_partitions::CoalescePartitionsExec,
        coop::CooperativeExec,
        filter::FilterExec,
        projection::ProjectionExec,
        repartition::RepartitionExec,
        union::UnionExec,
    },
};

use super::{
    super::{
        runs::{GroupRuns, in_mode},
        times::{TimeRange, TimedSource},
    },
    exec::HourlyExec,
    question::{HoursQuestion, Question},
};
use crate::{datafile::hourly::HOUR_NS, model::DataFile};

/// See the module. Before the rule that knows runs.
#[derive(Debug)]
pub(in crate::query) struct StoredHours;

impl PhysicalOptimizerRule for StoredHours {
    fn name(&self) -> &'static str {
        "stored_hours"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            let replaced = plan.downcast_ref::<AggregateExec>().map(|aggregate| replaced(aggregate, config));
            let replaced = replaced.transpose()?.flatten();
            Ok(replaced.map_or_else(|| Transformed::no(plan), Transformed::yes))
        })
        .data()
    }
}

/// Returns what does the same, by hours as far as they can answer.
fn replaced(aggregate: &AggregateExec, config: &ConfigOptions) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let second = match aggregate.mode() {
        AggregateMode::Partial => None,
        AggregateMode::Single => Some(AggregateMode::Final),
        _ => return Ok(None),
    };
    let is_plain = aggregate.group_expr().groups().len() <= 1
        && !aggregate.group_expr().has_grouping_set()
        && aggregate.limit_options().is_none()
        && *aggregate.input_order_mode() == InputOrderMode::Linear
        && aggregate.dynamic_expressions_produced().is_empty();
    let Some(question) = Question::of(aggregate).filter(|_| is_plain) else { return Ok(None) };
    let split = split(aggregate.input(), &question, config.execution.target_partitions)?;
    if split.hours.is_empty() {
        return Ok(None);
    }
    let first = |input| in_mode(aggregate, AggregateMode::Partial, input);
    let mut parts: Vec<Arc<dyn ExecutionPlan>> = Vec::with_capacity(1 + split.hours.len());
    if let Some(rest) = split.rest {
        parts.push(Arc::new(first(rest)?));
    }
    for hours in split.hours {
        let rows: Arc<dyn ExecutionPlan> = Arc::new(first(Arc::clone(&hours.rows))?);
        // Nothing walks through what is only there in case.
        let rows = GroupRuns.optimize(one_partition(rows), config)?;
        parts.push(Arc::new(HourlyExec::new(aggregate, hours, rows)));
    }
    let parts = if parts.len() == 1 { parts.remove(0) } else { UnionExec::try_new(parts)? };
    Ok(Some(match second {
        Some(second) => Arc::new(in_mode(aggregate, second, one_partition(parts))?),
        // The second phase may be one that takes one partition.
        None if aggregate.properties().output_partitioning().partition_count() == 1 => one_partition(parts),
        None => parts,
    }))
}

fn one_partition(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    match plan.output_partitioning().partition_count() {
        1 => plan,
        _ => Arc::new(CoalescePartitionsExec::new(plan)),
    }
}

/// Files of one scan whose hours answer a question.
#[derive(Debug, Clone)]
pub(super) struct Hours {
    pub(super) question: Arc<HoursQuestion>,
    pub(super) source: TimedSource,
    pub(super) files: Vec<PartitionedFile>,
    /// The hours that are asked for, by their number since the epoch.
    pub(super) hours: Range<i64>,
    /// The rows of the same, as the aggregate takes them.
    pub(super) rows: Arc<dyn ExecutionPlan>,
}

/// A plan, parted into what hours answer and what they do not.
struct SplitPlan {
    /// `None` if nothing is left.
    rest: Option<Arc<dyn ExecutionPlan>>,
    hours: Vec<Hours>,
}

impl SplitPlan {
    fn nothing(plan: &Arc<dyn ExecutionPlan>) -> Self {
        Self { rest: Some(Arc::clone(plan)), hours: Vec::new() }
    }

    /// Returns the same with an operator above all of it.
    fn under(self, operator: &Arc<dyn ExecutionPlan>) -> Result<Self> {
        let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        let over = |input| Arc::clone(operator).replace_children(vec![input], recompute);
        let rest = self.rest.map(over).transpose()?;
        let hours = self.hours.into_iter().map(|hours| Ok(Hours { rows: over(Arc::clone(&hours.rows))?, ..hours }));
        Ok(Self { rest, hours: hours.collect::<Result<_>>()? })
    }
}

/// Parts a plan for a question that is asked of its rows, into up to `partitions` pieces.
fn split(plan: &Arc<dyn ExecutionPlan>, question: &Question, partitions: usize) -> Result<SplitPlan> {
    if let Some((config, source)) = scanned(plan) {
        return split_scan(plan, (config, source), question, partitions);
    }
    if let Some(union) = plan.downcast_ref::<UnionExec>() {
        let (mut rest, mut hours) = (Vec::new(), Vec::new());
        for input in union.inputs() {
            let split = split(input, question, partitions)?;
            rest.extend(split.rest);
            hours.extend(split.hours);
        }
        let rest = match rest.len() {
            0 | 1 => rest.pop(),
            _ => Some(UnionExec::try_new(rest)?),
        };
        return Ok(SplitPlan { rest, hours });
    }
    let below = if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        let schema = filter.input().schema();
        let column = |index: usize| -> Arc<dyn PhysicalExpr> {
            Arc::new(Column::new(schema.fields().get(index).map_or("", |field| field.name()), index))
        };
        let question = match filter.projection() {
            Some(projection) => question.below(&projection.iter().map(|index| column(*index)).collect::<Vec<_>>())?,
            None => question.clone(),
        };
        question.with(Arc::clone(filter.predicate()))
    } else if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        question.below(&projection.expr().iter().map(|column| Arc::clone(&column.expr)).collect::<Vec<_>>())?
    } else if is_transparent(plan) {
        question.clone()
    } else {
        return Ok(SplitPlan::nothing(plan));
    };
    let children = plan.children();
    let [input] = children.as_slice() else { return Ok(SplitPlan::nothing(plan)) };
    let below = split(input, &below, partitions)?;
    if below.hours.is_empty() { Ok(SplitPlan::nothing(plan)) } else { below.under(plan) }
}

/// Returns whether an operator gives the rows that it gets.
fn is_transparent(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let repartition = plan.downcast_ref::<RepartitionExec>();
    repartition.is_some_and(|repartition| matches!(repartition.partitioning(), Partitioning::RoundRobinBatch(_)))
        || plan.is::<CooperativeExec>()
}

fn scanned(plan: &Arc<dyn ExecutionPlan>) -> Option<(&FileScanConfig, &TimedSource)> {
    let source = plan.downcast_ref::<DataSourceExec>()?;
    let config = source.data_source().downcast_ref::<FileScanConfig>()?;
    let is_plain = config.limit.is_none() && config.output_ordering.is_empty() && config.output_partitioning.is_none();
    Some((config, config.file_source().downcast_ref::<TimedSource>()?)).filter(|_| is_plain)
}

fn split_scan(
    plan: &Arc<dyn ExecutionPlan>,
    (config, source): (&FileScanConfig, &TimedSource),
    question: &Question,
    partitions: usize,
) -> Result<SplitPlan> {
    let (wanted, _) = source.wanted();
    let mut files: Vec<&PartitionedFile> = config.file_groups.iter().flat_map(FileGroup::iter).collect();
    files.sort_by(|a, b| a.object_meta.location.cmp(&b.object_meta.location));
    // Several partitions may read parts of one.
    files.dedup_by(|a, b| a.object_meta.location == b.object_meta.location);
    let with_hours: Vec<_> = files.into_iter().filter(|file| has_whole_hours(file, wanted)).collect();
    if with_hours.is_empty() {
        return Ok(SplitPlan::nothing(plan));
    }
    let schema = config.file_source().table_schema().table_schema();
    let asked = match config.file_source().projection() {
        Some(projection) => question.below(&projection.expr_iter().collect::<Vec<_>>())?,
        None => question.clone(),
    };
    let asked = source.conditions().into_iter().fold(asked, Question::with);
    let Some(asked) = asked.of_hours(schema)?.map(Arc::new) else { return Ok(SplitPlan::nothing(plan)) };

    let scan = |groups: Vec<FileGroup>, source: TimedSource| -> Arc<dyn ExecutionPlan> {
        let config = FileScanConfigBuilder::from(config.clone()).with_file_groups(groups).with_source(Arc::new(source));
        // What was known is of all files.
        DataSourceExec::from_data_source(config.with_statistics(Statistics::new_unknown(schema)).build())
    };
    let hours = whole_hours(wanted);
    let inner = TimeRange::new(start(hours.start), last(hours.end));
    let spread: Vec<_> = FileGroup::new(with_hours.iter().map(|file| whole(file)).collect()).split_files(partitions);
    let spread = spread.into_iter().map(|group| {
        let files: Vec<PartitionedFile> = group.iter().cloned().collect();
        let covers = files.iter().all(|file| times(file).is_some_and(|times| inner.covers(times)));
        let source = source.with_times(if covers { TimeRange::ALL } else { inner })?;
        let rows = scan(vec![group], source.clone());
        Ok(Hours { question: Arc::clone(&asked), source, files, hours: hours.clone(), rows })
    });
    let hours = spread.collect::<Result<Vec<_>>>()?;

    let is_left = |file: &PartitionedFile| {
        !with_hours.iter().any(|with_hours| with_hours.object_meta.location == file.object_meta.location)
    };
    let left = config.file_groups.iter().map(|group| group.iter().filter(|file| is_left(file)).cloned().collect());
    let left: Vec<FileGroup> = left.map(FileGroup::new).filter(|group| !group.is_empty()).collect();
    let mut rest = Vec::new();
    if !left.is_empty() {
        rest.push(scan(left, source.clone()));
    }
    let before = inner.min.checked_sub(1).map(|last| TimeRange::new(wanted.min, last));
    let after = inner.max.checked_add(1).map(|first| TimeRange::new(first, wanted.max));
    for edge in before.into_iter().chain(after).filter(|edge| !edge.is_empty()) {
        let touches = |file: &&&PartitionedFile| times(file).is_some_and(|times| !times.and(edge).is_empty());
        let files: Vec<PartitionedFile> = with_hours.iter().filter(touches).map(|file| whole(file)).collect();
        if !files.is_empty() {
            rest.push(scan(FileGroup::new(files).split_files(partitions), source.with_times(edge)?));
        }
    }
    let rest = match rest.len() {
        0 | 1 => rest.pop(),
        _ => Some(UnionExec::try_new(rest)?),
    };
    Ok(SplitPlan { rest, hours })
}

/// Returns all of a file of which a part may be read.
fn whole(file: &PartitionedFile) -> PartitionedFile {
    PartitionedFile { range: None, ..file.clone() }
}

fn times(file: &PartitionedFile) -> Option<TimeRange> {
    file.extension::<Arc<DataFile>>().map(|file| TimeRange::new(file.min_time, file.max_time))
}

/// Returns whether a file has hours all of whose times are wanted.
fn has_whole_hours(file: &PartitionedFile, wanted: TimeRange) -> bool {
    let Some(known) = file.extension::<Arc<DataFile>>().filter(|known| known.hourly.is_some()) else { return false };
    let hours = whole_hours(wanted);
    let first = known.min_time.div_euclid(HOUR_NS).max(hours.start);
    first <= known.max_time.div_euclid(HOUR_NS) && first < hours.end
}

/// Returns the hours that lie in a range of times.
fn whole_hours(wanted: TimeRange) -> Range<i64> {
    let first = wanted.min.div_euclid(HOUR_NS) + i64::from(wanted.min.rem_euclid(HOUR_NS) != 0);
    // The first and the last hour of all times are cut off by their ends.
    let end = match wanted.max.checked_add(1) {
        Some(end) => end.div_euclid(HOUR_NS),
        None => i64::MAX.div_euclid(HOUR_NS) + 1,
    };
    let first = if wanted.min == i64::MIN { i64::MIN.div_euclid(HOUR_NS) } else { first };
    first..end.max(first)
}

/// Returns when an hour begins.
fn start(hour: i64) -> i64 {
    hour.saturating_mul(HOUR_NS)
}

/// Returns the last time before an hour.
fn last(hour: i64) -> i64 {
    hour.checked_mul(HOUR_NS).map_or(i64::MAX, |start| start - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_hours_are_those_of_which_all_times_are_wanted() {
        let hour = HOUR_NS;
        let first = i64::MIN.div_euclid(hour);
        let end = i64::MAX.div_euclid(hour) + 1;
        for (min, max, expected) in [
            (0, hour - 1, 0..1),
            (1, hour - 1, 1..1),
            (0, hour - 2, 0..0),
            (-hour, 3 * hour, -1..3),
            (1 - hour, 3 * hour + 5, 0..3),
            (5, 3, 1..1),
            (i64::MIN, i64::MAX, first..end),
            (i64::MIN, 0, first..0),
            (7 * hour, i64::MAX, 7..end),
            (i64::MAX, i64::MIN, end..end),
        ] {
            assert_eq!(whole_hours(TimeRange::new(min, max)), expected, "{min} to {max}");
        }
        assert_eq!((start(first), last(end)), (i64::MIN, i64::MAX));
        assert_eq!((start(2), last(2)), (2 * hour, 2 * hour - 1));
    }
}
