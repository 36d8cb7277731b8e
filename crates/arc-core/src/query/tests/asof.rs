//! `ASOF JOIN`: the rows that looking at every pair finds, and what cannot be said.

use super::fake::{
    Cell::{Integer, Tag},
    Home::{Buffer, File, LateBuffer},
    Row, Store, TableBuilder,
};

/// A row of one side: its number, and what it is joined by, which may be null.
#[derive(Debug, Clone, Copy)]
struct Side {
    number: i64,
    key: Option<&'static str>,
    time: Option<i64>,
}

const KEYS: [&str; 4] = ["a", "b", "c", "d"];

/// Rows in no order, of which no two have one key and time.
fn side(seed: u64, count: i64) -> Vec<Side> {
    let mut state = seed;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut rows: Vec<Side> = Vec::new();
    for number in 0..count {
        // Some keys are on one side only.
        let key = KEYS.get(usize::try_from(random(5) + seed % 2).unwrap() % 6).copied();
        let time = Some(i64::try_from(random(600)).unwrap() - 300).filter(|_| random(20) > 0);
        let is_new = !rows.iter().any(|row| (row.key, row.time) == (key, time));
        if is_new || key.is_none() || time.is_none() {
            rows.push(Side { number, key, time });
        }
    }
    rows
}

fn table(name: &'static str, rows: &[Side]) -> TableBuilder {
    let row = |side: &Side| -> Row {
        let key = side.key.map(|key| ("k", Tag(key)));
        let time = side.time.map(|time| ("t", Integer(time)));
        (side.number - 50, [Some(("n", Integer(side.number))), key, time].into_iter().flatten().collect())
    };
    let (first, second) = rows.split_at(rows.len() / 2);
    TableBuilder::new(name)
        .append()
        .part(File, first.iter().map(row).collect())
        .part(Buffer, second.iter().map(row).collect())
}

fn store(left: &[Side], right: &[Side]) -> Store {
    let store = Store::new();
    store.put("db", table("l", left)).put("db", table("r", right));
    store
}

/// Looks at every pair.
fn expected(left: &[Side], right: &[Side], operator: &str, outer: bool, has_primary_key: bool) -> Vec<String> {
    let mut rows = Vec::new();
    for l in left {
        let matches = right.iter().filter(|r| {
            let (Some(lt), Some(rt)) = (l.time, r.time) else { return false };
            let is_near = match operator {
                ">=" => lt >= rt,
                ">" => lt > rt,
                "<=" => lt <= rt,
                _ => lt < rt,
            };
            is_near && (!has_primary_key || l.key.is_some() && l.key == r.key)
        });
        let distance = |r: &&Side| (l.time.unwrap_or_default() - r.time.unwrap_or_default()).abs();
        match matches.min_by_key(distance) {
            Some(r) => rows.push(format!("{}|{}", l.number, r.number)),
            None if outer => rows.push(format!("{}|", l.number)),
            None => {}
        }
    }
    rows
}

#[tokio::test]
async fn each_row_gets_what_looking_at_every_pair_finds() {
    for seed in 1..=4 {
        let (left, right) = (side(seed, 400), side(seed + 100, 300));
        let store = store(&left, &right);
        for operator in [">=", ">", "<=", "<"] {
            for (join, outer) in [("ASOF JOIN", false), ("ASOF LEFT JOIN", true), ("asof left outer join", true)] {
                let sql =
                    format!("SELECT l.n, r.n AS m FROM l {join} r ON l.k = r.k AND l.t {operator} r.t ORDER BY l.n");
                assert_eq!(store.rows(&sql).await, expected(&left, &right, operator, outer, true), "{seed} {sql}");
            }
            let flipped = match operator {
                ">=" => "<=",
                ">" => "<",
                "<=" => ">=",
                _ => ">",
            };
            let sql =
                format!("SELECT l.n, r.n AS m FROM l ASOF JOIN r ON r.t {flipped} l.t AND r.k = l.k ORDER BY l.n");
            assert_eq!(store.rows(&sql).await, expected(&left, &right, operator, false, true), "{seed} {sql}");
        }
        let sql = "SELECT l.n, r.n AS m FROM l ASOF JOIN r USING (k, t) ORDER BY l.n";
        assert_eq!(store.rows(sql).await, expected(&left, &right, ">=", false, true), "{seed} {sql}");
        let sql = "SELECT l.n, r.n AS m FROM l ASOF JOIN r MATCH_CONDITION (l.t > r.t) USING (k) ORDER BY l.n";
        assert_eq!(store.rows(sql).await, expected(&left, &right, ">", true, true), "{seed} {sql}");
    }
}

