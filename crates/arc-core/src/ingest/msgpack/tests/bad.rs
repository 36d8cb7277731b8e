//! Payloads that are not MessagePack, and items that cannot be stored.

use super::*;
use crate::Error;

/// One payload of each form.
fn forms() -> Vec<V> {
    let columns = columnar(
        "c",
        vec![
            ("time", A(vec![I(1_700_000_000_000), I(1_700_000_000_001)])),
            ("host", A(vec![T("a"), N])),
            ("v", A(vec![F(1.5), F(2.5)])),
            ("n", A(vec![I(1), I(70_000)])),
        ],
    );
    let row = M(vec![
        ("m", T("c")),
        ("t", V::Ext(-1, vec![0, 0, 0, 1])),
        ("h", T("a")),
        ("tags", M(vec![("zone", T("z")), ("rack", I(300))])),
        ("fields", M(vec![("v", V::Float32(1.0)), ("b", B(true)), ("u", V::Uint(u64::MAX))])),
    ]);
    let numbered = M(vec![("m", I(1)), ("f", A(vec![I(-1), T("x")]))]);
    let batch = M(vec![("batch", A(vec![columns.clone(), row.clone()]))]);
    vec![columns.clone(), row.clone(), numbered, batch, A(vec![row, columns])]
}

fn payload_reason(body: &[u8]) -> String {
    match Given::nothing().decode_bytes(body) {
        Err(Error::InvalidPayload { format: "MessagePack", reason }) => reason,
        other => panic!("{body:02x?}: {other:?}"),
    }
}

#[test]
fn a_payload_cut_anywhere_is_refused_as_a_whole() {
    for form in forms() {
        let body = form.pack();
        assert_eq!(Given::nothing().decode(&form).rejections.first, [], "{form:?}");
        for end in 0..body.len() {
            let reason = payload_reason(&body[..end]);
            assert!(reason.starts_with("at byte "), "{reason}");
        }
        let longer = [&body[..], &[0xc0]].concat();
        let expected = format!("at byte {}: the payload ends, expected no more bytes", body.len());
        assert_eq!(payload_reason(&longer), expected);
    }
}

#[test]
fn a_broken_payload_is_refused_with_the_place() {
    let deep = [&[0x91; 10_000][..], &[0xc0]].concat();
    let deep_value = columnar("c", vec![("v", A(vec![V::Raw(deep.clone())]))]).pack();
    let deep_maps = [&b"\x81\xa1m".repeat(10_000)[..], b"\xc0"].concat();
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (vec![], "at byte 0: the body is empty"),
        (vec![0xc1], "at byte 0: the byte 0xc1 begins no value"),
        (vec![0xc0], "at byte 0: expected a map or an array of maps"),
        (b"\xa5hello".to_vec(), "at byte 0: expected a map or an array of maps"),
        (b"cpu,host=a v=1".to_vec(), "at byte 0: expected a map or an array of maps"),
        (vec![0x90], "at byte 0: the batch is empty"),
        (M(vec![("batch", A(vec![]))]).pack(), "at byte 0: the batch is empty"),
        (M(vec![("batch", I(1))]).pack(), "at byte 0: \"batch\" is not an array"),
        (vec![0xdd, 0xff, 0xff, 0xff, 0xff], "at byte 0: an array or map has more elements"),
        (vec![0xdf, 0xff, 0xff, 0xff, 0xff, 0xa1], "at byte 0: an array or map has more elements"),
        (b"\x81\xa1m\xdb\xff\xff\xff\xff".to_vec(), "at byte 3: the body ends within a value"),
        (b"\x81\xa1m\xc6\xff\xff\xff\xffx".to_vec(), "at byte 3: the body ends within a value"),
        (b"\x81\xa1m\xc9\xff\xff\xff\xff".to_vec(), "at byte 3: the body ends within a value"),
        (
            b"\x82\xa1m\xa1c\xa7columns\x81\xa1v\xdd\xff\xff\xff\xff\x01".to_vec(),
            "at byte 16: an array or map has more",
        ),
        (b"\x82\xa1m\xa1c\xa7columns\x81\xa1v\x92\x01\xc1".to_vec(), "at byte 18: the byte 0xc1 begins no value"),
        (deep, "at byte 65: arrays and maps are nested deeper than 64 levels"),
        (deep_value, "nested deeper than 64 levels"),
        (deep_maps, "nested deeper than 64 levels"),
    ];
    for (body, expected) in cases {
        let got = payload_reason(&body);
        assert!(got.contains(expected), "{:02x?}: {got}", &body[..body.len().min(20)]);
    }
}

