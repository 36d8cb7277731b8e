//! Tables as they were: `FOR SYSTEM_TIME AS OF …` and `AT (… => …)` after a table's name.
//!
//! Owns the syntax and how such tables are named within a plan. The parser hands over what was said
//! of a table; planning evaluates it once for the statement, and each state that is meant gets a
//! number. A table of state 3 of the database `plant` is one of the database [`name_at`] says: no
//! database can have that name, so that all that asks for tables by name needs to know nothing of
//! time.

use std::{ops::ControlFlow, sync::Arc};

use datafusion::{
    common::ScalarValue,
    logical_expr::{Expr as PlanExpr, LogicalPlan},
    sql::{
        parser::Statement as Parsed,
        sqlparser::{
            ast::{
                Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, ObjectNamePart, TableAlias,
                TableFactor, TableVersion, Value, VisitorMut,
            },
            tokenizer::{Token, TokenWithSpan},
        },
    },
};

use super::{QueryTables, session::CATALOG, statement::refuse, walk};
use crate::{Error, PastMoment, Result, SnapshotInfo, model::TableSchema, view::TableView};

/// Stands between the name of a database and the number of a state; no name has it.
const MARK: char = '\0';

/// What a statement says of a table's time.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Moment {
    /// A time, still to be computed.
    Time(Box<Expr>),
    /// The time of a snapshot.
    Snapshot(String),
}

/// Returns the name under which the tables of a database are planned as they were in a state.
fn name_at(database: &str, state: usize) -> String {
    format!("{database}{MARK}{state}")
}

/// Returns the database of a name, and the number of the state that is meant.
fn parse_name(name: &str) -> (&str, Option<usize>) {
    match name.split_once(MARK) {
        Some((database, state)) => (database, state.parse().ok().or(Some(usize::MAX))),
        None => (name, None),
    }
}

/// Returns the name of a database as people know it.
pub(super) fn shown(name: &str) -> &str {
    parse_name(name).0
}

/// Returns a text, such as a plan, with names of databases as people know them.
pub(super) fn shown_in(text: &str) -> String {
    let mut parts = text.split(MARK);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |shown, part| shown + part.trim_start_matches(|digit: char| digit.is_ascii_digit()))
}

/// Takes what a statement says of the times of its tables, and names these by the number of what is
/// returned.
///
/// # Errors
///
/// [`Error::Sql`] for what cannot be said.
pub(super) fn take(statement: &mut Parsed, database: &str) -> Result<Vec<Moment>> {
    let mut taking = Taking { database, moments: Vec::new() };
    walk::change_inner(statement, &mut taking)?;
    Ok(taking.moments)
}

struct Taking<'a> {
    database: &'a str,
    moments: Vec<Moment>,
}

impl VisitorMut for Taking<'_> {
    type Break = Error;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        let TableFactor::Table { name, alias, version, .. } = factor else { return ControlFlow::Continue(()) };
        let Some(version) = version.take() else { return ControlFlow::Continue(()) };
        match moment(version) {
            Ok(moment) => self.rename(name, alias, moment),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

impl Taking<'_> {
    fn rename(&mut self, name: &mut ObjectName, alias: &mut Option<TableAlias>, moment: Moment) -> ControlFlow<Error> {
        let known = self.moments.iter().position(|known| *known == moment);
        let state = known.unwrap_or(self.moments.len());
        if known.is_none() {
            self.moments.push(moment);
        }
        let parts: Option<Vec<&Ident>> = name.0.iter().map(ObjectNamePart::as_ident).collect();
        let (database, table) = match parts.as_deref() {
            Some([table]) => (self.database, *table),
            Some([catalog, database, table]) if catalog.value != CATALOG => {
                let database = format!("{}.{}", catalog.value, database.value);
                return ControlFlow::Break(Error::TableNotFound { database, table: table.value.clone() });
            }
            Some([database, table]) | Some([_, database, table]) => (database.value.as_str(), *table),
            _ => return ControlFlow::Break(Error::Sql { reason: format!("{name} is no table") }),
        };
        let table = table.clone();
        alias.get_or_insert_with(|| TableAlias {
            explicit: true,
            name: Ident::with_quote('"', &table.value),
            columns: Vec::new(),
            at: None,
        });
        *name = ObjectName::from(vec![Ident::with_quote('"', name_at(database, state)), table]);
        ControlFlow::Continue(())
    }
}

const USAGE: &str = "expected FOR SYSTEM_TIME AS OF a time, AT (TIMESTAMP => a time) or AT (SNAPSHOT => 'name')";

