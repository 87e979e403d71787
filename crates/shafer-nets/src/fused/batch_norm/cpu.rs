//! Batch normalisation as loops over rows of channels.
//!
//! Rows are divided into blocks by their number alone, and sums over blocks are taken in order, so that the
//! number of threads changes no result.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Flex, TensorMetadata};
use burn::tensor::{Shape, TensorData};
use fearless_simd::{Level, dispatch};
use rayon::prelude::*;

use super::super::cpu::whole;
use super::{Activation, EPSILON, Normalisation};

type Primitive = FloatTensor<Flex>;

/// Blocks of rows that threads may work on at the same time.
const BLOCKS: usize = 8;

/// Numbers whose mean is taken in single precision before their squares are summed: they stay in the
/// first-level cache between the two.
const CHUNK: usize = 1 << 12;

fn tensor(values: Vec<f32>, shape: Shape) -> Primitive {
    Primitive::from_data(TensorData::new(values, shape))
}

/// The size of a block of whole rows.
fn block(numbers: usize, channels: usize) -> usize {
    (numbers / channels).div_ceil(BLOCKS).max(1) * channels
}

/// The sum of each channel, and of the squares of its distances from its mean.
#[derive(Clone, Debug)]
struct Moments {
    count: f64,
    mean: Vec<f64>,
    squares: Vec<f64>,
}

impl Moments {
    fn new(channels: usize) -> Self {
        Self { count: 0.0, mean: vec![0.0; channels], squares: vec![0.0; channels] }
    }

    /// Those of the union of two samples (Chan, Golub and `LeVeque`, 1979).
    fn merge<'a>(
        &mut self,
        count: f64,
        mean: impl Iterator<Item = f64>,
        squares: impl Iterator<Item = f64>,
    ) where
        Self: 'a,
    {
        let total = self.count + count;
        let rows = self.mean.iter_mut().zip(&mut self.squares).zip(mean.zip(squares));
        for ((mean, squares), (other_mean, other_squares)) in rows {
            let difference = other_mean - *mean;
            *mean += difference * count / total;
            *squares += other_squares + difference * difference * self.count * count / total;
        }
        self.count = total;
    }

    fn of_rows(values: &[f32], channels: usize) -> Self {
        let mut moments = Self::new(channels);
        let (mut mean, mut squares) = (vec![0.0_f32; channels], vec![0.0_f32; channels]);
        for chunk in values.chunks((CHUNK / channels).max(1) * channels) {
            let rows = (chunk.len() / channels) as f64;
            dispatch!(Level::new(), _simd => chunk_moments(chunk, &mut mean, &mut squares));
            let wide = |x: &f32| f64::from(*x);
            moments.merge(rows, mean.iter().map(wide), squares.iter().map(wide));
        }
        moments
    }
}

#[inline(always)]
fn chunk_moments(chunk: &[f32], mean: &mut [f32], squares: &mut [f32]) {
    let channels = mean.len();
    mean.fill(0.0);
    squares.fill(0.0);
    for row in chunk.chunks_exact(channels) {
        for (mean, x) in mean.iter_mut().zip(row) {
            *mean += x;
        }
    }
    let rows = (chunk.len() / channels) as f32;
    for mean in mean.iter_mut() {
        *mean /= rows;
    }
    for row in chunk.chunks_exact(channels) {
        for ((squares, mean), x) in squares.iter_mut().zip(&*mean).zip(row) {
            *squares += (x - mean) * (x - mean);
        }
    }
}

fn statistics(values: &[f32], channels: usize) -> Vec<f32> {
    let blocks: Vec<Moments> = values
        .par_chunks(block(values.len(), channels))
        .map(|values| Moments::of_rows(values, channels))
        .collect();
    let mut all = Moments::new(channels);
    for block in blocks {
        all.merge(block.count, block.mean.into_iter(), block.squares.into_iter());
    }
    let variances = all.squares.iter().map(|squares| (squares / all.count) as f32);
    all.mean.iter().map(|&mean| mean as f32).chain(variances).collect()
}

/// For each channel the factor and the summand that normalising, scaling and shifting amount to, after
/// its mean is subtracted.
struct Affine<'a> {
    mean: &'a [f32],
    /// One over the standard deviation.
    inverse: Vec<f32>,
    factor: Vec<f32>,
    shift: &'a [f32],
}

impl<'a> Affine<'a> {
    fn new(statistics: &'a [f32], scale: &[f32], shift: &'a [f32]) -> Self {
        let (mean, variance) = statistics.split_at(scale.len());
        let inverse: Vec<f32> = variance.iter().map(|v| 1.0 / (v + EPSILON).sqrt()).collect();
        let factor = inverse.iter().zip(scale).map(|(inverse, scale)| inverse * scale).collect();
        Self { mean, inverse, factor, shift }
    }

    #[inline(always)]
    fn apply(&self, values: &[f32], y: &mut [f32], least: f32) {
        let channels = self.mean.len();
        let (mean, factor, shift) = (self.mean, &self.factor[..channels], &self.shift[..channels]);
        for (row, y) in values.chunks_exact(channels).zip(y.chunks_exact_mut(channels)) {
            for c in 0..channels {
                // A comparison rather than `max`, which would drop NaN.
                let value = (row[c] - mean[c]) * factor[c] + shift[c];
                y[c] = if value < least { least } else { value };
            }
        }
    }

