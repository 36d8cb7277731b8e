//! Which parts of a plan may be executed anywhere, and the plan with a cut above each of them.
//!
//! A part is a scan of data files, and above it operators that compute each partition by itself:
//! what they give for a partition depends on nothing but that partition. And whatever is above a
//! part takes its rows in any number of partitions: DataFusion asks for one partition or for some
//! order of rows in them where it needs that, and both are kept. So neither how files are divided
//! nor where they are read makes a difference, and no row is read twice.
//!
//! A union puts the partitions of its inputs next to each other, so an operator of this kind above
//! a union is one above each of its inputs: what is scanned from files goes elsewhere with it, and
//! unflushed rows are computed here.

use std::sync::Arc;

use datafusion::{
    common::Result,
    execution::TaskContext,
    physical_expr::Partitioning,
    physical_plan::{
        ExecutionPlan, ExecutionPlanProperties,
        aggregates::{AggregateExec, AggregateMode},
        coalesce_partitions::CoalescePartitionsExec,
        filter::FilterExec,
        limit::LocalLimitExec,
        projection::ProjectionExec,
        repartition::RepartitionExec,
        sorts::{sort::SortExec, sort_preserving_merge::SortPreservingMergeExec},
        union::UnionExec,
    },
};
use datafusion_distributed::{DistributedLeafExec, NetworkCoalesceExec};
use url::Url;

use super::{
    super::times::TimeRange,
    codec::{over, scan_survives, stock, survives},
    gather::GatherExec,
    leaf::scanned,
    places::{self, Placed},
};

/// How the parts of a plan are found and cut off.
pub(super) struct Cutting<'a> {
    pub(super) workers: &'a [Url],
    /// Bytes of data files below which a part stays here.
    pub(super) min_bytes: u64,
    /// Partitions that a worker reads at once.
    pub(super) partitions: usize,
    /// What operators are compared in.
    pub(super) context: &'a TaskContext,
    /// How many parts were cut off, and how many stayed here though they are large enough.
    pub(super) cut: usize,
    pub(super) kept: usize,
}

/// What was found of a plan.
enum PlanPart {
    /// It may be executed anywhere.
    Part(Arc<dyn ExecutionPlan>),
    /// Inputs of a union, of which some may.
    Union(Vec<PlanPart>),
    /// It is executed here; below it all is cut.
    Here(Arc<dyn ExecutionPlan>),
}

impl Cutting<'_> {
    /// Returns the plan with a cut above each part that pays.
    pub(super) fn cut(&mut self, plan: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        let found = self.find(plan)?;
        self.close(found)
    }

    fn find(&mut self, plan: &Arc<dyn ExecutionPlan>) -> Result<PlanPart> {
        let stock = stock(plan);
        if scanned(&stock).is_some() {
            return Ok(match self.is_worth_it(&stock)? {
                true => PlanPart::Part(stock),
                false => PlanPart::Here(Arc::clone(plan)),
            });
        }
        let children = plan.children();
        if stock.is::<UnionExec>() {
            let found = children.into_iter().map(|child| self.find(child)).collect::<Result<Vec<_>>>()?;
            return match found.iter().all(|found| matches!(found, PlanPart::Here(_))) {
                true => self.rebuilt(plan, found).map(PlanPart::Here),
                false => Ok(PlanPart::Union(found)),
            };
        }
        match children.as_slice() {
            [] => Ok(PlanPart::Here(Arc::clone(plan))),
            [child] if is_by_partition(plan) => {
                let below = self.find(child)?;
                self.above(plan, below)
            }
            _ => {
                let found = children.into_iter().map(|child| self.find(child)).collect::<Result<Vec<_>>>()?;
                self.rebuilt(plan, found).map(PlanPart::Here)
            }
        }
    }

    /// Returns an operator that computes partitions by themselves above what was found.
    fn above(&mut self, node: &Arc<dyn ExecutionPlan>, below: PlanPart) -> Result<PlanPart> {
        Ok(match below {
            // Of one partition a limit holds as it is, so that only its rows may go on.
            PlanPart::Part(part) if is_limited(&part) => PlanPart::Here(over(node, vec![self.sent(part)?])?),
            PlanPart::Part(part) if is_round_robin(node) || survives(node, self.context)? => {
                PlanPart::Part(over(node, vec![part])?)
            }
            PlanPart::Part(part) => {
                tracing::debug!(operator = node.name(), "an operator stays here: its bytes say something else");
                PlanPart::Here(over(node, vec![self.sent(part)?])?)
            }
            // It spreads the rows of the union: of its inputs each is spread as it is.
            PlanPart::Union(inputs) if is_round_robin(node) => PlanPart::Union(inputs),
            PlanPart::Union(inputs) if have_one_schema(node, &inputs) => {
                PlanPart::Union(inputs.into_iter().map(|input| self.above(node, input)).collect::<Result<_>>()?)
            }
            other => PlanPart::Here(over(node, vec![self.close(other)?])?),
        })
    }

    fn rebuilt(&mut self, plan: &Arc<dyn ExecutionPlan>, found: Vec<PlanPart>) -> Result<Arc<dyn ExecutionPlan>> {
        let before: Vec<_> = plan.children().into_iter().map(Arc::clone).collect();
        let children = found.into_iter().map(|found| self.close(found)).collect::<Result<Vec<_>>>()?;
        match before.iter().zip(&children).all(|(before, after)| Arc::ptr_eq(before, after)) {
            true => Ok(Arc::clone(plan)),
            false => over(plan, children),
        }
    }

    fn close(&mut self, found: PlanPart) -> Result<Arc<dyn ExecutionPlan>> {
        match found {
            PlanPart::Here(plan) => Ok(plan),
            PlanPart::Union(inputs) => {
                UnionExec::try_new(inputs.into_iter().map(|input| self.close(input)).collect::<Result<_>>()?)
            }
            PlanPart::Part(part) => self.sent(part),
        }
    }

    fn is_worth_it(&self, scan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
        let (bytes, files) = places::size(scan)?;
        Ok(files > 1 && bytes >= self.min_bytes && scan_survives(scan, self.context)?)
    }

    /// Returns what takes the place of a part: the same rows, from workers.
    fn sent(&mut self, part: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        let Placed { workers, scans } = match self.min_bytes == 0 || is_reduced(&part) {
            true => places::place(leaf(&part), self.workers, self.partitions)?,
            false => {
                self.kept += 1;
                return Ok(part);
            }
        };
        if scans.len() < 2 {
            self.kept += 1;
            return Ok(part);
        }
        self.cut += 1;
        let tasks = workers.len();
        let first = scans.first().map_or_else(|| Arc::clone(leaf(&part)), Arc::clone);
        let divided = Arc::new(DistributedLeafExec::try_new(first, scans)?);
        let cut = NetworkCoalesceExec::try_new(to_send(&part, divided)?, tasks, 1)?;
        let cut: Arc<dyn ExecutionPlan> = Arc::new(GatherExec(Arc::new(cut)));
        if part.output_partitioning().partition_count() > 1 {
            return Ok(cut);
        }
        // What is above was planned for one partition.
        Ok(match part.output_ordering() {
            Some(order) => Arc::new(SortPreservingMergeExec::new(order.clone(), cut).with_fetch(part.fetch())),
            None => Arc::new(CoalescePartitionsExec::new(cut).with_fetch(part.fetch())),
        })
    }
}

