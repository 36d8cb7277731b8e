//! `docs/configuration.md`: all settings, made from the table that the server reads them by.

use super::{Config, flags::GROUPS, settings::find};

const HEAD: &str = "\
# Configuration

Every setting of `arc-server serve`. A flag beats its environment variable, which beats the file named by `--config` (or `ARC_CONFIG`), which beats
the default. Unknown keys of the file are errors, and so are `ARC_` variables that are called much like one below;
others are a warning, but those that Kubernetes has beside a service `arc`. `arc-server config` prints what is in force, and where each value is from.

Sizes are bytes, or numbers with `KiB`, `MiB`, `GiB`; times are numbers with `ms`, `s`, `m`, `h`, `d`. The file is TOML with the keys below:

```toml
http = \"0.0.0.0:8000\"
flush_after = \"5s\"
```

This page is made by `arc-server config --markdown`.
";

/// Returns the page.
pub(crate) fn reference() -> String {
    let default = Config::default();
    let groups = GROUPS.iter().map(|(group, keys)| {
        let rows = keys.iter().filter_map(|key| {
            let setting = find(key)?;
            let flag = setting.flag;
            // The one that goes by the machine.
            let shown = if *key == "memory" { "half of what there is".to_owned() } else { (setting.get)(&default) };
            let flag = if setting.value.is_empty() { format!("--{flag}") } else { format!("--{flag} {}", setting.value) };
            let shown = if shown.is_empty() { String::new() } else { format!("`{shown}`") };
            let (variable, help) = (setting.variable(), setting.help.replace('|', "\\|"));
            Some(format!("| `{key}` | `{flag}` | `{variable}` | {shown} | {help} |\n"))
        });
        let rows: String = rows.collect();
        format!("\n## {group}\n\n| Key | Flag | Variable | Default | What it does |\n| --- | --- | --- | --- | --- |\n{rows}")
    });
    format!("{HEAD}{}", groups.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_what_the_settings_are() {
        let page = std::fs::read_to_string("../../docs/configuration.md").unwrap();
        assert!(page == reference(), "make it anew: arc-server config --markdown > docs/configuration.md");
    }
}
