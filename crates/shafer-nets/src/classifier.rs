//! A classifier that is trained on real images, to judge generated ones, and its training.

use burn::tensor::Tensor;
use burn::tensor::activation::{log_softmax, softmax};
use serde::{Deserialize, Serialize};

use crate::config::{finite_positive, positive, size};
use crate::examples::Examples;
use crate::layers::{Initialiser, Perceptron};
use crate::net::{Net, Parameters};
use crate::training::{Batch, CrossEntropy, Model, Pass, Plan};
use crate::weights::{host, tensor};
use crate::{Error, Result};

/// Configuration of a [`Classifier`] and its training with Adam.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClassifierConfig {
    /// The number of pixels of an image.
    pub pixels: usize,
    /// The number of hidden units.
    pub hidden: usize,
    /// The number of classes: labels are below it.
    pub classes: usize,
    /// The learning rate.
    pub learning_rate: f64,
    /// Examples in a batch; the last batch of an epoch may have fewer.
    pub batch_size: usize,
    /// Passes over all examples.
    pub epochs: usize,
}

impl Default for ClassifierConfig {
    fn default() -> Self {
        Self {
            pixels: 28 * 28,
            hidden: 256,
            classes: 10,
            learning_rate: 1e-3,
            batch_size: 64,
            epochs: 5,
        }
    }
}

impl ClassifierConfig {
    /// Checks all values.
    pub fn check(&self) -> Result<()> {
        size("pixels", self.pixels)?;
        size("hidden", self.hidden)?;
        size("classes", self.classes)?;
        positive("batch_size", self.batch_size)?;
        positive("epochs", self.epochs)?;
        finite_positive("learning_rate", self.learning_rate)
    }
}

/// A perceptron with one hidden layer, from pixels to probabilities of classes.
///
/// ```
/// use shafer_nets::{Classifier, ClassifierConfig, Examples, Trainer, cpu};
///
/// // Bright images are of class 1, dark ones of class 0.
/// let pixels: Vec<u8> = (0..64).flat_map(|i| [if i % 2 == 1 { 200 } else { 40 }; 4]).collect();
/// let labels: Vec<u8> = (0..64).map(|i| i % 2).collect();
/// let examples = Examples::new(&pixels, &labels, 4)?;
/// let config = ClassifierConfig {
///     pixels: 4,
///     hidden: 8,
///     classes: 2,
///     learning_rate: 0.1,
///     batch_size: 16,
///     epochs: 10,
/// };
/// let mut trainer = Trainer::<Classifier>::new(&config, examples, 0, &cpu())?;
/// while trainer.step()?.is_some() {}
/// let classifier = trainer.model();
/// assert_eq!(classifier.accuracy(examples)?, 1.0);
/// assert!(classifier.probabilities(&[0.9; 4])?[1] > 0.9);
/// # Ok::<(), shafer_nets::Error>(())
/// ```
pub type Classifier = Net<Perceptron>;

impl Parameters for Perceptron {
    type Config = ClassifierConfig;

    const NAME: &'static str = "classifier";

    fn check(config: &ClassifierConfig) -> Result<()> {
        config.check()
    }

    fn make(config: &ClassifierConfig, init: &mut Initialiser) -> Self {
        Self::new(init, config.pixels, config.hidden, config.classes)
    }
}

/// Images in a block of an evaluation: memory does not grow with their number.
const CLASSIFIED_AT_ONCE: usize = 512;

impl Classifier {
    /// The probabilities of the classes, `images x classes`, for images with pixels from 0 to 1.
    pub fn probabilities(&self, images: &[f32]) -> Result<Vec<f32>> {
        self.blocks(images, |logits| softmax(logits, 1))
    }

    /// The logits of the classes, as [`probabilities`](Self::probabilities).
    pub fn logits(&self, images: &[f32]) -> Result<Vec<f32>> {
        self.blocks(images, |logits| logits)
    }

    fn blocks(&self, images: &[f32], last: impl Fn(Tensor<2>) -> Tensor<2>) -> Result<Vec<f32>> {
        let pixels = self.config.pixels;
        if !images.len().is_multiple_of(pixels) {
            return Err(Error::data(
                "pixels",
                format!("must be a multiple of {pixels}, but there are {}", images.len()),
            ));
        }
        let blocks = images.chunks(CLASSIFIED_AT_ONCE * pixels);
        Ok(blocks.flat_map(|block| host(last(self.block(block.to_vec())))).collect())
    }

    fn block(&self, images: Vec<f32>) -> Tensor<2> {
        let shape = [images.len() / self.config.pixels, self.config.pixels];
        self.network.forward(tensor(images, shape, &self.device))
    }

    /// The share of these examples whose label is the most probable class.
    pub fn accuracy(&self, examples: Examples<'_>) -> Result<f64> {
        let classes = self.config.classes;
        examples.check(self.config.pixels, classes)?;
        let rows: Vec<u32> = (0..examples.len() as u32).collect();
        let mut right = 0;
        for rows in rows.chunks(CLASSIFIED_AT_ONCE) {
            let probabilities = host(softmax(self.block(examples.units(rows)), 1));
            let judged = rows.iter().zip(probabilities.chunks_exact(classes));
            right += judged
                .filter(|&(&row, p)| p.iter().all(|&other| p[examples.label(row)] >= other))
                .count();
        }
        Ok(right as f64 / examples.len() as f64)
    }
}

impl Model for Classifier {
    type Config = ClassifierConfig;
    type Examples<'a> = Examples<'a>;
    type Losses = CrossEntropy;
    type Network = Perceptron;

    fn shape(config: &ClassifierConfig) -> &ClassifierConfig {
        config
    }

    fn check(config: &ClassifierConfig, examples: &Examples<'_>) -> Result<()> {
        config.check()?;
        examples.check(config.pixels, config.classes)
    }

    fn plan(config: &ClassifierConfig) -> Plan {
        Plan::adam(config.batch_size, config.epochs, config.learning_rate)
    }

    fn pass(
        config: &ClassifierConfig,
        examples: &Examples<'_>,
        network: &Perceptron,
        batch: &Batch<'_>,
    ) -> Result<Pass<Self>> {
        let Batch { rows, device, .. } = *batch;
        let images = tensor(examples.units(rows), [rows.len(), config.pixels], device);
        let labels = examples.one_hot(rows, config.classes);
        let labels = tensor(labels, [rows.len(), config.classes], device);
        let loss = -(log_softmax(network.forward(images), 1) * labels).sum();
        let loss = loss.div_scalar(rows.len() as f64);
        let losses = CrossEntropy::of_mean(host(loss.clone().inner())[0], rows.len());
        Ok(Pass::new(loss, losses))
    }

    fn extended(mut saved: ClassifierConfig, to: &ClassifierConfig) -> ClassifierConfig {
        saved.epochs = to.epochs;
        saved
    }
}
