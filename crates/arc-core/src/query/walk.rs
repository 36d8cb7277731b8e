//! Walks over a statement, for which visitors are called by a pointer.
//!
//! A walk is five hundred functions of the parser's, which the compiler makes for each type of visitor: half a megabyte each.
//! So there is one type that reads and one that changes.

use std::ops::ControlFlow;

use datafusion::sql::{
    parser::Statement as Parsed,
    sqlparser::ast::{
        Expr, ObjectName, Query, Select, Statement, TableFactor, ValueWithSpan, Visit, VisitMut, Visitor, VisitorMut,
    },
};

use crate::{Error, Result};

/// A visitor that may end the walk.
pub(super) type Reads<'a> = &'a mut dyn Visitor<Break = Error>;
/// A visitor that may change what it sees, or end the walk.
pub(super) type Changes<'a> = &'a mut dyn VisitorMut<Break = Error>;

/// Shows a statement to a visitor.
pub(super) fn read(statement: &Statement, visitor: Reads<'_>) -> Result<()> {
    ended(statement.visit(&mut ReadWalk(visitor)))
}

/// The same; of an `EXPLAIN` what it explains, and of what is no statement of the parser's nothing.
pub(super) fn read_inner(statement: &Parsed, visitor: Reads<'_>) -> Result<()> {
    match statement {
        Parsed::Explain(explain) => read_inner(&explain.statement, visitor),
        Parsed::Statement(statement) => read(statement, visitor),
        _ => Ok(()),
    }
}

/// Has a visitor change a statement.
pub(super) fn change(statement: &mut Statement, visitor: Changes<'_>) -> Result<()> {
    ended(statement.visit(&mut ChangeWalk(visitor)))
}

/// The same of what [`read_inner`] shows.
pub(super) fn change_inner(statement: &mut Parsed, visitor: Changes<'_>) -> Result<()> {
    match statement {
        Parsed::Explain(explain) => change_inner(&mut explain.statement, visitor),
        Parsed::Statement(statement) => change(statement, visitor),
        _ => Ok(()),
    }
}

fn ended(flow: ControlFlow<Error>) -> Result<()> {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct ReadWalk<'a>(Reads<'a>);
struct ChangeWalk<'a>(Changes<'a>);

macro_rules! hand_on {
    ($($visit:ident($node:ty);)*) => {
        impl Visitor for ReadWalk<'_> {
            type Break = Error;

            $(fn $visit(&mut self, node: &$node) -> ControlFlow<Error> {
                self.0.$visit(node)
            })*
        }

        impl VisitorMut for ChangeWalk<'_> {
            type Break = Error;

            $(fn $visit(&mut self, node: &mut $node) -> ControlFlow<Error> {
                self.0.$visit(node)
            })*
        }
    };
}

hand_on! {
    pre_visit_query(Query);
    post_visit_query(Query);
    pre_visit_select(Select);
    post_visit_select(Select);
    pre_visit_relation(ObjectName);
    post_visit_relation(ObjectName);
    pre_visit_table_factor(TableFactor);
    post_visit_table_factor(TableFactor);
    pre_visit_expr(Expr);
    post_visit_expr(Expr);
    pre_visit_statement(Statement);
    post_visit_statement(Statement);
    pre_visit_value(ValueWithSpan);
    post_visit_value(ValueWithSpan);
}
