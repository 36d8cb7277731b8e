//! What clients of InfluxDB ask for beside writing and SQL: buckets, organizations, deletes, tables, counters.

use hyper::Method;
use serde_json::{Value, json};

use crate::{auth::Closed, support::Server};

#[tokio::test]
async fn buckets_are_databases() {
    let server = Server::with(|config| config.delete.enabled = true);
    assert_eq!(server.get("/api/v2/orgs?org=plant").await.json()["orgs"][0]["name"], "plant");
    let me = server.get("/api/v2/me").await.json();
    assert_eq!((&me["name"], &me["status"]), (&json!("arc"), &json!("active")));
    assert_eq!(server.get("/api/v2/users").await.json()["users"], json!([me]));
    assert_eq!(server.get("/api/v2/buckets").await.json()["buckets"], json!([]));
    let wanted =
        json!({"name": "telegraf", "orgID": "1", "retentionRules": [{"type": "expire", "everySeconds": 86_400}]});
    let made = server.post("/api/v2/buckets", wanted.to_string()).await;
    assert_eq!(made.status, 201, "{made:?}");
    let id = made.json()["id"].as_str().unwrap().to_owned();
    assert_eq!((id.len(), &made.json()["retentionRules"][0]["everySeconds"]), (16, &json!(86_400)));
    server.post("/api/v2/buckets", wanted.to_string()).await.is(409, "telegraf");
    server.post("/write?db=other", "m v=1 1").await;
    let names = |reply: Value| {
        let buckets = reply["buckets"].as_array().unwrap().clone();
        buckets.iter().map(|bucket| bucket["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(server.get("/api/v2/buckets").await.json()), ["other", "telegraf"]);
    assert_eq!(names(server.get("/api/v2/buckets?name=telegraf").await.json()), ["telegraf"]);
    assert_eq!(names(server.get("/api/v2/buckets?limit=1&offset=1").await.json()), ["telegraf"]);
    assert_eq!(server.get(&format!("/api/v2/buckets/{id}")).await.json()["name"], "telegraf");
    server.get("/api/v2/buckets/0").await.is(404, "bucket not found");
    // What cannot be understood is not left out: a list would be longer, and points kept for ever.
    for query in ["limit=-1", "limit=all", "offset=-1", "offset=1.5"] {
        server.get(&format!("/api/v2/buckets?{query}")).await.is(400, "is not valid; expected 0 to");
    }
    for rules in [json!("1d"), json!({}), json!([1]), json!([{"everySeconds": "86400"}]), json!([{"everySeconds": -1}])]
    {
        let wanted = json!({"name": "ruled", "retentionRules": rules});
        server.post("/api/v2/buckets", wanted.to_string()).await.is(400, "expected \"retentionRules\"");
    }
    for rules in [Value::Null, json!([]), json!([{"type": "expire"}]), json!([{"everySeconds": 0}])] {
        let made = server.post("/api/v2/buckets", json!({"name": "kept", "retentionRules": rules}).to_string()).await;
        assert_eq!((made.status.as_u16(), &made.json()["retentionRules"]), (201, &json!([])), "{made:?}");
        server.engine.drop_database("kept").unwrap();
    }
    assert_eq!(server.send(Method::DELETE, &format!("/api/v2/buckets/{id}"), &[], "").await.status, 204);
    assert_eq!(names(server.get("/api/v2/buckets").await.json()), ["other"]);
    let off = Server::new();
    off.post("/api/v2/buckets", wanted.to_string()).await.is(403, "delete_enabled");
    assert!(off.engine.databases().is_empty(), "nothing is made of what is refused");
}

#[tokio::test]
async fn points_are_deleted_by_time_and_tags() {
    let server = Server::with(|config| config.delete.enabled = true);
    server.lines("cpu,host=a v=1 1\ncpu,host=b v=2 2\ncpu,host=a v=3 1767225600000000000\nmem,host=a v=4 3").await;
    let delete = async |predicate: Value| {
        let body = json!({"start": "1970-01-01T00:00:00Z", "stop": "2000-01-01T00:00:00Z", "predicate": predicate});
        server.post("/api/v2/delete?org=x&bucket=t", body.to_string()).await.status.as_u16()
    };
    let count = async || server.rows("SELECT (SELECT count(*) FROM cpu), (SELECT count(*) FROM mem)").await[0].clone();
    assert_eq!(delete(json!("_measurement=\"cpu\" AND host=\"a\"")).await, 204);
    assert_eq!(count().await, json!([2, 1]));
    assert_eq!(delete(json!("host = a OR host = b")).await, 400);
    assert_eq!(delete(json!("_measurement=\"nothing\"")).await, 404);
    assert_eq!(count().await, json!([2, 1]));
    assert_eq!(delete(Value::Null).await, 204);
    assert_eq!(count().await, json!([1, 0]));
    // A tag that a table has not is empty there, and times that no point can have mean all of them.
    server.lines("air,location=a v=1 10\nair,location=b v=1 10\nh2o,site=x v=1 10\nrain location=1 10").await;
    let all = async |predicate: &str| {
        let body = json!({"start": "0001-01-01T00:00:00Z", "stop": "9999-12-31T23:59:59.999Z", "predicate": predicate});
        server.post("/api/v2/delete?org=x&bucket=t", body.to_string()).await.status.as_u16()
    };
    let left = async || {
        let sql = "SELECT (SELECT count(*) FROM air), (SELECT count(*) FROM h2o), (SELECT count(*) FROM rain)";
        server.rows(sql).await[0].clone()
    };
    for (predicate, status, expected) in [
        ("location=\"a\" AND site=\"x\"", 204, json!([2, 1, 1])),
        ("location=\"a\"", 204, json!([1, 1, 1])),
        ("_measurement=\"h2o\" AND location=\"a\"", 204, json!([1, 1, 1])),
        ("_measurement=\"rain\" AND location=\"1\"", 400, json!([1, 1, 1])),
        ("location!=\"b\" AND site=\"x\"", 204, json!([1, 0, 1])),
        ("", 204, json!([0, 0, 0])),
    ] {
        assert_eq!((all(predicate).await, left().await), (status, expected), "{predicate}");
    }
    let off = Server::new();
    off.post("/api/v2/delete?bucket=t", "{}").await.is(403, "delete_enabled");
}

#[tokio::test]
async fn databases_and_tables_are_made_as_influxdb_3_makes_them() {
    let server = Server::with(|config| config.delete.enabled = true);
    assert_eq!(server.post("/api/v3/configure/database", r#"{"db": "plant"}"#).await.status, 200);
    let fields = json!([{"name": "rpm", "type": "int64"}, {"name": "state", "type": "utf8"}]);
    let table = json!({"db": "plant", "table": "pump", "tags": ["id"], "fields": fields}).to_string();
    assert_eq!(server.post("/api/v3/configure/table", table.clone()).await.status, 200);
    server.post("/api/v3/configure/table", table).await.is(409, "exists already");
    let columns = server.post("/api/v1/query?db=plant", r#"{"sql": "SHOW COLUMNS FROM pump"}"#).await.json();
    let names: Vec<&str> = columns["data"].as_array().unwrap().iter().map(|row| row[3].as_str().unwrap()).collect();
    assert_eq!(names, ["time", "id", "rpm", "state"]);
    assert_eq!(server.get("/api/v3/configure/database?format=json").await.json(), json!([{"iox::database": "plant"}]));
    for (path, body, text) in [
        ("/api/v3/configure/database", "{}", "the key db is missing"),
        ("/api/v3/configure/table", r#"{"db": "plant"}"#, "the key table is missing"),
        (
            "/api/v3/configure/table",
            r#"{"db": "p", "table": "t", "fields": [{"name": "a", "type": "text"}]}"#,
            "expected utf8",
        ),
        ("/api/v3/configure/table", r#"{"db": "p", "table": "t", "tags": "a"}"#, "expected \"tags\""),
    ] {
        server.post(path, body).await.is(400, text);
    }
    let drop = async |path: &str| server.send(Method::DELETE, path, &[], "").await.status.as_u16();
    assert_eq!(drop("/api/v3/configure/table?db=plant&table=pump").await, 200);
    assert_eq!(drop("/api/v3/configure/table?db=plant&table=pump").await, 404);
    assert_eq!(drop("/api/v3/configure/database?db=plant").await, 200);
    assert_eq!(drop("/api/v3/configure/database").await, 400);
}

#[tokio::test]
async fn what_is_asked_first_is_answered() {
    let server = Server::new();
    let health = server.get("/health").await.json();
    assert_eq!((&health["status"], &health["name"]), (&json!("pass"), &json!("arc")));
    assert_eq!(server.get("/api/v2/setup").await.json()["allowed"], false);
    server.post("/api/v2/setup", "{}").await.is(422, "admin.token");
    let ready = server.get("/api/v2/ready").await.json();
    assert!(ready["status"] == "ready" && ready["started"].is_string(), "{ready}");
    assert_eq!(server.get("/ready/write").await.status, 200);
    server.lines("m v=1 1").await;
    let vars = server.get("/debug/vars").await.json();
    assert_eq!(vars["database:t"]["values"]["numMeasurements"], 1);
    assert_eq!((&vars["httpd"]["values"]["writeReq"], &vars["write"]["values"]["pointReq"]), (&json!(1), &json!(1)));
    assert!(vars["memstats"]["Alloc"].as_u64().unwrap() > 0, "{vars}");
}

#[tokio::test]
async fn every_answer_has_the_name_of_its_request() {
    let server = Server::new();
    let first = server.get("/health").await.header("x-request-id").to_owned();
    assert_eq!(first.len(), 26);
    assert_ne!(server.get("/nothing").await.header("x-request-id"), first);
    let named = server.send(Method::GET, "/health", &[("x-request-id", "trace-7/a")], "").await;
    assert_eq!(named.header("x-request-id"), "trace-7/a");
    let Closed { server, .. } = Closed::new();
    assert!(!server.get("/api/v1/databases").await.header("x-request-id").is_empty());
}

#[tokio::test]
async fn each_of_it_asks_what_a_token_may() {
    let closed = Closed::with(|config| config.delete.enabled = true);
    for database in ["plant", "office"] {
        closed.send(&closed.admin, Method::POST, &format!("/write?db={database}"), "m v=1 1").await;
    }
    let rights = json!({"name": "plant", "permissions": ["read", "write", "delete"], "databases": ["plant"]});
    let token = closed.token(rights).await;
    let send = async |method: Method, path: &str, body: &str| closed.send(&token, method, path, body).await;
    let buckets = send(Method::GET, "/api/v2/buckets", "").await.json();
    assert_eq!(buckets["buckets"].as_array().unwrap().len(), 1);
    let all = closed.send(&closed.admin, Method::GET, "/api/v2/buckets?name=office", "").await.json();
    let office = all["buckets"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(send(Method::GET, &format!("/api/v2/buckets/{office}"), "").await.status, 404);
    assert_eq!(send(Method::DELETE, &format!("/api/v2/buckets/{office}"), "").await.status, 404);
    let vars = send(Method::GET, "/debug/vars", "").await.json();
    assert!(vars.get("database:plant").is_some() && vars.get("database:office").is_none());
    let listed = send(Method::GET, "/api/v3/configure/database", "").await.json();
    assert_eq!(listed, json!([{"iox::database": "plant"}]));
    let range = json!({"start": "1970-01-01T00:00:00Z", "stop": "2000-01-01T00:00:00Z"}).to_string();
    for (method, path, body) in [
        (Method::POST, "/api/v2/buckets", r#"{"name": "office"}"#),
        (Method::POST, "/api/v2/buckets", r#"{"name": "plant", "retentionRules": [{"everySeconds": 1}]}"#),
        (Method::POST, "/api/v2/delete?bucket=office", range.as_str()),
        (Method::POST, "/api/v3/configure/database", r#"{"db": "office"}"#),
        (Method::DELETE, "/api/v3/configure/database?db=office", ""),
        (Method::POST, "/api/v3/configure/table", r#"{"db": "office", "table": "t"}"#),
        (Method::DELETE, "/api/v3/configure/table?db=office&table=m", ""),
    ] {
        send(method, path, body).await.is(403, "Permission denied");
    }
    assert_eq!(send(Method::POST, "/api/v2/delete?bucket=plant", &range).await.status, 204);
}
