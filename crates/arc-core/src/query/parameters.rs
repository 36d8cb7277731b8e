//! Values for the placeholders of a statement: `$1`, `$2` and so on, `?`, or `$name`.
//!
//! Values take the place of placeholders in the plan, before types are settled. Never in the text:
//! no value can become a part of the statement.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use arrow::{
    array::RecordBatch,
    datatypes::{DataType, Field, FieldRef, Schema, SchemaRef},
};
use datafusion::{
    common::{ParamValues, ScalarValue},
    logical_expr::LogicalPlan,
    sql::sqlparser::tokenizer::{Token, TokenWithSpan},
};

use super::{error, statement::refuse};
use crate::Result;

/// Most bytes that the values of one statement may take; as much as a statement may have.
const MAX_BYTES: usize = 1 << 20;

/// Numbers the placeholders `?` from left to right, which makes them `$1`, `$2` and so on.
pub(super) fn number(tokens: &mut [TokenWithSpan]) -> Result<()> {
    let mut numbered = 0;
    let mut named = false;
    for token in tokens {
        match &mut token.token {
            Token::Placeholder(text) if text == "?" => {
                numbered += 1;
                *text = format!("${numbered}");
            }
            Token::Placeholder(_) => named = true,
            _ => {}
        }
    }
    if named && numbered > 0 {
        return refuse("placeholders are all ? or all with a number or name behind $");
    }
    Ok(())
}

/// Returns the placeholders of a plan as columns: by number where they have numbers, else by name.
/// A type that cannot be told is `Null`.
pub(super) fn of(plan: &LogicalPlan) -> Result<SchemaRef> {
    let found = plan.get_parameter_fields().or_else(|_| {
        // The places of one of them want values of several types.
        let names = plan.get_parameter_names().map_err(error::from_datafusion)?;
        Ok::<_, crate::Error>(names.into_iter().map(|id| (id, None)).collect())
    })?;
    // Of `$2` and `$10` the first is the one with the lower number.
    let sorted: BTreeMap<(u64, String), Option<FieldRef>> =
        found.into_iter().map(|(id, field)| ((position(&id).unwrap_or_default(), id), field)).collect();
    let fields = sorted.into_iter().map(|((_, id), field)| {
        let data_type = field.map_or(DataType::Null, |field| field.data_type().clone());
        let name = if position(&id).is_some() { id.as_str() } else { id.trim_start_matches('$') };
        Field::new(name, data_type, true)
    });
    Ok(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
}

fn position(id: &str) -> Option<u64> {
    id.trim_start_matches('$').parse().ok()
}

/// Puts the one row of `values` in the place of the plan's placeholders: for one with a name the
/// column of that name, with or without `$`; for one with a number the column at its position, or
/// that of its name if the names of all begin with `$`.
pub(super) fn bind(plan: LogicalPlan, values: &RecordBatch) -> Result<LogicalPlan> {
    let placeholders = of(&plan)?;
    check(&placeholders, values)?;
    if placeholders.fields().is_empty() {
        return Ok(plan);
    }
    let row = values.columns().iter().map(|column| ScalarValue::try_from_array(column, 0));
    let row = row.collect::<Result<Vec<_>, _>>().map_err(error::from_datafusion)?;
    let given = values.schema();
    let names = given.fields().iter().map(|field| bare(field));
    let values = if !is_numbered(&placeholders) {
        ParamValues::from(names.map(str::to_owned).zip(row).collect::<HashMap<_, _>>())
    } else if has_dollars(&given) {
        ParamValues::from(names.map(position).zip(row).collect::<BTreeMap<_, _>>().into_values().collect::<Vec<_>>())
    } else {
        ParamValues::from(row)
    };
    plan.with_param_values(values).map_err(error::from_datafusion)
}

/// Refuses values that are not one for each placeholder.
pub(super) fn check(placeholders: &Schema, values: &RecordBatch) -> Result<()> {
    if values.num_rows() != 1 && values.num_columns() > 0 {
        return refuse(format!("a statement takes one row of values, and there are {}", values.num_rows()));
    }
    if values.get_array_memory_size() > MAX_BYTES {
        return refuse(format!("the values of a statement take more than {MAX_BYTES} bytes"));
    }
    let given = values.schema();
    let is_given = |name: &str| given.fields().iter().any(|field| bare(field) == name);
    let missing = |name: &str| refuse(format!("there is no value for the placeholder ${name}"));
    if is_numbered(placeholders) {
        check_count(placeholders, values.num_columns())?;
        let mut numbers = (1..=values.num_columns()).map(|number| number.to_string());
        return match numbers.find(|number| has_dollars(&given) && !is_given(number)) {
            Some(number) => missing(&number),
            None => Ok(()),
        };
    }
    if let Some(field) = placeholders.fields().iter().find(|field| !is_given(bare(field))) {
        return missing(bare(field));
    }
    let is_used = |name: &str| placeholders.fields().iter().any(|field| bare(field) == name);
    let mut names = HashSet::new();
    match given.fields().iter().find(|field| !is_used(bare(field)) || !names.insert(bare(field))) {
        Some(field) => refuse(format!("the statement has no placeholder for the value {:?}", field.name())),
        None => Ok(()),
    }
}

/// Returns the name of a value or a placeholder without `$`.
fn bare(field: &Field) -> &str {
    field.name().trim_start_matches('$')
}

/// Returns whether the values say by their names which placeholders they are for, whatever their order.
fn has_dollars(values: &Schema) -> bool {
    values.fields().iter().all(|field| field.name().starts_with('$'))
}

fn check_count(placeholders: &Schema, given: usize) -> Result<()> {
    let highest = placeholders.fields().iter().filter_map(|field| position(field.name())).max().unwrap_or_default();
    if usize::try_from(highest) == Ok(given) {
        return Ok(());
    }
    refuse(format!("the statement has {highest} placeholders, and {given} values were given"))
}

fn is_numbered(placeholders: &Schema) -> bool {
    placeholders.fields().iter().all(|field| field.name().starts_with('$'))
}
