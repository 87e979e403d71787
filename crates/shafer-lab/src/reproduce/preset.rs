//! The experiments there are, how much of one is wanted, and changes to that.

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

/// The paper's experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Experiment {
    /// Digits: even or odd
    Mnist,
    /// Clothing: tops, or bottoms and accessories
    Fashion,
    /// Letters: with a bar or without
    Notmnist,
    /// Pedestrians: where they go
    Behaviour,
}

/// How much of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// As the paper has it
    Paper,
    /// Enough to see what it is about
    Quick,
    /// Whether everything runs
    Smoke,
    /// fashion: a training without posterior collapse, all seeds
    Stable,
}

impl Experiment {
    /// As the command line calls it.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The presets there are, each with what it changes of the paper's, which is the first.
    pub(crate) fn presets(self) -> &'static [(Preset, &'static str)] {
        macro_rules! presets {
            ($name:literal $(, $preset:ident: $file:literal)*) => {
                &[
                    (Preset::Paper, text!($name, ".toml")),
                    (Preset::Quick, text!($name, ".quick.toml")),
                    (Preset::Smoke, text!($name, ".smoke.toml")),
                    $((Preset::$preset, text!($name, $file))),*
                ]
            };
        }
        macro_rules! text {
            ($($part:literal),*) => {
                include_str!(concat!("../../../../configs/", $($part),*))
            };
        }
        match self {
            Self::Mnist => presets!("mnist"),
            Self::Fashion => presets!("fashion", Stable: ".stable.toml"),
            Self::Notmnist => presets!("notmnist"),
            Self::Behaviour => presets!("behaviour"),
        }
    }

    /// The paper's configuration, and what a preset changes of it.
    fn texts(self, preset: Preset) -> Result<[&'static str; 2]> {
        let presets = self.presets();
        let Some(&(_, changes)) = presets.iter().find(|&&(existing, _)| existing == preset) else {
            let names: Vec<String> = presets.iter().map(|(preset, _)| preset.name()).collect();
            let (wanted, experiment) = (preset.name(), self.name());
            bail!("--preset {wanted}: {experiment} has none; choose from {}", names.join(", "));
        };
        Ok([presets[0].1, changes])
    }
}

impl Preset {
    /// As the command line calls it.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// A preset with changes, each a `key=value` as TOML has it.
pub(crate) fn configured<T: DeserializeOwned>(
    experiment: Experiment,
    preset: Preset,
    seeds: Option<u64>,
    changes: &[String],
) -> Result<T> {
    let mut table = Table::new();
    for text in experiment.texts(preset)? {
        merge(&mut table, text.parse()?);
    }
    for change in changes {
        merge(&mut table, parse_change(change)?);
    }
    if let Some(seeds) = seeds {
        table.insert("seeds".to_owned(), Value::Integer(seeds.try_into()?));
    }
    // The error of a deserialiser names the key; the text it points to would be of no file.
    Value::Table(table)
        .try_into()
        .map_err(|error: toml::de::Error| anyhow::anyhow!("{}", error.message()))
        .context("the configuration")
}

/// `key=value`; a value that is no TOML is a string, so that nobody has to quote quotes.
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

/// Tables are merged, and anything else is replaced.
fn merge(table: &mut Table, changes: Table) {
    for (key, value) in changes {
        match (table.get_mut(&key), value) {
            // One kind of network has other keys than another.
            (Some(Value::Table(old)), Value::Table(new)) if !new.contains_key("kind") => {
                merge(old, new);
            }
            (_, value) => _ = table.insert(key, value),
        }
    }
}
