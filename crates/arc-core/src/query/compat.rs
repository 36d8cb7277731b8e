//! Spellings of other engines, replaced in the parsed statement by what means the same here.
//!
//! InfluxDB 3 has one schema for the tables of a connection's database, `iox`, and functions that
//! select a point; DuckDB and PostgreSQL tell which database one is in. Pure: a statement and the
//! names of the databases go in.

use std::{
    collections::{HashMap, HashSet},
    iter,
    ops::ControlFlow,
};

use datafusion::sql::{
    parser::Statement,
    sqlparser::ast::{
        self, BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments,
        Ident, LimitClause, ObjectName, OrderBy, OrderByExpr, OrderByKind, OrderByOptions, Query, Select, SelectFlavor,
        SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableFactor, Value, VisitorMut,
        WildcardAdditionalOptions,
    },
};

use super::{functions, statement::refuse, walk};
use crate::{Error, Result};

/// The schema of InfluxDB 3.
pub(super) const IOX: &str = "iox";

/// Functions of other engines, and what they are called here.
const SAME: [(&str, &str); 9] = [
    ("strftime", "to_char"),
    ("regexp_matches", "regexp_like"),
    ("make_timestamp", "to_timestamp_micros"),
    ("list", "array_agg"),
    ("variance", "var_samp"),
    ("every", "bool_and"),
    ("len", "length"),
    ("lcase", "lower"),
    ("ucase", "upper"),
];

/// Functions that give a part of a time, of the same name.
const PARTS: [&str; 8] = ["year", "quarter", "month", "week", "day", "hour", "minute", "second"];

/// Functions of InfluxDB 3 that select a point, the ordered aggregate that finds it, and which
/// argument is its order.
const SELECTORS: [(&str, &str, CompatOrder); 4] = [
    ("selector_first", "first_value", CompatOrder::Time),
    ("selector_last", "last_value", CompatOrder::Time),
    ("selector_min", "first_value", CompatOrder::Value),
    ("selector_max", "last_value", CompatOrder::Value),
];

#[derive(Clone, Copy)]
enum CompatOrder {
    Time,
    Value,
}

/// Replaces what other engines say; `database` is the one that the statement is about, unless it
/// names others, and `exists` says of a name whether it is a database's.
///
/// # Errors
///
/// [`Error::Sql`] if a function of theirs is called with other arguments than it takes.
pub(super) fn translate(statement: &mut Statement, database: &str, exists: &dyn Fn(&str) -> bool) -> Result<()> {
    walk::change_inner(statement, &mut Translator { database, exists })
}

/// Gives the columns of each `SELECT` different names: those that have none are called by their
/// text, and a name that was there before gets a number. Of those that others read from, all of one
/// name get a number: none is the one that is meant.
///
/// # Errors
///
/// [`Error::Sql`] if the answer is in the order of a name that two of its columns have.
pub(super) fn tell_apart(statement: &mut Statement) -> Result<()> {
    let mut selects = Vec::new();
    let inner = match &*statement {
        Statement::Explain(explain) => &*explain.statement,
        other => other,
    };
    if let Statement::Statement(inner) = inner
        && let ast::Statement::Query(query) = &**inner
    {
        selects_of(&query.body, &mut selects);
    }
    let outermost = selects.into_iter().map(std::ptr::from_ref).collect();
    walk::change_inner(statement, &mut TellApart { outermost })
}

/// Makes casts a part of the names of what is computed with them, which leave them out otherwise:
/// `sum(a)` and `sum(CAST(a AS DOUBLE))` would be one column.
pub(super) fn name_casts(statement: &mut Statement) {
    // It ends no walk.
    let _ = walk::change_inner(statement, &mut NameCasts);
}

struct Translator<'a> {
    database: &'a str,
    exists: &'a dyn Fn(&str) -> bool,
}

