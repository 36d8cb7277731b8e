//! The SQL dialect: the parser's generic one with the operators in the order of PostgreSQL, and a
//! limit on how much work one statement may cause.
//!
//! The parser tries several readings of words such as `CAST` or `INTERVAL`, each of which tries
//! several readings of what follows: forty of them in a row that end in an error would take it
//! longer than the age of the universe.

use std::{any::TypeId, cell::Cell};

use datafusion::sql::sqlparser::{
    ast::Expr,
    dialect::{Dialect, GenericDialect, Precedence},
    keywords::Keyword,
    parser::{Parser, ParserError},
    tokenizer::{Token, TokenWithSpan},
};

use super::past;

/// Expressions that the parser may begin for each token, and for a statement at least. Queries that
/// people and tools write take less than two for each token.
const ATTEMPTS_PER_TOKEN: usize = 8;
const MIN_ATTEMPTS: usize = 10_000;

/// How firmly PostgreSQL's operators bind that are no words, comparisons or arithmetic: more than
/// `LIKE`, less than `+`. Greater than what comparisons have by [`Limited::prec_value`].
const OTHER_OPERATOR: u8 = 21;

/// The generic dialect, counting down.
#[derive(Debug)]
pub(super) struct Limited {
    generic: GenericDialect,
    attempts: Cell<usize>,
    /// Whether a table's name may be followed by its time.
    has_times: bool,
}

impl Limited {
    /// Returns the dialect for one statement.
    pub(super) fn new(tokens: &[TokenWithSpan]) -> Self {
        let attempts = Cell::new(tokens.len().saturating_mul(ATTEMPTS_PER_TOKEN).max(MIN_ATTEMPTS));
        Self { generic: GenericDialect {}, attempts, has_times: past::is_said(tokens) }
    }

    /// Returns whether the limit was hit. What was parsed then means nothing: readings failed that
    /// are right.
    pub(super) fn is_exhausted(&self) -> bool {
        self.attempts.get() == 0
    }
}

/// Answers as the generic dialect does.
macro_rules! as_generic {
    ($($question:ident),* $(,)?) => {
        $(fn $question(&self) -> bool {
            self.generic.$question()
        })*
    };
}

impl Dialect for Limited {
    fn parse_prefix(&self, _: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        self.attempts.set(self.attempts.get().saturating_sub(1));
        self.is_exhausted().then_some(Err(ParserError::RecursionLimitExceeded))
    }

    /// Reads `IS [NOT] DISTINCT FROM`, of which the parser has the right side take all that follows.
    fn parse_infix(&self, parser: &mut Parser<'_>, left: &Expr, precedence: u8) -> Option<Result<Expr, ParserError>> {
        let whole = if parser.parse_keywords(&[Keyword::IS, Keyword::DISTINCT, Keyword::FROM]) {
            Expr::IsDistinctFrom
        } else if parser.parse_keywords(&[Keyword::IS, Keyword::NOT, Keyword::DISTINCT, Keyword::FROM]) {
            Expr::IsNotDistinctFrom
        } else {
            return None;
        };
        Some(parser.parse_subexpr(precedence).map(|right| whole(Box::new(left.clone()), Box::new(right))))
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        match precedence {
            Precedence::PgOther | Precedence::Ampersand | Precedence::Pipe | Precedence::Colon => OTHER_OPERATOR,
            Precedence::Between | Precedence::Like => 20,
            Precedence::Eq => 18,
            other => self.generic.prec_value(other),
        }
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        let is_other = matches!(
            parser.peek_token_ref().token,
            Token::StringConcat
                | Token::ShiftLeft
                | Token::ShiftRight
                | Token::Sharp
                | Token::Tilde
                | Token::TildeAsterisk
                | Token::ExclamationMarkTilde
                | Token::ExclamationMarkTildeAsterisk
                | Token::DoubleTilde
                | Token::DoubleTildeAsterisk
                | Token::ExclamationMarkDoubleTilde
                | Token::ExclamationMarkDoubleTildeAsterisk
        );
        is_other.then_some(Ok(OTHER_OPERATOR))
    }

    fn dialect(&self) -> TypeId {
        self.generic.dialect()
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        self.generic.is_delimited_identifier_start(ch)
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        self.generic.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        self.generic.is_identifier_part(ch)
    }

    fn supports_table_versioning(&self) -> bool {
        self.has_times
    }

