//! The operator `||` of texts as a function, so that it can be held to a limit.
//!
//! Unlike those of `concat`, its answer is null where an argument is.

use std::sync::Arc;

use arrow::{
    array::RecordBatch,
    datatypes::{DataType, Field, FieldRef, Schema},
};
use datafusion::{
    common::{Result, ScalarValue, internal_err},
    logical_expr::{
        ColumnarValue, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
        type_coercion::binary::BinaryTypeCoercer,
    },
    physical_expr::{
        PhysicalExpr,
        expressions::{BinaryExpr, Column},
    },
};

/// See the module.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ConcatOperator {
    signature: Signature,
}

impl ConcatOperator {
    pub(super) const NAME: &'static str = "||";

    pub(super) fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

fn types(arguments: &[DataType]) -> Result<BinaryTypeCoercer<'_>> {
    match arguments {
        [left, right] => Ok(BinaryTypeCoercer::new(left, &Operator::StringConcat, right)),
        _ => internal_err!("|| has two sides"),
    }
}

impl ScalarUDFImpl for ConcatOperator {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        let names = arguments.iter().map(|argument| argument.schema_name().to_string());
        Ok(names.collect::<Vec<_>>().join(" || "))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        // A tag is a text beside anything.
        let values = arguments.iter().map(|argument| match argument {
            DataType::Dictionary(_, value) => DataType::clone(value),
            other => other.clone(),
        });
        let arguments = &*values.collect::<Vec<_>>();
        let (left, right) = types(arguments)?.get_input_types()?;
        Ok(vec![left, right])
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        types(arguments)?.get_result_type()
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let of = arguments.arg_fields.iter().map(|field| field.data_type().clone()).collect::<Vec<_>>();
        let is_nullable = arguments.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(Self::NAME, self.return_type(&of)?, is_nullable)))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant = arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { arguments.number_rows };
        let sides = arguments.args.iter().map(|argument| argument.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let fields = sides.iter().map(|side| Field::new("", side.data_type().clone(), true)).collect::<Vec<_>>();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), sides)?;
        let side = |index| Arc::new(Column::new("", index)) as Arc<dyn PhysicalExpr>;
        let joined = BinaryExpr::new(side(0), Operator::StringConcat, side(1)).evaluate(&batch)?;
        if !is_constant {
            return Ok(joined);
        }
        Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&joined.into_array(1)?, 0)?))
    }
}
