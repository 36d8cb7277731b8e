//! All policies: kept in a file of the data directory, and put in force by the engine's own settings.
//!
//! A change is on disk before it is in force, and both before it is answered. Where the two differ after a crash, or because
//! somebody has set how long points are kept by name, the engine is right: such a policy shows itself as not active. Never
//! takes a point away.

use std::{path::Path, sync::Arc, time::Duration};

use arc_core::{Engine, ErrorKind};
use hyper::StatusCode;
use serde::{Deserialize, Serialize};

use super::{
    Target,
    policy::{Execution, ExecutionStatus, Policy},
    request::WantedPolicy,
};
use crate::{
    app::StartError,
    errors::Failure,
    kept::{KeptContent, KeptFile},
    timestamp,
};

/// Most policies that are kept.
const MAX_POLICIES: usize = 1_000;

/// What the file says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyFile {
    version: u32,
    /// The number of the next policy or execution; no number is used twice.
    next_id: u64,
    policies: Vec<Policy>,
}

impl KeptContent for PolicyFile {
    const FILE: &'static str = "retention.json";
    const CONTENT: &'static str = "retention policies";
    const VERSION: u32 = 1;

    fn empty() -> Self {
        Self { version: Self::VERSION, next_id: 1, policies: Vec::new() }
    }

    fn version(&self) -> u32 {
        self.version
    }
}

/// The policies of a data directory.
#[derive(Debug)]
pub(crate) struct Policies(KeptFile<PolicyFile>);

/// What came of an execution.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) deleted: u64,
    pub(super) took: Duration,
    pub(super) error: Option<String>,
}

impl Policies {
    /// Reads the policies of a data directory, which may have none. What was running has failed.
    pub(crate) fn open(data_dir: &Path) -> Result<Self, StartError> {
        let kept = KeptFile::open(data_dir, |kept: &mut PolicyFile| {
            let executions = kept.policies.iter_mut().flat_map(|policy| &mut policy.executions);
            for execution in executions.filter(|execution| execution.status == ExecutionStatus::Running) {
                execution.status = ExecutionStatus::Failed;
                execution.error = Some("the server ended before it was known how many points were deleted".to_owned());
            }
        });
        kept.map(Self)
    }

    /// Returns all policies in the order they were made.
    pub(super) fn all(&self) -> Vec<Policy> {
        self.0.load().policies.clone()
    }

    pub(super) fn get(&self, id: u64) -> Result<Policy, Failure> {
        let found = self.0.load().policies.iter().find(|policy| policy.id == id).cloned();
        found.ok_or_else(|| missing(&id.to_string()))
    }

    /// Makes a policy.
    pub(super) fn create(&self, engine: &Engine, wanted: WantedPolicy) -> Result<Policy, Failure> {
        self.change(engine, |kept| {
            if kept.policies.len() >= MAX_POLICIES {
                let text = format!("there are {MAX_POLICIES} policies, and may be no more");
                return Err(Failure::bad_request(text));
            }
            let now = timestamp::now_ns();
            let mut policy = Policy {
                id: kept.take_id(),
                name: String::new(),
                database: String::new(),
                measurement: None,
                retention_days: 0,
                buffer_days: 0,
                is_active: false,
                created_ns: now,
                updated_ns: now,
                executions: Vec::new(),
            };
            wanted.change(&mut policy)?;
            kept.check(engine, &policy)?;
            kept.policies.push(policy.clone());
            let targets = vec![policy.target()];
            Ok((policy, targets))
        })
    }

    /// Changes a policy as `wanted` says, if `may` agrees to what it then is.
    pub(super) fn put(
        &self,
        engine: &Engine,
        id: u64,
        wanted: WantedPolicy,
        may: impl FnOnce(&Target) -> Result<(), Failure>,
    ) -> Result<Policy, Failure> {
        self.change(engine, |kept| {
            let mut policy = kept.find(id)?.clone();
            let before = policy.target();
            let is_about_points = wanted.change(&mut policy)?;
            may(&policy.target())?;
            kept.check(engine, &policy)?;
            policy.updated_ns = timestamp::now_ns();
            *kept.find(id)? = policy.clone();
            let mut targets = vec![policy.target(), before];
            targets.dedup();
            Ok((policy, if is_about_points { targets } else { Vec::new() }))
        })
    }

    /// Takes a policy away; its points are kept as if it had never been.
    pub(super) fn delete(&self, engine: &Engine, id: u64) -> Result<Policy, Failure> {
        self.change(engine, |kept| {
            let policy = kept.find(id)?.clone();
            kept.policies.retain(|policy| policy.id != id);
            let targets = vec![policy.target()];
            Ok((policy, targets))
        })
    }

