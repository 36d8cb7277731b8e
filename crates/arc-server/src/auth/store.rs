//! All tokens: found without a lock, changed one after the other, and on disk before a change is answered.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::SystemTime,
};

use arc_swap::ArcSwap;

use super::{
    AuthError, Rights, file,
    grant::Grant,
    limits::{TokenLimits, Usage},
    secret::{self, Secret},
    token::{Token, now_ms},
};

/// Most tokens that are kept.
const MAX_TOKENS: usize = 10_000;
const MAX_NAME_BYTES: usize = 128;
const MAX_DESCRIPTION_BYTES: usize = 1_024;

type Tokens = HashMap<u64, Arc<Token>>;

/// The tokens of a data directory.
#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
    tokens: ArcSwap<Tokens>,
    /// The number of the next token. Who holds it is the only one that changes anything.
    next_id: Mutex<u64>,
    /// When the file was changed that was read last.
    modified: Mutex<Option<SystemTime>>,
    /// How often the tokens have changed, and when they were read first: together like no other's.
    changes: AtomicU64,
    since_ms: i64,
}

/// A token that is to be made.
#[derive(Debug, Clone)]
pub(crate) struct NewToken {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) grants: Vec<Grant>,
    pub(crate) expires_ms: Option<i64>,
    pub(crate) limits: TokenLimits,
}

/// What is to be different about a token; what is `None` stays.
#[derive(Debug, Clone, Default)]
pub(crate) struct Change {
    pub(crate) name: Option<String>,
    pub(crate) description: Option<Option<String>>,
    pub(crate) grants: Option<Vec<Grant>>,
    pub(crate) expires_ms: Option<Option<i64>>,
    pub(crate) enabled: Option<bool>,
    pub(crate) limits: Option<TokenLimits>,
}

impl Store {
    /// Reads the tokens that were kept in a file, which need not be there.
    pub(super) fn open(path: PathBuf) -> Result<Self, AuthError> {
        let modified = Mutex::new(modified(&path));
        let (tokens, next_id) = file::read(&path)?;
        let tokens = tokens.into_iter().map(|token| (token.id, Arc::new(token))).collect::<Tokens>();
        let (tokens, next_id, changes) = (ArcSwap::from_pointee(tokens), Mutex::new(next_id), AtomicU64::new(0));
        Ok(Self { path, tokens, next_id, modified, changes, since_ms: now_ms() })
    }

    /// Returns tokens that another node makes: none yet, and in no file.
    pub(super) fn of_another() -> Self {
        Self {
            path: PathBuf::new(),
            tokens: ArcSwap::default(),
            next_id: Mutex::new(1),
            modified: Mutex::default(),
            changes: AtomicU64::new(0),
            since_ms: now_ms(),
        }
    }

    /// Returns what is different whenever the tokens are.
    pub(super) fn revision(&self) -> String {
        format!("{:x}-{:x}", self.since_ms, self.changes.load(Ordering::Acquire))
    }

    /// Returns all tokens as their file has them.
    pub(super) fn to_text(&self) -> Result<Vec<u8>, AuthError> {
        let next_id = *self.lock();
        file::encode(self.tokens.load().values().map(AsRef::as_ref), next_id)
    }

    /// Has these tokens in force and no others, from the text of a file. A token that stays as it was goes on with what it has
    /// used.
    pub(super) fn replace(&self, text: &[u8]) -> Result<(), AuthError> {
        let mut next_id = self.lock();
        let (tokens, next) = file::decode(&self.path, text)?;
        let before = self.tokens.load();
        let kept = |mut token: Token| {
            if let Some(known) = before.get(&token.id).filter(|known| known.usage.limits() == token.usage.limits()) {
                token.usage = Arc::clone(&known.usage);
            }
            (token.id, Arc::new(token))
        };
        self.tokens.store(Arc::new(tokens.into_iter().map(kept).collect()));
        *next_id = next;
        Ok(())
    }

