//! Columnar maps.

use super::*;

const S: i64 = 1_700_000_000;
const NS: &str = "1700000000000000000";

fn times(count: i64) -> V {
    A((0..count).map(|k| I(S * 1_000_000_000 + k)).collect())
}

#[test]
fn a_column_of_each_kind_gets_its_type() {
    let half = 1u64 << 63;
    let cases: Vec<(Vec<V>, Vec<&str>)> = vec![
        (vec![I(1), I(-2)], vec!["1", "-2"]),
        (vec![I(i64::MIN), I(i64::MAX)], vec!["-9223372036854775808", "9223372036854775807"]),
        (vec![V::Uint(half), I(1)], vec!["9223372036854775808u", "1u"]),
        (vec![F(1.0), F(-0.0)], vec!["1.0", "-0.0"]),
        (vec![I(1), F(2.9)], vec!["1.0", "2.9"]),
        (vec![F(2.5), V::Uint(half)], vec!["2.5", "9.223372036854776e18"]),
        (vec![F(f64::NAN), F(f64::INFINITY)], vec!["NaN", "inf"]),
        (vec![V::Float32(0.5), F(f64::NEG_INFINITY)], vec!["0.5", "-inf"]),
        (vec![B(true), B(false)], vec!["true", "false"]),
        (vec![T("a"), T("ü, \"b\"")], vec!["\"a\"", "\"ü, \\\"b\\\"\""]),
        (vec![T(""), T("x")], vec!["\"\"", "\"x\""]),
        (vec![F(1.5), T("+Inf")], vec!["\"1.5\"", "\"+Inf\""]),
        (vec![T("a"), I(-1)], vec!["\"a\"", "\"-1\""]),
        (vec![T("a"), B(true)], vec!["\"a\"", "\"true\""]),
        (vec![N, I(5)], vec!["", "5"]),
        (vec![F(5.0), N], vec!["5.0", ""]),
        (vec![N, T("t")], vec!["", "\"t\""]),
        (vec![B(true), N], vec!["true", ""]),
        (vec![N, V::Uint(half)], vec!["", "9223372036854775808u"]),
    ];
    for (values, expected) in cases {
        let sent = columnar("c", vec![("time", times(2)), ("v", A(values))]);
        let cells = expected.iter().map(|cell| if cell.is_empty() { String::new() } else { format!(" v={cell}") });
        let lines: Vec<String> =
            cells.enumerate().map(|(k, cell)| format!("c {}{cell}", S * 1_000_000_000 + k as i64)).collect();
        assert_eq!(Given::nothing().rows(&sent), lines, "{sent:?}");
    }
}

#[test]
fn values_become_the_type_that_the_table_has_or_conflict() {
    let half = 1u64 << 63;
    let cases: Vec<(&str, Vec<V>, Result<&str, &str>)> = vec![
        ("f", vec![I(3)], Ok("3.0")),
        ("f", vec![V::Uint(half)], Ok("9.223372036854776e18")),
        ("f", vec![N, V::Uint(half), I(-1)], Ok("-1.0")),
        ("f", vec![T("x")], Err("is type string, already exists as type float; the setting on_conflict = \"widen\"")),
        ("f", vec![F(1.0), T("x")], Err("is type string, already exists as type float")),
        ("f", vec![B(true)], Err("is type boolean, already exists as type float")),
        ("i", vec![F(1.5)], Err("is type float, already exists as type integer")),
        ("i", vec![I(1), F(1.0)], Err("is type float, already exists as type integer")),
        ("i", vec![V::Uint(half)], Err("is type unsigned, already exists as type integer")),
        ("i", vec![V::Uint(half - 1)], Ok("9223372036854775807")),
        ("u", vec![I(7)], Ok("7u")),
        ("u", vec![N, I(7)], Ok("7u")),
        ("u", vec![I(7), I(-7)], Err("column \"u\", row 2: the column is unsigned in the table")),
        ("u", vec![N, I(-7)], Err("column \"u\", row 2: the column is unsigned in the table")),
        ("s", vec![T("x"), I(1)], Ok("\"1\"")),
        ("s", vec![I(1)], Err("is type integer, already exists as type string")),
        ("b", vec![B(false)], Ok("false")),
        ("b", vec![I(1)], Err("is type integer, already exists as type boolean")),
    ];
    for (column, values, expected) in cases {
        let given = Given::table("c", false);
        let count = values.len();
        let sent = columnar("c", vec![(column, A(values))]);
        match expected {
            Ok(cell) => {
                let rows = given.rows(&sent);
                assert_eq!(rows.last().unwrap(), &format!("c {} {column}={cell}", RECEIVED + count as i64 - 1));
            }
            Err(reason) => {
                let got = given.reason(&sent);
                assert!(got.contains(reason), "{sent:?}: {got}");
                assert!(got.contains(column), "{got}");
            }
        }
    }
}

