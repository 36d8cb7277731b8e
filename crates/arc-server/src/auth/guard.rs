//! What stands before every endpoint: who is not known goes no further, and nothing of the body is read before that.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use axum::extract::Request;
use hyper::{HeaderMap, StatusCode, Uri, http::Extensions};
use tokio::sync::Semaphore;

use super::{
    AuthError, Caller, bootstrap, credentials,
    limits::Usage,
    owners::{Following, OwnersTokens},
    store::Store,
    token::{Token, now_ms},
};
use crate::{console, errors::Failure, metrics::Counter};

/// How long the answer to a wrong token takes, and how many such answers may wait at once; beyond that clients are told to
/// come back. Nobody can guess 256 bits: this keeps the tries from being a load.
const REFUSAL_PAUSE: Duration = Duration::from_millis(250);
const REFUSALS: usize = 512;

/// How long a token that another process has taken away is still good here.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What anybody may ask.
const PUBLIC: [&str; 8] = [
    "/health",
    "/ready",
    "/ready/write",
    "/ping",
    "/api/v1/auth/verify",
    "/api/v2/setup",
    "/api/v2/ready",
    "/api/openapi.json",
];
/// What anybody may ask where the settings say so.
const METRICS: [&str; 2] = ["/metrics", "/api/v1/metrics"];

/// Who is let in.
#[derive(Debug)]
pub(crate) struct Auth {
    /// None where nobody has to log in.
    store: Option<Arc<Store>>,
    /// There if another process changes the tokens: when they were looked at last.
    looked: Option<Mutex<Instant>>,
    /// There if the tokens are another node's.
    owners: Option<Following>,
    refusals: Semaphore,
    public_metrics: bool,
    pub(crate) accepted: Counter,
    pub(crate) refused: Counter,
}

impl Auth {
    /// Lets everybody in.
    pub(crate) fn open() -> Self {
        Self::new(None, true)
    }

    /// Lets in who has a token of the data directory. Also returns the file that the first token was written to, if it was
    /// made now.
    pub(crate) fn closed(data_dir: &Path, public_metrics: bool) -> Result<(Self, Option<PathBuf>), AuthError> {
        let (store, made) = bootstrap::open(data_dir)?;
        Ok((Self::new(Some(Arc::new(store)), public_metrics), made))
    }

    /// Lets in who has a token of the data directory, which another process makes and takes away.
    pub(crate) fn followed(data_dir: &Path, public_metrics: bool) -> Result<Self, AuthError> {
        let store = Arc::new(bootstrap::follow(data_dir)?);
        if !store.has_admin() {
            tracing::warn!("there is no token yet that lets anybody in: the server that writes makes them");
        }
        let looked = Some(Mutex::new(Instant::now()));
        Ok(Self { looked, ..Self::new(Some(store), public_metrics) })
    }

    /// Lets in who has a token of another node, which makes them and takes them away; nobody before they are known.
    pub(crate) fn of_owner(public_metrics: bool) -> Self {
        let store = Some(Arc::new(Store::of_another()));
        Self { owners: Some(Following::default()), ..Self::new(store, public_metrics) }
    }

    /// Returns whether the tokens are another node's.
    pub(crate) fn is_owners(&self) -> bool {
        self.owners.is_some()
    }

    /// Returns what is different whenever the tokens are; `None` where there are none, or none are known yet.
    pub(crate) fn revision(&self) -> Option<String> {
        match (&self.owners, &self.store) {
            (Some(owners), _) => owners.revision(),
            (None, store) => store.as_ref().map(|store| store.revision()),
        }
    }

    /// Returns the tokens for another node, secrets as hashes.
    pub(crate) fn shared_tokens(&self) -> Result<Vec<u8>, Failure> {
        self.store()?.to_text().map_err(Into::into)
    }

    /// Lets in by these tokens from now on.
    pub(crate) fn take_over(&self, tokens: OwnersTokens) {
        let (Some(owners), Some(store)) = (&self.owners, &self.store) else { return };
        match tokens {
            OwnersTokens::Same => owners.note(None),
            OwnersTokens::None => {
                tracing::warn!(
                    "the node that takes writes lets everybody in, and this one does not: nobody has a token for it"
                );
            }
            OwnersTokens::Others { revision, text } => match store.replace(&text) {
                Ok(()) => owners.note(Some(revision)),
                Err(error) => {
                    tracing::warn!(error = crate::errors::chain(&error), "cannot read the tokens of the owner")
                }
            },
        }
    }

    /// Reads the tokens again if another process may have changed them.
    fn look_again(&self, store: &Store) {
        let Some(Ok(mut looked)) = self.looked.as_ref().map(Mutex::try_lock) else { return };
        if looked.elapsed() >= LOOK_EVERY {
            *looked = Instant::now();
            if let Err(error) = store.read_again() {
                tracing::warn!(error = crate::errors::chain(&error), "cannot read the tokens again");
            }
        }
    }

