//! Properties of random inputs: every face says what the naive parser says.

use crate::chunked;
use crate::naive::assert_agrees;
use proptest::prelude::*;

/// Pieces that records are made of, so that random text is often nearly right.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let fixed = prop::sample::select(vec![
        "m",
        ",",
        "t=",
        "=",
        " ",
        "  ",
        "f=1",
        "f=",
        "\"",
        "\\",
        "\\\\",
        "\\\"",
        "\\ ",
        "\\,",
        "\\=",
        "\n",
        "\r\n",
        "\r",
        "\t",
        "\0",
        "#",
        "1",
        "-1",
        "1i",
        "2u",
        "t",
        "FALSE",
        "1.5e3",
        "1e999",
        "9223372036854775808",
        "\"a b\"",
        "\"a\\\"b\nc\"",
        "é",
        "€uro",
        "🦀",
        "x y",
        " 17\n",
        "m,t=a f=1 1\n",
        "m f=1.25,g=\"x\",h=3i 99\n",
    ]);
    prop_oneof![
        10 => fixed.prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 1..4),
        1 => "[a-z0-9.]{1,40}".prop_map(String::into_bytes),
    ]
}

/// A record that is mostly good, with a random piece in a random position now and then.
fn nearly_good() -> impl Strategy<Value = Vec<u8>> {
    let parts = (name(), prop::collection::vec((name(), name()), 0..4), fields(), timestamp());
    let parts = (parts, prop::option::weighted(0.3, (any::<prop::sample::Index>(), piece())));
    parts.prop_map(|((measurement, tags, fields, timestamp), slip)| {
        let mut line = measurement;
        for (key, value) in tags {
            line = [line.as_str(), ",", &key, "=", &value].concat();
        }
        let mut line = [line, " ".to_owned(), fields.join(","), timestamp].concat().into_bytes();
        if let Some((at, piece)) = slip {
            let at = at.index(line.len());
            line.splice(at..at, piece);
        }
        line
    })
}

fn name() -> impl Strategy<Value = String> {
    r#"([a-zé_]|\\[ ,=\\]|"){1,12}"#
}

fn fields() -> impl Strategy<Value = Vec<String>> {
    let value = prop_oneof![
        any::<f64>().prop_map(|value| value.to_string()),
        "-?[0-9]{1,20}(\\.[0-9]{0,20})?(e-?[0-9]{1,3})?",
        any::<i64>().prop_map(|value| format!("{value}i")),
        any::<u64>().prop_map(|value| format!("{value}u")),
        r#""([a-z ,=\n€]|\\["\\a]){0,20}""#,
        "t|f|True|FALSE",
    ];
    prop::collection::vec((name(), value).prop_map(|(key, value)| format!("{key}={value}")), 1..6)
}

fn timestamp() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|time| format!(" {time}\n")),
        Just("\n".to_owned()),
        Just(" \r\n".to_owned()),
        "  -?[0-9]{1,20} {0,2}\n",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn agrees_with_the_naive_parser_on_any_bytes(input in prop::collection::vec(any::<u8>(), 0..200)) {
        assert_agrees(&input);
    }

    #[test]
    fn agrees_with_the_naive_parser_on_pieces_of_records(
        pieces in prop::collection::vec(piece(), 0..40),
    ) {
        assert_agrees(&pieces.concat());
    }

    #[test]
    fn agrees_with_the_naive_parser_on_nearly_good_records(
        lines in prop::collection::vec(nearly_good(), 1..6),
    ) {
        assert_agrees(&lines.concat());
    }

    #[test]
    fn random_bodies_may_be_cut_anywhere(
        input in "([a ,=\"\\\\\n]|a b=1\n|a b=\"\n\" 1\n){0,60}",
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
    ) {
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(input.len() + 1)).collect();
        cuts.sort_unstable();
        chunked::assert_same(input.as_bytes(), &cuts);
    }
}
