//! What a server of several is told: its part, its name, the others, and the secret that they share.

use std::{path::PathBuf, time::Duration};

use arc_core::Durability;

use super::{Config, ConfigError};

/// Most bytes of the name of a node.
const MAX_NAME_BYTES: usize = 64;

/// What a server does for the data that it serves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Role {
    /// Everything: it takes writes and answers queries. Other nodes may read what it writes.
    #[default]
    All,
    /// It takes writes, and hands queries on to nodes that answer them, while any does.
    Ingest,
    /// It answers queries, and hands writes and changes on to the node that takes them.
    Query,
}

impl Role {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let found = [Self::All, Self::Ingest, Self::Query].into_iter().find(|role| role.name() == text);
        found.ok_or_else(|| "all, ingest or query".to_owned())
    }

    /// Returns the name as in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Ingest => "ingest",
            Self::Query => "query",
        }
    }
}

/// Another node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// What it was given as its own name.
    pub name: String,
    /// Where it serves HTTP: `http://host:port`, without a path.
    pub url: String,
}

/// What a server of several is told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClusterSettings {
    /// Its part. Default all.
    pub role: Role,
    /// Its own name, by which others know it. Default none: it is alone.
    pub node_name: Option<String>,
    /// The other nodes. Default none.
    pub peers: Vec<Peer>,
    /// The file with the secret that nodes know each other by. Default none: it is alone.
    pub token_file: Option<PathBuf>,
    /// How long no node may have said that it has the store's log before this one takes the store over. Until then it stands by, and
    /// serves nothing. Default none: it never does.
    pub takeover_after: Option<Duration>,
}

/// Reads a name of a node, or `none`.
pub(super) fn node_name(text: &str) -> Result<Option<String>, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match text {
        "none" => Ok(None),
        _ if !text.is_empty() && text.len() <= MAX_NAME_BYTES && text.chars().all(is_plain) => {
            Ok(Some(text.to_owned()))
        }
        _ => Err(format!("1 to {MAX_NAME_BYTES} letters, digits, -, _ and ., or none")),
    }
}

/// Reads `a=http://host:8000,b=http://host:8001`, or `none`.
pub(super) fn peers(text: &str) -> Result<Vec<Peer>, String> {
    if text == "none" {
        return Ok(Vec::new());
    }
    let expected = || "NAME=URL, each URL like http://10.0.0.7:8000, with commas in between; or none".to_owned();
    let peer = |part: &str| {
        let (name, url) = part.split_once('=')?;
        let (name, url) = (node_name(name).ok().flatten()?, url.trim_end_matches('/'));
        let host = ["http://", "https://"].into_iter().find_map(|scheme| url.strip_prefix(scheme))?;
        let is_plain = !host.is_empty() && !host.contains(['/', '?', '#', '@']) && url.parse::<hyper::Uri>().is_ok();
        is_plain.then(|| Peer { name, url: url.to_owned() })
    };
    text.split(',').map(str::trim).map(|part| peer(part).ok_or_else(expected)).collect()
}

/// Prints what [`peers`] reads.
pub(super) fn show_peers(peers: Vec<Peer>) -> String {
    if peers.is_empty() {
        return "none".to_owned();
    }
    peers.iter().map(|peer| format!("{}={}", peer.name, peer.url)).collect::<Vec<_>>().join(",")
}

/// Refuses settings that do not make a node.
pub(crate) fn check_cluster(config: &Config) -> Result<(), ConfigError> {
    let ClusterSettings { role, node_name, peers, token_file, takeover_after } = &config.cluster;
    let takes_over = takeover_after.is_some();
    let is_alone = *role == Role::All && node_name.is_none() && peers.is_empty() && token_file.is_none() && !takes_over;
    if is_alone {
        return Ok(());
    }
    let reason = if config.reader {
        "reader and role exclude each other: role query reads the store of another node, reader a directory"
    } else if config.object_store.url.is_none() {
        "nodes share an object store: set object_store_url to the same one on all of them"
    } else if token_file.is_none() {
        "nodes know each other by a secret: set cluster_token_file to a file with the same one on all of them"
    } else if node_name.is_none() {
        "a node has a name, by which the others know it: set node_name"
    } else if *role == Role::Query && peers.is_empty() {
        "a node with role query asks another one for what is in no data file yet: name that one with peer"
    } else if takes_over && (*role == Role::Query || peers.is_empty()) {
        "takeover_after is for nodes that take writes, role all or ingest, and that know another one: set role and peer"
    } else if takes_over && config.engine.durability != Durability::Remote {
        "a node may only take over what is in the object store: with takeover_after set durability to remote on all of them"
    } else if has_repeated(peers.iter().map(|peer| &peer.name).chain(node_name)) {
        "each node has a name of its own: two of node_name and peer are the same"
    } else {
        return Ok(());
    };
    Err(ConfigError::Cluster { reason })
}

fn has_repeated<'n>(names: impl Iterator<Item = &'n String>) -> bool {
    let mut names: Vec<&String> = names.collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    names.len() < all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_read_back_as_they_are_shown() {
        for text in ["none", "a=http://10.0.0.7:8000", "a=http://a:1,b-2.x=https://[::1]:8443"] {
            assert_eq!(show_peers(peers(text).unwrap()), text);
        }
        assert_eq!(peers("a=http://h:1/ , b=http://h:2").unwrap()[0].url, "http://h:1");
        for wrong in [
            "",
            "a",
            "a=",
            "=http://h:1",
            "a=h:1",
            "a=ftp://h:1",
            "a=http://",
            "a=http://h/path",
            "a=http://user@h",
            "a b=http://h:1",
            "a=http://h:1,,b=http://h:2",
            "a=http://h h:1",
        ] {
            assert!(peers(wrong).unwrap_err().contains("NAME=URL"), "{wrong:?}");
        }
    }

    #[test]
    fn what_a_node_lacks_is_named() {
        let mut config = Config::default();
        let refused = |config: &Config, named: &str| {
            let error = check_cluster(config).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        };
        assert!(check_cluster(&config).is_ok());
        config.cluster.role = Role::Query;
        refused(&config, "object_store_url");
        config.object_store.url = Some("s3://b/p".to_owned());
        refused(&config, "cluster_token_file");
        config.cluster.token_file = Some("t".into());
        refused(&config, "node_name");
        config.cluster.node_name = Some("a".to_owned());
        refused(&config, "peer");
        config.cluster.peers = peers("a=http://h:1").unwrap();
        refused(&config, "name of its own");
        config.cluster.peers = peers("b=http://h:1").unwrap();
        assert!(check_cluster(&config).is_ok());
        config.cluster.takeover_after = Some(Duration::from_secs(30));
        refused(&config, "role all or ingest");
        config.cluster.role = Role::Ingest;
        refused(&config, "durability");
        config.engine.durability = Durability::Remote;
        assert!(check_cluster(&config).is_ok());
        config.reader = true;
        refused(&config, "exclude");
        let alone = Config {
            cluster: ClusterSettings { node_name: Some("a".into()), ..Default::default() },
            ..Config::default()
        };
        refused(&alone, "object_store_url");
    }
}
