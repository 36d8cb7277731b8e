//! Queries over nodes that are all in this process, and talk over its loopback.
//!
//! With `ARC_TEST_NODES=3` in the environment each test of this folder asks such a cluster (`fake`):
//! what it expects of one node it gets of three.

use std::{
    collections::HashMap,
    env,
    net::TcpListener,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use futures::StreamExt;
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use tonic::transport::{Channel, Endpoint, Server, server::TcpIncoming};
use url::Url;

use super::{
    super::{ClusterStats, DataPlace, QueryCluster, QueryEngine, QueryTables, QueryWorker, Statement},
    fake::{Cell, Fake, Home, Row, Store, TableBuilder},
};
use crate::{Options, memory::MemoryBudget};

/// Returns the workers that each test is to have, if any.
pub(super) fn workers_asked() -> Option<usize> {
    let nodes: usize = env::var("ARC_TEST_NODES").ok()?.parse().unwrap();
    Some(nodes.saturating_sub(1))
}

/// The workers of a cluster.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    workers: Mutex<Vec<Node>>,
    channels: Mutex<HashMap<Url, Channel>>,
    min_bytes: AtomicU64,
}

#[derive(Debug)]
struct Node {
    url: Url,
    worker: QueryWorker,
    runtime: Option<Runtime>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

impl Nodes {
    /// Starts workers that read the files in `folder`.
    pub(super) fn start(count: usize, folder: &Path, options: &Options) -> Arc<Self> {
        let nodes = Arc::new(Self::default());
        for _ in 0..count {
            let tables: Arc<dyn QueryTables> = Arc::new(Fake::default());
            let memory = MemoryBudget::new(options.memory_bytes, options.max_resident_bytes);
            let place = DataPlace { dir: folder, store: None, is_anothers: true };
            let engine = QueryEngine::new(tables, place, options, Arc::new(memory)).unwrap();
            nodes.workers.lock().push(Node::start(engine.worker()));
        }
        nodes
    }

    /// Returns how many parts of queries the workers have at this moment.
    fn tasks(&self) -> usize {
        self.workers.lock().iter().map(|node| node.worker.tasks()).sum()
    }

    /// Waits until the workers have nothing to do any more, and returns how long that took.
    async fn rest(&self) -> Duration {
        let began = Instant::now();
        while self.tasks() > 0 && began.elapsed() < Duration::from_secs(20) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        began.elapsed()
    }

    /// Ends a worker, as if its machine had lost power: it stays in the list.
    fn kill(&self, index: usize) {
        let runtime = self.workers.lock()[index].runtime.take();
        runtime.into_iter().for_each(Runtime::shutdown_background);
    }
}

impl Node {
    fn start(worker: QueryWorker) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let routes = worker.routes();
        runtime.spawn(async move {
            let incoming = TcpIncoming::from(tokio::net::TcpListener::from_std(listener).unwrap());
            Server::builder().add_routes(routes).serve_with_incoming(incoming).await.unwrap();
        });
        Self { url, worker, runtime: Some(runtime) }
    }
}

impl QueryCluster for Nodes {
    fn workers(&self) -> Vec<Url> {
        self.workers.lock().iter().map(|node| node.url.clone()).collect()
    }

    fn channel(&self, worker: &Url) -> Channel {
        let mut channels = self.channels.lock();
        let connect = || Endpoint::from_shared(worker.to_string()).unwrap().connect_lazy();
        channels.entry(worker.clone()).or_insert_with(connect).clone()
    }

    fn headers(&self) -> http::HeaderMap {
        http::HeaderMap::new()
    }

    fn min_scan_bytes(&self) -> u64 {
        self.min_bytes.load(Ordering::Relaxed)
    }
}

/// A store with some workers, and one with the same rows and none.
struct Pair {
    alone: Store,
    spread: Store,
    nodes: Arc<Nodes>,
}

impl Pair {
    fn new(workers: usize, tables: impl IntoIterator<Item = TableBuilder>) -> Self {
        let (alone, spread) = (Store::alone(&options()), Store::alone(&options()));
        let nodes = Nodes::start(workers, spread.folder.path(), &options());
        spread.engine.join(Arc::clone(&nodes) as _).unwrap();
        for table in tables {
            alone.put("db", table.clone());
            spread.put("db", table);
        }
        Self { alone, spread, nodes }
    }

