//! Patterns that come from rows: as those that are constants, and no statement outlives its time by them.

use std::time::Duration;

use super::fake::{
    Cell::{Tag, Text},
    Home::{Buffer, File},
    Store, TableBuilder,
};
use crate::{ErrorKind, Options};

const PATTERNS: [&str; 7] = ["a%", "%b_", "^a+b", "[a-c]{2}", "A", "", "x|b"];

fn store(options: &Options) -> Store {
    let store = Store::with_options(options);
    let row = |at: usize| {
        let text = ["abc", "aab", "xyz", "A%", ""][at % 5];
        (at as i64, vec![("host", Tag(text)), ("text", Text(text)), ("pattern", Text(PATTERNS[at % 7]))])
    };
    let table = TableBuilder::new("m").part(File, (0..700).map(row).collect());
    store.put("db", table.part(Buffer, (700..1_400).map(row).collect()));
    store
}

#[tokio::test]
async fn a_pattern_of_a_row_means_what_it_means_as_a_constant() {
    let store = store(&Options::default());
    for (at, of) in ["text", "host"].into_iter().enumerate() {
        for test in [
            "{of} LIKE {pattern}",
            "{of} NOT LIKE {pattern}",
            "{of} ILIKE {pattern}",
            "{of} NOT ILIKE {pattern}",
            "{of} ~ {pattern}",
            "{of} !~ {pattern}",
            "{of} ~* {pattern}",
            "{of} !~* {pattern}",
            "regexp_like({of}, {pattern})",
            "regexp_like({of}, {pattern}, 'i')",
            "regexp_count({of}, {pattern}) > 1",
            "regexp_replace({of}, {pattern}, '-') = '-c'",
            "array_length(regexp_match({of}, {pattern})) = 1",
            "regexp_instr({of}, {pattern}) = 2",
            "NOT ({of} LIKE {pattern})",
        ]
        // Of a tag some of them.
        .into_iter()
        .step_by(1 + 4 * at)
        {
            let count = async |pattern: &str, condition: &str| {
                let test = test.replace("{of}", of).replace("{pattern}", pattern);
                let sql =
                    format!("SELECT count(*) AS c, sum(CAST({test} AS INT)) AS s FROM m WHERE {condition} AND {test}");
                store.text(&sql).await
            };
            for pattern in PATTERNS {
                let condition = format!("pattern = '{pattern}'");
                let (constant, of_rows) =
                    (count(&format!("'{pattern}'"), &condition).await, count("pattern", &condition).await);
                assert_eq!(constant, of_rows, "{test} {of} {pattern}");
            }
            // Of different rows at once: all of them together.
            let mut expected = 0;
            for pattern in PATTERNS {
                let test = test.replace("{of}", of).replace("{pattern}", &format!("'{pattern}'"));
                let rows = store.rows(&format!("SELECT count(*) FROM m WHERE pattern = '{pattern}' AND {test}")).await;
                expected += rows[0].parse::<usize>().unwrap();
            }
            let test = test.replace("{of}", of).replace("{pattern}", "pattern");
            assert_eq!(
                store.rows(&format!("SELECT count(*) FROM m WHERE {test}")).await,
                [expected.to_string()],
                "{test}"
            );
        }
    }
    assert_eq!(store.rows("SELECT count(*) FROM m WHERE text LIKE pattern AND pattern > 'zzz'").await, ["0"]);
    assert_eq!(store.rows("SELECT count(*) FROM m WHERE (text ~ nullif(pattern, '')) IS NULL").await, ["200"]);
    let error = store.error("SELECT count(*) FROM m WHERE text ~ (pattern || '(')").await;
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
}

/// Runs on one thread: a batch that went on would be waited for.
#[tokio::test]
async fn patterns_that_are_slow_to_compile_end_with_their_query() {
    let store = store(&Options { query_timeout: Duration::from_millis(300), ..Options::default() });
    let (large, parts) = ("'(a{1,100}){1,9}' || value", format!("'{}' || value", "%_a".repeat(500)));
    for test in [
        format!("'aaaa' ~ ({large})"),
        format!("regexp_like('aaaa', {large}, 'i')"),
        format!("regexp_replace('aaaa', {large}, 'b') = 'c'"),
        format!("'aaaa' LIKE ({parts})"),
        format!("'aaaa' NOT ILIKE ({parts})"),
    ] {
        let error = store.error(&format!("SELECT count(*) FROM generate_series(1, 10000000) WHERE {test}")).await;
        assert_eq!(error.kind(), ErrorKind::Timeout, "{test}: {error}");
    }
}
