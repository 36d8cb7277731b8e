//! What a function that takes the place of one of DataFusion's has from it.

/// Has the names, arguments and type of a function be those of `self.inner`.
macro_rules! named_as_theirs {
    () => {
        fn name(&self) -> &str {
            self.inner.name()
        }

        fn aliases(&self) -> &[String] {
            self.inner.aliases()
        }

        fn signature(&self) -> &Signature {
            self.inner.signature()
        }

        fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
            self.inner.return_type(arguments)
        }

        fn documentation(&self) -> Option<&Documentation> {
            self.inner.documentation()
        }
    };
}

/// Has all of a window function be that of `self.0`, but how it is computed and what is its reverse.
macro_rules! window_as_theirs {
    () => {
        fn name(&self) -> &str {
            self.0.name()
        }

        fn aliases(&self) -> &[String] {
            self.0.aliases()
        }

        fn signature(&self) -> &Signature {
            self.0.signature()
        }

        fn expressions(&self, arguments: ExpressionArgs<'_>) -> Vec<Arc<dyn PhysicalExpr>> {
            self.0.expressions(arguments)
        }

        fn simplify(&self) -> Option<WindowFunctionSimplification> {
            self.0.simplify()
        }

        fn field(&self, arguments: WindowUDFFieldArgs<'_>) -> Result<FieldRef> {
            self.0.field(arguments)
        }

        fn sort_options(&self) -> Option<SortOptions> {
            self.0.sort_options()
        }

        fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
            self.0.coerce_types(types)
        }

        fn documentation(&self) -> Option<&Documentation> {
            self.0.documentation()
        }

        fn limit_effect(&self, arguments: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
            self.0.inner().limit_effect(arguments)
        }
    };
}

pub(super) use named_as_theirs;
pub(in crate::query) use window_as_theirs;
