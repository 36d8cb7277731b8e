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
    server.post("/query?q=CREATE%20DATABASE%20c;%20DROP%20DATABASE%20c", "").await.is(400, "limited to");
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
