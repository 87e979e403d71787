//! Sampling with every position computed once.
//!
//! The vertical stack of a row depends on the rows above alone: it is computed for the whole row when the row
//! begins. The horizontal stack then needs, at each position, what its layers had at the position before;
//! and the head is computed where a code is drawn. All products are those of the network's own pass, to the
//! bit (see `product.rs`), and so are the codes.

use rayon::prelude::*;
use shafer::CsrRows;

use super::config::PixelCnnConfig;
use super::cpu::{Images, gate_rows};
use super::draw::{Samples, Sampling, draw};
use super::model::PixelCnn;
use super::product::Packed;
use super::window::{Convolution, Pointwise, Window};
use crate::weights::host;
use crate::{Error, Result};

/// Samples grids of codes from a [`PixelCnn`]: every position is computed once, where a pass over the whole
/// grid for every position computes all of them each time; and the codes are the same.
///
/// ```
/// use shafer::Method;
/// use shafer_nets::pixel_cnn::{PixelCnn, PixelCnnConfig, Sampler, Sampling};
///
/// let config = PixelCnnConfig {
///     codes: 20,
///     classes: 2,
///     latent: [4, 4],
///     layers: 2,
///     width: 8,
///     head_width: 16,
/// };
/// let prior = PixelCnn::untrained(&config, 7)?;
/// let sampler = Sampler::new(&prior);
/// let sampling = Sampling { method: Method::EVIDENTIAL, seed: 3, first_image: 0, mask: None };
/// let samples = sampler.sample(&[0, 0, 1], &sampling)?;
/// assert_eq!(samples.codes.len(), 3 * 16);
/// assert!(samples.kept.iter().all(|&kept| kept < 20));
///
/// // An image does not depend on the others of its batch.
/// let last = sampler.sample(&[1], &Sampling { first_image: 2, ..sampling })?;
/// assert_eq!(last.codes, samples.codes[2 * 16..]);
///
/// let dense = sampler.sample(&[0], &Sampling { method: Method::SOFTMAX, ..sampling })?;
/// assert!(dense.kept.iter().all(|&kept| kept == 20));
/// # Ok::<(), shafer_nets::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sampler {
    config: PixelCnnConfig,
    /// Codes x width.
    embedding: Vec<f32>,
    layers: Vec<Layer>,
    hidden: Packed,
    output: Packed,
}

#[derive(Clone, Debug)]
struct Layer {
    /// Classes x 2 width.
    class_embedding: Vec<f32>,
    vertical: (Packed, Window),
    vertical_to_horizontal: Packed,
    horizontal: (Packed, Window),
    residual: Packed,
}

/// The images that a thread samples side by side at most: beyond these, caches overflow.
const IMAGES_AT_ONCE: usize = 28;

impl Sampler {
    /// Packs the weights of a network.
    pub fn new(prior: &PixelCnn) -> Self {
        let network = prior.network();
        let layers = network.layers().iter().map(|layer| Layer {
            class_embedding: host(layer.class_embedding.val().swap_dims(0, 1)),
            vertical: convolution(&layer.vertical),
            vertical_to_horizontal: pointwise(&layer.vertical_to_horizontal),
            horizontal: convolution(&layer.horizontal),
            residual: pointwise(&layer.residual),
        });
        let [hidden, output] = network.head().map(pointwise);
        Self {
            config: prior.config().clone(),
            embedding: host(network.embedding().swap_dims(0, 1)),
            layers: layers.collect(),
            hidden,
            output,
        }
    }

    /// One image for each class, on the threads of the current `rayon` pool.
    pub fn sample(&self, classes: &[u16], sampling: &Sampling<'_>) -> Result<Samples> {
        self.config.check_classes(classes)?;
        let last =
            u32::try_from(classes.len()).ok().and_then(|n| sampling.first_image.checked_add(n));
        if last.is_none() {
            return Err(Error::data("images", "their numbers must be below 2^32"));
        }
        let share = classes.len().div_ceil(rayon::current_num_threads());
        let size = share.clamp(1, IMAGES_AT_ONCE);
        let batches: Vec<Samples> = classes
            .par_chunks(size)
            .enumerate()
            .map(|(i, classes)| {
                let first_image = sampling.first_image + (i * size) as u32;
                Batch::new(self, classes).sample(&Sampling { first_image, ..*sampling })
            })
            .collect::<Result<_>>()?;
        let mut all = Samples::default();
        for samples in batches {
            all.append(samples);
        }
        Ok(all)
    }
}

