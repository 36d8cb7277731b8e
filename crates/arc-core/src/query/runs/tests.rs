//! The same statements with the rule and without it, over any rows.

use std::sync::Arc;

use arrow::{
    array::{
        ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
        TimestampNanosecondArray, UInt64Array,
    },
    datatypes::{DataType, Field, Int32Type, Schema, TimeUnit},
    util::pretty::pretty_format_batches,
};
use datafusion::{
    datasource::MemTable,
    execution::{
        SessionStateBuilder, SessionStateDefaults, memory_pool::FairSpillPool, runtime_env::RuntimeEnvBuilder,
    },
    physical_optimizer::PhysicalOptimizerRule,
    prelude::{SessionConfig, SessionContext},
};
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};

use super::{
    super::{functions, session::physical_optimizer_rules, undictionary_group_keys::UndictionaryGroupKeys},
    GroupRuns,
};

/// Some rows of one series: its tags, the time of the first and the step to the next, and what the
/// rows carry.
#[derive(Debug, Clone)]
struct Span {
    host: Option<i32>,
    rack: Option<i32>,
    time: i64,
    step: i64,
    rows: Vec<Row>,
}

#[derive(Debug, Clone)]
struct Row {
    /// Sums of it are exact.
    float: Option<f64>,
    odd: f64,
    integer: Option<i64>,
    unsigned: u64,
    boolean: Option<bool>,
}

fn row() -> impl Strategy<Value = Row> {
    let float = prop::option::weighted(0.9, (-8_i32..8).prop_map(|quarters| f64::from(quarters) / 4.0));
    let odd = prop::sample::select(vec![0.0, -0.0, 1.0, 1.0, f64::NAN, f64::INFINITY]);
    let integer = prop::option::weighted(0.9, prop::sample::select(vec![i64::MIN, -1, 0, 7, i64::MAX]));
    let unsigned = prop::sample::select(vec![0, 1, u64::MAX]);
    (float, odd, integer, unsigned, prop::option::of(any::<bool>()))
        .prop_map(|(float, odd, integer, unsigned, boolean)| Row { float, odd, integer, unsigned, boolean })
}

fn span() -> impl Strategy<Value = Span> {
    let tag = || prop::option::weighted(0.9, 0..5_i32);
    let (first, last) = (i64::MIN + 100 * 86_400_000_000_000, i64::MAX - 40 * 900);
    let time = prop_oneof![9 => -200_000..200_000_i64, 1 => Just(first), 1 => Just(last)];
    (tag(), tag(), time, 0..900_i64, prop::collection::vec(row(), 1..40))
        .prop_map(|(host, rack, time, step, rows)| Span { host, rack, time, step, rows })
}

/// Partitions of batches of spans.
fn partitions() -> impl Strategy<Value = Vec<Vec<Vec<Span>>>> {
    let batches = prop::collection::vec(prop::collection::vec(span(), 0..8), 0..6);
    prop::collection::vec(batches, 2..4)
}

fn schema() -> Arc<Schema> {
    let tag = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    Arc::new(Schema::new(vec![
        Field::new("time", DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())), false),
        Field::new("host", tag.clone(), true),
        Field::new("rack", tag, true),
        Field::new("float", DataType::Float64, true),
        Field::new("odd", DataType::Float64, true),
        Field::new("integer", DataType::Int64, true),
        Field::new("unsigned", DataType::UInt64, true),
        Field::new("boolean", DataType::Boolean, true),
    ]))
}

fn tags(keys: Vec<Option<i32>>) -> ArrayRef {
    // One text is there twice, and one is longer than what a view holds itself.
    let values = StringArray::from(vec!["a", "b", "a rather long name of a host", "", "a"]);
    Arc::new(DictionaryArray::<Int32Type>::new(Int32Array::from(keys), Arc::new(values)))
}

fn batch(spans: &[Span]) -> RecordBatch {
    let each = || spans.iter().flat_map(|span| span.rows.iter().map(move |row| (span, row)));
    let times = spans.iter().flat_map(|span| (0..span.rows.len()).map(|at| span.time + span.step * at as i64));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(TimestampNanosecondArray::from_iter_values(times).with_timezone("UTC")),
        tags(each().map(|(span, _)| span.host).collect()),
        tags(each().map(|(span, _)| span.rack).collect()),
        Arc::new(each().map(|(_, row)| row.float).collect::<Float64Array>()),
        Arc::new(Float64Array::from_iter_values(each().map(|(_, row)| row.odd))),
        Arc::new(each().map(|(_, row)| row.integer).collect::<Int64Array>()),
        Arc::new(UInt64Array::from_iter_values(each().map(|(_, row)| row.unsigned))),
        Arc::new(each().map(|(_, row)| row.boolean).collect::<BooleanArray>()),
    ];
    RecordBatch::try_new(schema(), columns).unwrap()
}

