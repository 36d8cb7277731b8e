use super::{super::Config, *};

#[test]
fn flags_are_keys_with_dashes() {
    for setting in SETTINGS {
        assert_eq!(setting.flag, setting.key.replace('_', "-"));
    }
}

#[test]
fn every_default_reads_back_as_itself() {
    let default = Config::default();
    for setting in SETTINGS {
        let mut config = Config::default();
        (setting.set)(&mut config, &(setting.get)(&default)).unwrap_or_else(|e| panic!("{}: {e}", setting.key));
        assert_eq!(config, default, "{}", setting.key);
    }
}

#[test]
fn every_setting_refuses_nonsense() {
    for setting in
        SETTINGS.iter().filter(|s| !["_dir", "_cert", "_key", "_ca", "_file"].iter().any(|end| s.key.ends_with(end)))
    {
        let result = (setting.set)(&mut Config::default(), "\u{1}nonsense/");
        assert!(result.is_err(), "{}", setting.key);
    }
}
