//! From the parsed join to its plan node: what has to be equal, which are the times, and what
//! columns come out.

use std::sync::Arc;

use datafusion::{
    common::{Column, DFSchema, DataFusionError, Result},
    logical_expr::{
        BinaryExpr, Expr, ExprSchemable, Extension, LogicalPlan, LogicalPlanBuilder, Operator,
        expr_rewriter::normalize_col_with_schemas_and_ambiguity_check,
        planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning},
        type_coercion::binary::comparison_coercion,
        utils::split_conjunction_owned,
    },
    sql::sqlparser::ast::{self, Join, JoinConstraint, JoinOperator, ObjectName, TableFactor, Value, ValueWithSpan},
};

use super::{
    super::{
        error::refuse,
        functions::{has_floats, same_float},
    },
    node::{AsOf, Match},
};

/// Plans the relations that `nest` has made.
#[derive(Debug)]
pub(in crate::query) struct Relations;

impl RelationPlanner for Relations {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let original = |relation| Ok(RelationPlanning::Original(Box::new(relation)));
        let TableFactor::NestedJoin { mut table_with_joins, alias } = relation else { return original(relation) };
        match table_with_joins.joins.pop() {
            Some(Join {
                relation: right, join_operator: JoinOperator::AsOf { match_condition, constraint }, ..
            }) => {
                let left = match table_with_joins.joins.is_empty() {
                    true => table_with_joins.relation,
                    false => TableFactor::NestedJoin { table_with_joins, alias: None },
                };
                let sides = Sides { left: context.plan(left)?, right: context.plan(right)? };
                let plan = sides.join(match_condition, constraint, context)?;
                Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias))))
            }
            join => {
                table_with_joins.joins.extend(join);
                original(TableFactor::NestedJoin { table_with_joins, alias })
            }
        }
    }
}

struct Sides {
    left: LogicalPlan,
    right: LogicalPlan,
}

/// What the conditions say so far.
#[derive(Default)]
struct Conditions {
    equal: Vec<(Expr, Expr)>,
    times: Option<(Expr, Expr, Match)>,
}