fn convolution(layer: &Convolution) -> (Packed, Window) {
    let (weight, bias) = layer.matrix();
    let [inputs, outputs] = weight.dims();
    (Packed::new(&host(weight), inputs, outputs, &host(bias)), layer.window())
}

fn pointwise(layer: &Pointwise) -> Packed {
    let (weight, bias) = layer.matrix();
    let [inputs, outputs] = weight.dims();
    Packed::new(&host(weight), inputs, outputs, &host(bias))
}

/// Images in the making, all at the same position.
struct Batch<'a> {
    sampler: &'a Sampler,
    classes: &'a [u16],
    /// The embedded codes so far: images x rows x columns x width.
    embedded: Vec<f32>,
    /// Of each layer but the last, the vertical stack after it: images x 2 x columns x width, the row above
    /// and the row itself.
    vertical: Vec<Vec<f32>>,
    /// Of each layer, what the row's horizontal stack takes from the vertical one:
    /// images x columns x 2 width.
    seen: Vec<Vec<f32>>,
    /// Of each layer, the horizontal stack after it: images x 2 x width, the position before and the
    /// position itself.
    horizontal: Vec<Vec<f32>>,
    scratch: Scratch,
}

/// Buffers of one operation.
#[derive(Default)]
struct Scratch {
    inputs: Vec<f32>,
    gates: Vec<f32>,
    kept: Vec<f32>,
    gated: Vec<f32>,
    added: Vec<f32>,
    logits: Vec<f32>,
}

impl<'a> Batch<'a> {
    fn new(sampler: &'a Sampler, classes: &'a [u16]) -> Self {
        let PixelCnnConfig { latent: [_, columns], layers, width, .. } = sampler.config;
        let images = classes.len();
        let buffers = |count: usize, size: usize| vec![vec![0.0; size]; count];
        Self {
            sampler,
            classes,
            embedded: vec![0.0; images * sampler.config.positions() * width],
            vertical: buffers(layers - 1, images * 2 * columns * width),
            seen: buffers(layers, images * columns * 2 * width),
            horizontal: buffers(layers, images * 2 * width),
            scratch: Scratch::default(),
        }
    }

    fn sample(mut self, sampling: &Sampling<'_>) -> Result<Samples> {
        let PixelCnnConfig { latent: [rows, columns], codes, width, .. } = self.sampler.config;
        let positions = rows * columns;
        let mut samples = Samples::with_positions(self.classes.len() * positions);
        let mut compressed = CsrRows::new();
        for row in 0..rows {
            self.begin_row(row);
            for column in 0..columns {
                let position = row * columns + column;
                self.compute_position(row, column);
                let logits = &self.scratch.logits;
                draw(sampling, logits, codes, position, &mut compressed, &mut samples)?;
                let grids = self.embedded.chunks_exact_mut(positions * width);
                for (embedded, codes) in grids.zip(samples.codes.chunks_exact(positions)) {
                    let code = usize::from(codes[position]);
                    embedded[position * width..][..width]
                        .copy_from_slice(&self.sampler.embedding[code * width..][..width]);
                }
            }
        }
        Ok(samples)
    }

    /// The vertical stack of a row.
    fn begin_row(&mut self, row: usize) {
        let PixelCnnConfig { latent: [rows, columns], width, .. } = self.sampler.config;
        let Scratch { inputs, gates, kept, .. } = &mut self.scratch;
        let positions = self.classes.len() * columns;
        resize(gates, positions * 2 * width);
        resize(kept, positions * 2 * width);
        for state in &mut self.vertical {
            for image in state.chunks_exact_mut(2 * columns * width) {
                image.copy_within(columns * width.., 0);
            }
        }
        for state in &mut self.horizontal {
            state.fill(0.0);
        }
        for (i, layer) in self.sampler.layers.iter().enumerate() {
            let (weights, window) = &layer.vertical;
            // The grids of the embedding have all rows, those of the layers two: the row is the second.
            let (values, rows, row) =
                if i == 0 { (&self.embedded, rows, row) } else { (&self.vertical[i - 1], 2, 1) };
            let below = Images { values, shape: [rows, columns], channels: width };
            let gather = |p: usize, to: &mut [f32]| {
                let (image, column) = (p / columns, p % columns);
                below.gather(*window, (image * rows + row) * columns + column, to);
            };
            weights.product(inputs, gather, gates);
            let gather = |p: usize, to: &mut [f32]| {
                to.copy_from_slice(&gates[p * 2 * width..][..2 * width]);
            };
            layer.vertical_to_horizontal.product(inputs, gather, &mut self.seen[i]);
            let Some(state) = self.vertical.get_mut(i) else { continue };
            let grids = gates.chunks_exact(columns * 2 * width).zip(self.classes);
            for ((gates, &class), state) in grids.zip(state.chunks_exact_mut(2 * columns * width)) {
                gate_rows(gates, layer.class(class), kept, &mut state[columns * width..]);
            }
        }
    }

