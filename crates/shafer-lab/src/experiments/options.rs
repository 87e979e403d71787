//! Options of `shafer reproduce` that belong to one experiment each.

use anyhow::{Result, bail};
use clap::Args;

use super::Entry;
use super::pedestrians::{self, SceneChoice};
use super::vqvae::{self, DataChoice};

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// behaviour: the scene to test on; the networks are trained on the others [default: eth]
    #[arg(long, value_enum, value_name = "SCENE")]
    pub(crate) scene: Option<SceneChoice>,

    /// vqvae: the images [default: miniimagenet]
    #[arg(long, value_enum, value_name = "SET")]
    pub(crate) data: Option<DataChoice>,
}

/// What an option stands for.
pub(crate) struct Meaning {
    /// A change of the preset, as for --set.
    pub(crate) change: String,
    /// Appended to the name of the run's folder.
    pub(crate) suffix: String,
}

impl Options {
    /// What the options mean for an experiment; an error if one is of another experiment.
    pub(crate) fn meanings(&self, experiment: &Entry) -> Result<Vec<Meaning>> {
        let scene = self.scene.map(|scene| ("--scene", &pedestrians::BEHAVIOUR, scene.meaning()));
        let data = self.data.map(|data| ("--data", &vqvae::VQVAE, data.meaning()));
        let meaning = |(option, of, meaning): (&str, &Entry, Meaning)| {
            if of.name != experiment.name {
                bail!("{option} applies to {} only, not to {}", of.name, experiment.name);
            }
            Ok(meaning)
        };
        scene.into_iter().chain(data).map(meaning).collect()
    }
}
