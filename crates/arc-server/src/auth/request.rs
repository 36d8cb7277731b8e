//! Tokens as requests ask for them and answers show them.

use serde_json::{Map, Value, json};

use super::{
    AuthError, Rights,
    grant::{Grant, Patterns},
    limits::TokenLimits,
    store::{Change, NewToken},
    token::{Token, now_ms},
};
use crate::{config, timestamp};

const KEYS: [&str; 10] = [
    "name",
    "description",
    "permissions",
    "rights",
    "databases",
    "tables",
    "grants",
    "expires_in",
    "enabled",
    "limits",
];

/// Reads a token to be made. Without rights it may read and write, as with Arc's Go server; without patterns everywhere.
pub(super) fn new(request: &Value) -> Result<NewToken, AuthError> {
    let change = change(request)?;
    let name = change.name.ok_or_else(|| invalid("the key name is missing; expected {\"name\": \"…\"}"))?;
    let everywhere = || vec![Grant::everywhere(Rights::READ.or(Rights::WRITE))];
    Ok(NewToken {
        name,
        description: change.description.flatten(),
        grants: change.grants.unwrap_or_else(everywhere),
        expires_ms: change.expires_ms.flatten(),
        limits: change.limits.unwrap_or_default(),
    })
}

/// Reads what is to be different about a token.
pub(super) fn change(request: &Value) -> Result<Change, AuthError> {
    let request = request.as_object().ok_or_else(|| invalid("expected a JSON object"))?;
    if let Some(unknown) = request.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(invalid(format!("unknown key {unknown:?}; expected some of {}", KEYS.join(", "))));
    }
    let text = |key: &str| match request.get(key) {
        None => Ok(None),
        Some(Value::Null) => Ok(Some(None)),
        Some(Value::String(text)) => Ok(Some(Some(text.clone()))),
        Some(_) => Err(invalid(format!("the key {key} is not a string"))),
    };
    let enabled = match request.get("enabled") {
        None => None,
        Some(enabled) => Some(enabled.as_bool().ok_or_else(|| invalid("the key enabled is neither true nor false"))?),
    };
    let expires_ms = match text("expires_in")? {
        None => None,
        Some(Some(text)) if !text.is_empty() => Some(Some(expiry(&text)?)),
        Some(_) => Some(None),
    };
    Ok(Change {
        name: text("name")?.flatten(),
        description: text("description")?,
        grants: grants(request)?,
        expires_ms,
        enabled,
        limits: limits(request)?,
    })
}

/// Reads limits, which replace all that the token had; null takes them away.
fn limits(request: &Map<String, Value>) -> Result<Option<TokenLimits>, AuthError> {
    let limits = match request.get("limits") {
        None => return Ok(None),
        Some(Value::Null) => TokenLimits::default(),
        Some(limits) => serde_json::from_value(limits.clone()).map_err(|error| invalid(format!("limits: {error}")))?,
    };
    limits.check().map(Some).map_err(|reason| invalid(format!("limits: {reason}")))
}

/// Reads the rights that a request gives: as a list of grants, or as those of one.
fn grants(request: &Map<String, Value>) -> Result<Option<Vec<Grant>>, AuthError> {
    let single = ["permissions", "rights", "databases", "tables"];
    let has_single = single.iter().any(|key| request.contains_key(*key));
    match request.get("grants") {
        None if !has_single => Ok(None),
        None => Ok(Some(vec![grant(request)?])),
        Some(_) if has_single => Err(invalid(format!("expected either grants, or {}", single.join(", ")))),
        Some(grants) => {
            let grants = grants.as_array().ok_or_else(|| invalid("the key grants is not a list"))?;
            let each = grants.iter().map(|grant| {
                let object = grant.as_object().ok_or_else(|| invalid("a grant is a JSON object"))?;
                match object.keys().find(|key| !single.contains(&key.as_str())) {
                    Some(unknown) => Err(invalid(format!("unknown key {unknown:?} of a grant"))),
                    None => self::grant(object),
                }
            });
            each.collect::<Result<_, _>>().map(Some)
        }
    }
}

fn grant(request: &Map<String, Value>) -> Result<Grant, AuthError> {
    let rights = match (list(request, "permissions")?, list(request, "rights")?) {
        (Some(_), Some(_)) => return Err(invalid("permissions and rights are the same; expected one of them")),
        (Some(names), None) | (None, Some(names)) => {
            Rights::named(names.iter().map(String::as_str)).map_err(invalid)?
        }
        (None, None) => Rights::READ.or(Rights::WRITE),
    };
    let patterns = |key| match list(request, key)? {
        None => Ok(Patterns::all()),
        Some(patterns) => Patterns::new(patterns).map_err(|reason| invalid(format!("{key}: {reason}"))),
    };
    Ok(Grant { rights, databases: patterns("databases")?, tables: patterns("tables")? })
}

