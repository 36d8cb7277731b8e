//! The file of tokens, and files that nobody else may read: written whole, or not at all.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::atomic::AtomicI64,
};

use serde::{Deserialize, Serialize};

use super::{
    AuthError,
    grant::{Grant, Patterns, Rights},
    limits::{TokenLimits, Usage},
    secret::Hash,
    token::Token,
};

/// The form of the file that is written; a newer one is not read.
const VERSION: u32 = 1;

/// What the file says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokensFile {
    version: u32,
    /// The number of the next token; no number is used twice.
    next_id: u64,
    tokens: Vec<KeptToken>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptToken {
    id: u64,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    sha256: Hash,
    grants: Vec<KeptGrant>,
    created_ms: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_ms: Option<i64>,
    enabled: bool,
    #[serde(default, skip_serializing_if = "TokenLimits::is_none")]
    limits: TokenLimits,
    #[serde(default)]
    used_ms: i64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptGrant {
    rights: Vec<String>,
    databases: Patterns,
    tables: Patterns,
}

/// Reads the tokens, and the number of the next one; none and 1 if there is no file.
#[expect(clippy::disallowed_methods, reason = "tokens are the server's own files, beside those of the engine")]
pub(super) fn read(path: &Path) -> Result<(Vec<Token>, u64), AuthError> {
    let text = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), 1)),
        read => read.map_err(|source| AuthError::Io { action: "read", path: path.to_owned(), source })?,
    };
    decode(path, &text)
}

/// Reads the same from the text of such a file; `path` is for errors.
pub(super) fn decode(path: &Path, text: &[u8]) -> Result<(Vec<Token>, u64), AuthError> {
    let damaged = |reason: String| AuthError::Damaged { path: path.to_owned(), reason };
    let kept: TokensFile = serde_json::from_slice(text).map_err(|error| damaged(error.to_string()))?;
    if kept.version != VERSION {
        return Err(damaged(format!("it has version {}, and this program reads {VERSION}", kept.version)));
    }
    let tokens = kept.tokens.into_iter().map(token).collect::<Result<Vec<_>, _>>().map_err(damaged)?;
    let next = tokens.iter().map(|token| token.id.saturating_add(1)).chain([kept.next_id, 1]).max().unwrap_or(1);
    Ok((tokens, next))
}

fn token(kept: KeptToken) -> Result<Token, String> {
    let grants = kept.grants.into_iter().map(|grant| {
        Ok(Grant {
            rights: Rights::named(grant.rights.iter().map(String::as_str))?,
            databases: grant.databases,
            tables: grant.tables,
        })
    });
    Ok(Token {
        id: kept.id,
        name: kept.name,
        description: kept.description,
        hash: kept.sha256,
        grants: grants.collect::<Result<_, String>>()?,
        created_ms: kept.created_ms,
        expires_ms: kept.expires_ms,
        enabled: kept.enabled,
        usage: Usage::within(kept.limits.check()?),
        used_ms: AtomicI64::new(kept.used_ms),
    })
}

/// Writes all tokens, so that they are there after a power cut.
pub(super) fn write<'a>(path: &Path, tokens: impl Iterator<Item = &'a Token>, next_id: u64) -> Result<(), AuthError> {
    write_private(path, &encode(tokens, next_id)?)
}

/// Returns the text of such a file.
pub(super) fn encode<'a>(tokens: impl Iterator<Item = &'a Token>, next_id: u64) -> Result<Vec<u8>, AuthError> {
    let mut tokens: Vec<KeptToken> = tokens.map(kept).collect();
    tokens.sort_by_key(|token| token.id);
    let kept = TokensFile { version: VERSION, next_id, tokens };
    serde_json::to_vec_pretty(&kept).map_err(|error| AuthError::Invalid(error.to_string()))
}

fn kept(token: &Token) -> KeptToken {
    let grants = token.grants.iter().map(|grant| KeptGrant {
        rights: grant.rights.names().map(str::to_owned).collect(),
        databases: grant.databases.clone(),
        tables: grant.tables.clone(),
    });
    KeptToken {
        id: token.id,
        name: token.name.clone(),
        description: token.description.clone(),
        sha256: token.hash,
        grants: grants.collect(),
        created_ms: token.created_ms,
        expires_ms: token.expires_ms,
        enabled: token.enabled,
        limits: token.usage.limits(),
        used_ms: token.used_ms(),
    }
}

/// Writes a file that its owner alone may read. Whoever looks sees the old file or the new one, also after a power cut.
#[expect(clippy::disallowed_methods, reason = "tokens are the server's own files, beside those of the engine")]
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> Result<(), AuthError> {
    let failed = |action| move |source| AuthError::Io { action, path: path.to_owned(), source };
    let temporary = temporary(path);
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed("replace")(error)),
        _ => {}
    }
    let mut file = private(&temporary).map_err(failed("create"))?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed("write"))?;
    drop(file);
    fs::rename(&temporary, path).map_err(failed("replace"))?;
    sync_folder(path).map_err(failed("sync the folder of"))
}

/// Returns the name of the file while it is written.
fn temporary(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    path.with_file_name(name)
}

#[cfg(unix)]
#[expect(clippy::disallowed_methods, reason = "tokens are the server's own files, beside those of the engine")]
fn private(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// The folder's own rights have to do.
#[cfg(not(unix))]
#[expect(clippy::disallowed_methods, reason = "tokens are the server's own files, beside those of the engine")]
fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

#[cfg(unix)]
#[expect(clippy::disallowed_methods, reason = "tokens are the server's own files, beside those of the engine")]
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_path: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_read_back_as_they_were_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.json");
        assert_eq!(read(&path).unwrap().1, 1);
        let mut token = super::super::token::tests::token(&[("read", "a*", "b"), ("admin", "*", "*")]);
        token.expires_ms = Some(7);
        token.note_use(99_000);
        write(&path, [&token].into_iter(), 9).unwrap();
        // Also over what a process that died has left.
        fs::write(dir.path().join("tokens.json.new"), "half").unwrap();
        write(&path, [&token].into_iter(), 9).unwrap();
        let (tokens, next) = read(&path).unwrap();
        assert_eq!(next, 9);
        let [read] = tokens.as_slice() else { panic!("{tokens:?}") };
        assert_eq!((read.id, read.expires_ms, read.enabled, read.used_ms()), (1, Some(7), true, 99_000));
        assert_eq!(read.grants, token.grants);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_may_read_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("admin.token");
        fs::write(&path, "old").unwrap();
        write_private(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn what_was_not_written_here_is_refused_with_the_path() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.json");
        for (text, reason) in [
            ("", "EOF"),
            ("{}", "missing field"),
            (r#"{"version":2,"next_id":1,"tokens":[]}"#, "version 2"),
            (r#"{"version":1,"next_id":1,"tokens":[],"more":1}"#, "unknown field"),
        ] {
            fs::write(&path, text).unwrap();
            let error = read(&path).unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains("tokens.json"), "{error}");
        }
    }
}
