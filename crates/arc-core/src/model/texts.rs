//! Enums whose values have a text each: that of settings, files and the wire.

/// Gives an enum the texts of its values: `Display`, `FromStr` and serde's traits.
///
/// Whatever is no such text is refused with `$reason` and all texts.
macro_rules! texts {
    ($Enum:ident, $reason:literal, $expected:literal, [$($Value:ident = $text:literal),+ $(,)?]) => {
        impl std::fmt::Display for $Enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self {
                    $(Self::$Value => $text),+
                })
            }
        }

        impl std::str::FromStr for $Enum {
            type Err = String;

            fn from_str(s: &str) -> Result<Self, String> {
                match s {
                    $($text => Ok(Self::$Value),)+
                    _ => Err(format!(concat!("{:?} is ", $reason, "; expected ", $expected), s)),
                }
            }
        }

        impl serde::Serialize for $Enum {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $Enum {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'_, str>::deserialize(from)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

pub(crate) use texts;
