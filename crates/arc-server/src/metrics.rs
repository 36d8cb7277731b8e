//! Counters of the server, and how they and the engine's are shown.
//!
//! A name is listed only if something counts it: no series reads a constant. Names are those that dashboards of the
//! existing Arc server use, where the meaning is the same.

use std::{
    fmt::Write as _,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_core::EngineStats;
use hyper::StatusCode;

use crate::{
    auth::Refusals, cluster::Cluster, cluster_query::QueryNode, logging, query::Form, timestamp, write::Format,
};

/// Upper bounds of the latency histogram's buckets, in microseconds.
const BUCKETS_US: [u64; 14] =
    [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 5_000_000];

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    requests: Counter,
    requests_ok: Counter,
    requests_failed: Counter,
    latency: Histogram,
    connections: Counter,
    connections_closed: Counter,
    connections_refused: Counter,
    line_protocol: Requests,
    message_pack: Requests,
    arrow: Requests,
    pub(crate) queries: Queries,
    pub(crate) refusals: Arc<Refusals>,
    /// There if queries are spread over several nodes.
    query_node: OnceLock<Arc<QueryNode>>,
    cluster: OnceLock<Weak<Cluster>>,
}

/// Counters of one kind of write.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    pub(crate) requests: Counter,
    pub(crate) records: Counter,
    /// Bytes of bodies that were stored, in whole or part, once they were decompressed.
    pub(crate) bytes: Counter,
    /// Those of them that came compressed, as they came.
    pub(crate) compressed_bytes: Counter,
    /// Requests that were refused, in whole or part.
    pub(crate) errors: Counter,
}

/// Counters of queries.
#[derive(Debug, Default)]
pub(crate) struct Queries {
    pub(crate) requests: Counter,
    pub(crate) ok: Counter,
    pub(crate) failed: Counter,
    /// Ended at their time limit, and by a client that asked for that: not counted as failed.
    pub(crate) timed_out: Counter,
    pub(crate) cancelled: Counter,
    /// Sent to clients.
    pub(crate) rows: Counter,
    pub(crate) slow: Counter,
    /// Of those whose client left, by [`Form`].
    disconnects: [Counter; Form::ALL.len()],
}

impl Queries {
    /// Counts a query whose client did not wait for its answer.
    pub(crate) fn left(&self, form: Form) {
        if let Some((_, counter)) = self.disconnects().find(|(of, _)| *of == form) {
            counter.add(1);
        }
    }

    fn disconnects(&self) -> impl Iterator<Item = (Form, &Counter)> {
        Form::ALL.into_iter().zip(&self.disconnects)
    }
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A connection that is open.
#[derive(Debug)]
pub(crate) struct OpenConnection<'a>(&'a Metrics);

impl Drop for OpenConnection<'_> {
    fn drop(&mut self) {
        self.0.connections_closed.add(1);
    }
}

/// How often something took how long.
#[derive(Debug, Default)]
struct Histogram {
    buckets: [Counter; BUCKETS_US.len()],
    sum_us: Counter,
    count: Counter,
}

impl Histogram {
    fn observe(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        // Above the last bound only the count knows of it, as Prometheus wants it.
        if let Some((_, bucket)) = BUCKETS_US.iter().zip(&self.buckets).find(|(bound, _)| us <= **bound) {
            bucket.add(1);
        }
        self.sum_us.add(us);
        self.count.add(1);
    }
}

impl Metrics {
    /// Counts an answer; `took` ends where its body begins.
    pub(crate) fn answered(&self, status: StatusCode, took: Duration) {
        self.requests.add(1);
        let failed = status.is_client_error() || status.is_server_error();
        if failed { &self.requests_failed } else { &self.requests_ok }.add(1);
        self.latency.observe(took);
    }

    pub(crate) fn write_started(&self, format: Format) {
        self.writes(format).requests.add(1);
    }

    pub(crate) fn write_ended(&self, format: Format, records: u64) {
        self.writes(format).records.add(records);
    }