#[tokio::test]
async fn without_keys_the_nearest_of_all_rows_is_taken() {
    let (mut left, mut right) = (side(7, 100), side(8, 60));
    // One of each time, lest it be open which is meant.
    for rows in [&mut left, &mut right] {
        let mut seen = std::collections::HashSet::new();
        rows.retain(|row| seen.insert(row.time));
    }
    let store = store(&left, &right);
    for condition in ["ON l.t >= r.t", "MATCH_CONDITION (l.t >= r.t)", "USING (t)"] {
        let outer = condition.starts_with("MATCH");
        let sql = format!("SELECT l.n, r.n AS m FROM l ASOF JOIN r {condition} ORDER BY l.n");
        assert_eq!(store.rows(&sql).await, expected(&left, &right, ">=", outer, false), "{sql}");
    }
}

#[tokio::test]
async fn conditions_and_other_joins_around_it_mean_what_they_say() {
    let (left, right) = (side(1, 200), side(2, 200));
    let store = store(&left, &right);
    let all = expected(&left, &right, ">=", false, true);
    let number = |row: &str, at: usize| row.split('|').nth(at - 1).unwrap().trim().parse::<i64>().unwrap();
    let join = "FROM l ASOF JOIN r ON l.k = r.k AND l.t >= r.t";
    // What is said of the left side or of both may be asked of rows before they are joined, what is
    // said of the right side not.
    let of_left = format!("SELECT l.n, r.n AS m {join} WHERE l.n > 50 ORDER BY 1");
    let kept: Vec<_> = all.iter().filter(|row| number(row, 1) > 50).cloned().collect();
    assert_eq!(store.rows(&of_left).await, kept);
    let of_right = format!("SELECT l.n, r.n AS m {join} WHERE r.n > 50 ORDER BY 1");
    let kept: Vec<_> = all.iter().filter(|row| number(row, 2) > 50).cloned().collect();
    assert_eq!(store.rows(&of_right).await, kept);
    let of_key = format!("SELECT l.n, r.n AS m {join} WHERE l.k = 'b' ORDER BY 1");
    let is_b = |row: &&String| left.iter().any(|l| l.number == number(row, 1) && l.key == Some("b"));
    let kept: Vec<_> = all.iter().filter(is_b).cloned().collect();
    assert!(!kept.is_empty());
    assert_eq!(store.rows(&of_key).await, kept);
    let plan = store.plan(&of_key).await;
    let below = plan.split_once("AsOfJoin").unwrap().1.split_once("physical_plan").unwrap().0;
    assert_eq!(below.matches("k = Dictionary(Int32, Utf8(\"b\"))").count(), 4, "twice in each scan: {plan}");

    let twice = "SELECT l.n, r.n AS m, q.n AS o FROM l ASOF JOIN r ON l.k = r.k AND l.t >= r.t \
                 ASOF LEFT JOIN r AS q ON l.k = q.k AND l.t <= q.t JOIN l AS l2 ON l2.n = l.n \
                 WHERE l.n IN (SELECT n FROM (l ASOF JOIN (SELECT k, t FROM r) AS s USING (k, t))) ORDER BY l.n";
    assert_eq!(store.rows(twice).await.len(), all.len());
    let counted = "WITH j AS (SELECT * FROM l ASOF JOIN r USING (k, t)) SELECT count(*) AS c FROM j";
    assert_eq!(store.rows(counted).await.join(""), all.len().to_string());
    let columns =
        "SELECT * FROM (SELECT k, t FROM l) AS l ASOF JOIN (SELECT n AS m, k, t FROM r) AS r USING (k, t) LIMIT 0";
    let names = store.text(columns).await;
    assert!(names.contains("| k | t | m |"), "{names}");
    let explained = store.text(&format!("EXPLAIN SELECT l.n {join}")).await;
    assert!(explained.contains("AsOfExec") && explained.contains("l.t >= r.t"), "{explained}");
}

