//! What InfluxDB clients ask for before they write.

use hyper::Method;
use serde_json::json;

use crate::support::Server;

#[tokio::test]
async fn ping_names_a_version() {
    let reply = Server::new().get("/ping").await;
    assert_eq!(reply.status, 204);
    assert!(reply.header("x-influxdb-version").starts_with("1."));
    let verbose = Server::new().get("/ping?verbose=true").await;
    assert_eq!(
        (verbose.status.as_u16(), verbose.json()),
        (200, json!({ "version": reply.header("x-influxdb-version") }))
    );
    assert_eq!(Server::new().post("/ping", "").await.status, 204);
}

#[tokio::test]
async fn statements_may_come_together() {
    let server = Server::new();
    let reply = server.post("/query?q=CREATE%20DATABASE%20%22a;b%22;%20SHOW%20DATABASES;", "").await;
    assert_eq!(
        reply.json(),
        json!({ "results": [
            { "statement_id": 0 },
            { "statement_id": 1, "series": [{ "name": "databases", "columns": ["name"], "values": [["a;b"]] }] },
        ] })
    );
    server.post("/query?q=CREATE%20DATABASE%20c;%20DROP%20MEASUREMENT%20c", "").await.is(400, "limited to");
    assert_eq!(server.get("/api/v1/databases").await.json()["count"], 1);
}

#[tokio::test]
async fn create_database_works_as_telegraf_sends_it() {
    let server = Server::new();
    let form = [("content-type", "application/x-www-form-urlencoded")];
    for _ in 0..2 {
        let reply = server.send(Method::POST, "/query", &form, "q=CREATE+DATABASE+%22telegraf%22").await;
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(reply.json(), json!({ "results": [{ "statement_id": 0 }] }));
    }
    let reply = server.post("/query?q=CREATE%20DATABASE%20%22my%20db%22", "").await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let answer = server.get("/query?q=SHOW%20DATABASES").await.json();
    assert_eq!(answer["results"][0]["series"][0]["values"], json!([["my db"], ["telegraf"]]));
}

#[tokio::test]
async fn other_influxql_is_refused() {
    let server = Server::new();
    server.get("/query").await.is(400, "missing required parameter");
    server.get("/query?q=SELECT%20*%20FROM%20cpu").await.is(400, "use SQL at /api/v1/query");
    server.post("/query?q=CREATE%20DATABASE%20%22a%0Ab%22", "").await.is(400, "database name");
    server.send(Method::DELETE, "/query", &[], "").await.is(405, "");
    assert_eq!(server.get("/api/v1/databases").await.json()["count"], 0);
}

#[tokio::test]
async fn measurements_and_retention_policies_are_shown() {
    let server = Server::new();
    server.lines("b v=1\na v=1").await;
    server.engine.create_database("empty").unwrap();
    let month = std::time::Duration::from_secs(30 * 86_400 + 61);
    server.engine.set_retention("t", None, Some(month)).unwrap();
    let shown = async |query: &str| server.get(&format!("/query?{query}")).await.json()["results"][0].clone();
    let names = json!([{"name": "measurements", "columns": ["name"], "values": [["a"], ["b"]]}]);
    assert_eq!(shown("db=t&q=SHOW+MEASUREMENTS").await, json!({"statement_id": 0, "series": names}));
    assert_eq!(shown("q=SHOW+MEASUREMENTS+ON+%22t%22").await["series"], names);
    assert_eq!(shown("db=t&q=SHOW+MEASUREMENTS+LIMIT+1").await["series"][0]["values"], json!([["a"]]));
    assert_eq!(shown("db=empty&q=SHOW+MEASUREMENTS").await, json!({"statement_id": 0}));
    let policies = shown("db=empty&q=SHOW+RETENTION+POLICIES+ON+t").await["series"][0].clone();
    assert_eq!(policies["columns"], json!(["name", "duration", "shardGroupDuration", "replicaN", "default"]));
    assert_eq!(policies["values"], json!([["autogen", "720h1m1s", "24h0m0s", 1, true]]));
    assert_eq!(shown("q=SHOW+RETENTION+POLICIES+ON+empty").await["series"][0]["values"][0][1], "0h0m0s");
    for (query, status, expected) in [
        ("q=SHOW+MEASUREMENTS", 400, "database name required"),
        ("q=SHOW+RETENTION+POLICIES", 400, "database name required"),
        ("db=nowhere&q=SHOW+MEASUREMENTS", 404, "nowhere"),
        ("q=SHOW+RETENTION+POLICIES+ON+nowhere", 404, "nowhere"),
        ("db=t&q=SHOW+MEASUREMENTS+LIMIT+-1", 400, "limited to"),
    ] {
        server.get(&format!("/query?{query}")).await.is(status, expected);
    }
}

#[tokio::test]
async fn databases_are_dropped_where_deletes_are_allowed() {
    let server = Server::with(|config| config.delete.enabled = true);
    server.lines("m v=1").await;
    server.get("/query?q=DROP+DATABASE+t").await.is(405, "send CREATE DATABASE and DROP DATABASE with POST");
    assert_eq!(server.engine.databases().len(), 1);
    for name in ["t", "t", "%22never+there%22"] {
        let reply = server.post(&format!("/query?q=DROP+DATABASE+{name}"), "").await;
        assert_eq!(reply.json(), json!({"results": [{"statement_id": 0}]}), "{name}");
    }
    assert!(server.engine.databases().is_empty());
    let off = Server::new();
    off.lines("m v=1").await;
    off.post("/query?q=DROP+DATABASE+t", "").await.is(403, "delete_enabled");
    let closed = crate::auth::Closed::with(|config| config.delete.enabled = true);
    closed.send(&closed.admin, Method::POST, "/write?db=office", "secret v=1").await;
    closed.send(&closed.admin, Method::POST, "/write?db=plant", "pump v=1\nvalve v=1").await;
    let rights = json!({"name": "a", "permissions": ["read", "write"], "databases": ["plant"], "tables": ["pump"]});
    let user = closed.token(rights).await;
    closed.send(&user, Method::POST, "/query?q=DROP+DATABASE+plant", "").await.is(403, "delete required");
    for path in ["/query?db=office&q=SHOW+MEASUREMENTS", "/query?q=SHOW+RETENTION+POLICIES+ON+office"] {
        closed.send(&user, Method::GET, path, "").await.is(403, "office");
    }
    let shown = closed.send(&user, Method::GET, "/query?db=plant&q=SHOW+MEASUREMENTS", "").await.json();
    assert_eq!(shown["results"][0]["series"][0]["values"], json!([["pump"]]));
    let reply = closed.send(&closed.admin, Method::POST, "/query?q=DROP+DATABASE+office", "").await;
    assert_eq!(reply.status, 200, "{reply:?}");
}
