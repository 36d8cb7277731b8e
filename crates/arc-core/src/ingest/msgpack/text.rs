//! Values as text: for tags, which are always text, and for columns that mix numbers with text.

use std::borrow::Cow;

use super::reader::MsgpackValue;
use crate::arrays::numbers_as_text::push_plain_float;

/// Returns a scalar as text; `Err` says what is wrong with it. Nil is empty.
pub(super) fn text<'a>(value: &MsgpackValue<'a>) -> Result<Cow<'a, str>, String> {
    match value {
        MsgpackValue::Nil => Ok(Cow::Borrowed("")),
        MsgpackValue::Text(bytes) => utf8(bytes).map(Cow::Borrowed),
        MsgpackValue::Boolean(value) => Ok(Cow::Borrowed(if *value { "true" } else { "false" })),
        MsgpackValue::Integer(value) => Ok(Cow::Owned(value.to_string())),
        MsgpackValue::Unsigned(value) => Ok(Cow::Owned(value.to_string())),
        MsgpackValue::Float(value) => {
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
            (MsgpackValue::Nil, Some("")),
            (MsgpackValue::Text(b"a b"), Some("a b")),
            (MsgpackValue::Boolean(true), Some("true")),
            (MsgpackValue::Integer(-7), Some("-7")),
            (MsgpackValue::Unsigned(u64::MAX), Some("18446744073709551615")),
            (MsgpackValue::Float(1.0), Some("1")),
            (MsgpackValue::Float(0.1), Some("0.1")),
            (MsgpackValue::Float(-0.0), Some("-0")),
            (MsgpackValue::Float(1e300), Some("1e300")),
            (MsgpackValue::Float(f64::NAN), Some("NaN")),
            (MsgpackValue::Float(f64::INFINITY), Some("+Inf")),
            (MsgpackValue::Text(b"\xff"), None),
            (MsgpackValue::Binary, None),
            (MsgpackValue::Array(0), None),
        ];
        for (value, expected) in cases {
            assert_eq!(text(&value).ok().as_deref(), expected, "{value:?}");
        }
    }
}
