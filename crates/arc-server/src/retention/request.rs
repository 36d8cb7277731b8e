//! What clients say about policies, read strictly: a key that is not known could be one that was to keep points longer.

use serde_json::{Map, Value};

use super::{check_period, policy::Policy};
use crate::errors::Failure;

const MAX_NAME_BYTES: usize = 128;
/// A hundred years.
const MAX_DAYS: u32 = 36_500;
/// Keys that clients send back as they were shown.
const SHOWN: [&str; 6] =
    ["id", "last_execution_time", "last_execution_status", "last_deleted_count", "created_at", "updated_at"];

/// What a request says of a policy; `None` is what it does not say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct WantedPolicy {
    pub(super) name: Option<String>,
    pub(super) database: Option<String>,
    pub(super) measurement: Option<Option<String>>,
    pub(super) retention_days: Option<u32>,
    pub(super) buffer_days: Option<u32>,
    pub(super) is_active: Option<bool>,
}

impl WantedPolicy {
    pub(super) fn read(request: &Value) -> Result<Self, Failure> {
        let expected =
            "expected {\"name\", \"database\", \"measurement\", \"retention_days\", \"buffer_days\", \"is_active\"}";
        let request = request.as_object().ok_or_else(|| Failure::bad_request(expected))?;
        let mut wanted = Self::default();
        for (key, value) in request {
            match key.as_str() {
                "name" => wanted.name = Some(name(value)?),
                "database" => wanted.database = Some(text(key, value)?),
                "measurement" => wanted.measurement = Some(measurement(value)?),
                "retention_days" => wanted.retention_days = Some(days(key, value, 1)?),
                "buffer_days" => wanted.buffer_days = Some(days(key, value, 0)?),
                "is_active" => wanted.is_active = Some(switch(key, value)?),
                shown if SHOWN.contains(&shown) => {}
                unknown => return Err(Failure::bad_request(format!("the key {unknown:?} is not known; {expected}"))),
            }
        }
        Ok(wanted)
    }

    /// Changes a policy as the request says. Returns whether that can change how long points are kept.
    pub(super) fn change(self, policy: &mut Policy) -> Result<bool, Failure> {
        let is_about_points = self.database.is_some()
            || self.measurement.is_some()
            || self.retention_days.is_some()
            || self.buffer_days.is_some()
            || self.is_active.is_some();
        let Self { name, database, measurement, retention_days, buffer_days, is_active } = self;
        policy.name = name.unwrap_or(std::mem::take(&mut policy.name));
        policy.database = database.unwrap_or(std::mem::take(&mut policy.database));
        policy.measurement = measurement.unwrap_or(policy.measurement.take());
        policy.retention_days = retention_days.unwrap_or(policy.retention_days);
        policy.buffer_days = buffer_days.unwrap_or(policy.buffer_days);
        policy.is_active = is_active.unwrap_or(policy.is_active);
        for (key, text) in [("name", &policy.name), ("database", &policy.database)] {
            if text.is_empty() {
                return Err(Failure::bad_request(format!("the key {key} is missing")));
            }
        }
        match policy.retention_days {
            0 => Err(Failure::bad_request("the key retention_days is missing")),
            days if days <= policy.buffer_days => {
                let text = format!("retention_days {days} must be more than buffer_days {}", policy.buffer_days);
                Err(Failure::bad_request(text))
            }
            _ => check_period(&policy.database, policy.period()).map(|()| is_about_points),
        }
    }
}

/// How a policy is to be carried out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct WantedExecution {
    pub(super) dry_run: bool,
    pub(super) confirm: bool,
}

impl WantedExecution {
    /// Reads `{"dry_run": false, "confirm": true}`; what is not said is false.
    pub(super) fn read(request: &Value) -> Result<Self, Failure> {
        let expected = "expected {\"dry_run\": false, \"confirm\": true}";
        let request: &Map<_, _> = request.as_object().ok_or_else(|| Failure::bad_request(expected))?;
        let mut wanted = Self::default();
        for (key, value) in request {
            match key.as_str() {
                "dry_run" => wanted.dry_run = switch(key, value)?,
                "confirm" => wanted.confirm = switch(key, value)?,
                unknown => return Err(Failure::bad_request(format!("the key {unknown:?} is not known; {expected}"))),
            }
        }
        Ok(wanted)
    }
}

fn name(value: &Value) -> Result<String, Failure> {
    let name = text("name", value)?;
    if name.len() > MAX_NAME_BYTES || name.chars().any(char::is_control) {
        let expected =
            format!("the name of a policy is 1 to {MAX_NAME_BYTES} bytes of text without control characters");
        return Err(Failure::bad_request(expected));
    }
    Ok(name)
}

fn text(key: &str, value: &Value) -> Result<String, Failure> {
    let text = value.as_str().filter(|text| !text.trim().is_empty());
    text.map(str::to_owned).ok_or_else(|| Failure::bad_request(format!("the key {key} is missing or no text")))
}

/// Reads the measurement; clients say that there is none by null or an empty text.
fn measurement(value: &Value) -> Result<Option<String>, Failure> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) if text.is_empty() => Ok(None),
        value => text("measurement", value).map(Some),
    }
}

fn days(key: &str, value: &Value, least: u32) -> Result<u32, Failure> {
    let days = value.as_u64().and_then(|days| u32::try_from(days).ok());
    let days = days.filter(|days| (least..=MAX_DAYS).contains(days));
    days.ok_or_else(|| Failure::bad_request(format!("{key}: expected a whole number of days, {least} to {MAX_DAYS}")))
}

fn switch(key: &str, value: &Value) -> Result<bool, Failure> {
    value.as_bool().ok_or_else(|| Failure::bad_request(format!("the key {key} is neither true nor false")))
}
