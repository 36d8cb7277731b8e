//! Compression of an answer on its way out, if the client takes it: zstd or gzip.
//!
//! Fast levels: it is done on the query threads, while the client waits. A compressed answer that breaks off lacks its end
//! as well.

use std::io::{self, Write};

use arrow::array::RecordBatch;
use flate2::{Compression, write::GzEncoder};
use hyper::{HeaderMap, header};

use super::encode::{Encode, Encoder};
use crate::{errors::Failure, http::accept};

/// zstd's level; gzip has its fastest.
const ZSTD_LEVEL: i32 = 1;

/// How an answer is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    Identity,
    Gzip,
    Zstd,
}

impl Coding {
    /// Returns what `Accept-Encoding` likes best; of equals zstd, then gzip, then none.
    pub(super) fn accepted(headers: &HeaderMap) -> Self {
        let wishes = accept::wishes(headers, header::ACCEPT_ENCODING);
        let weight = |name: &str| wishes.iter().find(|wish| wish.name == name).map(|wish| wish.weight);
        let any = weight("*").unwrap_or(0);
        let codings = [
            (Self::Gzip, weight("gzip").or(weight("x-gzip")).unwrap_or(any)),
            (Self::Zstd, weight("zstd").unwrap_or(any)),
        ];
        // Only a client that says so likes it plain better.
        let plain = (Self::Identity, weight("identity").filter(|weight| *weight > 0).unwrap_or(1));
        let best = [plain].into_iter().chain(codings).max_by_key(|(_, weight)| *weight);
        best.map_or(Self::Identity, |(coding, _)| coding)
    }

    /// Returns the name in `Content-Encoding`.
    pub(super) const fn name(self) -> Option<&'static str> {
        match self {
            Self::Identity => None,
            Self::Gzip => Some("gzip"),
            Self::Zstd => Some("zstd"),
        }
    }

    /// Returns what encodes like `encoder`, and compresses.
    pub(super) fn around(self, encoder: Encoder) -> Result<Encoder, Failure> {
        let writer = match self {
            Self::Identity => return Ok(encoder),
            Self::Gzip => Writer::Gzip(GzEncoder::new(Vec::new(), Compression::fast())),
            Self::Zstd => {
                let writer = zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL);
                Writer::Zstd(writer.map_err(|error| uncompressed(&error))?)
            }
        };
        Ok(Box::new(Compressed { encoder, writer }))
    }
}

struct Compressed {
    encoder: Encoder,
    writer: Writer,
}

enum Writer {
    Gzip(GzEncoder<Vec<u8>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Gzip(writer) => writer.write_all(bytes),
            Self::Zstd(writer) => writer.write_all(bytes),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Gzip(writer) => writer.try_finish(),
            Self::Zstd(writer) => writer.do_finish(),
        }
    }

    fn out(&mut self) -> &mut Vec<u8> {
        match self {
            Self::Gzip(writer) => writer.get_mut(),
            Self::Zstd(writer) => writer.get_mut(),
        }
    }
}

impl Compressed {
    /// Compresses what is encoded.
    fn squeeze(&mut self) -> Result<(), Failure> {
        let encoded = self.encoder.encoded();
        self.writer.write(encoded).map_err(|error| uncompressed(&error))?;
        encoded.clear();
        Ok(())
    }
}

impl Encode for Compressed {
    fn append(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        self.encoder.append(batch)?;
        self.squeeze()
    }

    fn finish(&mut self) -> Result<bool, Failure> {
        let is_over = self.encoder.finish()?;
        self.squeeze()?;
        if is_over {
            self.writer.finish().map_err(|error| uncompressed(&error))?;
        }
        Ok(is_over)
    }

    fn encoded(&mut self) -> &mut Vec<u8> {
        self.writer.out()
    }
}

fn uncompressed(error: &io::Error) -> Failure {
    tracing::error!(%error, "an answer cannot be compressed");
    Failure::bug()
}

#[cfg(test)]
mod tests {
    use std::{io::Read, sync::Arc};

    use arrow::array::{ArrayRef, Int64Array};

    use super::{super::cells::TimeForm, super::csv::Csv, *};

    #[test]
    fn the_best_of_what_is_accepted_is_taken() {
        for (text, expected) in [
            ("", Coding::Identity),
            ("identity", Coding::Identity),
            ("gzip, deflate", Coding::Gzip),
            ("gzip, deflate, br, zstd", Coding::Zstd),
            ("gzip;q=1.0, zstd;q=0.5", Coding::Gzip),
            ("gzip;q=0, zstd;q=0", Coding::Identity),
            ("identity, gzip;q=0.5", Coding::Identity),
            ("*", Coding::Zstd),
            ("*, zstd;q=0", Coding::Gzip),
            ("br", Coding::Identity),
            ("identity;q=0, gzip", Coding::Gzip),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT_ENCODING, text.parse().unwrap())]);
            assert_eq!(Coding::accepted(&headers), expected, "{text}");
        }
    }

    #[test]
    fn what_is_compressed_comes_out_again() {
        let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..8_192));
        let batch = RecordBatch::try_from_iter([("n", column)]).unwrap();
        let bytes = |coding: Coding| {
            let csv: Encoder = Box::new(Csv::open(&batch.schema(), TimeForm::Zoned));
            let mut encoder = coding.around(csv).unwrap();
            let mut bytes = Vec::new();
            for _ in 0..30 {
                encoder.append(&batch).unwrap();
                bytes.append(encoder.encoded());
            }
            assert!(encoder.finish().unwrap());
            bytes.append(encoder.encoded());
            bytes
        };
        let plain = bytes(Coding::Identity);
        let mut unzipped = Vec::new();
        flate2::read::GzDecoder::new(bytes(Coding::Gzip).as_slice()).read_to_end(&mut unzipped).unwrap();
        assert!(unzipped == plain);
        let zstd = bytes(Coding::Zstd);
        assert!(zstd.len() < plain.len() / 2 && zstd::stream::decode_all(zstd.as_slice()).unwrap() == plain);
    }
}
