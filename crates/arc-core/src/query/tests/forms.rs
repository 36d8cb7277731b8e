//! Each aggregate in each form that SQL has for it: the answer is that of the plain function over
//! the same rows, or the form is refused.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use arrow::{
    compute::SortOptions,
    datatypes::{DataType, Field, Schema},
};
use datafusion::{
    execution::SessionStateDefaults,
    logical_expr::utils::AggregateOrderSensitivity,
    physical_expr::{
        PhysicalExpr, PhysicalSortExpr,
        aggregate::AggregateExprBuilder,
        expressions::{col, lit},
    },
};

use super::{
    super::functions,
    fake::{
        Cell::{Boolean, Float, Integer, Tag, Text},
        Home::{Buffer, File, LateBuffer, LateFile},
        Row, Store, TableBuilder,
    },
};
use crate::model::time_type;

/// What DISTINCT does to a function.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Distinct {
    /// Equal values count once.
    Counts,
    /// It is not done.
    Refused,
}

/// An aggregate, with arguments that make its answer a matter of the rows alone.
#[derive(Debug)]
struct Call {
    name: &'static str,
    arguments: &'static str,
    /// Whether its answer depends on the order of rows.
    is_ordered: bool,
    distinct: Distinct,
}

const fn call(name: &'static str, arguments: &'static str, is_ordered: bool, distinct: Distinct) -> Call {
    Call { name, arguments, is_ordered, distinct }
}

const CALLS: &[Call] = &[
    call("array_agg", "x", true, Distinct::Counts),
    call("first_value", "x", true, Distinct::Counts),
    call("last_value", "x", true, Distinct::Counts),
    call("nth_value", "x, 2", true, Distinct::Refused),
    call("string_agg", "s, ','", true, Distinct::Counts),
    call("covar_samp", "y, x", false, Distinct::Refused),
    call("covar_pop", "y, x", false, Distinct::Refused),
    call("corr", "y, x", false, Distinct::Refused),
    call("regr_slope", "y, x", false, Distinct::Refused),
    call("regr_intercept", "y, x", false, Distinct::Refused),
    call("regr_count", "y, x", false, Distinct::Refused),
    call("regr_r2", "y, x", false, Distinct::Refused),
    call("regr_avgx", "y, x", false, Distinct::Refused),
    call("regr_avgy", "y, x", false, Distinct::Refused),
    call("regr_sxx", "y, x", false, Distinct::Refused),
    call("regr_syy", "y, x", false, Distinct::Refused),
    call("regr_sxy", "y, x", false, Distinct::Refused),
    call("var", "x", false, Distinct::Counts),
    call("var_pop", "x", false, Distinct::Counts),
    call("stddev", "x", false, Distinct::Refused),
    call("stddev_pop", "x", false, Distinct::Refused),
    call("sum", "x", false, Distinct::Counts),
    call("sum", "i", false, Distinct::Counts),
    call("avg", "x", false, Distinct::Counts),
    call("avg", "i", false, Distinct::Counts),
    call("min", "x", false, Distinct::Counts),
    call("max", "x", false, Distinct::Counts),
    call("min", "s", false, Distinct::Counts),
    call("max", "k", false, Distinct::Counts),
    call("median", "x", false, Distinct::Counts),
    call("percentile_cont", "x, 0.25", false, Distinct::Counts),
    call("count", "x", false, Distinct::Counts),
    call("count", "s", false, Distinct::Counts),
    call("approx_median", "i", false, Distinct::Refused),
    call("approx_distinct", "i", false, Distinct::Counts),
    call("approx_percentile_cont", "i, 0.25", false, Distinct::Refused),
    call("approx_percentile_cont_with_weight", "i, c, 0.25", false, Distinct::Refused),
    call("bit_and", "i", false, Distinct::Counts),
    call("bit_or", "i", false, Distinct::Counts),
    call("bit_xor", "i", false, Distinct::Counts),
    call("bool_and", "b", false, Distinct::Counts),
    call("bool_or", "b", false, Distinct::Counts),
    call("arg_max", "x, n", false, Distinct::Refused),
    call("arg_min", "x, n", false, Distinct::Refused),
    call("delta", "x, time", false, Distinct::Refused),
    call("increase", "i, time", false, Distinct::Refused),
    call("rate", "x, time", false, Distinct::Refused),
    call("derivative", "x, time", false, Distinct::Refused),
    call("mode", "s", false, Distinct::Counts),
    call("histogram", "i", false, Distinct::Counts),
    call("any_value", "c", false, Distinct::Counts),
];