    /// Checks that a statement has the same rows on one node and on all.
    async fn same(&self, sql: &str) -> Vec<String> {
        let (mut one, mut all) = (self.alone.rows(sql).await, self.spread.rows(sql).await);
        // The order of a window or of an argument is not that of the rows.
        let is_ordered = sql.rsplit_once("ORDER BY").is_some_and(|(_, order)| !order.contains(')'));
        if !is_ordered {
            one.sort_unstable();
            all.sort_unstable();
        }
        assert_eq!(all, one, "{sql}");
        all
    }

    fn stats(&self) -> ClusterStats {
        self.spread.engine.cluster_stats().unwrap()
    }
}

fn options() -> Options {
    Options::default()
}

/// Rows of a day: each host once a minute.
fn day(day: i64, hosts: &[&'static str]) -> Vec<Row> {
    let rows = (0..60).flat_map(|minute| {
        hosts.iter().enumerate().map(move |(index, host)| {
            let value = (day * 1_000 + minute * 10 + index as i64) as f64 / 8.0;
            let cells = vec![
                ("host", Cell::Tag(host)),
                ("x", Cell::Float(value)),
                ("n", Cell::Integer(minute)),
                ("text", Cell::Text(if minute % 2 == 0 { "even" } else { "odd" })),
            ];
            (day * 86_400_000_000_000 + minute * 60_000_000_000, cells)
        })
    });
    rows.collect()
}

/// A table in files of four days, and one of rows that are not flushed.
fn t() -> TableBuilder {
    let table = TableBuilder::new("t").part(Home::File, day(0, &["a", "b", "c"])).part(Home::File, day(1, &["a", "b"]));
    let table = table.part(Home::File, day(2, &["b", "c", "d"])).part(Home::File, day(3, &["a"]));
    table.part(Home::Buffer, day(4, &["a", "d"]))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aggregates_of_files_and_buffers_are_those_of_one_node() {
    let pair = Pair::new(2, [t()]);
    let rows = pair.same("SELECT host, avg(x) AS x FROM t GROUP BY host ORDER BY host").await;
    assert_eq!(rows.len(), 4);
    assert_eq!(pair.stats().divided, 1);
    for sql in [
        "SELECT count(*), sum(n), min(x), max(x), count(DISTINCT host) FROM t",
        "SELECT host, date_trunc('hour', time) AS hour, avg(x), count(*) FROM t GROUP BY host, hour ORDER BY host, hour",
        "SELECT text, sum(n) FROM t WHERE host = 'b' GROUP BY text ORDER BY text",
        "SELECT host, median(x), round(stddev(x), 9), approx_distinct(n) FROM t GROUP BY host ORDER BY host",
        "SELECT * FROM t WHERE n > 57 ORDER BY time, host",
        "SELECT * FROM t ORDER BY time DESC, host LIMIT 7",
        "SELECT * FROM t ORDER BY x LIMIT 7",
        "SELECT host, x * 2 AS y, upper(text) AS z FROM t WHERE time < '1970-01-03' AND x > 5 ORDER BY host, y",
        "SELECT host, max(n) FILTER (WHERE text = 'odd') FROM t GROUP BY host ORDER BY host",
        "SELECT host, first_value(x ORDER BY time), last_value(x ORDER BY time) FROM t GROUP BY host ORDER BY host",
        "SELECT host, rate(x, time) FROM t GROUP BY host ORDER BY host",
    ] {
        if pair.alone.text(sql).await.starts_with("error") {
            continue;
        }
        pair.same(sql).await;
    }
    assert!(pair.stats().divided > 8, "{:?}", pair.stats());
}

/// Tables to join and to put together: files of two days each, and one that is a single file.
fn tables() -> [TableBuilder; 3] {
    let names = |name: &'static str, hosts: &[&'static str]| {
        let row = |(index, host): (usize, &&'static str)| {
            let cells =
                vec![("host", Cell::Tag(host)), ("place", Cell::Text(if index % 2 == 0 { "east" } else { "west" }))];
            (index as i64, cells)
        };
        (name, hosts.iter().enumerate().map(row).collect::<Vec<Row>>())
    };
    let (name, rows) = names("places", &["a", "b", "x"]);
    let places = TableBuilder::new(name).part(Home::File, rows.clone());
    let rows: Vec<Row> = rows.into_iter().map(|(time, cells)| (time + 1_000, cells)).collect();
    let single = TableBuilder::new("single").part(Home::File, day(0, &["a", "b"]));
    [t(), places.part(Home::File, rows), single]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_row_comes_twice_and_none_is_lost() {
    for workers in [2, 3, 7] {
        let pair = Pair::new(workers, tables());
        for sql in [
            "SELECT t.host, place, x FROM t LEFT JOIN places ON t.host = places.host",
            "SELECT places.host, count(x) FROM places LEFT JOIN t ON t.host = places.host GROUP BY places.host",
            "SELECT t.host, place, x FROM t RIGHT JOIN places ON t.host = places.host",
            "SELECT t.host, place, x FROM t FULL JOIN places ON t.host = places.host",
            "SELECT count(*) FROM t JOIN places USING (host)",
            "SELECT count(*) FROM t, places",
            "SELECT count(*) FROM t a JOIN t b ON a.time = b.time",
            "SELECT count(*) FROM t a JOIN t b ON a.x < b.x WHERE a.n = 1 AND b.n = 2",
            "SELECT host FROM t WHERE host IN (SELECT host FROM places)",
            "SELECT host FROM t WHERE host NOT IN (SELECT host FROM places WHERE place = 'west')",
            "SELECT host FROM t WHERE EXISTS (SELECT 1 FROM places p WHERE p.host = t.host)",
            "SELECT count(*) FROM (SELECT host FROM t UNION ALL SELECT host FROM places UNION ALL SELECT host FROM single)",
            "SELECT host FROM t UNION SELECT host FROM places",
            "SELECT host FROM t INTERSECT SELECT host FROM places",
            "SELECT host FROM t EXCEPT SELECT host FROM places",
            "SELECT host, sum(n) FROM (SELECT * FROM t UNION ALL SELECT * FROM single) GROUP BY host",
            "SELECT count(*) FROM (SELECT * FROM t LIMIT 5)",
            "SELECT count(*) FROM (SELECT * FROM single LIMIT 5)",
            "SELECT count(*) FROM (SELECT * FROM t WHERE n > 10 LIMIT 5 OFFSET 3)",
            "SELECT count(*) FROM (SELECT host, x FROM t ORDER BY x DESC LIMIT 9) WHERE x > 0",
            "SELECT sum(x) FROM (SELECT x FROM t ORDER BY x LIMIT 100)",
            "SELECT count(DISTINCT host), count(DISTINCT n) FROM t",
            "SELECT host, n, count(*) FROM t GROUP BY GROUPING SETS ((host), (n), ())",
            "SELECT host, count(*) FROM t GROUP BY ROLLUP (host)",
            "SELECT DISTINCT host FROM t",
            "SELECT DISTINCT ON (host) host, time, x FROM t ORDER BY host, time DESC",
            "SELECT host, time, x FROM (SELECT *, row_number() OVER (PARTITION BY host ORDER BY time DESC) AS r FROM t) WHERE r = 1",
            "SELECT host, x - lag(x) OVER (PARTITION BY host ORDER BY time) FROM t",
            "SELECT max(time), min(time), count(*) FROM t",
            "SELECT count(*) FROM t WHERE x > (SELECT avg(x) FROM t)",
            "SELECT host, (SELECT max(x) FROM single) FROM t WHERE n = 3",
            "WITH a AS (SELECT host, avg(x) AS m FROM t GROUP BY host) SELECT * FROM a JOIN places USING (host)",
            "SELECT * FROM t WHERE time >= '1970-01-02' AND time < '1970-01-03'",
            "SELECT * FROM t WHERE host = 'nobody'",
            "SELECT avg(x) FROM t WHERE host = 'nobody'",
            "SELECT host, avg(x) FROM t WHERE host = 'nobody' GROUP BY host",
        ] {
            pair.same(sql).await;
        }
        let stats = pair.stats();
        assert!(stats.divided > 20 && stats.retried == 0, "{stats:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_give_as_many_rows_as_on_one_node() {
    let pair = Pair::new(3, tables());
    for (sql, rows) in [
        ("SELECT * FROM t LIMIT 5", 5),
        ("SELECT host, x * 2 FROM t LIMIT 11", 11),
        ("SELECT * FROM t WHERE n > 30 LIMIT 4 OFFSET 7", 4),
        ("SELECT DISTINCT n FROM t LIMIT 13", 13),
        ("SELECT host, max(x) FROM t GROUP BY host ORDER BY max(x) DESC LIMIT 2", 2),
        ("SELECT * FROM (SELECT * FROM t LIMIT 6) UNION ALL SELECT * FROM (SELECT * FROM t LIMIT 3)", 9),
    ] {
        assert_eq!(pair.spread.rows(sql).await.len(), rows, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_died_is_left_out_and_the_answer_is_the_same() {
    let pair = Pair::new(3, [t()]);
    let sql = "SELECT host, count(*), sum(n) FROM t GROUP BY host ORDER BY host";
    pair.same(sql).await;
    pair.nodes.kill(0);
    pair.same(sql).await;
    assert_eq!(pair.stats().retried, 1);
    pair.same(sql).await;
    assert_eq!(pair.stats().retried, 1, "nothing is sent to it for a while");
    pair.nodes.kill(1);
    pair.nodes.kill(2);
    pair.same(sql).await;
    let stats = pair.stats();
    assert!(stats.retried >= 2, "{stats:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_others_queries_run_on_this_node() {
    for (workers, divided) in [(0, 0), (1, 1)] {
        let pair = Pair::new(workers, [t()]);
        pair.same("SELECT host, count(*) FROM t GROUP BY host").await;
        assert_eq!(pair.stats().divided, divided);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_small_is_read_here() {
    let pair = Pair::new(2, [t()]);
    pair.nodes.min_bytes.store(1 << 20, Ordering::Relaxed);
    pair.same("SELECT host, count(*) FROM t GROUP BY host").await;
    assert_eq!(pair.stats(), ClusterStats::default());
    pair.nodes.min_bytes.store(1, Ordering::Relaxed);
    pair.same("SELECT host, count(*) FROM t GROUP BY host").await;
    assert_eq!(pair.stats().divided, 1);
    pair.same("SELECT host, x FROM t").await;
    let stats = pair.stats();
    assert_eq!((stats.divided, stats.kept), (1, 1), "all rows are read sooner here");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn functions_that_ask_whether_the_query_has_ended_are_called_by_workers() {
    let pair = Pair::new(2, [t()]);
    for condition in ["concat(host, text) <> 'x'", "[x] <> [0.5]", "text ~ host", "array_has([host, text], 'a')"] {
        pair.same(&format!("SELECT host, count(*) FROM t WHERE {condition} GROUP BY host ORDER BY host")).await;
    }
    assert!(pair.stats().divided > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_of_a_worker_is_that_of_one_node() {
    let pair = Pair::new(2, [t()]);
    for sql in ["SELECT sum(n / (n - n)) FROM t", "SELECT host, sum(CAST(text AS BIGINT)) FROM t GROUP BY host"] {
        let (one, all) = (pair.alone.error(sql).await, pair.spread.error(sql).await);
        assert_eq!(all.kind(), one.kind(), "{sql}: {all} instead of {one}");
    }
    assert_eq!(pair.stats().retried, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_are_free_soon_after_an_answer_was_read_or_dropped() {
    let pair = Pair::new(2, [t()]);
    pair.spread.rows("SELECT host, avg(x) FROM t GROUP BY host").await;
    assert!(pair.nodes.rest().await < Duration::from_secs(1));
    let mut answer = pair.spread.sql("db", "SELECT * FROM t WHERE n >= 0", None).await.unwrap();
    answer.next().await.unwrap().unwrap();
    drop(answer);
    assert!(pair.nodes.rest().await < Duration::from_secs(1));
    // Not one batch was asked for.
    drop(pair.spread.sql("db", "SELECT host, avg(x) FROM t GROUP BY host", None).await.unwrap());
    assert!(pair.nodes.rest().await < Duration::from_secs(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_holds_a_query_to_the_limits_that_it_came_with() {
    let pair = Pair::new(2, [t()]);
    let sql = "SELECT host, x, n, text, count(*) FROM t GROUP BY host, x, n, text";
    pair.same(sql).await;
    let statement = Statement::parse(sql).unwrap().memory_limit(Some(1_000));
    let error = pair.spread.query("db", &statement).await.unwrap().collect().await.unwrap_err();
    assert!(error.to_string().contains("its own limit"), "{error}");
    assert!(pair.nodes.rest().await < Duration::from_secs(1));
    assert_eq!(pair.stats().retried, 0);
}
