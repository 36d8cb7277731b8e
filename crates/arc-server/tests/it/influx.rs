//! What InfluxDB clients ask for before they write.

use hyper::Method;
use serde_json::json;

use crate::support::{Server, gzip};

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

/// Home Assistant's set-up writes nothing to find out whether it may write.
#[tokio::test]
async fn a_write_of_nothing_is_stored() {
    let server = Server::new();
    for path in ["/write?db=t", "/api/v2/write?bucket=t&org=o"] {
        for body in ["", "\n", "# comment", "\r\n\n#\n  \n"] {
            for body in [body.as_bytes().to_vec(), gzip(body.as_bytes())] {
                let reply = server.post(path, body).await;
                assert_eq!((reply.status.as_u16(), reply.header("x-arc-points")), (204, "0"), "{path}: {reply:?}");
            }
        }
        server.post(path, "\nm\n").await.is(400, "");
    }
    assert!(server.engine.databases().is_empty() || server.engine.tables("t").is_ok_and(|tables| tables.is_empty()));
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
    server.post("/query?q=CREATE%20DATABASE%20c;%20DROP%20SERIES%20c", "").await.is(400, "limited to");
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
async fn databases_and_measurements_are_shown_and_dropped() {
    let server = Server::with(|config| config.delete.enabled = true);
    server.post("/write?db=plant", "pump,id=1 rpm=1 1\nvalve open=1 1").await;
    let ask = async |q: &str| server.post(&format!("/query?q={}", q.replace(' ', "%20")), "").await;
    let series = async |q: &str| ask(q).await.json()["results"][0]["series"][0].clone();
    let measurements = json!({ "name": "measurements", "columns": ["name"], "values": [["pump"], ["valve"]] });
    assert_eq!(series("SHOW MEASUREMENTS ON plant").await, measurements);
    assert_eq!(series("SHOW MEASUREMENTS&db=plant").await, measurements);
    let policies = async || series("SHOW RETENTION POLICIES ON plant").await["values"].clone();
    assert_eq!(policies().await, json!([["autogen", "0s", "24h0m0s", 1, true]]));
    let days = r#"{"retention_days": 1.5}"#;
    assert_eq!(server.send(Method::PUT, "/api/v1/retention/plant", &[], days).await.status, 200);
    assert_eq!(policies().await, json!([["autogen", "36h0m0s", "24h0m0s", 1, true]]));
    assert_eq!(ask("DROP MEASUREMENT valve&db=plant").await.json(), json!({ "results": [{ "statement_id": 0 }] }));
    assert_eq!(series("SHOW MEASUREMENTS ON plant").await["values"], json!([["pump"]]));
    // As in InfluxDB, it may be gone.
    for _ in 0..2 {
        assert_eq!(ask("DROP DATABASE plant").await.status, 200);
    }
    assert_eq!(server.get("/api/v1/databases").await.json()["count"], 0);
    ask("SHOW MEASUREMENTS").await.is(400, "no database is named");
    ask("SHOW MEASUREMENTS ON plant").await.is(404, "plant");
    ask("DROP MEASUREMENT pump&db=plant").await.is(404, "plant");
    server.get("/query?q=DROP%20DATABASE%20plant").await.is(405, "GET changes nothing");
    let careful = Server::new();
    careful.post("/write?db=plant", "pump rpm=1 1").await;
    careful.post("/query?q=DROP%20DATABASE%20plant", "").await.is(403, "delete_enabled");
}

#[tokio::test]
async fn a_retention_policy_is_how_long_a_database_keeps_its_points() {
    let server = Server::with(|config| config.delete.enabled = true);
    let ask = async |q: &str| server.post(&format!("/query?q={}", q.replace(' ', "%20")), "").await;
    let kept = async || server.get("/api/v1/retention/plant").await.json()["retention_days"].clone();
    assert_eq!(ask("CREATE DATABASE plant WITH DURATION 30d REPLICATION 1 NAME month").await.status, 200);
    assert_eq!(kept().await, 30);
    // Agents ask at each start.
    assert_eq!(ask("CREATE DATABASE plant WITH DURATION 720h").await.status, 200);
    assert_eq!(ask("CREATE DATABASE plant").await.status, 200);
    ask("CREATE DATABASE plant WITH DURATION 1d").await.is(409, "ALTER RETENTION POLICY");
    assert_eq!(kept().await, 30);
    assert_eq!(ask("CREATE RETENTION POLICY week ON plant DURATION 1w REPLICATION 1 DEFAULT").await.status, 200);
    assert_eq!(kept().await, 7);
    ask("CREATE RETENTION POLICY day ON plant DURATION 1d REPLICATION 1").await.is(400, "expected DEFAULT");
    ask("ALTER RETENTION POLICY week ON plant DURATION 5m").await.is(400, "one hour");
    ask("ALTER RETENTION POLICY week ON plant DURATION long").await.is(400, "ALTER RETENTION POLICY");
    ask("ALTER RETENTION POLICY week ON mill DURATION 2d").await.is(404, "mill");
    server.get("/query?q=ALTER%20RETENTION%20POLICY%20x%20ON%20plant%20DURATION%201d").await.is(405, "ALTER");
    assert_eq!(kept().await, 7);
    assert_eq!(ask("ALTER RETENTION POLICY week ON plant DURATION INF").await.status, 200);
    server.get("/api/v1/retention/plant").await.is(404, "no retention is set");
    let careful = Server::new();
    careful.post("/query?q=CREATE%20DATABASE%20x%20WITH%20DURATION%201d", "").await.is(403, "delete_enabled");
    assert_eq!(careful.get("/api/v1/databases").await.json()["count"], 0);
}
