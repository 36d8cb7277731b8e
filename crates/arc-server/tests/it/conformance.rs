//! The worked examples of the wire contract that concern writes and queries, each under the name of what it shows.

use serde_json::{Value, json};

use crate::support::Server;

#[tokio::test]
async fn influxdb_1_precision_n_is_nanoseconds() {
    assert_eq!(Server::new().post("/write?db=t&precision=n", "m v=1 1").await.status, 204);
}

#[tokio::test]
async fn a_point_without_a_timestamp_gets_the_time_of_arrival() {
    let server = Server::new();
    assert_eq!(server.post("/api/v2/write?bucket=t", "cpu,host=a v=1i").await.status, 204);
    let sql = "SELECT host, v, time > now() - INTERVAL '1 minute' AND time <= now() FROM cpu";
    assert_eq!(server.rows(sql).await, json!([["a", 1, true]]));
}

#[tokio::test]
async fn a_malformed_timestamp_is_an_error_of_its_line() {
    let server = Server::new();
    server.post("/write?db=t", "cpu v=1 12x").await.is(400, "1 of 1 lines rejected");
}

#[tokio::test]
async fn a_dot_in_a_measurement_is_fine() {
    let server = Server::new();
    server.lines("a.b v=1i 1").await;
    assert_eq!(server.rows("SELECT v FROM \"a.b\"").await, json!([[1]]));
}

#[tokio::test]
async fn points_of_one_identity_merge() {
    let server = Server::new();
    server.lines("m,host=a x=1 5").await;
    server.lines("m,host=a y=2 5").await;
    assert_eq!(server.rows("SELECT x, y FROM m").await, json!([[1, 2]]));
    server.engine.flush().unwrap();
    server.lines("m,host=a x=3 5").await;
    assert_eq!(server.rows("SELECT x, y FROM m").await, json!([[3, 2]]));
    server.engine.flush().unwrap();
    assert_eq!(server.rows("SELECT x, y FROM m").await, json!([[3, 2]]));
}

#[tokio::test]
async fn msgpack_seconds_are_found_by_their_size() {
    let server = Server::new();
    for (time, expected) in [
        (1_700_000_000_i64, "2023-11-14T22:13:20Z"),
        (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
        (1_700_000_000_123_456, "2023-11-14T22:13:20.123456Z"),
        (1_700_000_000_123_456_789, "2023-11-14T22:13:20.123456789Z"),
        (-86_400_000, "1967-04-07T00:00:00Z"),
    ] {
        let table = format!("c{}", time.unsigned_abs());
        let reply = server.pack(&json!({ "m": table, "columns": { "time": [time], "v": [1] } })).await;
        assert_eq!(reply.status, 204, "{reply:?}");
        assert_eq!(server.rows(&format!("SELECT time FROM {table}")).await, json!([[expected]]), "{time}");
    }
}

#[tokio::test]
async fn an_explicit_precision_beats_the_guess() {
    let server = Server::new();
    let body = crate::support::packed(&json!({ "m": "c", "columns": { "time": [-86_400_000], "v": [1] } }));
    assert_eq!(server.post("/api/v1/write/msgpack?db=t&precision=ms", body).await.status, 204);
    assert_eq!(server.rows("SELECT time FROM c").await, json!([["1969-12-31T00:00:00Z"]]));
}

async fn stored(values: Value) -> Value {
    let server = Server::new();
    let reply =
        server.pack(&json!({ "m": "c", "columns": { "time": [1_700_000_000, 1_700_000_001], "v": values } })).await;
    assert_eq!(reply.status, 204, "{reply:?}");
    server.rows("SELECT v FROM c ORDER BY time").await
}

#[tokio::test]
async fn integers_widen_to_floats() {
    assert_eq!(stored(json!([1, 2.9])).await, json!([[1], [2.9]]));
}

#[tokio::test]
async fn a_text_among_numbers_is_refused_once_or_kept_as_text() {
    let server = Server::new();
    let columns = json!({ "time": [1_700_000_000, 1_700_000_001], "v": [1.5, "+Inf"] });
    let reply = server.pack(&json!({ "m": "c", "columns": columns })).await;
    match reply.status.as_u16() {
        204 => assert_eq!(server.rows("SELECT v FROM c ORDER BY time").await, json!([["1.5"], ["+Inf"]])),
        400 => assert!(reply.json()["error"].as_str().unwrap().contains('v'), "{reply:?}"),
        _ => panic!("{reply:?}"),
    }
}

#[tokio::test]
async fn columns_with_an_underscore_are_kept() {
    let server = Server::new();
    let reply = server.pack(&json!({ "m": "c", "columns": { "time": [1_700_000_000], "_x": [1], "v": [2] } })).await;
    assert_eq!(reply.status, 204, "{reply:?}");
    assert_eq!(server.rows("SELECT _x, v FROM c").await, json!([[1, 2]]));
}

#[tokio::test]
async fn rows_keep_their_own_host() {
    let server = Server::new();
    let rows = json!([
        { "m": "c", "t": 1_700_000_000, "fields": { "v": 1 }, "tags": { "host": "a" } },
        { "m": "c", "t": 1_700_000_001, "h": "b", "fields": { "v": 2 } },
    ]);
    let reply = server.pack(&rows).await;
    assert_eq!(reply.status, 204, "{reply:?}");
    assert_eq!(server.rows("SELECT host, v FROM c ORDER BY v").await, json!([["a", 1], ["b", 2]]));
}

#[tokio::test]
async fn a_batch_that_stores_nothing_is_an_error() {
    let server = Server::new();
    assert_eq!(server.pack(&json!({ "batch": [{ "m": "c" }] })).await.status, 400);
}

#[tokio::test]
async fn a_sum_of_integers_is_a_number() {
    let server = Server::new();
    server.lines("c v=1i 1\nc v=2i 2").await;
    assert_eq!(server.rows("SELECT sum(v) FROM c").await, json!([[3]]));
}

#[tokio::test]
async fn a_qualified_name_works_beside_the_header() {
    let server = Server::new();
    server.lines("m v=1i 1").await;
    let headers = [("x-arc-database", "t")];
    let body = json!({ "sql": "SELECT v FROM t.m" }).to_string();
    let reply = server.send(hyper::Method::POST, "/api/v1/query", &headers, body).await;
    assert_eq!(reply.json()["data"], json!([[1]]));
}
