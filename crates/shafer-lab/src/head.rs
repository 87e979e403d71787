//! Computes logits from features and the last linear layer of a model.

use half::{bf16, f16};
use rayon::prelude::*;
use shafer_data::{ArrayInfo, ArrayReader, Columns, Dtype, Error, HeadWeights, Result, Values};

/// Reads features and returns logits.
pub(crate) struct HeadReader {
    features: Box<dyn ArrayReader>,
    head: HeadWeights,
    info: ArrayInfo,
    block: Values,
}

impl HeadReader {
    /// `None` if the number of features is not that of the head.
    pub(crate) fn new(features: Box<dyn ArrayReader>, head: HeadWeights) -> Option<Self> {
        let mut info = features.info().clone();
        let last = info.shape.last_mut()?;
        if *last != head.features || head.classes == 0 || head.features == 0 {
            return None;
        }
        *last = head.classes;
        info.dtype = Dtype::F32;
        Some(Self { features, head, info, block: Values::default() })
    }
}

impl ArrayReader for HeadReader {
    fn info(&self) -> &ArrayInfo {
        &self.info
    }

    fn read(&mut self, elements: usize, block: &mut Values) -> Result<()> {
        let rows = elements / self.head.classes;
        self.features.read(rows * self.head.features, &mut self.block)?;
        let mut logits = match std::mem::take(block) {
            Values::F32(logits) => logits,
            _ => Vec::new(),
        };
        let rows = self.block.len() / self.head.features;
        logits.clear();
        if logits.try_reserve_exact(rows * self.head.classes).is_err() {
            return Err(Error::memory("the head's logits"));
        }
        match &self.block {
            Values::F16(features) => multiply(&self.head, features, f16::to_f32, &mut logits),
            Values::Bf16(features) => multiply(&self.head, features, bf16::to_f32, &mut logits),
            Values::F32(features) => multiply(&self.head, features, |x| x, &mut logits),
            Values::F64(features) => multiply(&self.head, features, |x| x as f32, &mut logits),
        }
        *block = Values::F32(logits);
        Ok(())
    }

    fn share_read(&self) -> Option<f64> {
        self.features.share_read()
    }

    fn columns(&self) -> Option<&Columns> {
        self.features.columns()
    }
}

/// `features * weights + bias`, row by row. `logits` must be empty.
fn multiply<T: Copy + Sync>(
    head: &HeadWeights,
    features: &[T],
    to_f32: impl Fn(T) -> f32 + Sync,
    logits: &mut Vec<f32>,
) {
    logits.resize(features.len() / head.features * head.classes, 0.0);
    let rows = logits.par_chunks_mut(head.classes).zip(features.par_chunks(head.features));
    rows.with_min_len(16).for_each(|(logits, features)| {
        if let Some(bias) = &head.bias {
            logits.copy_from_slice(bias);
        }
        for (&feature, weights) in features.iter().zip(head.weights.chunks_exact(head.classes)) {
            let feature = to_f32(feature);
            for (logit, &weight) in logits.iter_mut().zip(weights) {
                *logit += feature * weight;
            }
        }
    });
}
