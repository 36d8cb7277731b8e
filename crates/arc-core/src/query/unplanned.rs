//! What the parser reads and the planner passes over. It is refused, so that no part of a statement is dropped in silence.
//!
//! What the planner takes apart with `..`, or has one field read of, is taken apart here without: a field that a new version
//! of the parser brings does not compile until it is known to be planned (`_`), or refused.

use std::ops::ControlFlow;

use datafusion::sql::{
    parser::Statement,
    sqlparser::ast::{
        Array, BinaryOperator, Cte, DuplicateTreatment, Expr, ExprWithAliasAndOrderBy, Function, FunctionArg,
        FunctionArgumentClause, FunctionArgumentList, FunctionArguments, GroupByExpr, Join, JoinConstraint,
        JoinOperator, OrderBy, OrderByKind, OrderByOptions, PipeOperator, Query, Select, SelectFlavor, SelectItem,
        SetExpr, SetOperator, SetQuantifier, TableAlias, TableAliasColumnDef, TableFactor, TableFunctionArgs, Visitor,
        WildcardAdditionalOptions, WindowSpec, WindowType, With,
    },
};

use super::{statement::refuse, walk};
use crate::{Error, Result};

/// What a function does with what may stand in its parentheses and behind them.
#[derive(Debug, Clone, Copy)]
pub(super) enum FunctionKind {
    /// Makes a value, or some rows, of each row.
    Scalar,
    /// Makes a value of many rows.
    Aggregate { takes_distinct: bool, takes_order: bool },
    /// Makes a value of a row and others of its window.
    Window,
}

/// Refuses a statement with a part that would be passed over. `kind` says what a function is, if it is known.
///
/// # Errors
///
/// [`Error::Sql`] that names the part.
pub(super) fn check(statement: &Statement, kind: &dyn Fn(&str) -> Option<FunctionKind>) -> Result<()> {
    walk::read_inner(statement, &mut Unplanned { kind })
}

struct Unplanned<'a> {
    kind: &'a dyn Fn(&str) -> Option<FunctionKind>,
}

impl Visitor for Unplanned<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, node: &Query) -> ControlFlow<Error> {
        ended(query(node))
    }

    fn pre_visit_select(&mut self, node: &Select) -> ControlFlow<Error> {
        ended(select(node))
    }

    fn pre_visit_table_factor(&mut self, node: &TableFactor) -> ControlFlow<Error> {
        ended(table(node))
    }

    fn pre_visit_expr(&mut self, node: &Expr) -> ControlFlow<Error> {
        ended(match node {
            Expr::Function(node) => self.function(node),
            // It is taken for a regular expression that may meet any part of a text.
            Expr::SimilarTo { .. } => {
                refuse("SIMILAR TO is not known: LIKE, or ~ and a regular expression, say the same")
            }
            Expr::AtTimeZone { timestamp: _, time_zone } if !matches!(**time_zone, Expr::Value(_)) => {
                refuse("AT TIME ZONE takes a constant: 'Europe/Berlin' and '+02:00' are some")
            }
            Expr::BinaryOp { op: BinaryOperator::BitwiseXor, .. } => {
                refuse("^ is a power for some and exclusive or for others: write power(a, b), or (a | b) - (a & b)")
            }
            Expr::Extract { field: _, syntax: _, expr: _ } | Expr::Array(Array { elem: _, named: _ }) => Ok(()),
            _ => Ok(()),
        })
    }
}

/// Ends a walk with an error.
pub(super) fn ended(result: Result<()>) -> ControlFlow<Error> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

/// Refuses a part if it is there.
fn without(is_there: bool, reason: &str) -> Result<()> {
    if is_there { refuse(reason) } else { Ok(()) }
}

