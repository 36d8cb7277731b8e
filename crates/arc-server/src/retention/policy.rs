//! One retention policy, what it has done, and how both are kept and shown.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Target;
use crate::timestamp;

/// Executions of a policy that are remembered; older ones are forgotten.
const MAX_EXECUTIONS: usize = 100;
const DAY: Duration = Duration::from_secs(86_400);

/// A policy as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Policy {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) database: String,
    pub(super) measurement: Option<String>,
    pub(super) retention_days: u32,
    /// Days more that points are kept, after those that are promised.
    pub(super) buffer_days: u32,
    /// Whether it is to be in force; it is if the engine keeps points no longer.
    pub(super) is_active: bool,
    pub(super) created_ns: i64,
    pub(super) updated_ns: i64,
    /// The newest last.
    pub(super) executions: Vec<Execution>,
}

/// What came of carrying out a policy, or of executing a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ExecutionStatus {
    Running,
    Completed,
    Failed,
}

impl ExecutionStatus {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

/// One time that a policy was carried out.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Execution {
    pub(super) id: u64,
    pub(super) started_ns: i64,
    pub(super) cutoff_ns: i64,
    pub(super) status: ExecutionStatus,
    pub(super) deleted: u64,
    pub(super) took_ms: f64,
    pub(super) error: Option<String>,
}

impl Policy {
    /// Returns what points it is about.
    pub(super) fn target(&self) -> Target {
        Target { database: self.database.clone(), measurement: self.measurement.clone() }
    }

    /// Returns how old points become.
    pub(super) fn period(&self) -> Duration {
        DAY * (self.retention_days.saturating_add(self.buffer_days))
    }

    /// Returns the time before which points go, at this time.
    pub(super) fn cutoff_ns(&self, now_ns: i64) -> i64 {
        now_ns.saturating_sub(i64::try_from(self.period().as_nanos()).unwrap_or(i64::MAX))
    }

    /// Remembers an execution, and forgets the oldest where there are too many.
    pub(super) fn remember(&mut self, execution: Execution) {
        self.executions.push(execution);
        let surplus = self.executions.len().saturating_sub(MAX_EXECUTIONS);
        self.executions.drain(..surplus);
    }

    /// Shows it; `in_force` is what the engine keeps points of its target for.
    pub(super) fn describe(&self, in_force: Option<Duration>) -> Value {
        let last = self.executions.last();
        json!({
            "id": self.id,
            "name": self.name,
            "database": self.database,
            "measurement": self.measurement,
            "retention_days": self.retention_days,
            "buffer_days": self.buffer_days,
            "is_active": self.is_in_force(in_force),
            "last_execution_time": last.map(|last| timestamp::format(last.started_ns)),
            "last_execution_status": last.map(|last| last.status.name()),
            "last_deleted_count": last.map(|last| last.deleted),
            "created_at": timestamp::format(self.created_ns),
            "updated_at": timestamp::format(self.updated_ns),
        })
    }

    /// Returns whether points become no older than it says.
    pub(super) fn is_in_force(&self, in_force: Option<Duration>) -> bool {
        self.is_active && in_force.is_some_and(|kept| kept <= self.period())
    }
}

impl Execution {
    /// Shows it.
    pub(super) fn describe(&self, policy: u64) -> Value {
        json!({
            "id": self.id,
            "policy_id": policy,
            "execution_time": timestamp::format(self.started_ns),
            "status": self.status.name(),
            "deleted_count": self.deleted,
            "cutoff_date": timestamp::format(self.cutoff_ns),
            "execution_duration_ms": self.took_ms,
            "error_message": self.error,
        })
    }
}
