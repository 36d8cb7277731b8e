//! A scan of data files as bytes: all that another node needs to make the very same scan.
//!
//! Owns these bytes, which only nodes of one version exchange. Data files never change, so that the
//! manifest's record of each of them is enough to read it: no node asks another one's catalog.

use std::{ops::Range, sync::Arc};

use arrow::{
    compute::SortOptions,
    datatypes::{Schema, SchemaRef},
};
use datafusion::{
    common::{
        Result, Statistics, internal_datafusion_err,
        tree_node::{Transformed, TransformedResult, TreeNode},
    },
    datasource::{
        listing::PartitionedFile,
        physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder, FileSource},
        source::{DataSource, DataSourceExec},
    },
    execution::TaskContext,
    physical_expr::{
        PhysicalExpr, PhysicalSortExpr,
        expressions::DynamicFilterPhysicalExpr,
        projection::{ProjectionExpr, ProjectionExprs},
    },
    physical_plan::{ExecutionPlan, SortOrderPushdownResult},
};
use datafusion_proto::{
    physical_plan::{PhysicalExtensionCodec, PhysicalPlanDecodeContext, PhysicalProtoConverterExtension},
    protobuf,
};
use prost::Message;

use super::super::{
    error::external,
    files::{self, WantedRows},
    session, statistics, texts,
    times::{TimeRange, TimedSource},
};
use crate::{Error, model::DataFile};

/// The generation of a dynamic filter that nothing was put into.
const WAITING: u64 = 1;

/// A scan.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ScanMessage {
    /// The columns of the table.
    #[prost(message, optional, tag = "1")]
    schema: Option<protobuf::Schema>,
    /// The files of each partition.
    #[prost(message, repeated, tag = "2")]
    partitions: Vec<PartitionMessage>,
    #[prost(sint64, tag = "3")]
    min_time: i64,
    #[prost(sint64, tag = "4")]
    max_time: i64,
    #[prost(bool, tag = "5")]
    few: bool,
    /// What rows must meet beside that, over the table's columns.
    #[prost(message, optional, tag = "6")]
    conditions: Option<protobuf::PhysicalExprNode>,
    /// The columns of the scan, over the table's.
    #[prost(message, repeated, tag = "7")]
    columns: Vec<ColumnMessage>,
    /// The order that rows are wanted in, if a sort above said so.
    #[prost(message, repeated, tag = "8")]
    order: Vec<SortMessage>,
    #[prost(uint64, optional, tag = "9")]
    limit: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct PartitionMessage {
    #[prost(message, repeated, tag = "1")]
    files: Vec<FileMessage>,
}

/// A file, or a part of its bytes: the row groups that begin there.
#[derive(Clone, PartialEq, Message)]
struct FileMessage {
    /// The manifest's record, as MessagePack.
    #[prost(bytes = "vec", tag = "1")]
    record: Vec<u8>,
    #[prost(int64, optional, tag = "2")]
    start: Option<i64>,
    #[prost(int64, optional, tag = "3")]
    end: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct ColumnMessage {
    #[prost(message, optional, tag = "1")]
    value: Option<protobuf::PhysicalExprNode>,
    #[prost(string, tag = "2")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct SortMessage {
    #[prost(message, optional, tag = "1")]
    value: Option<protobuf::PhysicalExprNode>,
    #[prost(bool, tag = "2")]
    descending: bool,
    #[prost(bool, tag = "3")]
    nulls_first: bool,
}

/// How expressions become bytes.
pub(super) struct Encoding<'a> {
    pub(super) codec: &'a dyn PhysicalExtensionCodec,
    pub(super) converter: &'a dyn PhysicalProtoConverterExtension,
}

impl Encoding<'_> {
    fn expression(&self, expression: &Arc<dyn PhysicalExpr>) -> Result<protobuf::PhysicalExprNode> {
        self.converter.physical_expr_to_proto(expression, self.codec)
    }
}