fn query(query: &Query) -> Result<()> {
    let Query {
        with,
        body,
        order_by,
        limit_clause: _,
        fetch: _,
        locks,
        for_clause,
        settings,
        format_clause,
        pipe_operators,
    } = query;
    without(!locks.is_empty(), "FOR UPDATE and FOR SHARE are not known: a query locks nothing")?;
    without(
        for_clause.is_some(),
        "FOR JSON, FOR XML and FOR BROWSE are not known: the form of an answer is asked for beside SQL",
    )?;
    without(settings.is_some(), "SETTINGS are not known")?;
    without(format_clause.is_some(), "FORMAT is not known: the form of an answer is asked for beside SQL")?;
    if let Some(OrderBy { kind: OrderByKind::All(_), interpolate: _ }) = order_by {
        let is_select = matches!(**body, SetExpr::Select(_));
        without(!is_select, "ORDER BY ALL is not known behind UNION, INTERSECT, EXCEPT and VALUES: name the columns")?;
    }
    set_operations(body)?;
    if let Some(With { with_token: _, recursive, cte_tables }) = with {
        for Cte { alias, query, from, materialized: _, closing_paren_token: _ } in cte_tables {
            alias_of(Some(alias))?;
            without(from.is_some(), "FROM behind a query of WITH is not known")?;
            if *recursive && matches!(*query.body, SetExpr::SetOperation { .. }) {
                recursive_union(query)?;
            }
        }
    }
    pipe_operators.iter().try_for_each(pipe)
}

/// Equal rows are not counted by them.
fn set_operations(body: &SetExpr) -> Result<()> {
    let mut bodies = vec![body];
    while let Some(body) = bodies.pop() {
        if let SetExpr::SetOperation { left, op, set_quantifier, right } = body {
            let counts = matches!(op, SetOperator::Intersect | SetOperator::Except)
                && matches!(set_quantifier, SetQuantifier::All | SetQuantifier::AllByName);
            without(counts, "INTERSECT ALL and EXCEPT ALL are not known: without ALL each row comes once")?;
            bodies.extend([&**left, &**right]);
        }
    }
    Ok(())
}

/// Of a query that may be recursive only the sides of the union are looked at.
fn recursive_union(query: &Query) -> Result<()> {
    // Whatever else it has is refused of any query.
    let Query { with, order_by, limit_clause, fetch, pipe_operators, .. } = query;
    let is_more =
        with.is_some() || order_by.is_some() || limit_clause.is_some() || fetch.is_some() || !pipe_operators.is_empty();
    without(
        is_more,
        "a UNION in WITH RECURSIVE takes no WITH, ORDER BY, LIMIT or |> of its own: put them into the query that reads it",
    )
}

fn pipe(operator: &PipeOperator) -> Result<()> {
    match operator {
        PipeOperator::Aggregate { full_table_exprs, group_by_expr } => {
            let ordered = |ExprWithAliasAndOrderBy { expr: _, order_by }: &ExprWithAliasAndOrderBy| {
                *order_by != OrderByOptions { asc: None, nulls_first: None }
            };
            let is_ordered = full_table_exprs.iter().chain(group_by_expr).any(ordered);
            without(is_ordered, "AGGREGATE takes no ASC and DESC: |> ORDER BY behind it does")
        }
        PipeOperator::Select { exprs } | PipeOperator::Extend { exprs } => exprs.iter().try_for_each(item),
        PipeOperator::Join(node) => join(node),
        // The planner takes these apart as a whole, and refuses the others.
        _ => Ok(()),
    }
}