/// How aggregates are computed in frames that slide and by group, and what they ask of the order of their rows.
const WAYS: [&str; 9] = [
    "slides false, by group false, order likes: array_agg",
    "slides false, by group false, order needs: approx_median approx_percentile_cont approx_percentile_cont_with_weight \
     arg_max arg_min nth_value string_agg",
    "slides false, by group false, order none: any_value",
    "slides false, by group true, order needs: approx_distinct avg bit_and bit_or",
    "slides false, by group true, order none: bool_and bool_or",
    "slides false, by group true, order uses: first_value last_value",
    "slides true, by group false, order needs: delta derivative histogram increase mode rate",
    "slides true, by group true, order needs: avg bit_xor corr count covar_pop covar_samp median percentile_cont regr_avgx \
     regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy stddev stddev_pop var var_pop",
    "slides true, by group true, order none: max min sum",
];

impl Call {
    /// Returns the call; rows come to it in the order of `n`.
    fn plain(&self) -> String {
        let order = if self.is_ordered { " ORDER BY n" } else { "" };
        format!("{}({}{order})", self.name, self.arguments)
    }
}

/// Values that come and go: equal ones, some much larger than others, NaN, infinities, nulls,
/// large offsets.
const X: [Option<f64>; 36] = [
    Some(21.5),
    Some(20.1),
    Some(20.1),
    Some(20.1),
    Some(20.1),
    None,
    Some(20.1),
    Some(1e17),
    Some(1.0),
    Some(2.0),
    Some(3.0),
    Some(3.0),
    Some(f64::NAN),
    Some(2.0),
    Some(4.0),
    Some(6.0),
    None,
    None,
    None,
    Some(6.0),
    Some(f64::INFINITY),
    Some(5.0),
    Some(7.0),
    Some(f64::NEG_INFINITY),
    Some(9.0),
    Some(0.1),
    Some(0.1),
    Some(0.1),
    Some(0.2),
    Some(0.3),
    Some(1.7e9),
    Some(1.7e9 + 1.0),
    Some(1.7e9 + 2.0),
    Some(1.7e9 + 3.0),
    Some(1.7e9 + 4.0),
    Some(-1.0),
];

fn rows() -> Vec<Row> {
    let row = |(at, x): (usize, &Option<f64>)| -> Row {
        let n = i64::try_from(at).unwrap();
        // Neither key follows the order of the rows.
        let tags = [("h", ["a", "b", "c"][at * 7 % 3]), ("k", ["p", "q"][at / 2 % 2])];
        let tags = tags.into_iter().filter(|(tag, _)| *tag == "h" || at % 5 != 0).map(|(tag, value)| (tag, Tag(value)));
        let y = (at % 4 != 3).then_some(("y", Float(1e6 + 3.0 * at as f64 + if at % 2 == 0 { 0.25 } else { 0.0 })));
        let i = (at % 6 != 5).then_some(("i", Integer(n * n % 11 - 5)));
        let s = (at % 7 != 1).then_some(("s", Text(["u", "v", "w", "v"][at * 3 % 4])));
        let b = (at % 3 != 2).then_some(("b", Boolean(at % 2 == 0)));
        let others = [("n", Integer(n)), ("c", Integer(1))].into_iter().chain(x.map(|x| ("x", Float(x))));
        (n * 1_000_000_000, tags.chain(others).chain(y).chain(i).chain(s).chain(b).collect())
    };
    X.iter().enumerate().map(row).collect()
}

/// Returns stores of the same rows: in one file, and in parts that are read in other orders.
fn stores() -> [Store; 2] {
    let (whole, parts) = (Store::new(), Store::new());
    whole.put("db", TableBuilder::new("t").part(File, rows()));
    let mut backwards = rows();
    backwards.reverse();
    let mut table = TableBuilder::new("t");
    for (part, home) in backwards.chunks(12).zip([File, LateBuffer, Buffer]) {
        table = table.part(home, part.to_vec());
    }
    parts.put("db", table.part(LateFile, rows().into_iter().step_by(5).collect()));
    [whole, parts]
}

