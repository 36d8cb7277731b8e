//! One table in one query: its files and buffers as a scan.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::{
    catalog::{Session, TableProvider},
    common::{DFSchema, Result},
    datasource::TableType,
    logical_expr::{Expr, TableProviderFilterPushDown, utils::conjunction},
    physical_plan::{ExecutionPlan, empty::EmptyExec, project_schema, union::UnionExec},
};
use futures::future::{self, BoxFuture};
use parking_lot::Mutex;

use super::{
    buffers, deletes,
    files::WantedRows,
    latest, merge,
    part::{self, Part},
    pruned::Pruned,
    times::TimeRange,
};
use crate::{model::TIME_COLUMN, view::TableView};

/// A table as one query sees it.
#[derive(Debug)]
pub(super) struct QueriedTable {
    view: TableView,
    schema: SchemaRef,
    cache: Arc<latest::NewestRowsCache>,
    /// What became of its data files, scan by scan.
    scans: Mutex<Vec<Pruned>>,
}

impl QueriedTable {
    pub(super) fn new(view: TableView, cache: Arc<latest::NewestRowsCache>) -> Self {
        let schema = view.schema.arrow();
        Self { view, schema, cache, scans: Mutex::default() }
    }

    pub(super) fn view(&self) -> &TableView {
        &self.view
    }

    /// Returns what is remembered of data files.
    pub(super) fn cache(&self) -> &Arc<latest::NewestRowsCache> {
        &self.cache
    }

    /// Returns what became of its data files, scan by scan.
    pub(super) fn scans(&self) -> Vec<Pruned> {
        self.scans.lock().clone()
    }

    /// Returns whether it is known that no row lacks a value of this column.
    pub(super) fn is_never_null(&self, column: &str) -> bool {
        self.parts().iter().all(|part| part.is_never_null(column))
    }

    fn parts(&self) -> Vec<Part<'_>> {
        let buffers = self.view.buffers.iter().filter(|buffer| buffer.row_count() > 0);
        let files = self.view.files.iter().filter(|file| !deletes::take_all(file, &self.view.tombstones));
        files.map(Part::File).chain(buffers.map(Part::Buffer)).collect()
    }

    /// Returns whether a filter looks at nothing but what identifies a row: rows that merge then
    /// pass it together.
    fn is_on_primary_key(&self, filter: &Expr) -> bool {
        let is_key = |name: &str| name == TIME_COLUMN || self.view.schema.tags().any(|tag| &*tag.name == name);
        filter.column_refs().into_iter().all(|column| is_key(&column.name))
    }

    /// Returns whether one of the filters looks at a tag.
    fn has_one_on_tags(&self, filters: &[Expr]) -> bool {
        let tags: Vec<&str> = self.view.schema.tags().map(|tag| &*tag.name).collect();
        filters.iter().flat_map(Expr::column_refs).any(|column| tags.contains(&column.name.as_str()))
    }

    /// Returns those of `filters` that can be applied to single rows here. One without a physical
    /// form, such as one that holds a subquery, is left to the plan above, which applies all of
    /// them in any case.
    pub(super) fn usable<'a>(&self, state: &dyn Session, filters: &'a [Expr]) -> Result<Vec<&'a Expr>> {
        let columns = DFSchema::try_from(Arc::clone(&self.schema))?;
        let has_form = |filter: &&Expr| state.create_physical_expr((*filter).clone(), &columns).is_ok();
        Ok(filters.iter().filter(has_form).collect())
    }

    /// Returns the parts in which rows may be that meet `filters`.
    pub(super) fn choose(&self, state: &dyn Session, filters: &[Expr]) -> Result<Choice<'_>> {
        let usable = self.usable(state, filters)?;
        let all = conjunction(usable.iter().map(|filter| (*filter).clone()));
        let parts = self.parts();
        let live = files_in(&parts);
        let on_time = conjunction(usable.iter().filter(|filter| is_on_time(filter)).map(|filter| (*filter).clone()));
        let parts = part::survivors(state, &self.schema, on_time.as_ref(), parts)?;
        let in_time = files_in(&parts);
        let choice = self.choose_among(state, &usable, all, parts)?;
        self.scans.lock().push(Pruned {
            files: self.view.files.len(),
            deleted: self.view.files.len() - live,
            by_time: live - in_time,
            by_values: in_time - files_in(&choice.plain) - files_in(&choice.merged),
        });
        Ok(choice)
    }

    fn choose_among<'a>(
        &self,
        state: &dyn Session,
        usable: &[&Expr],
        all: Option<Expr>,
        parts: Vec<Part<'a>>,
    ) -> Result<Choice<'a>> {
        if !self.view.schema.has_primary_key {
            let plain = part::survivors(state, &self.schema, all.as_ref(), parts)?;
            return Ok(Choice { plain, merged: Vec::new(), on_primary_key: None });
        }
        // A filter on a field must see merged rows, so it may not hide a part from the merge.
        let on_primary_key =
            usable.iter().filter(|filter| self.is_on_primary_key(filter)).map(|filter| (*filter).clone());
        let on_primary_key = conjunction(on_primary_key);
        let (plain, merged) = merge::split(part::survivors(state, &self.schema, on_primary_key.as_ref(), parts)?);
        let plain = part::survivors(state, &self.schema, all.as_ref(), plain)?;
        Ok(Choice { plain, merged, on_primary_key })
    }
}

