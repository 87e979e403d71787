//! Presets: the configurations of `configs/`, and changes to them.

use anyhow::{Context as _, Result, bail};
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::Entry;

/// A configuration by name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Preset {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// TOML: for the first preset of an experiment the whole configuration, for the others what they change.
    pub(crate) text: &'static str,
}

/// A key of a preset: another preset, whose values it changes.
const BASED_ON: &str = "based_on";
/// A table of a preset: for each value of `data_set`, the values that differ from those for the others.
const BY_DATA_SET: &str = "for";

pub(crate) const PAPER: &str = "As in the paper";
pub(crate) const QUICK: &str = "A small version, in minutes";
pub(crate) const SMOKE: &str = "Does everything run? Seconds; the numbers mean nothing";

/// The presets of an experiment: `paper` is `configs/NAME.toml`, the others are `configs/NAME.PRESET.toml`.
macro_rules! presets {
    ($name:literal $(, $preset:literal: $about:expr)*) => {
        &[
            $crate::experiments::preset::Preset {
                name: "paper",
                about: $crate::experiments::preset::PAPER,
                text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/", $name, ".toml")),
            },
            $($crate::experiments::preset::Preset {
                name: $preset,
                about: $about,
                text: include_str!(concat!(
                    env!("CARGO_MANIFEST_DIR"), "/../../configs/", $name, ".", $preset, ".toml"
                )),
            }),*
        ]
    };
}
pub(crate) use presets;

/// A preset with changes, each a `key=value` in TOML.
pub(crate) fn configured<T: DeserializeOwned>(
    experiment: &Entry,
    preset: &str,
    seeds: Option<u64>,
    changes: &[String],
) -> Result<T> {
    let presets = experiment.presets;
    let Some(preset) = presets.iter().find(|existing| existing.name == preset) else {
        let names: Vec<&str> = presets.iter().map(|preset| preset.name).collect();
        let names = names.join(", ");
        bail!("--preset {preset}: {} has none; choose from {names}", experiment.name);
    };
    let mut table: Table = presets[0].text.parse()?;
    let own: Table = preset.text.parse()?;
    if let Some(base) = own.get(BASED_ON).and_then(Value::as_str) {
        let base = presets.iter().find(|preset| preset.name == base);
        merge(
            &mut table,
            base.with_context(|| format!("{BASED_ON} names no preset"))?.text.parse()?,
        );
    }
    merge(&mut table, own);
    table.remove(BASED_ON);
    let changes = changes.iter().map(|change| parse_change(change)).collect::<Result<Vec<_>>>()?;
    if let Some(Value::Table(mut by_data_set)) = table.remove(BY_DATA_SET) {
        let chosen = changes.iter().rev().chain([&table]).find_map(|table| table.get("data_set"));
        if let Some(Value::Table(values)) =
            chosen.and_then(Value::as_str).and_then(|name| by_data_set.remove(name))
        {
            merge(&mut table, values);
        }
    }
    for change in changes {
        merge(&mut table, change);
    }
    if let Some(seeds) = seeds {
        table.insert("seeds".to_owned(), Value::Integer(seeds.try_into()?));
    }
    // Only the message of the error, which names the key: its line numbers refer to no file.
    Value::Table(table)
        .try_into()
        .map_err(|error: toml::de::Error| anyhow::anyhow!("{}", error.message()))
        .context("the configuration")
}

/// `key=value`; a value that is not TOML is a string, so that it needs no quotes within quotes.
fn parse_change(change: &str) -> Result<Table> {
    let Some((key, value)) = change.split_once('=') else {
        bail!("--set {change}: must be key=value, such as training.epochs=5");
    };
    let (key, value) = (key.trim(), value.trim());
    format!("{key} = {value}")
        .parse()
        .or_else(|_| format!("{key} = {value:?}").parse())
        .map_err(|_| anyhow::anyhow!("--set {change}: {key:?} is not a key"))
}

/// Merges tables; replaces any other value.
fn merge(table: &mut Table, changes: Table) {
    for (key, value) in changes {
        match (table.get_mut(&key), value) {
            // Another kind of network has other keys.
            (Some(Value::Table(old)), Value::Table(new)) if !new.contains_key("kind") => {
                merge(old, new);
            }
            (_, value) => _ = table.insert(key, value),
        }
    }
}
