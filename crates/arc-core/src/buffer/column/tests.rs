use arrow::array::StringArray;

use super::*;

#[test]
fn nulls_values_and_popped_values_come_out_in_order() {
    let mut column = ColumnValues::new(&DataType::Utf8);
    column.push(Scalar::Text("a")).unwrap();
    column.push_nulls(2);
    column.push(Scalar::Text("gone")).unwrap();
    column.pop();
    column.push(Scalar::Text("bc")).unwrap();
    let expected: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, None, Some("bc")]));
    assert_eq!(&column.to_array().unwrap(), &expected);
    assert_eq!(&column.into_array().unwrap(), &expected);
}

#[test]
fn an_integer_for_a_float_column_is_converted_and_text_is_refused() {
    let mut column = ColumnValues::new(&DataType::Float64);
    column.push(Scalar::Integer(3)).unwrap();
    assert!(column.push(Scalar::Text("x")).is_err());
    assert_eq!(column.len(), 1);
}

#[test]
fn the_memory_of_an_array_is_used_again_unless_somebody_else_has_it() {
    for (value, is_taken) in [
        (Scalar::Float(1.5), true),
        (Scalar::Integer(-1), true),
        (Scalar::Unsigned(7), true),
        (Scalar::Text("text"), true),
        (Scalar::Boolean(true), false),
    ] {
        let column = || {
            let mut column = ColumnValues::with_capacity(&value.data_type(), 100);
            column.push_nulls(1);
            column.push(value).unwrap();
            column.into_array().unwrap()
        };
        let array = column();
        let held = Arc::clone(&array);
        assert!(ColumnValues::emptied(array).is_none(), "{value:?}");
        drop(held);
        let emptied = ColumnValues::emptied(column());
        assert_eq!(emptied.is_some(), is_taken, "{value:?}");
        let Some(mut emptied) = emptied else { continue };
        emptied.push(value).unwrap();
        assert_eq!((emptied.data_type(), emptied.len()), (value.data_type(), 1));
        let array = emptied.into_array().unwrap();
        assert_eq!((array.len(), array.null_count()), (1, 0));
    }
}

#[test]
fn append_keeps_values_and_validity_for_every_type() {
    let cases: Vec<(DataType, Scalar<'_>)> = vec![
        (DataType::Float64, Scalar::Float(1.5)),
        (DataType::Int64, Scalar::Integer(-1)),
        (DataType::UInt64, Scalar::Unsigned(7)),
        (DataType::Boolean, Scalar::Boolean(true)),
        (DataType::Utf8, Scalar::Text("t")),
    ];
    for (data_type, value) in cases {
        let mut one = ColumnValues::new(&data_type);
        one.push(value).unwrap();
        let mut two = ColumnValues::new(&data_type);
        two.push_nulls(1);
        two.push(value).unwrap();
        one.append(&two).unwrap();
        // The third row is after the column's last one, the fourth in a column without any.
        one.append_rows(&two, &[1, 0, 2]).unwrap();
        one.append_rows(&ColumnValues::new(&data_type), &[0]).unwrap();
        let array = one.into_array().unwrap();
        let nulls: Vec<bool> = (0..array.len()).map(|i| array.is_null(i)).collect();
        assert_eq!(nulls, [false, true, false, false, true, true, true], "{data_type}");
    }
}