impl VisitorMut for Translator<'_> {
    type Break = Error;

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<Error> {
        let schema = relation.0.len().checked_sub(2).and_then(|at| relation.0.get_mut(at));
        if let Some(schema) = schema
            && schema.as_ident().is_some_and(|ident| ident.value == IOX)
            && !(self.exists)(IOX)
        {
            *schema = ast::ObjectNamePart::Identifier(Ident::with_quote('"', self.database));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        limit_by_fetch(query);
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        qualify_wildcards(select);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        // `FROM pump` of DuckDB.
        if select.flavor == SelectFlavor::FromFirstNoSelect {
            select.flavor = SelectFlavor::Standard;
            select.projection = vec![SelectItem::Wildcard(WildcardAdditionalOptions::default())];
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        match expr {
            Expr::BinaryOp { left, op: BinaryOperator::Eq | BinaryOperator::NotEq, right } => {
                if is_table_schema(left) {
                    self.name_schema(right);
                } else if is_table_schema(right) {
                    self.name_schema(left);
                }
            }
            Expr::InList { expr, list, .. } if is_table_schema(expr) => {
                list.iter_mut().for_each(|item| self.name_schema(item));
            }
            Expr::Like { expr, pattern, escape_char: None, .. }
            | Expr::ILike { expr, pattern, escape_char: None, .. }
                if is_table_schema(expr) && text(pattern) == Some(IOX) && !(self.exists)(IOX) =>
            {
                **pattern = literal(&as_pattern(self.database));
            }
            Expr::Function(function) => match self.function(function) {
                Ok(Some(same)) => *expr = same,
                Ok(None) => {
                    if let Some((_, same)) = SAME.into_iter().find(|(name, _)| is(function, name)) {
                        function.name = ObjectName::from(vec![Ident::new(same)]);
                    }
                }
                Err(error) => return ControlFlow::Break(error),
            },
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Translator<'_> {
    /// Puts the database where the schema of InfluxDB 3 stands, unless a database has that name.
    fn name_schema(&self, schema: &mut Expr) {
        if text(schema) == Some(IOX) && !(self.exists)(IOX) {
            *schema = literal(self.database);
        }
    }

    /// Returns what means the same as a call, if it is another function's.
    fn function(&self, function: &Function) -> Result<Option<Expr>> {
        let arguments = arguments(function);
        if let Some((name, take, order)) = SELECTORS.into_iter().find(|(name, ..)| is(function, name)) {
            let Some([value, time]) = arguments.as_deref() else {
                return refuse(format!("{name} takes a value and a time, and nothing else"));
            };
            let order = match order {
                CompatOrder::Time => time,
                CompatOrder::Value => value,
            };
            return Ok(Some(selected(function, value, time, take, order)));
        }
        let is = |name| is(function, name);
        Ok(match arguments.as_deref() {
            Some([]) if is("current_database") || is("current_schema") => Some(literal(self.database)),
            Some([time]) if is("epoch") => Some(part_of("epoch", function, time)),
            Some([time]) if let Some(part) = PARTS.into_iter().find(|part| is(part)) => {
                Some(part_of(part, function, time))
            }
            Some([_, form]) if is("to_char") || is("date_format") || is("strftime") => {
                check_form(form)?;
                None
            }
            _ => None,
        })
    }
}

/// Writes `FETCH FIRST 5 ROWS ONLY` as the limit that it is.
fn limit_by_fetch(query: &mut Query) {
    let is_plain = |fetch: &ast::Fetch| !fetch.with_ties && !fetch.percent;
    let offset = match &query.limit_clause {
        None => None,
        Some(LimitClause::LimitOffset { limit: None, offset, limit_by }) if limit_by.is_empty() => offset.clone(),
        Some(_) => return,
    };
    if let Some(fetch) = query.fetch.take_if(|fetch| is_plain(fetch)) {
        let one = || Expr::Value(Value::Number("1".into(), false).into());
        let limit = Some(fetch.quantity.unwrap_or_else(one));
        query.limit_clause = Some(LimitClause::LimitOffset { limit, offset, limit_by: Vec::new() });
    }
}

/// Names the table of `pump.*` as `FROM plant.pump` does: the planner knows it by all of its name.
fn qualify_wildcards(select: &mut Select) {
    let from = select.from.iter();
    let tables: Vec<&TableFactor> =
        from.flat_map(|from| iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation))).collect();
    for item in &mut select.projection {
        if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) = item
            && let [part] = name.0.as_slice()
            && let Some(wanted) = part.as_ident()
            && let [TableFactor::Table { name: full, alias: None, .. }] =
                tables.iter().copied().filter(|table| is_called(table, wanted)).collect::<Vec<_>>().as_slice()
        {
            *name = full.clone();
        }
    }
}

