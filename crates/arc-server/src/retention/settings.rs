//! How long points are kept by the name of what they are in: the engine's own settings.
//!
//! Owns the shape of a setting. Never applies one: compaction does.

use std::{sync::Arc, time::Duration};

use axum::{extract::Request, response::Response};
use hyper::StatusCode;
use serde_json::{Map, Value, json};

use super::{Target, check_period};
use crate::{
    admin::parse,
    app::App,
    auth::{Caller, Rights},
    body,
    delete::{blocking, check_enabled},
    errors::{Failure, json_response},
};

const DAY_SECONDS: f64 = 86_400.0;

/// Returns all settings that a caller may know of, each with its target.
pub(super) fn all(app: &App, caller: &Caller) -> Vec<(Target, Duration)> {
    let mut settings = Vec::new();
    for database in app.engine.databases().into_iter().filter(|database| caller.sees(&database.name)) {
        let target = |measurement| Target { database: database.name.clone(), measurement };
        settings.extend(database.retention.map(|retention| (target(None), retention)));
        // It may have been dropped meanwhile.
        let tables = app.engine.tables(&database.name).unwrap_or_default().into_iter();
        for table in tables.filter(|table| caller.sees_table(&database.name, &table.schema.table)) {
            let name = &*table.schema.table;
            let retention = app.engine.retention(&database.name, Some(name)).unwrap_or_default();
            settings.extend(retention.map(|retention| (target(Some(name.to_owned())), retention)));
        }
    }
    settings
}

/// `GET` of a setting.
pub(super) fn get(app: &App, caller: &Caller, target: &Target) -> Result<Response, Failure> {
    target.check_sees(caller)?;
    let retention = app.engine.retention(&target.database, target.measurement.as_deref())?;
    let retention = retention.ok_or_else(|| missing(target))?;
    Ok(ok(&describe(target, retention)))
}

/// `PUT` of the same with `{"retention_days": 30}`, or null to keep points for ever whatever the database says.
pub(super) async fn put(
    app: &Arc<App>,
    caller: &Caller,
    target: Target,
    request: Request,
) -> Result<Response, Failure> {
    target.check_admin(caller)?;
    check_enabled(app)?;
    let (parts, body) = request.into_parts();
    let body = body::read(app, body, &parts.headers).await?;
    let retention = wanted(&parse(&body)?)?;
    check_period(&target.database, retention)?;
    let (engine, owned) = (app.engine.clone(), target.clone());
    blocking(move || engine.set_retention(&owned.database, owned.measurement.as_deref(), Some(retention))).await?;
    Ok(ok(&describe(&target, retention)))
}

/// `DELETE` of the same: the measurement goes by its database, the database keeps its points.
pub(super) async fn delete(app: &Arc<App>, caller: &Caller, target: Target) -> Result<Response, Failure> {
    target.check_admin(caller)?;
    check_enabled(app)?;
    if app.engine.retention(&target.database, target.measurement.as_deref())?.is_none() {
        return Err(missing(&target));
    }
    let (engine, owned) = (app.engine.clone(), target.clone());
    blocking(move || engine.set_retention(&owned.database, owned.measurement.as_deref(), None)).await?;
    Ok(ok(&json!({ "message": format!("Retention of {} removed", target.name()) })))
}

impl Target {
    /// Refuses who may not know of it.
    pub(super) fn check_sees(&self, caller: &Caller) -> Result<(), Failure> {
        match &self.measurement {
            Some(table) => caller.check_table(Rights::READ, &self.database, table),
            None => caller.check_sees(&self.database),
        }
    }

    /// Refuses who may not say how long its points are kept.
    pub(super) fn check_admin(&self, caller: &Caller) -> Result<(), Failure> {
        caller.check_target(Rights::ADMIN, &self.database, self.measurement.as_deref())
    }

    fn name(&self) -> String {
        let database = &self.database;
        match &self.measurement {
            Some(table) => format!("measurement {table:?} of database {database:?}"),
            None => format!("database {database:?}"),
        }
    }
}

/// Reads a setting. A key that is not known could be one that was to keep points longer.
fn wanted(request: &Value) -> Result<Duration, Failure> {
    let expected = || Failure::bad_request("expected {\"retention_days\": 30}, or null to keep points for ever");
    let request: &Map<String, Value> = request.as_object().ok_or_else(expected)?;
    if let Some(unknown) = request.keys().find(|key| *key != "retention_days") {
        return Err(Failure::bad_request(format!("the key {unknown} is not known; {}", expected().message)));
    }
    match request.get("retention_days").ok_or_else(expected)? {
        Value::Null => Ok(Duration::MAX),
        days => {
            let days = days.as_f64().ok_or_else(expected)?;
            let wrong = |_| Failure::bad_request(format!("retention_days: {days} is no number of days from 0"));
            Duration::try_from_secs_f64(days * DAY_SECONDS).map_err(wrong)
        }
    }
}

/// Shows a setting.
pub(super) fn describe(target: &Target, retention: Duration) -> Value {
    json!({ "database": target.database, "measurement": target.measurement, "retention_days": days(retention) })
}

/// Returns days, as a whole number where they are, and null for ever: more nanoseconds than a setting can have.
fn days(retention: Duration) -> Value {
    if retention.as_nanos() >= u128::from(u64::MAX) {
        Value::Null
    } else if retention.subsec_nanos() == 0 && retention.as_secs().is_multiple_of(86_400) {
        (retention.as_secs() / 86_400).into()
    } else {
        (retention.as_secs_f64() / DAY_SECONDS).into()
    }
}

fn missing(target: &Target) -> Failure {
    Failure::new(StatusCode::NOT_FOUND, format!("no retention is set for {}", target.name()))
}

fn ok(body: &Value) -> Response {
    json_response(StatusCode::OK, body.to_string())
}
