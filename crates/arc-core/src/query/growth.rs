//! What planning makes much of a few words, refused before anything is planned.
//!
//! The planner copies some parts of an expression: `a BETWEEN b AND c` becomes `a >= b AND a <= c`. Where such parts are in
//! each other, the copies multiply. A type may say in a few digits how large each of its values is, and the planner makes
//! some. Pure: only the parsed statement goes in.

use std::{collections::HashMap, fmt::Display, ops::ControlFlow, str::FromStr};

use arrow::datatypes::DataType;
use datafusion::sql::{
    parser::Statement,
    sqlparser::ast::{
        self, ArrayElemTypeDef, BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
        ObjectName, Query, Visitor, VisitorMut,
    },
};

use super::{
    compat::arguments,
    error,
    semantics::check_type,
    statement::{MAX_SQL_BYTES, MAX_TYPE_LEVELS, refuse},
    unplanned::{called, ended},
    walk,
};
use crate::{Error, Result, model::MAX_FIXED_BYTES};

/// Copies that planning may make of the parts of a statement, together.
const MAX_COPIES: u64 = 1 << 17;

/// How much planning may have to write for the names of calls that are in each other: about a second of work.
const MAX_NAMED: u64 = 4_000_000_000;

/// Items up to which the planner writes out `a IN (…)` as comparisons.
const WRITTEN_OUT: usize = 3;

/// Functions that the planner writes out as `CASE`, with all arguments but the last twice, each of which it asks for NULL again.
const WRITTEN_TWICE: [&str; 4] = ["coalesce", "nvl", "ifnull", "nvl2"];

/// Functions that are told a type in a text.
const TAKE_TYPES: [&str; 2] = ["arrow_cast", "arrow_try_cast"];

/// Refuses a statement of which planning would make much more than it says.
///
/// # Errors
///
/// [`Error::Sql`] that names what multiplies, or the type.
pub(super) fn check(statement: &Statement) -> Result<()> {
    walk::read_inner(statement, &mut Copies::default())?;
    let mut names = Names::default();
    walk::read_inner(statement, &mut names)?;
    names.check(statement)
}

/// Calls functions by their own names inside of those that are not. The planner names a call by another name with all that is
/// in it, twice: the text would double at each level. `own` returns the own name of a function that has another.
pub(super) fn call_by_own_names(statement: &mut Statement, own: &dyn Fn(&str) -> Option<String>) {
    // It ends no walk.
    let _ = walk::change_inner(statement, &mut OwnNames { own, levels: 0 });
}

/// Counts the copies of what is visited.
#[derive(Default)]
struct Copies {
    /// How many times each expression is copied inside of its parent, as a power of two, by its address.
    of_child: HashMap<*const Expr, u32>,
    /// The same of the expressions on the path to here, together.
    doublings: u32,
    copies: u64,
}