fn context(partitions: &[Vec<Vec<Span>>], width: usize, by_runs: bool) -> SessionContext {
    let batches = partitions.iter().map(|batches| batches.iter().map(|spans| batch(spans)).collect()).collect();
    context_over(batches, width, by_runs, usize::MAX)
}

fn context_over(batches: Vec<Vec<RecordBatch>>, width: usize, by_runs: bool, memory_bytes: usize) -> SessionContext {
    let pool = Arc::new(FairSpillPool::new(memory_bytes));
    let config = SessionConfig::new().with_target_partitions(width).with_batch_size(32);
    let config = config.with_sort_spill_reservation_bytes(4 << 10);
    let is_wanted = |rule: &Arc<dyn PhysicalOptimizerRule + Send + Sync>| by_runs || rule.name() != GroupRuns.name();
    let builder = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc().unwrap())
        .with_default_features()
        .with_scalar_functions(functions::all(SessionStateDefaults::default_scalar_functions(), 1 << 20))
        .with_aggregate_functions(functions::aggregates(
            SessionStateDefaults::default_aggregate_functions(),
            usize::MAX,
        ))
        .with_optimizer_rule(Arc::new(UndictionaryGroupKeys))
        .with_physical_optimizer_rules(physical_optimizer_rules().into_iter().filter(is_wanted).collect());
    let context = SessionContext::new_with_state(builder.build());
    context.register_table("m", Arc::new(MemTable::try_new(schema(), batches).unwrap())).unwrap();
    context
}

/// Returns the lines of the answer, sorted, or the error.
async fn answer(context: &SessionContext, sql: &str) -> Result<Vec<String>, String> {
    let batches = context.sql(sql).await.unwrap().collect().await.map_err(|_| "an error".to_owned())?;
    let mut lines: Vec<String> =
        pretty_format_batches(&batches).unwrap().to_string().lines().map(str::to_owned).collect();
    // Which zero is the least or greatest depends on their order.
    lines.iter_mut().for_each(|line| *line = line.replace("-0.0 ", " 0.0 "));
    lines.sort();
    Ok(lines)
}

const AGGREGATES: [&str; 8] = [
    "sum(integer)",
    "sum(unsigned)",
    "count(*), count(float), sum(float), avg(float), min(float), max(float)",
    "sum(integer / 65536), round(avg(integer) / 1e15) + 0.0, avg(unsigned), min(integer), max(integer), sum(unsigned / 65536), min(unsigned), max(unsigned)",
    "sum(odd), avg(odd), count(odd), min(odd), max(odd), min(time), max(time), count(host), min(rack)",
    "count(boolean), bool_and(boolean), count(DISTINCT integer), round(stddev(float), 6)",
    "count(*) FILTER (WHERE boolean), sum(float) FILTER (WHERE float > 0), max(integer) FILTER (WHERE integer IS NULL)",
    "first_value(float ORDER BY time, float, odd), count(NULL), sum(integer / 2 + 1), max(abs(float))",
];

/// Keys, and whether groups by them may come in runs.
const KEYS: [(&str, bool); 16] = [
    ("host", true),
    ("host, rack", true),
    ("date_trunc('microsecond', time)", true),
    ("host, date_bin(INTERVAL '7 microseconds', time)", true),
    ("rack, host, date_bin(INTERVAL '7 microseconds', time, TIMESTAMP '1970-01-01T00:00:00.000000003Z')", true),
    ("host, time_bucket(INTERVAL '10 microseconds', time), date_trunc('microsecond', time)", true),
    ("date_trunc('month', time), date_trunc('week', time)", true),
    ("time_bucket(INTERVAL '2 months', time)", true),
    ("upper(host) || coalesce(rack, '-')", true),
    ("CASE WHEN host = 'b' THEN date_trunc('millisecond', time) END, 'constant'", true),
    ("date_part('minute', date_trunc('minute', time))", true),
    ("time", false),
    ("host, integer", false),
    ("boolean", false),
    ("host, date_trunc('second', time + INTERVAL '1 second')", false),
    ("GROUPING SETS ((host), (rack), ())", false),
];

const CONDITIONS: [&str; 3] = ["true", "float > -1", "host = 'a' AND time > '1970-01-01T00:00:00Z'"];

/// A statement, as indices in the tables above.
fn statement() -> impl Strategy<Value = (usize, usize, usize)> {
    (0..KEYS.len(), 0..AGGREGATES.len(), 0..CONDITIONS.len())
}

async fn check(partitions: &[Vec<Vec<Span>>], width: usize, statements: &[(usize, usize, usize)]) {
    let [plain, by_runs] = [false, true].map(|by_runs| context(partitions, width, by_runs));
    for (keys, aggregates, condition) in statements {
        let (keys, aggregates, condition) = (KEYS[*keys].0, AGGREGATES[*aggregates], CONDITIONS[*condition]);
        let shown = if keys.contains("SETS") { "host, rack" } else { keys };
        let sql = format!("SELECT {shown}, {aggregates} FROM m WHERE {condition} GROUP BY {keys}");
        assert_eq!(answer(&by_runs, &sql).await, answer(&plain, &sql).await, "{sql} with {width} partitions");
    }
}