    /// Counts a connection as open until what this returns is dropped.
    pub(crate) fn connection(&self) -> OpenConnection<'_> {
        self.connections.add(1);
        OpenConnection(self)
    }

    /// Counts a connection that was closed at once.
    pub(crate) fn connection_refused(&self) {
        self.connections_refused.add(1);
    }

    /// Returns the counters of one kind of write.
    pub(crate) fn writes(&self, format: Format) -> &Requests {
        match format {
            Format::LineProtocol => &self.line_protocol,
            Format::MessagePack => &self.message_pack,
            Format::Arrow => &self.arrow,
        }
    }

    /// Returns all series but the histogram, with the engine's.
    fn series(&self, engine: &EngineStats, uptime: Duration) -> Vec<Series> {
        let mut series = self.own_series(engine, uptime);
        series.extend(self.cluster.get().and_then(Weak::upgrade).iter().flat_map(|cluster| of_cluster(cluster)));
        series
    }

    /// Has what the server does as one of several be shown, too.
    pub(crate) fn of_cluster(&self, cluster: &Arc<Cluster>) {
        // It is set once.
        let _ = self.cluster.set(Arc::downgrade(cluster));
    }

    fn own_series(&self, engine: &EngineStats, uptime: Duration) -> Vec<Series> {
        let q = &self.queries;
        let open = self.connections.get().saturating_sub(self.connections_closed.get());
        let mut series = vec![
            gauge("arc_uptime_seconds", "Seconds since the start", uptime.as_secs()),
            counter("arc_panics_total", "Panics, each of which is a fault of the server", logging::panics()),
            counter("arc_http_requests_total", "Requests answered", self.requests.get()),
            counter("arc_http_requests_success_total", "Requests answered with 1xx to 3xx", self.requests_ok.get()),
            counter("arc_http_requests_error_total", "Requests answered with 4xx or 5xx", self.requests_failed.get()),
            counter("arc_auth_refused_total", "Requests without a token that is good", self.refusals.unknown.get()),
            counter(
                "arc_auth_denied_total",
                "Requests that their token does not let do what they ask",
                self.refusals.denied.get(),
            ),
            counter("arc_http_connections_total", "Connections accepted", self.connections.get()),
            counter("arc_http_connections_refused_total", "Connections closed at once", self.connections_refused.get()),
            gauge("arc_http_connections_open", "Connections open", open),
            counter("arc_lineprotocol_requests_total", "Line protocol requests", self.line_protocol.requests.get()),
            counter("arc_lineprotocol_records_total", "Points from line protocol", self.line_protocol.records.get()),
            counter("arc_msgpack_requests_total", "MessagePack requests", self.message_pack.requests.get()),
            counter("arc_msgpack_records_total", "Points from MessagePack", self.message_pack.records.get()),
            counter("arc_arrow_requests_total", "Arrow requests", self.arrow.requests.get()),
            counter("arc_arrow_records_total", "Points from Arrow", self.arrow.records.get()),
            counter("arc_query_requests_total", "Queries received", q.requests.get()),
            counter("arc_query_success_total", "Queries answered to the end", q.ok.get()),
            counter("arc_query_errors_total", "Queries that failed", q.failed.get()),
            counter("arc_query_timeouts_total", "Queries ended at their time limit", q.timed_out.get()),
            counter("arc_query_cancelled_total", "Queries that a client has cancelled", q.cancelled.get()),
            counter("arc_query_rows_total", "Rows sent", q.rows.get()),
            counter("arc_slow_queries_total", "Queries that took longer than slow_query", q.slow.get()),
        ];
        series.extend(of_engine(engine));
        series.extend(self.query_node.get().into_iter().flat_map(|node| of_query_node(node)));
        series.extend(resident_bytes().map(|n| gauge("process_resident_memory_bytes", "Resident memory", n)));
        series
    }

    /// Tells of spread queries from now on.
    pub(crate) fn of_query_node(&self, node: &Arc<QueryNode>) {
        // A second one does not count.
        let _ = self.query_node.set(Arc::clone(node));
    }

    /// Returns the same by name.
    pub(crate) fn values(&self, engine: &EngineStats, uptime: Duration) -> Vec<(&'static str, u64)> {
        self.series(engine, uptime).into_iter().map(|series| (series.name, series.value)).collect()
    }

    /// Returns the text that Prometheus scrapes.
    pub(crate) fn prometheus(&self, engine: &EngineStats, uptime: Duration) -> String {
        let mut out = String::with_capacity(8 << 10);
        for Series { name, kind, help, value } in self.series(engine, uptime) {
            // Writing to a string cannot fail; so below.
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        }
        self.prometheus_disconnects(&mut out);
        self.prometheus_latency(&mut out);
        out
    }

    fn prometheus_disconnects(&self, out: &mut String) {
        let name = "arc_query_client_disconnects_total";
        let _ = writeln!(out, "# HELP {name} Answers that the client did not wait for\n# TYPE {name} counter");
        for (form, counter) in self.queries.disconnects() {
            let _ = writeln!(out, "{name}{{path=\"{}\"}} {}", form.name(), counter.get());
        }
    }

    fn prometheus_latency(&self, out: &mut String) {
        let name = "arc_http_latency_seconds";
        let _ = writeln!(out, "# HELP {name} Time until an answer began\n# TYPE {name} histogram");
        let mut below = 0;
        for (bound, bucket) in BUCKETS_US.iter().zip(&self.latency.buckets) {
            below += bucket.get();
            let _ = writeln!(out, "{name}_bucket{{le=\"{}\"}} {below}", Duration::from_micros(*bound).as_secs_f64());
        }
        // Read last, so that +Inf is never below a bucket that was counted meanwhile.
        let count = self.latency.count.get().max(below);
        let sum = Duration::from_micros(self.latency.sum_us.get()).as_secs_f64();
        let _ = writeln!(out, "{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {sum}\n{name}_count {count}");
    }

    /// Returns the same series as one flat object.
    pub(crate) fn json(&self, engine: &EngineStats, uptime: Duration) -> serde_json::Value {
        let series = self.series(engine, uptime);
        let mut object: serde_json::Map<_, _> = series.iter().map(|s| (s.name.to_owned(), s.value.into())).collect();
        let disconnects: u64 = self.queries.disconnects().map(|(_, counter)| counter.get()).sum();
        object.insert("arc_query_client_disconnects_total".to_owned(), disconnects.into());
        object.insert("arc_http_latency_seconds_count".to_owned(), self.latency.count.get().into());
        let sum = Duration::from_micros(self.latency.sum_us.get()).as_secs_f64();
        object.insert("arc_http_latency_seconds_sum".to_owned(), sum.into());
        object.into()
    }
}

