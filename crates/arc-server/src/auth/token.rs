//! One token: what it may do, and until when.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use arc_core::Access;

use super::{
    grant::{Grant, Rights},
    limits::Usage,
    secret::Hash,
};
use crate::audit::INTERNAL;

/// Seconds that may pass before it is noted again that a token is used.
const USED_EVERY_MS: i64 = 1_000;

/// A token as it is kept.
#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(super) hash: Hash,
    pub(crate) grants: Vec<Grant>,
    pub(crate) created_ms: i64,
    pub(crate) expires_ms: Option<i64>,
    pub(crate) enabled: bool,
    /// The same for all states of the token, until its limits change.
    pub(crate) usage: Arc<Usage>,
    /// 0 if never.
    pub(super) used_ms: AtomicI64,
}

impl Clone for Token {
    fn clone(&self) -> Self {
        Self {
            id: self.id,
            name: self.name.clone(),
            description: self.description.clone(),
            hash: self.hash,
            grants: self.grants.clone(),
            created_ms: self.created_ms,
            expires_ms: self.expires_ms,
            enabled: self.enabled,
            usage: Arc::clone(&self.usage),
            used_ms: AtomicI64::new(self.used_ms()),
        }
    }
}

impl Token {
    /// Returns whether the token lets anybody in at this time.
    pub(super) fn is_valid(&self, now_ms: i64) -> bool {
        self.enabled && self.expires_ms.is_none_or(|expires| now_ms < expires)
    }

    /// Takes note that the token is used.
    pub(super) fn note_use(&self, now_ms: i64) {
        if now_ms - self.used_ms() >= USED_EVERY_MS {
            self.used_ms.store(now_ms, Ordering::Relaxed);
        }
    }

    pub(crate) fn used_ms(&self) -> i64 {
        self.used_ms.load(Ordering::Relaxed)
    }

    /// Returns all rights that it has anywhere.
    pub(crate) fn rights(&self) -> Rights {
        self.grants.iter().fold(Rights::default(), |rights, grant| rights.or(grant.rights))
    }

    /// Returns whether the token has a right for a table.
    pub(crate) fn may(&self, right: Rights, database: &str, table: &str) -> bool {
        self.grants.iter().any(|grant| grant.rights.has(right) && grant.is_for(database) && grant.tables.matches(table))
    }

    /// Returns whether it has a right for all tables of a database, also those to come.
    pub(crate) fn may_in_all_of(&self, right: Rights, database: &str) -> bool {
        self.grants.iter().any(|grant| grant.rights.has(right) && grant.tables.match_all() && grant.is_for(database))
    }

    /// Returns whether it has a right for any table of a database.
    pub(crate) fn may_in(&self, right: Rights, database: &str) -> bool {
        self.grants.iter().any(|grant| grant.rights.has(right) && grant.is_for(database))
    }

    /// Returns whether it has a right for everything, what the server keeps for itself included.
    pub(crate) fn may_everywhere(&self, right: Rights) -> bool {
        self.grants.iter().any(|grant| grant.rights.has(right) && grant.is_everywhere() && grant.is_for(INTERNAL))
    }
}

impl Access for Token {
    fn sees(&self, database: &str) -> bool {
        self.grants.iter().any(|grant| grant.rights != Rights::default() && grant.is_for(database))
    }

    fn reads(&self, database: &str, table: &str) -> bool {
        self.may(Rights::READ, database, table)
    }

    fn writes(&self, database: &str, table: &str) -> bool {
        self.may(Rights::WRITE, database, table)
    }
}

/// Returns the milliseconds since the Unix epoch.
#[expect(clippy::disallowed_methods, reason = "tokens end by the clock on the wall")]
pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
pub(super) mod tests {
    use super::{
        super::{grant::Patterns, limits::TokenLimits},
        *,
    };

    /// A token with these rights, each in databases and tables.
    pub(crate) fn token(grants: &[(&str, &str, &str)]) -> Token {
        let grants = grants.iter().map(|(rights, databases, tables)| Grant {
            rights: Rights::named(rights.split(',')).unwrap(),
            databases: Patterns::new(databases.split(',').map(str::to_owned).collect()).unwrap(),
            tables: Patterns::new(tables.split(',').map(str::to_owned).collect()).unwrap(),
        });
        Token {
            id: 1,
            name: "t".to_owned(),
            description: None,
            hash: super::super::secret::Secret::new(1).unwrap().1,
            grants: grants.collect(),
            created_ms: 0,
            expires_ms: None,
            enabled: true,
            usage: Usage::within(TokenLimits::default()),
            used_ms: AtomicI64::new(0),
        }
    }

    #[test]
    fn rights_hold_where_both_patterns_match() {
        let token = token(&[("read", "*", "*"), ("write", "plant*", "cpu,mem*")]);
        for (right, database, table, expected) in [
            (Rights::READ, "other", "x", true),
            (Rights::WRITE, "plant_1", "cpu", true),
            (Rights::WRITE, "plant_1", "memory", true),
            (Rights::WRITE, "plant_1", "disk", false),
            (Rights::WRITE, "other", "cpu", false),
            (Rights::DELETE, "plant_1", "cpu", false),
        ] {
            assert_eq!(token.may(right, database, table), expected, "{right:?} {database} {table}");
        }
        assert!(token.may_in(Rights::WRITE, "plant") && !token.may_in_all_of(Rights::WRITE, "plant"));
        assert!(!token.may_everywhere(Rights::READ), "what the server keeps for itself is not for everybody");
        assert!(!token.may(Rights::READ, INTERNAL, "audit") && !Access::sees(&token, INTERNAL));
        assert!(self::token(&[("read", "_internal", "*")]).may(Rights::READ, INTERNAL, "audit"));
        assert!(self::token(&[("admin", "*", "*")]).may_everywhere(Rights::READ));
        assert_eq!(token.rights().names().collect::<Vec<_>>(), ["read", "write"]);
    }

    #[test]
    fn a_token_ends_at_its_time_or_when_it_is_revoked() {
        let mut token = token(&[("read", "*", "*")]);
        assert!(token.is_valid(i64::MAX));
        token.expires_ms = Some(1_000);
        assert!(token.is_valid(999) && !token.is_valid(1_000));
        token.enabled = false;
        assert!(!token.is_valid(0));
    }

    #[test]
    fn use_is_noted_once_a_second() {
        let token = token(&[]);
        token.note_use(5_000);
        token.note_use(5_999);
        assert_eq!(token.used_ms(), 5_000);
        token.note_use(6_000);
        assert_eq!(token.clone().used_ms(), 6_000);
    }
}
