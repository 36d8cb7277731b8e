//! Functions that make a number of a text, as a number also where the text is a tag.
//!
//! Tags are codes in dictionaries, and DataFusion leaves what it makes of them in one: numbers that can neither be computed
//! with nor stored.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::{
    common::Result,
    logical_expr::{
        ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    },
};

use super::theirs::named_as_theirs;

const FUNCTIONS: [&str; 4] = ["ascii", "bit_length", "character_length", "octet_length"];

/// Returns `functions`, of which some return numbers that would return codes of numbers.
pub(super) fn plain(functions: Vec<Arc<ScalarUDF>>) -> Vec<Arc<ScalarUDF>> {
    let wrap = |inner: Arc<ScalarUDF>| match FUNCTIONS.contains(&inner.name()) {
        true => Arc::new(ScalarUDF::from(NumberOfText { inner })),
        false => inner,
    };
    functions.into_iter().map(wrap).collect()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct NumberOfText {
    inner: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for NumberOfText {
    named_as_theirs!();

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = self.inner.return_field_from_args(arguments)?;
        Ok(match field.data_type() {
            DataType::Dictionary(_, number) => Arc::new(Field::clone(&field).with_data_type(DataType::clone(number))),
            _ => field,
        })
    }

    fn invoke_with_args(&self, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let asked = arguments.return_field.data_type().clone();
        let (arg_fields, scalar_arguments) = (&arguments.arg_fields, &[None]);
        arguments.return_field = self.inner.return_field_from_args(ReturnFieldArgs { arg_fields, scalar_arguments })?;
        self.inner.invoke_with_args(arguments)?.cast_to(&asked, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tag_type;
    use datafusion::{execution::SessionStateDefaults, logical_expr::type_coercion::functions::fields_with_udf};

    #[test]
    fn no_function_makes_codes_of_numbers_of_tags() {
        let (mut of_tags, tag) = (0, Arc::new(Field::new("tag", tag_type(), true)));
        for function in super::super::all(SessionStateDefaults::default_scalar_functions(), 1 << 20) {
            for count in 1..=3 {
                let tags = vec![Arc::clone(&tag); count];
                let Ok(arg_fields) = fields_with_udf(&tags, function.as_ref()) else { continue };
                let scalar_arguments = vec![None; count];
                let arguments = ReturnFieldArgs { arg_fields: &arg_fields, scalar_arguments: &scalar_arguments };
                let Ok(returned) = function.return_field_from_args(arguments) else { continue };
                of_tags += 1;
                if let DataType::Dictionary(_, value) = returned.data_type() {
                    assert!(value.is_string(), "{} of {count} tags is {}", function.name(), returned.data_type());
                }
            }
        }
        assert!(of_tags > 50, "{of_tags}");
    }
}
