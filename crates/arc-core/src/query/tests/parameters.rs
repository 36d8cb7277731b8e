//! Placeholders: what they are, what they get, and what is refused.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, Int64Array, NullArray, RecordBatch, StringArray, TimestampMicrosecondArray},
    datatypes::{DataType, Schema},
};

use super::fake::{
    Cell::{Float, Integer, Tag},
    Home::{Buffer, File},
    Store, TableBuilder,
};
use crate::Error;

fn store() -> Store {
    let store = Store::new();
    let row = |time, host, n, value| (time, vec![("host", Tag(host)), ("n", Integer(n)), ("v", Float(value))]);
    let table = TableBuilder::new("cpu").part(File, vec![row(1_000, "a", 1, 0.5)]);
    store.put("db", table.part(Buffer, vec![row(2_000, "b'c", 2, 1.5)]));
    store
}

fn row<const N: usize>(columns: [(&str, ArrayRef); N]) -> RecordBatch {
    if N == 0 {
        return RecordBatch::new_empty(Arc::new(Schema::empty()));
    }
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap()
}

fn integer(value: i64) -> ArrayRef {
    Arc::new(Int64Array::from(vec![value]))
}

fn text(value: &str) -> ArrayRef {
    Arc::new(StringArray::from(vec![value]))
}

async fn counted(store: &Store, condition: &str, values: &RecordBatch) -> Result<i64, Error> {
    let sql = format!("SELECT count(*) FROM cpu WHERE {condition}");
    let batches = store.sql("db", &sql, Some(values)).await?.collect().await?;
    Ok(arrow::array::AsArray::as_primitive::<arrow::datatypes::Int64Type>(batches[0].column(0)).value(0))
}

#[tokio::test]
async fn values_take_the_places_of_placeholders() {
    let store = store();
    let time: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![2]));
    for (condition, values, expected) in [
        ("n = $1", row([("x", integer(2))]), 1),
        ("n = ?", row([("x", integer(2))]), 1),
        ("n >= ? AND host <> ?", row([("", integer(1)), ("", text("a"))]), 1),
        ("n >= $2 AND host <> $1", row([("", text("a")), ("", integer(1))]), 1),
        ("n = $1 OR n - 1 = $1", row([("", integer(1))]), 2),
        ("n = $n AND host = $host", row([("host", text("b'c")), ("n", integer(2))]), 1),
        ("n = $n AND host = $host", row([("$host", text("b'c")), ("$n", integer(2))]), 1),
        ("n >= $2 AND host <> $1", row([("$2", integer(1)), ("$1", text("a"))]), 1),
        ("v > $1", row([("", integer(1))]), 1),
        ("time >= $1", row([("", time)]), 1),
        ("time >= $1", row([("", text("1970-01-01T00:00:00.000002Z"))]), 1),
        ("host = $1", row([("", text("x' OR 'a' = 'a"))]), 0),
        ("n = $1", row([("", Arc::new(NullArray::new(1)) as ArrayRef)]), 0),
        ("n = $1 AND '?' <> '$2'", row([("", integer(2))]), 1),
        ("n IN (SELECT n FROM cpu WHERE host = $1)", row([("", text("a"))]), 1),
    ] {
        assert_eq!(counted(&store, condition, &values).await.unwrap(), expected, "{condition}");
    }
    // The tenth is not before the second.
    let shuffled: [(&str, ArrayRef); 11] = [1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9]
        .map(|n| (["", "$1", "$2", "$3", "$4", "$5", "$6", "$7", "$8", "$9", "$10", "$11"][n], integer(n as i64)));
    let condition = (1..=11).map(|n| format!("${n} = {n}")).collect::<Vec<_>>().join(" AND ");
    assert_eq!(counted(&store, &condition, &row(shuffled)).await.unwrap(), 2);
    let limited = store.sql("db", "SELECT n FROM cpu LIMIT $1", Some(&row([("", integer(1))]))).await.unwrap();
    let rows = limited.collect().await.unwrap().iter().map(RecordBatch::num_rows).sum::<usize>();
    assert_eq!(rows, 1);
}

