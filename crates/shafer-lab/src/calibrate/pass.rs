//! One pass over labelled rows.

use std::ops::ControlFlow;

use anyhow::Result;
use half::{bf16, f16};
use shafer::calibrate::Labelled;
use shafer::{Element, Logits};
use shafer_data::Dtype;

use crate::compare::gathered;
use crate::groups::in_file;
use crate::labels::Labels;
use crate::progress::Progress;
use crate::sparsify::Typed;
use crate::stream::Rows;

/// What looks at the rows.
pub(super) trait Visitor {
    /// The rows, and their logits, contiguous and with `-inf` for masked classes. Errors count rows from the
    /// first of these.
    fn visit<E: Element>(&mut self, rows: &Labelled<'_, E>, logits: &[E]) -> shafer::Result<()>;
}

/// Rows with their labels, and their groups if there are any.
pub(super) struct LabelledRows {
    pub(super) rows: Rows,
    pub(super) labels: Labels,
    pub(super) groups: Option<Labels>,
}

impl LabelledRows {
    /// Shows all rows, block by block; returns their number.
    pub(super) fn visit(self, visitor: &mut impl Visitor, progress: Progress) -> Result<usize> {
        match self.rows.dtype() {
            Dtype::F16 => self.typed::<f16>(visitor, progress),
            Dtype::Bf16 => self.typed::<bf16>(visitor, progress),
            Dtype::F32 => self.typed::<f32>(visitor, progress),
            Dtype::F64 => self.typed::<f64>(visitor, progress),
        }
    }

    fn typed<E: Typed>(self, visitor: &mut impl Visitor, mut progress: Progress) -> Result<usize> {
        let Self { rows, mut labels, mut groups } = self;
        let (shape, whole) = (rows.shape(), rows.groups().to_vec());
        let (mut packed, mut total) = (Vec::new(), 0);
        rows.for_each(|block| {
            let logits = gathered(E::of(block.logits), shape, block.mask, &mut packed);
            let count = logits.len() / shape.classes;
            let labels = labels.next(block.first, count, shape.classes)?;
            let groups = match &mut groups {
                Some(groups) => Some(groups.next(block.first, count, shape.classes)?),
                None => None,
            };
            let shown = Logits::rows(logits, shape.classes)
                .and_then(|logits| Labelled::new(logits, labels))
                .and_then(|rows| groups.map_or(Ok(rows), |groups| rows.groups(groups)))
                .and_then(|rows| visitor.visit(&rows, logits));
            shown.map_err(|error| in_file(error, block.first, 0, &whole))?;
            total += count;
            progress.add(count);
            progress.expect(block.share_read);
            Ok(ControlFlow::Continue(()))
        })?;
        labels.finish(total)?;
        if let Some(groups) = &mut groups {
            groups.finish(total)?;
        }
        Ok(total)
    }
}