/// Returns whether two cells say the same, to the digits that another order of additions changes.
fn same(one: &str, other: &str) -> bool {
    let within =
        |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1e-3);
    one == other || matches!((one.parse(), other.parse()), (Ok(one), Ok(other)) if within(one, other))
}

/// Returns the cells of the only row of an answer.
async fn only_row(store: &Store, sql: &str) -> Vec<String> {
    let [row] = &store.rows(sql).await[..] else { panic!("{sql} has not one row") };
    row.split('|').map(str::to_owned).collect()
}

/// Returns what each of the functions is over the rows that meet a condition.
async fn plain(store: &Store, calls: &[Call], condition: &str) -> Vec<String> {
    let calls = calls.iter().map(Call::plain).collect::<Vec<_>>().join(", ");
    only_row(store, &format!("SELECT {calls} FROM t WHERE {condition}")).await
}

fn assert_same(cells: &[impl AsRef<str>], expected: &[impl AsRef<str>], form: &str) {
    assert_eq!(cells.len(), expected.len(), "{form}");
    for (cell, expected) in cells.iter().zip(expected) {
        assert!(same(cell.as_ref(), expected.as_ref()), "{form}: {} for {}", cell.as_ref(), expected.as_ref());
    }
}

#[test]
fn each_aggregate_is_called_here() {
    let theirs = SessionStateDefaults::default_aggregate_functions();
    let mut known: BTreeSet<String> =
        functions::aggregates(theirs, 1 << 20).iter().map(|function| function.name().to_owned()).collect();
    // It has no rows of its own.
    known.remove("grouping");
    assert_eq!(known, CALLS.iter().map(|call| call.name.to_owned()).collect());
}

/// Ways of an aggregate that an upgrade of DataFusion may change: each needs its forms looked at anew.
#[test]
fn aggregates_take_the_ways_that_are_known() {
    let schema = Arc::new(Schema::new(vec![
        Field::new("x", DataType::Float64, true),
        Field::new("y", DataType::Float64, true),
        Field::new("i", DataType::Int64, true),
        Field::new("c", DataType::Int64, true),
        Field::new("n", DataType::Int64, true),
        Field::new("s", DataType::Utf8, true),
        Field::new("k", DataType::Utf8, true),
        Field::new("b", DataType::Boolean, true),
        Field::new("time", time_type(), false),
    ]));
    let argument = |text: &str| -> Arc<dyn PhysicalExpr> {
        match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(number), _) => lit(number),
            (_, Ok(number)) => lit(number),
            _ if text.starts_with('\'') => lit(text.trim_matches('\'')),
            _ => col(text, &schema).unwrap(),
        }
    };
    let functions = functions::aggregates(SessionStateDefaults::default_aggregate_functions(), 1 << 20);
    let mut found: BTreeMap<(bool, bool, &str), BTreeSet<&str>> = BTreeMap::new();
    for call in CALLS {
        let function = functions.iter().find(|function| function.name() == call.name).unwrap();
        // A text with a comma in it is the separator of `string_agg`.
        let texts = call.arguments.split(", ").map(|text| if text == "','" { "';'" } else { text });
        let of_rows = AggregateExprBuilder::new(Arc::clone(function), texts.map(argument).collect());
        let order = PhysicalSortExpr { expr: argument("n"), options: SortOptions::default() };
        let of_rows = of_rows.schema(Arc::clone(&schema)).alias("a").order_by(vec![order]).build().unwrap();
        let slides = of_rows.create_sliding_accumulator().is_ok_and(|made| made.supports_retract_batch());
        let order = match of_rows.order_sensitivity() {
            AggregateOrderSensitivity::Insensitive => "none",
            AggregateOrderSensitivity::HardRequirement => "needs",
            AggregateOrderSensitivity::SoftRequirement => "likes",
            AggregateOrderSensitivity::Beneficial => "uses",
        };
        found.entry((slides, of_rows.groups_accumulator_supported(), order)).or_default().insert(call.name);
    }
    let shown: Vec<String> = found
        .iter()
        .map(|((slides, by_group, order), names)| {
            format!(
                "slides {slides}, by group {by_group}, order {order}: {}",
                names.iter().copied().collect::<Vec<_>>().join(" ")
            )
        })
        .collect();
    assert_eq!(shown, WAYS);
}

