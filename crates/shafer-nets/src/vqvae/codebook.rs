//! The codebook of a VQ-VAE: the nearest code of each encoding, and how codes are learned.

use burn::module::{Module, Param};
use burn::tensor::{IndexingUpdateOp, Int, Tensor, TensorData};

use super::config::{Codebook as Kind, NetworkConfig};
use crate::batch_norm::Updates;
use crate::random::Random;
use crate::training::Initialiser;
use crate::weights::{host, tensor};

/// Added to the counts of a live codebook before they divide (Laplace smoothing).
const SMOOTHING: f32 = 1e-5;

/// The vectors of the codes.
#[derive(Module, Debug)]
pub(crate) struct Codebook {
    /// Width x codes: one column a code. Files have it transposed, as PyTorch's embeddings.
    embedding: Param<Tensor<2>>,
    averages: Option<Averages>,
}

/// The moving averages of a live codebook. Before the first batch they are 0.
#[derive(Module, Debug)]
struct Averages {
    /// Encodings for which a code was the nearest, in a batch.
    counts: Param<Tensor<1>>,
    /// The sums of these encodings, as columns.
    sums: Param<Tensor<2>>,
}

/// Encodings and their nearest codes.
#[derive(Debug)]
pub(crate) struct Quantised {
    /// The number of the nearest code of each encoding.
    pub(crate) codes: Vec<u32>,
    /// The vectors of these codes, rows x width. A gradient flows to a plain codebook.
    pub(crate) vectors: Tensor<2>,
}

impl Codebook {
    pub(crate) fn new(init: &mut Initialiser, config: &NetworkConfig) -> Self {
        let shape = [config.width, config.codes];
        let embedding = init.within(shape, 1.0 / config.codes as f32);
        match config.codebook {
            Kind::Plain => Self { embedding, averages: None },
            Kind::Live { .. } => Self {
                embedding: embedding.set_require_grad(false),
                averages: Some(Averages {
                    counts: init.state(0.0, [config.codes]),
                    sums: init.state(0.0, shape),
                }),
            },
        }
    }

    /// The vectors of the codes, codes x width.
    pub(crate) fn vectors(&self) -> Tensor<2> {
        self.embedding.val().transpose()
    }

    /// The nearest code of each row, the first of several.
    pub(crate) fn quantise(&self, encodings: Tensor<2>) -> Quantised {
        let codes = nearest(encodings, self.embedding.val().inner());
        self.look_up(codes)
    }

    /// The vectors of these codes.
    pub(crate) fn look_up(&self, codes: Vec<u32>) -> Quantised {
        let vectors = self.vectors();
        let indices = indices(&codes, &vectors);
        Quantised { vectors: vectors.select(0, indices), codes }
    }

    /// [`quantise`](Self::quantise) in training. A live codebook starts from the first encodings that it
    /// sees, and its new averages go into `updates`. `random` chooses encodings that become codes.
    pub(crate) fn learn(
        &self,
        encodings: Tensor<2>,
        kind: Kind,
        mut random: Random,
        updates: &mut Updates,
    ) -> Quantised {
        let (Kind::Live { decay, revive_below }, Some(averages)) = (kind, &self.averages) else {
            return self.quantise(encodings);
        };
        let encodings = encodings.inner();
        let [rows, width] = encodings.dims();
        let device = encodings.device();
        let mut counts = host(averages.counts.val().inner());
        // One row a code, so that a code's numbers are side by side.
        let by_code = |table: &Param<Tensor<2>>| host(table.val().inner().transpose());
        let mut vectors = by_code(&self.embedding);
        let mut sums = by_code(&averages.sums);
        let codes = counts.len();
        let mean_count = rows as f32 / codes as f32;
        let become_codes = |chosen: &[u32]| {
            let chosen = indices(chosen, &encodings);
            host(encodings.clone().select(0, chosen))
        };
        if counts.iter().all(|&count| count == 0.0) {
            // Different encodings, as far as there are enough.
            let order = random.permutation(rows as u32);
            let chosen: Vec<u32> = order.into_iter().cycle().take(codes).collect();
            vectors = become_codes(&chosen);
            counts.fill(mean_count);
            sums = vectors.iter().map(|x| x * mean_count).collect();
        }
        let table = || tensor(vectors.clone(), [codes, width], &device);
        let nearest = nearest(encodings.clone(), table().transpose());
        let chosen = indices(&nearest, &encodings);
        let quantised = table().select(0, chosen.clone());
        let zeros = Tensor::<2>::zeros([codes, width], &device);
        let seen = zeros.select_assign(0, chosen, encodings.clone(), IndexingUpdateOp::Add);

        for count in &mut counts {
            *count *= decay;
        }
        for &code in &nearest {
            counts[code as usize] += 1.0 - decay;
        }
        for (sum, seen) in sums.iter_mut().zip(host(seen)) {
            *sum = decay * *sum + (1.0 - decay) * seen;
        }
        let dead: Vec<usize> =
            (0..codes).filter(|&code| counts[code] < revive_below * mean_count).collect();
        let replacements: Vec<u32> = dead.iter().map(|_| random.below(rows as u32)).collect();
        if !dead.is_empty() {
            let replacements = become_codes(&replacements);
            for (&code, vector) in dead.iter().zip(replacements.chunks_exact(width)) {
                counts[code] = mean_count;
                let sum = &mut sums[code * width..][..width];
                for (sum, x) in sum.iter_mut().zip(vector) {
                    *sum = x * mean_count;
                }
            }
        }
        let total: f32 = counts.iter().sum();
        let smoothed = total / (total + codes as f32 * SMOOTHING);
        let rows = vectors.chunks_exact_mut(width).zip(sums.chunks_exact(width)).zip(&counts);
        for ((vector, sum), count) in rows {
            let count = (count + SMOOTHING) * smoothed;
            for (x, sum) in vector.iter_mut().zip(sum) {
                *x = sum / count;
            }
        }
        let by_column = |values| tensor(values, [codes, width], &device).transpose();
        updates.set(&self.embedding, by_column(vectors));
        updates.set(&averages.sums, by_column(sums));
        updates.set(&averages.counts, tensor(counts, [codes], &device));
        Quantised { codes: nearest, vectors: quantised }
    }
}

/// Encodings that are compared with the codebook at once, so that the distances stay in the cache.
const COMPARED_AT_ONCE: usize = 1024;

/// For each row of `encodings` the column of `embedding` at the smallest distance, the first of several.
fn nearest(encodings: Tensor<2>, embedding: Tensor<2>) -> Vec<u32> {
    // The squared distance but for the encoding's own length: |e|^2 - 2 e x.
    let lengths = (embedding.clone() * embedding.clone()).sum_dim(0);
    let factors = embedding.mul_scalar(-2.0);
    let mut codes = Vec::with_capacity(encodings.dims()[0]);
    for encodings in encodings.inner().split(COMPARED_AT_ONCE, 0) {
        let distances = encodings.matmul(factors.clone()) + lengths.clone();
        codes.extend(distances.argmin(1).into_data().iter::<u32>());
    }
    codes
}

/// As indices on the device of a tensor.
fn indices(codes: &[u32], like: &Tensor<2>) -> Tensor<1, Int> {
    let codes: Vec<i32> = codes.iter().map(|&code| code as i32).collect();
    let length = codes.len();
    Tensor::from_data(TensorData::new(codes, [length]), &like.device())
}
