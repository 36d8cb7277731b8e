//! `GET /debug/vars`: the server's counters in the shape of InfluxDB 1.x, which Telegraf and others collect.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use hyper::StatusCode;
use serde_json::{Map, Value, json};

use crate::{app::App, auth::Caller, errors::json_response};

/// `GET /debug/vars`.
pub(crate) async fn vars(State(app): State<Arc<App>>, caller: Caller) -> Response {
    let counters = app.metrics.json(&app.engine.stats(), app.started.elapsed());
    let count = |name: &str| counters.get(name).cloned().unwrap_or_else(|| 0.into());
    let mut vars = Map::new();
    let mut put = |key: String, name: &str, tags: Value, values: Value| {
        vars.insert(key, json!({ "name": name, "tags": tags, "values": values }));
    };
    let requests = json!({
        "req": count("arc_http_requests_total"),
        "serverError": count("arc_http_requests_error_total"),
        "writeReq": count("arc_lineprotocol_requests_total"),
        "pointsWrittenOK": count("arc_ingest_records_total"),
        "writeReqBytes": count("arc_ingest_bytes_total"),
        "queryReq": count("arc_query_requests_total"),
    });
    put("httpd".to_owned(), "httpd", json!({}), requests);
    let points = json!({ "pointReq": count("arc_ingest_records_total"), "req": count("arc_ingest_batches_total") });
    put("write".to_owned(), "write", json!({}), points);
    // Who only collects counters is not worth a look.
    for database in app.engine.databases_last_seen().into_iter().filter(|database| caller.sees(&database.name)) {
        let values = json!({ "numMeasurements": database.tables });
        put(format!("database:{}", database.name), "database", json!({ "database": database.name }), values);
    }
    let memory = json!({ "Alloc": count("arc_memory_bytes"), "Sys": count("arc_memory_limit_bytes") });
    vars.insert("memstats".to_owned(), memory);
    vars.insert("cmdline".to_owned(), json!(["arc-server"]));
    json_response(StatusCode::OK, Value::Object(vars).to_string())
}
