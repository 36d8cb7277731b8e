//! Which parts are merged, in which order, and the plan that reads them.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::{
    catalog::Session,
    common::{DFSchema, Result, ScalarValue, Statistics},
    datasource::{
        physical_plan::{FileGroup, FileScanConfigBuilder},
        source::DataSourceExec,
        table_schema::TableSchema as ScanSchema,
    },
    logical_expr::Expr,
    physical_expr::{LexOrdering, PhysicalExpr, expressions::Column, utils::reassign_expr_columns},
    physical_plan::{ExecutionPlan, projection::ProjectionExec, union::UnionExec},
};
use parquet::arrow::RowNumber;

use super::{
    super::{
        deletes::{self, FilesWithDeletes},
        files,
        part::Part,
        session, statistics, texts,
    },
    buffered::RankedBuffers,
    exec::{HIDDEN_COLUMNS, MergeExec, sort_expressions},
    filter::OrderedFilter,
};
use crate::{
    model::{DataFile, TIME_COLUMN, TableSchema},
    view::{BufferPart, TableView},
};

/// Order of a row's part among parts. No column has such a name: control characters are refused.
const RANK: &str = "\u{1}rank";

/// Order of a row in its part.
const ROW: &str = "\u{1}row";

/// Returns the parts that can be scanned as they are, and those that must be merged, the latter in
/// order of version.
///
/// Rows that are not late never conflict with each other, so a part that no late part overlaps in
/// time is plain.
pub(in crate::query) fn split(parts: Vec<Part<'_>>) -> (Vec<Part<'_>>, Vec<Part<'_>>) {
    let (mut late, other): (Vec<_>, Vec<_>) = parts.into_iter().partition(Part::is_late);
    let (mut merged, plain): (Vec<_>, Vec<_>) =
        other.into_iter().partition(|part| late.iter().any(|late| late.overlaps(part)));
    // Buffers hold what is newer than any file, in order of arrival; the sort is stable.
    late.sort_by_key(|part| match part {
        Part::File(file) => (0, file.version()),
        Part::Buffer(_) => (1, (0, 0)),
    });
    merged.extend(late);
    (plain, merged)
}

