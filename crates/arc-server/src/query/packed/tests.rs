use std::sync::Arc;

use arrow::{
    array::{
        ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, DurationSecondArray,
        Float64Array, Int8Array, Int64Array, ListArray, NullArray, StringArray, TimestampMillisecondArray,
        TimestampNanosecondArray, UInt64Array,
    },
    datatypes::Int32Type,
};

use super::*;

fn written(array: &dyn Array, row: usize) -> Vec<u8> {
    let mut out = Vec::new();
    cell(array).unwrap()(row, &mut out);
    out
}

#[test]
fn each_type_has_its_form() {
    let decimals = |scale| Decimal128Array::from(vec![-5]).with_precision_and_scale(38, scale).unwrap();
    let cases: Vec<(ArrayRef, Vec<u8>)> = vec![
        (Arc::new(Int64Array::from(vec![1])), vec![0xd3, 0, 0, 0, 0, 0, 0, 0, 1]),
        (Arc::new(Int64Array::from(vec![None])), vec![0xc0]),
        (Arc::new(Int8Array::from(vec![-1])), vec![0xd0, 0xff]),
        (Arc::new(UInt64Array::from(vec![u64::MAX])), vec![0xcf, 255, 255, 255, 255, 255, 255, 255, 255]),
        (Arc::new(Float64Array::from(vec![1.0])), vec![0xcb, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0]),
        (Arc::new(BooleanArray::from(vec![true])), vec![0xc3]),
        (Arc::new(NullArray::new(1)), vec![0xc0]),
        (Arc::new(StringArray::from(vec!["ä"])), vec![0xa2, 0xc3, 0xa4]),
        (Arc::new(BinaryArray::from(vec![&b"\xff\x00"[..]])), vec![0xc4, 2, 0xff, 0]),
        (Arc::new(Date32Array::from(vec![1])), vec![0xd6, 0xff, 0, 1, 0x51, 0x80]),
        (Arc::new(TimestampMillisecondArray::from(vec![1_000])), vec![0xd6, 0xff, 0, 0, 0, 1]),
        (Arc::new(TimestampNanosecondArray::from(vec![1])), vec![0xd7, 0xff, 0, 0, 0, 4, 0, 0, 0, 0]),
        (Arc::new(TimestampNanosecondArray::from(vec![-1])), {
            vec![0xc7, 12, 0xff, 0x3b, 0x9a, 0xc9, 0xff, 255, 255, 255, 255, 255, 255, 255, 255]
        }),
        (Arc::new(decimals(0)), vec![0xd3, 255, 255, 255, 255, 255, 255, 255, 251]),
        (Arc::new(decimals(1)), vec![0xcb, 0xbf, 0xe0, 0, 0, 0, 0, 0, 0]),
        (Arc::new(DurationSecondArray::from(vec![10])), b"\xa5PT10S".to_vec()),
    ];
    for (array, expected) in cases {
        assert_eq!(written(&array, 0), expected, "{}", array.data_type());
    }
    let list = ListArray::from_iter_primitive::<Int64Type, _, _>(vec![Some(vec![Some(1), None])]);
    assert_eq!(written(&list, 0), b"\xa8[1,null]");
    let hosts: DictionaryArray<Int32Type> = vec![Some("a"), None].into_iter().collect();
    assert_eq!((written(&hosts, 0), written(&hosts, 1)), (b"\xa1a".to_vec(), vec![0xc0]));
}

#[test]
fn lengths_take_as_many_bytes_as_they_need() {
    for (length, head) in [
        (31, vec![0xbf]),
        (32, vec![0xd9, 32]),
        (255, vec![0xd9, 255]),
        (256, vec![0xda, 1, 0]),
        (65_536, vec![0xdb, 0, 1, 0, 0]),
    ] {
        let long = "x".repeat(length);
        let out = written(&StringArray::from(vec![long.as_str()]), 0);
        assert_eq!(out, [head, long.into_bytes()].concat(), "{length}");
    }
    for (length, head) in [(15, vec![0x9f]), (16, vec![0xdc, 0, 16]), (65_536, vec![0xdd, 0, 1, 0, 0])] {
        let mut out = Vec::new();
        array(&mut out, length);
        assert_eq!(out, head);
    }
    for (length, head) in [(255, vec![0xc4, 255]), (256, vec![0xc5, 1, 0]), (65_536, vec![0xc6, 0, 1, 0, 0])] {
        let bytes = vec![7; length];
        assert!(written(&BinaryArray::from(vec![bytes.as_slice()]), 0).starts_with(&head));
    }
}

#[test]
fn the_largest_decimals_are_floats() {
    let array = Decimal128Array::from(vec![i128::from(i64::MAX) + 1]).with_precision_and_scale(38, 0).unwrap();
    assert_eq!(written(&array, 0), [vec![0xcb], 9_223_372_036_854_775_807_f64.to_be_bytes().to_vec()].concat());
}
