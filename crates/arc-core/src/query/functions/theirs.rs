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

pub(super) use named_as_theirs;
