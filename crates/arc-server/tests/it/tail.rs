//! Tails over HTTP: rows as they are acknowledged, and the reason at the end.

use std::{io::Cursor, pin::pin, time::Duration};

use arrow::{array::AsArray, datatypes::Int64Type, ipc::reader::StreamReader};
use axum::body::{Body, BodyDataStream};
use futures::StreamExt;
use hyper::{HeaderMap, Method, Request, StatusCode};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::{auth::Closed, support::Server};

/// An answer that goes on.
struct Tail {
    headers: HeaderMap,
    body: BodyDataStream,
    rest: Vec<u8>,
}

impl Tail {
    async fn open(server: &Server, path: &str, token: &str) -> Self {
        let request = Request::get(path).header("authorization", format!("Bearer {token}"));
        let response = server.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        let (parts, body) = response.into_parts();
        Self { headers: parts.headers, body: body.into_data_stream(), rest: Vec::new() }
    }

    /// Returns the next line, or `None` at the end.
    async fn line(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                if line.len() > 1 {
                    return Some(serde_json::from_slice(&line).unwrap());
                }
                continue;
            }
            let next = tokio::time::timeout(Duration::from_secs(20), self.body.next()).await;
            self.rest.extend_from_slice(&next.expect("a line")?.unwrap());
        }
    }

    async fn whole(mut self) -> Vec<u8> {
        while let Some(bytes) = self.body.next().await {
            self.rest.extend_from_slice(&bytes.unwrap());
        }
        self.rest
    }
}

fn path(rest: &str) -> String {
    format!("/api/v1/tail?db=t&table=pump{rest}")
}

#[tokio::test]
async fn rows_come_as_lines_and_the_reason_last() {
    let server = Server::new();
    server.lines("pump,id=1 rpm=1 1").await;
    let mut tail = Tail::open(&server, &path(""), "").await;
    assert_eq!(tail.headers["content-type"], "application/x-ndjson");
    assert_eq!(tail.headers["cache-control"], "no-store");
    server.lines("pump,id=1 rpm=2 2\npump,id=2 rpm=3 2\nother v=1 1").await;
    let row = |id: &str, rpm: i64| json!({"time": "1970-01-01T00:00:00.000000002Z", "id": id, "rpm": rpm});
    assert_eq!(tail.line().await.unwrap(), row("1", 2));
    assert_eq!(tail.line().await.unwrap(), row("2", 3));
    server.lines("pump,id=1 rpm=4,flow=1i 2").await;
    assert_eq!(tail.line().await.unwrap()["flow"], 1, "a column that is new");
    server.engine.drop_table("t", "pump").unwrap();
    let end = tail.line().await.unwrap();
    assert_eq!(end["status"], 404);
    assert!(end["error"].as_str().unwrap().contains("\"pump\"") && end.get("time").is_none(), "{end}");
    assert!(tail.line().await.is_none());
}

#[tokio::test]
async fn stored_rows_come_first_where_a_time_is_given() {
    let server = Server::new();
    server.lines("pump,id=1 rpm=1 1000000000\npump,id=1 rpm=2 2000000000\npump,id=1 rpm=3 3000000000").await;
    for since in ["&since=2000000000", "&since=1970-01-01T00:00:02Z", "&since=1970-01-01T01:00:02%2B01:00&format=jsonl"]
    {
        let mut tail = Tail::open(&server, &path(since), "").await;
        server.lines("pump,id=1 rpm=9 1").await;
        for rpm in [2.0, 3.0, 9.0] {
            assert_eq!(tail.line().await.unwrap()["rpm"], rpm, "{since}");
        }
    }
}

#[tokio::test]
async fn arrow_streams_follow_one_another_where_columns_change() {
    let server = Server::new();
    server.lines("pump,id=1 rpm=1i 1").await;
    let tail = Tail::open(&server, &path("&format=arrow"), "").await;
    assert_eq!(tail.headers["content-type"], "application/vnd.apache.arrow.stream");
    let mut whole = pin!(tail.whole());
    server.lines("pump,id=1 rpm=2i 2").await;
    // So that it is taken before there is another column.
    while futures::poll!(&mut whole).is_ready() {}
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(futures::poll!(&mut whole).is_pending());
    server.lines("pump,id=1 rpm=3i,flow=1i 3").await;
    server.engine.drop_table("t", "pump").unwrap();
    let mut bytes = Cursor::new(whole.await);
    let (mut values, mut columns) = (Vec::new(), Vec::new());
    let ending = loop {
        let mut reader = StreamReader::try_new(&mut bytes, None).unwrap();
        if let Some(error) = reader.schema().metadata().get("arc.error") {
            break (error.clone(), reader.schema().metadata()["arc.status"].clone());
        }
        columns.push(reader.schema().fields().len());
        for batch in &mut reader {
            let batch = batch.unwrap();
            let rpm = batch.column_by_name("rpm").unwrap().as_primitive::<Int64Type>().clone();
            values.extend(rpm.values().to_vec());
        }
    };
    assert_eq!((values, columns), (vec![2, 3], vec![3, 4]));
    assert!(ending.0.contains("pump") && ending.1 == "404", "{ending:?}");
}