#[test]
fn the_time_follows_its_magnitude_or_the_declared_unit() {
    let cases: Vec<(Option<Precision>, V, i64)> = vec![
        (None, I(S), S * 1_000_000_000),
        (None, I(S * 1_000 + 1), S * 1_000_000_000 + 1_000_000),
        (None, I(S * 1_000_000 + 1), S * 1_000_000_000 + 1_000),
        (None, I(S * 1_000_000_000 + 1), S * 1_000_000_000 + 1),
        (None, I(-86_400), -86_400_000_000_000),
        (Some(Precision::Millisecond), I(-86_400_000), -86_400_000_000_000),
        (Some(Precision::Nanosecond), I(5), 5),
        (None, F(1_700_000_000.5), S * 1_000_000_000 + 500_000_000),
        (None, F(1_700_000_000_000.0), S * 1_000_000_000),
        (Some(Precision::Second), F(0.25), 250_000_000),
        (None, V::Ext(-1, vec![0, 0, 0, 1]), 1_000_000_000),
        (Some(Precision::Hour), V::Ext(-1, vec![0, 0, 0, 1]), 1_000_000_000),
        (None, V::Uint(u64::try_from(S).unwrap()), S * 1_000_000_000),
    ];
    for (precision, time, expected) in cases {
        let given = Given { precision, ..Given::nothing() };
        let sent = columnar("c", vec![("time", A(vec![time])), ("v", A(vec![I(1)]))]);
        assert_eq!(given.rows(&sent), [format!("c {expected} v=1")], "{sent:?}");
    }
}

#[test]
fn the_first_time_of_a_map_decides_its_unit() {
    let first_ms = A(vec![I(S * 1_000), F(5.0), V::Ext(-1, vec![0, 0, 0, 1])]);
    let sent = columnar("c", vec![("time", first_ms), ("v", A(vec![I(1); 3]))]);
    let expected = [format!("c {NS} v=1"), "c 5000000 v=1".into(), "c 1000000000 v=1".into()];
    assert_eq!(Given::nothing().rows(&sent), expected);
    let two = A(vec![
        columnar("c", vec![("time", A(vec![I(5)])), ("v", A(vec![I(1)]))]),
        columnar("c", vec![("time", A(vec![I(S * 1_000)])), ("v", A(vec![I(1)]))]),
    ]);
    assert_eq!(Given::nothing().rows(&two), ["c 5000000000 v=1".to_owned(), format!("c {NS} v=1")]);
}

#[test]
fn rows_without_a_time_are_a_nanosecond_apart() {
    let item = |v: i64| columnar("c", vec![("v", A(vec![I(v), I(v)]))]);
    assert_eq!(
        Given::nothing().rows(&A(vec![item(1), item(2)])),
        ["c 1000 v=1", "c 1001 v=1", "c 1002 v=2", "c 1003 v=2"]
    );
}

#[test]
fn names_are_kept_as_they_are() {
    let columns = vec![("_x", A(vec![I(1)])), ("a.b /c😀", A(vec![I(2)])), ("..", A(vec![I(3)]))];
    assert_eq!(Given::nothing().rows(&columnar("../m x", columns)), ["../m x 1000 _x=1 a.b /c😀=2 ..=3"]);
    let numbered = M(vec![("m", I(7)), ("columns", M(vec![("v", A(vec![I(1)]))]))]);
    assert_eq!(Given::nothing().rows(&numbered), ["measurement_7 1000 v=1"]);
}

#[test]
fn columns_may_come_before_their_measurement() {
    let sent = M(vec![("columns", M(vec![("v", A(vec![T("x"), N]))])), ("m", T("c"))]);
    assert_eq!(Given::nothing().rows(&sent), ["c 1000 v=\"x\"", "c 1001"]);
}