fn select(select: &Select) -> Result<()> {
    let Select {
        select_token: _,
        optimizer_hints: _,
        distinct: _,
        select_modifiers,
        top: _,
        top_before_distinct: _,
        projection,
        exclude,
        into: _,
        from,
        lateral_views: _,
        prewhere,
        selection: _,
        connect_by,
        group_by,
        cluster_by: _,
        distribute_by: _,
        sort_by: _,
        having: _,
        named_window: _,
        qualify: _,
        window_before_qualify: _,
        value_table_mode,
        flavor,
    } = select;
    without(select_modifiers.is_some(), "SELECT takes DISTINCT, and no other word before its columns")?;
    without(exclude.is_some(), "EXCLUDE behind all columns is not known: SELECT * EXCLUDE (…) is")?;
    without(prewhere.is_some(), "PREWHERE is not known: WHERE is")?;
    without(!connect_by.is_empty(), "START WITH and CONNECT BY are not known: WITH RECURSIVE is")?;
    without(value_table_mode.is_some(), "SELECT AS STRUCT and SELECT AS VALUE are not known: named_struct(…) is")?;
    without(*flavor == SelectFlavor::FromFirstNoSelect, "FROM needs a SELECT")?;
    let (GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers)) = group_by;
    if let Some(modifier) = modifiers.first() {
        return refuse(format!(
            "{modifier} behind the keys of GROUP BY is not known: ROLLUP (…), CUBE (…) and GROUPING SETS (…) stand in their place"
        ));
    }
    projection.iter().try_for_each(item)?;
    from.iter().flat_map(|tables| &tables.joins).try_for_each(join)
}

fn item(item: &SelectItem) -> Result<()> {
    match item {
        SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) => {
            let WildcardAdditionalOptions {
                wildcard_token: _,
                opt_ilike,
                opt_exclude: _,
                opt_except: _,
                opt_replace: _,
                opt_rename: _,
                opt_alias: _,
            } = options;
            without(opt_ilike.is_some(), "* ILIKE is not known: name the columns, or those to leave out: * EXCLUDE (…)")
        }
        SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. } | SelectItem::ExprWithAliases { .. } => Ok(()),
    }
}

fn join(join: &Join) -> Result<()> {
    let Join { relation: _, global, join_operator } = join;
    without(*global, "GLOBAL JOIN is not known: JOIN is")?;
    // The column of both would be that of the left side.
    let is_outer = match join_operator {
        JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint) => {
            matches!(constraint, JoinConstraint::Using(_) | JoinConstraint::Natural)
        }
        _ => false,
    };
    without(is_outer, "USING and NATURAL are not known of RIGHT and FULL JOIN: ON a.k = b.k is, and coalesce(a.k, b.k)")
}

fn table(table: &TableFactor) -> Result<()> {
    const NO_ORDINALITY: &str = "WITH ORDINALITY is not known: row_number() OVER () numbers rows";
    const NO_SAMPLE: &str = "TABLESAMPLE and SAMPLE are not known: WHERE random() < 0.1 takes some of the rows";
    match table {
        TableFactor::Table {
            name: _,
            alias,
            args,
            with_hints,
            version,
            with_ordinality,
            partitions,
            json_path,
            sample,
            index_hints,
        } => {
            alias_of(alias.as_ref())?;
            if let Some(TableFunctionArgs { args: _, settings }) = args {
                without(settings.is_some(), "SETTINGS of a table function are not known")?;
            }
            without(!with_hints.is_empty(), "WITH (…) behind a table is not known")?;
            without(version.is_some(), "of the past of a table only AS OF is known")?;
            without(*with_ordinality, NO_ORDINALITY)?;
            without(
                !partitions.is_empty(),
                "PARTITION behind a table is not known: a condition on the time reads a part of it",
            )?;
            without(json_path.is_some(), "a path behind a table is not known")?;
            without(sample.is_some(), NO_SAMPLE)?;
            without(!index_hints.is_empty(), "hints of an index are not known")
        }
        TableFactor::Derived { lateral: _, subquery: _, alias, sample } => {
            alias_of(alias.as_ref())?;
            without(sample.is_some(), NO_SAMPLE)
        }
        TableFactor::Function { lateral: _, name: _, args, with_ordinality, alias } => {
            alias_of(alias.as_ref())?;
            without(*with_ordinality, NO_ORDINALITY)?;
            let is_named = args.iter().any(|argument| !matches!(argument, FunctionArg::Unnamed(_)));
            without(is_named, "a table function takes its arguments in their order, without names")
        }
        TableFactor::NestedJoin { table_with_joins, alias } => {
            alias_of(alias.as_ref())?;
            table_with_joins.joins.iter().try_for_each(join)
        }
        TableFactor::UNNEST { alias, .. } => alias_of(alias.as_ref()),
        // The planner refuses them.
        _ => Ok(()),
    }
}

