//! Backups of the running engine over HTTP: started here, listed here, asked after here.
//!
//! Exists only where `backup_dir` is set. A client names a backup, never a path: what it names becomes a folder of
//! `backup_dir` after a check that leaves no room for anything else. Never removes a backup, never restores one: a running
//! server cannot be put back to an earlier state.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use arc_core::{
    BackupReport,
    random::{RandomSource, SystemRandom},
};
use axum::{
    extract::{Path as UrlPath, Request, State, rejection::PathRejection},
    response::Response,
};
use hyper::StatusCode;
use serde_json::{Value, json};

use crate::{
    admin::parse,
    app::App,
    auth::Caller,
    body,
    errors::{Failure, chain, json_response, public},
    kept, timestamp,
};

/// Longest name of a backup.
const MAX_NAME_BYTES: usize = 64;

/// The folder of all backups, and the one that is being written, or was last.
#[derive(Debug)]
pub(crate) struct Backups {
    dir: PathBuf,
    last: Mutex<Option<Status>>,
    random: SystemRandom,
}

/// How far a backup is.
#[derive(Debug, Clone)]
struct Status {
    id: String,
    report: BackupReport,
    started_at: String,
    /// When it ended, and why if it failed.
    ended: Option<(String, Option<String>)>,
}

impl Backups {
    pub(crate) fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), last: Mutex::new(None), random: SystemRandom::default() }
    }

    /// Returns the folder of the backups.
    pub(crate) fn path(&self) -> &Path {
        &self.dir
    }

    /// Returns the name of a backup that begins now: `backup-20260131-235959-0123abcd`.
    fn new_id(&self) -> String {
        let digits: String = timestamp::now().chars().filter(char::is_ascii_digit).take(14).collect();
        let (day, time) = digits.split_at_checked(8).unwrap_or_default();
        format!("backup-{day}-{time}-{:08x}", self.random.next() & 0xffff_ffff)
    }

    /// Takes note of a backup that begins, unless another one is under way.
    fn begin(&self, id: &str) -> Result<(), Failure> {
        let mut last = self.last();
        if last.as_ref().is_some_and(|status| status.ended.is_none()) {
            return Err(Failure::new(StatusCode::CONFLICT, "a backup is under way"));
        }
        let report = BackupReport::default();
        *last = Some(Status { id: id.to_owned(), report, started_at: timestamp::now(), ended: None });
        Ok(())
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Option<Status>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, change: impl FnOnce(&mut Status)) {
        if let Some(status) = self.last().as_mut() {
            change(status);
        }
    }
}

/// `POST /api/v1/backup` with `{"id": "…"}`, or nothing: a new backup, or an earlier one brought up to date.
pub(crate) async fn start(State(app): State<Arc<App>>, caller: Caller, request: Request) -> Result<Response, Failure> {
    caller.check_admin()?;
    let backups = backups(&app)?;
    let (parts, body) = request.into_parts();
    let body = body::read(&app, body, &parts.headers).await?;
    let request: Value = if body.is_empty() { json!({}) } else { parse(&body)? };
    let expected = || Failure::bad_request("expected {\"id\": \"…\"}, or nothing");
    let id = match request.as_object().ok_or_else(expected)?.get("id") {
        None | Some(Value::Null) => backups.new_id(),
        Some(Value::String(id)) => check_id(id)?.to_owned(),
        Some(_) => return Err(Failure::bad_request("the key id is not a string")),
    };
    backups.begin(&id)?;
    let (running, name) = (Arc::clone(&app), id.clone());
    drop(tokio::task::spawn_blocking(move || run(&running, &name)));
    let answer = json!({ "message": "Backup started", "status": "running", "backup_id": id });
    Ok(json_response(StatusCode::ACCEPTED, answer.to_string()))
}

fn run(app: &App, id: &str) {
    let Some(backups) = &app.backups else { return };
    // If this panics, the next backup must not wait for it.
    let _ended = EndOnDrop(backups);
    let target = backups.dir.join(id);
    let done = app.engine.backup_with(&target, |report| backups.note(|status| status.report = *report));
    let done = done.and_then(|report| kept::copy_all(app.engine.path(), &target).map(|()| report));
    let error = done.as_ref().err().map(public);
    match &done {
        Ok(report) => tracing::info!(id, files = report.files, bytes = report.bytes, "backup written"),
        Err(error) => tracing::error!(id, error = chain(error), "backup failed"),
    }
    backups.note(|status| {
        if let Ok(report) = done {
            status.report = report;
        }
        status.ended = Some((timestamp::now(), error));
    });
}

