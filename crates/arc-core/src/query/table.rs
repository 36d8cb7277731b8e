//! One table in one query: its files and buffers as a scan.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::{
    catalog::{Session, TableProvider},
    common::Result,
    datasource::TableType,
    logical_expr::{Expr, TableProviderFilterPushDown},
    physical_plan::{ExecutionPlan, empty::EmptyExec, union::UnionExec},
};

use super::{buffers, files};
use crate::view::TableView;

/// A table as one query sees it.
#[derive(Debug)]
pub(super) struct Table {
    view: TableView,
    schema: SchemaRef,
}

impl Table {
    pub(super) fn new(view: TableView) -> Self {
        let schema = view.schema.arrow();
        Self { view, schema }
    }
}

#[async_trait]
impl TableProvider for Table {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut inputs: Vec<Arc<dyn ExecutionPlan>> = Vec::with_capacity(2);
        if !self.view.files.is_empty() {
            inputs.push(files::scan(state, &self.schema, &self.view.files, projection)?);
        }
        if !self.view.buffers.is_empty() {
            inputs.push(buffers::scan(&self.schema, &self.view.buffers, projection)?);
        }
        match inputs.len() {
            0 => {
                let schema = datafusion::physical_plan::project_schema(&self.schema, projection)?;
                Ok(Arc::new(EmptyExec::new(schema)))
            }
            _ => UnionExec::try_new(inputs),
        }
    }
}