fn is_on_time(filter: &Expr) -> bool {
    let columns = filter.column_refs();
    !columns.is_empty() && columns.iter().all(|column| column.name == TIME_COLUMN)
}

fn files_in(parts: &[Part<'_>]) -> usize {
    parts.iter().filter(|part| matches!(part, Part::File(_))).count()
}

/// What a scan reads, and how.
pub(super) struct Choice<'a> {
    /// Parts that are scanned as they are.
    pub(super) plain: Vec<Part<'a>>,
    /// Parts that are merged, in order of version.
    pub(super) merged: Vec<Part<'a>>,
    /// The filters that may be applied before the merge.
    pub(super) on_primary_key: Option<Expr>,
}

// Written out instead of by `async_trait`; see "Futures" in `query`.
impl TableProvider for QueriedTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        // A range of times is left to the scan, which need not look at the time of each row; see
        // `times`.
        let push_down = |filter: &&Expr| match TimeRange::of(filter) {
            Some(_) => TableProviderFilterPushDown::Exact,
            None => TableProviderFilterPushDown::Inexact,
        };
        Ok(filters.iter().map(push_down).collect())
    }

    fn scan<'a, 'b, 'c, 'd, 'f>(
        &'a self,
        state: &'b dyn Session,
        projection: Option<&'c Vec<usize>>,
        filters: &'d [Expr],
        _limit: Option<usize>,
    ) -> BoxFuture<'f, Result<Arc<dyn ExecutionPlan>>>
    where
        'a: 'f,
        'b: 'f,
        'c: 'f,
        'd: 'f,
    {
        Box::pin(future::ready(self.plan(state, projection, filters)))
    }
}

impl QueriedTable {
    fn plan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Choice { plain, merged, on_primary_key } = self.choose(state, filters)?;
        let TableView { schema, files, buffers, tombstones } = &self.view;
        tracing::debug!(
            database = %schema.database,
            table = %schema.table,
            parts = files.len() + buffers.len(),
            plain = plain.len(),
            merged = merged.len(),
            "planned a scan"
        );
        let (files, buffers) = by_kind(&plain);
        let wanted = WantedRows { times: TimeRange::of_all(filters), few: self.has_one_on_tags(filters) };
        let mut inputs: Vec<Arc<dyn ExecutionPlan>> = Vec::with_capacity(3);
        for group in deletes::groups(files, |file| file, tombstones) {
            inputs.push(group.scan(state, &self.schema, projection, wanted)?);
        }
        if !buffers.is_empty() {
            inputs.push(buffers::scan(state, &self.schema, &buffers, projection, wanted.times)?);
        }
        if !merged.is_empty() {
            inputs.push(merge::scan(state, &self.view, &merged, projection, on_primary_key)?);
        }
        if inputs.is_empty() {
            return Ok(Arc::new(EmptyExec::new(project_schema(&self.schema, projection)?)));
        }
        UnionExec::try_new(inputs)
    }
}

/// Returns the files and the buffers among `parts`.
fn by_kind<'a>(parts: &[Part<'a>]) -> (Vec<&'a Arc<crate::model::DataFile>>, Vec<&'a crate::view::BufferPart>) {
    let files = parts.iter().filter_map(|part| if let Part::File(file) = part { Some(*file) } else { None });
    let buffers = parts.iter().filter_map(|part| if let Part::Buffer(buffer) = part { Some(*buffer) } else { None });
    (files.collect(), buffers.collect())
}
