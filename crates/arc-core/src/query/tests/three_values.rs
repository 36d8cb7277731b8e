//! Conditions are true, false or NULL as in SQL, wherever they stand.

use std::fmt::{Display, Formatter, Result};

use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};

use super::fake::{
    Cell::{Integer, Tag},
    Home::{Buffer, File},
    Row, Store, TableBuilder,
};

const HOSTS: [&str; 3] = ["a", "b", "c"];

/// A number below three, or NULL: of the column `i` itself, of `host` the place among [`HOSTS`].
type Value = Option<usize>;

#[derive(Debug, Clone)]
enum Condition {
    In { column: &'static str, list: Vec<Value>, negated: bool },
    Equal { column: &'static str, value: Value, negated: bool },
    IsNull(&'static str),
    Not(Box<Self>),
    And(Box<Self>, Box<Self>),
    Or(Box<Self>, Box<Self>),
}

fn literal(column: &str, value: Value) -> String {
    match (column, value) {
        (_, None) => "NULL".to_owned(),
        ("i", Some(value)) => value.to_string(),
        (_, Some(value)) => format!("'{}'", HOSTS[value]),
    }
}

impl Display for Condition {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::In { column, list, negated } => {
                let list: Vec<String> = list.iter().map(|value| literal(column, *value)).collect();
                write!(f, "{column} {}IN ({})", if *negated { "NOT " } else { "" }, list.join(", "))
            }
            Self::Equal { column, value, negated } => {
                write!(f, "{column} {} {}", if *negated { "<>" } else { "=" }, literal(column, *value))
            }
            Self::IsNull(column) => write!(f, "{column} IS NULL"),
            Self::Not(inner) => write!(f, "NOT ({inner})"),
            Self::And(one, other) => write!(f, "({one}) AND ({other})"),
            Self::Or(one, other) => write!(f, "({one}) OR ({other})"),
        }
    }
}

impl Condition {
    /// Returns what the condition is for a row.
    fn of(&self, (i, host): (Value, Value)) -> Option<bool> {
        let of = |column: &str| if column == "i" { i } else { host };
        match self {
            Self::In { column, list, negated } => {
                let value = of(column)?;
                let found = list.contains(&Some(value));
                (found || !list.contains(&None)).then_some(found != *negated)
            }
            Self::Equal { column, value, negated } => Some((of(column)? == (*value)?) != *negated),
            Self::IsNull(column) => Some(of(column).is_none()),
            Self::Not(inner) => inner.of((i, host)).map(|is| !is),
            Self::And(one, other) => match (one.of((i, host)), other.of((i, host))) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (one, other) => Some(one? && other?),
            },
            Self::Or(one, other) => match (one.of((i, host)), other.of((i, host))) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (one, other) => Some(one? || other?),
            },
        }
    }
}

fn conditions() -> impl Strategy<Value = Condition> {
    // Mostly of one column: what is joined is of one.
    let column = || prop::sample::select(vec!["i", "i", "i", "host"]);
    let value = || prop_oneof![4 => (0..3_usize).prop_map(Some), 1 => Just(None)];
    let leaf = prop_oneof![
        6 => (column(), prop::collection::vec(value(), 1..4), any::<bool>())
            .prop_map(|(column, list, negated)| Condition::In { column, list, negated }),
        3 => (column(), value(), any::<bool>())
            .prop_map(|(column, value, negated)| Condition::Equal { column, value, negated }),
        1 => column().prop_map(Condition::IsNull),
    ];
    leaf.prop_recursive(4, 12, 2, |inner| {
        prop_oneof![
            3 => (inner.clone(), inner.clone()).prop_map(|(one, other)| Condition::And(one.into(), other.into())),
            3 => (inner.clone(), inner.clone()).prop_map(|(one, other)| Condition::Or(one.into(), other.into())),
            1 => inner.prop_map(|inner| Condition::Not(inner.into())),
        ]
    })
}

/// Returns each row that there can be.
fn rows() -> Vec<(Value, Value)> {
    let values = || [None, Some(0), Some(1), Some(2)];
    values().into_iter().flat_map(|i| values().into_iter().map(move |host| (i, host))).collect()
}

fn store() -> Store {
    let row = |(at, (i, host)): (usize, &(Value, Value))| -> Row {
        let i = i.map(|i| ("i", Integer(i as i64)));
        let host = host.map(|host| ("host", Tag(HOSTS[host])));
        (at as i64, [("n", Integer(at as i64))].into_iter().chain(i).chain(host).collect())
    };
    let all: Vec<Row> = rows().iter().enumerate().map(row).collect();
    let (one, other) = all.split_at(7);
    let store = Store::new();
    store.put("db", TableBuilder::new("t").part(File, one.to_vec()).part(Buffer, other.to_vec()));
    store
}

/// The conditions of the review: a list loses its NULL, and a value that is NULL is in no list and in all.
#[tokio::test]
async fn lists_of_one_value_keep_what_is_null() {
    let store = store();
    for (condition, expected) in [
        ("i NOT IN (1, NULL) AND i IN (0, 1, NULL)", ""),
        ("i IN (0, 1, NULL) AND i NOT IN (1, NULL)", ""),
        ("(i IN (NULL) AND i IN (2)) IS NULL", "0 1 2 3 12 13 14 15"),
        ("(i IN (0) AND i IN (2)) IS NULL", "0 1 2 3"),
        ("i NOT IN (0) OR i NOT IN (2)", "4 5 6 7 8 9 10 11 12 13 14 15"),
        ("NOT (i IN (0, 1) AND i NOT IN (0, 1))", "4 5 6 7 8 9 10 11 12 13 14 15"),
        ("host NOT IN ('a', NULL) AND host IN ('a', 'b')", ""),
        // Of the rows with 0, whose numbers are 4 to 7.
        ("i IN (0, n) AND i NOT IN (n)", "4 5 6 7"),
    ] {
        let found = store.rows(&format!("SELECT n FROM t WHERE {condition} ORDER BY n")).await.join(" ");
        assert_eq!(found, expected, "{condition}");
    }
}

#[test]
fn any_condition_has_the_value_that_sql_gives_it() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = store();
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(8);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let some = prop::collection::vec(conditions(), 12);
    let checked = runner.run(&some, |conditions| {
        let text = |value: Option<bool>| value.map_or(String::new(), |value| value.to_string());
        runtime.block_on(async {
            let columns: Vec<String> =
                conditions.iter().enumerate().map(|(at, condition)| format!("({condition}) AS c{at}")).collect();
            let shown = store.rows(&format!("SELECT n, {} FROM t ORDER BY n", columns.join(", "))).await;
            for ((shown, row), n) in shown.iter().zip(rows()).zip(0..) {
                let values: Vec<String> = conditions.iter().map(|condition| text(condition.of(row))).collect();
                prop_assert_eq!(shown, &format!("{n}|{}", values.join("|")), "{:?}", columns);
            }
            for condition in &conditions {
                let met = |row: &(usize, (Value, Value))| condition.of(row.1) == Some(true);
                let expected: Vec<String> =
                    rows().into_iter().enumerate().filter(met).map(|(n, _)| n.to_string()).collect();
                let found = store.rows(&format!("SELECT n FROM t WHERE {condition} ORDER BY n")).await;
                prop_assert_eq!(found, expected, "{}", condition);
            }
            Ok(())
        })
    });
    checked.unwrap();
}
