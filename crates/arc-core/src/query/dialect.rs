//! The SQL dialect: the parser's generic one, with a limit on how much work one statement may
//! cause.
//!
//! The parser tries several readings of words such as `CAST` or `INTERVAL`, each of which tries
//! several readings of what follows: forty of them in a row that end in an error would take it
//! longer than the age of the universe.

use std::{any::TypeId, cell::Cell};

use datafusion::sql::sqlparser::{
    ast::Expr,
    dialect::{Dialect, GenericDialect},
    parser::{Parser, ParserError},
    tokenizer::TokenWithSpan,
};

use super::past;

/// Expressions that the parser may begin for each token, and for a statement at least. Queries that
/// people and tools write take less than two for each token.
const ATTEMPTS_PER_TOKEN: usize = 8;
const MIN_ATTEMPTS: usize = 10_000;

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
