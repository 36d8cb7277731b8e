//! What planning a statement will cost, told from its parsed text: what is too large is refused
//! before it is planned.
//!
//! A few lines can mean any amount of work: a common table expression stands for its whole plan
//! wherever it is mentioned, and each join has all columns of those before it. Owns the sums and
//! their limits. Never resolves a name further than to a common table expression, and never plans;
//! that the plan is allowed, and not too large either, is seen afterwards.

use std::{
    collections::{HashMap, HashSet},
    ops::{AddAssign, ControlFlow},
};

use datafusion::sql::{
    parser::Statement as Parsed,
    sqlparser::ast::{
        self, Expr, GroupByExpr, Ident, ObjectName, PipeOperator, Query, Select, SelectItem,
        SelectItemQualifiedWildcardKind, TableFactor, Value, ValueWithSpan, Visitor,
    },
};

use super::{statement::refuse, walk};
use crate::{Error, Result};

/// Tables, queries and windows that a statement may have, each common table expression written out
/// where it is mentioned.
const MAX_PARTS: u64 = 4_000;

/// Columns and expressions that they may have together; a join has those of all tables before it
/// once more.
const MAX_ENTRIES: u64 = 1_000_000;

/// Share of these that a statement may have which is explained: its plan is written as text some
/// thirty times.
const EXPLAINED: u64 = 16;

/// Columns that one `SELECT` may have.
const MAX_COLUMNS: u64 = 16_384;

/// Columns that one may have of which the planner compares each with all others, which no check ends: with the names of
/// all written out, this takes two seconds.
const MAX_COMPARED: u64 = 2_048;

/// Parts and entries that planning may walk through: it goes through all that a `SELECT` reads for
/// each of its columns, and through the common table expressions in scope for each query.
const MAX_STEPS: u64 = 100_000_000;

/// Bytes of a constant that count as much as one expression.
const ENTRY_BYTES: usize = 64;

/// How wide the lists of a statement are.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Widths {
    pub(super) widest: u64,
    /// Pairs of columns of one list, in all of them.
    pairs: u64,
}

impl Widths {
    /// Returns an error if comparing the columns of each list would take too much time.
    pub(super) fn check_pairs(self) -> Result<()> {
        if self.pairs <= MAX_COMPARED * MAX_COMPARED {
            return Ok(());
        }
        refuse(format!(
            "the statement is too large: its SELECTs may have {MAX_COMPARED} columns where one of them has groups, aggregates, \
             windows, DISTINCT or unnest, or sorts by expressions of what it names"
        ))
    }
}

/// Returns how wide the lists of a statement are; an error if planning it would take too much time or
/// memory. `width` says how many columns a table has.
pub(super) fn check(statement: &Parsed, width: &dyn Fn(&ObjectName) -> usize) -> Result<Widths> {
    let (statement, share) = match statement {
        Parsed::Explain(explain) => (&*explain.statement, EXPLAINED),
        other => (other, 1),
    };
    let Parsed::Statement(statement) = statement else { return Ok(Widths::default()) };
    let mut sums = Sums {
        width,
        frames: Vec::new(),
        last: Cte::default(),
        widths: Widths::default(),
        made: 0,
        steps: 0,
        most: MAX_ENTRIES / share,
    };
    walk::read(statement, &mut sums)?;
    Ok(sums.widths)
}

/// How large the plan of something is.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    parts: u64,
    entries: u64,
}

impl Size {
    fn sum(self) -> u64 {
        self.parts.saturating_add(self.entries)
    }
}

impl AddAssign for Size {
    fn add_assign(&mut self, other: Self) {
        self.parts = self.parts.saturating_add(other.parts);
        self.entries = self.entries.saturating_add(other.entries);
    }
}

/// A query that can be mentioned: its size, and how many columns it has.
#[derive(Debug, Clone, Copy, Default)]
struct Cte {
    size: Size,
    width: u64,
}

/// A query or a `SELECT` that is walked through.
#[derive(Debug, Default)]
struct QueryScope {
    size: Size,
    /// The part of it that its `FROM` mentions.
    from: Size,
    /// Columns of its `FROM` so far.
    columns: u64,
    /// And of each table of it that has a name there.
    tables: HashMap<String, u64>,
    /// Columns that it gives.
    width: u64,
    /// Different windows of its functions.
    windows: HashSet<String>,
    /// Its common table expressions so far, by name.
    ctes: HashMap<String, Cte>,
    /// The names of its common table expressions, by the address of their queries.
    names: HashMap<*const Query, String>,
    is_recursive: bool,
    /// How many there are in scope.
    in_scope: u64,
}

struct Sums<'a> {
    width: &'a dyn Fn(&ObjectName) -> usize,
    frames: Vec<QueryScope>,
    /// The query that was walked through last.
    last: Cte,
    widths: Widths,
    /// Columns and expressions, where a common table expression counts once.
    made: u64,
    steps: u64,
    /// Most entries.
    most: u64,
}

type CostFlow = ControlFlow<Error>;