#[test]
fn a_bad_columnar_map_is_refused_with_its_reason() {
    let one = || ("v", A(vec![I(1)]));
    let time = |value: V| columnar("c", vec![("time", A(vec![I(1), value])), ("v", A(vec![I(1), I(2)]))]);
    let value = |value: V| columnar("c", vec![("v", A(vec![I(1), value]))]);
    let cases: Vec<(V, &str)> = vec![
        (M(vec![]), "\"m\" is missing"),
        (M(vec![("m", T("c"))]), "there are no \"columns\""),
        (M(vec![("columns", M(vec![one()]))]), "\"m\" is missing"),
        (columnar("", vec![one()]), "invalid measurement name \"\": it is empty"),
        (columnar("c", vec![]), "\"columns\" is empty"),
        (M(vec![("m", T("c")), ("columns", N)]), "\"columns\" is nil, expected a map"),
        (M(vec![("m", T("c")), ("columns", A(vec![]))]), "\"columns\" is an array, expected a map"),
        (M(vec![("m", T("c")), ("columns", M(vec![one()])), ("t", I(1))]), "has no \"t\", \"h\", \"tags\""),
        (M(vec![("m", T("c")), ("columns", M(vec![one()])), ("tags", M(vec![]))]), "has no \"t\", \"h\", \"tags\""),
        (M(vec![("m", T("c")), ("columns", M(vec![one()])), ("batch", A(vec![]))]), "unknown key \"batch\""),
        (columnar("c", vec![("v", A(vec![]))]), "column \"v\" is empty, expected at least one row"),
        (columnar("c", vec![("v", I(1))]), "column \"v\" is an integer, expected an array"),
        (columnar("c", vec![one(), ("w", N)]), "column \"w\" is nil, expected an array"),
        (columnar("c", vec![one(), ("w", M(vec![]))]), "column \"w\" is a map, expected an array"),
        (columnar("c", vec![one(), ("w", A(vec![I(1), I(2)]))]), "column \"w\" has 2 values, column \"v\" has 1"),
        (columnar("c", vec![one(), ("w", A(vec![]))]), "column \"w\" has 0 values, column \"v\" has 1"),
        (columnar("c", vec![one(), one()]), "column \"v\" comes twice"),
        (columnar("c", vec![("time", A(vec![I(1)])), one(), ("time", A(vec![I(1)]))]), "column \"time\" comes twice"),
        (columnar("c", vec![("", A(vec![I(1)]))]), "invalid column name \"\": it is empty"),
        (columnar("c", vec![("a\nb", A(vec![I(1)]))]), "it has a control character"),
        (columnar("c", vec![("time", A(vec![I(1)]))]), "no column but the time has a value"),
        (columnar("c", vec![("time", A(vec![I(1)])), ("v", A(vec![N]))]), "no column but the time has a value"),
        (columnar("c", vec![("time", I(1)), one()]), "column \"time\" is an integer, expected an array"),
        (time(N), "column \"time\", row 2: the time is nil"),
        (time(T("now")), "column \"time\", row 2: the time is a string"),
        (time(B(true)), "column \"time\", row 2: the time is a boolean"),
        (time(V::Bin), "column \"time\", row 2: the time is binary"),
        (time(A(vec![])), "column \"time\", row 2: the time is an array"),
        (time(M(vec![])), "column \"time\", row 2: the time is a map"),
        (time(V::Ext(5, vec![0; 4])), "column \"time\", row 2: the time is an extension"),
        (time(V::Ext(-1, vec![0; 5])), "column \"time\", row 2: the time is a timestamp of 5 bytes"),
        (time(F(f64::NAN)), "column \"time\", row 2: time NaN"),
        (time(F(f64::INFINITY)), "column \"time\", row 2: time inf"),
        (time(V::Uint(u64::MAX)), "column \"time\", row 2: the time is 18446744073709551615, which is outside"),
        (time(I(i64::MAX)), "column \"time\", row 2: timestamp 9223372036854775807"),
        (time(I(i64::MIN)), "column \"time\", row 2: timestamp -9223372036854775808"),
        (value(V::Bin), "column \"v\", row 2: the value is binary"),
        (value(A(vec![I(1)])), "column \"v\", row 2: the value is an array"),
        (value(M(vec![("k", I(1))])), "column \"v\", row 2: the value is a map"),
        (value(V::Ext(1, vec![0])), "column \"v\", row 2: the value is an extension"),
        (value(V::Ext(-1, vec![0; 4])), "column \"v\", row 2: the value is a timestamp"),
        (value(B(true)), "column \"v\", row 2: the column mixes booleans and numbers"),
        (
            value(V::Raw(b"\xa2a\xff".to_vec())),
            "column \"v\", row 2: the value is a string that is not UTF-8 from its byte 1",
        ),
        (
            columnar("c", vec![("v", A(vec![V::Uint(u64::MAX), N, I(-1)]))]),
            "column \"v\", row 3: the column mixes negative integers and integers above 2^63-1",
        ),
        // Each half of the character is in another value.
        (
            columnar("c", vec![("v", A(vec![V::Raw(b"\xa1\xc3".to_vec()), V::Raw(b"\xa1\xbc".to_vec())]))]),
            "column \"v\", row 1: the value is a string that is not UTF-8",
        ),
    ];
    for (sent, expected) in cases {
        let got = Given::nothing().reason(&sent);
        assert!(got.contains(expected), "{sent:?}: {got}");
    }
}

