//! Deletes over HTTP.

use serde_json::{Value, json};

use crate::support::{Reply, Server};

const PATH: &str = "/api/v1/delete";

fn server() -> Server {
    Server::with(|config| {
        config.delete.enabled = true;
        config.delete.confirmation_threshold = 2;
        config.delete.max_rows = 3;
    })
}

async fn delete(server: &Server, condition: &str, more: &Value) -> Reply {
    let mut body = json!({ "database": "t", "measurement": "m", "where": condition });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    server.post(PATH, body.to_string()).await
}

async fn count(server: &Server) -> Value {
    server.rows("SELECT count(*) AS n FROM m").await[0][0].clone()
}

#[tokio::test]
async fn deletes_are_off_unless_they_are_switched_on() {
    let server = Server::new();
    server.lines("m,h=a v=1 1").await;
    delete(&server, "1=1", &json!({ "confirm": true })).await.is(403, "delete_enabled");
    assert_eq!(count(&server).await, 1);
    assert_eq!(server.get("/api/v1/delete/config").await.json()["enabled"], false);
}

#[tokio::test]
async fn what_meets_the_condition_is_counted_then_deleted() {
    let server = server();
    server.lines("m,h=a v=1 1\nm,h=a v=1 2\nm,h=b v=1 3\nm,h=b v=1 86400000000000\nm v=1 9").await;
    let config = server.get("/api/v1/delete/config").await.json();
    assert_eq!((&config["confirmation_threshold"], &config["max_rows_per_delete"]), (&json!(2), &json!(3)));
    let answer = delete(&server, "h = 'a'", &json!({ "dry_run": true })).await.json();
    assert_eq!(
        (&answer["success"], &answer["deleted_count"], &answer["dry_run"]),
        (&json!(true), &json!(2), &json!(true))
    );
    assert_eq!(count(&server).await, 5);
    let answer = delete(&server, "h = 'a'", &json!({})).await.json();
    assert_eq!((&answer["deleted_count"], &answer["files_processed"]), (&json!(2), &json!([])));
    assert_eq!(count(&server).await, 3);
    delete(&server, "TRUE", &json!({})).await.is(400, "\"confirm\": true");
    let answer = delete(&server, "time >= '1970-01-02T00:00:00Z'", &json!({})).await.json();
    assert_eq!(answer["deleted_count"], 1);
    server.lines("m v=1 10\nm v=1 11").await;
    delete(&server, "1=1", &json!({ "confirm": true })).await.is(400, "delete_max_rows");
    assert_eq!(count(&server).await, 4);
    let answer = delete(&server, "h IS NULL", &json!({ "confirm": true })).await.json();
    assert_eq!(answer["deleted_count"], 3);
    assert_eq!(count(&server).await, 1);
}

#[tokio::test]
async fn what_is_wrong_with_a_delete_is_said() {
    let server = server();
    server.lines("m,h=a v=1 1").await;
    for (condition, expected) in [
        ("", "where"),
        ("v = 1", "identified by tags and time"),
        ("nowhere = 'a'", "nowhere"),
        ("h = 'a'; DROP TABLE m", "more than one"),
        ("h LIKE 'a%'", "LIKE"),
        ("h = ", "Expected"),
    ] {
        delete(&server, condition, &json!({})).await.is(400, expected);
    }
    delete(&server, "TRUE", &json!({ "confirm": "yes" })).await.is(400, "confirm");
    delete(&server, "TRUE", &json!({ "measurement": "nothing" })).await.is(404, "nothing");
    server.post(PATH, "{}").await.is(400, "database");
    server.post(PATH, "no JSON").await.is(400, "Invalid request body");
    assert_eq!(count(&server).await, 1);
}

#[tokio::test]
async fn a_database_is_dropped_by_those_who_confirm_it() {
    let server = server();
    server.lines("m,h=a v=1 1").await;
    let drop = async |path: &str| server.send(hyper::Method::DELETE, path, &[], "").await;
    drop("/api/v1/databases/t").await.is(400, "confirm=true");
    drop("/api/v1/databases/nothing?confirm=true").await.is(404, "nothing");
    let answer = drop("/api/v1/databases/t?confirm=true").await.json();
    assert_eq!(answer["files_deleted"], 0);
    assert_eq!(server.get("/api/v1/databases").await.json()["count"], 0);
    let off = Server::new();
    off.lines("m v=1 1").await;
    off.send(hyper::Method::DELETE, "/api/v1/databases/t?confirm=true", &[], "").await.is(403, "delete_enabled");
}

