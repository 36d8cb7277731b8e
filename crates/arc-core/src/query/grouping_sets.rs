//! Grouping sets over keys that are constant or in order.
//!
//! Where rows go into an aggregate with all of one host, or in order of their hosts, DataFusion 55
//! says the same of the groups that come out. With `ROLLUP`, `CUBE` and `GROUPING SETS` that is not
//! so: some of the groups have NULL instead. Whatever stands above then takes a group for finished
//! when the next one comes, and gives it in several rows (apache/datafusion#24421 is one of the
//! forms). Here nothing is said of such groups.
//!
//! What is aggregated in an order comes to the groups in it only if all rows do: DataFusion has the
//! rows in order of the keys before, of which a set leaves some out. So nothing is said of the rows
//! below either, and a function that puts its rows in order does so by itself. Never changes rows.

use std::{fmt, sync::Arc};

use datafusion::{
    common::{
        Result,
        config::ConfigOptions,
        internal_err,
        tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion},
    },
    execution::{SendableRecordBatchStream, TaskContext},
    physical_expr::{EquivalenceProperties, PhysicalExpr, aggregate::AggregateFunctionExpr},
    physical_optimizer::PhysicalOptimizerRule,
    physical_plan::{
        ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
        aggregates::{AggregateExec, AggregateInputMode},
    },
};

/// See the module. The first of all rules: others rely on what is said of rows.
#[derive(Debug)]
pub(super) struct GroupingSets;

impl PhysicalOptimizerRule for GroupingSets {
    fn name(&self) -> &'static str {
        "grouping_sets"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            let Some(sets) = with_sets(&plan) else { return Ok(Transformed::no(plan)) };
            let is_ordered = sets.aggr_expr().iter().any(|function| !function.order_bys().is_empty());
            let plan = match is_ordered && sets.mode().input_mode() == AggregateInputMode::Raw {
                true => {
                    let input = Arc::new(AnyOrderExec::new(Arc::clone(sets.input())));
                    let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
                    Arc::clone(&plan).replace_children(vec![input], recompute)?
                }
                false => plan,
            };
            Ok(Transformed::yes(Arc::new(AnyOrderExec::new(plan)) as Arc<dyn ExecutionPlan>))
        })
        .data()
    }
}

/// Returns a plan node as an aggregate with sets, if it is one.
fn with_sets(plan: &Arc<dyn ExecutionPlan>) -> Option<&AggregateExec> {
    plan.downcast_ref::<AggregateExec>().filter(|aggregate| aggregate.group_expr().has_grouping_set())
}

/// DataFusion's rule that has functions rely on the order of their rows: rows that were brought
/// into an order of some keys, for one function, are not in that of another in each set.
#[derive(Debug)]
pub(super) struct UnorderedSets(pub(super) Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl PhysicalOptimizerRule for UnorderedSets {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        self.0
            .optimize(plan, config)?
            .transform_up(|plan| {
                let Some(sets) = with_sets(&plan) else { return Ok(Transformed::no(plan)) };
                let unordered = |function: &Arc<AggregateFunctionExpr>| {
                    let unordered = Arc::clone(function).with_beneficial_ordering(false)?;
                    Ok(unordered.map_or_else(|| Arc::clone(function), Arc::new))
                };
                let functions = sets.aggr_expr().iter().map(unordered).collect::<Result<Vec<_>>>()?;
                Ok(Transformed::yes(Arc::new(sets.with_new_aggr_exprs(functions)) as Arc<dyn ExecutionPlan>))
            })
            .data()
    }
}

/// The rows of another plan, of which nothing is said.
#[derive(Debug)]
struct AnyOrderExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl AnyOrderExec {
    fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        let nothing = EquivalenceProperties::new(input.schema());
        let properties = input.properties().as_ref().clone().with_eq_properties(nothing);
        Self { input, properties: Arc::new(properties) }
    }
}

impl DisplayAs for AnyOrderExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyOrderExec")
    }
}

impl ExecutionPlan for AnyOrderExec {
    fn name(&self) -> &'static str {
        "AnyOrderExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => Ok(Arc::new(Self::new(input))),
            _ => internal_err!("AnyOrderExec has one input"),
        }
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}

#[cfg(test)]
mod tests {
    use arrow::{
        array::{Float64Array, Int64Array, RecordBatch, StringArray},
        util::pretty::pretty_format_batches,
    };
    use datafusion::{
        datasource::MemTable,
        execution::SessionStateBuilder,
        prelude::{SessionConfig, SessionContext},
    };

    use super::{super::session::physical_optimizer_rules, *};

