//! Columns of data files that their table has as text by now, and had as numbers or booleans when
//! the file was written.
//!
//! DataFusion casts columns whose type in a file is another than in the table. Its text of a float
//! is not ours, so those casts are replaced. Only scans that meet such a file differ from stock
//! ones.

use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use arrow::{
    array::RecordBatch,
    datatypes::{DataType, Field, FieldRef, Schema, SchemaRef},
};
use datafusion::{
    common::{
        DataFusionError, Result,
        tree_node::{Transformed, TransformedResult, TreeNode},
    },
    logical_expr::ColumnarValue,
    physical_expr::{
        PhysicalExpr,
        expressions::{CastExpr, Column},
    },
    physical_expr_adapter::{DefaultPhysicalExprAdapter, PhysicalExprAdapter, PhysicalExprAdapterFactory},
};

use crate::{
    buffer::converted,
    model::{DataFile, StatisticsValue, may_become},
};

/// Returns what a scan of these files needs to read them as `schema` has its columns, if that is
/// anything.
pub(super) fn adapter<'f>(
    schema: &Schema,
    files: impl IntoIterator<Item = &'f DataFile>,
) -> Option<Arc<dyn PhysicalExprAdapterFactory>> {
    let texts: Vec<&str> =
        schema.fields().iter().filter(|field| *field.data_type() == DataType::Utf8).map(|f| &**f.name()).collect();
    // A column of text has bounds, which are texts; one of floats may have none.
    let is_other = |file: &DataFile| {
        file.columns.iter().any(|column| {
            !matches!(column.min, Some(StatisticsValue::Text { .. }))
                && column.null_count < file.rows
                && texts.contains(&column.name.as_str())
        })
    };
    files.into_iter().any(is_other).then(|| Arc::new(AsTexts) as _)
}

#[derive(Debug)]
struct AsTexts;

impl PhysicalExprAdapterFactory for AsTexts {
    fn create(&self, table: SchemaRef, file: SchemaRef) -> Result<Arc<dyn PhysicalExprAdapter>> {
        let stock = DefaultPhysicalExprAdapter::new(Arc::clone(&table), Arc::clone(&file));
        Ok(Arc::new(Adapter { stock, table, file }))
    }
}

#[derive(Debug)]
struct Adapter {
    stock: DefaultPhysicalExprAdapter,
    table: SchemaRef,
    file: SchemaRef,
}

impl PhysicalExprAdapter for Adapter {
    fn rewrite(&self, expr: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        let adapted = self.stock.rewrite(expr)?;
        adapted.transform(|expr| Ok(self.text_of(&expr).map_or_else(|| Transformed::no(expr), Transformed::yes))).data()
    }
}

impl Adapter {
    /// Returns what stands for the cast of a column that has become text; one that a query asks for
    /// is of a column that is of the same type in the file.
    fn text_of(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<Arc<dyn PhysicalExpr>> {
        let cast = expr.downcast_ref::<CastExpr>()?;
        let column = cast.expr().downcast_ref::<Column>()?;
        let of = |schema: &Schema| schema.field_with_name(column.name()).ok().map(|field| field.data_type().clone());
        let (in_table, in_file) = (of(&self.table)?, of(&self.file)?);
        let is_text = in_table == DataType::Utf8 && *cast.cast_type() == in_table && may_become(&in_file, &in_table);
        is_text.then(|| Arc::new(Text(Arc::clone(cast.expr()))) as _)
    }
}

/// The values of a column as texts.
#[derive(Debug, Eq)]
struct Text(Arc<dyn PhysicalExpr>);

// Derived, the comparison would move what it compares, and with it goes the hash.
impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq(&other.0)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "text({})", self.0)
    }
}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl PhysicalExpr for Text {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let array = self.0.evaluate(batch)?.into_array(batch.num_rows())?;
        let texts = converted(&array, &DataType::Utf8).map_err(|e| DataFusionError::External(e.into()))?;
        Ok(ColumnarValue::Array(texts))
    }

    fn return_field(&self, input_schema: &Schema) -> Result<FieldRef> {
        let of = self.0.return_field(input_schema)?;
        Ok(Arc::new(Field::new(of.name(), DataType::Utf8, of.is_nullable())))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.0]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        match children.into_iter().next() {
            Some(child) => Ok(Arc::new(Self(child))),
            None => Ok(self),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "text(")?;
        self.0.fmt_sql(f)?;
        write!(f, ")")
    }
}