/// Parts of the server, by the beginnings of their series' names.
const PARTS: [(&str, &str); 10] = [
    ("http", "arc_http_"),
    ("ingestion", "arc_ingest_"),
    ("msgpack", "arc_msgpack_"),
    ("lineprotocol", "arc_lineprotocol_"),
    ("arrow", "arc_arrow_"),
    ("query", "arc_query_"),
    ("buffer", "arc_buffer_"),
    ("storage", "arc_storage_"),
    ("compaction", "arc_compaction_"),
    ("cluster", "arc_cluster_"),
];

impl Metrics {
    /// Returns the series of each part as an object of its own, without the beginnings of their names.
    pub(crate) fn by_part(&self, engine: &EngineStats, uptime: Duration) -> serde_json::Value {
        let all = self.json(engine, uptime);
        let of = |start: &str| -> serde_json::Map<_, _> {
            let series = all.as_object().into_iter().flatten();
            series.filter_map(|(name, value)| Some((name.strip_prefix(start)?.to_owned(), value.clone()))).collect()
        };
        let mut parts: serde_json::Map<_, _> =
            PARTS.into_iter().map(|(part, start)| (part.to_owned(), of(start).into())).collect();
        parts.insert("timestamp".to_owned(), timestamp::now().into());
        parts.into()
    }
}

/// One name and its value.
struct Series {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    value: u64,
}

fn counter(name: &'static str, help: &'static str, value: u64) -> Series {
    Series { name, kind: "counter", help, value }
}

