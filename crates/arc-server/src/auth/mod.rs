//! Who may ask, and what for: tokens, their rights, and where they are kept.
//!
//! Every request is asked for its token before its body is read ([`Auth::admit`]); what the token may do is asked of its
//! [`Caller`] by whoever does it. A statement and a write carry the caller's scope into the engine, which leaves out or refuses
//! what is beyond it. Secrets are kept as hashes only, and no secret ever reaches a log, an error or an address.

mod bootstrap;
mod caller;
mod credentials;
mod endpoints;
mod error;
mod file;
mod grant;
mod guard;
mod influx;
mod limits;
mod owners;
mod refusals;
mod request;
mod secret;
mod store;
mod token;

pub(crate) use bootstrap::keep_tokens;
pub(crate) use caller::{Caller, check_internal};
pub(crate) use credentials::{bearer, found};
pub(crate) use endpoints::{cache_stats, create, delete, get, list, no_cache, patch, revoke, rotate, verify};
pub use error::AuthError;
pub(crate) use file::write_private;
pub(crate) use grant::Rights;
pub(crate) use guard::Auth;
pub(crate) use influx::{create_admin, create_named_admin, create_scoped, delete_named};
pub(crate) use owners::OwnersTokens;
pub(crate) use refusals::{FarEnd, Refusals};
