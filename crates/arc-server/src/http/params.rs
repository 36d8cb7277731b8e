//! The query string: names and values, decoded strictly.
//!
//! A byte sequence that is not UTF-8 is an error here rather than a replacement character: `db` names where points go,
//! and a name that was altered on the way would send them elsewhere.

use std::{borrow::Cow, ops::RangeInclusive};

use hyper::{HeaderMap, Uri, header};

use crate::errors::Failure;

/// What the Python client of Arc calls itself; it alone reads lists out of an object.
const PYTHON_CLIENT: &[u8] = b"arc-client-python/";

/// Names and values in the order of the request.
#[derive(Debug, Default)]
pub(crate) struct Params(Vec<(String, String)>);

impl Params {
    /// Reads the query string of `uri`.
    pub(crate) fn of(uri: &Uri) -> Result<Self, Failure> {
        Self::parse(uri.query().unwrap_or_default())
    }

    /// Reads `a=1&b=2`, as in a query string or a form.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        pairs
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                Ok((decode(name)?, decode(value)?))
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Takes the options of a write that are no query string; refuses those that nobody knows.
    pub(crate) fn of_options(options: impl IntoIterator<Item = (String, String)>) -> Result<Self, Failure> {
        const KNOWN: [&str; 4] = ["time_column", "precision", "durability", "tags"];
        let options: Vec<_> = options.into_iter().collect();
        match options.iter().find(|(name, _)| !KNOWN.contains(&name.as_str())) {
            Some((name, _)) => Err(Failure::bad_request(format!("the option {name:?} is not known; {KNOWN:?} are"))),
            None => Ok(Self(options)),
        }
    }

    /// Returns all but `name`.
    pub(crate) fn without(&self, name: &str) -> Self {
        Self(self.0.iter().filter(|(n, _)| n != name).cloned().collect())
    }

    /// Returns the first value of `name` that is not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, v)| n == name && !v.is_empty()).map(|(_, value)| value.as_str())
    }

    /// Returns the whole number of `name`, if there is one; what is none, or none of these, is the client's mistake.
    pub(crate) fn number(&self, name: &str, within: RangeInclusive<u64>) -> Result<Option<u64>, Failure> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let number = text.parse().ok().filter(|number| within.contains(number));
        let expected = || format!("{name}={text} is not valid; expected {} to {}", within.start(), within.end());
        number.map(Some).ok_or_else(|| Failure::bad_request(expected()))
    }
}

/// Returns whether lists are to be in an object.
pub(crate) fn is_python_client(headers: &HeaderMap) -> bool {
    headers.get(header::USER_AGENT).is_some_and(|agent| agent.as_bytes().starts_with(PYTHON_CLIENT))
}

/// Decodes one name or value.
pub(crate) fn decode(text: &str) -> Result<String, Failure> {
    if !text.contains(['%', '+']) {
        return Ok(text.to_owned());
    }
    let invalid = || Failure::bad_request(format!("query string: {text:?} is not percent-encoded UTF-8"));
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16).and_then(|d| u8::try_from(d).ok());
                let (high, low) = (digit(bytes.next()), digit(bytes.next()));
                high.zip(low).map(|(high, low)| high << 4 | low).ok_or_else(invalid)?
            }
            other => other,
        });
    }
    String::from_utf8(out).map_err(|_| invalid())
}

/// Returns a header as UTF-8 (HTTP itself promises no encoding); absent and empty are the same.
pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Failure> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => Ok(Some(text.trim()).filter(|text| !text.is_empty())),
        Err(_) => Err(Failure::bad_request(format!("header {name} is not UTF-8"))),
    }
}

/// Returns the database a request is for: the header `x-arc-database`, else the first of `names` in the query string,
/// else `default`.
pub(crate) fn database<'a>(
    headers: &'a HeaderMap,
    params: &'a Params,
    names: &[&str],
) -> Result<Cow<'a, str>, Failure> {
    let header = header(headers, "x-arc-database")?;
    Ok(header.or_else(|| names.iter().find_map(|name| params.get(name))).unwrap_or("default").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_percent_decoded() {
        for (query, expected) in [
            ("db=a", Some("a")),
            ("x=1&db=a%20b+c", Some("a b c")),
            ("db=%C3%BC", Some("ü")),
            ("db=", None),
            ("db", None),
            ("db=&db=b", Some("b")),
            ("", None),
            ("%64b=a", Some("a")),
            ("db=a=b", Some("a=b")),
        ] {
            assert_eq!(Params::parse(query).unwrap().get("db"), expected, "{query}");
        }
    }

    #[test]
    fn anything_but_utf8_is_refused() {
        for query in ["db=%FF", "db=%", "db=%1", "db=%zz", "%C3=1", "db=%+1"] {
            assert!(Params::parse(query).is_err(), "{query}");
        }
    }

    #[test]
    fn the_header_decides_the_database() {
        let mut headers = HeaderMap::new();
        let params = Params::parse("db=a&bucket=b").unwrap();
        assert_eq!(database(&headers, &params, &["db", "bucket"]).unwrap(), "a");
        assert_eq!(database(&headers, &params, &["bucket", "db"]).unwrap(), "b");
        assert_eq!(database(&headers, &Params::default(), &["db"]).unwrap(), "default");
        headers.insert("x-arc-database", "grün".parse().unwrap());
        assert_eq!(database(&headers, &params, &["db"]).unwrap(), "grün");
        headers.insert("x-arc-database", hyper::header::HeaderValue::from_bytes(b"\xff").unwrap());
        assert!(database(&headers, &params, &["db"]).is_err());
    }
}