#[tokio::test]
async fn groups_and_filters_are_the_function_over_their_rows() {
    let conditions = |keys: &[&str]| {
        let of_key = |(key, value): (&str, &&str)| match *value {
            "*" => "true".to_owned(),
            "" => format!("{key} IS NULL"),
            value => format!("{key} = '{value}'"),
        };
        ["h", "k"].into_iter().zip(keys).map(of_key).collect::<Vec<_>>().join(" AND ")
    };
    let keys = "CASE WHEN grouping(h) = 1 THEN '*' ELSE h END, CASE WHEN grouping(k) = 1 THEN '*' ELSE k END";
    let groupings = ["ROLLUP (h, k)", "ROLLUP (k, h)", "CUBE (h, k)", "GROUPING SETS ((k), (h), ())"];
    // Which functions stand side by side: what one asks of the rows is not what another does.
    let all = 0..CALLS.len();
    let ordered = CALLS.iter().position(|call| !call.is_ordered).unwrap();
    let sides = [all.clone(), 0..ordered].into_iter().chain(all.clone().map(|at| at..at + 1));
    for store in stores() {
        let mut expected = BTreeMap::new();
        for (number, side) in sides.clone().enumerate() {
            let columns = CALLS[side.clone()].iter().map(Call::plain).collect::<Vec<_>>().join(", ");
            let asked = if side.len() == 1 { 1 } else { groupings.len() };
            for grouping in groupings.iter().cycle().skip(number).take(asked) {
                let sql = format!("SELECT {keys}, {columns} FROM t GROUP BY {grouping}");
                for row in store.rows(&sql).await {
                    let cells: Vec<&str> = row.split('|').collect();
                    let condition = conditions(&cells[..2]);
                    if !expected.contains_key(&condition) {
                        expected.insert(condition.clone(), plain(&store, CALLS, &condition).await);
                    }
                    assert_same(&cells[2..], &expected[&condition][side.clone()], &format!("{sql}, {condition}"));
                }
            }
        }
        let filtered = CALLS.iter().map(|call| format!("{} FILTER (WHERE n % 3 = 1)", call.plain()));
        let sql = format!("SELECT {} FROM t", filtered.collect::<Vec<_>>().join(", "));
        assert_same(&only_row(&store, &sql).await, &plain(&store, CALLS, "n % 3 = 1").await, "FILTER");
    }
}

/// Frames, with the first and the last row of each, counted from the row that it is of.
const FRAMES: [(&str, i64, i64); 6] = [
    ("ROWS UNBOUNDED PRECEDING", -99, 0),
    ("ROWS 1 PRECEDING", -1, 0),
    ("ROWS 3 PRECEDING", -3, 0),
    ("ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING", -2, 2),
    ("ROWS BETWEEN 4 PRECEDING AND 2 PRECEDING", -4, -2),
    ("ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", 0, 99),
];

