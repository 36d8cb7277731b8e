//! An answer as a Parquet file, sent as it is written.
//!
//! Without its footer, which comes last, nobody takes it for a file.

use std::sync::Arc;

use arrow::{
    array::RecordBatch,
    datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit},
    error::ArrowError,
};
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    errors::ParquetError,
    file::properties::WriterProperties,
};

use super::{
    encode::{Encode, unencodable},
    layout,
};
use crate::errors::Failure;

/// Encoded bytes at which a row group ends: they are in memory until then.
const GROUP_BYTES: usize = 8 << 20;

/// Encodes an answer as Parquet.
pub(super) struct Parquet {
    schema: SchemaRef,
    writer: ArrowWriter<Vec<u8>>,
}

impl Parquet {
    pub(super) fn open(schema: &SchemaRef) -> Result<Self, Failure> {
        layout::check_names(schema)?;
        let schema = with_times(&layout::readable(schema, false));
        let level = ZstdLevel::try_new(1).unwrap_or_default();
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(level)).build();
        let writer = ArrowWriter::try_new(Vec::new(), SchemaRef::clone(&schema), Some(properties));
        let writer = writer.map_err(no_form)?;
        Ok(Self { schema, writer })
    }
}

impl Encode for Parquet {
    fn append(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        let batch = layout::converted(batch, &self.schema).map_err(|error| no_form(error.into()))?;
        self.writer.write(&batch).map_err(failed)?;
        if self.writer.memory_size() >= GROUP_BYTES {
            self.writer.flush().map_err(failed)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<bool, Failure> {
        self.writer.finish().map_err(failed)?;
        Ok(true)
    }

    fn encoded(&mut self) -> &mut Vec<u8> {
        // The writer counts what it has written itself, so that what is here may be taken.
        self.writer.inner_mut()
    }
}

/// Returns the columns as Parquet has them: it has no times in seconds and no days in milliseconds, which would be integers.
fn with_times(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        let known = match field.data_type() {
            DataType::Timestamp(TimeUnit::Second, zone) => DataType::Timestamp(TimeUnit::Millisecond, zone.clone()),
            DataType::Time32(TimeUnit::Second) => DataType::Time32(TimeUnit::Millisecond),
            DataType::Date64 => DataType::Timestamp(TimeUnit::Millisecond, None),
            _ => return Arc::clone(field),
        };
        Arc::new(Field::clone(field).with_data_type(known))
    });
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

fn failed(error: ParquetError) -> Failure {
    match error {
        // Known of some types only when rows come.
        ParquetError::NYI(_) => no_form(error),
        error => unencodable(ArrowError::from(error)),
    }
}

fn no_form(error: ParquetError) -> Failure {
    Failure::bad_request(format!("the answer has no form as Parquet, and others may have one: {error}"))
}

#[cfg(test)]
mod tests {
    use arrow::{
        array::{
            ArrayRef, AsArray, Date64Array, DictionaryArray, Int64Array, Time32SecondArray, TimestampNanosecondArray,
            TimestampSecondArray,
        },
        compute::cast,
        datatypes::{DataType, Int32Type, Int64Type},
    };
    use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};

    use super::*;

    fn batch(start: i64, rows: i64) -> RecordBatch {
        // Numbers that do not compress.
        let numbers = (start..start + rows).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64));
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers));
        let times: ArrayRef =
            Arc::new(TimestampNanosecondArray::from_iter_values(start..start + rows).with_timezone("UTC"));
        let hosts: DictionaryArray<Int32Type> = (0..rows).map(|n| (n % 3 > 0).then_some("a")).collect();
        RecordBatch::try_from_iter([("time", times), ("host", Arc::new(hosts) as ArrayRef), ("n", numbers)]).unwrap()
    }

    #[test]
    fn a_long_file_comes_in_parts_and_is_whole() {
        let mut parquet = Parquet::open(&batch(0, 1).schema()).unwrap();
        let (mut bytes, mut most) = (Vec::new(), 0);
        for start in 0..200 {
            parquet.append(&batch(start * 8_192, 8_192)).unwrap();
            most = most.max(parquet.writer.memory_size());
            bytes.append(parquet.encoded());
        }
        assert!(bytes.len() > 2 << 20 && most < 2 * GROUP_BYTES, "{} {most}", bytes.len());
        // A part of it is not a file.
        assert!(ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes.clone())).is_err());
        parquet.finish().unwrap();
        bytes.append(parquet.encoded());
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap().build().unwrap();
        let mut rows = 0;
        for found in reader {
            let found = found.unwrap();
            assert_eq!(*found.column(1).data_type(), DataType::Utf8);
            let start = i64::try_from(rows).unwrap();
            let expected = batch(start, i64::try_from(found.num_rows()).unwrap());
            assert_eq!(found.column(2).as_primitive::<Int64Type>(), expected.column(2).as_primitive::<Int64Type>());
            assert_eq!(found.column(0), expected.column(0));
            rows += found.num_rows();
        }
        assert_eq!(rows, 200 * 8_192);
    }

    #[test]
    fn no_rows_are_a_file_with_columns() {
        let mut parquet = Parquet::open(&batch(0, 1).schema()).unwrap();
        parquet.finish().unwrap();
        let bytes = bytes::Bytes::from(std::mem::take(parquet.encoded()));
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap();
        assert_eq!(reader.schema().fields().len(), 3);
        assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
    }

    #[test]
    fn times_in_seconds_are_times() {
        let seconds: ArrayRef = Arc::new(TimestampSecondArray::from(vec![Some(1), None, Some(253_402_300_799)]));
        let clock: ArrayRef = Arc::new(Time32SecondArray::from(vec![Some(1), None, Some(86_399)]));
        let days: ArrayRef = Arc::new(Date64Array::from(vec![Some(-86_400_000), None, Some(0)]));
        let batch = RecordBatch::try_from_iter([("t", seconds), ("c", clock), ("d", days)]).unwrap();
        let mut parquet = Parquet::open(&batch.schema()).unwrap();
        parquet.append(&batch).unwrap();
        parquet.finish().unwrap();
        let bytes = bytes::Bytes::from(std::mem::take(parquet.encoded()));
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(bytes, options).unwrap().build().unwrap();
        let found = reader.map(Result::unwrap).next().unwrap();
        for (column, expected) in found.columns().iter().zip(batch.columns()) {
            assert!(!column.data_type().is_integer(), "{}", column.data_type());
            assert_eq!(&cast(column, expected.data_type()).unwrap(), expected);
        }
        let beyond: ArrayRef = Arc::new(TimestampSecondArray::from(vec![i64::MAX]));
        let batch = RecordBatch::try_from_iter([("t", beyond)]).unwrap();
        let failure = Parquet::open(&batch.schema()).unwrap().append(&batch).unwrap_err();
        assert_eq!(failure.status.as_u16(), 400);
    }
}
