//! Operators and literals that make texts, lists and structures: planned as the functions of that
//! name, which are held to a limit. DataFusion would take its own, which are not.

use std::{collections::HashMap, sync::Arc};

use datafusion::{
    common::{DFSchema, Result, ScalarValue, utils::list_ndims},
    logical_expr::{
        Expr, ExprSchemable, GetFieldAccess, ScalarUDF,
        planner::{ExprPlanner, PlannerResult, RawBinaryExpr, RawDictionaryExpr, RawFieldAccessExpr},
    },
    sql::sqlparser::ast::BinaryOperator,
};

use super::{functions, planning};

/// See the module.
#[derive(Debug)]
pub(super) struct BoundedOperators {
    functions: HashMap<String, Arc<ScalarUDF>>,
    /// What `||` is of texts.
    concat: Arc<ScalarUDF>,
}

impl BoundedOperators {
    /// Takes what it needs from `functions`, which have their limits.
    pub(super) fn new(functions: &[Arc<ScalarUDF>], limit_bytes: usize) -> Self {
        let wanted = [
            "array_concat",
            "array_append",
            "array_prepend",
            "array_element",
            "make_array",
            "map",
            "struct",
            "named_struct",
            "overlay",
        ];
        let wanted = functions.iter().filter(|function| wanted.contains(&function.name()));
        let functions = wanted.map(|function| (function.name().to_owned(), Arc::clone(function))).collect();
        Self { functions, concat: functions::concat_operator(limit_bytes) }
    }

    fn call(&self, name: &str, arguments: Vec<Expr>) -> std::result::Result<Expr, Vec<Expr>> {
        match self.functions.get(name) {
            Some(function) => Ok(function.call(arguments)),
            None => Err(arguments),
        }
    }

    fn planned(&self, name: &str, arguments: Vec<Expr>) -> PlannerResult<Vec<Expr>> {
        match self.call(name, arguments) {
            Ok(expr) => PlannerResult::Planned(expr),
            Err(arguments) => PlannerResult::Original(arguments),
        }
    }
}

impl ExprPlanner for BoundedOperators {
    fn plan_binary_op(&self, raw: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        // Here since every longer statement comes by.
        planning::check()?;
        if raw.op != BinaryOperator::StringConcat {
            return Ok(PlannerResult::Original(raw));
        }
        let levels = [&raw.left, &raw.right].map(|side| Ok(list_ndims(&side.get_type(schema)?)));
        let [left_levels, right_levels]: [Result<u64>; 2] = levels;
        let name = match (left_levels?, right_levels?) {
            (0, 0) => return Ok(PlannerResult::Planned(self.concat.call(vec![raw.left, raw.right]))),
            (left, right) if left == right => "array_concat",
            (left, right) if left > right => "array_append",
            _ => "array_prepend",
        };
        let op = raw.op;
        Ok(match self.call(name, vec![raw.left, raw.right]) {
            Ok(expr) => PlannerResult::Planned(expr),
            Err(sides) => match <[Expr; 2]>::try_from(sides) {
                Ok([left, right]) => PlannerResult::Original(RawBinaryExpr { op, left, right }),
                Err(_) => return datafusion::common::internal_err!("an operator has two sides"),
            },
        })
    }

    fn plan_array_literal(&self, exprs: Vec<Expr>, _schema: &DFSchema) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(self.planned("make_array", exprs))
    }

    fn plan_dictionary_literal(
        &self,
        raw: RawDictionaryExpr,
        _schema: &DFSchema,
    ) -> Result<PlannerResult<RawDictionaryExpr>> {
        let Some(function) = self.functions.get("named_struct") else { return Ok(PlannerResult::Original(raw)) };
        let pairs = raw.keys.into_iter().zip(raw.values);
        Ok(PlannerResult::Planned(function.call(pairs.flat_map(|(key, value)| [key, value]).collect())))
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
        match self.call("array_element", vec![expr, key]) {
            Ok(item) => Ok(PlannerResult::Planned(item)),
            Err(_) => datafusion::common::internal_err!("there are no items of lists"),
        }
    }

    fn plan_struct_literal(&self, arguments: Vec<Expr>, is_named: bool) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(self.planned(if is_named { "named_struct" } else { "struct" }, arguments))
    }

    fn plan_overlay(&self, arguments: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(self.planned("overlay", arguments))
    }

    fn plan_make_map(&self, arguments: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        if !arguments.len().is_multiple_of(2) {
            return datafusion::common::plan_err!("a map needs a value for each key");
        }
        let (keys, values): (Vec<_>, Vec<_>) = arguments.into_iter().enumerate().partition(|(at, _)| at % 2 == 0);
        let list =
            |items: Vec<(usize, Expr)>| self.call("make_array", items.into_iter().map(|(_, item)| item).collect());
        let lists = [list(keys), list(values)].into_iter().collect::<std::result::Result<Vec<_>, _>>();
        match lists.and_then(|lists| self.call("map", lists)) {
            Ok(map) => Ok(PlannerResult::Planned(map)),
            Err(_) => datafusion::common::internal_err!("there are no maps"),
        }
    }
}