#[tokio::test]
async fn frames_are_the_function_over_their_rows() {
    let [store, _] = stores();
    let distinct = CALLS.iter().filter(|call| call.distinct == Distinct::Counts && !call.is_ordered);
    let distinct = distinct.map(|call| format!("{}(DISTINCT {})", call.name, call.arguments));
    let calls = CALLS.iter().map(|call| (format!("{}({})", call.name, call.arguments), call.plain()));
    let calls: Vec<_> = calls.chain(distinct.map(|call| (call.clone(), call))).collect();
    for (frame, first, last) in FRAMES {
        let over = |(call, _): &&(String, String)| format!("{call} OVER (ORDER BY n {frame})");
        let mut done = Vec::new();
        for call in &calls {
            let text = store.text(&format!("SELECT {} FROM t", over(&call))).await;
            match text.starts_with("error") {
                true => assert!(SLIDES_NOT.iter().any(|reason| text.contains(reason)), "{}: {text}", over(&call)),
                false => done.push(call),
            }
        }
        assert!(done.len() > 40, "{frame}: {done:?}");
        let (over, plain): (Vec<_>, Vec<_>) = done.iter().map(|call| (over(call), call.1.as_str())).unzip();
        let frames = format!("SELECT n, {} FROM t ORDER BY n", over.join(", "));
        // Of an empty frame there is a row that does not count.
        let rows = format!(
            "SELECT f.row, {} FROM (SELECT n AS row FROM t) AS f LEFT JOIN t ON t.n BETWEEN f.row + {first} AND f.row + {last} \
             GROUP BY f.row ORDER BY f.row",
            plain.iter().map(|call| format!("{call} FILTER (WHERE n IS NOT NULL)")).collect::<Vec<_>>().join(", ")
        );
        for (row, expected) in store.rows(&frames).await.iter().zip(store.rows(&rows).await) {
            let cells: Vec<&str> = row.split('|').collect();
            let expected: Vec<&str> = expected.split('|').collect();
            for ((cell, expected), call) in cells[1..].iter().zip(&expected[1..]).zip(&over) {
                assert!(same(cell, expected), "{call} in row {} is {cell}, not {expected}", cells[0]);
            }
        }
    }
}

/// Why a function cannot have a frame.
const SLIDES_NOT: [&str; 3] = ["retract", "not supported", "not implemented"];

#[tokio::test]
async fn distinct_values_count_once_or_are_refused() {
    for store in stores() {
        let (mut all, mut of_hosts) = (Vec::new(), vec![Vec::new(); 3]);
        for call in CALLS {
            let column = call.arguments.split(',').next().unwrap();
            let order = if call.is_ordered { format!(" ORDER BY {column}") } else { String::new() };
            let distinct = format!("{}(DISTINCT {}{order})", call.name, call.arguments);
            if call.distinct == Distinct::Refused {
                let error = store.error(&format!("SELECT {distinct} FROM t")).await.to_string();
                assert!(error.contains("DISTINCT"), "{distinct}: {error}");
                continue;
            }
            // By groups beside a function that counts each row, and for each group alone.
            let groups = store.rows(&format!("SELECT {distinct}, count(n) FROM t GROUP BY h ORDER BY h")).await;
            let plain = format!("{}({}{order})", call.name, call.arguments);
            for ((host, row), of_host) in ["a", "b", "c"].into_iter().zip(groups).zip(&mut of_hosts) {
                let rows = format!("(SELECT DISTINCT {column} FROM t WHERE h = '{host}')");
                let expected = only_row(&store, &format!("SELECT {plain} FROM {rows}")).await;
                assert_same(&row.split('|').take(1).collect::<Vec<_>>(), &expected, &format!("{distinct} BY h"));
                let alone = only_row(&store, &format!("SELECT {distinct} FROM t WHERE h = '{host}'")).await;
                assert_same(&alone, &expected, &distinct);
                of_host.extend(expected);
            }
            all.push(distinct);
        }
        let side_by_side = store.rows(&format!("SELECT {} FROM t GROUP BY h ORDER BY h", all.join(", "))).await;
        for (row, expected) in side_by_side.iter().zip(of_hosts) {
            assert_same(&row.split('|').collect::<Vec<_>>(), &expected, "side by side");
        }
    }
}

#[tokio::test]
async fn an_item_of_a_list_is_that_of_the_whole_list() {
    for store in stores() {
        for list in ["DISTINCT i ORDER BY i", "DISTINCT s ORDER BY s DESC", "n ORDER BY n", "x ORDER BY n DESC"] {
            for at in ["1", "2", "-1", "0", "99", "NULL", "count(*)", "1 + 1"] {
                let item = store.rows(&format!("SELECT (array_agg({list}))[{at}] FROM t")).await;
                let of_list =
                    format!("SELECT list[{at}] FROM (SELECT array_agg({list}) AS list, count(*) AS c FROM t)");
                assert_eq!(item, store.rows(&of_list.replace("count(*)]", "c]")).await, "{list} at {at}");
            }
        }
        let [first] = &store.rows("SELECT (array_agg(s ORDER BY n) IGNORE NULLS)[2] FROM t").await[..] else {
            panic!()
        };
        assert_eq!(*first, store.rows("SELECT s FROM t WHERE s IS NOT NULL ORDER BY n").await[1]);
        let tags = "SELECT string_agg(DISTINCT h, ',' ORDER BY h DESC) FROM t";
        assert_eq!(store.rows(tags).await, ["c,b,a"]);
    }
}