impl Sums<'_> {
    fn frame(&mut self) -> Option<&mut QueryScope> {
        self.frames.last_mut()
    }

    /// Counts columns or expressions of the innermost frame.
    fn make(&mut self, entries: u64) -> CostFlow {
        self.made = self.made.saturating_add(entries);
        let most = self.most;
        let made = self.made;
        let Some(frame) = self.frame() else { return ControlFlow::Continue(()) };
        frame.size += Size { parts: 0, entries };
        within(frame.size, made, most)
    }

    fn walk(&mut self, steps: u64) -> CostFlow {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > MAX_STEPS {
            return too_large("planning it would take more than", MAX_STEPS, "steps");
        }
        ControlFlow::Continue(())
    }

    /// Counts a table in `FROM`, which adds its columns to those before it.
    fn joined(&mut self, of: Cte, name: Option<&Ident>) -> CostFlow {
        let Some(frame) = self.frame() else { return ControlFlow::Continue(()) };
        if let Some(name) = name {
            frame.tables.insert(name.value.clone(), of.width);
        }
        frame.from += of.size;
        frame.columns = frame.columns.saturating_add(of.width);
        let columns = frame.columns;
        self.make(columns)
    }

    /// Counts a table that is mentioned by its name, or made by a function.
    fn mention(&mut self, of: Cte, name: Option<&Ident>) -> CostFlow {
        if let Some(frame) = self.frame() {
            frame.size += of.size;
        }
        self.joined(of, name)
    }

    fn named(&self, name: &ObjectName) -> Cte {
        let single = match name.0.as_slice() {
            [part] => part.as_ident(),
            _ => None,
        };
        let cte = single.and_then(|name| self.frames.iter().rev().find_map(|frame| frame.ctes.get(&name.value)));
        cte.copied().unwrap_or_else(|| table((self.width)(name) as u64))
    }

    /// Adds what a frame came to to the one around it.
    fn leave(&mut self, size: Size, width: u64) -> CostFlow {
        let (made, most) = (self.made, self.most);
        let Some(around) = self.frame() else { return within(size, made, most) };
        around.size += size;
        around.width = around.width.max(width);
        within(around.size, made, most)
    }

    fn pipe(&mut self, operator: &PipeOperator) -> CostFlow {
        let Some(frame) = self.frame() else { return ControlFlow::Continue(()) };
        frame.size += Size { parts: 1, entries: 0 };
        // What its joins add is there from the first operator on.
        let before = frame.width.saturating_add(std::mem::take(&mut frame.columns));
        frame.width = match operator {
            PipeOperator::Select { exprs } => width_of(exprs, before, &frame.tables),
            PipeOperator::Extend { exprs } => before.saturating_add(width_of(exprs, before, &frame.tables)),
            PipeOperator::Aggregate { full_table_exprs, group_by_expr } => {
                full_table_exprs.len().saturating_add(group_by_expr.len()) as u64
            }
            _ => before,
        };
        let (width, read) = (frame.width, frame.size.sum());
        few_enough(width)?;
        self.walk(width.saturating_mul(read))?;
        self.make(width)
    }
}