/// Returns whether a statement may mean a table by a name.
fn is_called(table: &TableFactor, wanted: &Ident) -> bool {
    match table {
        TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
            alias.name.value == wanted.value
        }
        TableFactor::Table { name, alias: None, .. } => {
            name.0.last().and_then(|part| part.as_ident()).is_some_and(|last| last.value == wanted.value)
        }
        _ => false,
    }
}

fn part_of(part: &str, called: &Function, time: &Expr) -> Expr {
    Expr::Function(call(called, "date_part", vec![literal(part), time.clone()]))
}

/// Refuses the form of a time in letters of PostgreSQL or Java, all of which would be text.
fn check_form(form: &Expr) -> Result<()> {
    match text(form) {
        Some(form) if !form.contains('%') && form.contains(|letter: char| letter.is_ascii_alphabetic()) => {
            refuse(format!("{form:?} has nothing of the time in it: expected a form like '%Y-%m-%d %H:%M:%S'"))
        }
        _ => Ok(()),
    }
}

fn is(function: &Function, name: &str) -> bool {
    let [part] = function.name.0.as_slice() else { return false };
    part.as_ident().is_some_and(|ident| ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case(name))
}

/// The arguments of a call that has nothing but plain ones.
pub(super) fn arguments(function: &Function) -> Option<Vec<&Expr>> {
    match &function.args {
        FunctionArguments::List(list) if list.clauses.is_empty() && list.duplicate_treatment.is_none() => list
            .args
            .iter()
            .map(|argument| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
                _ => None,
            })
            .collect(),
        _ => None,
    }
}

/// A structure of `value` and `time` from the row that `take`, an ordered aggregate, finds at one
/// end of `order`: of equal ones the earliest. Rows without a value do not count.
fn selected(called: &Function, value: &Expr, time: &Expr, take: &str, order: &Expr) -> Expr {
    let structure = ["value", "time"].into_iter().zip([value, time]);
    let structure = structure.flat_map(|(name, expr)| [literal(name), expr.clone()]).collect();
    let structure = Expr::Function(call(called, "named_struct", structure));
    let by = |expr: &Expr, asc| OrderByExpr {
        expr: expr.clone(),
        options: OrderByOptions { asc: Some(asc), nulls_first: Some(true) },
        with_fill: None,
    };
    let mut order_by = vec![by(order, true)];
    if order != time {
        order_by.push(by(time, take == "first_value"));
    }
    let counts = Expr::IsNotNull(Box::new(value.clone()));
    let filter = match called.filter.clone() {
        Some(filter) => {
            let nested = |expr| Box::new(Expr::Nested(Box::new(expr)));
            Expr::BinaryOp { left: nested(*filter), op: BinaryOperator::And, right: nested(counts) }
        }
        None => counts,
    };
    let mut taken = call(called, take, vec![structure]);
    taken.filter = Some(Box::new(filter));
    taken.over = called.over.clone();
    if let FunctionArguments::List(list) = &mut taken.args {
        list.clauses = vec![FunctionArgumentClause::OrderBy(order_by)];
    }
    Expr::Function(taken)
}

/// A call of `name` where there was one of another function.
fn call(called: &Function, name: &str, arguments: Vec<Expr>) -> Function {
    let args = arguments.into_iter().map(|expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))).collect();
    Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        args: FunctionArguments::List(ast::FunctionArgumentList { duplicate_treatment: None, args, clauses: vec![] }),
        filter: None,
        over: None,
        ..called.clone()
    }
}

fn is_table_schema(expr: &Expr) -> bool {
    let column = match expr {
        Expr::Identifier(column) => Some(column),
        Expr::CompoundIdentifier(parts) => parts.last(),
        _ => None,
    };
    column.is_some_and(|column| column.value.eq_ignore_ascii_case("table_schema"))
}

fn text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

fn literal(text: &str) -> Expr {
    Expr::value(Value::SingleQuotedString(text.to_owned()))
}

/// Returns the pattern that only this text meets.
fn as_pattern(text: &str) -> String {
    text.chars().flat_map(|char| matches!(char, '%' | '_' | '\\').then_some('\\').into_iter().chain([char])).collect()
}

struct TellApart {
    /// Addresses of the `SELECT`s whose columns are those of the answer.
    outermost: HashSet<*const Select>,
}