#[tokio::test]
async fn one_of_several_of_the_same_time_is_taken() {
    let row = |number, time| Side { number, key: Some("a"), time: Some(time) };
    let right: Vec<Side> = (0..50).map(|number| row(number, number / 10)).collect();
    let store = store(&[row(1, 2), row(2, -1)], &right);
    let rows =
        store.rows("SELECT l.n, r.t AS m FROM l ASOF LEFT JOIN r ON l.k = r.k AND l.t >= r.t ORDER BY l.n").await;
    assert_eq!(rows, ["1|2", "2|"]);
}

#[tokio::test]
async fn its_word_can_be_a_name() {
    let store = store(&side(1, 10), &side(2, 10));
    for from in [
        "(SELECT 1 AS asof, 2 AS k) AS a JOIN (SELECT 2 AS k, 3 AS b) AS b ON a.k = b.k",
        "(WITH asof AS (SELECT 1 AS asof, 2 AS k) SELECT asof.asof, b FROM asof LEFT JOIN (SELECT 2 AS k, 3 AS b) AS b ON asof.k = b.k)",
        "(SELECT 1 AS k, 1 AS asof) AS a JOIN (SELECT 1 AS k, 3 AS b) AS b USING (k)",
    ] {
        assert_eq!(store.rows(&format!("SELECT asof, b FROM {from}")).await, ["1|3"], "{from}");
    }
}

#[tokio::test]
async fn what_it_cannot_be_is_said() {
    let store = store(&side(1, 10), &side(2, 10));
    for (join, reason) in [
        ("ASOF JOIN r ON l.k = r.k", "one comparison of times"),
        ("ASOF JOIN r ON l.t >= r.t AND l.n >= r.n", "one of >=, >, <= and <"),
        ("ASOF JOIN r ON l.t >= r.t OR l.k = r.k", "joined by AND"),
        ("ASOF JOIN r ON l.t >= r.t AND l.n = 1", "of the left side with the right side"),
        ("ASOF JOIN r ON l.t >= r.t AND l.n <> r.n", "and not l.n != r.n"),
        ("ASOF JOIN r USING (nothing)", "nothing"),
        ("ASOF JOIN r", "MATCH_CONDITION"),
        ("ASOF RIGHT JOIN r ON l.t >= r.t", "JOIN"),
        ("ASOF JOIN nowhere USING (t)", "nowhere"),
    ] {
        let error = store.error(&format!("SELECT 1 FROM l {join}")).await.to_string();
        assert!(error.contains(reason), "{join}: {error}");
    }
}

/// Both sorts that a join asks for go above a merge, which needs its own.
#[tokio::test]
async fn rows_that_are_merged_are_joined_in_any_order() {
    let store = Store::new();
    let row = |time, host, rack, x| (time, vec![("host", Tag(host)), ("rack", Tag(rack)), ("x", Integer(x))]);
    let table = |name| {
        TableBuilder::new(name)
            .part(File, vec![row(1, "a", "r", 1), row(3, "a", "r", 3), row(2, "b", "s", 2)])
            .part(LateBuffer, vec![row(2, "a", "s", 20), row(3, "a", "r", 30)])
    };
    store.put("db", table("l")).put("db", table("r"));
    for (condition, expected) in [
        ("l.host = r.host AND l.time > r.time", ["2|a|1", "3|a|20"]),
        ("l.host = r.host AND l.time < r.time", ["1|a|20", "2|a|30"]),
    ] {
        let sql = format!("SELECT CAST(l.time AS BIGINT), l.host, r.x FROM l ASOF JOIN r ON {condition} ORDER BY 1, 2");
        assert_eq!(store.rows(&sql).await, expected, "{condition}");
    }
    let sql = "SELECT CAST(time AS BIGINT), x FROM l ORDER BY host, time DESC";
    assert_eq!(store.rows(sql).await, ["3|30", "2|20", "1|1", "2|2"]);
}