/// Returns the bytes of a scan.
pub(super) fn encode(config: &FileScanConfig, source: &TimedSource, encoding: &Encoding<'_>) -> Result<ScanMessage> {
    let (times, few) = source.wanted();
    let columns = source.projection().into_iter().flat_map(ProjectionExprs::iter);
    let columns = columns.map(|column| {
        let value = Some(encoding.expression(&column.expr)?);
        Ok(ColumnMessage { value, name: column.alias.clone() })
    });
    let order = source.order().iter().map(|sort| {
        let SortOptions { descending, nulls_first } = sort.options;
        Ok(SortMessage { value: Some(encoding.expression(&sort.expr)?), descending, nulls_first })
    });
    Ok(ScanMessage {
        schema: Some(source.table_schema().table_schema().as_ref().try_into()?),
        partitions: config.file_groups.iter().map(partition).collect::<Result<_>>()?,
        min_time: times.min,
        max_time: times.max,
        few,
        conditions: source.conditions().map(|it| encoding.expression(&filled_in(it)?)).transpose()?,
        columns: columns.collect::<Result<_>>()?,
        order: order.collect::<Result<_>>()?,
        limit: config.limit.map(|limit| limit as u64),
    })
}

/// Returns `conditions` with what a join of this node has found, in place of the filter that it fills.
///
/// The bytes of such a filter have what was found in the columns of the join, and they are read with
/// those of the scan. A filter that still waits travels as it is: its join may be in the same part.
fn filled_in(conditions: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
    let filled = conditions.transform_down(|condition| {
        Ok(match condition.downcast_ref::<DynamicFilterPhysicalExpr>() {
            Some(filter) if filter.snapshot_generation() > WAITING => Transformed::yes(filter.current()?),
            _ => Transformed::no(condition),
        })
    });
    filled.data()
}

fn partition(group: &FileGroup) -> Result<PartitionMessage> {
    let file = |listed: &PartitionedFile| {
        let file = described(listed)?;
        let record = rmp_serde::to_vec_named(&**file).map_err(|e| external(Error::internal(e.to_string())))?;
        let (start, end) = listed.range.as_ref().map(|range| (range.start, range.end)).unzip();
        Ok(FileMessage { record, start, end })
    };
    Ok(PartitionMessage { files: group.iter().map(file).collect::<Result<_>>()? })
}

/// Returns the record of a file in a scan.
pub(super) fn described(listed: &PartitionedFile) -> Result<&Arc<DataFile>> {
    listed.extension::<Arc<DataFile>>().ok_or_else(|| internal_datafusion_err!("a data file without its record"))
}

/// How bytes become expressions.
pub(super) struct Decoding<'a> {
    pub(super) context: &'a TaskContext,
    pub(super) codec: &'a dyn PhysicalExtensionCodec,
    pub(super) converter: &'a dyn PhysicalProtoConverterExtension,
}

impl Decoding<'_> {
    fn expression(&self, node: Option<&protobuf::PhysicalExprNode>, schema: &Schema) -> Result<Arc<dyn PhysicalExpr>> {
        let node = node.ok_or_else(|| internal_datafusion_err!("an expression is missing"))?;
        let context = PhysicalPlanDecodeContext::new(self.context, self.codec);
        self.converter.proto_to_physical_expr(node, schema, &context)
    }
}

/// Returns the scan that these bytes are of, as the planner makes it; files are read by this node.
pub(super) fn decode(message: &ScanMessage, decoding: &Decoding<'_>) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = message.schema.as_ref().ok_or_else(|| internal_datafusion_err!("a scan without columns"))?;
    let schema: SchemaRef = Arc::new(schema.try_into()?);
    let (groups, files) = listed(message, &schema)?;
    let files: Vec<&Arc<DataFile>> = files.iter().collect();
    let known = files.iter().map(|file| statistics::of_file(file, &schema, None)).collect::<Vec<_>>();
    let total = match known.is_empty() {
        true => Statistics::new_unknown(&schema),
        false => Statistics::try_merge_iter(&known, &schema)?,
    };
    let limit = message.limit.map(usize::try_from).transpose();
    let config = FileScanConfigBuilder::new(session::data_url()?, source(message, &schema, decoding)?)
        .with_file_groups(groups)
        .with_statistics(total)
        .with_limit(limit.map_err(|e| external(Error::internal(e.to_string())))?)
        .with_expr_adapter(texts::adapter(&schema, files.iter().map(|file| &***file)))
        .build();
    in_order(config, message, decoding)
}

