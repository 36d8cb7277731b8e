//! A table of which only the newest rows are wanted, as DataFusion plans it.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::{
    catalog::{Session, TableProvider},
    common::{DFSchema, Result},
    datasource::TableType,
    logical_expr::{Expr, utils::conjunction},
    physical_expr::{PhysicalExpr, expressions::Column},
    physical_plan::{ExecutionPlan, filter::FilterExec, projection::ProjectionExec},
};
use futures::future::{self, BoxFuture};

use super::{
    super::{
        deletes, merge,
        part::Part,
        table::{Choice, QueriedTable},
    },
    exec::LatestExec,
    filters::SortedConditions,
    index::can_be_key,
    job::{FilePart, JobPart, NewestRowsJob, PartRows, RowCondition, WantedNewest},
};
use crate::model::{DataFile, TIME_COLUMN};

/// What a statement wants of a table.
#[derive(Debug, Clone)]
pub(super) struct WantedOfTable {
    pub(super) newest: WantedNewest,
    /// Columns of the key, as indices in the table's schema.
    pub(super) keys: Vec<usize>,
    /// What rows must meet to count; each is one condition.
    pub(super) filters: Vec<Expr>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Latest {
    /// A [`QueriedTable`].
    table: Arc<dyn TableProvider>,
    wanted: WantedOfTable,
}

impl Latest {
    pub(super) fn new(table: Arc<dyn TableProvider>, wanted: WantedOfTable) -> Self {
        Self { table, wanted }
    }
}

// Written out instead of by `async_trait`; see "Futures" in `query`.
impl TableProvider for Latest {
    fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn scan<'a, 'b, 'c, 'd, 'f>(
        &'a self,
        state: &'b dyn Session,
        projection: Option<&'c Vec<usize>>,
        _filters: &'d [Expr],
        limit: Option<usize>,
    ) -> BoxFuture<'f, Result<Arc<dyn ExecutionPlan>>>
    where
        'a: 'f,
        'b: 'f,
        'c: 'f,
        'd: 'f,
    {
        match self.plan(state, projection).transpose() {
            Some(plan) => Box::pin(future::ready(plan)),
            // More rows do no harm, but for those that no condition above takes out.
            None => self.table.scan(state, projection, &self.wanted.filters, limit),
        }
    }
}

impl Latest {
    /// Returns `None` where there is no way but the plain one.
    fn plan(&self, state: &dyn Session, projection: Option<&Vec<usize>>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let table: &dyn TableProvider = &*self.table;
        let Some(table) = table.downcast_ref::<QueriedTable>() else { return Ok(None) };
        if table.usable(state, &self.wanted.filters)?.len() != self.wanted.filters.len() {
            return Ok(None);
        }
        let planning = ScanPlanning::new(state, table, &self.wanted, projection)?;
        planning.map(|planning| planning.plan()).transpose()
    }
}

/// A scan in the making.
struct ScanPlanning<'a> {
    state: &'a dyn Session,
    table: &'a QueriedTable,
    wanted: &'a WantedOfTable,
    schema: SchemaRef,
    /// Columns of the key: those wanted, and tags that conditions look at, so that one index serves
    /// many conditions.
    keys: Vec<usize>,
    time: usize,
    output: Vec<usize>,
    sorted: SortedConditions,
}

impl<'a> ScanPlanning<'a> {
    /// Returns `None` where there is no way but the plain one.
    fn new(
        state: &'a dyn Session,
        table: &'a QueriedTable,
        wanted: &'a WantedOfTable,
        projection: Option<&Vec<usize>>,
    ) -> Result<Option<Self>> {
        let schema = table.schema();
        let mut keys = wanted.keys.clone();
        if wanted.newest == WantedNewest::OfEachKey {
            keys.extend(tags_of(table, &wanted.filters)?.into_iter().filter(|tag| !wanted.keys.contains(tag)));
        }
        let is_key = |name: &str| keys.iter().any(|key| schema.field(*key).name() == name);
        let sorted = SortedConditions::new(&wanted.filters, is_key);
        if !keys.iter().all(|key| can_be_key(schema.field(*key).data_type())) {
            return Ok(None);
        }
        let time = schema.index_of(TIME_COLUMN)?;
        let output = projection.cloned().unwrap_or_else(|| (0..schema.fields().len()).collect());
        Ok(Some(Self { state, table, wanted, schema, keys, time, output, sorted }))
    }