struct EndOnDrop<'a>(&'a Backups);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        let ended = || (timestamp::now(), Some("internal error; the server's log has the details".to_owned()));
        self.0.note(|status| {
            status.ended.get_or_insert_with(ended);
        });
    }
}

/// `GET /api/v1/backup/status`: the backup under way, or the last one since the server started.
pub(crate) async fn status(State(app): State<Arc<App>>, caller: Caller) -> Result<Response, Failure> {
    caller.check_admin()?;
    let status = backups(&app)?.last().clone();
    Ok(ok(&status.map_or_else(|| json!({ "status": "idle" }), |status| describe(&status))))
}

fn describe(status: &Status) -> Value {
    let report = &status.report;
    let name = match &status.ended {
        None => "running",
        Some((_, None)) => "completed",
        Some((_, Some(_))) => "failed",
    };
    json!({
        "operation": "backup",
        "backup_id": status.id,
        "status": name,
        "total_files": report.files,
        "processed_files": report.kept_files + report.linked_files + report.copied_files,
        "skipped_files": 0,
        "kept_files": report.kept_files,
        "linked_files": report.linked_files,
        "total_bytes": report.bytes,
        "processed_bytes": report.copied_bytes,
        "log_bytes": report.log_bytes,
        "started_at": status.started_at,
        "completed_at": status.ended.as_ref().map(|(at, _)| at),
        "error": status.ended.as_ref().and_then(|(_, error)| error.as_deref()),
    })
}

/// `GET /api/v1/backup`: what is in `backup_dir`.
pub(crate) async fn list(State(app): State<Arc<App>>, caller: Caller) -> Result<Response, Failure> {
    caller.check_admin()?;
    let dir = backups(&app)?.dir.clone();
    let listed = tokio::task::spawn_blocking(move || names(&dir)).await.map_err(|_| Failure::bug())?;
    let names = listed.map_err(|e| Failure::new(StatusCode::INTERNAL_SERVER_ERROR, format!("cannot list: {e}")))?;
    let found: Vec<Value> = names.iter().map(|(id, complete)| entry(id, *complete)).collect();
    Ok(ok(&json!({ "count": found.len(), "backups": found })))
}

/// `GET /api/v1/backup/{id}`.
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    caller: Caller,
    id: Result<UrlPath<String>, PathRejection>,
) -> Result<Response, Failure> {
    caller.check_admin()?;
    let id = id?.0;
    let path = backups(&app)?.dir.join(check_id(&id)?);
    if !path.is_dir() {
        return Err(Failure::new(StatusCode::NOT_FOUND, format!("there is no backup {id:?}")));
    }
    Ok(ok(&entry(&id, arc_core::is_data_directory(path))))
}

fn entry(id: &str, complete: bool) -> Value {
    json!({ "id": id, "backup_id": id, "status": if complete { "completed" } else { "incomplete" } })
}

/// Returns the folders that are backups by their names, and whether each is whole.
#[expect(clippy::disallowed_methods, reason = "backups lie outside of the data directory")]
fn names(dir: &Path) -> std::io::Result<Vec<(String, bool)>> {
    let entries = match std::fs::read_dir(dir) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        if let Some(name) = entry.file_name().to_str().filter(|name| check_id(name).is_ok() && entry.path().is_dir()) {
            names.push((name.to_owned(), arc_core::is_data_directory(entry.path())));
        }
    }
    names.sort();
    Ok(names)
}

/// Checks a name that is to become a folder.
fn check_id(id: &str) -> Result<&str, Failure> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if id.is_empty() || id.len() > MAX_NAME_BYTES || !id.bytes().all(is_plain) {
        return Err(Failure::bad_request(format!(
            "{:?} is no name of a backup: expected up to {MAX_NAME_BYTES} letters, digits, - and _",
            id.chars().take(MAX_NAME_BYTES).collect::<String>()
        )));
    }
    Ok(id)
}

fn backups(app: &App) -> Result<&Backups, Failure> {
    app.backups.as_ref().ok_or_else(|| Failure::new(StatusCode::NOT_FOUND, "backup_dir is not set"))
}

fn ok(body: &Value) -> Response {
    json_response(StatusCode::OK, body.to_string())
}