impl Visitor for Copies {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        self.doublings += doublings_of_query(query);
        ended(self.count())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        self.doublings -= doublings_of_query(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Error> {
        self.doublings += self.doublings_of(expr);
        self.mark_children(expr);
        ended(self.count().and_then(|()| types(expr)))
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Error> {
        self.doublings -= self.doublings_of(expr);
        self.of_child.remove(&std::ptr::from_ref(expr));
        ControlFlow::Continue(())
    }
}

/// Counts what the names of calls cost. That of a call has those of all within it, and each is written anew for each call
/// around it, and for each of these once more, whenever the planner asks for a type.
#[derive(Default)]
struct Names {
    levels: u64,
    deepest: u64,
    calls: u64,
    /// The third powers of the levels of all calls.
    written: u64,
}

impl Visitor for Names {
    type Break = Error;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Error> {
        if is_call(expr) {
            self.levels += 1;
            self.calls += 1;
            self.deepest = self.deepest.max(self.levels);
            self.written = self.written.saturating_add(self.levels.saturating_pow(3));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Error> {
        self.levels -= u64::from(is_call(expr));
        ControlFlow::Continue(())
    }
}

impl Names {
    fn check(&self, statement: &Statement) -> Result<()> {
        // However long the text may be.
        if self.written.saturating_mul(MAX_SQL_BYTES as u64) <= MAX_NAMED {
            return Ok(());
        }
        let bytes_each = statement.to_string().len() as u64 / self.calls.max(1);
        if self.written.saturating_mul(bytes_each) <= MAX_NAMED {
            return Ok(());
        }
        refuse(format!(
            "the statement is too large: its calls and || are in each other {} deep, and planning them would take too long",
            self.deepest
        ))
    }
}

/// Returns whether the planner makes a call of an expression.
fn is_call(expr: &Expr) -> bool {
    match expr {
        Expr::Function(_) | Expr::Substring { .. } | Expr::Trim { .. } | Expr::Overlay { .. } => true,
        Expr::Position { .. } | Expr::Extract { .. } | Expr::Ceil { .. } | Expr::Floor { .. } => true,
        Expr::BinaryOp { op, .. } => *op == BinaryOperator::StringConcat,
        _ => false,
    }
}

/// The planner looks for tables in each query of WITH, and once more where it is planned.
fn doublings_of_query(query: &Query) -> u32 {
    u32::from(query.with.is_some())
}

impl Copies {
    /// Counts what is visited as often as it is copied.
    fn count(&mut self) -> Result<()> {
        let more = 1_u64.checked_shl(self.doublings).map_or(u64::MAX, |copies| copies - 1);
        self.copies = self.copies.saturating_add(more);
        if self.copies <= MAX_COPIES {
            return Ok(());
        }
        refuse(format!(
            "the statement is too large: BETWEEN, IN, CASE, WITH, coalesce, nvl, map and subqueries that are in each other make \
             more than {MAX_COPIES} parts of it"
        ))
    }

    fn doublings_of(&self, expr: &Expr) -> u32 {
        let by_parent = self.of_child.get(&std::ptr::from_ref(expr)).copied().unwrap_or(0);
        // The planner looks at what is in a subquery from outside as well, and has what may be NULL in an IN asked apart.
        by_parent
            + match expr {
                Expr::InSubquery { .. } => 3,
                Expr::Subquery(_) | Expr::Exists { .. } | Expr::AnyOp { .. } | Expr::AllOp { .. } => 1,
                _ => 0,
            }
    }

    fn mark_children(&mut self, expr: &Expr) {
        match expr {
            Expr::Between { expr, .. } => self.mark(expr, 1),
            Expr::InList { expr, list, .. } if list.len() <= WRITTEN_OUT => {
                self.mark(expr, list.len().next_power_of_two().ilog2());
            }
            Expr::Case { conditions, .. } => conditions.iter().for_each(|when| self.mark(&when.condition, 2)),
            Expr::Function(function) => {
                let (name, arguments) = (called(function), arguments(function).unwrap_or_default());
                let copied = match (name.as_deref(), &*arguments) {
                    (Some(name), [copied @ .., _]) if WRITTEN_TWICE.contains(&name) => copied,
                    // Planned twice, as it may stand for another function.
                    (Some("map"), all) => all,
                    _ => &[],
                };
                copied.iter().for_each(|argument| self.mark(argument, 2));
            }
            _ => {}
        }
    }

    fn mark(&mut self, child: &Expr, doublings: u32) {
        self.of_child.insert(std::ptr::from_ref(child), doublings);
    }
}

/// Refuses types that go down too far, and those of which each value takes much, also `NULL`.
fn types(expr: &Expr) -> Result<()> {
    match expr {
        Expr::Cast { data_type, .. } => check_bytes(type_bytes(data_type), data_type),
        Expr::Function(function) if called(function).is_some_and(|name| TAKE_TYPES.contains(&&*name)) => {
            texts(function).try_for_each(|text| {
                // Before somebody reads it: who does goes down it.
                if text.matches(['(', '<']).count() > MAX_TYPE_LEVELS {
                    return refuse(format!("a type has more than {MAX_TYPE_LEVELS} levels"));
                }
                // What is no type is known better to the planner.
                DataType::from_str(&text)
                    .map_or(Ok(()), |data_type| check_type(&data_type).map_err(error::from_datafusion))
            })
        }
        _ => Ok(()),
    }
}

fn check_bytes(bytes: usize, data_type: &dyn Display) -> Result<()> {
    if bytes <= MAX_FIXED_BYTES {
        return Ok(());
    }
    refuse(format!("a value of {data_type} would have more than {MAX_FIXED_BYTES} bytes, also where it is NULL"))
}

/// Returns the texts that a call has as its arguments, behind the first.
fn texts(function: &Function) -> impl Iterator<Item = String> {
    let list = match &function.args {
        FunctionArguments::List(list) => list.args.as_slice(),
        _ => &[],
    };
    list.iter().skip(1).filter_map(|argument| {
        let (FunctionArg::Unnamed(argument) | FunctionArg::Named { arg: argument, .. }) = argument else { return None };
        let FunctionArgExpr::Expr(argument) = argument else { return None };
        let mut argument = argument;
        while let Expr::Nested(inner) = argument {
            argument = inner;
        }
        match argument {
            Expr::Value(value) => value.value.clone().into_string(),
            _ => None,
        }
    })
}

/// Returns the least bytes of a value of a type.
fn type_bytes(data_type: &ast::DataType) -> usize {
    match data_type {
        ast::DataType::Array(ArrayElemTypeDef::SquareBracket(item, items)) => {
            let items = items.map_or(1, |items| usize::try_from(items).unwrap_or(usize::MAX));
            type_bytes(item).saturating_mul(items)
        }
        ast::DataType::Array(ArrayElemTypeDef::AngleBracket(item) | ArrayElemTypeDef::Parenthesis(item)) => {
            type_bytes(item)
        }
        ast::DataType::Struct(fields, _) => {
            fields.iter().map(|field| type_bytes(&field.field_type)).fold(0, usize::saturating_add)
        }
        // As many as it has are looked at in the plan, where all types are known.
        _ => 1,
    }
}

struct OwnNames<'a> {
    own: &'a dyn Fn(&str) -> Option<String>,
    /// Calls by other names, in which this one is.
    levels: usize,
}

impl OwnNames<'_> {
    fn own_name(&self, expr: &Expr) -> Option<String> {
        match expr {
            Expr::Function(function) if function.name.0.len() == 1 => (self.own)(&called(function)?),
            _ => None,
        }
    }
}

impl VisitorMut for OwnNames<'_> {
    type Break = Error;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if let Some(own) = self.own_name(expr) {
            match expr {
                Expr::Function(function) if self.levels > 0 => {
                    function.name = ObjectName::from(vec![Ident::with_quote('"', own)]);
                }
                _ => self.levels += 1,
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        self.levels -= usize::from(self.own_name(expr).is_some());
        ControlFlow::Continue(())
    }
}
