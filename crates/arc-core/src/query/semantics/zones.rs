//! Times without a zone are those of UTC where they meet times with one.
//!
//! DataFusion gives both sides the zone of the one that has it, and reads the other as what a clock there shows, so that one
//! time is equal to two (apache/datafusion#13212, mended by #25211). `AT TIME ZONE` says that it is meant so: only the casts
//! that are put in to make types the same read it as UTC.

use std::sync::Arc;

use arrow::{
    array::timezone::Tz,
    datatypes::{
        DECIMAL32_MAX_PRECISION, DECIMAL64_MAX_PRECISION, DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType,
        Field, TimeUnit,
    },
};
use datafusion::{
    common::{
        Result,
        config::ConfigOptions,
        plan_err,
        tree_node::{Transformed, TreeNode, TreeNodeRecursion},
    },
    logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan, TryCast, cast, expr_rewriter::NamePreserver},
    optimizer::AnalyzerRule,
};

use super::{super::functions::at_zone, columns};
use crate::model::{MAX_FIXED_BYTES, fixed_bytes};

const UTC: &str = "UTC";

/// What the field of a cast is called that the statement asks for.
const ASKED: &str = "asked";

/// The rule that makes types the same, around which this is.
#[derive(Debug)]
pub(in super::super) struct TimesOfUtc(pub(in super::super) Arc<dyn AnalyzerRule + Send + Sync>);

impl AnalyzerRule for TimesOfUtc {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let marked = plan.transform_up_with_subqueries(|plan| plan.map_expressions(|expr| expr.transform_up(mark)))?;
        let plan = self.0.analyze(marked.data, config)?;
        plan.transform_up_with_subqueries(of_utc).map(|plan| plan.data)
    }
}

fn mark(expr: Expr) -> Result<Transformed<Expr>> {
    match &expr {
        Expr::Cast(Cast { field, .. }) | Expr::TryCast(TryCast { field, .. }) => check_type(field.data_type())?,
        Expr::ScalarFunction(function) => {
            if let [_, Expr::Literal(text, _)] = &*function.args
                && let Some(text) = text.try_as_str().flatten()
                && let Some(data_type) = asked_type(function.name(), text)
            {
                check_type(&data_type)?;
            }
        }
        _ => {}
    }
    Ok(match expr {
        Expr::Cast(Cast { expr, field }) if has_other_zone(field.data_type()) => {
            let field = Arc::new(Field::new(ASKED, field.data_type().clone(), true));
            Transformed::yes(Expr::Cast(Cast::new_from_field(expr, field)))
        }
        other => Transformed::no(other),
    })
}

/// Returns the type that a function gives its result which is told it in a text.
fn asked_type(function: &str, text: &str) -> Option<DataType> {
    match function {
        "arrow_cast" | "arrow_try_cast" => text.parse().ok(),
        "from_unixtime" => Some(DataType::Timestamp(TimeUnit::Second, Some(text.into()))),
        _ => None,
    }
}

/// Refuses types whose values cannot all be shown: zones that nobody knows, and `Date64`, of which DataFusion cannot write
/// each. Of unions, maps without keys, dictionaries without codes, runs without ends and lists of no items it makes none, of
/// decimals with more zeros than digits it makes what overflows, and at structures without fields it panics.
pub(in super::super) fn check_type(data_type: &DataType) -> Result<()> {
    if fixed_bytes(data_type) > MAX_FIXED_BYTES {
        return plan_err!("a value of {data_type} would have more than {MAX_FIXED_BYTES} bytes, also where it is NULL");
    }
    match data_type {
        DataType::Timestamp(_, Some(zone)) if zone.parse::<Tz>().is_err() => {
            plan_err!("{zone:?} is no time zone: 'Europe/Berlin' and '+02:00' are some")
        }
        DataType::Date64 => plan_err!("Date64 is not known here: DATE and TIMESTAMP are"),
        DataType::Union(..) => plan_err!("{data_type} is not known here: a value has one type"),
        DataType::Map(entry, _) if !matches!(entry.data_type(), DataType::Struct(fields) if fields.len() == 2) => {
            plan_err!("a map has entries of a key and a value, not of {}", entry.data_type())
        }
        DataType::Dictionary(key, _) if !key.is_dictionary_key_type() => {
            plan_err!("the codes of a dictionary are integers, not {key}")
        }
        DataType::Dictionary(_, value) => check_type(value),
        DataType::RunEndEncoded(ends, _) if !ends.data_type().is_run_ends_type() => {
            plan_err!("runs end at integers of 16, 32 or 64 bits, not at {}", ends.data_type())
        }
        DataType::FixedSizeList(_, ..=0) => plan_err!("a list of a fixed size has one item or more"),
        DataType::Decimal32(_, scale) => check_scale(*scale, DECIMAL32_MAX_PRECISION),
        DataType::Decimal64(_, scale) => check_scale(*scale, DECIMAL64_MAX_PRECISION),
        DataType::Decimal128(_, scale) => check_scale(*scale, DECIMAL128_MAX_PRECISION),
        DataType::Decimal256(_, scale) => check_scale(*scale, DECIMAL256_MAX_PRECISION),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::Map(item, _)
        | DataType::RunEndEncoded(_, item) => check_type(item.data_type()),
        DataType::Struct(fields) if fields.is_empty() => plan_err!("a structure has one field or more"),
        DataType::Struct(fields) => fields.iter().try_for_each(|field| check_type(field.data_type())),
        _ => Ok(()),
    }
}

fn check_scale(scale: i8, most: u8) -> Result<()> {
    match scale < 0 && scale.unsigned_abs() > most {
        true => plan_err!("a decimal has a scale of -{most} or more, not of {scale}"),
        false => Ok(()),
    }
}

fn of_utc(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let has_cast = |expr: &Expr| {
        expr.exists(|expr| Ok(matches!(expr, Expr::Cast(cast) if has_other_zone(cast.field.data_type()))))
    };
    let mut has_any = false;
    plan.apply_expressions(|expr| {
        has_any |= has_cast(expr)?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    if !has_any {
        return Ok(Transformed::no(plan));
    }
    let schema = columns(&plan)?;
    let names = NamePreserver::new(&plan);
    let plan = plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let changed = expr.transform_up(|expr| {
            let Expr::Cast(Cast { expr, field }) = expr else { return Ok(Transformed::no(expr)) };
            let to = field.data_type().clone();
            Ok(match (expr.get_type(&schema), &to) {
                (Ok(DataType::Timestamp(from, None)), DataType::Timestamp(unit, Some(zone))) if &**zone != UTC => {
                    Transformed::yes(if field.name() == ASKED {
                        let shown = if from == *unit { *expr } else { cast(*expr, DataType::Timestamp(*unit, None)) };
                        at_zone(shown, zone)
                    } else {
                        cast(cast(*expr, DataType::Timestamp(from, Some(UTC.into()))), to)
                    })
                }
                _ if field.name() == ASKED => Transformed::yes(Expr::Cast(Cast::new(expr, to))),
                _ => Transformed::no(Expr::Cast(Cast::new_from_field(expr, field))),
            })
        })?;
        Ok(changed.update_data(|expr| name.restore(expr)))
    })?;
    plan.map_data(LogicalPlan::recompute_schema)
}

fn has_other_zone(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(_, Some(zone)) if &**zone != UTC)
}