    /// Reads the tokens again if their file is another one by now.
    pub(super) fn read_again(&self) -> Result<(), AuthError> {
        let mut next_id = self.lock();
        let read = modified(&self.path);
        if *self.modified.lock().unwrap_or_else(PoisonError::into_inner) == read {
            return Ok(());
        }
        let (tokens, next) = file::read(&self.path)?;
        self.tokens.store(Arc::new(tokens.into_iter().map(|token| (token.id, Arc::new(token))).collect()));
        *self.modified.lock().unwrap_or_else(PoisonError::into_inner) = read;
        *next_id = next;
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the token whose text this is, if it lets anybody in.
    pub(super) fn verify(&self, text: &str) -> Option<Arc<Token>> {
        let (id, proof) = secret::split(text)?;
        let token = Arc::clone(self.tokens.load().get(&id)?);
        let now = now_ms();
        if !token.hash.is_of(proof) || !token.is_valid(now) {
            return None;
        }
        token.note_use(now);
        Some(token)
    }

    /// Returns all tokens in the order they were made.
    pub(super) fn all(&self) -> Vec<Arc<Token>> {
        let mut tokens: Vec<_> = self.tokens.load().values().cloned().collect();
        tokens.sort_by_key(|token| token.id);
        tokens
    }

    pub(super) fn get(&self, id: u64) -> Result<Arc<Token>, AuthError> {
        self.tokens.load().get(&id).cloned().ok_or_else(|| AuthError::NotFound(id.to_string()))
    }

    pub(super) fn named(&self, name: &str) -> Result<Arc<Token>, AuthError> {
        let tokens = self.tokens.load();
        let found = tokens.values().find(|token| token.name == name).cloned();
        found.ok_or_else(|| AuthError::NotFound(format!("named {name:?}")))
    }

    /// Returns whether anybody can make tokens.
    pub(super) fn has_admin(&self) -> bool {
        has_admin(&self.tokens.load())
    }

    /// Makes a token; returns it with its text, which is never known again.
    pub(super) fn create(&self, new: NewToken) -> Result<(Arc<Token>, Secret), AuthError> {
        let mut next_id = self.lock();
        let mut tokens = self.tokens.load().as_ref().clone();
        if tokens.len() >= MAX_TOKENS {
            return Err(AuthError::Full(MAX_TOKENS));
        }
        check_texts(&new.name, new.description.as_deref())?;
        check_name_is_free(&tokens, &new.name, None)?;
        let id = *next_id;
        let (secret, hash) = Secret::new(id)?;
        let token = Arc::new(Token {
            id,
            name: new.name,
            description: new.description,
            hash,
            grants: new.grants,
            created_ms: now_ms(),
            expires_ms: new.expires_ms,
            enabled: true,
            usage: Usage::within(new.limits),
            used_ms: AtomicI64::new(0),
        });
        tokens.insert(id, Arc::clone(&token));
        self.keep(tokens, id + 1)?;
        *next_id = id + 1;
        Ok((token, secret))
    }

    /// Changes a token; it is the changed one from the next request on.
    pub(super) fn change(&self, id: u64, change: Change) -> Result<Arc<Token>, AuthError> {
        self.edit(id, |tokens, token| {
            let Change { name, description, grants, expires_ms, enabled, limits } = change;
            if let Some(name) = name {
                check_name_is_free(tokens, &name, Some(id))?;
                token.name = name;
            }
            token.description = description.unwrap_or_else(|| token.description.take());
            check_texts(&token.name, token.description.as_deref())?;
            if let Some(grants) = grants {
                token.grants = grants;
            }
            token.expires_ms = expires_ms.unwrap_or(token.expires_ms);
            token.enabled = enabled.unwrap_or(token.enabled);
            if let Some(limits) = limits {
                token.usage = Usage::within(limits);
            }
            Ok(())
        })
    }

    /// Gives a token another text; the old one is worth nothing from now on.
    pub(super) fn rotate(&self, id: u64) -> Result<(Arc<Token>, Secret), AuthError> {
        let (secret, hash) = Secret::new(id)?;
        let token = self.edit(id, |_, token| {
            token.hash = hash;
            Ok(())
        })?;
        Ok((token, secret))
    }

    /// Takes a token away for good.
    pub(super) fn delete(&self, id: u64) -> Result<Arc<Token>, AuthError> {
        let next_id = self.lock();
        let mut tokens = self.tokens.load().as_ref().clone();
        let token = tokens.remove(&id).ok_or_else(|| AuthError::NotFound(id.to_string()))?;
        self.check_admins(&tokens, id)?;
        self.keep(tokens, *next_id)?;
        Ok(token)
    }

    /// Takes back a token that was never handed out.
    pub(super) fn forget(&self, id: u64) -> Result<(), AuthError> {
        let next_id = self.lock();
        let mut tokens = self.tokens.load().as_ref().clone();
        tokens.remove(&id);
        self.keep(tokens, *next_id)
    }

    /// Writes down when tokens were used last.
    pub(super) fn note_uses(&self) -> Result<(), AuthError> {
        let next_id = self.lock();
        file::write(&self.path, self.tokens.load().values().map(AsRef::as_ref), *next_id)
    }

    fn edit(
        &self,
        id: u64,
        edit: impl FnOnce(&Tokens, &mut Token) -> Result<(), AuthError>,
    ) -> Result<Arc<Token>, AuthError> {
        let next_id = self.lock();
        let mut tokens = self.tokens.load().as_ref().clone();
        let before = tokens.get(&id).ok_or_else(|| AuthError::NotFound(id.to_string()))?;
        let mut token = Token::clone(before);
        edit(&tokens, &mut token)?;
        let token = Arc::new(token);
        tokens.insert(id, Arc::clone(&token));
        self.check_admins(&tokens, id)?;
        self.keep(tokens, *next_id)?;
        Ok(token)
    }

    /// Returns an error if nobody would administer for ever without what a token was.
    fn check_admins(&self, changed: &Tokens, id: u64) -> Result<(), AuthError> {
        let loses_lasting = has_lasting_admin(&self.tokens.load()) && !has_lasting_admin(changed);
        if loses_lasting || !has_admin(changed) { Err(AuthError::LastAdmin(id)) } else { Ok(()) }
    }

    /// Puts tokens on disk, and then in force.
    fn keep(&self, tokens: Tokens, next_id: u64) -> Result<(), AuthError> {
        file::write(&self.path, tokens.values().map(AsRef::as_ref), next_id)?;
        self.tokens.store(Arc::new(tokens));
        self.changes.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.next_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[expect(clippy::disallowed_methods, reason = "the file is the server's own, as in `file`")]
fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|file| file.modified()).ok()
}

fn has_admin(tokens: &Tokens) -> bool {
    let now = now_ms();
    tokens.values().any(|token| token.is_valid(now) && token.may_everywhere(Rights::ADMIN))
}

/// Returns whether one of them is good for ever: nobody would administer once the last one has ended.
fn has_lasting_admin(tokens: &Tokens) -> bool {
    let now = now_ms();
    tokens
        .values()
        .any(|token| token.is_valid(now) && token.expires_ms.is_none() && token.may_everywhere(Rights::ADMIN))
}

fn check_name_is_free(tokens: &Tokens, name: &str, own: Option<u64>) -> Result<(), AuthError> {
    match tokens.values().find(|token| token.name == name && Some(token.id) != own) {
        Some(_) => Err(AuthError::NameTaken(name.to_owned())),
        None => Ok(()),
    }
}

fn check_texts(name: &str, description: Option<&str>) -> Result<(), AuthError> {
    let is_plain = |text: &str, most: usize| text.len() <= most && !text.chars().any(char::is_control);
    if name.trim().is_empty() || !is_plain(name, MAX_NAME_BYTES) {
        let expected = format!("the name of a token is 1 to {MAX_NAME_BYTES} bytes of text without control characters");
        return Err(AuthError::Invalid(expected));
    }
    if description.is_some_and(|text| !is_plain(text, MAX_DESCRIPTION_BYTES)) {
        let expected = format!("a description is up to {MAX_DESCRIPTION_BYTES} bytes without control characters");
        return Err(AuthError::Invalid(expected));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(name: &str, rights: Rights) -> NewToken {
        let grants = vec![Grant::everywhere(rights)];
        NewToken { name: name.to_owned(), description: None, grants, expires_ms: None, limits: TokenLimits::default() }
    }

    #[test]
    fn a_token_lives_until_it_is_revoked_rotated_or_deleted_and_over_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.json");
        let store = Store::open(path.clone()).unwrap();
        let admin = Rights::named(["admin"]).unwrap();
        let (_, root) = store.create(new("root", admin)).unwrap();
        let (token, secret) = store.create(new("a", Rights::READ)).unwrap();
        assert_eq!(store.verify(secret.text()).unwrap().name, "a");
        let store = Store::open(path.clone()).unwrap();
        assert_eq!(store.verify(secret.text()).unwrap().id, token.id);
        let (_, rotated) = store.rotate(token.id).unwrap();
        assert!(store.verify(secret.text()).is_none());
        assert!(store.verify(rotated.text()).is_some());
        let off = Change { enabled: Some(false), ..Change::default() };
        store.change(token.id, off).unwrap();
        assert!(store.verify(rotated.text()).is_none());
        store.delete(token.id).unwrap();
        assert!(matches!(store.get(token.id), Err(AuthError::NotFound(_))));
        let text = std::fs::read_to_string(&path).unwrap();
        for secret in [root, secret, rotated] {
            let (_, proof) = secret::split(secret.text()).unwrap();
            assert!(!text.contains(proof), "a secret is kept in the file");
        }
        let (next, _) = Store::open(path).unwrap().create(new("b", Rights::READ)).unwrap();
        assert!(next.id > token.id, "no number is used twice");
    }

    #[test]
    fn the_last_token_that_may_everything_stays() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().join("tokens.json")).unwrap();
        assert!(!store.has_admin());
        let admin = Rights::named(["admin"]).unwrap();
        let (first, _) = store.create(new("a", admin)).unwrap();
        assert!(matches!(store.delete(first.id), Err(AuthError::LastAdmin(_))));
        let off = Change { enabled: Some(false), ..Change::default() };
        let ends = Change { expires_ms: Some(Some(now_ms() + 1_000_000)), ..Change::default() };
        for change in [&off, &ends] {
            assert!(matches!(store.change(first.id, change.clone()), Err(AuthError::LastAdmin(_))));
        }
        assert!(store.has_admin());
        store.create(NewToken { expires_ms: Some(now_ms() + 1_000_000), ..new("guest", admin) }).unwrap();
        assert!(matches!(store.delete(first.id), Err(AuthError::LastAdmin(_))), "the other one ends");
        store.create(new("b", admin)).unwrap();
        store.change(first.id, off).unwrap();
    }

    #[test]
    fn names_are_taken_once() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().join("tokens.json")).unwrap();
        let (a, _) = store.create(new("a", Rights::named(["admin"]).unwrap())).unwrap();
        assert!(matches!(store.create(new("a", Rights::READ)), Err(AuthError::NameTaken(_))));
        let named = |name: &str| Change { name: Some(name.to_owned()), ..Change::default() };
        assert_eq!(store.change(a.id, named("a")).unwrap().name, "a");
        store.create(new("b", Rights::READ)).unwrap();
        assert!(matches!(store.change(a.id, named("b")), Err(AuthError::NameTaken(_))));
        for bad in ["", " ", "a\nb", &"x".repeat(129)] {
            assert!(matches!(store.create(new(bad, Rights::READ)), Err(AuthError::Invalid(_))), "{bad:?}");
        }
    }
}