    // Those about statements that are refused in any case are left out, and so are those about
    // parts of a query that planning would pass over.
    as_generic!(
        allow_extract_custom,
        allow_extract_single_quotes,
        support_map_literal_syntax,
        supports_array_join_syntax,
        supports_array_typedef_with_brackets,
        supports_asc_desc_in_column_definition,
        supports_bitwise_shift_operators,
        supports_comma_separated_trim,
        supports_constraint_keyword_without_name,
        supports_cte_without_as,
        supports_data_type_signed_suffix,
        supports_dictionary_syntax,
        supports_empty_projections,
        supports_explain_with_utility_options,
        supports_extract_comma_syntax,
        supports_filter_during_aggregation,
        supports_from_first_select,
        supports_group_by_expr,
        supports_group_by_with_modifier,
        supports_interval_options,
        supports_key_column_option,
        supports_left_associative_joins_without_parens,
        supports_limit_by,
        supports_limit_comma,
        supports_match_recognize,
        supports_named_fn_args_with_assignment_operator,
        supports_nested_comments,
        supports_parens_around_table_factor,
        supports_partition_by_after_order_by,
        supports_pipe_operator,
        supports_projection_trailing_commas,
        supports_quote_delimited_string,
        supports_select_item_multi_column_alias,
        supports_select_wildcard_except,
        supports_select_wildcard_exclude,
        supports_select_wildcard_ilike,
        supports_select_wildcard_rename,
        supports_select_wildcard_replace,
        supports_string_escape_constant,
        supports_struct_literal,
        supports_try_convert,
        supports_unicode_string_literal,
        supports_values_as_table_factor,
        supports_window_clause_named_window_reference,
        supports_window_function_null_treatment_arg,
    );
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use datafusion::sql::sqlparser::{ast::visit_expressions_mut, tokenizer::Tokenizer};

    use super::*;

    /// Operators of PostgreSQL's table that stand between two values, from those that bind least on.
    const LEVELS: [&[&str]; 8] = [
        &["OR"],
        &["AND"],
        &["IS DISTINCT FROM", "IS NOT DISTINCT FROM"],
        &["=", "<>", "<", "<=", ">", ">="],
        &["LIKE", "NOT LIKE", "ILIKE"],
        &["||", "~", "!~", "~*", "!~*", "~~", "&", "|", "<<", ">>", "@>", "<@"],
        &["+", "-"],
        &["*", "/", "%"],
    ];
    /// Those behind one value, each with the place of its level.
    const BEHIND: [(&str, usize); 7] = [
        ("IS NULL", 2),
        ("IS NOT TRUE", 2),
        ("IN (1, 2)", 4),
        ("NOT IN (1)", 4),
        ("BETWEEN 1 AND 2", 4),
        ("NOT BETWEEN 1 AND 2 + 3", 4),
        ("::TEXT", 8),
    ];

    /// Returns what is parsed, without the parentheses.
    fn parsed(text: &str) -> Expr {
        let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location().unwrap();
        let dialect = Limited::new(&tokens);
        let mut parser = Parser::new(&dialect).with_tokens_with_locations(tokens);
        let mut expr = parser.parse_expr().unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(parser.peek_token().token, Token::EOF, "{text}");
        let _ = visit_expressions_mut(&mut expr, |expr| {
            while let Expr::Nested(inner) = expr {
                *expr = (**inner).clone();
            }
            ControlFlow::<()>::Continue(())
        });
        expr
    }

    fn check(bare: &str, whole: &str) {
        assert_eq!(parsed(bare).to_string(), parsed(whole).to_string(), "{bare} is {whole}");
        assert_eq!(parsed(bare), parsed(whole), "{bare} is {whole}");
    }

    #[test]
    fn operators_bind_as_in_postgresql() {
        let operators = || LEVELS.iter().enumerate().flat_map(|(level, all)| all.iter().map(move |one| (level, *one)));
        for (first_level, first) in operators() {
            for (second_level, second) in operators() {
                let bare = format!("a {first} b {second} c");
                // Of one level the first comes first.
                match first_level >= second_level {
                    true => check(&bare, &format!("(a {first} b) {second} c")),
                    false => check(&bare, &format!("a {first} (b {second} c)")),
                }
            }
            for (behind, level) in BEHIND {
                let bare = format!("a {first} b {behind}");
                match first_level >= level {
                    true => check(&bare, &format!("(a {first} b) {behind}")),
                    false => check(&bare, &format!("a {first} (b {behind})")),
                }
                // A comparison of what is behind a value is none of PostgreSQL's.
                if level > first_level {
                    check(&format!("a {behind} {first} b"), &format!("(a {behind}) {first} b"));
                }
            }
            match first_level < 2 {
                true => check(&format!("NOT a {first} b"), &format!("(NOT a) {first} b")),
                false => check(&format!("NOT a {first} b"), &format!("NOT (a {first} b)")),
            }
            check(&format!("- a {first} - b"), &format!("(- a) {first} (- b)"));
            check(&format!("a {first} b AT TIME ZONE 'UTC'"), &format!("a {first} (b AT TIME ZONE 'UTC')"));
        }
    }
}