#[tokio::test]
async fn a_key_that_is_written_twice_counts_once() {
    let sorted = [
        "SELECT first_value(n ORDER BY [keys], n), last_value(n ORDER BY [keys], n) FROM t",
        "SELECT first_value(n ORDER BY [keys], n), last_value(n ORDER BY [keys], n) FROM t GROUP BY h ORDER BY h",
        "SELECT nth_value(n, 2 ORDER BY [keys], n), array_agg(n ORDER BY [keys], n) FROM t GROUP BY h ORDER BY h",
        "SELECT string_agg(s, ',' ORDER BY n, [keys], n) FROM t GROUP BY h ORDER BY h",
        "SELECT DISTINCT ON (i) n FROM t ORDER BY i, [keys], n",
        "SELECT n FROM t ORDER BY [keys], n LIMIT 7",
        "SELECT n, sum(n) OVER (ORDER BY [keys], n) FROM t ORDER BY n",
    ];
    let grouped = [
        "SELECT DISTINCT ON ([keys]) n FROM t ORDER BY [keys], n",
        "SELECT n, row_number() OVER (PARTITION BY [keys] ORDER BY n) FROM t ORDER BY n",
        "SELECT count(*), min(n) FROM t GROUP BY [keys] ORDER BY min(n)",
    ];
    let named = [
        ("array_agg(DISTINCT i ORDER BY i)", "array_agg(DISTINCT i ORDER BY i, i)"),
        ("first_value(n ORDER BY i, n)", "first_value(n ORDER BY i, j, n)"),
    ];
    for store in stores() {
        for key in ["i", "h", "x", "upper(h)", "i % 2"] {
            let (same, backwards) = (format!("{key}, {key}"), format!("{key}, {key} DESC"));
            let of_sorts = sorted.iter().flat_map(|sql| [(sql, &same), (sql, &backwards)]);
            for (sql, keys) in of_sorts.chain(grouped.iter().map(|sql| (sql, &same))) {
                let twice = sql.replace("[keys]", keys);
                assert_eq!(store.rows(&twice).await, store.rows(&sql.replace("[keys]", key)).await, "{twice}");
            }
        }
        for (once, twice) in named {
            let ask = |call| format!("SELECT {call} FROM (SELECT *, i AS j FROM t) GROUP BY h ORDER BY h");
            assert_eq!(store.rows(&ask(twice)).await, store.rows(&ask(once)).await, "{twice}");
        }
    }
}

#[tokio::test]
async fn a_computed_key_of_a_set_is_a_column_of_that_value() {
    let keys = [
        "NOT (i IN (1, NULL) AND i IN (0, 1))",
        "CASE WHEN NOT (h NOT IN ('a', 'c', 'c') AND x < 4.0) THEN x ELSE y END",
        "x NOT IN (-0.0, 2.0)",
        "NOT (i > 1)",
        "1 + 1",
        "i + 1",
        "upper(h)",
        "date_trunc('minute', time)",
        "coalesce(x, 0.0) > 3.0",
    ];
    for store in stores() {
        for key in keys {
            for (set, others) in
                [("ROLLUP (key)", ""), ("CUBE (key, k)", "k,"), ("GROUPING SETS ((h, key), (key, k), ())", "h, k,")]
            {
                let ask = |from: &str, key: &str| {
                    let set = set.replace("key", key);
                    let having = format!("HAVING count(*) > 0 OR ({key}) IS NULL");
                    format!(
                        "SELECT {key}, {others} count(*), sum(i), grouping({key}) FROM {from} GROUP BY {set} {having} ORDER BY 1, 2, 3, 4"
                    )
                };
                let named = format!("(SELECT *, {key} AS key FROM t)");
                assert_eq!(store.rows(&ask("t", key)).await, store.rows(&ask(&named, "key")).await, "{set} of {key}");
            }
        }
    }
}
