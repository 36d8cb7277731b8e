//! Documents of the console: saved queries, notebooks and dashboards, kept in a file of the data directory.
//!
//! A change is on disk before it is answered. Each document has a version, which every change makes one more; a change names the
//! version that it began with, so that of two people who edit at once the later one is told. Never looks into a document.

use std::{path::Path, sync::Arc};

use hyper::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::request::{DocumentKind, WantedDocument};
use crate::{
    app::StartError,
    auth::Caller,
    errors::Failure,
    kept::{KeptContent, KeptFile},
    timestamp,
};

const MAX_DOCUMENTS: usize = 1_000;
/// The part of all documents, and of their bytes, that those of one token may be: others want to keep some, too.
const SHARE: usize = 4;

/// What the file says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DocumentFile {
    version: u32,
    /// The number of the next document; no number is used twice.
    next_id: u64,
    documents: Vec<Arc<Document>>,
}

impl KeptContent for DocumentFile {
    const FILE: &'static str = "console.json";
    const CONTENT: &'static str = "the documents of the console";
    const VERSION: u32 = 1;
    /// Each change writes all of them anew.
    const MAX_BYTES: usize = 16 << 20;

    fn empty() -> Self {
        Self { version: Self::VERSION, next_id: 1, documents: Vec::new() }
    }

    fn version(&self) -> u32 {
        self.version
    }
}

/// Something that a person keeps.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    pub(super) id: u64,
    pub(super) kind: DocumentKind,
    pub(super) name: String,
    /// Starts at 1; each change makes it one more.
    version: u64,
    /// Number and name of the token that made it; there is none where nobody has to log in.
    owner: Option<Owner>,
    /// Whether it is for all who have a token.
    shared: bool,
    updated_ns: i64,
    body: Value,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Owner {
    id: u64,
    /// With the number it tells a token from one of another server, to which a backup came.
    created_ms: i64,
    name: String,
}

impl Owner {
    fn identity(&self) -> (u64, i64) {
        (self.id, self.created_ms)
    }
}

/// The documents of a data directory.
#[derive(Debug)]
pub(crate) struct Documents(KeptFile<DocumentFile>);

impl Documents {
    /// Reads the documents of a data directory, which may have none.
    pub(crate) fn open(data_dir: &Path) -> Result<Self, StartError> {
        Ok(Self(KeptFile::open(data_dir, |_| ())?))
    }

    /// Returns the documents that `caller` may see, in the order they were made.
    pub(super) fn all(&self, caller: &Caller) -> Vec<Arc<Document>> {
        self.0.load().documents.iter().filter(|document| document.is_seen_by(caller)).cloned().collect()
    }

    /// Returns a document that `caller` may see.
    pub(super) fn get(&self, caller: &Caller, id: u64) -> Result<Arc<Document>, Failure> {
        let kept = self.0.load();
        let found = kept.documents.iter().find(|document| document.id == id && document.is_seen_by(caller));
        found.cloned().ok_or_else(|| missing(id))
    }

    /// Makes a document of `caller`.
    pub(super) fn create(&self, caller: &Caller, wanted: WantedDocument) -> Result<Arc<Document>, Failure> {
        let absent = |key| Failure::bad_request(format!("the key {key} is missing"));
        let (kind, name) = (wanted.kind.ok_or_else(|| absent("kind"))?, wanted.name.ok_or_else(|| absent("name"))?);
        let body = wanted.body.ok_or_else(|| absent("body"))?;
        if wanted.version.is_some() {
            return Err(Failure::bad_request("the key version is for changes; a new document has none"));
        }
        let owner =
            caller.token().map(|token| Owner { id: token.id, created_ms: token.created_ms, name: token.name.clone() });
        self.0.change(|kept| {
            if kept.documents.len() >= MAX_DOCUMENTS {
                let text = format!("there are {MAX_DOCUMENTS} documents, and may be no more");
                return Err(Failure::bad_request(text));
            }
            let id = kept.next_id;
            kept.next_id = id.saturating_add(1);
            let shared = wanted.shared.unwrap_or_default();
            let updated_ns = timestamp::now_ns();
            let document = Arc::new(Document { id, kind, name, version: 1, owner, shared, updated_ns, body });
            kept.documents.push(Arc::clone(&document));
            kept.check_share(&document)?;
            Ok(document)
        })
    }