    fn plan(&self) -> Result<Arc<dyn ExecutionPlan>> {
        let Choice { mut plain, merged, on_primary_key } = self.table.choose(self.state, &self.wanted.filters)?;
        plain.sort_by_key(|part| std::cmp::Reverse(part.time_range().1));
        let mut parts = plain.iter().map(|part| self.part(part)).collect::<Result<Vec<_>>>()?;
        let mut inputs = Vec::new();
        if let Some(max_time) = merged.iter().map(|part| part.time_range().1).max() {
            let index = parts.partition_point(|part| part.max_time >= max_time);
            parts.insert(index, JobPart { max_time, rows: PartRows::Merged(0) });
            inputs.push(self.merge(&merged, on_primary_key)?);
        }
        let index_schema: SchemaRef = Arc::new(self.schema.project(&self.index_columns())?);
        let on_index = conjunction(self.sorted.on_key.iter().chain(&self.sorted.newer).cloned());
        let job = NewestRowsJob {
            newest: self.wanted.newest,
            key_names: self.keys.iter().map(|key| self.schema.field(*key).name().clone()).collect(),
            output_schema: Arc::new(self.schema.project(&self.output)?),
            on_index: on_index.map(|on_index| self.physical(on_index, &index_schema)).transpose()?,
            predicate: self.condition_of_all(&self.schema)?,
            cache: Arc::clone(self.table.cache()),
            schema: Arc::clone(&self.schema),
            keys: self.keys.clone(),
            output: self.output.clone(),
            index_schema,
            parts,
        };
        Ok(Arc::new(LatestExec::new(Arc::new(job), inputs)))
    }

    fn index_columns(&self) -> Vec<usize> {
        self.keys.iter().copied().chain([self.time]).collect()
    }

    fn part(&self, part: &Part<'_>) -> Result<JobPart> {
        let rows = match part {
            Part::File(file) => PartRows::File(Box::new(self.file(file)?)),
            Part::Buffer(buffer) => PartRows::Buffer(buffer.rows.clone()),
        };
        Ok(JobPart { max_time: part.time_range().1, rows })
    }

    fn file(&self, file: &Arc<DataFile>) -> Result<FilePart> {
        let deletes = deletes::of(file, &self.table.view().tombstones);
        let left = deletes::left(&deletes, &self.schema)?;
        let filters: Vec<Expr> = self.wanted.filters.iter().cloned().chain(left).collect();
        Ok(FilePart {
            file: Arc::clone(file),
            whole: deletes.is_empty() && self.sorted.others_hold_up_to(file.max_time),
            selective: !self.sorted.on_key.is_empty(),
            filter: self.condition(&filters)?,
        })
    }

    /// Returns the conditions, over the columns of the index and those that they look at beside.
    fn condition(&self, filters: &[Expr]) -> Result<Option<RowCondition>> {
        let Some(all) = conjunction(filters.iter().cloned()) else { return Ok(None) };
        let mut columns = self.index_columns();
        for column in all.column_refs() {
            let column = self.schema.index_of(&column.name)?;
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        let schema = Arc::new(self.schema.project(&columns)?);
        Ok(Some(RowCondition { holds: self.physical(all, &schema)?, columns }))
    }

    fn condition_of_all(&self, schema: &SchemaRef) -> Result<Option<Arc<dyn PhysicalExpr>>> {
        conjunction(self.wanted.filters.iter().cloned()).map(|all| self.physical(all, schema)).transpose()
    }

    fn physical(&self, condition: Expr, schema: &Schema) -> Result<Arc<dyn PhysicalExpr>> {
        self.state.create_physical_expr(condition, &DFSchema::try_from(schema.clone())?)
    }

    /// Returns the rows of late parts and those below them that count, with the columns that a job
    /// asks for.
    fn merge(&self, parts: &[Part<'_>], on_primary_key: Option<Expr>) -> Result<Arc<dyn ExecutionPlan>> {
        let kept: Vec<usize> = self.output.iter().copied().chain(self.index_columns()).collect();
        let looked_at = self.wanted.filters.iter().flat_map(Expr::column_refs);
        let mut read = looked_at.map(|column| Ok(self.schema.index_of(&column.name)?)).collect::<Result<Vec<_>>>()?;
        read.extend(&kept);
        read.sort_unstable();
        read.dedup();
        let mut rows = merge::scan(self.state, self.table.view(), parts, Some(&read), on_primary_key)?;
        if let Some(all) = self.condition_of_all(&rows.schema())? {
            rows = Arc::new(FilterExec::try_new(all, rows)?);
        }
        let columns = kept.iter().filter_map(|column| {
            let (name, index) = (self.schema.field(*column).name(), read.binary_search(column).ok()?);
            Some((Arc::new(Column::new(name, index)) as Arc<dyn PhysicalExpr>, name.clone()))
        });
        Ok(Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), rows)?))
    }
}

/// Returns the tags that conditions look at which look at nothing but tags.
fn tags_of(table: &QueriedTable, filters: &[Expr]) -> Result<Vec<usize>> {
    let schema = &table.view().schema;
    let is_tag = |name: &str| schema.tags().any(|tag| &*tag.name == name);
    let mut tags = Vec::new();
    for filter in filters {
        let columns = filter.column_refs();
        if columns.iter().all(|column| is_tag(&column.name)) {
            for column in columns {
                let tag = table.schema().index_of(&column.name)?;
                if !tags.contains(&tag) {
                    tags.push(tag);
                }
            }
        }
    }
    tags.sort_unstable();
    Ok(tags)
}