#[tokio::test]
async fn one_value_for_each_placeholder_or_none_at_all() {
    let store = store();
    let two: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let long = "x".repeat(2 << 20);
    for (condition, values, expected) in [
        ("n = $1", row([]), "the statement has 1 placeholders, and 0 values were given"),
        ("n = $2", row([("", integer(1))]), "the statement has 2 placeholders, and 1 values"),
        ("n = $1", row([("", integer(1)), ("", integer(1))]), "1 placeholders, and 2 values"),
        ("n = 1", row([("", integer(1))]), "0 placeholders, and 1 values"),
        ("n = $a", row([("b", integer(1))]), "no value for the placeholder $a"),
        ("n = $a", row([("a", integer(1)), ("b", integer(1))]), "no placeholder for the value \"b\""),
        ("n = $a", row([("a", integer(1)), ("$a", integer(2))]), "no placeholder for the value \"$a\""),
        ("n = $1 OR n = $2", row([("$a", integer(1)), ("$b", integer(1))]), "no value for the placeholder $1"),
        ("n = $1 OR n = $2", row([("$1", integer(1)), ("$3", integer(1))]), "no value for the placeholder $2"),
        ("n = $1 OR n = $2", row([("$2", integer(1)), ("$2", integer(1))]), "no value for the placeholder $1"),
        ("n = ? OR n = $1", row([("", integer(1))]), "all ? or all"),
        ("n = $0", row([]), "zero"),
        ("n = $1", row([("", two)]), "one row of values, and there are 2"),
        ("host = $1", row([("", text(&long))]), "more than 1048576 bytes"),
        ("n = $1", row([("", text("x"))]), "x"),
    ] {
        let error = counted(&store, condition, &values).await.unwrap_err();
        assert!(matches!(error, Error::Sql { .. }), "{condition}: {error:?}");
        assert!(error.to_string().contains(expected), "{condition}: {error}");
    }
    let error = store.error("SELECT n FROM cpu WHERE n = $1").await;
    assert!(error.to_string().contains("1 placeholders, and 0 values"), "{error}");
    let shown = store.sql("db", "SHOW TABLES", Some(&row([("", integer(1))]))).await;
    assert!(shown.unwrap_err().to_string().contains("0 placeholders, and 1 values"));
}

#[tokio::test]
async fn a_description_tells_columns_and_placeholders() {
    let store = store();
    let types = |schema: &Schema| -> Vec<(String, DataType)> {
        schema.fields().iter().map(|f| (f.name().clone(), f.data_type().clone())).collect()
    };
    let (int, float, null) = (DataType::Int64, DataType::Float64, DataType::Null);
    for (sql, columns, parameters) in [
        ("SELECT n, v FROM cpu", vec![("n", &int), ("v", &float)], vec![]),
        ("SELECT n FROM cpu WHERE v > ? AND n = ?", vec![("n", &int)], vec![("$1", &float), ("$2", &int)]),
        ("SELECT n FROM cpu WHERE v > $speed", vec![("n", &int)], vec![("speed", &float)]),
        ("SELECT $1 AS x", vec![("x", &null)], vec![("$1", &null)]),
    ] {
        let described = store.describe(sql, None).await.unwrap();
        let owned = |list: &[(&str, &DataType)]| -> Vec<(String, DataType)> {
            list.iter().map(|(name, data_type)| ((*name).to_owned(), (*data_type).clone())).collect()
        };
        assert_eq!(types(&described.columns), owned(&columns), "{sql}");
        assert_eq!(types(&described.parameters), owned(&parameters), "{sql}");
    }
    for sql in ["SELECT n, host, count(*) FROM cpu GROUP BY ALL", "SHOW TABLES", "SELECT * FROM cpu", "SELECT 1"] {
        let described = store.describe(sql, None).await;
        let Ok(described) = described else { continue };
        assert_eq!(described.columns, store.sql("db", sql, None).await.unwrap().schema(), "{sql}");
    }
    let bound = store.describe("SELECT $1 AS x", Some(&row([("", integer(7))]))).await.unwrap();
    assert_eq!(types(&bound.columns), [("x".to_owned(), int)]);
    assert!(matches!(store.describe("SELECT x FROM nowhere", None).await, Err(Error::TableNotFound { .. })));
}