/// Returns a plan for the merged rows of `parts` of a view, which are in order of version.
///
/// `on_identity` may look at tags and time only. It is applied before the merge, which has less to
/// sort then.
pub(in crate::query) fn scan(
    state: &dyn Session,
    view: &TableView,
    parts: &[Part<'_>],
    projection: Option<&Vec<usize>>,
    on_primary_key: Option<Expr>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let needed = Needed::new(&view.schema, projection)?;
    let on_primary_key = on_primary_key.map(|filter| needed.condition(state, filter)).transpose()?;
    let ranked =
        parts.iter().enumerate().map(|(index, part)| (if part.is_late() { index as u64 + 1 } else { 0 }, part));
    let (mut sorted, mut unsorted, mut buffered) = (Vec::new(), Vec::new(), Vec::new());
    for (rank, part) in ranked {
        match part {
            Part::File(file) if needed.is_sorted(file) => sorted.push((rank, *file)),
            Part::File(file) => unsorted.push((rank, *file)),
            Part::Buffer(buffer) => buffered.push((rank, *buffer)),
        }
    }
    let mut inputs: Vec<Arc<dyn ExecutionPlan>> = Vec::with_capacity(3);
    for (files, is_sorted) in [(sorted, true), (unsorted, false)] {
        // A delete of a table with primary keys looks at nothing else, so its columns are read in
        // any case.
        for group in deletes::groups(files, |(_, file)| file, &view.tombstones) {
            inputs.push(needed.scan_files(state, &group, is_sorted, on_primary_key.as_ref())?);
        }
    }
    if !buffered.is_empty() {
        inputs.push(needed.scan_buffers(&buffered, on_primary_key.as_slice())?);
    }
    let input = UnionExec::try_new(inputs)?;
    needed.project(Arc::new(MergeExec::try_new(input, needed.keys.clone())?), projection)
}

/// The columns that a merge reads: the primary key, and the fields asked for.
struct Needed {
    /// Names of the tags, in order of creation.
    tags: Vec<Arc<str>>,
    /// All columns of the table.
    table: SchemaRef,
    /// Indices into `table`, ascending.
    columns: Vec<usize>,
    /// Tags and time, as indices into `columns`.
    keys: Vec<usize>,
    /// `columns`, then the hidden ones.
    schema: SchemaRef,
}

impl Needed {
    fn new(table: &TableSchema, projection: Option<&Vec<usize>>) -> Result<Self> {
        let tags: Vec<Arc<str>> = table.tags().map(|tag| Arc::clone(&tag.name)).collect();
        let arrow = table.arrow();
        // The Arrow schema is time, then tags, then fields.
        let primary_key = 0..=tags.len();
        let asked = |index: &usize| projection.is_none_or(|wanted| wanted.contains(index));
        let columns: Vec<usize> =
            (0..arrow.fields().len()).filter(|index| primary_key.contains(index) || asked(index)).collect();
        let visible = arrow.project(&columns)?;
        let names = tags.iter().map(|tag| &**tag).chain([TIME_COLUMN]);
        let keys = names.map(|name| Ok(visible.index_of(name)?)).collect::<Result<Vec<_>>>()?;
        let fields = visible.fields().iter().map(Arc::clone).chain([rank_field(), row_field()]);
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(Self { tags, table: arrow, columns, keys, schema })
    }

    /// Returns whether the rows of `file` are in order of (tags, time). A tag that the file lacks
    /// is null in all its rows, so that it changes no order.
    fn is_sorted(&self, file: &DataFile) -> bool {
        let has = |tag: &&Arc<str>| file.columns.iter().any(|column| *column.name == ***tag);
        let expected = self.tags.iter().filter(has).map(|tag| &**tag).chain([TIME_COLUMN]);
        expected.eq(file.sorted_by.iter().map(String::as_str))
    }

    /// Returns a scan with one partition for each file, of the rows that deletes have left and that
    /// meet a condition.
    fn scan_files(
        &self,
        state: &dyn Session,
        FilesWithDeletes { files: ranked, deletes }: &FilesWithDeletes<'_, (u64, &Arc<DataFile>)>,
        sorted: bool,
        condition: Option<&Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = ScanSchema::builder(Arc::clone(&self.table))
            .with_table_partition_cols(vec![rank_field()])
            .with_virtual_columns(vec![row_field()])
            .build();
        let scanned = Arc::clone(schema.table_schema());
        let groups = ranked.iter().map(|(rank, file)| self.group(*rank, file)).collect::<Result<Vec<_>>>()?;
        let (rank, row) = (self.table.fields().len(), self.table.fields().len() + 1);
        let primary_key = self.keys.iter().filter_map(|key| self.columns.get(*key).copied());
        let ordering = if sorted { sort_expressions(&scanned, primary_key.chain([rank, row])) } else { None };
        let projection = self.columns.iter().copied().chain([rank, row]).collect();
        let mut source = files::source(state.config_options(), state.runtime_env(), schema)?;
        if let Some(condition) = condition {
            // Whole files, row groups and pages are passed over by it.
            source = source.with_predicate(reassign_expr_columns(Arc::clone(condition), &scanned)?);
        }
        let config = FileScanConfigBuilder::new(session::data_url()?, Arc::new(source))
            .with_file_groups(groups)
            .with_statistics(Statistics::new_unknown(&scanned))
            .with_output_ordering(ordering.into_iter().collect())
            .with_projection_indices(Some(projection))?
            .with_expr_adapter(texts::adapter(&self.table, ranked.iter().map(|(_, file)| &***file)))
            .build();
        let scan: Arc<dyn ExecutionPlan> = DataSourceExec::from_data_source(config);
        let left = deletes::left(deletes, &self.schema)?.into_iter().map(|left| self.condition(state, left));
        let conditions =
            left.chain(condition.map(|condition| Ok(Arc::clone(condition)))).collect::<Result<Arc<[_]>>>()?;
        if conditions.is_empty() {
            return Ok(scan);
        }
        let order = sorted.then(|| self.order()).flatten();
        Ok(Arc::new(OrderedFilter::try_new(scan, conditions, order)?))
    }

    /// Returns the order that a merge asks for, of rows with `schema`.
    fn order(&self) -> Option<LexOrdering> {
        let visible = self.columns.len();
        sort_expressions(&self.schema, self.keys.iter().copied().chain(visible..visible + HIDDEN_COLUMNS))
    }

    fn group(&self, rank: u64, file: &DataFile) -> Result<FileGroup> {
        let values = vec![ScalarValue::UInt64(Some(rank))];
        Ok(FileGroup::new(vec![files::list(file, values, statistics::of_file(file, &self.table, None))?]))
    }

    /// Returns a condition over `schema`.
    fn condition(&self, state: &dyn Session, condition: Expr) -> Result<Arc<dyn PhysicalExpr>> {
        state.create_physical_expr(condition, &DFSchema::try_from(Arc::clone(&self.schema))?)
    }

    fn scan_buffers(
        &self,
        ranked: &[(u64, &BufferPart)],
        conditions: &[Arc<dyn PhysicalExpr>],
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let over_table = |condition: &Arc<dyn PhysicalExpr>| reassign_expr_columns(Arc::clone(condition), &self.table);
        let conditions = conditions.iter().map(over_table).collect::<Result<Vec<_>>>()?;
        let source = RankedBuffers::new(ranked, &self.table, conditions, &self.columns, &self.schema);
        Ok(DataSourceExec::from_data_source(source))
    }

    /// Returns `plan`, which has `columns`, with the columns asked for in the order asked for.
    fn project(&self, plan: Arc<dyn ExecutionPlan>, projection: Option<&Vec<usize>>) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(wanted) = projection.filter(|wanted| **wanted != self.columns) else { return Ok(plan) };
        let schema = plan.schema();
        let expressions = wanted.iter().filter_map(|index| {
            let position = self.columns.binary_search(index).ok()?;
            let name = schema.fields().get(position)?.name().clone();
            Some((Arc::new(Column::new(&name, position)) as _, name))
        });
        Ok(Arc::new(ProjectionExec::try_new(expressions.collect::<Vec<_>>(), plan)?))
    }
}

fn rank_field() -> FieldRef {
    Arc::new(Field::new(RANK, DataType::UInt64, false))
}

/// Returns the column that counts the rows of a file.
pub(in crate::query) fn row_field() -> FieldRef {
    Arc::new(Field::new(ROW, DataType::Int64, false).with_extension_type(RowNumber))
}
