//! Carrying out a policy at once: points are counted first, and deleted if that is what the client has seen and wants.
//!
//! Deletes as any other delete does, so that points go to the nanosecond, not by whole files. A measurement with a setting of
//! its own goes by that one, and not by a policy of its database.

use std::{sync::Arc, time::Instant};

use arc_core::{Deletion, Predicate};
use axum::{extract::Request, response::Response};
use hyper::StatusCode;
use serde_json::{Value, json};

use super::{
    policies::{blocking, check_admin},
    policy::Policy,
    request::WantedExecution,
    store::Outcome,
};
use crate::{
    admin::{milliseconds, parse},
    app::App,
    auth::{Caller, Rights},
    body,
    delete::{self, check_enabled},
    errors::{Failure, json_response},
    timestamp,
};

/// What a policy would take away now.
struct Round {
    policy: Policy,
    cutoff_ns: i64,
    tables: Vec<Expired>,
}

/// The points of one table that are past their time.
struct Expired {
    deletion: Deletion,
    points: u64,
    /// Data files in which there are no others.
    files: u64,
}

/// `POST /api/v1/retention/{id}/execute` with `{"dry_run": false, "confirm": true}`.
pub(super) async fn execute(app: &Arc<App>, caller: &Caller, id: u64, request: Request) -> Result<Response, Failure> {
    let started = Instant::now();
    let policy = check_admin(app, caller, id)?;
    let (parts, body) = request.into_parts();
    let body = body::read(app, body, &parts.headers).await?;
    let wanted = match body.is_empty() {
        true => WantedExecution::default(),
        false => WantedExecution::read(&parse(&body)?)?,
    };
    if !wanted.dry_run {
        // Of what the server keeps for itself nobody deletes anything, whatever its retention is.
        caller.check_target(Rights::DELETE, &policy.database, policy.measurement.as_deref())?;
        check_enabled(app)?;
    }
    let round = Round::plan(app, caller, policy).await?;
    let answer = round.describe(wanted.dry_run);
    if !wanted.dry_run {
        round.check_confirmed(app, wanted.confirm)?;
        let app = Arc::clone(app);
        // Done to its end even if the client leaves.
        blocking(move || round.carry_out(&app)).await?;
    }
    let mut answer = answer;
    answer.insert("execution_time_ms".to_owned(), milliseconds(started).into());
    Ok(json_response(StatusCode::OK, Value::from(answer).to_string()))
}

impl Round {
    async fn plan(app: &Arc<App>, caller: &Caller, policy: Policy) -> Result<Self, Failure> {
        let cutoff_ns = policy.cutoff_ns(timestamp::now_ns());
        let database = &policy.database;
        let names = match &policy.measurement {
            Some(table) => vec![table.clone()],
            None => {
                let tables = app.engine.tables(database)?.into_iter();
                let names = tables.map(|table| table.schema.table.to_string());
                // It may have been dropped meanwhile.
                names.filter(|name| app.engine.retention(database, Some(name)).is_ok_and(|own| own.is_none())).collect()
            }
        };
        let mut tables = Vec::new();
        for name in names {
            let expired = Expired::count(app, caller, (database, &name), cutoff_ns).await?;
            tables.extend(Some(expired).filter(|expired| expired.points > 0));
        }
        Ok(Self { policy, cutoff_ns, tables })
    }

    fn points(&self) -> u64 {
        self.tables.iter().map(|expired| expired.points).sum()
    }

    fn check_confirmed(&self, app: &App, confirmed: bool) -> Result<(), Failure> {
        let (points, threshold) = (self.points(), app.delete.confirmation_threshold);
        if points > threshold && !confirmed {
            let text = format!("{points} points are past their time; send \"confirm\": true to delete that many");
            return Err(Failure::bad_request(text));
        }
        Ok(())
    }

    /// Deletes the points, and notes what came of it.
    fn carry_out(self, app: &App) -> Result<(), Failure> {
        let started = Instant::now();
        let number = app.policies.begin(self.policy.id, self.cutoff_ns)?;
        let (mut deleted, mut failed) = (0, None);
        for Expired { deletion, points, .. } in &self.tables {
            match app.engine.delete(&deletion.database, &deletion.table, &deletion.predicate) {
                Ok(_) => deleted += points,
                Err(error) => {
                    failed = Some(Failure::from(error));
                    break;
                }
            }
        }
        let error = failed.as_ref().map(|failure: &Failure| failure.message.clone());
        tracing::info!(policy = self.policy.id, points = deleted, error, "executed a retention policy");
        let noted = app.policies.end(self.policy.id, number, Outcome { deleted, took: started.elapsed(), error });
        match failed {
            Some(failure) => Err(failure),
            None => noted.map_err(|failure| {
                let text = format!("{deleted} points are deleted, but that could not be noted: {}", failure.message);
                Failure::new(StatusCode::INTERNAL_SERVER_ERROR, text)
            }),
        }
    }

    fn describe(&self, dry_run: bool) -> serde_json::Map<String, Value> {
        let names: Vec<_> = self.tables.iter().map(|expired| expired.deletion.table.as_str()).collect();
        let answer = json!({
            "policy_id": self.policy.id,
            "policy_name": self.policy.name,
            "deleted_count": self.points(),
            "files_deleted": self.tables.iter().map(|expired| expired.files).sum::<u64>(),
            "dry_run": dry_run,
            "cutoff_date": timestamp::format(self.cutoff_ns),
            "affected_measurements": names,
        });
        answer.as_object().cloned().unwrap_or_default()
    }
}

impl Expired {
    async fn count(
        app: &Arc<App>,
        caller: &Caller,
        (database, table): (&str, &str),
        cutoff_ns: i64,
    ) -> Result<Self, Failure> {
        let (engine, asked) = (app.engine.clone(), (database.to_owned(), table.to_owned()));
        let condition = format!("time < '{}'", timestamp::format(cutoff_ns));
        let predicate =
            delete::blocking(move || engine.check_delete(&asked.0, &asked.1, &Predicate::from_sql(&condition)?));
        let deletion = Deletion::new(database.to_owned(), table.to_owned(), predicate.await?);
        let points = delete::counted(app, caller, &deletion).await?;
        let files = app.engine.data_files(database, table)?;
        let files = files.iter().filter(|file| file.max_time < cutoff_ns).count();
        Ok(Self { deletion, points, files: u64::try_from(files).unwrap_or(u64::MAX) })
    }
}