fn gauge(name: &'static str, help: &'static str, value: u64) -> Series {
    Series { name, kind: "gauge", help, value }
}

fn of_query_node(node: &QueryNode) -> Vec<Series> {
    let (stats, tasks) = node.counts();
    vec![
        counter("arc_query_divided_total", "Queries that other nodes computed parts of", stats.divided),
        counter("arc_query_kept_total", "Queries that read enough for that, and were computed here alone", stats.kept),
        counter("arc_query_retried_total", "Queries begun again without a node that failed", stats.retried),
        gauge("arc_query_parts", "Parts of other nodes' queries at this moment", tasks as u64),
    ]
}

fn of_engine(stats: &EngineStats) -> Vec<Series> {
    vec![
        counter("arc_ingest_batches_total", "Writes accepted by the engine", stats.writes),
        counter("arc_ingest_records_total", "Points stored", stats.points),
        counter("arc_ingest_replayed_total", "Writes sent again and stored before", stats.replayed_writes),
        gauge("arc_memory_bytes", "Bytes of the memory budget held", stats.memory_bytes),
        gauge("arc_memory_peak_bytes", "Most bytes of the memory budget held at a time", stats.memory_peak_bytes),
        gauge("arc_memory_limit_bytes", "Bytes of the memory budget", stats.memory_limit_bytes),
        counter("arc_ingest_errors_total", "Points refused", stats.rejected_points),
        counter("arc_ingest_bytes_total", "Body bytes of accepted writes", stats.bytes),
        counter("arc_buffer_flushes_total", "Flushes that ended well", stats.flushes),
        counter("arc_buffer_flush_failures_total", "Flushes that failed", stats.flush_failures),
        gauge("arc_buffer_records_buffered", "Points not yet in data files", stats.buffered_rows),
        gauge("arc_buffer_bytes", "Memory of points not yet in data files", stats.buffered_bytes),
        gauge("arc_series", "Series known, of all tables", stats.series),
        gauge("arc_series_bytes", "Memory of the series known, about; in no budget", stats.series_bytes),
        gauge("arc_databases", "Databases", stats.databases),
        gauge(
            "arc_databases_memory_durability",
            "Databases whose writes survive nothing unless they ask",
            stats.memory_databases,
        ),
        gauge("arc_tables", "Tables of all databases", stats.tables),
        gauge("arc_buffer_queue_depth", "Writes that wait for the log", stats.queued_writes),
        counter("arc_wal_recovery_records_total", "Points recovered from the log on start", stats.replayed_points),
        gauge("arc_wal_dir_bytes", "Bytes of log not yet released", stats.wal_bytes),
        gauge("arc_storage_files", "Live data files", stats.files),
        gauge("arc_storage_file_bytes", "Bytes of the live data files", stats.file_bytes),
        gauge("arc_storage_files_retired", "Data files replaced or dropped and still on disk", stats.retired_files),
        gauge("arc_storage_file_bytes_retired", "Their bytes: what history and snapshots cost", stats.retired_bytes),
        gauge("arc_history_log_bytes", "Bytes of log that are kept for history alone", stats.history_log_bytes),
        gauge("arc_snapshots", "Snapshots", stats.snapshots),
        counter("arc_buffer_flushed_bytes_total", "Bytes of data files written by flushes", stats.flushed_bytes),
        counter(
            "arc_compaction_jobs_total",
            "Merges of data files",
            stats.compactions.saturating_add(stats.compaction_failures),
        ),
        counter("arc_compaction_jobs_success_total", "Merges of data files that ended well", stats.compactions),
        counter("arc_compaction_jobs_failed_total", "Merges of data files that failed", stats.compaction_failures),
        counter("arc_compaction_rows_read_total", "Rows read by merges", stats.compaction_rows_in),
        counter("arc_compaction_rows_written_total", "Rows written by merges", stats.compaction_rows_out),
        counter("arc_compaction_bytes_read_total", "Bytes of files that merges replaced", stats.compaction_bytes_in),
        counter("arc_compaction_bytes_written_total", "Bytes of files that merges wrote", stats.compaction_bytes_out),
        counter("arc_compaction_files_moved_total", "Data files moved out of packs as they were", stats.moved_files),
        counter("arc_buffer_flushed_records_total", "Points written to data files by flushes", stats.flushed_rows),
        gauge("arc_query_planning", "SQL statements planned now", stats.planning),
        gauge("arc_query_planning_abandoned", "Of these, statements that nobody waits for", stats.planning_abandoned),
        counter("arc_query_ended_for_memory_total", "Queries ended near max_resident", stats.ended_queries),
        counter("arc_wal_syncs_total", "Syncs of the log", stats.wal_syncs),
        counter("arc_remote_puts_total", "Groups of the log put into the object store", stats.remote_puts),
        counter(
            "arc_remote_put_failures_total",
            "Puts of groups of the log whose outcome was unknown, each tried again",
            stats.remote_put_failures,
        ),
        counter("arc_remote_bytes_total", "Bytes of the log put into the object store", stats.remote_bytes),
        counter(
            "arc_remote_put_microseconds_total",
            "Time that puts of the log into the object store took",
            stats.remote_put_ns / 1_000,
        ),
        counter("arc_deletes_total", "Deletes done", stats.deletes),
        gauge("arc_deletes_pending", "Deletes not yet carried out in data files", stats.pending_deletes),
        counter("arc_drops_total", "Tables and databases dropped", stats.drops),
        counter("arc_drops_files_total", "Data files dropped with their table", stats.dropped_files),
        counter("arc_retention_files_total", "Data files dropped because of their age", stats.expired_files),
    ]
}