    /// Changes a document as `wanted` says, which names the version that it is to change.
    pub(super) fn put(&self, caller: &Caller, id: u64, wanted: WantedDocument) -> Result<Arc<Document>, Failure> {
        let version = wanted.version;
        self.0.change(|kept| {
            let found = kept.find(caller, id, version)?;
            if wanted.kind.is_some_and(|kind| kind != found.kind) {
                return Err(Failure::bad_request("the kind of a document does not change; make another one"));
            }
            let mut document = found.as_ref().clone();
            document.name = wanted.name.unwrap_or(document.name);
            document.body = wanted.body.unwrap_or(document.body);
            document.shared = wanted.shared.unwrap_or(document.shared);
            document.version = document.version.saturating_add(1);
            document.updated_ns = timestamp::now_ns();
            let document = Arc::new(document);
            *found = Arc::clone(&document);
            kept.check_share(&document)?;
            Ok(document)
        })
    }

    /// Takes a document away.
    pub(super) fn delete(&self, caller: &Caller, id: u64, version: Option<u64>) -> Result<Arc<Document>, Failure> {
        self.0.change(|kept| {
            let document = Arc::clone(kept.find(caller, id, version)?);
            kept.documents.retain(|document| document.id != id);
            Ok(document)
        })
    }
}

impl DocumentFile {
    /// Checks that the owner of a document has not too many with it. Where nobody has to log in there is one owner.
    fn check_share(&self, document: &Document) -> Result<(), Failure> {
        let Some(owner) = document.owner.as_ref().map(Owner::identity) else { return Ok(()) };
        let of_owner =
            || self.documents.iter().filter(|other| other.owner.as_ref().map(Owner::identity) == Some(owner));
        let bytes: usize = of_owner().map(|document| document.body.to_string().len()).sum();
        if of_owner().count() <= MAX_DOCUMENTS / SHARE && bytes <= Self::MAX_BYTES / SHARE {
            return Ok(());
        }
        let (count, bytes) = (MAX_DOCUMENTS / SHARE, (Self::MAX_BYTES / SHARE) >> 20);
        Err(Failure::bad_request(format!(
            "a token keeps up to {count} documents and {bytes} MiB; delete some of yours first"
        )))
    }

    /// Returns a document that `caller` may change, if it has the version that the change began with.
    fn find(&mut self, caller: &Caller, id: u64, version: Option<u64>) -> Result<&mut Arc<Document>, Failure> {
        let found = self.documents.iter_mut().find(|document| document.id == id && document.is_seen_by(caller));
        let document = found.ok_or_else(|| missing(id))?;
        if !document.is_changed_by(caller) {
            let text = format!("document {id} belongs to somebody else; save it under another name");
            return Err(Failure::new(StatusCode::FORBIDDEN, text));
        }
        match version {
            Some(version) if version == document.version => Ok(document),
            Some(version) => {
                let text = format!(
                    "document {id} has version {}, and the change began with {version}: somebody saved it meanwhile",
                    document.version
                );
                Err(Failure::new(StatusCode::CONFLICT, text))
            }
            None => Err(Failure::bad_request("the version that is to be changed is missing")),
        }
    }
}

impl Document {
    fn is_seen_by(&self, caller: &Caller) -> bool {
        self.shared || self.is_changed_by(caller)
    }

    fn is_changed_by(&self, caller: &Caller) -> bool {
        let is_own =
            |owner: &Owner| caller.token().is_some_and(|token| (token.id, token.created_ms) == owner.identity());
        caller.is_admin() || self.owner.as_ref().is_some_and(is_own)
    }

    /// Returns what lists show, and with `body` all of it.
    pub(super) fn describe(&self, caller: &Caller, body: bool) -> Value {
        let mut shown = json!({
            "id": self.id,
            "kind": self.kind,
            "name": self.name,
            "version": self.version,
            "owner": self.owner.as_ref().map(|owner| owner.name.as_str()),
            "shared": self.shared,
            "editable": self.is_changed_by(caller),
            "updated_at": timestamp::format(self.updated_ns),
        });
        if let Some(shown) = shown.as_object_mut().filter(|_| body) {
            shown.insert("body".to_owned(), self.body.clone());
        }
        shown
    }
}

fn missing(id: u64) -> Failure {
    Failure::new(StatusCode::NOT_FOUND, format!("document {id} not found"))
}
