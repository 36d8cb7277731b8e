//! MessagePack that is not what it should be.

use serde_json::{Value, json};

use crate::support::{Server, packed};

const PACK: &str = "/api/v1/write/msgpack?db=t";

#[tokio::test]
async fn truncation_at_any_byte_is_refused() {
    let server = Server::new();
    let whole =
        packed(&json!({ "m": "m", "columns": { "time": [1_700_000_000, 2], "v": [1.5, 2.5], "s": ["a", "b"] } }));
    for end in 1..whole.len() {
        let reply = server.post(PACK, whole[..end].to_vec()).await;
        assert_eq!(reply.status, 400, "{end}: {reply:?}");
        assert!(!reply.json()["error"].as_str().unwrap().is_empty());
    }
    assert!(server.engine.tables("t").is_ok_and(|tables| tables.is_empty()) || server.engine.databases().is_empty());
    assert_eq!(server.post(PACK, whole).await.status, 204);
}

#[tokio::test]
async fn deep_nesting_is_refused() {
    let server = Server::new();
    for (open, depth) in [(0x91_u8, 10_000_usize), (0x81, 10_000)] {
        let reply = server.post(PACK, vec![open; depth]).await;
        assert_eq!(reply.status, 400, "{reply:?}");
    }
    let mut columns = packed(&json!({ "m": "m", "columns": { "v": 1 } }));
    columns.pop();
    columns.extend(std::iter::repeat_n(0x91, 10_000));
    columns.push(1);
    assert_eq!(server.post(PACK, columns).await.status, 400);
}

#[tokio::test]
async fn what_is_refused_of_a_batch_is_counted_in_items() {
    let good = json!({ "m": "m", "columns": { "time": [1, 2], "v": [1, 2] } });
    let reply = Server::new().pack(&json!({ "batch": [good, { "m": "c" }] })).await;
    reply.is(400, "items rejected, 2 stored; item 2: ");
    assert_eq!(reply.json()["lines"][0]["line"], 2);
}

#[tokio::test]
async fn shapes_that_cannot_be_are_refused() {
    let server = Server::new();
    let cases: Vec<(&str, Value)> = vec![
        ("a number", json!(1)),
        ("a text", json!("m")),
        ("nothing", json!(null)),
        ("an empty map", json!({})),
        ("an empty array", json!([])),
        ("no measurement", json!({ "columns": { "time": [1], "v": [1] } })),
        ("an empty measurement", json!({ "m": "", "columns": { "time": [1], "v": [1] } })),
        ("no columns", json!({ "m": "m" })),
        ("empty columns", json!({ "m": "m", "columns": {} })),
        ("no rows", json!({ "m": "m", "columns": { "time": [], "v": [] } })),
        ("unequal lengths", json!({ "m": "m", "columns": { "time": [1, 2], "v": [1] } })),
        ("a column that is no array", json!({ "m": "m", "columns": { "time": [1], "v": 1 } })),
        ("an empty column name", json!({ "m": "m", "columns": { "time": [1], "": [1] } })),
        ("a text as time", json!({ "m": "m", "columns": { "time": ["now"], "v": [1] } })),
        ("a boolean as time", json!({ "m": "m", "columns": { "time": [true], "v": [1] } })),
        ("no time in a row of times", json!({ "m": "m", "columns": { "time": [null], "v": [1] } })),
        ("a map as a value", json!({ "m": "m", "columns": { "time": [1], "v": [{ "a": 1 }] } })),
        ("a batch of nothing", json!({ "batch": [] })),
        ("a batch that is no array", json!({ "batch": 1 })),
        ("a batch whose only item is incomplete", json!({ "batch": [{ "m": "c" }] })),
        ("a row without fields", json!([{ "m": "m", "t": 1 }])),
    ];
    for (what, value) in cases {
        let reply = server.pack(&value).await;
        assert_eq!(reply.status, 400, "{what}: {reply:?}");
        assert!(!reply.json()["error"].as_str().unwrap().is_empty(), "{what}");
    }
    let stored = server.engine.tables("t").map_or(0, |tables| tables.len());
    assert_eq!(stored, 0, "nothing of them was stored");
}

#[tokio::test]
async fn good_items_of_an_array_are_stored() {
    let server = Server::new();
    let reply = server
        .pack(&json!([
            { "m": "m", "t": 1_700_000_000, "fields": { "v": 1 }, "tags": { "host": "a" } },
            { "m": "m", "t": 1_700_000_001 },
            { "m": "m", "t": 1_700_000_002, "fields": { "v": 3 }, "tags": { "host": "a" } },
        ]))
        .await;
    assert_eq!(reply.status, 400, "{reply:?}");
    let answer = reply.json();
    assert_eq!((&answer["stored"], &answer["rejected"]), (&json!(2), &json!(1)), "{answer}");
    assert_eq!(server.rows("SELECT v FROM m ORDER BY v").await, json!([[1], [3]]));
}

#[tokio::test]
async fn columns_without_a_time_get_that_of_arrival() {
    let server = Server::new();
    let reply = server.pack(&json!({ "m": "m", "columns": { "v": [1, 2] } })).await;
    assert_eq!(reply.status, 204, "{reply:?}");
    let sql = "SELECT count(*), max(time) <= now(), min(time) > now() - INTERVAL '1 minute' FROM m";
    assert_eq!(server.rows(sql).await, json!([[2, true, true]]));
}

#[tokio::test]
async fn integers_above_i64_keep_their_value() {
    let server = Server::new();
    let reply = server.pack(&json!({ "m": "m", "columns": { "time": [1_700_000_000], "v": [u64::MAX] } })).await;
    assert_eq!(reply.status, 204, "{reply:?}");
    assert_eq!(server.rows("SELECT v FROM m").await, json!([[u64::MAX]]));
}

#[tokio::test]
async fn floats_without_a_number_do_not_panic() {
    let server = Server::new();
    // rmp_serde writes them from a float; JSON has none.
    let body = rmp_serde::to_vec_named(&std::collections::BTreeMap::from([("v", [f64::NAN, f64::INFINITY])])).unwrap();
    let mut payload = packed(&json!({ "m": "m", "columns": null }));
    payload.pop();
    payload.extend([0x82]);
    payload.extend(&packed(&json!("time")));
    payload.extend(&packed(&json!([1_700_000_000, 1_700_000_001])));
    payload.extend(&body[1..]);
    let reply = server.post(PACK, payload).await;
    assert!(matches!(reply.status.as_u16(), 204 | 400), "{reply:?}");
}