fn of_cluster(cluster: &Cluster) -> Vec<Series> {
    let counters = &cluster.counters;
    let (nodes, reachable) = cluster.nodes();
    vec![
        gauge("arc_cluster_nodes", "Other nodes that are named", nodes),
        gauge("arc_cluster_nodes_reachable", "Of these, nodes that answered when they were asked last", reachable),
        gauge(
            "arc_cluster_owner_reachable",
            "1 if a node that takes writes is known, this one or another",
            cluster.has_owner().into(),
        ),
        counter("arc_cluster_forwarded_total", "Requests handed on to another node", counters.forwarded.get()),
        counter(
            "arc_cluster_forward_failures_total",
            "Of these, requests that were not answered",
            counters.forward_failures.get(),
        ),
        counter("arc_cluster_received_total", "Requests that other nodes have handed on", counters.received.get()),
        counter("arc_cluster_refused_total", "Requests as of a node that were refused", counters.refused.get()),
        counter(
            "arc_cluster_log_questions_total",
            "Questions to the owner about its log",
            counters.log_questions.get(),
        ),
        counter("arc_cluster_log_bytes_total", "Bytes of the owner's log that were read", counters.log_bytes.get()),
        counter(
            "arc_cluster_log_bytes_sent_total",
            "Bytes of the log that other nodes have read",
            counters.log_bytes_sent.get(),
        ),
    ]
}

/// Returns the memory that the process holds, where the operating system says so in `/proc`.
#[expect(clippy::disallowed_methods, reason = "the kernel's files are no data of ours")]
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_add_up_and_never_fall() {
        let metrics = Metrics::default();
        for us in [50, 100, 101, 999, 4_000_000, 9_000_000] {
            metrics.answered(StatusCode::OK, Duration::from_micros(us));
        }
        let text = metrics.prometheus(&EngineStats::default(), Duration::ZERO);
        let values: Vec<u64> = text
            .lines()
            .filter(|line| line.starts_with("arc_http_latency_seconds_bucket"))
            .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(values.len(), BUCKETS_US.len() + 1);
        assert_eq!(values[..3], [2, 3, 3]);
        assert!(values.is_sorted());
        assert_eq!(values.last(), Some(&6));
    }

    #[test]
    fn each_name_is_declared_once() {
        let text = Metrics::default().prometheus(&EngineStats::default(), Duration::ZERO);
        let mut names: Vec<_> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