    /// Adds the gradients of rows to those of scale and shift.
    #[inline(always)]
    fn sums(&self, gradient: &[f32], values: &[f32], least: f32, sums: &mut [f32]) {
        let channels = self.mean.len();
        let (to_scale, to_shift) = sums.split_at_mut(channels);
        let to_shift = &mut to_shift[..channels];
        let (mean, inverse) = (self.mean, &self.inverse[..channels]);
        let (factor, shift) = (&self.factor[..channels], &self.shift[..channels]);
        for (row, g) in values.chunks_exact(channels).zip(gradient.chunks_exact(channels)) {
            for c in 0..channels {
                let centred = row[c] - mean[c];
                let g = if centred * factor[c] + shift[c] <= least { 0.0 } else { g[c] };
                to_shift[c] += g;
                to_scale[c] += g * centred * inverse[c];
            }
        }
    }

    /// Turns the gradients of rows into those of `x`. `means` are those of the gradients of scale and shift
    /// over the rows.
    #[inline(always)]
    fn backward(&self, gradient: &mut [f32], values: &[f32], least: f32, means: &[f32]) {
        let channels = self.mean.len();
        let (by_scale, by_shift) = means.split_at(channels);
        let by_shift = &by_shift[..channels];
        let (mean, inverse) = (self.mean, &self.inverse[..channels]);
        let (factor, shift) = (&self.factor[..channels], &self.shift[..channels]);
        for (row, gradient) in
            values.chunks_exact(channels).zip(gradient.chunks_exact_mut(channels))
        {
            for c in 0..channels {
                let centred = row[c] - mean[c];
                let below = centred * factor[c] + shift[c] <= least;
                let g = if below { 0.0 } else { gradient[c] };
                gradient[c] = factor[c] * (g - by_shift[c] - centred * inverse[c] * by_scale[c]);
            }
        }
    }
}

/// What results are at least.
fn least(activation: Activation) -> f32 {
    match activation {
        Activation::Identity => f32::NEG_INFINITY,
        Activation::Relu => 0.0,
    }
}

impl Normalisation for Flex {
    fn normalise_batch(
        x: Primitive,
        scale: Primitive,
        shift: Primitive,
        activation: Activation,
    ) -> (Primitive, Primitive) {
        let channels = scale.shape()[0];
        let x = whole(x);
        let statistics = statistics(x.storage(), channels);
        let statistics = tensor(statistics, Shape::new([2, channels]));
        (Self::normalise(x, statistics.clone(), scale, shift, activation), statistics)
    }

    fn normalise(
        x: Primitive,
        statistics: Primitive,
        scale: Primitive,
        shift: Primitive,
        activation: Activation,
    ) -> Primitive {
        let channels = scale.shape()[0];
        let [x, statistics, scale, shift] = [x, statistics, scale, shift].map(whole);
        let values: &[f32] = x.storage();
        let affine = Affine::new(statistics.storage(), scale.storage(), shift.storage());
        let least = least(activation);
        let mut y = vec![0.0; values.len()];
        let size = block(values.len(), channels);
        values.par_chunks(size).zip(y.par_chunks_mut(size)).for_each(|(values, y)| {
            dispatch!(Level::new(), _simd => affine.apply(values, y, least));
        });
        tensor(y, x.shape())
    }

    fn normalise_backward(
        gradient: Primitive,
        x: Primitive,
        statistics: Primitive,
        scale: Primitive,
        shift: Primitive,
        activation: Activation,
    ) -> (Primitive, Primitive, Primitive) {
        let channels = scale.shape()[0];
        let [mut gradient, x, statistics, scale, shift] =
            [gradient, x, statistics, scale, shift].map(whole);
        let values: &[f32] = x.storage();
        let affine = Affine::new(statistics.storage(), scale.storage(), shift.storage());
        let least = least(activation);
        let size = block(values.len(), channels);
        let blocks: Vec<Vec<f64>> = gradient
            .storage::<f32>()
            .par_chunks(size)
            .zip(values.par_chunks(size))
            .map(|(gradient, values)| {
                let mut total = vec![0.0_f64; 2 * channels];
                let mut sums = vec![0.0_f32; 2 * channels];
                let chunk = (CHUNK / channels).max(1) * channels;
                for (gradient, values) in gradient.chunks(chunk).zip(values.chunks(chunk)) {
                    sums.fill(0.0);
                    dispatch!(Level::new(), _simd => {
                        affine.sums(gradient, values, least, &mut sums);
                    });
                    for (total, sum) in total.iter_mut().zip(&sums) {
                        *total += f64::from(*sum);
                    }
                }
                total
            })
            .collect();
        let mut sums = vec![0.0; 2 * channels];
        for block in blocks {
            for (sum, x) in sums.iter_mut().zip(block) {
                *sum += x;
            }
        }
        let rows = (values.len() / channels) as f64;
        let means: Vec<f32> = sums.iter().map(|sum| (sum / rows) as f32).collect();
        let to_x = gradient.storage_mut::<f32>().par_chunks_mut(size);
        to_x.zip(values.par_chunks(size)).for_each(|(gradient, values)| {
            dispatch!(Level::new(), _simd => affine.backward(gradient, values, least, &means));
        });
        let mut sums = sums.iter().map(|&sum| sum as f32);
        let mut next = || tensor(sums.by_ref().take(channels).collect(), Shape::new([channels]));
        let (to_scale, to_shift) = (next(), next());
        (gradient, to_scale, to_shift)
    }
}
