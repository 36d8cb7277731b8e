//! What a setting is: its names, its help, and how it gets into [`Config`] and out.

use super::Config;

/// One setting. Its variable is `ARC_` and the key in capitals.
pub(super) struct Setting {
    /// Name in the configuration file.
    pub(super) key: &'static str,
    /// Name on the command line, without the dashes in front: the key with dashes.
    pub(super) flag: &'static str,
    /// What stands for the value in the help; empty for a switch.
    pub(super) value: &'static str,
    /// One sentence for the help.
    pub(super) help: &'static str,
    /// Stores a value, or says what was expected.
    pub(super) set: fn(&mut Config, &str) -> Result<(), String>,
    /// Returns the value as `set` reads it.
    pub(super) get: fn(&Config) -> String,
}

impl Setting {
    /// Returns the environment variable: `ARC_DATA_DIR`.
    pub(super) fn variable(&self) -> String {
        format!("ARC_{}", self.key.to_ascii_uppercase())
    }
}

/// Makes a `Setting` out of a field in [`Config`], how to read a value, and how to print it.
macro_rules! setting {
    ($key:literal, $flag:literal, $value:literal, $($field:ident).+, $read:expr, $show:expr, $help:literal) => {
        Setting {
            key: $key,
            flag: $flag,
            value: $value,
            help: $help,
            set: |config, text| {
                config.$($field).+ = $read(text)?;
                Ok(())
            },
            get: |config| $show(config.$($field).+.clone()),
        }
    };
}

pub(super) use setting;
