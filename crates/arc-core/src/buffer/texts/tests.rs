//! Columns of texts against vectors of texts, whichever form they have.

use arrow::{array::DictionaryArray, compute::cast, datatypes::DataType, datatypes::UInt8Type};
use proptest::prelude::*;

use super::*;
use crate::buffer::{ColumnValues, Scalar};

type Values = Vec<Option<String>>;

#[derive(Debug, Clone)]
enum Step {
    Push(String),
    Nulls(usize),
    Pop,
    /// As one row, as a column that was made for so many, as an array that is encoded or not.
    Rows(Values),
    Column(Values),
    Array(Values, bool),
    Chosen(Values, Vec<u32>),
}

/// Texts that repeat, that hardly do, and that are too long for a dictionary.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        20 => prop::sample::select(vec!["", "a", "b", "host_17", "ü", "long enough for more than two words"])
            .prop_map(str::to_owned),
        6 => (0..2000).prop_map(|n| format!("text {n}")),
        1 => (120..140_usize).prop_map(|n| "x".repeat(n)),
    ]
}

fn any_values(most: usize) -> impl Strategy<Value = Values> {
    let repeating = prop::collection::vec(prop::option::weighted(0.9, any_text()), 1..most);
    let distinct = (0..1000_u32, 1..most)
        .prop_map(|(from, count)| (0..count).map(|n| Some(format!("no. {from} {n}"))).collect::<Values>());
    prop_oneof![4 => repeating, 1 => distinct]
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        any_text().prop_map(Step::Push),
        (1..5_usize).prop_map(Step::Nulls),
        Just(Step::Pop),
        any_values(5).prop_map(Step::Rows),
        any_values(400).prop_map(Step::Column),
        (any_values(300), any::<bool>()).prop_map(|(values, encoded)| Step::Array(values, encoded)),
        (any_values(100), prop::collection::vec(0..120_u32, 0..20))
            .prop_map(|(values, rows)| Step::Chosen(values, rows)),
    ]
}

fn column(mut column: ColumnValues, values: &[Option<String>]) -> ColumnValues {
    for value in values {
        match value {
            Some(text) => column.push(Scalar::Text(text)).unwrap(),
            None => column.push_nulls(1),
        }
    }
    column
}

fn of_form(values: &[Option<String>], rows: usize) -> ColumnValues {
    column(ColumnValues::from_texts(TextColumn::for_rows(rows, 0)), values)
}

fn plain(array: &ArrayRef) -> ArrayRef {
    assert!(*array.data_type() == DataType::Utf8 || is_dictionary(array.data_type()));
    cast(array, &DataType::Utf8).unwrap()
}

fn apply(step: Step, column: &mut ColumnValues, expected: &mut Values) {
    match step {
        Step::Push(text) => {
            column.push(Scalar::Bytes(text.as_bytes())).unwrap();
            expected.push(Some(text));
        }
        Step::Nulls(count) => {
            column.push_nulls(count);
            expected.extend(vec![None; count]);
        }
        Step::Pop => {
            column.pop();
            expected.pop();
        }
        Step::Rows(values) => {
            column.append(&of_form(&values, 1)).unwrap();
            expected.extend(values);
        }
        Step::Column(values) => {
            column.append(&of_form(&values, MANY_ROWS)).unwrap();
            column.reconsider();
            expected.extend(values);
        }
        Step::Array(values, encoded) => {
            let array: ArrayRef = if encoded && values.len() < 100 {
                Arc::new(values.iter().map(Option::as_deref).collect::<DictionaryArray<UInt8Type>>())
            } else {
                Arc::new(values.iter().map(Option::as_deref).collect::<StringArray>())
            };
            column.append_array(&array).unwrap();
            expected.extend(values);
        }
        Step::Chosen(values, rows) => {
            column.append_rows(&of_form(&values, MANY_ROWS), &rows).unwrap();
            expected.extend(rows.iter().map(|row| values.get(*row as usize).cloned().flatten()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn whatever_their_form_texts_are_those_that_came(
        steps in prop::collection::vec(any_step(), 1..40),
        rows in prop::sample::select(vec![1, MANY_ROWS]),
    ) {
        let (mut column, mut expected) = (of_form(&[], rows), Values::new());
        for step in steps {
            apply(step, &mut column, &mut expected);
            prop_assert_eq!(column.len(), expected.len());
        }
        let expected: ArrayRef = Arc::new(expected.iter().map(Option::as_deref).collect::<StringArray>());
        prop_assert_eq!(&plain(&column.to_array().unwrap()), &expected);
        prop_assert_eq!(&plain(&column.into_array().unwrap()), &expected);
    }
}

/// Appends requests of so many rows, of which row n has the text `text(n)`; returns whether they
/// are encoded in the end.
fn become_dictionary(rows: usize, requests: usize, text: impl Fn(usize) -> String) -> bool {
    let mut all = ColumnValues::new(&DataType::Utf8);
    let texts: Values = (0..rows * requests).map(|row| Some(text(row))).collect();
    for texts in texts.chunks(rows) {
        all.append(&of_form(texts, rows)).unwrap();
        all.reconsider();
    }
    let is_less = all.bytes() < (0..rows * requests).map(|row| text(row).len() + 4).sum();
    let array = all.into_array().unwrap();
    assert_eq!(plain(&array).as_string::<i32>(), &texts.iter().map(Option::as_deref).collect::<StringArray>());
    assert_eq!(is_dictionary(array.data_type()), is_less, "what is held is counted");
    is_less
}

#[test]
fn texts_become_a_dictionary_where_they_repeat() {
    for rows in [1, 10, 1000] {
        let requests = 10_000 / rows;
        assert!(become_dictionary(rows, requests, |row| format!("host_{}", row % 7)), "few, {rows}");
        assert!(become_dictionary(rows, requests, |row| format!("host_{}", row % 1000)), "many in turn, {rows}");
        assert!(!become_dictionary(rows, requests, |row| format!("request {row}")), "distinct, {rows}");
        assert!(!become_dictionary(rows, requests, |row| format!("{:0200}", row % 7)), "long, {rows}");
        assert!(
            become_dictionary(rows, requests, |row| format!("v{}", row.saturating_sub(800))) == (rows == 0),
            "at first"
        );
        assert!(become_dictionary(rows, requests, |row| format!("v{}", row.min(200))), "later, {rows}");
    }
}

#[test]
fn there_are_no_more_codes_than_two_bytes_tell_apart() {
    let texts = |from: u32| Values::from_iter((0..40_000).map(|n| Some(format!("{}", from + n))));
    let mut all = ColumnValues::new(&DataType::Utf8);
    let mut expected = Values::new();
    for from in [0, 0, 0, 0, 30_000, 60_000] {
        all.append(&of_form(&texts(from), 1)).unwrap();
        all.reconsider();
        expected.extend(texts(from));
    }
    let expected: ArrayRef = Arc::new(expected.iter().map(Option::as_deref).collect::<StringArray>());
    assert_eq!(&plain(&all.into_array().unwrap()), &expected);
}