/// Returns the scan, told in which order its rows are wanted.
fn in_order(config: FileScanConfig, message: &ScanMessage, decoding: &Decoding<'_>) -> Result<Arc<dyn ExecutionPlan>> {
    let scan = DataSourceExec::from_data_source(config.clone());
    if message.order.is_empty() {
        return Ok(scan);
    }
    let order = message.order.iter().map(|sort| {
        let options = SortOptions { descending: sort.descending, nulls_first: sort.nulls_first };
        Ok(PhysicalSortExpr::new(decoding.expression(sort.value.as_ref(), &scan.schema())?, options))
    });
    match config.try_pushdown_sort(&order.collect::<Result<Vec<_>>>()?)? {
        SortOrderPushdownResult::Inexact { inner } => Ok(Arc::new(DataSourceExec::new(inner))),
        SortOrderPushdownResult::Exact { .. } | SortOrderPushdownResult::Unsupported => Ok(scan),
    }
}

/// Returns the files of each partition as a scan lists them, and those that there are.
fn listed(message: &ScanMessage, schema: &SchemaRef) -> Result<(Vec<FileGroup>, Vec<Arc<DataFile>>)> {
    let mut files = Vec::new();
    let groups = message.partitions.iter().map(|partition| {
        let listed = partition.files.iter().map(|sent| {
            let file: DataFile = rmp_serde::from_slice(&sent.record)
                .map_err(|e| internal_datafusion_err!("the record of a data file cannot be read: {e}"))?;
            let file = Arc::new(file);
            let mut listed = files::list_plain(&file, statistics::of_file(&file, schema, None))?;
            if let Some(Range { start, end }) = sent.start.zip(sent.end).map(|(start, end)| start..end) {
                listed = listed.with_range(start, end);
            }
            files.push(file);
            Ok(listed)
        });
        Ok(FileGroup::new(listed.collect::<Result<Vec<_>>>()?))
    });
    let groups = groups.collect::<Result<Vec<_>>>()?;
    Ok((groups, files))
}

