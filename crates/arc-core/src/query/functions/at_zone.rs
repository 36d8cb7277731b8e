//! The time at which the clock of a zone shows something: `AT TIME ZONE` of a time without a zone.
//!
//! Not a function that statements can call. As a cast, which it is to DataFusion, it is taken off one side of a comparison by
//! giving the other another zone and leaving its number, as if it were the same time (apache/datafusion#25095).

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::{
    common::{Result, exec_err},
    logical_expr::{
        ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
    },
};

const NAME: &str = "at_zone";

static FUNCTION: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::from(AtZone { signature: Signature::any(2, Volatility::Immutable) })));

#[derive(Debug, PartialEq, Eq, Hash)]
struct AtZone {
    signature: Signature,
}

#[cfg(feature = "distributed")]
pub(super) fn function() -> Arc<ScalarUDF> {
    Arc::clone(&FUNCTION)
}

/// Returns the times at which the clock of `zone` shows `shown`.
pub(in crate::query) fn at_zone(shown: Expr, zone: &str) -> Expr {
    FUNCTION.call(vec![shown, lit(zone)])
}

impl ScalarUDFImpl for AtZone {
    fn name(&self) -> &'static str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        exec_err!("the type of {NAME} depends on the zone")
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let zone = arguments.scalar_arguments.get(1).copied().flatten().and_then(|zone| zone.try_as_str().flatten());
        match (arguments.arg_fields.first().map(|field| field.data_type()), zone) {
            (Some(DataType::Timestamp(unit, None)), Some(zone)) => {
                Ok(Arc::new(Field::new(NAME, DataType::Timestamp(*unit, Some(zone.into())), true)))
            }
            _ => exec_err!("{NAME} takes a time without a zone and a constant zone"),
        }
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match arguments.args.first() {
            Some(shown) => shown.cast_to(arguments.return_field.data_type(), None),
            None => exec_err!("{NAME} takes a time and a zone"),
        }
    }
}