    /// The horizontal stack and the logits of a position, from those of the position before.
    fn compute_position(&mut self, row: usize, column: usize) {
        let PixelCnnConfig { latent: [rows, columns], codes, width, head_width, .. } =
            self.sampler.config;
        let Scratch { inputs, gates, kept, gated, added, logits } = &mut self.scratch;
        let images = self.classes.len();
        resize(gates, images * 2 * width);
        resize(gated, images * width);
        resize(added, images * width);
        for state in &mut self.horizontal {
            for image in state.chunks_exact_mut(2 * width) {
                image.copy_within(width.., 0);
            }
        }
        for (i, layer) in self.sampler.layers.iter().enumerate() {
            let (weights, window) = &layer.horizontal;
            // As in `begin_row`: the position is the second of two.
            let (before, state) = self.horizontal.split_at_mut(i);
            let (values, shape, at) = match before.last() {
                None => (&self.embedded, [rows, columns], row * columns + column),
                Some(below) => (below, [1, 2], 1),
            };
            let below = Images { values, shape, channels: width };
            let size = shape[0] * shape[1];
            let gather =
                |image: usize, to: &mut [f32]| below.gather(*window, image * size + at, to);
            weights.product(inputs, gather, gates);
            let rows = gates.chunks_exact_mut(2 * width).zip(gated.chunks_exact_mut(width));
            for (image, ((gates, gated), &class)) in rows.zip(self.classes).enumerate() {
                let seen = &self.seen[i][(image * columns + column) * 2 * width..][..2 * width];
                for (gate, seen) in gates.iter_mut().zip(seen) {
                    *gate += seen;
                }
                gate_rows(gates, layer.class(class), kept, gated);
            }
            let gather =
                |p: usize, to: &mut [f32]| to.copy_from_slice(&gated[p * width..][..width]);
            layer.residual.product(inputs, gather, added);
            let rows = state[0].chunks_exact_mut(2 * width).zip(added.chunks_exact(width));
            for (image, (state, added)) in rows.enumerate() {
                let state = &mut state[width..];
                match before.last() {
                    None => state.copy_from_slice(added),
                    Some(below) => {
                        let below = &below[image * 2 * width + width..][..width];
                        for ((state, added), below) in state.iter_mut().zip(added).zip(below) {
                            *state = added + below;
                        }
                    }
                }
            }
        }
        let last = &self.horizontal[self.horizontal.len() - 1];
        resize(gated, images * head_width);
        let gather = |p: usize, to: &mut [f32]| {
            to.copy_from_slice(&last[p * 2 * width + width..][..width]);
        };
        self.sampler.hidden.product(inputs, gather, gated);
        for x in gated.iter_mut() {
            *x = x.max(0.0);
        }
        resize(logits, images * codes);
        let gather =
            |p: usize, to: &mut [f32]| to.copy_from_slice(&gated[p * head_width..][..head_width]);
        self.sampler.output.product(inputs, gather, logits);
    }
}

impl Layer {
    /// The embedding of a class.
    fn class(&self, class: u16) -> &[f32] {
        let size = self.vertical_to_horizontal.outputs();
        &self.class_embedding[usize::from(class) * size..][..size]
    }
}

/// Of this length; whatever it holds will be overwritten.
fn resize(buffer: &mut Vec<f32>, len: usize) {
    buffer.resize(len, 0.0);
}
