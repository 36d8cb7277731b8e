//! Which path and method is whose.

use std::sync::Arc;

use axum::{
    Router,
    extract::{DefaultBodyLimit, Request},
    middleware,
    routing::{MethodRouter, any, get, post},
};
use hyper::StatusCode;

use crate::{
    admin,
    app::App,
    auth, backup, cluster, cluster_query, column_types, compaction, console, continuous, data_files, delete,
    errors::Failure,
    flight, history,
    http::around,
    import,
    influx::{self, buckets, configure},
    logging, openapi, push, query, retention, write, write_status,
};

/// Returns the whole HTTP service.
///
/// The paths that are the same as one another's are names that older clients use.
pub fn router(app: Arc<App>) -> Router {
    let routes = Router::new()
        .route("/write", post(write::line_protocol))
        .route("/api/v1/write", post(write::line_protocol))
        .route("/api/v2/write", post(write::line_protocol))
        .route("/api/v1/write/influxdb", post(write::line_protocol))
        .route("/api/v1/write/line-protocol", post(write::line_protocol))
        .route("/api/v1/write/line-protocol/stats", get(write_status::line_protocol_stats))
        .route("/api/v1/write/line-protocol/health", get(write_status::health))
        .route("/api/v1/write/line-protocol/flush", post(write_status::flush))
        .route("/api/v1/write/msgpack", post(write::message_pack))
        .route("/api/v1/write/msgpack/stats", get(write_status::message_pack_stats))
        .route("/api/v1/write/msgpack/spec", get(write_status::spec))
        .route("/api/v1/write/arrow", post(write::arrow))
        .route("/write/v2/msgpack", post(write::message_pack))
        .route("/api/v2/msgpack", post(write::message_pack))
        .route("/api/v1/query", post(query::any))
        .route("/api/v1/query/arrow", post(query::arrow))
        .route("/api/v1/query/msgpack", post(query::message_pack))
        .route("/api/v1/query/estimate", post(query::estimate))
        .route("/api/v1/query/{measurement}", get(query::measurement))
        .route("/api/v1/tail", get(query::tail))
        .route("/api/v1/queries", get(query::control::list))
        .route("/api/v1/queries/active", get(query::control::list))
        .route("/api/v1/queries/{id}", get(query::control::get).delete(query::control::cancel))
        .route("/api/v1/databases", get(admin::databases).post(admin::create_database))
        .route("/api/v1/databases/{name}", get(admin::database).patch(admin::change_database).delete(delete::database))
        .route("/api/v1/databases/{name}/measurements", get(admin::database_measurements))
        .route("/api/v1/databases/{name}/measurements/{measurement}", get(column_types::get).patch(column_types::patch))
        .route("/api/v1/databases/{name}/measurements/{measurement}/column-types", get(column_types::in_force))
        .route("/api/v1/databases/{name}/measurements/{measurement}/files", get(data_files::by_day))
        .route("/api/v1/delete", post(delete::delete))
        .route("/api/v1/delete/config", get(delete::config))
        .route("/api/v1/import/csv", post(import::csv))
        .route("/api/v1/import/parquet", post(import::parquet))
        .route("/api/v1/import/lp", post(import::line_protocol))
        .route("/api/v1/import/stats", get(import::stats))
        .route("/api/v1/retention", get(retention::list).post(retention::create))
        .route("/api/v1/retention/{database}", retention_of())
        .route("/api/v1/retention/{database}/{measurement}", retention_of().post(retention::post))
        .route("/api/v1/measurements", get(admin::measurements))
        .route("/api/v1/compaction/status", get(compaction::status))
        .route("/api/v1/compaction/stats", get(compaction::stats))
        .route("/api/v1/compaction/trigger", post(compaction::trigger))
        .route("/", get(console::page))
        .route("/console/{file}", get(console::file))
        .route("/api/v1/console/documents", get(console::list).post(console::create))
        .route("/api/v1/console/documents/{id}", get(console::get).put(console::put).delete(console::delete))
        .route("/api/openapi.json", get(openapi::document))
        .route("/api/v1/logs", get(logging::logs))
        .route("/api/v1/cluster", get(cluster::status))
        .route("/health", get(admin::health))
        .route("/ready", get(admin::ready))
        .route("/ready/write", get(admin::ready))
        .route("/metrics", get(admin::metrics))
        .route("/api/v1/metrics", get(admin::metrics_as_json))
        .route("/api/v1/metrics/endpoints", get(admin::metrics_by_part))
        .route("/api/v1/metrics/timeseries/{type}", get(history::timeseries));
    let routes = routes.merge(token_routes()).merge(influx_routes()).merge(continuous_routes()).merge(push_routes());
    let routes = if app.cluster.is_some() { routes.merge(cluster::routes()) } else { routes };
    let routes = if app.backups.is_some() { routes.merge(backup_routes()) } else { routes };
    let flight = flight::routes(&app);
    let routes = routes
        .method_not_allowed_fallback(method_not_allowed)
        .fallback(not_found)
        // Bodies are read by our own code, under our own limits.
        .layer(DefaultBodyLimit::disable())
        .with_state(Arc::clone(&app))
        .merge(flight);
    cluster_query::beside(within(routes, Arc::clone(&app)), &app)
}

