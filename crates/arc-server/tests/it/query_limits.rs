//! Queries that take too long, or whose answer nobody takes: what others notice of them.

use std::{pin::pin, time::Duration};

use axum::body::Body;
use http_body_util::BodyExt;
use hyper::Request;
use serde_json::json;
use tower::ServiceExt;

use crate::support::Server;

/// Fills table `m` of database `t`.
async fn fill(server: &Server, rows: usize) {
    let lines: Vec<String> = (0..rows).map(|n| format!("m v={n}i {n}\n")).collect();
    server.lines(lines.concat()).await;
}

#[tokio::test]
async fn a_query_that_takes_the_processor_delays_nobody_and_ends_at_its_time_limit() {
    // Others have this long to be answered on a busy machine.
    let server = Server::with(|config| config.engine.query_timeout = Duration::from_secs(10));
    fill(&server, 20_000).await;
    // This test has one thread, so nothing of the query may run on it.
    let mut query = pin!(server.ask("SELECT a.v, b.v FROM m a, m b ORDER BY 1 DESC, 2 LIMIT 5"));
    assert!(futures::poll!(&mut query).is_pending());
    let others = async {
        assert_eq!(server.get("/health").await.status, 200);
        server.lines("other v=1 1").await;
    };
    tokio::select! {
        biased;
        reply = &mut query => panic!("the query ended first: {reply:?}"),
        () = others => {}
    }
    query.await.is(504, "query timed out after 10 s");
    let metrics = server.get("/api/v1/metrics").await.json();
    assert_eq!((&metrics["arc_query_timeouts_total"], &metrics["arc_query_errors_total"]), (&json!(1), &json!(0)));
}

#[tokio::test]
async fn a_client_that_does_not_read_frees_its_place_at_the_time_limit() {
    let server = Server::with(|config| {
        // A busy machine plans and begins a statement within it, and the next one waits longer for its place.
        config.engine.query_timeout = Duration::from_secs(6);
        config.limits.queries = 1;
    });
    fill(&server, 50_000).await;
    let body = json!({ "sql": "SELECT time, v FROM m" }).to_string();
    for path in ["/api/v1/query?db=t", "/api/v1/query/arrow?db=t"] {
        let request = Request::post(path).body(Body::from(body.clone())).unwrap();
        let unread = server.router.clone().oneshot(request).await.unwrap();
        assert_eq!(unread.status(), 200);
        assert_eq!(server.rows("SELECT 1").await, json!([[1]]), "{path}");
        // What it reads at last breaks off; it cannot be taken for the whole.
        assert!(unread.into_body().collect().await.is_err(), "{path}");
    }
}

#[tokio::test]
async fn statements_that_take_all_there_is_leave_the_server_alive() {
    let server = Server::with(|config| {
        config.engine.query_timeout = Duration::from_secs(1);
        config.engine.memory_bytes = 64 << 20;
        config.engine.query_memory_bytes = 16 << 20;
    });
    fill(&server, 1_000).await;
    let long = format!("SELECT 1{}", " + 1".repeat(200_000));
    let statements = [
        "SELECT a.v, b.v FROM m a, m b, m c, m d ORDER BY c.v, d.v",
        "SELECT count(*) FROM generate_series(1, 10000000000)",
        "SELECT count(*) FROM (SELECT value, count(*) FROM generate_series(1, 10000000) GROUP BY value)",
        "SELECT value FROM generate_series(1, 10000000000) ORDER BY value % 1000003",
        "SELECT array_agg(a.v) FROM m a, m b, m c",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r",
        "SELECT regexp_replace(repeat('a', 100000), '(a?){300}a{300}', 'b', 'g')",
        "SELECT repeat(repeat(repeat('x', 1000), 1000), 1000)",
        &long,
    ];
    for reply in futures::future::join_all(statements.iter().map(|sql| server.ask(sql))).await {
        assert!(matches!(reply.status.as_u16(), 200 | 400 | 503 | 504), "{reply:?}");
    }
    assert_eq!(server.get("/health").await.status, 200);
    server.lines("m v=1i 1").await;
    // Some operators take a while to notice that their time is over.
    while server.ask("SELECT count(*) FROM m").await.status != 200 {}
}