impl Sides {
    fn join(
        self,
        match_condition: ast::Expr,
        constraint: JoinConstraint,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<LogicalPlan> {
        // What `spell_out` says of DuckDB's form.
        let said = match &match_condition {
            ast::Expr::Value(ValueWithSpan { value: Value::Boolean(outer), .. }) => Some(*outer),
            _ => None,
        };
        let mut conditions = Conditions::default();
        if said.is_none() {
            self.add(match_condition, &mut conditions, context)?;
        }
        let mut hidden = Vec::new();
        match constraint {
            JoinConstraint::On(condition) => self.add(condition, &mut conditions, context)?,
            JoinConstraint::Using(names) => {
                hidden = names.iter().map(|name| column_name(name, context)).collect::<Result<_>>()?;
                self.add_using(&hidden, said.is_some(), &mut conditions)?;
            }
            JoinConstraint::None if said.is_none() => {}
            _ => return refuse("ASOF JOIN takes ON or USING"),
        }
        let Some((left_time, right_time, nearest)) = conditions.times else {
            return refuse("ASOF JOIN needs one comparison of times by >=, >, <= or <");
        };
        let mut by = conditions.equal;
        by.push((left_time, right_time));
        let by = by.into_iter().map(|pair| self.coerced(pair)).collect::<Result<Vec<_>>>()?;
        // Null is equal to nothing, and neither before nor after.
        let known = by.iter().map(|(_, right)| right.clone().is_not_null()).reduce(Expr::and);
        let right = match known {
            Some(known) => LogicalPlanBuilder::from(self.right).filter(known)?.build()?,
            None => self.right,
        };
        let left_columns = self.left.schema().columns();
        let right_columns = right.schema().columns();
        let node = AsOf::try_new(self.left, right, by, nearest, said.unwrap_or(true))?;
        let plan = LogicalPlan::Extension(Extension { node: Arc::new(node) });
        if hidden.is_empty() {
            return Ok(plan);
        }
        // One column of each name, as `USING` promises: the left side's.
        let right_columns = right_columns.into_iter().filter(|column| !hidden.contains(&column.name));
        let columns = left_columns.into_iter().chain(right_columns).map(Expr::Column);
        LogicalPlanBuilder::from(plan).project(columns)?.build()
    }

    /// Takes a condition apart.
    fn add(
        &self,
        condition: ast::Expr,
        conditions: &mut Conditions,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<()> {
        let both = self.left.schema().join(self.right.schema())?;
        let condition = context.sql_to_expr(condition, &both)?;
        let schemas: [&DFSchema; 2] = [self.left.schema(), self.right.schema()];
        let condition = normalize_col_with_schemas_and_ambiguity_check(condition, &[&schemas], &[])?;
        for part in split_conjunction_owned(condition) {
            let Expr::BinaryExpr(BinaryExpr { left, op, right }) = part else { return not_known(&part) };
            let (left, op, right) = match (self.is_of(&left, true), self.is_of(&right, true)) {
                (true, false) => (*left, op, *right),
                (false, true) => match op.swap() {
                    Some(swapped) => (*right, swapped, *left),
                    None => return not_known(&Expr::BinaryExpr(BinaryExpr { left, op, right })),
                },
                _ => return not_known(&Expr::BinaryExpr(BinaryExpr { left, op, right })),
            };
            if !self.is_of(&right, false) {
                return not_known(&right);
            }
            match Match::of(op) {
                None if op == Operator::Eq => conditions.equal.push((left, right)),
                Some(nearest) if conditions.times.is_none() => conditions.times = Some((left, right, nearest)),
                _ => {
                    return refuse(format!(
                        "ASOF JOIN takes = and one of >=, >, <= and <, and not {left} {op} {right}"
                    ));
                }
            }
        }
        Ok(())
    }

    fn add_using(&self, names: &[String], has_time: bool, conditions: &mut Conditions) -> Result<()> {
        let pair = |name: &String| {
            let of = |side: &LogicalPlan| {
                let (qualifier, field) = side.schema().qualified_field_with_unqualified_name(name)?;
                Ok::<_, DataFusionError>(Expr::Column(Column::new(qualifier.cloned(), field.name())))
            };
            Ok::<_, DataFusionError>((of(&self.left)?, of(&self.right)?))
        };
        let (keys, time) = match names.split_last() {
            Some((time, keys)) if has_time => (keys, Some(time)),
            _ => (names, None),
        };
        for name in keys {
            conditions.equal.push(pair(name)?);
        }
        if let Some(name) = time {
            let (left, right) = pair(name)?;
            conditions.times = Some((left, right, Match { later: false, strictly: false }));
        }
        Ok(())
    }

    /// Returns whether an expression is about columns of one side, and of nothing else.
    fn is_of(&self, expr: &Expr, left: bool) -> bool {
        let schema = if left { self.left.schema() } else { self.right.schema() };
        let columns = expr.column_refs();
        !columns.is_empty() && columns.iter().all(|column| schema.has_column(column)) && !expr.contains_outer()
    }

    /// Gives both expressions one type, and both zeros one form: rows are compared bit by bit.
    fn coerced(&self, pair: (Expr, Expr)) -> Result<(Expr, Expr)> {
        let (left, right) = self.of_one_type(pair)?;
        Ok(match has_floats(&left.get_type(self.left.schema())?) {
            true => (same_float(left), same_float(right)),
            false => (left, right),
        })
    }

    fn of_one_type(&self, (left, right): (Expr, Expr)) -> Result<(Expr, Expr)> {
        let of = (left.get_type(self.left.schema())?, right.get_type(self.right.schema())?);
        if of.0 == of.1 {
            return Ok((left, right));
        }
        let Some(common) = comparison_coercion(&of.0, &of.1) else {
            return refuse(format!("ASOF JOIN cannot compare {left} ({}) with {right} ({})", of.0, of.1));
        };
        Ok((left.cast_to(&common, self.left.schema())?, right.cast_to(&common, self.right.schema())?))
    }
}

fn column_name(name: &ObjectName, context: &mut dyn RelationPlannerContext) -> Result<String> {
    match name.0.as_slice() {
        [part] if part.as_ident().is_some() => {
            Ok(part.as_ident().cloned().map(|ident| context.normalize_ident(ident)).unwrap_or_default())
        }
        _ => refuse(format!("{name} is no column that USING can name")),
    }
}

fn not_known<T>(part: &Expr) -> Result<T> {
    refuse(format!("ASOF JOIN takes comparisons of the left side with the right side, joined by AND, and not {part}"))
}