impl Visitor for Sums<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &Query) -> CostFlow {
        let around = self.frames.last_mut();
        let mut frame =
            QueryScope { in_scope: around.as_ref().map_or(0, |around| around.in_scope), ..QueryScope::default() };
        let own: *const Query = query;
        // One that is recursive mentions the rows that it made last.
        if let Some(around) = around
            && around.is_recursive
            && let Some(name) = around.names.get(&own)
        {
            around.ctes.insert(name.clone(), table(1));
        }
        if let Some(with) = &query.with {
            let body = |cte: &ast::Cte| {
                let body: *const Query = &*cte.query;
                (body, cte.alias.name.value.clone())
            };
            frame.names = with.cte_tables.iter().map(body).collect();
            frame.is_recursive = with.recursive;
            frame.in_scope = frame.in_scope.saturating_add(with.cte_tables.len() as u64);
        }
        let in_scope = frame.in_scope;
        self.frames.push(frame);
        self.walk(in_scope)
    }

    fn post_visit_query(&mut self, query: &Query) -> CostFlow {
        query.pipe_operators.iter().try_for_each(|operator| self.pipe(operator))?;
        let Some(mut frame) = self.frames.pop() else { return ControlFlow::Continue(()) };
        frame.size += Size { parts: 1 + frame.windows.len() as u64, entries: 0 };
        let (size, width) = (frame.size, frame.width);
        self.last = Cte { size, width };
        let own: *const Query = query;
        if let Some(around) = self.frames.last_mut()
            && let Some(name) = around.names.get(&own)
        {
            // It costs where it is mentioned.
            around.ctes.insert(name.clone(), Cte { size, width });
            return within(size, self.made, self.most);
        }
        // A query in parentheses is what the one around it consists of.
        self.leave(size, width)
    }

    fn pre_visit_select(&mut self, _: &Select) -> CostFlow {
        let in_scope = self.frames.last().map_or(0, |around| around.in_scope);
        self.frames.push(QueryScope { in_scope, ..QueryScope::default() });
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &Select) -> CostFlow {
        let Some(frame) = self.frames.last() else { return ControlFlow::Continue(()) };
        let (columns, windows, from) = (frame.columns, frame.windows.len() as u64, frame.from.sum());
        let width = match select.projection.as_slice() {
            [] => columns,
            items => width_of(items, columns, &frame.tables),
        };
        few_enough(width)?;
        self.widths.widest = self.widths.widest.max(width);
        self.widths.pairs = self.widths.pairs.saturating_add(width * width);
        self.walk((select.projection.len() as u64 + 1).saturating_mul(from))?;
        // The step of each window has the columns of those before it.
        let of_windows = windows.saturating_mul(columns).saturating_add(windows.saturating_mul(windows));
        self.make(width.saturating_add(of_windows).saturating_add(grouping_sets(&select.group_by)))?;
        let Some(frame) = self.frames.pop() else { return ControlFlow::Continue(()) };
        let mut size = frame.size;
        size += Size { parts: 1 + windows, entries: 0 };
        self.leave(size, width)
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> CostFlow {
        match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                let last = name.0.last().and_then(|part| part.as_ident());
                self.mention(self.named(name), alias.as_ref().map(|alias| &alias.name).or(last))
            }
            TableFactor::Table { .. } | TableFactor::Function { .. } | TableFactor::TableFunction { .. } => {
                self.mention(table(1), None)
            }
            TableFactor::UNNEST { array_exprs, .. } => self.mention(table(array_exprs.len() as u64), None),
            _ => ControlFlow::Continue(()),
        }
    }

    fn post_visit_table_factor(&mut self, factor: &TableFactor) -> CostFlow {
        match factor {
            TableFactor::Derived { alias, .. } => self.joined(self.last, alias.as_ref().map(|alias| &alias.name)),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> CostFlow {
        if let Expr::Function(function) = expr
            && let Some(over) = &function.over
            && let Some(frame) = self.frame()
        {
            frame.windows.insert(over.to_string());
        }
        self.make(1)
    }

    fn pre_visit_value(&mut self, value: &ValueWithSpan) -> CostFlow {
        let bytes = match &value.value {
            Value::Number(text, _)
            | Value::SingleQuotedString(text)
            | Value::DoubleQuotedString(text)
            | Value::EscapedStringLiteral(text)
            | Value::UnicodeStringLiteral(text)
            | Value::NationalStringLiteral(text)
            | Value::HexStringLiteral(text) => text.len(),
            Value::DollarQuotedString(text) => text.value.len(),
            _ => 0,
        };
        self.make((bytes / ENTRY_BYTES) as u64)
    }
}

fn table(width: u64) -> Cte {
    Cte { size: Size { parts: 1, entries: width }, width }
}

/// Returns how many columns the items of a `SELECT` stand for, of a `FROM` that has `columns`.
fn width_of(items: &[SelectItem], columns: u64, tables: &HashMap<String, u64>) -> u64 {
    let of_table = |name: &ObjectName| tables.get(&name.0.last()?.as_ident()?.value).copied();
    items.iter().fold(0, |width: u64, item| {
        width.saturating_add(match item {
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                of_table(name).unwrap_or(columns)
            }
            SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => columns.max(1),
            _ => 1,
        })
    })
}

/// Returns how many expressions the grouping sets have, each of them written out.
fn grouping_sets(group_by: &GroupByExpr) -> u64 {
    let GroupByExpr::Expressions(keys, _) = group_by else { return 0 };
    let power = |count: usize| u32::try_from(count).ok().and_then(|count| 1_u64.checked_shl(count)).unwrap_or(u64::MAX);
    let sets = keys.iter().fold(1, |sets: u64, key| {
        sets.saturating_mul(match key {
            Expr::Cube(columns) => power(columns.len()),
            Expr::Rollup(columns) => columns.len() as u64 + 1,
            Expr::GroupingSets(columns) => (columns.len() as u64).max(1),
            _ => 1,
        })
    });
    let columns = keys.iter().map(|key| match key {
        Expr::Cube(columns) | Expr::Rollup(columns) | Expr::GroupingSets(columns) => {
            columns.iter().map(|set| set.len().max(1)).sum()
        }
        _ => 1_usize,
    });
    if sets <= 1 { 0 } else { sets.saturating_mul(columns.sum::<usize>() as u64) }
}

fn within(size: Size, made: u64, most: u64) -> CostFlow {
    if size.parts > MAX_PARTS {
        return too_large(
            "with each common table expression and subquery written out where it is mentioned, it has more than",
            MAX_PARTS,
            "tables, queries and windows",
        );
    }
    if size.entries.max(made) > most {
        return too_large(
            "with each common table expression and subquery written out where it is mentioned, and the columns of each join, \
             it has more than",
            most,
            "columns and expressions",
        );
    }
    ControlFlow::Continue(())
}

fn few_enough(width: u64) -> CostFlow {
    if width > MAX_COLUMNS {
        return too_large("one of its SELECTs has more than", MAX_COLUMNS, "columns");
    }
    ControlFlow::Continue(())
}

fn too_large(what: &str, most: u64, of: &str) -> CostFlow {
    match refuse::<()>(format!("the statement is too large: {what} {most} {of}")) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}