#[test]
fn a_column_of_nil_is_not_made() {
    let sent = columnar("c", vec![("v", A(vec![I(1), I(2)])), ("n", A(vec![N, N]))]);
    let staged = Given::nothing().decode(&sent);
    let names: Vec<&str> = staged.tables[0].added.iter().map(|column| column.name.as_ref()).collect();
    assert_eq!(names, ["v"]);
    assert_eq!(rows(staged), ["c 1000 v=1", "c 1001 v=2"]);
}

#[test]
fn maps_of_one_table_follow_each_other() {
    let sent = M(vec![(
        "batch",
        A(vec![
            columnar("c", vec![("v", A(vec![I(1)])), ("w", A(vec![T("a")]))]),
            columnar("d", vec![("v", A(vec![F(1.0)]))]),
            columnar("c", vec![("x", A(vec![B(true), N])), ("v", A(vec![I(2), I(3)]))]),
        ]),
    )]);
    assert_eq!(Given::nothing().rows(&sent), ["c 1000 v=1 w=\"a\"", "c 1002 v=2 x=true", "c 1003 v=3", "d 1001 v=1.0"]);
}

#[test]
fn declared_tags_key_a_new_table() {
    let given = Given::nothing().tags(&["host", "zone"]);
    let sent = columnar(
        "c",
        vec![
            ("host", A(vec![T("a"), T("a"), T("b"), T("a"), N])),
            ("zone", A(vec![T("x"), T("x"), T("x"), N, T("")])),
            ("v", A(vec![I(1), I(2), I(3), I(4), I(5)])),
        ],
    );
    let staged = given.decode(&sent);
    assert!(staged.tables[0].has_primary_key());
    assert_eq!(staged.tables[0].rows.series, [0, 0, 1, 2, 3]);
    assert_eq!(
        rows(staged),
        [
            "c 1000 host=[a] zone=[x] v=1",
            "c 1001 host=[a] zone=[x] v=2",
            "c 1002 host=[b] zone=[x] v=3",
            "c 1003 host=[a] v=4",
            "c 1004 v=5"
        ]
    );
}

#[test]
fn the_tags_of_a_primary_key_table_make_its_series() {
    let given = Given::table("c", true);
    let sent = columnar("c", vec![("i", A(vec![I(1)])), ("host", A(vec![T("a")])), ("new", A(vec![T("n")]))]);
    assert_eq!(given.rows(&sent), ["c 1000 host=[a] i=1 new=\"n\""]);
    let declared = Given::table("c", true).tags(&["new"]);
    assert_eq!(declared.rows(&sent), ["c 1000 host=[a] new=[n] i=1"]);
    let cases: Vec<(&[&str], V, &str)> = vec![
        (&[], columnar("c", vec![("host", A(vec![I(1)]))]), "column \"host\", row 1: the value is an integer"),
        (&["i"], columnar("c", vec![("i", A(vec![T("x")]))]), "is type tag, already exists as type integer"),
        (&["zone"], columnar("c", vec![("i", A(vec![I(1)]))]), "no column \"zone\", which was declared a tag"),
    ];
    for (tags, sent, expected) in cases {
        let got = Given::table("c", true).tags(tags).reason(&sent);
        assert!(got.contains(expected), "{got}");
    }
}

#[test]
fn tags_cannot_be_declared_for_an_append_only_table() {
    let got = Given::table("c", false).tags(&["s"]).reason(&columnar("c", vec![("s", A(vec![T("x")]))]));
    assert!(got.contains("tags cannot be declared later"), "{got}");
}

#[test]
fn undeclared_rows_of_one_primary_key_are_refused_in_a_table_that_merges() {
    let time = |times: &[i64]| ("time", A(times.iter().map(|t| I(1_700_000_000 + t)).collect()));
    let values = ("v", A(vec![I(1), I(2)]));
    let got = Given::table("c", true).reason(&columnar("c", vec![time(&[5, 5]), values.clone()]));
    assert!(got.contains("rows 1 and 2 have the same tags and time"), "{got}");
    assert_eq!(Given::table("c", true).rows(&columnar("c", vec![time(&[5, 6]), values])).len(), 2);
}
