//! Rights, and the databases and tables they are for.

use serde::{Deserialize, Serialize};

use crate::audit::INTERNAL;

/// Longest pattern, and most patterns of one grant.
const MAX_PATTERN_BYTES: usize = 256;
const MAX_PATTERNS: usize = 100;

/// A set of things that a token may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Rights(u8);

impl Rights {
    pub(crate) const READ: Self = Self(1);
    pub(crate) const WRITE: Self = Self(2);
    pub(crate) const DELETE: Self = Self(4);
    pub(crate) const ADMIN: Self = Self(8);
    const NAMED: [(Self, &'static str); 4] =
        [(Self::READ, "read"), (Self::WRITE, "write"), (Self::DELETE, "delete"), (Self::ADMIN, "admin")];

    /// Reads names; an administrator may do everything else as well.
    pub(crate) fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let mut rights = Self::default();
        for name in names {
            let found = Self::NAMED.iter().find(|(_, known)| *known == name);
            let unknown = || format!("the right {name:?} is not known; expected read, write, delete or admin");
            rights.0 |= found.ok_or_else(unknown)?.0.0;
        }
        Ok(if rights.has(Self::ADMIN) { Self(15) } else { rights })
    }

    pub(crate) const fn has(self, right: Self) -> bool {
        self.0 & right.0 == right.0
    }

    pub(crate) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMED.into_iter().filter(move |(right, _)| self.has(*right)).map(|(_, name)| name)
    }

    /// Returns the name of one right.
    pub(crate) fn name(self) -> &'static str {
        self.names().last().unwrap_or("no")
    }
}

/// Patterns of names, in which `*` stands for any text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Patterns(Vec<String>);

impl Patterns {
    pub(crate) fn all() -> Self {
        Self(vec!["*".to_owned()])
    }

    pub(crate) fn new(patterns: Vec<String>) -> Result<Self, String> {
        if patterns.is_empty() || patterns.len() > MAX_PATTERNS {
            return Err(format!("expected 1 to {MAX_PATTERNS} patterns of names"));
        }
        let is_bad = |pattern: &&String| {
            pattern.is_empty() || pattern.len() > MAX_PATTERN_BYTES || pattern.chars().any(char::is_control)
        };
        match patterns.iter().find(is_bad) {
            Some(bad) => {
                let shown: String = bad.chars().take(64).collect();
                Err(format!("{shown:?} is no pattern of names: expected 1 to {MAX_PATTERN_BYTES} bytes of text"))
            }
            None => Ok(Self(patterns)),
        }
    }

    pub(crate) fn match_all(&self) -> bool {
        self.0.iter().any(|pattern| pattern == "*")
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| matches(pattern, name))
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.0
    }
}

/// Returns whether `name` is what `pattern` says: text as it is, `*` for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(head) else { return false };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return name.ends_with(part);
        }
        // The first place is the best one: it leaves the most for what follows.
        let Some(at) = name.find(part) else { return false };
        name = name.get(at + part.len()..).unwrap_or_default();
    }
    true
}

/// Rights in the databases and tables that patterns name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) rights: Rights,
    pub(crate) databases: Patterns,
    pub(crate) tables: Patterns,
}

impl Grant {
    /// Returns these rights everywhere.
    pub(crate) fn everywhere(rights: Rights) -> Self {
        Self { rights, databases: Patterns::all(), tables: Patterns::all() }
    }

    /// Returns whether the grant is for a database. What the server keeps for itself is for those who may do everything, and
    /// for those whose grant names it.
    pub(crate) fn is_for(&self, database: &str) -> bool {
        match database {
            INTERNAL => {
                self.rights.has(Rights::ADMIN) && self.is_everywhere()
                    || self.databases.names().contains(&INTERNAL.to_owned())
            }
            _ => self.databases.matches(database),
        }
    }

    pub(crate) fn is_everywhere(&self) -> bool {
        self.databases.match_all() && self.tables.match_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("*", "plant", true),
            ("plant", "plant", true),
            ("plant", "plants", false),
            ("plant*", "plant", true),
            ("plant*", "plant_7", true),
            ("plant*", "aplant", false),
            ("*_raw", "cpu_raw", true),
            ("*_raw", "cpu_raw_1", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
            ("**", "x", true),
            ("", "", true),
            ("ü*", "über", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn rights_go_by_their_names() {
        let named = |names: &[&str]| Rights::named(names.iter().copied());
        assert_eq!(named(&["read", "write"]).unwrap().names().collect::<Vec<_>>(), ["read", "write"]);
        assert_eq!(named(&[]).unwrap(), Rights::default());
        let admin = named(&["admin"]).unwrap();
        assert!([Rights::READ, Rights::WRITE, Rights::DELETE, Rights::ADMIN].into_iter().all(|right| admin.has(right)));
        assert!(!named(&["read"]).unwrap().has(Rights::WRITE));
        assert!(named(&["root"]).unwrap_err().contains("expected read, write, delete or admin"));
    }

    #[test]
    fn patterns_are_bounded() {
        let new = |patterns: &[&str]| Patterns::new(patterns.iter().map(|&pattern| pattern.to_owned()).collect());
        assert!(new(&["a", "b*"]).unwrap().matches("bc"));
        for bad in [&[][..], &[""], &["a\n"], &[&"x".repeat(257)], &["a"; 101]] {
            assert!(new(bad).is_err(), "{bad:?}");
        }
    }
}