    fn new(store: Option<Arc<Store>>, public_metrics: bool) -> Self {
        let (accepted, refused) = (Counter::default(), Counter::default());
        Self {
            store,
            looked: None,
            owners: None,
            refusals: Semaphore::new(REFUSALS),
            public_metrics,
            accepted,
            refused,
        }
    }

    /// Returns the tokens, where there are any.
    pub(super) fn store(&self) -> Result<Arc<Store>, Failure> {
        let text = "this server has no tokens: it was started with --no-auth";
        self.store.clone().ok_or_else(|| Failure::new(StatusCode::NOT_FOUND, text))
    }

    /// Returns the path of the file with the tokens.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.store.as_ref().map(|store| store.path())
    }

    /// Lets a request in, with its caller, or says why not. Returns what its answer counts for.
    pub(crate) async fn admit(&self, request: &mut Request) -> Result<Option<Arc<Usage>>, Failure> {
        let Some(store) = &self.store else { return Ok(None) };
        self.look_again(store);
        let is_public = self.is_public(request.uri().path()) || console::is_public(request.uri(), request.headers());
        let is_known = self.owners.as_ref().map_or(Ok(()), Following::check_age);
        if !is_public {
            is_known?;
        }
        let token = match credentials::find(request.headers(), request.uri()) {
            Some(text) => store.verify(&text),
            None if is_public => return Ok(None),
            None => return Err(unauthorized("Authentication required")),
        };
        if let Some(uri) = credentials::without_password(request.uri()) {
            *request.uri_mut() = uri;
        }
        match token {
            Some(token) => {
                self.accepted.add(1);
                let usage = Arc::clone(&token.usage);
                usage.admit()?;
                let body = std::mem::take(request.body_mut());
                *request.body_mut() = usage.count(body);
                request.extensions_mut().insert(Caller::of(token));
                Ok(Some(usage))
            }
            None if is_public => Ok(None),
            None => Err(self.refuse().await),
        }
    }

    fn is_public(&self, path: &str) -> bool {
        PUBLIC.contains(&path) || (self.public_metrics && METRICS.iter().any(|metrics| path.starts_with(metrics)))
    }

    async fn refuse(&self) -> Failure {
        self.refused.add(1);
        let Ok(_waiting) = self.refusals.try_acquire() else {
            let text = "too many requests with tokens that are not valid";
            let mut busy = Failure::busy(text, Duration::from_secs(1));
            busy.status = StatusCode::TOO_MANY_REQUESTS;
            return busy;
        };
        tokio::time::sleep(REFUSAL_PAUSE).await;
        unauthorized("Invalid or expired token")
    }

    /// Returns who sent a request that was let in.
    pub(crate) fn caller(&self, extensions: &Extensions) -> Result<Caller, Failure> {
        match (&self.store, extensions.get::<Caller>()) {
            (None, _) => Ok(Caller::anybody()),
            (Some(_), Some(caller)) => Ok(caller.clone()),
            (Some(_), None) => Err(unauthorized("Authentication required")),
        }
    }

    /// Returns a caller whose request lasts, with the rights of now; refuses it where its token has ended, or is another one.
    pub(crate) fn again(&self, caller: &Caller) -> Result<Caller, Failure> {
        let (Some(store), Some(token)) = (&self.store, caller.token()) else { return Ok(caller.clone()) };
        self.look_again(store);
        match store.get(token.id) {
            Ok(now) if now.is_valid(now_ms()) && now.hash == token.hash => Ok(Caller::of(now)),
            _ => Err(unauthorized("the token is no longer valid")),
        }
    }

    /// Returns the token of a request that anybody may send; `None` where there is none that lets in.
    pub(super) async fn verify(&self, headers: &HeaderMap, uri: &Uri, extensions: &Extensions) -> Option<Arc<Token>> {
        if let Some(caller) = extensions.get::<Caller>() {
            return caller.token().cloned();
        }
        if credentials::find(headers, uri).is_some() {
            self.refuse().await;
        }
        None
    }

    /// Writes down when tokens were used; they are not needed to be in force.
    pub(crate) fn close(&self) {
        if self.looked.is_some() || self.owners.is_some() {
            return;
        }
        if let Some(Err(error)) = self.store.as_ref().map(|store| store.note_uses()) {
            tracing::warn!(error = crate::errors::chain(&error), "cannot write down when tokens were used");
        }
    }
}

fn unauthorized(text: &str) -> Failure {
    Failure::new(StatusCode::UNAUTHORIZED, text)
}