/// Reads a list of texts, or one text.
fn list(request: &Map<String, Value>, key: &str) -> Result<Option<Vec<String>>, AuthError> {
    let wrong = || invalid(format!("the key {key} is not a list of strings"));
    match request.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(vec![text.clone()])),
        Some(Value::Array(items)) => {
            let texts = items.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong));
            texts.collect::<Result<_, _>>().map(Some)
        }
        Some(_) => Err(wrong()),
    }
}

/// Returns the time that a token ends at which lasts as long as `text` says.
fn expiry(text: &str) -> Result<i64, AuthError> {
    let lasts = config::duration(text).map_err(|expected| invalid(format!("expires_in: expected {expected}")))?;
    Ok(now_ms().saturating_add(i64::try_from(lasts.as_millis()).unwrap_or(i64::MAX)))
}

/// Shows a token, without anything that would let somebody in.
pub(super) fn describe(token: &Token) -> Value {
    let grant = |grant: &Grant| {
        json!({
            "rights": grant.rights.names().collect::<Vec<_>>(),
            "databases": grant.databases.names(),
            "tables": grant.tables.names(),
        })
    };
    let used = token.used_ms();
    json!({
        "id": token.id,
        "name": token.name,
        "description": token.description,
        "permissions": token.rights().names().collect::<Vec<_>>(),
        "grants": token.grants.iter().map(grant).collect::<Vec<_>>(),
        "created_at": time(token.created_ms),
        "last_used_at": (used > 0).then(|| time(used)),
        "enabled": token.enabled,
        "expires_at": token.expires_ms.map(time),
        "limits": token.usage.limits(),
    })
}

/// Returns a time in RFC 3339.
pub(super) fn time(ms: i64) -> String {
    timestamp::format(ms.saturating_mul(1_000_000))
}

pub(super) fn invalid(text: impl Into<String>) -> AuthError {
    AuthError::Invalid(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_read_as_one_grant_or_several() {
        let rights = |request: Value| {
            let grants = new(&request).unwrap().grants;
            let each = grants.iter().map(|grant| {
                let names = grant.rights.names().collect::<Vec<_>>().join("+");
                format!("{names} {} {}", grant.databases.names().join("+"), grant.tables.names().join("+"))
            });
            each.collect::<Vec<_>>().join("; ")
        };
        for (request, expected) in [
            (json!({"name": "a"}), "read+write * *"),
            (json!({"name": "a", "permissions": []}), " * *"),
            (json!({"name": "a", "permissions": ["admin"]}), "read+write+delete+admin * *"),
            (json!({"name": "a", "rights": "read", "databases": "plant*"}), "read plant* *"),
            (json!({"name": "a", "databases": ["a", "b"], "tables": ["c"]}), "read+write a+b c"),
            (
                json!({"name": "a", "grants": [{"rights": ["read"]}, {"rights": ["write"], "databases": ["p"]}]}),
                "read * *; write p *",
            ),
            (json!({"name": "a", "grants": []}), ""),
        ] {
            assert_eq!(rights(request.clone()), expected, "{request}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (request, expected) in [
            (json!([]), "expected a JSON object"),
            (json!({}), "the key name is missing"),
            (json!({"name": 1}), "the key name is not a string"),
            (json!({"name": "a", "permission": []}), "unknown key \"permission\""),
            (json!({"name": "a", "permissions": ["root"]}), "the right \"root\" is not known"),
            (json!({"name": "a", "permissions": "read", "rights": "read"}), "are the same"),
            (json!({"name": "a", "grants": [], "tables": []}), "either grants"),
            (json!({"name": "a", "grants": [{"right": []}]}), "unknown key \"right\""),
            (json!({"name": "a", "databases": []}), "databases: expected 1 to"),
            (json!({"name": "a", "tables": [1]}), "tables is not a list of strings"),
            (json!({"name": "a", "expires_in": "soon"}), "expires_in: expected a duration"),
            (json!({"name": "a", "enabled": 1}), "neither true nor false"),
            (json!({"name": "a", "limits": {"queries": 1}}), "limits: unknown field `queries`, expected one of"),
            (json!({"name": "a", "limits": {"requests_per_second": 0}}), "limits: requests_per_second is 0"),
            (json!({"name": "a", "limits": {"requests_per_second": -1}}), "limits: invalid value"),
            (json!({"name": "a", "limits": 7}), "limits: invalid type"),
        ] {
            let error = new(&request).unwrap_err().to_string();
            assert!(error.contains(expected), "{request}: {error}");
        }
    }
}