#[test]
fn a_key_that_is_no_text_is_refused() {
    let cases: Vec<(&[u8], &str)> = vec![
        (b"\x81\x01\x02", "a key of the map is an integer, expected a string"),
        (b"\x81\xa1\xff\x02", "a key of the map is a string that is not UTF-8"),
        (b"\x81\x91\x01\x02", "a key of the map is an array, expected a string"),
        (b"\x82\xa1m\xa1c\xa7columns\x81\x01\x91\x01", "a column name is an integer"),
        (b"\x82\xa1m\xa1c\xa6fields\x81\xc0\x01", "a field name is nil"),
    ];
    for (body, expected) in cases {
        let staged = Given::nothing().decode_bytes(body).unwrap();
        assert_eq!(staged.rejections.numbers, [1]);
        let got = &staged.rejections.first[0].reason;
        assert!(got.contains(expected), "{body:02x?}: {got}");
    }
}

#[test]
fn a_map_with_too_many_names_is_refused() {
    let names: Vec<&'static str> = (0..4_097).map(|k| &*format!("n{k}").leak()).collect();
    let pairs = |value: V| M(names.iter().map(|name| (*name, value.clone())).collect());
    let cases = [
        M(vec![("m", T("c")), ("columns", pairs(A(vec![I(1)])))]),
        M(vec![("m", T("c")), ("fields", pairs(I(1)))]),
        M(vec![("m", T("c")), ("f", A(vec![I(1); 4_097]))]),
        M(vec![("m", T("c")), ("fields", M(vec![("v", I(1))])), ("tags", pairs(T("x")))]),
    ];
    for sent in cases {
        let got = Given::nothing().reason(&sent);
        assert!(got.contains("there are 4097") && got.ends_with("expected at most 4096"), "{got}");
    }
}

#[test]
fn the_good_items_beside_bad_ones_are_stored_also_in_replay() {
    let good = |v: i64| columnar("c", vec![("v", A(vec![I(v)]))]);
    let conflict = columnar("c", vec![("new", A(vec![I(1)])), ("v", A(vec![T("x")]))]);
    let unequal = columnar("e", vec![("a", A(vec![I(1)])), ("b", A(vec![]))]);
    let sent = A(vec![unequal, good(1), conflict, T("x"), good(2)]);
    let mut given = Given::nothing();
    let staged = given.decode(&sent);
    let first: Vec<(u64, u64)> = staged.rejections.first.iter().map(|r| (r.line, r.column)).collect();
    assert_eq!(first, [(1, 0), (3, 0), (4, 0)]);
    let reason = &staged.rejections.first[1].reason;
    assert!(reason.starts_with("field type conflict: input field \"v\" on measurement \"c\""), "{reason}");
    given.register(&staged);
    given.skip = staged.rejections.numbers.clone();
    let live = rows(staged);
    assert_eq!(live, ["c 1000 v=1", "c 1001 v=2"]);
    assert_eq!(given.rows(&sent), live);
}