    /// Six batches of two rows in some partitions.
    fn context(partitions: usize, width: usize) -> SessionContext {
        let mut batches = vec![Vec::new(); partitions];
        for at in 0..6 {
            let hosts = StringArray::from(vec!["a", "b"]);
            let racks = StringArray::from_iter_values((0..2).map(|row| ["x", "y", "z"][(2 * at + row) % 3]));
            let numbers = Int64Array::from_iter_values((0..2).map(|row| row + 2 * at as i64));
            let floats = Float64Array::from(vec![1.0, 2.0]);
            let columns = [
                ("host", Arc::new(hosts) as _),
                ("rack", Arc::new(racks) as _),
                ("n", Arc::new(numbers) as _),
                ("f", Arc::new(floats) as _),
            ];
            batches[at % partitions].push(RecordBatch::try_from_iter(columns).unwrap());
        }
        let state = SessionStateBuilder::new()
            .with_config(SessionConfig::new().with_target_partitions(width).with_batch_size(2))
            .with_default_features()
            .with_physical_optimizer_rules(physical_optimizer_rules())
            .build();
        let context = SessionContext::new_with_state(state);
        let schema = batches[0][0].schema();
        context.register_table("m", Arc::new(MemTable::try_new(schema, batches).unwrap())).unwrap();
        context
    }

    async fn lines(context: &SessionContext, sql: &str) -> Vec<String> {
        let batches = context.sql(sql).await.unwrap().collect().await.unwrap();
        let mut lines: Vec<String> =
            pretty_format_batches(&batches).unwrap().to_string().lines().skip(3).map(str::to_owned).collect();
        lines.sort();
        lines
    }

    #[tokio::test]
    async fn each_group_of_a_set_comes_once() {
        let from_constant = "(SELECT 'c' AS k, 1 AS one, * FROM m)";
        let ordered = "(SELECT 'c' AS k, 1 AS one, * FROM m ORDER BY host, rack LIMIT 12)";
        let host_a = "(SELECT 'c' AS k, 1 AS one, * FROM m WHERE host = 'a')";
        let cube = |a, b| vec![[a, b], [a, "NULL"], ["NULL", b], ["NULL", "NULL"]];
        // Sets, their keys, and those of each of them.
        let cases = [
            ("GROUPING SETS ((k), (host), ())", ["k", "host"], vec![["k", "NULL"], ["NULL", "host"], ["NULL", "NULL"]]),
            ("ROLLUP (k, host)", ["k", "host"], vec![["k", "host"], ["k", "NULL"], ["NULL", "NULL"]]),
            ("CUBE (one, host)", ["one", "host"], cube("one", "host")),
            ("GROUPING SETS ((host, rack), (host))", ["host", "rack"], vec![["host", "rack"], ["host", "NULL"]]),
            ("CUBE (host, rack)", ["host", "rack"], cube("host", "rack")),
        ];
        for (partitions, width) in [(1, 1), (2, 1), (3, 1), (1, 2), (2, 2), (3, 4)] {
            let context = context(partitions, width);
            for (from, (sets, named, keys)) in
                [from_constant, ordered, host_a].iter().flat_map(|from| cases.iter().map(move |case| (from, case)))
            {
                let aggregates = "count(*), sum(n), min(f)";
                let [first, second] = *named;
                let sql = format!("SELECT {first}, {second}, {aggregates} FROM {from} GROUP BY {sets}");
                let mut expected = Vec::new();
                for key in keys {
                    let columns: Vec<&str> = key.iter().copied().filter(|key| *key != "NULL").collect();
                    let by =
                        if columns.is_empty() { String::new() } else { format!("GROUP BY {}", columns.join(", ")) };
                    let typed = |key: &str, of: &str| match (key, of) {
                        ("NULL", "one") => "CAST(NULL AS BIGINT)".to_owned(),
                        ("NULL", _) => "CAST(NULL AS TEXT)".to_owned(),
                        _ => key.to_owned(),
                    };
                    let keys = format!("{}, {}", typed(key[0], first), typed(key[1], second));
                    expected.push(format!("SELECT {keys}, {aggregates} FROM {from} {by}"));
                }
                // The columns are as wide in all of them.
                let expected = lines(&context, &cells(&expected.join(" UNION ALL "))).await;
                let found = lines(&context, &cells(&sql)).await;
                assert_eq!(found, expected, "{sql} with {partitions} partitions, {width} wanted");
            }
        }
    }

    /// Returns a statement with each row of another one as a text.
    fn cells(sql: &str) -> String {
        let cell = |at: char| format!("coalesce(CAST({at} AS TEXT), '-')");
        let row = ['a', 'b', 'c', 'd', 'e'].map(cell).join(" || '|' || ");
        format!("SELECT {row} FROM ({sql}) AS t (a, b, c, d, e)")
    }

    #[tokio::test]
    async fn a_sort_by_a_key_of_a_set_is_done() {
        let context = context(2, 2);
        let sql = "SELECT host FROM m WHERE host = 'a' GROUP BY GROUPING SETS ((host), ()) ORDER BY host NULLS FIRST";
        let batches = context.sql(sql).await.unwrap().collect().await.unwrap();
        let shown = pretty_format_batches(&batches).unwrap().to_string();
        let rows: Vec<&str> = shown.lines().skip(3).take(2).map(|line| line.trim_matches(['|', ' '])).collect();
        assert_eq!(rows, ["", "a"], "{shown}");
    }
}