#[tokio::test]
async fn sql_drops_where_deletes_are_allowed() {
    let server = server();
    server.lines("m,h=a v=1 1\nn v=1 1").await;
    let answer = server.ask("DROP TABLE m").await.json();
    assert_eq!((&answer["success"], &answer["columns"], &answer["data"]), (&json!(true), &json!([]), &json!([])));
    server.ask("SELECT * FROM m").await.is(404, "m");
    server.ask("DROP TABLE m").await.is(404, "m");
    server.ask("DROP TABLE n CASCADE").await.is(400, "nothing else");
    assert_eq!(server.ask("DROP TABLE IF EXISTS m").await.status, 200);
    let body = json!({ "sql": "DROP DATABASE t" }).to_string();
    assert_eq!(server.post("/api/v1/query/arrow", body).await.batches(), []);
    assert_eq!(server.get("/api/v1/databases").await.json()["count"], 0);
    let off = Server::new();
    off.lines("m v=1 1").await;
    off.ask("DROP TABLE m").await.is(403, "delete_enabled");
    off.ask("DROP DATABASE IF EXISTS t").await.is(403, "delete_enabled");
    assert_eq!(count(&off).await, 1);
}

#[tokio::test]
async fn sql_writes_rows_also_where_deletes_are_not_allowed() {
    let server = Server::new();
    server.lines("m,h=a v=1 1").await;
    let answer = server.ask("INSERT INTO m (time, h, v) VALUES (2, 'b', 2), (3, 'b', 3)").await.json();
    assert_eq!((&answer["success"], &answer["row_count"]), (&json!(true), &json!(1)));
    assert_eq!((&answer["columns"], &answer["data"]), (&json!(["count"]), &json!([[2]])));
    assert_eq!(count(&server).await, 3);
    server.ask("INSERT INTO n (time, v) VALUES (1, 1)").await.is(404, "n");
    assert_eq!(server.ask("CREATE DATABASE plant").await.status, 200);
    server.ask("CREATE DATABASE plant").await.is(400, "plant");
    assert_eq!(server.get("/api/v1/databases").await.json()["count"], 2);
    let create = "CREATE TABLE pump (time TIMESTAMP, id TEXT, rpm BIGINT, PRIMARY KEY (id, time))";
    assert_eq!(server.ask(create).await.json()["columns"], json!([]));
    server.ask(create).await.is(400, "exists already");
    server.ask("CREATE TABLE x (y DECIMAL(3, 1))").await.is(400, "\"y\" cannot be");
    assert_eq!(server.ask("INSERT INTO pump VALUES (1, 'a', 1), (1, 'a', 2)").await.json()["data"], json!([[2]]));
    assert_eq!(server.rows("SELECT id, rpm FROM pump").await, json!([["a", 2]]));
}

#[tokio::test]
async fn sql_writes_the_rows_of_a_query() {
    let server = Server::new();
    server.lines("m,h=a v=1,s=\"x\" 1\nm,h=b v=2,s=\"y\" 2\nsum,h=a v=0i 0").await;
    let ask = |sql: &str, params: serde_json::Value| json!({ "sql": sql, "params": params }).to_string();
    let insert = "INSERT INTO sum SELECT max(time), h, sum(v) FROM m WHERE v >= $least GROUP BY h";
    let answer = server.post("/api/v1/query?db=t", ask(insert, json!({ "least": 1.5 }))).await.json();
    assert_eq!((&answer["columns"], &answer["data"]), (&json!(["count"]), &json!([[1]])));
    let values = "INSERT INTO sum (time, h, v) VALUES ($1, $2, $3 + 1)";
    let answer = server.post("/api/v1/query?db=t", ask(values, json!([7, "c", 41]))).await.json();
    assert_eq!(answer["data"], json!([[1]]));
    let rows = server.rows("SELECT CAST(time AS BIGINT) AS t, h, v FROM sum ORDER BY t").await;
    assert_eq!(rows, json!([[0, "a", 0], [2, "b", 2], [7, "c", 42]]));
    let copied = server.post("/api/v1/query/arrow?db=t", ask("INSERT INTO m SELECT * FROM m", json!(null))).await;
    assert_eq!(copied.batches()[0].num_rows(), 1);
    assert_eq!(count(&server).await, 2);

    server.ask("INSERT INTO sum SELECT time, h, s FROM m").await.is(400, "column \"v\" of table \"sum\" is integer");
    server
        .ask("INSERT INTO sum SELECT time, h, v + 0.5 FROM m")
        .await
        .is(400, "column \"v\" is Int64 and cannot be 1.5");
    server.ask("INSERT INTO sum SELECT time, h FROM m").await.is(400, "the rows have 2 columns, and INSERT has 3");
    server.ask("INSERT INTO sum (time, v) SELECT v, v AS w FROM m").await.is(400, "column \"time\"");
    server.ask("INSERT INTO sum SELECT * FROM nowhere").await.is(404, "nowhere");
    server.ask("INSERT INTO nowhere SELECT * FROM m").await.is(404, "nowhere");
    server.ask("INSERT INTO sum SELECT * FROM read_parquet('x')").await.is(400, "read_parquet");
    let drop = ask("DROP TABLE IF EXISTS m", json!([1]));
    server.post("/api/v1/query?db=t", drop).await.is(403, "delete_enabled");
    server.post("/api/v1/query?db=t", ask("CREATE DATABASE x", json!([1]))).await.is(400, "takes no values");
    let body = json!({ "sql": "INSERT INTO m SELECT * FROM m" }).to_string();
    server.post("/api/v1/query?db=t&durability=eternal", body).await.is(400, "not a durability");
}