/// Returns the service of an address that has Flight alone.
pub(crate) fn flight_router(app: Arc<App>) -> Router {
    within(flight::routes(&app).fallback(flight_only), app)
}

/// Puts around `routes` what happens around every request.
fn within(routes: Router, app: Arc<App>) -> Router {
    // A layer on a router runs after its routing, too late to change the path; one on a router around it does not.
    Router::new().fallback_service(routes).layer(middleware::from_fn_with_state(app, around::around))
}

fn continuous_routes() -> Router<Arc<App>> {
    Router::new()
        .route("/api/v1/continuous_queries", get(continuous::list).post(continuous::create))
        .route("/api/v1/continuous_queries/{id}", get(continuous::get).put(continuous::put).delete(continuous::delete))
        .route("/api/v1/continuous_queries/{id}/execute", post(continuous::execute))
        .route("/api/v1/continuous_queries/{id}/executions", get(continuous::executions))
}

fn retention_of() -> MethodRouter<Arc<App>> {
    get(retention::get).put(retention::put).delete(retention::delete)
}

fn token_routes() -> Router<Arc<App>> {
    Router::new()
        .route("/api/v1/auth/verify", get(auth::verify))
        .route("/api/v1/auth/tokens", get(auth::list).post(auth::create))
        .route("/api/v1/auth/tokens/{id}", get(auth::get).patch(auth::patch).delete(auth::delete))
        .route("/api/v1/auth/tokens/{id}/revoke", post(auth::revoke))
        .route("/api/v1/auth/tokens/{id}/rotate", post(auth::rotate))
        .route("/api/v1/auth/cache/stats", get(auth::cache_stats))
        .route("/api/v1/auth/cache/invalidate", post(auth::no_cache))
        .route("/api/v3/configure/token", post(auth::create_scoped).delete(auth::delete_named))
        .route("/api/v3/configure/token/admin", post(auth::create_admin))
        .route("/api/v3/configure/token/named_admin", post(auth::create_named_admin))
        .route("/api/v3/enterprise/configure/token", post(auth::create_scoped))
}

/// Returns the routes that only clients of InfluxDB know, beside those for writes.
fn influx_routes() -> Router<Arc<App>> {
    Router::new()
        .route("/api/v2/orgs", get(buckets::orgs))
        .route("/api/v2/me", get(buckets::me))
        .route("/api/v2/users", get(buckets::users))
        .route("/api/v2/buckets", get(buckets::list).post(buckets::create))
        .route("/api/v2/buckets/{id}", get(buckets::get).delete(buckets::drop))
        .route("/api/v2/delete", post(buckets::delete))
        .route("/api/v2/setup", get(buckets::setup).post(buckets::set_up))
        .route("/api/v2/ready", get(buckets::ready))
        .route("/debug/vars", get(influx::vars))
        .route(
            "/api/v3/configure/database",
            get(configure::databases).post(configure::create_database).delete(configure::drop_database),
        )
        .route("/api/v3/configure/table", post(configure::create_table).delete(configure::drop_table))
        .route("/query", any(influx::query))
        .route("/ping", get(influx::ping).post(influx::ping))
        .route("/api/v3/query_sql", any(influx::query_sql))
        .route("/api/v3/write_lp", post(influx::write_lp))
}

/// Returns the routes for directories that hand their rows to this one.
fn push_routes() -> Router<Arc<App>> {
    Router::new()
        .route("/api/v1/push", get(push::status))
        .route("/api/v1/push/file", get(push::received).put(push::receive))
        .route("/api/v1/push/adopt", post(push::adopt))
}

fn backup_routes() -> Router<Arc<App>> {
    Router::new()
        .route("/api/v1/backup", get(backup::list).post(backup::start))
        .route("/api/v1/backup/status", get(backup::status))
        .route("/api/v1/backup/{id}", get(backup::get))
}

async fn not_found(request: Request) -> Failure {
    Failure::new(StatusCode::NOT_FOUND, format!("Cannot {} {}", request.method(), request.uri().path()))
}

async fn flight_only() -> Failure {
    Failure::new(StatusCode::NOT_FOUND, "this address serves Arrow Flight alone; HTTP has another one")
}

async fn method_not_allowed(request: Request) -> Failure {
    let text = format!("{} is not allowed on {}", request.method(), request.uri().path());
    Failure::new(StatusCode::METHOD_NOT_ALLOWED, text)
}
