//! What clients say about continuous queries, read strictly.

use serde_json::Value;

use super::query::ContinuousQuery;
use crate::errors::Failure;

const MAX_TEXT_BYTES: usize = 10_000;
/// A hundred years.
const MAX_DAYS: u64 = 36_500;
/// Keys that clients send back as they were shown.
const SHOWN: [&str; 7] = [
    "id",
    "last_execution_time",
    "last_execution_status",
    "last_processed_time",
    "last_records_written",
    "created_at",
    "updated_at",
];
const EXPECTED: &str = "expected {\"name\", \"database\", \"source_measurement\", \"destination_measurement\", \"query\", \
                        \"interval\", \"description\", \"tag_columns\", \"retention_days\", \
                        \"delete_source_after_days\", \"is_active\"}";

/// What a request says of a query; what it does not say stays as it is.
#[derive(Debug, Default)]
pub(super) struct WantedQuery {
    name: Option<String>,
    database: Option<String>,
    source_measurement: Option<String>,
    destination_measurement: Option<String>,
    query: Option<String>,
    interval: Option<String>,
    description: Option<Option<String>>,
    tag_columns: Option<Option<Vec<String>>>,
    retention_days: Option<Option<u32>>,
    delete_source_after_days: Option<Option<u32>>,
    is_active: Option<bool>,
}

impl WantedQuery {
    pub(super) fn read(request: &Value) -> Result<Self, Failure> {
        let request = request.as_object().ok_or_else(|| Failure::bad_request(EXPECTED))?;
        let mut wanted = Self::default();
        for (key, value) in request {
            match key.as_str() {
                "name" => wanted.name = Some(text(key, value)?),
                "database" => wanted.database = Some(text(key, value)?),
                "source_measurement" => wanted.source_measurement = Some(text(key, value)?),
                "destination_measurement" => wanted.destination_measurement = Some(text(key, value)?),
                "query" => wanted.query = Some(text(key, value)?),
                "interval" => wanted.interval = Some(text(key, value)?),
                "description" => wanted.description = Some(description(value)?),
                "tag_columns" => wanted.tag_columns = Some(names(value)?),
                "retention_days" => wanted.retention_days = Some(days(key, value)?),
                "delete_source_after_days" => wanted.delete_source_after_days = Some(days(key, value)?),
                "is_active" => {
                    let is_active = value.as_bool();
                    let wrong = || Failure::bad_request("the key is_active is neither true nor false");
                    wanted.is_active = Some(is_active.ok_or_else(wrong)?);
                }
                shown if SHOWN.contains(&shown) => {}
                unknown => return Err(Failure::bad_request(format!("the key {unknown:?} is not known; {EXPECTED}"))),
            }
        }
        Ok(wanted)
    }

    /// Changes a query as the request says.
    pub(super) fn change(self, query: &mut ContinuousQuery) -> Result<(), Failure> {
        let texts = [
            ("name", self.name, &mut query.name),
            ("database", self.database, &mut query.database),
            ("source_measurement", self.source_measurement, &mut query.source_measurement),
            ("destination_measurement", self.destination_measurement, &mut query.destination_measurement),
            ("query", self.query, &mut query.query),
            ("interval", self.interval, &mut query.interval),
        ];
        for (key, wanted, kept) in texts {
            *kept = wanted.unwrap_or(std::mem::take(kept));
            if kept.is_empty() {
                return Err(Failure::bad_request(format!("the key {key} is missing; {EXPECTED}")));
            }
        }
        query.description = self.description.unwrap_or(query.description.take());
        query.tag_columns = self.tag_columns.unwrap_or(query.tag_columns.take());
        query.retention_days = self.retention_days.unwrap_or(query.retention_days);
        query.delete_source_after_days = self.delete_source_after_days.unwrap_or(query.delete_source_after_days);
        query.is_active = self.is_active.unwrap_or(query.is_active);
        Ok(())
    }
}

fn text(key: &str, value: &Value) -> Result<String, Failure> {
    let text = value.as_str().filter(|text| !text.trim().is_empty() && text.len() <= MAX_TEXT_BYTES);
    let expected = || Failure::bad_request(format!("the key {key}: expected text of 1 to {MAX_TEXT_BYTES} bytes"));
    text.map(str::to_owned).ok_or_else(expected)
}

fn description(value: &Value) -> Result<Option<String>, Failure> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) if text.is_empty() => Ok(None),
        value => text("description", value).map(Some),
    }
}

fn names(value: &Value) -> Result<Option<Vec<String>>, Failure> {
    match value {
        Value::Null => Ok(None),
        Value::Array(names) => names.iter().map(|name| text("tag_columns", name)).collect::<Result<_, _>>().map(Some),
        _ => Err(Failure::bad_request("the key tag_columns: expected a list of names")),
    }
}

/// Reads a number of days; clients say that there is none by null or 0.
fn days(key: &str, value: &Value) -> Result<Option<u32>, Failure> {
    let expected = || Failure::bad_request(format!("{key}: expected a whole number of days up to {MAX_DAYS}"));
    match value {
        Value::Null => Ok(None),
        value => {
            let days = value.as_u64().filter(|days| *days <= MAX_DAYS).ok_or_else(expected)?;
            Ok(u32::try_from(days).ok().filter(|days| *days > 0))
        }
    }
}
