//! DuckDB's `ASOF [LEFT] JOIN … ON|USING` in the words of the parser, which knows Snowflake's only.
//!
//! There the match condition stands apart:
//! `ASOF JOIN … MATCH_CONDITION (left.time >= right.time) ON …`. A truth in its place says that it
//! is part of what follows, and whether all rows of the left side stay. Snowflake's own always
//! keeps them.

use std::{iter::Peekable, ops::ControlFlow};

use datafusion::sql::sqlparser::{
    ast::{JoinOperator, Select, Statement, TableFactor, TableWithJoins, VisitorMut},
    keywords::Keyword,
    tokenizer::{Token, TokenWithSpan},
};

use crate::{Error, query::walk};

/// Puts match conditions where the parser wants them.
pub(in crate::query) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens.iter().any(|token| keyword(token) == Some(Keyword::ASOF)) {
        return;
    }
    let mut spelled: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 8);
    // For each join that waits for its condition: the parentheses that it is in, and whether it
    // keeps all rows.
    let mut waiting: Vec<(usize, bool)> = Vec::new();
    let mut depth = 0_usize;
    let mut rest = std::mem::take(tokens).into_iter().peekable();
    while let Some(token) = rest.next() {
        match (&token.token, keyword(&token)) {
            (Token::LParen, _) => depth += 1,
            (Token::RParen, _) => {
                depth = depth.saturating_sub(1);
                waiting.retain(|(of, _)| *of <= depth);
            }
            (_, Some(Keyword::ASOF)) if is_behind_a_table(&spelled) => {
                let outer = skip(&mut rest, Keyword::LEFT);
                if outer {
                    skip(&mut rest, Keyword::OUTER);
                }
                if next_is(&mut rest, Keyword::JOIN) {
                    waiting.push((depth, outer));
                }
            }
            (_, Some(Keyword::MATCH_CONDITION)) => {
                waiting.pop_if(|(of, _)| *of == depth);
            }
            (_, Some(Keyword::ON | Keyword::USING)) => {
                if let Some((_, outer)) = waiting.pop_if(|(of, _)| *of == depth) {
                    spelled.extend(match_condition(outer));
                }
            }
            _ => {}
        }
        spelled.push(token);
    }
    *tokens = spelled;
}

/// Returns whether a join may follow, so that the next word is none that a caller gave to a table
/// or column.
fn is_behind_a_table(before: &[TokenWithSpan]) -> bool {
    let last = before.iter().rev().find(|token| !matches!(token.token, Token::Whitespace(_)));
    last.is_some_and(|last| match (&last.token, keyword(last)) {
        (Token::RParen, _) => true,
        (Token::Word(_), Some(of)) => !matches!(of, Keyword::FROM | Keyword::JOIN | Keyword::SELECT | Keyword::AS),
        (Token::Word(_), None) => true,
        _ => false,
    })
}

fn keyword(token: &TokenWithSpan) -> Option<Keyword> {
    match &token.token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}

type RestOfTokens = Peekable<std::vec::IntoIter<TokenWithSpan>>;

/// Leaves out the next word if it is this one.
fn skip(rest: &mut RestOfTokens, word: Keyword) -> bool {
    next_is(rest, word) && rest.next().is_some()
}

/// Returns whether the next word is this one, and leaves out what is before it.
fn next_is(rest: &mut RestOfTokens, word: Keyword) -> bool {
    while rest.next_if(|token| matches!(token.token, Token::Whitespace(_))).is_some() {}
    rest.peek().is_some_and(|token| keyword(token) == Some(word))
}

fn match_condition(outer: bool) -> impl Iterator<Item = TokenWithSpan> {
    let outer = Token::make_keyword(if outer { "TRUE" } else { "FALSE" });
    [Token::make_keyword("MATCH_CONDITION"), Token::LParen, outer, Token::RParen].into_iter().map(TokenWithSpan::wrap)
}

/// Puts each such join in parentheses with all that stands before it, for relations can be planned
/// by others, joins not.
pub(in crate::query) fn nest(statement: &mut Statement) {
    // It ends no walk.
    let _ = walk::change(statement, &mut Nesting);
}

struct Nesting;

impl VisitorMut for Nesting {
    type Break = Error;

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        select.from.iter_mut().for_each(nest_joins);
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        if let TableFactor::NestedJoin { table_with_joins, .. } = factor {
            nest_joins(table_with_joins);
        }
        ControlFlow::Continue(())
    }
}

fn nest_joins(table: &mut TableWithJoins) {
    let Some(last) = table.joins.iter().rposition(|join| matches!(join.join_operator, JoinOperator::AsOf { .. }))
    else {
        return;
    };
    let rest = table.joins.split_off(last + 1);
    let none = TableFactor::NestedJoin {
        table_with_joins: Box::new(TableWithJoins { relation: table.relation.clone(), joins: Vec::new() }),
        alias: None,
    };
    let inner = TableWithJoins {
        relation: std::mem::replace(&mut table.relation, none),
        joins: std::mem::replace(&mut table.joins, rest),
    };
    table.relation = TableFactor::NestedJoin { table_with_joins: Box::new(inner), alias: None };
}