    /// Notes that a policy is about to be carried out; returns the number of the execution.
    pub(super) fn begin(&self, id: u64, cutoff_ns: i64) -> Result<u64, Failure> {
        self.0.change(|kept| {
            let number = kept.take_id();
            let policy = kept.find(id)?;
            if policy.executions.iter().any(|execution| execution.status == ExecutionStatus::Running) {
                let text = format!("policy {id} is being executed; wait for its end");
                return Err(Failure::new(StatusCode::CONFLICT, text));
            }
            let (started_ns, status) = (timestamp::now_ns(), ExecutionStatus::Running);
            let (deleted, took_ms, error) = (0, 0.0, None);
            policy.remember(Execution { id: number, started_ns, cutoff_ns, status, deleted, took_ms, error });
            Ok(number)
        })
    }

    /// Notes what came of an execution, unless its policy was deleted meanwhile.
    pub(super) fn end(&self, id: u64, number: u64, outcome: Outcome) -> Result<(), Failure> {
        self.0.change(|kept| {
            let executions =
                kept.policies.iter_mut().find(|policy| policy.id == id).map(|policy| &mut policy.executions);
            let found = executions.into_iter().flatten().find(|execution| execution.id == number);
            if let Some(execution) = found {
                execution.status =
                    if outcome.error.is_some() { ExecutionStatus::Failed } else { ExecutionStatus::Completed };
                execution.deleted = outcome.deleted;
                execution.took_ms = (outcome.took.as_secs_f64() * 1e6).round() / 1e3;
                execution.error = outcome.error;
            }
            Ok(())
        })
    }

    /// Keeps a change, and then has the engine keep points of the targets that `edit` returns for as long as the policies say.
    fn change<T>(
        &self,
        engine: &Engine,
        edit: impl FnOnce(&mut PolicyFile) -> Result<(T, Vec<Target>), Failure>,
    ) -> Result<T, Failure> {
        let changing = self.0.lock();
        let before = self.0.load();
        let mut after = before.as_ref().clone();
        let (made, targets) = edit(&mut after)?;
        let after = Arc::new(after);
        changing.keep(Arc::clone(&after))?;
        for target in &targets {
            if let Err(error) = put_in_force(engine, target, before.wanted(target), after.wanted(target)) {
                // What is not in force is not kept, either. Should that fail as well, it shows itself as not active.
                changing.keep(before)?;
                return Err(error.into());
            }
        }
        Ok(made)
    }
}

impl PolicyFile {
    fn take_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id = id.saturating_add(1);
        id
    }

    fn find(&mut self, id: u64) -> Result<&mut Policy, Failure> {
        self.policies.iter_mut().find(|policy| policy.id == id).ok_or_else(|| missing(&id.to_string()))
    }

    /// Refuses a policy whose name another one has, or that is about nothing.
    fn check(&self, engine: &Engine, policy: &Policy) -> Result<(), Failure> {
        if self.policies.iter().any(|other| other.name == policy.name && other.id != policy.id) {
            return Err(Failure::bad_request(format!("there is a policy named {:?} already", policy.name)));
        }
        engine.retention(&policy.database, policy.measurement.as_deref())?;
        Ok(())
    }

    /// Returns how long points of a target are to be kept: as the shortest of its active policies says.
    fn wanted(&self, target: &Target) -> Option<Duration> {
        let active = self.policies.iter().filter(|policy| policy.is_active && policy.target() == *target);
        active.map(Policy::period).min()
    }
}

/// Has the engine keep points of a target for as long as the policies say. Where they say nothing any more, what they had set goes,
/// and what somebody has set since then stays.
fn put_in_force(
    engine: &Engine,
    target: &Target,
    before: Option<Duration>,
    after: Option<Duration>,
) -> arc_core::Result<()> {
    let (database, table) = (&target.database, target.measurement.as_deref());
    let found = match engine.retention(database, table) {
        // There is nothing to keep any more.
        Err(error) if after.is_none() && error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    match after {
        Some(_) if found != after => engine.set_retention(database, table, after),
        None if found.is_some() && found == before => engine.set_retention(database, table, None),
        _ => Ok(()),
    }
}

/// What is answered for a policy that is not there.
pub(super) fn missing(id: &str) -> Failure {
    let text = format!(
        "retention policy {id} not found; a database whose name is a number has policies by POST /api/v1/retention"
    );
    Failure::new(StatusCode::NOT_FOUND, text)
}
