//! Operators and literals that are calls of functions: planned as calls of ours. DataFusion would take
//! its own, which are held to no limit, and do not answer as ours of that name do.

use std::{any::Any, collections::HashMap, sync::Arc};

use arrow::datatypes::Field;
use datafusion::{
    common::{DFSchema, Result, ScalarValue, TableReference, utils::list_ndims},
    logical_expr::{
        AggregateUDF, Expr, ExprSchemable, GetFieldAccess, ScalarUDF,
        expr::{AggregateFunction, ScalarFunction},
        planner::{
            ExprPlanner, PlannerResult, RawAggregateExpr, RawBinaryExpr, RawDictionaryExpr, RawFieldAccessExpr,
            RawWindowExpr,
        },
    },
    sql::sqlparser::ast::BinaryOperator,
};

use super::{functions, planning};

/// The functions that statements can call, by name.
#[derive(Debug)]
pub(super) struct OwnFunctions {
    scalar: HashMap<String, Arc<ScalarUDF>>,
    aggregate: HashMap<String, Arc<AggregateUDF>>,
}

impl OwnFunctions {
    pub(super) fn new(scalar: &[Arc<ScalarUDF>], aggregate: &[Arc<AggregateUDF>]) -> Self {
        Self {
            scalar: scalar.iter().map(|own| (own.name().to_owned(), Arc::clone(own))).collect(),
            aggregate: aggregate.iter().map(|own| (own.name().to_owned(), Arc::clone(own))).collect(),
        }
    }

    /// Returns DataFusion's planners, and ours before them.
    pub(super) fn planners(self, theirs: Vec<Arc<dyn ExprPlanner>>, limit_bytes: usize) -> Vec<Arc<dyn ExprPlanner>> {
        let own = Arc::new(self);
        let concat = functions::concat_operator(limit_bytes);
        let first: Arc<dyn ExprPlanner> = Arc::new(OwnOperators { own: Arc::clone(&own), concat });
        let planner = |theirs| Arc::new(OwnCalls { own: Arc::clone(&own), theirs }) as Arc<dyn ExprPlanner>;
        std::iter::once(first).chain(theirs.into_iter().map(planner)).collect()
    }

    /// Returns a call with our functions in place of theirs. What a statement calls by name is ours
    /// already, so that this goes no deeper than what a planner has made.
    fn call(&self, expr: Expr) -> Expr {
        match expr {
            Expr::ScalarFunction(ScalarFunction { func, args }) => match self.scalar.get(func.name()) {
                Some(own) if kind(own.inner().as_ref()) != kind(func.inner().as_ref()) => {
                    let args = args.into_iter().map(|argument| self.call(argument)).collect();
                    Expr::ScalarFunction(ScalarFunction { func: Arc::clone(own), args })
                }
                _ => Expr::ScalarFunction(ScalarFunction { func, args }),
            },
            Expr::AggregateFunction(AggregateFunction { func, params }) => {
                let own = self.aggregate.get(func.name()).map_or(func, Arc::clone);
                Expr::AggregateFunction(AggregateFunction { func: own, params })
            }
            other => other,
        }
    }

    fn planned<T>(&self, planned: PlannerResult<T>) -> PlannerResult<T> {
        match planned {
            PlannerResult::Planned(expr) => PlannerResult::Planned(self.call(expr)),
            original @ PlannerResult::Original(_) => original,
        }
    }
}

/// Returns which of all functions something is.
fn kind(function: &dyn Any) -> std::any::TypeId {
    function.type_id()
}

/// What DataFusion plans otherwise, whichever functions it takes.
#[derive(Debug)]
struct OwnOperators {
    own: Arc<OwnFunctions>,
    /// What `||` is of texts.
    concat: Arc<ScalarUDF>,
}

impl ExprPlanner for OwnOperators {
    fn plan_binary_op(&self, raw: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        // Here since every longer statement comes by.
        planning::check()?;
        if raw.op == BinaryOperator::StringConcat
            && list_ndims(&raw.left.get_type(schema)?) == 0
            && list_ndims(&raw.right.get_type(schema)?) == 0
        {
            return Ok(PlannerResult::Planned(self.concat.call(vec![raw.left, raw.right])));
        }
        Ok(PlannerResult::Original(raw))
    }

    /// An item of a list that an aggregate makes: DataFusion looks it up while the list is made, and
    /// forgets DISTINCT and what becomes of nulls.
    fn plan_field_access(
        &self,
        RawFieldAccessExpr { expr, field_access }: RawFieldAccessExpr,
        _schema: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        let original = |expr, field_access| Ok(PlannerResult::Original(RawFieldAccessExpr { expr, field_access }));
        let (Expr::AggregateFunction(list), GetFieldAccess::ListIndex { key }) = (&expr, &field_access) else {
            return original(expr, field_access);
        };
        let is_position = matches!(&**key, Expr::Literal(ScalarValue::Int64(Some(at)), _) if *at != 0);
        if is_position && !list.params.distinct && list.params.null_treatment.is_none() {
            return original(expr, field_access);
        }
        let key = Expr::clone(key);
        match self.own.scalar.get("array_element") {
            Some(element) => Ok(PlannerResult::Planned(element.call(vec![expr, key]))),
            None => datafusion::common::internal_err!("there are no items of lists"),
        }
    }
}

