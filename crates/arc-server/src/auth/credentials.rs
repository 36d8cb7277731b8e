//! Where clients put their token.
//!
//! As `Authorization: Bearer`, `Token` (InfluxDB 2) or `Basic` (the password), bare, in `x-api-key`, or as the password `p` of
//! InfluxDB 1.x in the query string. The first of these that is there is the one that counts.

use std::borrow::Cow;

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use hyper::{HeaderMap, Uri, header};

use crate::http::params::decode;

const API_KEY: &str = "x-api-key";
/// Base64 with or without what fills its end: the Go client of Arrow Flight, and with it ADBC, leaves that out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
/// The parameter that has the password of InfluxDB 1.x.
const PASSWORD: &str = "p";

/// Returns the token that a request has. What cannot be read as one is no token of ours either.
pub(super) fn find<'a>(headers: &'a HeaderMap, uri: &'a Uri) -> Option<Cow<'a, str>> {
    if let Some(value) = headers.get(header::AUTHORIZATION).filter(|value| !value.is_empty()) {
        return Some(value.to_str().map_or("".into(), of_authorization));
    }
    if let Some(value) = headers.get(API_KEY).filter(|value| !value.is_empty()) {
        return Some(value.to_str().unwrap_or_default().into());
    }
    let password = parts(uri).find_map(|part| part.strip_prefix("p=")).filter(|password| !password.is_empty())?;
    Some(decode(password).map_or_else(|_| "".into(), Cow::Owned))
}

/// Returns the text of the token that a request has, wherever it has it.
pub(crate) fn found(headers: &HeaderMap, uri: &Uri) -> Option<String> {
    find(headers, uri).filter(|text| !text.is_empty()).map(Cow::into_owned)
}

/// Returns the token of these headers as the header `Authorization` has it best.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<String> {
    let token = headers.get(header::AUTHORIZATION)?.to_str().map(of_authorization).ok()?;
    Some(format!("Bearer {token}"))
}

fn of_authorization(value: &str) -> Cow<'_, str> {
    let value = value.trim();
    let Some((scheme, rest)) = value.split_once(' ') else { return value.into() };
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case("basic") {
        return of_basic(rest).unwrap_or_default().into();
    }
    if scheme.eq_ignore_ascii_case("bearer") || scheme.eq_ignore_ascii_case("token") {
        rest.into()
    } else {
        value.into()
    }
}

/// Returns the password, or the name where there is no password.
fn of_basic(text: &str) -> Option<String> {
    let pair = String::from_utf8(BASE64.decode(text).ok()?).ok()?;
    let (name, password) = pair.split_once(':')?;
    Some(if password.is_empty() { name } else { password }.to_owned())
}

/// Returns the address without the password, so that no error can repeat it; `None` if it has none.
pub(super) fn without_password(uri: &Uri) -> Option<Uri> {
    let is_password = |part: &&str| part.split('=').next() == Some(PASSWORD);
    parts(uri).find(is_password)?;
    let rest = parts(uri).filter(|part| !is_password(part)).collect::<Vec<_>>().join("&");
    let mut changed = uri.clone().into_parts();
    let path = if rest.is_empty() { uri.path().to_owned() } else { format!("{}?{rest}", uri.path()) };
    changed.path_and_query = Some(path.parse().ok()?);
    Uri::from_parts(changed).ok()
}

fn parts(uri: &Uri) -> impl Iterator<Item = &str> {
    uri.query().unwrap_or_default().split('&')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(headers: &[(&'static str, &str)], address: &str) -> Option<String> {
        let headers: HeaderMap =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        find(&headers, &address.parse().unwrap()).map(Cow::into_owned)
    }

    #[test]
    fn each_client_has_its_own_place() {
        let basic = |pair: &str| format!("Basic {}", BASE64.encode(pair));
        let bare = |pair: &str| basic(pair).trim_end_matches('=').to_owned();
        for (headers, address, expected) in [
            (vec![("authorization", "Bearer t")], "/", Some("t")),
            (vec![("authorization", "bearer  t ")], "/", Some("t")),
            (vec![("authorization", "Token t")], "/", Some("t")),
            (vec![("authorization", "t")], "/", Some("t")),
            (vec![("authorization", "Digest t")], "/", Some("Digest t")),
            (vec![("authorization", &*basic("anyone:t"))], "/", Some("t")),
            (vec![("authorization", &*basic("t:"))], "/", Some("t")),
            (vec![("authorization", &*bare("anyone:t"))], "/", Some("t")),
            (vec![("authorization", &*bare("any:tt"))], "/", Some("tt")),
            (vec![("authorization", "Basic !")], "/", Some("")),
            (vec![("authorization", "Bearer t"), ("x-api-key", "u")], "/?p=v", Some("t")),
            (vec![("x-api-key", "u")], "/?p=v", Some("u")),
            (vec![], "/write?db=a&p=v&u=x", Some("v")),
            (vec![], "/write?p=a%5Fb", Some("a_b")),
            (vec![], "/write?p=%zz", Some("")),
            (vec![], "/write?p=", None),
            (vec![], "/write?pp=v", None),
            (vec![("authorization", ""), ("x-api-key", "")], "/", None),
        ] {
            assert_eq!(found(&headers, address).as_deref(), expected, "{headers:?} {address}");
        }
    }

    #[test]
    fn the_password_does_not_stay_in_the_address() {
        for (address, expected) in [
            ("/write?db=a&p=secret&u=x", Some("/write?db=a&u=x")),
            ("/write?p=secret", Some("/write")),
            ("/write?p", Some("/write")),
            ("http://localhost/query?p=s&q=a%20b", Some("http://localhost/query?q=a%20b")),
            ("/write?db=p", None),
            ("/write", None),
        ] {
            let uri = without_password(&address.parse().unwrap());
            assert_eq!(uri.map(|uri| uri.to_string()).as_deref(), expected, "{address}");
        }
    }
}