fn source(message: &ScanMessage, schema: &SchemaRef, decoding: &Decoding<'_>) -> Result<Arc<dyn FileSource>> {
    let times = TimeRange::new(message.min_time, message.max_time);
    let wanted = WantedRows { times, few: message.few };
    let runtime = decoding.context.runtime_env();
    let mut timed = files::timed_source((decoding.context.session_config(), &runtime), schema, wanted)?;
    if let Some(conditions) = &message.conditions {
        timed = timed.with_conditions(decoding.expression(Some(conditions), schema)?);
    }
    let columns = message.columns.iter().map(|column| {
        let value = decoding.expression(column.value.as_ref(), schema)?;
        Ok(ProjectionExpr::new(value, column.name.clone()))
    });
    let columns = ProjectionExprs::new(columns.collect::<Result<Vec<_>>>()?);
    let projected = timed.try_pushdown_projection(&columns)?;
    projected.ok_or_else(|| internal_datafusion_err!("a scan that takes no projection"))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field};
    use datafusion::physical_expr::{
        expressions::{col, in_list, lit},
        utils::collect_columns,
    };
    use datafusion_proto::physical_plan::DeduplicatingProtoConverter;
    use object_store::memory::InMemory;

    use super::{
        super::{codec::ScanCodec, leaf::scanned},
        *,
    };

    fn file(path: &str) -> DataFile {
        DataFile {
            path: path.to_owned(),
            bytes: 10,
            crc32c: 7,
            tail: None,
            rows: 1,
            min_time: 0,
            max_time: 1,
            min_seq: 1,
            max_seq: 1,
            deleted_seq: 0,
            time_unit: crate::FileTimeUnit::default(),
            hourly: None,
            late: false,
            sorted_by: vec!["time".to_owned()],
            columns: Vec::new(),
        }
    }

    fn message(record: Vec<u8>) -> ScanMessage {
        let schema = Schema::new(vec![Field::new("x", DataType::Float64, true)]);
        let files = vec![FileMessage { record, start: Some(5), end: Some(-5) }];
        ScanMessage {
            schema: Some((&schema).try_into().unwrap()),
            partitions: vec![PartitionMessage { files }],
            min_time: 5,
            max_time: -5,
            limit: Some(u64::MAX),
            ..ScanMessage::default()
        }
    }

    fn refusal(message: &[u8]) -> String {
        let converter = DeduplicatingProtoConverter::default();
        ScanCodec.try_decode(message, &[], &TaskContext::default(), &converter).unwrap_err().to_string()
    }

    #[test]
    fn bytes_that_are_no_scan_are_refused() {
        let bytes = message(rmp_serde::to_vec_named(&file("data/d/t/a.parquet")).unwrap()).encode_to_vec();
        for end in 0..bytes.len() {
            refusal(bytes.get(..end).unwrap_or_default());
        }
        for index in 0..bytes.len() {
            let mut other = bytes.clone();
            other.iter_mut().skip(index).take(1).for_each(|byte| *byte ^= 0x55);
            refusal(&other);
        }
        assert!(refusal(&message(vec![1, 2, 3]).encode_to_vec()).contains("record of a data file"));
    }

    /// Returns the conditions of a scan that has these, on the other side.
    fn arrived(conditions: Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Arc<dyn PhysicalExpr> {
        let context = TaskContext::default();
        let wanted = WantedRows { times: TimeRange::ALL, few: false };
        let runtime = context.runtime_env();
        runtime.register_object_store(session::data_url().unwrap().as_ref(), Arc::new(InMemory::new()));
        let source = files::timed_source((context.session_config(), &runtime), schema, wanted)
            .unwrap()
            .with_conditions(conditions);
        let config = FileScanConfigBuilder::new(session::data_url().unwrap(), Arc::new(source.clone())).build();
        let converter = DeduplicatingProtoConverter::default();
        let sent = encode(&config, &source, &Encoding { codec: &ScanCodec, converter: &converter }).unwrap();
        let scan = decode(&sent, &Decoding { context: &context, codec: &ScanCodec, converter: &converter }).unwrap();
        scanned(&scan).and_then(|(_, source)| source.conditions()).unwrap()
    }

    #[test]
    fn what_a_join_found_arrives_in_the_columns_of_the_scan() {
        let schema = Arc::new(Schema::new(vec![
            Field::new("plant", DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)), true),
            Field::new("x", DataType::Float64, true),
        ]));
        let of_join = Schema::new(vec![Field::new("x", DataType::Float64, true)]);
        let column = col("x", &of_join).unwrap();
        let filter = Arc::new(DynamicFilterPhysicalExpr::new(vec![Arc::clone(&column)], lit(true)));
        let pushed = Arc::clone(&filter).with_new_children(vec![col("x", &schema).unwrap()]).unwrap();

        let waiting = arrived(Arc::clone(&pushed), &schema);
        assert!(waiting.downcast_ref::<DynamicFilterPhysicalExpr>().is_some(), "{waiting}");

        filter.update(in_list(column, vec![lit(0.5), lit(1.5)], &false, &of_join).unwrap()).unwrap();
        let filled = arrived(pushed, &schema);
        assert_eq!(filled.to_string(), "x@1 IN (SET) ([0.5, 1.5])");
        assert_eq!(collect_columns(&filled).iter().next().unwrap().index(), 1);
    }

    #[test]
    fn a_path_never_leaves_the_store() {
        for path in ["../../etc/passwd", "data/../../secret", "/etc//passwd", ""] {
            let record = rmp_serde::to_vec_named(&file(path)).unwrap();
            let refused = refusal(&message(record).encode_to_vec());
            assert!(!refused.is_empty(), "{path}");
        }
    }
}
