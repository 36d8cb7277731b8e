//! What requests say of documents, read strictly.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::errors::Failure;

const MAX_NAME_BYTES: usize = 200;
/// Most bytes of a document's body, as JSON.
const MAX_BODY_BYTES: usize = 256 << 10;
const EXPECTED: &str = "expected {\"kind\", \"name\", \"body\", \"shared\", \"version\"}";

/// What a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum DocumentKind {
    Query,
    Notebook,
    Dashboard,
    /// The statements that a person has run, newest first.
    History,
}

impl DocumentKind {
    /// Reads a kind by its name.
    pub(super) fn read(text: &str) -> Result<Self, Failure> {
        match text {
            "query" => Ok(Self::Query),
            "notebook" => Ok(Self::Notebook),
            "dashboard" => Ok(Self::Dashboard),
            "history" => Ok(Self::History),
            _ => Err(Failure::bad_request(format!(
                "kind {:?} is not known; expected query, notebook, dashboard or history",
                text.chars().take(100).collect::<String>()
            ))),
        }
    }
}

/// What a request says of a document; `None` is what it does not say.
#[derive(Debug, Default, PartialEq)]
pub(super) struct WantedDocument {
    pub(super) kind: Option<DocumentKind>,
    pub(super) name: Option<String>,
    pub(super) body: Option<Value>,
    pub(super) shared: Option<bool>,
    /// The version that was changed.
    pub(super) version: Option<u64>,
}

impl WantedDocument {
    pub(super) fn read(request: &Value) -> Result<Self, Failure> {
        let request = request.as_object().ok_or_else(|| Failure::bad_request(EXPECTED))?;
        let mut wanted = Self::default();
        for (key, value) in request {
            match key.as_str() {
                "kind" => {
                    wanted.kind = Some(DocumentKind::read(value.as_str().ok_or_else(|| wrong("kind", "a text"))?)?)
                }
                "name" => wanted.name = Some(name(value)?),
                "body" => wanted.body = Some(body(value)?),
                "shared" => {
                    wanted.shared = Some(value.as_bool().ok_or_else(|| wrong("shared", "true or false"))?);
                }
                "version" => {
                    wanted.version = Some(value.as_u64().ok_or_else(|| wrong("version", "a whole number"))?);
                }
                unknown => {
                    let unknown: String = unknown.chars().take(100).collect();
                    return Err(Failure::bad_request(format!("the key {unknown:?} is not known; {EXPECTED}")));
                }
            }
        }
        Ok(wanted)
    }
}

fn name(value: &Value) -> Result<String, Failure> {
    let name = value.as_str().map(str::trim).filter(|name| !name.is_empty() && name.len() <= MAX_NAME_BYTES);
    let name = name.filter(|name| !name.chars().any(char::is_control));
    name.map(str::to_owned)
        .ok_or_else(|| wrong("name", &format!("1 to {MAX_NAME_BYTES} bytes of text without control characters")))
}

fn body(value: &Value) -> Result<Value, Failure> {
    if !value.is_object() {
        return Err(wrong("body", "an object"));
    }
    if value.to_string().len() > MAX_BODY_BYTES {
        return Err(Failure::too_large(format!("the body of a document may have {MAX_BODY_BYTES} bytes as JSON")));
    }
    Ok(value.clone())
}

fn wrong(key: &str, expected: &str) -> Failure {
    Failure::bad_request(format!("the key {key}: expected {expected}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requests_are_read_strictly() {
        let read = |value: Value| WantedDocument::read(&value);
        let wanted = read(json!({"kind": "notebook", "name": " a ", "body": {"x": 1}, "shared": true, "version": 3}));
        let expected = WantedDocument {
            kind: Some(DocumentKind::Notebook),
            name: Some("a".to_owned()),
            body: Some(json!({"x": 1})),
            shared: Some(true),
            version: Some(3),
        };
        assert_eq!(wanted.unwrap(), expected);
        assert_eq!(read(json!({})).unwrap(), WantedDocument::default());
        for (wrong, text) in [
            (json!([]), "expected {"),
            (json!({"kind": "page"}), "\"page\" is not known"),
            (json!({"kind": 1}), "the key kind"),
            (json!({"name": ""}), "the key name"),
            (json!({"name": "a\nb"}), "the key name"),
            (json!({"name": "a".repeat(201)}), "the key name"),
            (json!({"body": "x"}), "the key body"),
            (json!({"body": {"x": "y".repeat(300_000)}}), "262144 bytes"),
            (json!({"shared": 1}), "the key shared"),
            (json!({"version": -1}), "the key version"),
            (json!({"owner": 1}), "\"owner\" is not known"),
        ] {
            let failure = read(wrong).unwrap_err();
            assert!(failure.message.contains(text), "{failure:?}");
        }
    }
}
