//! Continuous queries: made, changed, executed, run by themselves, and kept to their own database.

use hyper::Method;
use serde_json::{Value, json};

use crate::{
    auth::Closed,
    import_http::{form, upload},
    process::{Connection, Running},
    support::Server,
};

const PATH: &str = "/api/v1/continuous_queries";

fn hourly() -> Value {
    json!({
        "name": "hourly",
        "database": "plant",
        "source_measurement": "pump",
        "destination_measurement": "pump_hourly",
        "query": "SELECT date_trunc('hour', time) AS time, id, avg(rpm) AS rpm FROM pump \
                  WHERE time >= {start_time} AND time < '{end_time}' GROUP BY 1, 2",
        "interval": "1h",
    })
}

fn with(key: &str, value: Value) -> String {
    let mut query = hourly();
    query[key] = value;
    query.to_string()
}

async fn execute(server: &Server, window: &str) -> Value {
    let reply = server.post(&format!("{PATH}/1/execute"), window.to_owned()).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()
}

#[tokio::test]
async fn a_window_that_is_executed_again_is_replaced() {
    let server = Server::new();
    let hour = 3_600_000_000_000_u64;
    server.post("/write?db=plant", format!("pump,id=7 rpm=10 {hour}\npump,id=7 rpm=20 {}", hour + 1)).await;
    assert_eq!(server.post(PATH, hourly().to_string()).await.status, 201);
    let day = r#"{"start_time": "1970-01-01T00:00:00Z", "end_time": "1970-01-02"}"#;
    let dry = execute(&server, r#"{"start_time": "1970-01-01", "end_time": "1970-01-02", "dry_run": true}"#).await;
    assert_eq!(
        (&dry["status"], &dry["records_written"], &dry["execution_id"]),
        (&json!("dry_run"), &json!(1), &json!(""))
    );
    assert!(
        dry["executed_query"]
            .as_str()
            .unwrap()
            .contains("time >= '1970-01-01T00:00:00Z' AND time < '1970-01-02T00:00:00Z'")
    );
    let rows = async || server.rows("SELECT id, rpm FROM plant.pump_hourly ORDER BY id").await;
    server.ask("SELECT * FROM plant.pump_hourly").await.is(404, "pump_hourly");
    let done = execute(&server, day).await;
    assert_eq!((&done["status"], &done["records_written"]), (&json!("completed"), &json!(1)));
    assert_eq!(rows().await, json!([["7", 15]]));
    // Points that came late.
    server.post("/write?db=plant", format!("pump,id=7 rpm=60 {}\npump,id=8 rpm=1 {hour}", hour + 2)).await;
    assert_eq!(execute(&server, day).await["records_written"], 2);
    assert_eq!(rows().await, json!([["7", 30], ["8", 1]]));
    let shown = server.get(&format!("{PATH}/1")).await.json();
    assert_eq!(
        (&shown["last_processed_time"], &shown["last_records_written"]),
        (&json!("1970-01-02T00:00:00Z"), &json!(2))
    );
    let executions = server.get(&format!("{PATH}/1/executions?limit=1")).await.json();
    assert_eq!((&executions["query_id"], executions["executions"].as_array().unwrap().len()), (&json!(1), 1));
    // What it was, and what it has done, is there after a restart.
    let before = server.get(PATH).await.json();
    let server = server.reopened();
    assert_eq!(server.get(PATH).await.json(), before);
    // From where it has come to until now, there is nothing.
    assert_eq!(execute(&server, "").await["records_written"], 0);
    server
        .post(&format!("{PATH}/1/execute"), day.replace("02", "01"))
        .await
        .is(400, "start_time is not before end_time");
    assert_eq!(server.send(Method::DELETE, &format!("{PATH}/1"), &[], "").await.status, 200);
    server.get(&format!("{PATH}/1")).await.is(404, "continuous query \"1\" not found");
}

#[tokio::test]
async fn a_window_without_a_column_of_text_is_replaced_as_well() {
    let server = Server::new();
    let hour = 3_600_000_000_000_u64;
    server.post("/write?db=plant", format!("pump,id=7 rpm=10 {hour}\npump,id=8 rpm=20 {}", 2 * hour)).await;
    let query = "SELECT date_trunc('hour', time) AS time, avg(rpm) AS rpm FROM pump \
                 WHERE time >= {start_time} AND time < {end_time} GROUP BY 1";
    assert_eq!(server.post(PATH, with("query", json!(query))).await.status, 201);
    for rpm in [20, 30, 40] {
        execute(&server, r#"{"start_time": "1970-01-01", "end_time": "1970-01-02"}"#).await;
        let rows = server.rows("SELECT rpm FROM plant.pump_hourly ORDER BY time").await;
        assert_eq!(rows, json!([[10], [rpm]]));
        server.post("/write?db=plant", format!("pump,id=8 rpm={} {}", rpm + 10, 2 * hour)).await;
    }
    // A table that appends would have each row once more.
    let log = form("file", "log.csv", b"time,rpm\n2024-01-01,1\n");
    let imported = upload(&server, "/api/v1/import/csv?db=plant&measurement=log", &[], log).await;
    assert_eq!(imported.status, 200, "{imported:?}");
    server.post(PATH, with("destination_measurement", json!("log"))).await.is(400, "has no primary key");
}

#[tokio::test]
async fn a_query_is_changed_and_what_it_cannot_be_is_refused() {
    let server = Server::with(|config| config.delete.enabled = true);
    server.post("/write?db=plant", "pump,id=7 rpm=10 1").await;
    assert_eq!(server.post(PATH, hourly().to_string()).await.status, 201);
    server.post(PATH, hourly().to_string()).await.is(400, "there is a continuous query named \"hourly\" already");
    for (body, reason) in [
        ("[]".to_owned(), "expected {"),
        ("{".to_owned(), ""),
        (r#"{"name": "x"}"#.to_owned(), "the key database is missing"),
        (with("interval", json!("soon")), "interval"),
        (with("interval", json!(5)), "interval"),
        (with("query", json!("SELECT 1")), "{start_time} is missing"),
        (with("query", json!("DELETE FROM pump WHERE time < {start_time} OR time > {end_time}")), "expected a SELECT"),
        (with("query", json!("SELEC {start_time}, {end_time}")), "query: "),
        (with("query", json!("SELECT bar FROM pump WHERE time >= {start_time} AND time < {end_time}")), "bar"),
        (with("query", json!("SELECT rpm FROM pump WHERE time >= {start_time} AND time < {end_time}")), "named time"),
        (with("query", json!("EXPLAIN SELECT time FROM pump WHERE time IN ({start_time}, {end_time})")), "named time"),
        (with("query", json!("SELECT time FROM pump WHERE time IN ({start_time}, {end_time}, $1)")), "placeholder $1"),
        (with("tag_columns", json!("id")), "tag_columns"),
        (with("retention_days", json!(-1)), "retention_days"),
        (with("is_active", json!("yes")), "is_active"),
        (with("every", json!("1h")), "\"every\" is not known"),
        (with("destination_measurement", json!("pump")), "destination_measurement"),
    ] {
        server.post(PATH, body).await.is(400, reason);
    }
    let put = async |body: Value| server.send(Method::PUT, &format!("{PATH}/1"), &[], body.to_string()).await;
    let changed = put(json!({"interval": "30m", "delete_source_after_days": 3, "tag_columns": ["id"]})).await.json();
    assert_eq!(
        (&changed["interval"], &changed["name"], &changed["tag_columns"]),
        (&json!("30m"), &json!("hourly"), &json!(["id"]))
    );
    assert_eq!(server.get("/api/v1/retention/plant/pump").await.json()["retention_days"], 3);
    put(json!({"interval": "0s"})).await.is(400, "interval");
    assert_eq!(server.get(&format!("{PATH}/1")).await.json()["interval"], "30m");
    let names = async |filter: &str| server.get(&format!("{PATH}?{filter}")).await.json().as_array().unwrap().len();
    assert_eq!((names("").await, names("database=plant").await, names("database=mill").await), (1, 1, 0));
    assert_eq!((names("is_active=true").await, names("is_active=false").await), (0, 1));
    server.get(&format!("{PATH}?is_active=perhaps")).await.is(400, "is_active");
    server.get(&format!("{PATH}/none")).await.is(404, "not found");
    server.post(&format!("{PATH}/1/execute"), r#"{"start_time": "noon"}"#).await.is(400, "start_time");
    server.post(&format!("{PATH}/1/execute"), r#"{"from": 1}"#).await.is(400, "\"from\" is not understood");
    let careful = Server::new();
    careful.post(PATH, with("retention_days", json!(3))).await.is(403, "delete_enabled");
}

#[tokio::test]
async fn a_query_reads_its_own_database_whoever_made_it() {
    let closed = Closed::new();
    let admin = closed.admin.clone();
    let write = "/write?db=";
    for database in ["plant", "mill"] {
        closed.send(&admin, Method::POST, &format!("{write}{database}"), "pump,id=7 rpm=10 1").await;
    }
    let grant = json!({"name": "plant", "grants": [{"rights": ["admin"], "databases": ["plant"]}]});
    let token = closed.token(grant).await;
    let reader = closed.token(json!({"name": "reader", "permissions": ["read"], "databases": ["plant"]})).await;
    let post = async |token: &str, path: &str, body: &str| closed.send(token, Method::POST, path, body).await;
    post(&reader, PATH, &hourly().to_string()).await.is(403, "admin required");
    post(&token, PATH, &with("database", json!("mill"))).await.is(403, "mill");
    post(&token, PATH, &with("database", json!("_internal"))).await.is(403, "_internal");
    let other = "SELECT time, id, rpm FROM mill.pump WHERE time >= {start_time} AND time < {end_time}";
    assert_eq!(post(&token, PATH, &with("query", json!(other))).await.status, 201);
    let day = r#"{"start_time": "1970-01-01", "end_time": "1970-01-02"}"#;
    // Not even what the administrator executes.
    for token in [&token, &admin] {
        post(token, &format!("{PATH}/1/execute"), day).await.is(404, "mill");
    }
    let last =
        closed.send(&admin, Method::GET, &format!("{PATH}/1/executions"), "").await.json()["executions"][0].clone();
    assert!(last["status"] == "failed" && last["error_message"].as_str().unwrap().contains("mill"), "{last}");
    for path in [format!("{PATH}/1"), format!("{PATH}/1/executions")] {
        closed.send(&reader, Method::GET, &path, "").await.is(403, "admin required");
    }
    assert_eq!(closed.send(&reader, Method::GET, PATH, "").await.json(), json!([]));
}

#[test]
fn an_active_query_runs_by_itself_and_goes_on_after_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let start = || Running::start(&dir.path().join("data"));
    let server = start();
    let post = |server: &Running, path: &str, body: &str| {
        Connection::open(server.address).unwrap().post(path, body).unwrap().0
    };
    let mut query = hourly();
    query["query"] = json!("SELECT time, id, rpm FROM pump WHERE time >= {start_time} AND time < {end_time}");
    (query["interval"], query["is_active"], query["database"]) = (json!("1s"), json!(true), json!("t"));
    assert_eq!(post(&server, PATH, &query.to_string()), 201);
    let until = |server: &Running, id: &str| {
        // Points of now, again and again: each second is a window.
        loop {
            assert_eq!(post(server, "/write?db=t", &format!("pump,id={id} rpm=1")), 204);
            let sql = "SELECT count(*) FROM information_schema.tables WHERE table_name = 'pump_hourly'";
            if server.query(sql) == json!([[1]]) {
                let found = server.query(&format!("SELECT count(*) FROM pump_hourly WHERE id = '{id}'"));
                if found != json!([[0]]) {
                    return;
                }
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    };
    until(&server, "1");
    server.kill();
    until(&start(), "2");
}
