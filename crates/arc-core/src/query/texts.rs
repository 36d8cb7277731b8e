//! Columns of data files that their table has as text by now, and had as numbers or booleans when
//! the file was written, and times in another unit than nanoseconds.
//!
//! DataFusion casts columns whose type in a file is another than in the table. Its text of a float
//! is not ours, and of a time that is compared with a finer one it cuts the finer one: so those
//! casts are replaced. Only scans that meet such a file differ from stock ones.

use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use arrow::{
    array::RecordBatch,
    compute::{CastOptions, cast_with_options},
    datatypes::{DataType, Field, FieldRef, Schema, SchemaRef},
    util::display::FormatOptions,
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
    model::{DataFile, StatisticsValue, TIME_COLUMN, may_become, time_type},
};

const CHECKED: CastOptions<'_> = CastOptions { safe: false, format_options: FormatOptions::new() };

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
    let differs = |file: &DataFile| !file.time_unit.is_nanosecond() || is_other(file);
    files.into_iter().any(differs).then(|| Arc::new(AsInTable) as _)
}

#[derive(Debug)]
struct AsInTable;

impl PhysicalExprAdapterFactory for AsInTable {
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
        adapted
            .transform(|expr| Ok(self.converted(&expr).map_or_else(|| Transformed::no(expr), Transformed::yes)))
            .data()
    }
}

impl Adapter {
    /// Returns what stands for the cast of a column that has become text, or of the time; a cast
    /// that a query asks for is of a column that is of the same type in the file.
    fn converted(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<Arc<dyn PhysicalExpr>> {
        let cast = expr.downcast_ref::<CastExpr>()?;
        let column = cast.expr().downcast_ref::<Column>()?;
        let of = |schema: &Schema| schema.field_with_name(column.name()).ok().map(|field| field.data_type().clone());
        let (in_table, in_file) = (of(&self.table)?, of(&self.file)?);
        let is_text = in_table == DataType::Utf8 && may_become(&in_file, &in_table);
        let is_time = column.name() == TIME_COLUMN && in_table == time_type() && in_file != in_table;
        ((is_text || is_time) && *cast.cast_type() == in_table)
            .then(|| Arc::new(InTable { column: Arc::clone(cast.expr()), data_type: in_table }) as _)
    }
}

/// The values of a column of a file as its table has them.
#[derive(Debug, Eq)]
struct InTable {
    column: Arc<dyn PhysicalExpr>,
    data_type: DataType,
}

// Derived, the comparison would move what it compares, and with it goes the hash.
impl PartialEq for InTable {
    fn eq(&self, other: &Self) -> bool {
        self.column.eq(&other.column) && self.data_type == other.data_type
    }
}

impl fmt::Display for InTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "in_table({}, {})", self.column, self.data_type)
    }
}

impl Hash for InTable {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.column, &self.data_type).hash(state);
    }
}

impl PhysicalExpr for InTable {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let array = self.column.evaluate(batch)?.into_array(batch.num_rows())?;
        let array = match &self.data_type {
            // A time that nanoseconds do not have is in no file of ours.
            DataType::Timestamp(..) => cast_with_options(&array, &self.data_type, &CHECKED)?,
            to => converted(&array, to).map_err(|e| DataFusionError::External(e.into()))?,
        };
        Ok(ColumnarValue::Array(array))
    }

    fn return_field(&self, input_schema: &Schema) -> Result<FieldRef> {
        let of = self.column.return_field(input_schema)?;
        Ok(Arc::new(Field::new(of.name(), self.data_type.clone(), of.is_nullable())))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.column]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        match children.into_iter().next() {
            Some(column) => Ok(Arc::new(Self { column, data_type: self.data_type.clone() })),
            None => Ok(self),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "in_table(")?;
        self.column.fmt_sql(f)?;
        write!(f, ", {})", self.data_type)
    }
}
