//! Which database a call is for.

use hyper::HeaderMap;

use crate::{errors::Failure, http::params::header};

/// Headers that name the database, the first one wins. The others are what InfluxDB's clients send.
const DATABASE: [&str; 5] = ["x-arc-database", "database", "bucket", "bucket-name", "iox-namespace-name"];

/// Name of the one catalog, whose schemas are the databases.
pub(super) const CATALOG: &str = "arc";

/// Returns the database that the headers name, else `default`.
pub(super) fn database(headers: &HeaderMap) -> Result<String, Failure> {
    for name in DATABASE {
        if let Some(database) = header(headers, name)? {
            return Ok(database.to_owned());
        }
    }
    Ok("default".to_owned())
}

/// Refuses a catalog that is not the one there is; an empty name means any.
pub(super) fn check_catalog(catalog: Option<&str>) -> Result<(), Failure> {
    match catalog {
        None | Some("" | CATALOG) => Ok(()),
        Some(other) => Err(Failure::bad_request(format!("there is no catalog {other:?}; the only one is {CATALOG:?}"))),
    }
}

/// Returns a name as SQL takes it.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_header_names_the_database() {
        let headers = |list: &[(&'static str, &str)]| {
            list.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect::<HeaderMap>()
        };
        for (given, expected) in [
            (&[][..], "default"),
            (&[("bucket", "b")], "b"),
            (&[("iox-namespace-name", "n"), ("database", "d")], "d"),
            (&[("database", "d"), ("x-arc-database", "x")], "x"),
            (&[("database", "")], "default"),
            (&[("bucket-name", "grün")], "grün"),
        ] {
            assert_eq!(database(&headers(given)).unwrap(), expected, "{given:?}");
        }
    }
}