#[tokio::test]
async fn what_is_asked_wrong_is_refused_and_says_what_is_expected() {
    let server = Server::new();
    server.lines("pump,id=1 rpm=1 1").await;
    for (path, status, text) in [
        ("/api/v1/tail?db=t", 400, "the parameter table is missing"),
        ("/api/v1/tail?db=t&table=none", 404, "\"none\" does not exist"),
        ("/api/v1/tail?db=none&table=pump", 404, "\"none\" does not exist"),
        ("/api/v1/tail?db=t&table=pump&since=soon", 400, "since=soon is not valid; expected a time such as"),
        ("/api/v1/tail?db=t&table=pump&format=csv", 400, "a tail has no format \"csv\"; expected ndjson or arrow"),
        ("/api/v1/tail?db=t&table=pump&format=xml", 400, "\"xml\" is not a format"),
        ("/api/v1/tail?db=t&table=%FF", 400, "not percent-encoded UTF-8"),
    ] {
        server.get(path).await.is(status, text);
    }
    let old = Request::get(path("")).version(hyper::Version::HTTP_10).body(Body::empty()).unwrap();
    assert_eq!(server.router.clone().oneshot(old).await.unwrap().status(), 505);
}

#[tokio::test]
async fn it_is_listed_and_ends_when_it_is_cancelled() {
    let server = Server::new();
    server.lines("pump,id=1 rpm=1 1").await;
    let mut tail = Tail::open(&server, &path(""), "").await;
    let listed = server.get("/api/v1/queries").await.json();
    assert_eq!(
        (&listed["queries"][0]["statement"], &listed["queries"][0]["format"]),
        (&json!("TAIL \"pump\""), &json!("tail"))
    );
    let id = listed["queries"][0]["id"].as_str().unwrap();
    assert_eq!(tail.headers["x-arc-query-id"], id);
    assert_eq!(server.send(Method::DELETE, &format!("/api/v1/queries/{id}"), &[], "").await.status, 200);
    assert_eq!(tail.line().await.unwrap()["status"], 499);
    assert!(tail.line().await.is_none());
    drop(tail);
    assert_eq!(server.get("/api/v1/queries").await.json()["count"], 0);
}

#[tokio::test]
async fn there_are_so_many_at_a_time() {
    let server = Server::new();
    server.lines("pump,id=1 rpm=1 1").await;
    let mut tails = Vec::new();
    for _ in 0..64 {
        tails.push(Tail::open(&server, &path(""), "").await);
    }
    server.get(&path("")).await.is(503, "there are 64 tails already");
    tails.pop();
    tails.push(Tail::open(&server, &path(""), "").await);
}

#[tokio::test]
async fn it_needs_the_right_to_read_and_ends_with_it() {
    let closed = Closed::new();
    let write = closed.send(&closed.admin, Method::POST, "/write?db=t", "pump,id=1 rpm=1 1\nsalary v=1 1").await;
    assert_eq!(write.status, 204);
    let one = json!({"name": "one", "permissions": ["read"], "databases": ["t"], "tables": ["pump"]});
    let token = closed.token(one).await;
    closed.send(&token, Method::GET, "/api/v1/tail?db=t&table=salary", "").await.is(403, "read required");
    closed.send(&token, Method::GET, "/api/v1/tail?db=t&table=nothing", "").await.is(403, "read required");
    assert_eq!(closed.server.get(&path("")).await.status, 401);
    let mut tail = Tail::open(&closed.server, &path(""), &token).await;
    closed.send(&closed.admin, Method::POST, "/write?db=t", "pump,id=1 rpm=2 2").await;
    assert_eq!(tail.line().await.unwrap()["rpm"], 2.0);
    let list = closed.send(&closed.admin, Method::GET, "/api/v1/auth/tokens", "").await.json();
    let found = list["tokens"].as_array().unwrap().iter().find(|token| token["name"] == "one").unwrap();
    let revoke = format!("/api/v1/auth/tokens/{}/revoke", found["id"]);
    assert_eq!(closed.send(&closed.admin, Method::POST, &revoke, "").await.status, 200);
    let end = tail.line().await.unwrap();
    assert_eq!(end["status"], 401, "{end}");
}

#[tokio::test]
async fn a_client_that_is_too_slow_loses_its_tail_and_holds_up_no_write() {
    let server = Server::new();
    server.lines("pump,id=1 text=\"x\" 1").await;
    let mut tail = Tail::open(&server, &path(""), "").await;
    let text = "x".repeat(1 << 20);
    for n in 2..40 {
        server.lines(format!("pump,id=1 text=\"{text}\" {n}")).await;
    }
    let mut rows = 0;
    let end = loop {
        let line = tail.line().await.unwrap();
        if line.get("time").is_none() {
            break line;
        }
        rows += 1;
    };
    assert!((10..20).contains(&rows), "{rows}");
    assert_eq!(end["status"], 503);
    assert!(end["error"].as_str().unwrap().contains("rows came faster than they were taken"), "{end}");
}