fn moment(version: TableVersion) -> Result<Moment> {
    let called = match version {
        TableVersion::ForSystemTimeAsOf(time) | TableVersion::TimestampAsOf(time) => {
            return Ok(Moment::Time(Box::new(time)));
        }
        TableVersion::Function(Expr::Function(called)) => called,
        other => return refuse(format!("{other} is not supported; {USAGE}")),
    };
    let FunctionArguments::List(list) = &called.args else { return refuse(USAGE) };
    let is_at = called.name.to_string().eq_ignore_ascii_case("at");
    let argument = match list.args.as_slice() {
        [FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. }] if is_at => {
            Some((name.value.clone(), value))
        }
        [FunctionArg::ExprNamed { name: Expr::Identifier(name), arg: FunctionArgExpr::Expr(value), .. }] if is_at => {
            Some((name.value.clone(), value))
        }
        _ => None,
    };
    match argument {
        Some((name, value)) if name.eq_ignore_ascii_case("timestamp") => Ok(Moment::Time(Box::new(value.clone()))),
        Some((name, value)) if name.eq_ignore_ascii_case("snapshot") => match text(value) {
            Some(name) => Ok(Moment::Snapshot(name)),
            None => refuse(format!("{value} is no name of a snapshot; expected one in single quotes")),
        },
        _ => refuse(format!("{called} is not supported; {USAGE}")),
    }
}

fn text(value: &Expr) -> Option<String> {
    match value {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        Expr::Identifier(name) => Some(name.value.clone()),
        _ => None,
    }
}

/// Returns the statement that computes a time.
pub(super) fn query_of(time: &Expr) -> String {
    format!("SELECT CAST(({time}) AS TIMESTAMP(9)) AS \"as of\"")
}

/// Returns the time that a plan of [`query_of`] has come to, once it was optimized.
pub(super) fn time_of(plan: &LogicalPlan, time: &Expr) -> Result<i64> {
    let not_constant = || Error::Sql {
        reason: format!(
            "{time} is no constant time; expected one such as '2026-01-31T12:00:00Z' or now() - INTERVAL '10 minutes'"
        ),
    };
    let LogicalPlan::Projection(projection) = plan else { return Err(not_constant()) };
    let (LogicalPlan::EmptyRelation(_), [computed]) = (projection.input.as_ref(), projection.expr.as_slice()) else {
        return Err(not_constant());
    };
    let mut computed = computed;
    while let PlanExpr::Alias(alias) = computed {
        computed = &alias.expr;
    }
    match computed {
        PlanExpr::Literal(ScalarValue::TimestampNanosecond(Some(time_ns), _), _) => Ok(*time_ns),
        PlanExpr::Literal(ScalarValue::TimestampNanosecond(None, _), _) => {
            refuse(format!("{time} is null, and no time"))
        }
        _ => Err(not_constant()),
    }
}

/// The tables of now, and those of older states under the names of [`name_at`].
#[derive(Debug)]
pub(super) struct TablesInTime {
    now: Arc<dyn QueryTables>,
    states: Vec<Arc<dyn QueryTables>>,
}

impl TablesInTime {
    /// Returns the tables of now and of these states.
    pub(super) fn new(now: Arc<dyn QueryTables>, moments: &[PastMoment]) -> Result<Self> {
        let states = moments.iter().map(|moment| now.at(moment)).collect::<Result<_>>()?;
        Ok(Self { now, states })
    }

    /// Returns the tables that are meant by a name of a database, and the name that they know.
    fn of<'a, 'n>(&'a self, name: &'n str) -> Option<(&'a dyn QueryTables, &'n str)> {
        match parse_name(name) {
            (database, None) => Some((self.now.as_ref(), database)),
            (database, Some(state)) => Some((self.states.get(state)?.as_ref(), database)),
        }
    }
}

impl QueryTables for TablesInTime {
    fn databases(&self) -> Vec<String> {
        self.now.databases()
    }

    fn tables(&self, database: &str) -> Option<Vec<String>> {
        let (tables, database) = self.of(database)?;
        tables.tables(database)
    }

    fn schema(&self, database: &str, table: &str) -> Option<Arc<TableSchema>> {
        let (tables, database) = self.of(database)?;
        tables.schema(database, table)
    }

    fn view(&self, database: &str, table: &str) -> Result<Option<TableView>> {
        self.of(database).map_or(Ok(None), |(tables, database)| tables.view(database, table))
    }

    fn file_totals(&self, database: &str, table: &str) -> Option<(usize, u64)> {
        let (tables, database) = self.of(database)?;
        tables.file_totals(database, table)
    }

    fn folder(&self, database: &str, table: &str) -> String {
        self.now.folder(shown(database), table)
    }

    fn at(&self, moment: &PastMoment) -> Result<Arc<dyn QueryTables>> {
        self.now.at(moment)
    }

    fn snapshots(&self) -> Result<Vec<SnapshotInfo>> {
        self.now.snapshots()
    }
}

/// Returns whether the parser has to look for times of tables. Otherwise `at` is a name like any
/// other.
pub(super) fn is_said(tokens: &[TokenWithSpan]) -> bool {
    let words: Vec<&Token> =
        tokens.iter().map(|token| &token.token).filter(|token| !matches!(token, Token::Whitespace(_))).collect();
    let is = |token: &Token, text: &str| matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(text));
    words.windows(4).any(|words| match words {
        [first, second, third, fourth] => {
            is(first, "for") && is(second, "system_time")
                || is(first, "timestamp") && is(second, "as") && is(third, "of")
                || is(first, "at")
                    && matches!(second, Token::LParen)
                    && (is(third, "timestamp") || is(third, "snapshot"))
                    && matches!(fourth, Token::RArrow)
        }
        _ => false,
    })
}
