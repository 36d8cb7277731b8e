//! Row maps.

use super::*;

fn row(pairs: Vec<(&'static str, V)>) -> V {
    M([vec![("m", T("c"))], pairs].concat())
}

fn fields(pairs: Vec<(&'static str, V)>) -> (&'static str, V) {
    ("fields", M(pairs))
}

fn one() -> (&'static str, V) {
    fields(vec![("v", I(1))])
}

#[test]
fn a_row_is_a_point_with_tags_and_fields() {
    let tags = |pairs| ("tags", M(pairs));
    let cases: Vec<(V, &str)> = vec![
        (row(vec![one(), tags(vec![("host", T("a"))])]), "c 1000 host=[a] v=1"),
        (row(vec![one()]), "c 1000 v=1"),
        (row(vec![one(), ("h", N), ("t", N), ("tags", N)]), "c 1000 v=1"),
        (row(vec![one(), ("h", T(""))]), "c 1000 v=1"),
        (row(vec![("h", T("b")), one()]), "c 1000 host=[b] v=1"),
        (row(vec![("h", I(5)), one()]), "c 1000 host=[host_5] v=1"),
        (row(vec![("h", T("b")), one(), tags(vec![("host", T("a"))])]), "c 1000 host=[a] v=1"),
        (row(vec![("h", T("b")), one(), tags(vec![("host", T(""))])]), "c 1000 host=[b] v=1"),
        (row(vec![("h", T("b")), one(), tags(vec![("zone", T("z"))])]), "c 1000 zone=[z] host=[b] v=1"),
        (
            row(vec![one(), tags(vec![("n", I(-3)), ("x", F(0.5)), ("b", B(true))])]),
            "c 1000 n=[-3] x=[0.5] b=[true] v=1",
        ),
        (row(vec![one(), tags(vec![("n", N), ("e", T(""))])]), "c 1000 v=1"),
        (row(vec![("f", A(vec![I(1), N, T("x")]))]), "c 1000 field_0=1 field_2=\"x\""),
        (row(vec![fields(vec![("v", I(1)), ("n", N)])]), "c 1000 v=1"),
        (row(vec![fields(vec![("v", I(1)), ("v", I(2))])]), "c 1000 v=2"),
        (row(vec![fields(vec![("_v", F(f64::NAN))])]), "c 1000 _v=NaN"),
        (row(vec![fields(vec![("v", V::Uint(u64::MAX))])]), "c 1000 v=18446744073709551615u"),
        (row(vec![("t", I(1_700_000_000)), one()]), "c 1700000000000000000 v=1"),
        (row(vec![("t", I(-1)), one()]), "c -1000000000 v=1"),
        (row(vec![("t", F(1.5)), one()]), "c 1500000000 v=1"),
        (row(vec![("t", V::Ext(-1, vec![0, 0, 0, 2])), one()]), "c 2000000000 v=1"),
        (M(vec![("m", I(3)), one()]), "measurement_3 1000 v=1"),
    ];
    for (sent, expected) in cases {
        assert_eq!(Given::nothing().rows(&sent), [expected], "{sent:?}");
    }
}

#[test]
fn a_bad_row_is_refused_with_its_reason() {
    let tags = |pairs| ("tags", M(pairs));
    let cases: Vec<(V, &str)> = vec![
        (M(vec![one()]), "\"m\" is missing"),
        (M(vec![("m", N), one()]), "\"m\" is missing"),
        (M(vec![("m", T("")), one()]), "invalid measurement name \"\": it is empty"),
        (M(vec![("m", F(1.0)), one()]), "\"m\" is a float, expected a string or an integer"),
        (M(vec![("m", T("c\0")), one()]), "control character"),
        (row(vec![]), "expected one of them"),
        (row(vec![fields(vec![("v", F(1.5)), ("v", I(1))])]), "field \"v\" comes twice, as float and as integer"),
        (row(vec![fields(vec![])]), "no field has a value"),
        (row(vec![fields(vec![("v", N)])]), "no field has a value"),
        (row(vec![("fields", A(vec![]))]), "\"fields\" is an array, expected a map"),
        (row(vec![("f", M(vec![]))]), "\"f\" is a map, expected an array"),
        (row(vec![one(), ("f", A(vec![I(1)]))]), "both \"fields\" and \"f\""),
        (row(vec![one(), one()]), "key \"fields\" comes twice"),
        (row(vec![one(), ("tag", M(vec![]))]), "unknown key \"tag\""),
        (row(vec![one(), ("tags", I(1))]), "\"tags\" is an integer, expected a map"),
        (row(vec![one(), ("h", B(true))]), "\"h\" is a boolean, expected a string or an integer"),
        (row(vec![one(), ("t", T("now"))]), "the time \"t\" is a string"),
        (row(vec![one(), ("t", F(f64::NAN))]), "outside the range"),
        (row(vec![one(), ("t", V::Uint(u64::MAX))]), "outside the range"),
        (row(vec![one(), ("t", I(i64::MIN))]), "outside the range"),
        (row(vec![fields(vec![("", I(1))])]), "invalid field name \"\": it is empty"),
        (row(vec![fields(vec![("time", I(1))])]), "it is the name of the time column"),
        (row(vec![fields(vec![("v", A(vec![]))])]), "field \"v\" is an array"),
        (row(vec![fields(vec![("v", M(vec![]))])]), "field \"v\" is a map"),
        (row(vec![fields(vec![("v", V::Bin)])]), "field \"v\" is binary"),
        (row(vec![fields(vec![("v", V::Ext(4, vec![0]))])]), "field \"v\" is an extension"),
        (row(vec![fields(vec![("v", V::Raw(b"\xa1\xff".to_vec()))])]), "not UTF-8"),
        (row(vec![("f", A(vec![V::Bin]))]), "field \"field_0\" is binary"),
        (row(vec![one(), tags(vec![("", T("x"))])]), "invalid tag name"),
        (row(vec![one(), tags(vec![("time", T("x"))])]), "it is the name of the time column"),
        (row(vec![one(), tags(vec![("a", T("x")), ("a", T("y"))])]), "tag \"a\" comes twice"),
        (row(vec![one(), tags(vec![("a", A(vec![]))])]), "tag \"a\" is an array"),
        (row(vec![one(), tags(vec![("v", T("x"))])]), "field \"v\" has the name of a tag"),
        (row(vec![fields(vec![("host", I(1))]), ("h", T("x"))]), "field \"host\" has the name of a tag"),
    ];
    for (sent, expected) in cases {
        let got = Given::nothing().reason(&sent);
        assert!(got.contains(expected), "{sent:?}: {got}");
    }
}

#[test]
fn a_row_is_checked_against_its_table() {
    let cases: Vec<(bool, V, Result<&str, &str>)> = vec![
        (true, row(vec![fields(vec![("f", I(2)), ("u", I(3))])]), Ok("c 1000 f=2.0 u=3u")),
        (true, row(vec![fields(vec![("u", I(-3))])]), Err("is type integer, already exists as type unsigned")),
        (
            true,
            row(vec![fields(vec![("i", F(2.0))])]),
            Err("is type float, already exists as type integer; the setting on_conflict"),
        ),
        (true, row(vec![fields(vec![("host", T("a"))])]), Err("field \"host\" on measurement \"c\" is a tag already")),
        (
            true,
            row(vec![one(), ("tags", M(vec![("i", T("a"))]))]),
            Err("tag \"i\" on measurement \"c\" is a field already"),
        ),
        (true, row(vec![one(), ("h", T("a"))]), Ok("c 1000 host=[a] v=1")),
        (false, row(vec![one(), ("h", T("a")), ("tags", M(vec![("s", T("x"))]))]), Ok("c 1000 s=\"x\" host=\"a\" v=1")),
        (
            false,
            row(vec![one(), ("tags", M(vec![("i", T("a"))]))]),
            Err("is type string, already exists as type integer"),
        ),
    ];
    for (has_primary_key, sent, expected) in cases {
        let given = Given::table("c", has_primary_key);
        match expected {
            Ok(line) => assert_eq!(given.rows(&sent), [line], "{sent:?}"),
            Err(reason) => {
                let got = given.reason(&sent);
                assert!(got.contains(reason), "{got}");
            }
        }
    }
}

#[test]
fn the_first_time_of_all_rows_decides_their_unit() {
    let at = |t: V| row(vec![("t", t), one()]);
    let bad_first = M(vec![("m", T("c")), ("t", I(1_700_000_000_000)), ("x", N)]);
    let sent = A(vec![
        row(vec![one()]),
        bad_first,
        at(I(5)),
        at(F(6.0)),
        columnar("c", vec![("time", A(vec![I(7)])), ("v", A(vec![I(1)]))]),
    ]);
    let staged = Given::nothing().decode(&sent);
    assert_eq!(staged.rejections.numbers, [2]);
    let expected = ["c 1000 v=1", "c 5000000 v=1", "c 6000000 v=1", "c 7000000000 v=1"];
    assert_eq!(rows(staged), expected);
    let replayed = Given { skip: vec![2], ..Given::nothing() };
    assert_eq!(replayed.rows(&sent), expected);
}

#[test]
fn rows_with_the_same_tags_share_a_series() {
    let at =
        |host: &'static str, zone: &'static str| row(vec![one(), ("h", T(host)), ("tags", M(vec![("zone", T(zone))]))]);
    let swapped = row(vec![one(), ("tags", M(vec![("host", T("a")), ("zone", T("x"))]))]);
    let sent = A(vec![at("a", "x"), at("b", "x"), at("a", "x"), swapped, row(vec![one()])]);
    let staged = Given::nothing().decode(&sent);
    assert_eq!(staged.rejections.first, []);
    assert_eq!(staged.tables[0].rows.series, [0, 1, 0, 0, 2]);
}

#[test]
fn a_field_named_like_a_tag_is_refused_also_where_the_tags_came_before() {
    let good = row(vec![one(), ("h", T("a"))]);
    let clash = row(vec![fields(vec![("host", I(1))]), ("h", T("a"))]);
    let staged = Given::nothing().decode(&A(vec![good, clash]));
    assert_eq!(staged.rejections.numbers, [2]);
    assert_eq!(rows(staged), ["c 1000 host=[a] v=1"]);
}

#[test]
fn a_bad_row_leaves_nothing_behind_for_the_next() {
    let sent = M(vec![(
        "batch",
        A(vec![
            row(vec![fields(vec![("a", I(1)), ("time", I(1))]), ("h", T("x"))]),
            row(vec![fields(vec![("a", T("text"))])]),
            I(5),
            M(vec![("m", T("d")), ("fields", N)]),
            columnar("d", vec![("v", A(vec![I(1)]))]),
        ]),
    )]);
    let staged = Given::nothing().decode(&sent);
    assert_eq!(staged.rejections.numbers, [1, 3, 4]);
    assert_eq!(staged.rejections.first[1].reason, "the item is an integer, expected a map");
    assert!(!staged.tables[1].has_primary_key(), "the refused row must not have decided that");
    assert_eq!(rows(staged), ["c 1000 a=\"text\"", "d 1001 v=1"]);
}

#[test]
fn rows_are_what_columns_are() {
    let tags = |host: V| ("tags", M(vec![("host", host)]));
    let by_row = A(vec![
        row(vec![("t", I(1)), tags(T("a")), fields(vec![("f", F(1.5)), ("s", T("x"))])]),
        row(vec![("t", I(2)), tags(T("b")), fields(vec![("f", I(2)), ("b", B(true))])]),
        row(vec![("t", I(3)), tags(N), fields(vec![("i", I(-1))])]),
    ]);
    let by_column = columnar(
        "c",
        vec![
            ("time", A(vec![I(1), I(2), I(3)])),
            ("host", A(vec![T("a"), T("b"), N])),
            ("f", A(vec![F(1.5), I(2), N])),
            ("s", A(vec![T("x"), N, N])),
            ("b", A(vec![N, B(true), N])),
            ("i", A(vec![N, N, I(-1)])),
        ],
    );
    assert_eq!(Given::table("c", true).rows(&by_row), Given::table("c", true).rows(&by_column));
}

#[test]
fn integers_and_floats_of_one_request_become_floats() {
    let at = |t: i64, v: V| row(vec![("t", I(1_700_000_000 + t)), fields(vec![("v", v)])]);
    let rows = Given::nothing().rows(&A(vec![at(0, I(1)), at(1, F(2.5)), at(2, I(3))]));
    assert_eq!(rows, ["c 1700000000000000000 v=1.0", "c 1700000001000000000 v=2.5", "c 1700000002000000000 v=3.0"]);
}