#[test]
fn any_rows_have_the_groups_that_they_have_without_it() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    // One case asks twelve statements; set the variable for a longer run.
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(24);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let strategy = (partitions(), 1..4_usize, prop::collection::vec(statement(), 12));
    TestRunner::new(config)
        .run(&strategy, |(partitions, width, statements)| {
            runtime.block_on(check(&partitions, width, &statements));
            Ok(())
        })
        .unwrap();
}

async fn plan(context: &SessionContext, sql: &str) -> String {
    let batches = context.sql(&format!("EXPLAIN {sql}")).await.unwrap().collect().await.unwrap();
    pretty_format_batches(&batches).unwrap().to_string()
}

#[tokio::test]
async fn only_keys_of_tags_and_buckets_are_taken_by_runs() {
    let context = context(&[Vec::new(), Vec::new()], 2, true);
    for (keys, by_runs) in KEYS {
        let plan = plan(&context, &format!("SELECT sum(float) FROM m GROUP BY {keys}")).await;
        assert_eq!(plan.contains("RunsExec"), by_runs, "{keys}\n{plan}");
    }
    for (aggregates, by_runs) in [("first_value(float ORDER BY time)", false), ("stddev(float)", true)] {
        let plan = plan(&context, &format!("SELECT {aggregates} FROM m GROUP BY host, rack")).await;
        assert_eq!(plan.contains("RunsExec"), by_runs, "{aggregates}\n{plan}");
    }
}

/// Four series in turn, each with so many rows before the next.
fn in_turn(rows_in_run: usize) -> Vec<Span> {
    let row = Row { float: Some(1.0), odd: 0.0, integer: Some(1), unsigned: 1, boolean: None };
    let span = |host| Span { host: Some(host), rack: None, time: 0, step: 1, rows: vec![row.clone(); rows_in_run] };
    (0..800).map(|at| span(at % 4)).collect()
}

#[tokio::test]
async fn rows_that_do_not_come_in_runs_are_handed_over() {
    // In batches of 32 rows, of which one may cut a run in two. 32 groups are given on at a time.
    for (rows_in_run, runs) in [(1, 32), (3, 34), (4, 800), (8, 800)] {
        let context = context(&[vec![in_turn(rows_in_run)], Vec::new()], 2, true);
        let sql = "SELECT host, count(*) AS n FROM m GROUP BY host";
        let analyzed = context.sql(&format!("EXPLAIN ANALYZE {sql}")).await.unwrap().collect().await.unwrap();
        let analyzed = pretty_format_batches(&analyzed).unwrap().to_string();
        assert!(analyzed.contains(&format!(", runs={runs}]")), "{runs} in {analyzed}");
        // Two indices in the dictionary have the text "a".
        let total = format!("SELECT CAST(sum(n) AS TEXT) || ' in ' || CAST(count(*) AS TEXT) FROM ({sql})");
        let lines = answer(&context, &total).await.unwrap();
        assert!(lines.iter().any(|line| line.contains(&format!(" {} in 4 ", 800 * rows_in_run))), "{lines:?}");
    }
}

#[tokio::test]
async fn groups_for_which_there_is_no_memory_are_spilled() {
    let row = Row { float: Some(1.0), odd: 0.0, integer: Some(1), unsigned: 1, boolean: None };
    let span =
        |host, at: i64| Span { host: Some(host), rack: None, time: at * 1_000, step: 1, rows: vec![row.clone(); 5] };
    let series = |host| (0..2_000_i64).map(|at| span(host, at)).collect::<Vec<_>>();
    let batches = vec![vec![batch(&series(0)), batch(&series(1))], vec![batch(&series(1)), batch(&series(2))]];
    let groups = "SELECT host, date_trunc('microsecond', time), sum(integer) AS n FROM m GROUP BY 1, 2";
    let sql = format!("SELECT count(*), sum(n), min(n), max(n) FROM ({groups})");
    let whole = answer(&context_over(batches.clone(), 2, true, usize::MAX), &sql).await;
    assert!(whole.as_ref().unwrap().iter().any(|line| line.contains("| 6000 ")), "{whole:?}");
    // With less the second phase spills, and with much less there is no room to do so.
    let mut spilled = Vec::new();
    for memory_bytes in (0..6).map(|power| (64 << 10) << power) {
        let context = context_over(batches.clone(), 2, true, memory_bytes);
        let Ok(lines) = answer(&context, &sql).await else { continue };
        assert_eq!(lines, *whole.as_ref().unwrap(), "{memory_bytes}");
        let Ok(analyzed) = answer(&context, &format!("EXPLAIN ANALYZE {sql}")).await else { continue };
        let counts = analyzed.iter().flat_map(|line| line.split("spill_count=").skip(1));
        spilled.extend(counts.filter(|count| !count.starts_with('0')).map(|_| memory_bytes));
    }
    assert!(!spilled.is_empty());
}
