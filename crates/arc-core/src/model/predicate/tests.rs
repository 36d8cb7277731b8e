use std::sync::Arc;

use arrow::{
    array::{
        ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int64Array, RecordBatch, TimestampNanosecondArray,
        UInt64Array,
    },
    datatypes::{DataType, Int32Type},
};
use proptest::prelude::*;

use super::*;
use crate::{
    Error,
    model::{Column, ColumnKind, TIME_COLUMN, TableSchema, tag_type},
};

fn is(column: &str, comparison: Comparison, value: Literal) -> Predicate {
    Predicate::Compare { column: column.into(), comparison, value }
}

fn equal(column: &str, value: &str) -> Predicate {
    is(column, Comparison::Equal, value.into())
}

fn not(predicate: Predicate) -> Predicate {
    Predicate::Not(Box::new(predicate))
}

/// Rows whose value of `b` is true, false and null.
fn three() -> RecordBatch {
    let b: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), Some(false), None]));
    RecordBatch::try_from_iter([("b", b)]).unwrap()
}

fn met(predicate: &Predicate, batch: &RecordBatch) -> String {
    let symbol = |met: Option<bool>| met.map_or('-', |met| if met { 'T' } else { 'F' });
    predicate.evaluate(batch).unwrap().iter().map(symbol).collect()
}

#[test]
fn truth_is_that_of_sql() {
    let b = || is("b", Comparison::Equal, Literal::Boolean(true));
    let (yes, no) = (|| Predicate::True, || not(Predicate::True));
    let absent = || equal("absent", "x");
    let cases = [
        (b(), "TF-"),
        (not(b()), "FT-"),
        (is("b", Comparison::NotEqual, Literal::Boolean(true)), "FT-"),
        (is("b", Comparison::Less, Literal::Boolean(true)), "FT-"),
        (Predicate::And(vec![b(), yes()]), "TF-"),
        (Predicate::And(vec![b(), no()]), "FFF"),
        (Predicate::And(vec![b(), absent()]), "-F-"),
        (Predicate::Or(vec![b(), yes()]), "TTT"),
        (Predicate::Or(vec![b(), no()]), "TF-"),
        (Predicate::Or(vec![b(), absent()]), "T--"),
        (Predicate::And(vec![]), "TTT"),
        (Predicate::Or(vec![]), "FFF"),
        (Predicate::IsNull { column: "b".into() }, "FFT"),
        (not(Predicate::IsNull { column: "b".into() }), "TTF"),
        (Predicate::IsNull { column: "absent".into() }, "TTT"),
        (absent(), "---"),
        (not(absent()), "---"),
        (Predicate::In { column: "b".into(), values: vec![Literal::Boolean(true), Literal::Boolean(false)] }, "TT-"),
        (Predicate::In { column: "b".into(), values: vec![Literal::Boolean(false)] }, "FT-"),
        (Predicate::In { column: "b".into(), values: vec![] }, "FFF"),
    ];
    for (predicate, expected) in cases {
        assert_eq!(met(&predicate, &three()), expected, "{predicate}");
        let left = without(three(), &predicate).unwrap();
        let stay = expected.chars().filter(|met| *met != 'T').count();
        assert_eq!(left.num_rows(), stay, "rows of which nothing can be said stay: {predicate}");
    }
}

