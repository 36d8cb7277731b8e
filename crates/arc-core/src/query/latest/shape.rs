//! Recognises statements for which the newest rows of a table are enough.
//!
//! Each shape is a node that looks at the newest rows of its input and at nothing else, above a
//! chain of plain projections and at most one condition that ends in one of our tables. Two rows of
//! one time are equals: statements that order them by more than the time are not recognised, unless
//! all of them are read.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::{
    catalog::TableProvider,
    common::{Column, ScalarValue},
    datasource::source_as_provider,
    logical_expr::{
        Aggregate, Expr, Filter, LogicalPlan, Operator, Sort, Window, WindowFunctionDefinition,
        expr::{AggregateFunction, BinaryExpr, NullTreatment, Sort as Order, WindowFunction},
        expr_rewriter::unnormalize_cols,
        utils::split_conjunction_owned,
    },
};

use super::{super::table::QueriedTable, job::WantedNewest, table::WantedOfTable};
use crate::model::TIME_COLUMN;

/// Most rows that are looked for by this way.
const MAX_ROWS: usize = 10_000;

/// Returns what `plan` needs of the one table below it, if the newest rows are enough.
pub(super) fn wanted(plan: &LogicalPlan) -> Option<WantedOfTable> {
    match plan {
        LogicalPlan::Filter(filter) => first_of_each(filter),
        LogicalPlan::Aggregate(aggregate) => values_of_each(aggregate),
        LogicalPlan::Sort(sort) => newest_of_all(sort),
        _ => None,
    }
}

/// `row_number() OVER (PARTITION BY … ORDER BY time DESC) = 1`.
fn first_of_each(filter: &Filter) -> Option<WantedOfTable> {
    let conditions = split_conjunction_owned(filter.predicate.clone());
    let number = conditions.iter().find_map(is_first)?;
    let (window, number) = down_to_window(&filter.input, number)?;
    let [function] = window.window_expr.as_slice() else { return None };
    if window.schema.index_of_column(&number).ok()? != window.input.schema().fields().len() {
        return None;
    }
    let Expr::WindowFunction(function) = function.clone().unalias() else { return None };
    let WindowFunction { fun: WindowFunctionDefinition::WindowUDF(udf), params } = *function else { return None };
    if udf.name() != "row_number" || params.filter.is_some() {
        return None;
    }
    let keys = columns(&params.partition_by)?;
    let time = newest_first(&params.order_by, &keys)?;
    Below::of(&window.input, keys, time)?.wanted(WantedNewest::OfEachKey)
}

/// Returns the column of which a condition wants the number one.
fn is_first(condition: &Expr) -> Option<Column> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = condition else { return None };
    let (Expr::Column(column), Expr::Literal(value, _)) = (left.as_ref(), right.as_ref()) else { return None };
    let number = match value {
        ScalarValue::UInt64(Some(number)) => *number,
        ScalarValue::Int64(Some(number)) => u64::try_from(*number).ok()?,
        _ => return None,
    };
    matches!((op, number), (Operator::Eq | Operator::LtEq, 1) | (Operator::Lt, 2)).then(|| column.clone())
}

/// Follows a column down to the window that makes it.
fn down_to_window(plan: &LogicalPlan, column: Column) -> Option<(&Window, Column)> {
    match plan {
        LogicalPlan::Window(window) => Some((window, column)),
        LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => {
            let (below, columns) = step(plan, vec![column])?;
            down_to_window(below, columns.into_iter().next()?)
        }
        _ => None,
    }
}

/// `last_value(x ORDER BY time)` and its like, with or without `GROUP BY`.
fn values_of_each(aggregate: &Aggregate) -> Option<WantedOfTable> {
    let keys = columns(&aggregate.group_expr)?;
    let mut times = Vec::new();
    for function in &aggregate.aggr_expr {
        let Expr::AggregateFunction(function) = function.clone().unalias() else { return None };
        times.push(time_of(&function, &keys)?);
        for column in must_be_set(&function)? {
            let below = Below::of(&aggregate.input, Vec::new(), column)?;
            if !below.table()?.is_never_null(&below.last_name()?) {
                return None;
            }
        }
    }
    times.dedup();
    let [time] = times.as_slice() else { return None };
    Below::of(&aggregate.input, keys, time.clone())?.wanted(WantedNewest::OfEachKey)
}

/// Returns the column by which a function takes the value of the newest row.
fn time_of(function: &AggregateFunction, keys: &[Column]) -> Option<Column> {
    let params = &function.params;
    if params.distinct || params.args.iter().any(Expr::is_volatile) {
        return None;
    }
    match (function.func.name(), params.args.as_slice()) {
        ("first_value", [_]) => newest_first(&params.order_by, keys),
        ("last_value", [_]) => {
            let reversed: Vec<Order> = params.order_by.iter().map(|order| order.clone().reverse()).collect();
            newest_first(&reversed, keys)
        }
        ("max", [Expr::Column(time)]) => Some(time.clone()),
        _ => None,
    }
}

