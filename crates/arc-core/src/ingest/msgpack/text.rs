//! Values as text: for tags, which are always text, and for columns that mix numbers with text.

use std::borrow::Cow;

use super::reader::Value;
use crate::arrays::numbers_as_text::push_plain_float;

/// Returns a scalar as text; `Err` says what is wrong with it. Nil is empty.
pub(super) fn text<'a>(value: &Value<'a>) -> Result<Cow<'a, str>, String> {
    match value {
        Value::Nil => Ok(Cow::Borrowed("")),
        Value::Text(bytes) => utf8(bytes).map(Cow::Borrowed),
        Value::Boolean(value) => Ok(Cow::Borrowed(if *value { "true" } else { "false" })),
        Value::Integer(value) => Ok(Cow::Owned(value.to_string())),
        Value::Unsigned(value) => Ok(Cow::Owned(value.to_string())),
        Value::Float(value) => {
            let mut text = Vec::new();
            push_plain_float(*value, &mut text);
            Ok(Cow::Owned(String::from_utf8(text).unwrap_or_default()))
        }
        other => Err(format!("{}, expected a string, number or boolean", other.kind())),
    }
}

/// Checks that text is UTF-8.
pub(super) fn utf8(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|e| format!("a string that is not UTF-8 from its byte {} on", e.valid_up_to()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_have_one_short_text() {
        let cases = [
            (Value::Nil, Some("")),
            (Value::Text(b"a b"), Some("a b")),
            (Value::Boolean(true), Some("true")),
            (Value::Integer(-7), Some("-7")),
            (Value::Unsigned(u64::MAX), Some("18446744073709551615")),
            (Value::Float(1.0), Some("1")),
            (Value::Float(0.1), Some("0.1")),
            (Value::Float(-0.0), Some("-0")),
            (Value::Float(1e300), Some("1e300")),
            (Value::Float(f64::NAN), Some("NaN")),
            (Value::Float(f64::INFINITY), Some("+Inf")),
            (Value::Text(b"\xff"), None),
            (Value::Binary, None),
            (Value::Array(0), None),
        ];
        for (value, expected) in cases {
            assert_eq!(text(&value).ok().as_deref(), expected, "{value:?}");
        }
    }
}
