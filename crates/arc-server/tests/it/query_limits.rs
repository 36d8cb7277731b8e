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
    let server = Server::with(|config| config.engine.query_timeout = Duration::from_secs(2));
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
    query.await.is(504, "query timed out after 2 s");
}

#[tokio::test]
async fn a_client_that_does_not_read_frees_its_place_at_the_time_limit() {
    let server = Server::with(|config| {
        config.engine.query_timeout = Duration::from_secs(2);
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
