//! An object store named by a URL: S3, and what speaks its protocol.
//!
//! Owns what a URL means and how the client of `object_store` is set up. Credentials come from the
//! environment (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL` and
//! so on), or from the machine's role; they are never part of a URL, an error or a log line.
//! Without the feature `object-store-aws` every URL is refused.

use super::ObjectStorage;
use crate::{Error, Result};

/// What a URL says.
#[derive(Debug, PartialEq, Eq)]
struct Location<'a> {
    bucket: &'a str,
    prefix: &'a str,
}

impl ObjectStorage {
    /// Returns the location that a URL such as `s3://bucket/prefix` names.
    ///
    /// `endpoint` is the URL of a server other than that of AWS.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] for a URL that names no bucket of S3, for settings in the
    /// environment that make no sense, and for any URL in a build without the feature
    /// `object-store-aws`.
    pub fn from_url(url: &str, endpoint: Option<&str>) -> Result<Self> {
        let location = parse(url).ok_or_else(|| refused(format!("{url:?} is not like s3://bucket/prefix")))?;
        open(&location, endpoint)
    }
}

fn refused(reason: String) -> Error {
    Error::InvalidOption { option: "object_store_url", reason }
}

fn parse(url: &str) -> Option<Location<'_>> {
    let (bucket, prefix) = url.strip_prefix("s3://").map(|rest| rest.split_once('/').unwrap_or((rest, "")))?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let prefix = prefix.trim_end_matches('/');
    (!bucket.is_empty() && bucket.chars().all(is_name)).then_some(Location { bucket, prefix })
}

#[cfg(not(feature = "object-store-aws"))]
fn open(_: &Location<'_>, _: Option<&str>) -> Result<ObjectStorage> {
    Err(refused("this build has no client for S3; build it with the feature object-store-aws".to_owned()))
}

#[cfg(feature = "object-store-aws")]
fn open(location: &Location<'_>, endpoint: Option<&str>) -> Result<ObjectStorage> {
    use std::{sync::Arc, time::Duration};

    use object_store::{ClientOptions, RetryConfig, aws::AmazonS3Builder};

    // Requests are tried again by those who know what an unclear answer means; the client tries
    // once more, for connections that were closed while they were idle.
    let retry = RetryConfig { max_retries: 1, retry_timeout: Duration::from_secs(20), ..RetryConfig::default() };
    let client =
        ClientOptions::new().with_timeout(Duration::from_secs(25)).with_connect_timeout(Duration::from_secs(5));
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(location.bucket).with_retry(retry);
    let from_environment = || {
        ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"]
            .into_iter()
            .find_map(|name| std::env::var(name).ok())
    };
    // A server without TLS was chosen by the caller that wrote `http`.
    let is_plain = endpoint.map(str::to_owned).or_else(from_environment).is_some_and(|url| url.starts_with("http://"));
    builder = builder.with_client_options(client.with_allow_http(is_plain));
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    let store = builder.build().map_err(|e| refused(e.to_string()))?;
    let identity = format!("{} {}", endpoint.unwrap_or_default(), location.bucket);
    Ok(ObjectStorage::new(Arc::new(store), location.prefix).identity(identity))
}

/// Returns the bucket `arc` of the server that `ARC_S3_ENDPOINT` names; `scripts/s3` starts one.
#[cfg(test)]
#[cfg(feature = "object-store-aws")]
pub(crate) fn test_bucket() -> std::sync::Arc<dyn object_store::ObjectStore> {
    let endpoint = std::env::var("ARC_S3_ENDPOINT").expect("ARC_S3_ENDPOINT is the URL of an S3 server");
    let builder = object_store::aws::AmazonS3Builder::new().with_endpoint(endpoint).with_allow_http(true);
    let builder = builder.with_region("us-east-1").with_bucket_name("arc");
    std::sync::Arc::new(builder.with_access_key_id("arc").with_secret_access_key("arc").build().unwrap())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_a_bucket_and_a_prefix() {
        let cases = [
            ("s3://bucket", Some(("bucket", ""))),
            ("s3://bucket/", Some(("bucket", ""))),
            ("s3://my-bucket.x/a/b/", Some(("my-bucket.x", "a/b"))),
            ("s3://", None),
            ("s3:///a", None),
            ("s3://key:secret@bucket/a", None),
            ("gs://bucket/a", None),
            ("bucket/a", None),
            ("", None),
        ];
        for (url, expected) in cases {
            assert_eq!(parse(url), expected.map(|(bucket, prefix)| Location { bucket, prefix }), "{url}");
        }
        let error = ObjectStorage::from_url("file:///x", None).unwrap_err().to_string();
        assert_eq!(error, "option object_store_url is not valid: \"file:///x\" is not like s3://bucket/prefix");
    }

    #[cfg(not(feature = "object-store-aws"))]
    #[test]
    fn a_build_without_s3_says_so() {
        let error = ObjectStorage::from_url("s3://bucket/a", None).unwrap_err().to_string();
        assert!(
            error.ends_with("this build has no client for S3; build it with the feature object-store-aws"),
            "{error}"
        );
    }

    #[cfg(feature = "object-store-aws")]
    #[test]
    fn secrets_are_not_shown() {
        let storage = ObjectStorage::from_url("s3://bucket/a", Some("http://127.0.0.1:1")).unwrap();
        let shown = format!("{storage:?}");
        assert_eq!(shown, "ObjectStorage { store: \"AmazonS3(bucket)\", prefix: \"a\", .. }");
    }
}