/// Returns the columns without a value of which a row does not count for a function.
fn must_be_set(function: &AggregateFunction) -> Option<Vec<Column>> {
    let params = &function.params;
    let mut set = Vec::new();
    if matches!(params.null_treatment, Some(NullTreatment::IgnoreNulls)) {
        set.extend(columns(&params.args)?);
    }
    for condition in params.filter.iter().flat_map(|filter| split_conjunction_owned(filter.as_ref().clone())) {
        let Expr::IsNotNull(column) = condition else { return None };
        set.extend(columns(&[*column])?);
    }
    Some(set)
}

/// `ORDER BY time DESC LIMIT n`.
fn newest_of_all(sort: &Sort) -> Option<WantedOfTable> {
    let rows = sort.fetch.filter(|rows| *rows <= MAX_ROWS)?;
    let (first, others) = sort.expr.split_first()?;
    let Expr::Column(time) = &first.expr else { return None };
    if first.asc || others.iter().any(|order| order.expr.is_volatile()) {
        return None;
    }
    Below::of(&sort.input, Vec::new(), time.clone())?.wanted(WantedNewest::OfAll { rows, ties: !others.is_empty() })
}

/// Returns the column by which rows of a key are ordered, newest first.
fn newest_first(order: &[Order], keys: &[Column]) -> Option<Column> {
    // Within a key, its columns order nothing.
    let is_key = |order: &&Order| matches!(&order.expr, Expr::Column(column) if keys.contains(column));
    let mut order = order.iter().filter(|order| !is_key(order));
    match (order.next(), order.next()) {
        (Some(Order { expr: Expr::Column(time), asc: false, .. }), None) => Some(time.clone()),
        _ => None,
    }
}

/// Returns the columns that expressions are; a tag may have become plain text.
fn columns(expressions: &[Expr]) -> Option<Vec<Column>> {
    let column = |expr: &Expr| match expr {
        Expr::Column(column) => Some(column.clone()),
        Expr::Cast(cast) if *cast.field.data_type() == DataType::Utf8View => cast.expr.try_as_col().cloned(),
        _ => None,
    };
    expressions.iter().map(column).collect()
}

/// What is below a node: a chain that ends in a table.
struct Below {
    provider: Arc<dyn TableProvider>,
    /// Columns of the key, as indices in the table's schema.
    keys: Vec<usize>,
    /// The last of the columns that were followed.
    last: usize,
    filters: Vec<Expr>,
}

impl Below {
    /// Follows the columns of a key, and one more, down to a table.
    fn of(plan: &LogicalPlan, keys: Vec<Column>, last: Column) -> Option<Self> {
        let mut plan = plan;
        let mut columns: Vec<Column> = keys.into_iter().chain([last]).collect();
        let mut filters = Vec::new();
        loop {
            match plan {
                LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => (plan, columns) = step(plan, columns)?,
                LogicalPlan::Filter(filter) if matches!(&*filter.input, LogicalPlan::TableScan(_)) => {
                    filters = unnormalize_cols(split_conjunction_owned(filter.predicate.clone()));
                    plan = &filter.input;
                }
                LogicalPlan::TableScan(scan) if scan.fetch.is_none() => {
                    // Those that the scan applies by itself are only there.
                    for filter in unnormalize_cols(scan.filters.iter().cloned()) {
                        if !filters.contains(&filter) {
                            filters.push(filter);
                        }
                    }
                    if filters.iter().any(Expr::is_volatile) {
                        return None;
                    }
                    let provider = source_as_provider(&scan.source).ok()?;
                    let schema = provider.schema();
                    let keys = columns.iter().map(|column| schema.index_of(&column.name).ok());
                    let mut keys = keys.collect::<Option<Vec<_>>>()?;
                    let last = keys.pop()?;
                    return Some(Self { provider, keys, last, filters });
                }
                _ => return None,
            }
        }
    }

    fn table(&self) -> Option<&QueriedTable> {
        let provider: &dyn TableProvider = &*self.provider;
        provider.downcast_ref::<QueriedTable>()
    }

    fn last_name(&self) -> Option<String> {
        Some(self.provider.schema().fields().get(self.last)?.name().clone())
    }

    fn wanted(self, newest: WantedNewest) -> Option<WantedOfTable> {
        self.table()?;
        if self.last_name()? != TIME_COLUMN {
            return None;
        }
        let newest = match newest {
            WantedNewest::OfEachKey if self.keys.is_empty() => WantedNewest::OfAll { rows: 1, ties: false },
            newest => newest,
        };
        Some(WantedOfTable { newest, keys: self.keys, filters: self.filters })
    }
}

/// Follows columns through one node that renames them at most.
fn step(plan: &LogicalPlan, columns: Vec<Column>) -> Option<(&LogicalPlan, Vec<Column>)> {
    match plan {
        LogicalPlan::Projection(projection) => {
            if projection.expr.iter().any(Expr::is_volatile) {
                return None;
            }
            let below = columns.iter().map(|column| {
                let index = projection.schema.index_of_column(column).ok()?;
                match projection.expr.get(index)?.clone().unalias() {
                    Expr::Column(column) => Some(column),
                    _ => None,
                }
            });
            Some((&projection.input, below.collect::<Option<_>>()?))
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let below = columns.iter().map(|column| {
                let index = alias.schema.index_of_column(column).ok()?;
                Some(Column::from(alias.input.schema().qualified_field(index)))
            });
            Some((&alias.input, below.collect::<Option<_>>()?))
        }
        _ => None,
    }
}