/// A planner of DataFusion that makes calls of ours.
#[derive(Debug)]
struct OwnCalls {
    own: Arc<OwnFunctions>,
    theirs: Arc<dyn ExprPlanner>,
}

impl ExprPlanner for OwnCalls {
    fn plan_binary_op(&self, raw: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        Ok(self.own.planned(self.theirs.plan_binary_op(raw, schema)?))
    }

    fn plan_field_access(
        &self,
        raw: RawFieldAccessExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        Ok(self.own.planned(self.theirs.plan_field_access(raw, schema)?))
    }

    fn plan_array_literal(&self, items: Vec<Expr>, schema: &DFSchema) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(self.own.planned(self.theirs.plan_array_literal(items, schema)?))
    }

    fn plan_position(&self, arguments: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(self.own.planned(self.theirs.plan_position(arguments)?))
    }

    fn plan_dictionary_literal(
        &self,
        raw: RawDictionaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawDictionaryExpr>> {
        Ok(self.own.planned(self.theirs.plan_dictionary_literal(raw, schema)?))
    }

    fn plan_extract(&self, arguments: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(self.own.planned(self.theirs.plan_extract(arguments)?))
    }

    fn plan_substring(&self, arguments: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(self.own.planned(self.theirs.plan_substring(arguments)?))
    }

    fn plan_struct_literal(&self, arguments: Vec<Expr>, is_named: bool) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(self.own.planned(self.theirs.plan_struct_literal(arguments, is_named)?))
    }

    fn plan_overlay(&self, arguments: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(self.own.planned(self.theirs.plan_overlay(arguments)?))
    }

    fn plan_make_map(&self, arguments: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(self.own.planned(self.theirs.plan_make_map(arguments)?))
    }

    fn plan_compound_identifier(
        &self,
        field: &Field,
        qualifier: Option<&TableReference>,
        nested: &[String],
    ) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(self.own.planned(self.theirs.plan_compound_identifier(field, qualifier, nested)?))
    }

    fn plan_aggregate(&self, raw: RawAggregateExpr) -> Result<PlannerResult<RawAggregateExpr>> {
        self.theirs.plan_aggregate(raw)
    }

    fn plan_window(&self, raw: RawWindowExpr) -> Result<PlannerResult<RawWindowExpr>> {
        self.theirs.plan_window(raw)
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::DataType;
    use datafusion::{
        common::tree_node::{TreeNode, TreeNodeRecursion},
        execution::{SessionStateDefaults, session_state::SessionStateBuilder},
        prelude::SessionContext,
    };

    use super::*;

    /// Each form of SQL that is a call without the name of a function.
    const FORMS: [&str; 24] = [
        "extract(year FROM time)",
        "position('a' IN text)",
        "substring(text FROM 1 FOR 2)",
        "overlay(text PLACING 'b' FROM 1 FOR 2)",
        "trim(both 'a' FROM text)",
        "ceil(x)",
        "[x, 2]",
        "[[x], [2]]",
        "{'a': x, 'b': 2}",
        "MAP {'a': x}",
        "struct(x, text)",
        "list[1]",
        "list[1:2]",
        "list[1:2:1]",
        "pair['a']",
        "pair.a",
        "list @> [1]",
        "[1] <@ list",
        "list || list",
        "list || 1",
        "1 || list",
        "text || text || 'a'",
        "list[list[1]] || [list @> [list[1]]]",
        "extract(month FROM time) + position('a' IN substring(text FROM x))",
    ];

    #[test]
    fn what_is_no_call_by_name_is_one_of_our_functions() {
        let limit_bytes = 1 << 20;
        let scalar = functions::all(SessionStateDefaults::default_scalar_functions(), limit_bytes);
        let own = OwnFunctions::new(&scalar, &[]);
        let state = SessionStateBuilder::new()
            .with_expr_planners(own.planners(SessionStateDefaults::default_expr_planners(), limit_bytes))
            .with_scalar_functions(scalar.clone())
            .build();
        let context = SessionContext::new_with_state(state);
        let pair = DataType::Struct(vec![Field::new("a", DataType::Int64, true)].into());
        let columns = [
            ("time", DataType::Timestamp(arrow::datatypes::TimeUnit::Nanosecond, None)),
            ("text", DataType::Utf8),
            ("x", DataType::Int64),
            ("list", DataType::new_list(DataType::Int64, true)),
            ("pair", pair),
        ];
        let fields = columns.into_iter().map(|(name, data_type)| Field::new(name, data_type, true)).collect();
        let schema = DFSchema::from_unqualified_fields(fields, HashMap::new()).unwrap();
        for form in FORMS {
            let expr = context.parse_sql_expr(form, &schema).unwrap_or_else(|error| panic!("{form}: {error}"));
            let mut calls = 0;
            expr.apply(|expr| {
                if let Expr::ScalarFunction(call) = expr {
                    calls += 1;
                    if let Some(own) = scalar.iter().find(|own| own.name() == call.func.name()) {
                        assert_eq!(
                            kind(own.inner().as_ref()),
                            kind(call.func.inner().as_ref()),
                            "{form}: {}",
                            call.func.name()
                        );
                    }
                }
                Ok(TreeNodeRecursion::Continue)
            })
            .unwrap();
            assert!(calls > 0, "{form} calls nothing");
        }
    }
}