impl VisitorMut for TellApart {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let mut selects = Vec::new();
        let is_outermost = {
            selects_of(&query.body, &mut selects);
            selects.iter().any(|select| self.outermost.contains(&std::ptr::from_ref(*select)))
        };
        let Some(OrderBy { kind: OrderByKind::Expressions(order), .. }) = &query.order_by else {
            return ControlFlow::Continue(());
        };
        if !is_outermost {
            return ControlFlow::Continue(());
        }
        for name in order.iter().filter_map(|key| match &key.expr {
            Expr::Identifier(name) => Some(name),
            _ => None,
        }) {
            let meant = selects.first().map(|select| named(&select.projection, name)).unwrap_or_default();
            if let [first, others @ ..] = meant.as_slice()
                && others.iter().any(|other| other != first)
            {
                return ControlFlow::Break(Error::Sql {
                    reason: format!("{name} is ambiguous in ORDER BY: several columns of the SELECT have that name"),
                });
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        let is_outermost = self.outermost.contains(&std::ptr::from_ref(&*select));
        let mut taken = HashSet::new();
        let mut numbers = HashMap::new();
        let mut mentions: HashMap<String, usize> = HashMap::new();
        for name in select.projection.iter().filter_map(own_name) {
            *mentions.entry(name).or_default() += 1;
        }
        for item in &mut select.projection {
            let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = &*item else { continue };
            let (name, is_named) = own_name(item).map_or_else(|| (expr.to_string(), false), |name| (name, true));
            // Further out the name would mean one of them, and nothing knows which: there it means
            // none.
            let is_ambiguous = !is_outermost && is_named && mentions.get(&name).is_some_and(|mentions| *mentions > 1);
            let is_new = !is_ambiguous && taken.insert(name.clone());
            if !(is_new && is_named) {
                let name = if is_new { name } else { numbered(&mut taken, &mut numbers, &name) };
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::with_quote('"', name) };
            }
        }
        ControlFlow::Continue(())
    }
}

/// Returns the name that a statement gives a column, or takes over from another.
fn own_name(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(name.value.clone()),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => parts.last().map(|name| name.value.clone()),
        SelectItem::UnnamedExpr(Expr::Subquery(query)) => {
            let mut selects = Vec::new();
            selects_of(&query.body, &mut selects);
            own_name(selects.first()?.projection.first()?)
        }
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
        _ => None,
    }
}

/// Returns what the columns of that name are.
fn named<'a>(items: &'a [SelectItem], name: &Ident) -> Vec<&'a Expr> {
    let of_name = |item: &'a SelectItem| match item {
        SelectItem::ExprWithAlias { expr, alias } => (alias.value == name.value).then_some(expr),
        SelectItem::UnnamedExpr(expr @ Expr::Identifier(column)) => (column.value == name.value).then_some(expr),
        _ => None,
    };
    items.iter().filter_map(of_name).collect()
}

/// Gathers the `SELECT`s that a query consists of.
fn selects_of<'a>(body: &'a SetExpr, selects: &mut Vec<&'a Select>) {
    let mut bodies = vec![body];
    while let Some(body) = bodies.pop() {
        match body {
            SetExpr::Select(select) => selects.push(select),
            SetExpr::Query(query) => bodies.push(&query.body),
            SetExpr::SetOperation { left, right, .. } => bodies.extend([&**right, &**left]),
            _ => {}
        }
    }
}

/// Returns `name` with the least number, of those that were not given yet, that makes it a new one.
fn numbered(taken: &mut HashSet<String>, numbers: &mut HashMap<String, usize>, name: &str) -> String {
    let number = numbers.entry(name.to_owned()).or_default();
    loop {
        *number += 1;
        let numbered = format!("{name}_{number}");
        if taken.insert(numbered.clone()) {
            return numbered;
        }
    }
}

struct NameCasts;

impl VisitorMut for NameCasts {
    type Break = Error;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if matches!(expr, Expr::Cast { .. }) {
            let text = expr.to_string();
            let arguments = [std::mem::replace(expr, literal("")), literal(&text)];
            let args = arguments.into_iter().map(|expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))).collect();
            *expr = Expr::Function(Function {
                name: ObjectName::from(vec![Ident::new(functions::NAMED)]),
                uses_odbc_syntax: false,
                parameters: FunctionArguments::None,
                args: FunctionArguments::List(ast::FunctionArgumentList {
                    duplicate_treatment: None,
                    args,
                    clauses: vec![],
                }),
                filter: None,
                null_treatment: None,
                over: None,
                within_group: vec![],
            });
        }
        ControlFlow::Continue(())
    }
}
