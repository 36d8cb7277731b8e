//! Columns of text by their name, and columns that change their type, over HTTP.

use hyper::Method;
use serde_json::{Value, json};

use crate::support::Server;

#[tokio::test]
async fn a_database_and_a_measurement_say_how_strict_they_are() {
    let mut server = Server::new();
    let created = r#"{"name": "t", "string_columns": ["attr_*"], "on_conflict": "widen"}"#;
    let reply = server.post("/api/v1/databases", created).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    assert_eq!((&reply.json()["string_columns"], &reply.json()["on_conflict"]), (&json!(["attr_*"]), &json!("widen")));
    assert_eq!(server.post("/write?db=t", "m attr_a=1i,v=1i 1\nm attr_a=true,v=2.5 2\nm v=t 3").await.status, 204);
    let path = "/api/v1/databases/t/measurements/m";
    let one = |reply: Value| (reply["string_columns"].clone(), reply["on_conflict"].clone());
    for _ in 0..2 {
        let described = server.get(path).await.json();
        assert_eq!(described["columns"][1], json!({ "name": "attr_a", "type": "Utf8" }));
        assert_eq!(described["columns"][2], json!({ "name": "v", "type": "Utf8" }));
        let rows = server.post("/api/v1/query", r#"{"sql": "SELECT attr_a, v FROM t.m ORDER BY time"}"#).await.json();
        assert_eq!(rows["data"], json!([["1", "1"], ["true", "2.5"], [null, "true"]]));
        server = server.reopened();
    }
    // A measurement goes by its database where it says nothing itself.
    let changed = server.send(Method::PATCH, path, &[], r#"{"on_conflict": "reject"}"#).await;
    assert_eq!((changed.status.as_u16(), one(changed.json())), (200, (json!(["attr_*"]), json!("reject"))));
    assert_eq!(server.post("/write?db=t", "m w=1i 1\nm w=2.5 2").await.status, 400);
    assert_eq!(server.post("/write?db=t", "n w=1i 1\nn w=2.5 2").await.status, 204);
    let changed = server.send(Method::PATCH, path, &[], r#"{"on_conflict": null, "string_columns": []}"#).await;
    assert_eq!(one(changed.json()), (json!([]), json!("widen")));
    let changed = server.send(Method::PATCH, "/api/v1/databases/t", &[], r#"{"string_columns": null}"#).await;
    assert_eq!(one(changed.json()), (Value::Null, json!("widen")));
    assert_eq!(one(server.get("/api/v1/databases/t").await.json()), (Value::Null, json!("widen")));
}

#[tokio::test]
async fn a_database_and_a_measurement_say_the_unit_of_times_in_files() {
    let mut server = Server::new();
    let reply = server.post("/api/v1/databases", r#"{"name": "t", "time_unit": "ms"}"#).await;
    assert_eq!((reply.status.as_u16(), &reply.json()["time_unit"]), (201, &json!("ms")));
    assert_eq!(server.post("/write?db=t", "m v=1i 1000000").await.status, 204);
    let path = "/api/v1/databases/t/measurements/m";
    assert_eq!(server.get(path).await.json()["time_unit"], json!("ms"));
    let changed = server.send(Method::PATCH, path, &[], r#"{"time_unit": "us"}"#).await;
    assert_eq!((changed.status.as_u16(), &changed.json()["time_unit"]), (200, &json!("us")));
    server = server.reopened();
    assert_eq!(server.get(&format!("{path}/column-types")).await.json(), json!({ "time_unit": "us" }));
    let changed = server.send(Method::PATCH, "/api/v1/databases/t", &[], r#"{"time_unit": null}"#).await;
    assert_eq!((changed.status.as_u16(), &changed.json()["time_unit"]), (200, &Value::Null));
    let changed = server.send(Method::PATCH, path, &[], r#"{"time_unit": null}"#).await;
    assert_eq!(changed.json()["time_unit"], Value::Null);
}

#[tokio::test]
async fn a_database_and_a_measurement_say_what_becomes_of_finer_times() {
    let mut server = Server::new();
    let created = r#"{"name": "t", "time_unit": "ms", "finer_times": "round"}"#;
    let reply = server.post("/api/v1/databases", created).await;
    assert_eq!((reply.status.as_u16(), &reply.json()["finer_times"]), (201, &json!("round")));
    assert_eq!(server.post("/write?db=t", "m v=1i 1000000\nm v=2i 1000001").await.status, 204);
    let rows = server.post("/api/v1/query", r#"{"sql": "SELECT time, v FROM t.m"}"#).await.json();
    assert_eq!(rows["data"], json!([["1970-01-01T00:00:00.001Z", 2]]));
    let path = "/api/v1/databases/t/measurements/m";
    assert_eq!(server.get(path).await.json()["finer_times"], json!("round"));
    let changed = server.send(Method::PATCH, path, &[], r#"{"finer_times": "reject"}"#).await;
    assert_eq!((changed.status.as_u16(), &changed.json()["finer_times"]), (200, &json!("reject")));
    server = server.reopened();
    assert_eq!(server.post("/write?db=t", "m v=3i 2000001").await.status, 400);
    assert_eq!(server.post("/write?db=t", "m v=3i 2000000").await.status, 204);
    let in_force = server.get(&format!("{path}/column-types")).await.json();
    assert_eq!(in_force, json!({ "time_unit": "ms", "finer_times": "reject" }));
    let changed = server.send(Method::PATCH, "/api/v1/databases/t", &[], r#"{"finer_times": null}"#).await;
    assert_eq!((changed.status.as_u16(), &changed.json()["finer_times"]), (200, &Value::Null));
    let changed = server.send(Method::PATCH, path, &[], r#"{"finer_times": null}"#).await;
    assert_eq!(changed.json()["finer_times"], Value::Null);
    assert_eq!(server.post("/write?db=t", "m v=4i 2000001").await.status, 204);
}

#[tokio::test]
async fn what_cannot_be_set_is_said() {
    let server = Server::new();
    server.lines("m attr_a=1i 1").await;
    let (database, table) = ("/api/v1/databases/t", "/api/v1/databases/t/measurements/m");
    for (path, body, status, expected) in [
        (database, r#"{"string_columns": "attr_*"}"#, 400, "expected an array of patterns"),
        (
            database,
            r#"{"string_columns": ["attr_*"]}"#,
            400,
            "\"attr_a\" of table \"m\" matches and is integer already",
        ),
        (table, r#"{"string_columns": [""]}"#, 400, "it is empty"),
        (table, r#"{"on_conflict": "drop"}"#, 400, "expected reject or widen"),
        (table, r#"{"on_conflict": 1}"#, 400, "expected \\\"reject\\\" or \\\"widen\\\""),
        (table, r#"{"time_unit": "s"}"#, 400, "expected ns, us or ms"),
        (database, r#"{"time_unit": 1}"#, 400, "expected \\\"ns\\\", \\\"us\\\" or \\\"ms\\\""),
        (table, r#"{"finer_times": "drop"}"#, 400, "expected keep, reject or round"),
        (database, r#"{"finer_times": 1}"#, 400, "expected \\\"keep\\\", \\\"reject\\\" or \\\"round\\\""),
        (table, r#"{"durability": "disk"}"#, 400, "unknown key \\\"durability\\\""),
        (table, "{}", 400, "expected"),
        ("/api/v1/databases/t/measurements/n", r#"{"on_conflict": "widen"}"#, 404, "n"),
        ("/api/v1/databases/u", r#"{"on_conflict": "widen"}"#, 404, "u"),
    ] {
        let reply = server.send(Method::PATCH, path, &[], body).await;
        reply.is(status, &expected.replace("\\\"", "\""));
    }
    server.post("/api/v1/databases", r#"{"name": "new", "string_columns": ["\u0001"]}"#).await.is(400, "control");
    assert_eq!(server.get("/api/v1/databases/new").await.status, 404);
    // As ever.
    let reply = server.post("/write?db=t", "m attr_a=0.5 2").await;
    reply.is(400, "field type conflict");
}

#[tokio::test]
async fn the_settings_of_the_server_hold_where_nobody_says_anything() {
    let server = Server::with(|config| {
        config.engine.column_types = arc_core::ColumnTypes::new()
            .string_columns(["attr_*"])
            .on_conflict(arc_core::OnConflict::Widen)
            .time_unit(arc_core::FileTimeUnit::Millisecond)
            .finer_times(arc_core::FinerTimes::Round);
    });
    // As the SDK does, which has integers and floats in one column.
    for value in ["1", "2.5"] {
        let body = rmp_serde::to_vec_named(&json!({
            "m": "cpu", "columns": { "time": [1_700_000_000_000_i64], "v": [serde_json::from_str::<Value>(value).unwrap()] }
        }));
        assert_eq!(server.post("/api/v1/write/msgpack?db=t", body.unwrap()).await.status, 204);
    }
    let rows = server.post("/api/v1/query", r#"{"sql": "SELECT v FROM t.cpu ORDER BY v"}"#).await.json();
    assert_eq!(rows["data"], json!([[1], [2.5]]));
    let described = server.get("/api/v1/databases/t").await.json();
    assert_eq!(described["on_conflict"], Value::Null);
    for path in ["t/measurements/cpu", "t/measurements/none", "none/measurements/none"] {
        let in_force = server.get(&format!("/api/v1/databases/{path}/column-types")).await.json();
        let expected = json!({
            "on_conflict": "widen", "string_columns": ["attr_*"], "time_unit": "ms", "finer_times": "round"
        });
        assert_eq!(in_force, expected);
    }
    let described = server.get("/api/v1/databases/t/measurements/cpu").await.json();
    assert_eq!((&described["on_conflict"], &described["string_columns"]), (&json!("widen"), &json!(["attr_*"])));
}
