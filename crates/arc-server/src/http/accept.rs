//! What a client would like to be sent: lists of names with weights, as in `Accept` and `Accept-Encoding`.
//!
//! Lists: RFC 9110, section 12.4. Never decides what is sent.

use hyper::{HeaderMap, header::HeaderName};

/// One name of a list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    /// In lower case, without parameters.
    pub(crate) name: String,
    /// In thousandths; 0 means that it is not wanted.
    pub(crate) weight: u16,
}

/// Returns the names in the headers `name`, in their order; what is no list has none.
pub(crate) fn wishes(headers: &HeaderMap, name: HeaderName) -> Vec<Wish> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).filter_map(wish).collect()
}

fn wish(text: &str) -> Option<Wish> {
    let mut parts = text.split(';');
    let name = parts.next()?.trim().to_ascii_lowercase();
    let weight = parts.find_map(|part| {
        let (key, value) = part.split_once('=')?;
        key.trim().eq_ignore_ascii_case("q").then(|| value.trim())
    });
    (!name.is_empty()).then(|| Wish { name, weight: weight.map_or(1_000, thousandths) })
}

/// Reads `1`, `0.5`, `0.125`; anything else is a wish of full weight.
fn thousandths(text: &str) -> u16 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = fraction.bytes().chain([b'0'; 3]).take(3);
    let is_number = whole.len() == 1 && fraction.len() <= 3 && fraction.bytes().all(|byte| byte.is_ascii_digit());
    match whole {
        "0" if is_number => digits.fold(0, |sum, digit| 10 * sum + u16::from(digit - b'0')),
        _ => 1_000,
    }
}

#[cfg(test)]
mod tests {
    use hyper::header;

    use super::*;

    #[test]
    fn lists_are_read_with_their_weights() {
        for (text, expected) in [
            ("", vec![]),
            ("gzip", vec![("gzip", 1_000)]),
            ("gzip, deflate;q=0.5 , br;q=0", vec![("gzip", 1_000), ("deflate", 500), ("br", 0)]),
            ("Text/CSV; charset=utf-8; q=0.125", vec![("text/csv", 125)]),
            ("a;q=1.000,b;q=0.0,c;q=x,d;q=", vec![("a", 1_000), ("b", 0), ("c", 1_000), ("d", 1_000)]),
            (",;q=1,*", vec![("*", 1_000)]),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT, text.parse().unwrap())]);
            let found = wishes(&headers, header::ACCEPT);
            let found: Vec<_> = found.iter().map(|wish| (wish.name.as_str(), wish.weight)).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn several_headers_are_one_list() {
        let mut headers = HeaderMap::new();
        headers.append(header::ACCEPT, "a".parse().unwrap());
        headers.append(header::ACCEPT, "b;q=0.1".parse().unwrap());
        assert_eq!(wishes(&headers, header::ACCEPT).len(), 2);
    }
}