/// Returns whether an operator computes each partition of its input by itself, and whatever is
/// above it takes its rows in any number of partitions.
fn is_by_partition(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let plan = stock(plan);
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        return *aggregate.mode() == AggregateMode::Partial;
    }
    if let Some(sort) = plan.downcast_ref::<SortExec>() {
        // With a limit: the sort of all rows takes the memory of this node for what others send.
        return sort.fetch().is_some() && (sort.preserve_partitioning() || has_one_partition(&plan));
    }
    plan.is::<FilterExec>() || plan.is::<ProjectionExec>() || plan.is::<LocalLimitExec>() || is_round_robin(&plan)
}

fn has_one_partition(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.children().into_iter().all(|child| child.output_partitioning().partition_count() == 1)
}

/// Returns whether a part is one partition of a limited number of rows.
fn is_limited(part: &Arc<dyn ExecutionPlan>) -> bool {
    part.output_partitioning().partition_count() == 1 && part.fetch().is_some()
}

/// Returns whether the inputs of a union have the very columns that it hands to `node`.
fn have_one_schema(node: &Arc<dyn ExecutionPlan>, inputs: &[PlanPart]) -> bool {
    let schema = |found: &PlanPart| match found {
        PlanPart::Part(plan) | PlanPart::Here(plan) => Some(plan.schema()),
        PlanPart::Union(_) => None,
    };
    let expected = node.children().first().map(|child| child.schema());
    inputs.iter().all(|input| schema(input) == expected)
}

/// Returns whether an operator only spreads rows over partitions.
fn is_round_robin(plan: &Arc<dyn ExecutionPlan>) -> bool {
    stock(plan).downcast_ref::<RepartitionExec>().is_some_and(|repartition| {
        matches!(repartition.partitioning(), Partitioning::RoundRobinBatch(_)) && !repartition.preserve_order()
    })
}

/// Returns whether fewer rows come out of a part than it reads: others are read sooner here than
/// sent here.
fn is_reduced(part: &Arc<dyn ExecutionPlan>) -> bool {
    if let Some((config, source)) = scanned(part) {
        let (times, _) = source.wanted();
        return config.limit.is_some() || source.conditions().is_some() || times != TimeRange::ALL;
    }
    let is_plain = stock(part).is::<ProjectionExec>() || is_round_robin(part);
    !is_plain || part.children().into_iter().all(is_reduced)
}

/// Returns the scan below a part.
fn leaf(part: &Arc<dyn ExecutionPlan>) -> &Arc<dyn ExecutionPlan> {
    match part.children().as_slice() {
        [child] => leaf(child),
        _ => part,
    }
}

/// Returns a part as it is sent, over its divided scan.
fn to_send(part: &Arc<dyn ExecutionPlan>, divided: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let children = part.children();
    let [child] = children.as_slice() else { return Ok(divided) };
    let below = to_send(child, divided)?;
    if is_round_robin(part) {
        return Ok(below);
    }
    match part.downcast_ref::<SortExec>() {
        // Each partition by itself, whatever there was one of before.
        Some(sort) => over(&(Arc::new(sort.clone().with_preserve_partitioning(true)) as _), vec![below]),
        None => over(&stock(part), vec![below]),
    }
}
