//! The table of settings: one row for each, from which flags, variables, the file's keys and the help are made.

use super::{
    LogFormat, LogLevel, Role,
    cluster::{node_name, peers, show_peers},
    setting::{Setting, setting},
    values::{
        address, count, duration, hosts, limit, memory_size, non_empty, optional_path, optional_url, origin, patterns,
        rows, show, show_duration, show_memory, show_optional, show_path, show_size, size, switch,
    },
};

/// All settings, in the order of the help.
pub(super) const SETTINGS: &[Setting] = &[
    setting!(
        "data_dir",
        "data-dir",
        "PATH",
        data_dir,
        |text: &str| non_empty(text).map(Into::into),
        |path: std::path::PathBuf| path.display().to_string(),
        "Directory of the data; what writes to it makes it"
    ),
    setting!(
        "reader",
        "reader",
        "",
        reader,
        switch,
        show,
        "Only read the directory, which another process writes; any number of servers may do so at once"
    ),
    setting!(
        "http",
        "http",
        "ADDRESS",
        http,
        address,
        show,
        "Address to serve HTTP and Arrow Flight on; port 0 takes a free one"
    ),
    setting!(
        "flight",
        "flight",
        "ADDRESS",
        flight,
        |text: &str| if text == "none" { Ok(None) } else { address(text).map(Some) },
        |at: Option<std::net::SocketAddr>| at.map_or_else(|| "none".to_owned(), |at| at.to_string()),
        "A further address, for Arrow Flight alone; none for none"
    ),
    setting!(
        "tls_cert",
        "tls-cert",
        "PATH",
        tls.cert,
        optional_path,
        show_path,
        "Certificate to encrypt connections with, with those that vouch for it, in PEM; none for none"
    ),
    setting!("tls_key", "tls-key", "PATH", tls.key, optional_path, show_path, "Private key of the certificate, in PEM"),
    setting!(
        "tls_client_ca",
        "tls-client-ca",
        "PATH",
        tls.client_ca,
        optional_path,
        show_path,
        "Certificates in PEM, one of which has to vouch for that of each client; none for none"
    ),
    setting!(
        "no_auth",
        "no-auth",
        "",
        no_auth,
        switch,
        show,
        "Let everybody in without a token; on loopback addresses only"
    ),
    setting!(
        "sandbox",
        "sandbox",
        "",
        sandbox,
        switch,
        show,
        "Have the kernel keep the process to its folders, where it can (Landlock, Linux)"
    ),
    setting!(
        "public_metrics",
        "public-metrics",
        "",
        public_metrics,
        switch,
        show,
        "Show the metrics to those who have no token as well"
    ),
    setting!(
        "cors_origin",
        "cors-origin",
        "ORIGIN",
        cors_origin,
        origin,
        show_optional,
        "Web origin whose pages may call this server, * for all, none for none"
    ),
    setting!(
        "allowed_hosts",
        "allowed-hosts",
        "NAMES",
        allowed_hosts,
        hosts,
        |hosts: Vec<String>| if hosts.is_empty() { "none".to_owned() } else { hosts.join(",") },
        "With --no-auth, names that clients may call this server by, beside IP addresses, localhost and the machine's; * for any, none for none"
    ),
    setting!(
        "backup_dir",
        "backup-dir",
        "PATH",
        backup_dir,
        optional_path,
        show_path,
        "Folder of the backups that clients may ask for with POST /api/v1/backup, none for none"
    ),
    setting!(
        "object_store_url",
        "object-store-url",
        "URL",
        object_store.url,
        optional_url,
        show_optional,
        "Keep data files and manifest there, like s3://bucket/prefix, and only the log in the directory; none for none"
    ),
    setting!(
        "object_store_endpoint",
        "object-store-endpoint",
        "URL",
        object_store.endpoint,
        optional_url,
        show_optional,
        "URL of the object store's server if it is not AWS, none for what AWS_ENDPOINT_URL says"
    ),
    setting!(
        "object_store_take_over",
        "object-store-take-over",
        "",
        object_store.take_over,
        switch,
        show,
        "Let a new directory take over what another one has in the object store, but for what only the log there has"
    ),
    setting!(
        "role",
        "role",
        "ROLE",
        cluster.role,
        Role::parse,
        |role: Role| role.name().to_owned(),
        "This server's part among several over one object store: all, ingest (takes writes) or query (answers queries)"
    ),
    setting!(
        "node_name",
        "node-name",
        "NAME",
        cluster.node_name,
        node_name,
        show_optional,
        "This server's name among several, none where it is alone"
    ),
    setting!(
        "peer",
        "peer",
        "NAME=URL",
        cluster.peers,
        peers,
        show_peers,
        "Another server of the same object store, by its node_name; once for each, or with commas in between; none for none"
    ),
    setting!(
        "cluster_token_file",
        "cluster-token-file",
        "PATH",
        cluster.token_file,
        optional_path,
        show_path,
        "File with the secret that the servers of one object store know each other by, at least 32 characters; none for none"
    ),
    setting!(
        "takeover_after",
        "takeover-after",
        "TIME",
        cluster.takeover_after,
        |text: &str| if text == "none" { Ok(None) } else { duration(text).map(Some) },
        |time: Option<std::time::Duration>| time.map_or_else(|| "none".to_owned(), show_duration),
        "Stand by, and take the store over once no server has said for so long that it has the log; none for never"
    ),
    setting!(
        "delete_enabled",
        "delete-enabled",
        "",
        delete.enabled,
        switch,
        show,
        "Allow clients to delete points with POST /api/v1/delete"
    ),
    setting!(
        "delete_confirmation_threshold",
        "delete-confirmation-threshold",
        "N",
        delete.confirmation_threshold,
        rows,
        show,
        "Points that one request may delete without confirming it"
    ),
    setting!(
        "delete_max_rows",
        "delete-max-rows",
        "N",
        delete.max_rows,
        rows,
        show,
        "Most points that one request may delete"
    ),
    setting!(
        "durability",
        "durability",
        "LEVEL",
        engine.durability,
        |text: &str| text.parse().map_err(|_| "memory, process, disk or remote"),
        show,
        "What an acknowledged point survives: memory nothing, process kill -9, disk also power loss, remote also the machine's"
    ),
    setting!(
        "remote_interval",
        "remote-interval",
        "TIME",
        engine.remote_interval,
        duration,
        show_duration,
        "Least time between puts of the log into the object store, for writes of durability remote; each put is paid for"
    ),
    setting!(
        "string_columns",
        "string-columns",
        "PATTERNS",
        engine.column_types.string_columns,
        patterns,
        |patterns: Option<Vec<String>>| patterns.map_or_else(|| "none".to_owned(), |patterns| patterns.join(",")),
        "New fields that are text whatever their values are, by patterns such as attr_*,resource_*; none for none"
    ),
    setting!(
        "on_conflict",
        "on-conflict",
        "HOW",
        engine.column_types.on_conflict,
        |text: &str| text
            .parse()
            .map(|how| (how != arc_core::OnConflict::Reject).then_some(how))
            .map_err(|_| "reject or widen"),
        |how: Option<arc_core::OnConflict>| how.unwrap_or_default().to_string(),
        "What becomes of a value whose type is not its column's: reject refuses it, widen changes the column's type"
    ),
    setting!(
        "time_unit",
        "time-unit",
        "UNIT",
        engine.column_types.time_unit,
        |text: &str| text
            .parse()
            .map(|unit| (unit != arc_core::FileTimeUnit::Nanosecond).then_some(unit))
            .map_err(|_| "ns, us or ms"),
        |unit: Option<arc_core::FileTimeUnit>| unit.unwrap_or_default().to_string(),
        "Unit of the times in data files: ns, us or ms; Spark and others refuse ns; a file with a finer time takes the next unit that has it"
    ),
    setting!(
        "finer_times",
        "finer-times",
        "HOW",
        engine.column_types.finer_times,
        |text: &str| text
            .parse()
            .map(|how| (how != arc_core::FinerTimes::Keep).then_some(how))
            .map_err(|_| "keep, reject or round"),
        |how: Option<arc_core::FinerTimes>| how.unwrap_or_default().to_string(),
        "What becomes of a point whose time is finer than the time_unit: keep stores it as it is, reject refuses it, round makes its time the whole unit at or before it"
    ),
    setting!(
        "max_body_bytes",
        "max-body-bytes",
        "SIZE",
        limits.body_bytes,
        memory_size,
        show_memory,
        "Largest request body as sent; larger ones get 413"
    ),
    setting!(
        "max_decompressed_bytes",
        "max-decompressed-bytes",
        "SIZE",
        limits.decompressed_bytes,
        memory_size,
        show_memory,
        "Largest request body after decompression; larger ones get 413"
    ),
    setting!(
        "max_import_bytes",
        "max-import-bytes",
        "SIZE",
        limits.import_bytes,
        memory_size,
        show_memory,
        "Largest file for POST /api/v1/import/...; larger ones get 413"
    ),
    setting!(
        "max_connections",
        "max-connections",
        "N",
        limits.connections,
        count,
        show,
        "Connections served at once, up to half of the files that the process may open, and half of them for one address; further ones wait"
    ),
    setting!(
        "max_concurrent_queries",
        "max-concurrent-queries",
        "N",
        limits.queries,
        count,
        show,
        "Queries that run at once; further ones wait up to 10 s, then get 503"
    ),
    setting!(
        "max_query_rows",
        "max-query-rows",
        "N",
        limits.query_rows,
        |text: &str| if text == "none" { Ok(u64::MAX) } else { rows(text) },
        |rows: u64| if rows == u64::MAX { "none".to_owned() } else { rows.to_string() },
        "Most rows of an answer; a query with more fails; none for no limit"
    ),
    setting!(
        "slow_query",
        "slow-query",
        "TIME",
        slow_query,
        |text: &str| if text == "none" { Ok(None) } else { duration(text).map(Some) },
        |time: Option<std::time::Duration>| time.map_or_else(|| "none".to_owned(), show_duration),
        "Log queries that take this long until their answer is sent, with their statement; none for never"
    ),
    setting!(
        "read_timeout",
        "read-timeout",
        "TIME",
        limits.read_timeout,
        duration,
        show_duration,
        "Longest pause within a request body, and of all pauses but a second for each 64 KiB, before the request gets 408"
    ),
    setting!(
        "send_timeout",
        "send-timeout",
        "TIME",
        limits.send_timeout,
        duration,
        show_duration,
        "How long a client may take nothing of its answer before its connection is closed"
    ),
    setting!(
        "write_timeout",
        "write-timeout",
        "TIME",
        engine.write_timeout,
        duration,
        show_duration,
        "How long a write waits for room before it gets 503"
    ),
    setting!(
        "memory",
        "memory",
        "SIZE",
        engine.memory_bytes,
        memory_size,
        show_memory,
        "Memory for unflushed points, flushes and queries; half of what there is unless set"
    ),
    setting!(
        "max_resident",
        "max-resident",
        "SIZE",
        max_resident,
        |text: &str| if text == "auto" { Ok(None) } else { memory_size(text).map(Some) },
        |bytes: Option<usize>| bytes.map_or_else(|| "auto".to_owned(), show_memory),
        "Memory the whole process may come to hold, near which queries end and writes wait; auto is twice --memory, 0 no limit"
    ),
    setting!(
        "flush_after",
        "flush-after",
        "TIME",
        engine.flush_after,
        duration,
        show_duration,
        "Oldest age of unflushed points before they go to data files"
    ),
    setting!(
        "flush_bytes",
        "flush-bytes",
        "SIZE",
        engine.flush_bytes,
        memory_size,
        show_memory,
        "Bytes of unflushed points that start a flush"
    ),
    setting!(
        "flush_wal_bytes",
        "flush-wal-bytes",
        "SIZE",
        engine.flush_wal_bytes,
        size,
        show_size,
        "Bytes of log since the last flush that start a flush"
    ),
    setting!(
        "pack_bytes",
        "pack-bytes",
        "SIZE",
        engine.pack_bytes,
        memory_size,
        show_memory,
        "Bytes in memory of a table's share of a flush up to which it may share a file with those of others, 0 for never"
    ),
    setting!(
        "max_buffer_bytes",
        "max-buffer-bytes",
        "SIZE",
        engine.max_buffer_bytes,
        memory_size,
        show_memory,
        "Bytes of unflushed points above which writes wait"
    ),
    setting!(
        "wal_segment_bytes",
        "wal-segment-bytes",
        "SIZE",
        engine.wal_segment_bytes,
        size,
        show_size,
        "Size of one log segment"
    ),
    setting!(
        "compaction",
        "compaction",
        "SWITCH",
        engine.compaction,
        switch,
        show,
        "Whether data files are merged, and those past their retention dropped, by themselves: true or false"
    ),
    setting!(
        "compaction_quiet",
        "compaction-quiet",
        "TIME",
        engine.compaction_quiet,
        duration,
        show_duration,
        "How long a day must be over, and have got no points, before its files are merged for the last time"
    ),
    setting!(
        "compaction_grace",
        "compaction-grace",
        "TIME",
        engine.compaction_grace,
        duration,
        show_duration,
        "How long a data file that was replaced or dropped stays on disk, after history"
    ),
    setting!(
        "history",
        "history",
        "TIME",
        engine.history,
        duration,
        show_duration,
        "How long older states can be asked for (AS OF), and deleted points stay on disk; 0 for not at all"
    ),
    setting!(
        "history_log_bytes",
        "history-log-bytes",
        "SIZE",
        engine.history_log_bytes,
        size,
        show_size,
        "Most bytes of the log that stay for history; what is older than they reach cannot be asked for"
    ),
    setting!(
        "max_databases",
        "max-databases",
        "N",
        engine.max_databases,
        limit,
        show,
        "Databases that there may be; what would make one more gets 400; 0 for no limit"
    ),
    setting!(
        "max_tables",
        "max-tables",
        "N",
        engine.max_tables,
        limit,
        show,
        "Tables that there may be in all databases; a write that would make one more gets 400; 0 for no limit"
    ),
    setting!(
        "query_memory_bytes",
        "query-memory-bytes",
        "SIZE",
        engine.query_memory_bytes,
        memory_size,
        show_memory,
        "Memory that all running queries share before they spill to disk"
    ),
    setting!(
        "query_timeout",
        "query-timeout",
        "TIME",
        engine.query_timeout,
        duration,
        show_duration,
        "Longest time a query may run"
    ),
    setting!(
        "idempotency_keys",
        "idempotency-keys",
        "N",
        engine.idempotency_keys,
        count,
        show,
        "Receipts kept for writes with an Idempotency-Key; beyond that the oldest are forgotten"
    ),
    setting!(
        "idempotency_window",
        "idempotency-window",
        "TIME",
        engine.idempotency_window,
        duration,
        show_duration,
        "How long a receipt is kept for a write with an Idempotency-Key"
    ),
    setting!(
        "log_format",
        "log-format",
        "FORMAT",
        log.format,
        |text: &str| LogFormat::parse(text),
        |f: LogFormat| f.name().to_owned(),
        "Log lines on standard error: text or json"
    ),
    setting!(
        "log_level",
        "log-level",
        "LEVEL",
        log.level,
        |text: &str| LogLevel::parse(text),
        |l: LogLevel| l.name().to_owned(),
        "Least important log lines: off, error, warn, info, debug or trace"
    ),
    setting!(
        "shutdown_timeout",
        "shutdown-timeout",
        "TIME",
        shutdown_timeout,
        duration,
        show_duration,
        "How long requests under way may take when the server is told to stop"
    ),
];

/// Returns the setting with this key in the file.
pub(super) fn find(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key)
}

#[cfg(test)]
mod tests;
