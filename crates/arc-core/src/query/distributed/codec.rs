//! What of a part of a plan becomes bytes, and whether it stays the same on the way.
//!
//! Only DataFusion's own operators and the scan of data files travel. Ours that take the place of
//! an operator of DataFusion are sent as what they replaced, and the worker puts them in place
//! again by the same rules. Nothing is taken on trust: an operator travels only if what comes back
//! from its bytes is equal to it, expression by expression and function by function.

use std::sync::Arc;

use datafusion::{
    common::{
        Result, internal_datafusion_err, internal_err,
        tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion},
    },
    execution::TaskContext,
    physical_expr::{
        PhysicalExpr,
        expressions::{DynamicFilterPhysicalExpr, lit},
    },
    physical_plan::{
        ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions, aggregates::AggregateExec, displayable,
        empty::EmptyExec,
    },
};
use datafusion_distributed::DistributedCodec;
use datafusion_proto::{
    bytes::{physical_plan_from_bytes_with_proto_converter, physical_plan_to_bytes_with_proto_converter},
    physical_plan::{DeduplicatingProtoConverter, PhysicalExtensionCodec, PhysicalProtoConverterExtension},
};
use prost::Message;

use super::{
    super::{around::Around, runs::RunsExec},
    leaf::{SentScan, scanned},
    wire::{self, Decoding, Encoding, ScanMessage},
};

/// The codec of [`SentScan`], the one leaf that travels.
#[derive(Debug)]
pub(super) struct ScanCodec;

impl PhysicalExtensionCodec for ScanCodec {
    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let Some((config, source)) = node.downcast_ref::<SentScan>().and_then(|sent| scanned(sent.scan())) else {
            return internal_err!("{} has no form in which it could be sent", node.name());
        };
        let message = wire::encode(config, source, &Encoding { codec: self, converter })?;
        message.encode(buf).map_err(|e| internal_datafusion_err!("{e}"))
    }

    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if !inputs.is_empty() {
            return internal_err!("a scan that was sent has no input");
        }
        let message = ScanMessage::decode(buf).map_err(|e| internal_datafusion_err!("a scan cannot be read: {e}"))?;
        let scan = wire::decode(&message, &Decoding { context, codec: self, converter })?;
        Ok(Arc::new(SentScan::new(scan, Arc::default())))
    }
}

/// Returns `node` over other input.
pub(super) fn over(
    node: &Arc<dyn ExecutionPlan>,
    children: Vec<Arc<dyn ExecutionPlan>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    Arc::clone(node).replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
}

/// Returns the operator of DataFusion that `node` is, or stands for.
pub(super) fn stock(node: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    if let Some(runs) = node.downcast_ref::<RunsExec>() {
        return Arc::new(runs.partial().clone());
    }
    match node.downcast_ref::<Around>() {
        Some(around) => stock(around.inner()),
        None => Arc::clone(node),
    }
}

/// Returns whether an operator with one input is the same after it was sent.
pub(super) fn survives(node: &Arc<dyn ExecutionPlan>, context: &TaskContext) -> Result<bool> {
    let stock = stock(node);
    let children = stock.children();
    let [input] = children.as_slice() else { return Ok(false) };
    let alone = over(&stock, vec![Arc::new(EmptyExec::new(input.schema()))])?;
    let Ok(back) = there_and_back(&alone, context) else { return Ok(false) };
    is_same(&alone, &back)
}

/// Returns whether a scan is the same after it was sent. Its files are left out: they are records
/// of the manifest, and many.
pub(super) fn scan_survives(scan: &Arc<dyn ExecutionPlan>, context: &TaskContext) -> Result<bool> {
    let sent: Arc<dyn ExecutionPlan> = Arc::new(SentScan::new(super::places::without_files(scan)?, Arc::default()));
    let Ok(back) = there_and_back(&sent, context) else { return Ok(false) };
    is_same(&sent, &back)
}

/// Returns what a worker makes of a plan.
pub(super) fn there_and_back(plan: &Arc<dyn ExecutionPlan>, context: &TaskContext) -> Result<Arc<dyn ExecutionPlan>> {
    // As the library has it.
    let codec = DistributedCodec::new_combined_with_user(context.session_config());
    let converter = DeduplicatingProtoConverter::default();
    let bytes = physical_plan_to_bytes_with_proto_converter(Arc::clone(plan), &codec, &converter)?;
    physical_plan_from_bytes_with_proto_converter(&bytes, context, &codec, &converter)
}

/// Returns whether two operators do the same, whatever is below them.
fn is_same(one: &Arc<dyn ExecutionPlan>, other: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let shown = |plan: &Arc<dyn ExecutionPlan>| displayable(&**plan).set_show_schema(true).one_line().to_string();
    let (expressions, others) = (expressions(one)?, expressions(other)?);
    Ok(one.name() == other.name()
        && one.schema() == other.schema()
        && shown(one) == shown(other)
        && expressions == others
        && are_same_functions(one, other))
}

/// Returns the expressions of an operator. What is known only while it runs is left out.
fn expressions(plan: &Arc<dyn ExecutionPlan>) -> Result<Vec<Arc<dyn PhysicalExpr>>> {
    let mut found = Vec::new();
    plan.apply_expressions(&mut |expression| {
        let fixed = Arc::clone(expression).transform_down(|expression| {
            Ok(match expression.downcast_ref::<DynamicFilterPhysicalExpr>() {
                Some(_) => Transformed::yes(lit(true)),
                None => Transformed::no(expression),
            })
        });
        found.push(fixed.data()?);
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// Returns whether the aggregates of two operators are the same functions.
fn are_same_functions(one: &Arc<dyn ExecutionPlan>, other: &Arc<dyn ExecutionPlan>) -> bool {
    let of = |plan: &Arc<dyn ExecutionPlan>| {
        plan.downcast_ref::<AggregateExec>().map(|aggregate| aggregate.aggr_expr().to_vec()).unwrap_or_default()
    };
    let (one, other) = (of(one), of(other));
    one.len() == other.len()
        && one.iter().zip(&other).all(|(one, other)| {
            one == other
                && one.is_distinct() == other.is_distinct()
                && one.ignore_nulls() == other.ignore_nulls()
                && one.is_reversed() == other.is_reversed()
        })
}
