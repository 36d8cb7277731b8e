//! What the holder of a token may use: each limit refuses with 429 what is beyond it, and no other token notices.

use std::pin::pin;

use hyper::Method;
use serde_json::json;

use crate::{auth::Closed, query_control::ENDLESS};

#[tokio::test]
async fn requests_and_bytes_beyond_the_limits_are_told_when_to_come_back() {
    let closed = Closed::new();
    let few = closed.token(json!({"name": "few", "limits": {"requests_per_second": 2}})).await;
    let short = closed.token(json!({"name": "short", "limits": {"bytes_per_second": 20}})).await;
    let write = async |token: &str| closed.send(token, Method::POST, "/write?db=plant", "pump,id=1 rpm=1 1").await;
    let statuses = [write(&few).await.status, write(&few).await.status];
    assert_eq!(statuses, [204, 204]);
    // As many as a second's worth, and perhaps one more if a slow machine took half a second so far.
    let mut refused = write(&few).await;
    while refused.status == 204 {
        refused = write(&few).await;
    }
    refused.is(429, "the token has used what it may (requests_per_second)");
    assert_eq!(refused.header("retry-after"), "1");
    // The body and its answer are more than a second's worth.
    let sql = json!({"sql": "SELECT repeat('x', 1000000)"}).to_string();
    assert_eq!(closed.send(&short, Method::POST, "/api/v1/query", &sql).await.status, 200);
    let refused = write(&short).await;
    refused.is(429, "the token has used what it may (bytes_per_second)");
    assert!(refused.header("retry-after").parse::<u64>().unwrap() > 1_000, "{refused:?}");
    assert_eq!(write(&closed.admin).await.status, 204, "others do not notice");
}

#[tokio::test]
async fn a_query_holds_no_more_memory_than_its_token_may() {
    let closed = Closed::new();
    let token = closed.token(json!({"name": "small", "limits": {"query_memory_bytes": 100_000}})).await;
    let sql = json!({"sql": "SELECT array_length(array_agg(value)) FROM generate_series(1, 1000000)"}).to_string();
    let ask = async |token: &str| closed.send(token, Method::POST, "/api/v1/query", &sql).await;
    ask(&token).await.is(400, "the query needs more memory than its own limit");
    assert_eq!(ask(&closed.admin).await.json()["data"], json!([[1_000_000]]));
}

#[tokio::test]
async fn queries_of_a_token_wait_for_each_other() {
    let closed = Closed::new();
    let one = closed.token(json!({"name": "one", "limits": {"concurrent_queries": 1}})).await;
    let ask = async |token: &str, sql: &str| {
        closed.send(token, Method::POST, "/api/v1/query", &json!({ "sql": sql }).to_string()).await
    };
    let running = async || loop {
        let answer = closed.send(&closed.admin, Method::GET, "/api/v1/queries", "").await.json();
        if answer["count"] == 1 {
            return answer["queries"][0]["id"].as_str().unwrap().to_owned();
        }
        tokio::task::yield_now().await;
    };
    let mut first = pin!(ask(&one, ENDLESS));
    let mut second = pin!(ask(&one, "SELECT 2"));
    let id = tokio::select! {
        reply = &mut first => panic!("{reply:?}"),
        id = running() => id,
    };
    let others = async {
        for _ in 0..20 {
            assert_eq!(ask(&closed.admin, "SELECT 1").await.status, 200);
        }
    };
    tokio::select! {
        reply = &mut first => panic!("{reply:?}"),
        reply = &mut second => panic!("it did not wait: {reply:?}"),
        () = others => {},
    }
    let path = format!("/api/v1/queries/{id}");
    assert_eq!(closed.send(&closed.admin, Method::DELETE, &path, "").await.status, 200);
    let (first, second) = tokio::join!(first, second);
    first.is(499, "the query was cancelled");
    assert_eq!(second.json()["data"], json!([[2]]));
}

#[tokio::test]
async fn one_token_leaves_others_places_for_their_queries() {
    let closed = Closed::with(|config| config.limits.queries = 4);
    let [one, other] = [closed.token(json!({"name": "one"})).await, closed.token(json!({"name": "other"})).await];
    let ask = async |token: &str, sql: &str| {
        closed.send(token, Method::POST, "/api/v1/query", &json!({ "sql": sql }).to_string()).await
    };
    let all = futures::future::join_all((0..8).map(|_| ask(&one, ENDLESS)));
    let others = async {
        let running = async || {
            let listed = closed.send(&closed.admin, Method::GET, "/api/v1/queries", "").await.json();
            let states = listed["queries"].as_array().unwrap().iter().map(|query| query["state"].clone());
            states.filter(|state| state == "running").count()
        };
        while running().await < 3 {
            tokio::task::yield_now().await;
        }
        for token in [&other, &closed.admin, &other] {
            assert_eq!(ask(token, "SELECT 1").await.json()["data"], json!([[1]]));
        }
        assert_eq!(running().await, 3);
    };
    tokio::select! {
        replies = all => panic!("{replies:?}"),
        () = others => {},
    }
}

#[tokio::test]
async fn limits_are_shown_changed_and_outlive_a_restart() {
    let closed = Closed::new();
    let token = closed.token(json!({"name": "a", "limits": {"requests_per_second": 1}})).await;
    let path = "/api/v1/auth/tokens/2";
    let shown = async |closed: &Closed| {
        closed.send(&closed.admin, Method::GET, path, "").await.json()["token"]["limits"].clone()
    };
    assert_eq!(shown(&closed).await, json!({"requests_per_second": 1}));
    let Closed { server, admin } = closed;
    let closed = Closed { server: server.reopened_with(|config| config.no_auth = false), admin };
    assert_eq!(shown(&closed).await, json!({"requests_per_second": 1}));
    let health = async |token: &str| closed.send(token, Method::GET, "/api/v1/databases", "").await.status.as_u16();
    assert_eq!(health(&token).await, 200);
    let change = r#"{"limits": {"concurrent_queries": 3}}"#;
    assert_eq!(closed.send(&closed.admin, Method::PATCH, path, change).await.status, 200);
    assert_eq!(shown(&closed).await, json!({"concurrent_queries": 3}));
    assert_eq!((health(&token).await, health(&token).await), (200, 200));
    assert_eq!(closed.send(&closed.admin, Method::PATCH, path, r#"{"limits": null}"#).await.status, 200);
    assert_eq!(shown(&closed).await, json!({}));
    let bad = closed.send(&closed.admin, Method::PATCH, path, r#"{"limits": {"requests": 3}}"#).await;
    bad.is(400, "limits: unknown field `requests`, expected one of");
}