fn alias_of(alias: Option<&TableAlias>) -> Result<()> {
    let Some(TableAlias { explicit: _, name: _, columns, at }) = alias else { return Ok(()) };
    without(at.is_some(), "AT behind the name of a table is not known")?;
    let is_typed = columns.iter().any(|TableAliasColumnDef { name: _, data_type }| data_type.is_some());
    without(is_typed, "a new name of a column takes no type: CAST(… AS …) does")
}

impl Unplanned<'_> {
    fn function(&self, function: &Function) -> Result<()> {
        let Function { name, uses_odbc_syntax: _, parameters, args, filter, null_treatment, over, within_group } =
            function;
        if *parameters != FunctionArguments::None {
            return refuse(format!(
                "{name}(…)(…) is not known: a function has its arguments in one pair of parentheses"
            ));
        }
        if let FunctionArguments::Subquery(_) = args {
            return refuse(format!("a query as the argument of {name} is not known"));
        }
        if let Some(WindowType::WindowSpec(WindowSpec { window_name, partition_by: _, order_by: _, window_frame: _ })) =
            over
        {
            without(window_name.is_some(), "a window that names another is not known here")?;
        }
        let Some(kind) = called(function).and_then(|called| (self.kind)(&called)) else { return Ok(()) };
        let (mut is_distinct, mut is_all, mut is_ordered, mut has_clauses) = (false, false, false, false);
        if let FunctionArguments::List(FunctionArgumentList { duplicate_treatment, args: _, clauses }) = args {
            is_distinct = matches!(duplicate_treatment, Some(DuplicateTreatment::Distinct));
            is_all = matches!(duplicate_treatment, Some(DuplicateTreatment::All));
            is_ordered = clauses.iter().any(|clause| matches!(clause, FunctionArgumentClause::OrderBy(_)));
            has_clauses = !clauses.is_empty();
        }
        match kind {
            FunctionKind::Scalar => {
                let parts = [
                    (filter.is_some(), "FILTER"),
                    (null_treatment.is_some(), "IGNORE NULLS or RESPECT NULLS"),
                    (over.is_some(), "OVER"),
                    (!within_group.is_empty(), "WITHIN GROUP"),
                    (is_distinct || is_all, "DISTINCT or ALL"),
                    (has_clauses, "ORDER BY or another clause behind its arguments"),
                ];
                without_any(&parts, |part| format!("{name} makes a value of each row: it takes no {part}"))
            }
            FunctionKind::Aggregate { takes_distinct, takes_order } => {
                let parts = [
                    (
                        is_distinct && !takes_distinct,
                        "DISTINCT: SELECT DISTINCT in a query that it reads leaves each row once",
                    ),
                    (is_ordered && !takes_order, "ORDER BY: its second argument is the order"),
                ];
                without_any(&parts, |part| format!("{name} takes no {part}"))
            }
            FunctionKind::Window => {
                let parts = [
                    (is_distinct, "DISTINCT"),
                    (is_ordered, "ORDER BY in its parentheses: OVER (ORDER BY …) is the order of its rows"),
                    (filter.is_some(), "FILTER: CASE leaves out values, and IGNORE NULLS passes over them"),
                ];
                without_any(&parts, |part| format!("{name} takes no {part}"))
            }
        }
    }
}

/// Returns the name of the function that a call means.
pub(super) fn called(function: &Function) -> Option<String> {
    let name = function.name.0.last()?.as_ident()?;
    Some(match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_ascii_lowercase(),
    })
}

/// Refuses the first part that is there.
fn without_any(parts: &[(bool, &str)], reason: impl Fn(&str) -> String) -> Result<()> {
    match parts.iter().find(|(is_there, _)| *is_there) {
        Some((_, part)) => refuse(reason(part)),
        None => Ok(()),
    }
}