#[test]
fn every_type_compares_with_its_own_literals() {
    let tags: DictionaryArray<Int32Type> = [Some("b"), None, Some("a")].into_iter().collect();
    let columns: [(&str, ArrayRef); 5] = [
        ("time", Arc::new(TimestampNanosecondArray::from(vec![1, 2, 3]).with_timezone("UTC"))),
        ("tag", Arc::new(tags)),
        ("i", Arc::new(Int64Array::from(vec![Some(-5), None, Some(7)]))),
        ("u", Arc::new(UInt64Array::from(vec![Some(u64::MAX), None, Some(0)]))),
        ("f", Arc::new(Float64Array::from(vec![Some(-0.0), Some(f64::NAN), None]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    use Comparison::{Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    let cases = [
        (is("time", GreaterOrEqual, Literal::Time(2)), "FTT"),
        (is("time", Less, Literal::Time(1)), "FFF"),
        (equal("tag", "a"), "F-T"),
        (is("tag", NotEqual, "a".into()), "T-F"),
        (is("tag", Greater, "a".into()), "T-F"),
        (Predicate::IsNull { column: "tag".into() }, "FTF"),
        (Predicate::In { column: "tag".into(), values: vec!["a".into(), "b".into()] }, "T-T"),
        (is("i", LessOrEqual, Literal::Integer(-5)), "T-F"),
        (is("u", Greater, Literal::Unsigned(1)), "T-F"),
        // Both zeros are equal, and a NaN is above all.
        (is("f", Less, Literal::Float(0.0)), "FF-"),
        (is("f", Comparison::Equal, Literal::Float(0.0)), "TF-"),
        (is("f", Less, Literal::Integer(0)), "FF-"),
        (is("f", Greater, Literal::Float(f64::INFINITY)), "FT-"),
    ];
    for (predicate, expected) in cases {
        assert_eq!(met(&predicate, &batch), expected, "{predicate}");
    }
}

fn schema(has_primary_key: bool) -> TableSchema {
    let column = |name: &str, kind, data_type| Column { name: name.into(), kind, data_type };
    let columns = vec![
        column("host", ColumnKind::Tag, tag_type()),
        column("x", ColumnKind::Field, DataType::Float64),
        column("n", ColumnKind::Field, DataType::Int64),
        column("u", ColumnKind::Field, DataType::UInt64),
        column("small", ColumnKind::Field, DataType::Int8),
    ];
    TableSchema { database: "d".into(), table: "t".into(), has_primary_key, columns }
}

#[test]
fn values_take_the_types_of_their_columns_or_are_refused() {
    use Comparison::Less;
    let bound = [
        (is(TIME_COLUMN, Less, Literal::Integer(5)), is(TIME_COLUMN, Less, Literal::Time(5))),
        (
            is(TIME_COLUMN, Less, "1970-01-01T00:00:01+01:00".into()),
            is(TIME_COLUMN, Less, Literal::Time(-3_599_000_000_000)),
        ),
        (is(TIME_COLUMN, Less, "1970-01-02".into()), is(TIME_COLUMN, Less, Literal::Time(86_400_000_000_000))),
        (is("x", Less, Literal::Integer(5)), is("x", Less, Literal::Float(5.0))),
        (is("n", Less, Literal::Unsigned(5)), is("n", Less, Literal::Integer(5))),
        (is("u", Less, Literal::Integer(5)), is("u", Less, Literal::Unsigned(5))),
        (Predicate::IsNull { column: "small".into() }, Predicate::IsNull { column: "small".into() }),
    ];
    for (given, expected) in bound {
        assert_eq!(bind(&given, &schema(false)).unwrap(), expected);
    }
    let many = vec![Literal::from("x"); 10_001];
    let deep = (0..70).fold(Predicate::True, |inner, _| not(inner));
    let refused = [
        (equal("nowhere", "x"), "no column \"nowhere\""),
        (Predicate::In { column: "nowhere".into(), values: vec![] }, "no column"),
        (is("host", Less, Literal::Integer(5)), "cannot be compared"),
        (is(TIME_COLUMN, Less, "yesterday".into()), "cannot be compared"),
        (is("n", Less, Literal::Float(5.0)), "cannot be compared"),
        (is("n", Less, Literal::Unsigned(u64::MAX)), "cannot be compared"),
        (is("u", Less, Literal::Integer(-1)), "cannot be compared"),
        (is("x", Less, Literal::Integer((1 << 53) + 1)), "without loss"),
        (is("small", Less, Literal::Integer(1)), "cannot be compared"),
        (Predicate::In { column: "host".into(), values: many }, "10000"),
        (deep, "64 levels"),
    ];
    for (given, expected) in refused {
        let error = bind(&given, &schema(false)).unwrap_err();
        assert!(matches!(&error, Error::Predicate { reason } if reason.contains(expected)), "{error}");
    }
    let on_primary_key = Predicate::And(vec![equal("host", "a"), is(TIME_COLUMN, Less, Literal::Integer(5))]);
    assert!(bind(&on_primary_key, &schema(true)).is_ok());
    let error = bind(&is("x", Less, Literal::Integer(5)), &schema(true)).unwrap_err().to_string();
    assert!(error.contains("identified by tags and time"), "{error}");
}

#[test]
fn text_is_sql() {
    let cases = [
        (equal("a\"b", "it's"), "\"a\"\"b\" = 'it''s'"),
        (not(equal("a", "b")), "NOT (\"a\" = 'b')"),
        (not(Predicate::IsNull { column: "a".into() }), "\"a\" IS NOT NULL"),
        (
            Predicate::And(vec![Predicate::Or(vec![Predicate::True, equal("a", "b")]), not(Predicate::True)]),
            "(TRUE OR \"a\" = 'b') AND NOT (TRUE)",
        ),
        (
            Predicate::In { column: "x".into(), values: vec![Literal::Float(1.0), Literal::Integer(-2)] },
            "\"x\" IN (1.0, -2)",
        ),
    ];
    for (predicate, expected) in cases {
        assert_eq!(predicate.to_string(), expected);
    }
}

fn predicates() -> impl Strategy<Value = Predicate> {
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    let column = prop::sample::select(vec!["n", "f", "tag", "absent"]);
    let literal = (column, 0..5i64).prop_map(|(column, value)| {
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let value = match column {
            "n" => Literal::Integer(value),
            "f" => Literal::Float(value as f64),
            _ => Literal::Text(value.to_string()),
        };
        (column.to_owned(), value)
    });
    let comparison = prop::sample::select(vec![Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual]);
    let leaf = prop_oneof![
        1 => Just(Predicate::True),
        6 => (literal.clone(), comparison)
            .prop_map(|((column, value), comparison)| Predicate::Compare { column, comparison, value }),
        2 => prop::collection::vec(literal.clone(), 0..3).prop_map(|values| {
            let column = values.first().map_or_else(|| "n".to_owned(), |(column, _)| column.clone());
            let values = values.into_iter().filter(|(of, _)| *of == column).map(|(_, value)| value).collect();
            Predicate::In { column, values }
        }),
        1 => literal.prop_map(|(column, _)| Predicate::IsNull { column }),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(not),
            prop::collection::vec(inner.clone(), 0..3).prop_map(Predicate::And),
            prop::collection::vec(inner, 0..3).prop_map(Predicate::Or),
        ]
    })
}

type Row = (Option<i64>, Option<i64>, Option<i64>);

fn batch(rows: &[Row]) -> RecordBatch {
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let floats: Float64Array = rows.iter().map(|row| row.1.map(|value| value as f64)).collect();
    let texts: Vec<Option<String>> = rows.iter().map(|row| row.2.map(|value| value.to_string())).collect();
    let tags: DictionaryArray<Int32Type> = texts.iter().map(Option::as_deref).collect();
    let columns: [(&str, ArrayRef); 3] = [
        ("n", Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>())),
        ("f", Arc::new(floats)),
        ("tag", Arc::new(tags)),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn known(rows: &[Row], column: &str) -> KnownValues {
    let values: Vec<Option<i64>> = match column {
        "n" => rows.iter().map(|row| row.0).collect(),
        "f" => rows.iter().map(|row| row.1).collect(),
        "tag" => rows.iter().map(|row| row.2).collect(),
        _ => vec![None; rows.len()],
    };
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let literal = |value: &i64| match column {
        "n" => Literal::Integer(*value),
        "f" => Literal::Float(*value as f64),
        _ => Literal::Text(value.to_string()),
    };
    let set = || values.iter().flatten();
    KnownValues {
        min: set().min().map(literal),
        max: set().max().map(literal),
        no_nulls: values.iter().all(Option::is_some),
        all_null: values.iter().all(Option::is_none),
    }
}

proptest! {
    #[test]
    fn what_bounds_exclude_does_not_happen(
        predicate in predicates(),
        rows in prop::collection::vec((prop::option::of(0..5i64), prop::option::of(0..5i64), prop::option::of(0..5i64)), 1..5),
    ) {
        let evaluated = predicate.evaluate(&batch(&rows)).unwrap();
        let outcomes = predicate.outcomes(&|column| known(&rows, column));
        for met in evaluated.iter() {
            let possible = match met {
                Some(true) => outcomes.met,
                Some(false) => outcomes.unmet,
                None => outcomes.null,
            };
            prop_assert!(possible, "{} came to {:?}, bounds say {:?}", predicate, met, outcomes);
        }
        let bytes = rmp_serde::to_vec_named(&predicate).unwrap();
        prop_assert_eq!(rmp_serde::from_slice::<Predicate>(&bytes).unwrap(), predicate);
    }
}

#[test]
fn times_that_no_point_can_have_are_before_or_after_all() {
    let schema = TableSchema { database: "d".into(), table: "m".into(), has_primary_key: true, columns: Vec::new() };
    let (yes, no) = (Predicate::True, not(Predicate::True));
    let bound = |comparison, text: &str| bind(&is(TIME_COLUMN, comparison, text.into()), &schema).unwrap();
    for (text, smaller, larger) in [
        ("9999-12-31T23:59:59Z", &yes, &no),
        ("2262-04-11T23:47:16.854775808Z", &yes, &no),
        ("0001-01-01", &no, &yes),
        ("1677-09-21", &no, &yes),
    ] {
        for (comparison, expected) in [
            (Comparison::Less, smaller),
            (Comparison::LessOrEqual, smaller),
            (Comparison::Greater, larger),
            (Comparison::GreaterOrEqual, larger),
            (Comparison::Equal, &no),
            (Comparison::NotEqual, &yes),
        ] {
            assert_eq!(bound(comparison, text), *expected, "{comparison:?} {text}");
        }
    }
    let some = Predicate::In { column: TIME_COLUMN.into(), values: vec!["9999-01-01".into(), "1970-01-01".into()] };
    let only = Predicate::In { column: TIME_COLUMN.into(), values: vec![Literal::Time(0)] };
    assert_eq!(bind(&some, &schema).unwrap(), only);
    let error = bind(&is(TIME_COLUMN, Comparison::Less, "no time".into()), &schema).unwrap_err();
    assert!(error.to_string().contains("without loss"), "{error}");
}
