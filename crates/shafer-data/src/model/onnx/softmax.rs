//! Recognises softmax and log-softmax, as one node or decomposed into several, as JAX exports them.

use super::graph::{Graph, MAX_WALK, Node};

impl<'g> Graph<'g> {
    /// The logits of a softmax or log-softmax that ends in this node.
    pub(super) fn softmax_input(&self, node: &'g Node) -> Option<&'g str> {
        match (node.op(), &node.input[..]) {
            ("Softmax" | "LogSoftmax", [logits, ..]) => Some(logits),
            ("Div", [exp, sum]) => self.normalised(exp, sum),
            ("Mul", [a, b]) => [(a, b), (b, a)].into_iter().find_map(|(exp, inverse)| {
                let [sum] = &self.made_by("Reciprocal", inverse)?.input[..] else { return None };
                self.normalised(exp, sum)
            }),
            ("Sub", [logits, log]) => self.log_normalised(logits, log),
            _ => None,
        }
    }

    /// `exp(z) / sum(exp(z))`.
    fn normalised(&self, exp: &'g str, sum: &'g str) -> Option<&'g str> {
        let sum = self.made_by("ReduceSum", sum)?;
        let exp = self.made_by("Exp", exp)?;
        let summed = self.made_by("Exp", sum.input.first()?)?;
        if !std::ptr::eq(exp, summed) {
            return None;
        }
        Some(self.unshifted(exp.input.first()?))
    }

    /// `z - log(sum(exp(z)))`.
    fn log_normalised(&self, logits: &'g str, log: &'g str) -> Option<&'g str> {
        let normaliser = if let Some(node) = self.made_by("ReduceLogSumExp", log) {
            node.input.first()?
        } else {
            let log = self.made_by("Log", log)?;
            let sum = self.made_by("ReduceSum", log.input.first()?)?;
            self.made_by("Exp", sum.input.first()?)?.input.first()?
        };
        (self.origin(normaliser) == self.origin(logits)).then(|| self.unshifted(logits))
    }

    /// `z` for `z - max(z)`, which has the same softmax. Other values are returned unchanged.
    fn unshifted(&self, value: &'g str) -> &'g str {
        let shift = || {
            let [logits, max] = &self.made_by("Sub", value)?.input[..] else { return None };
            let max = self.made_by("ReduceMax", self.without_bound(max))?;
            let same = self.origin(max.input.first()?) == self.origin(logits);
            same.then_some(logits.as_str())
        };
        shift().unwrap_or(value)
    }

    /// `m` for `max(m, c)`: JAX starts a maximum with minus infinity.
    fn without_bound(&self, value: &'g str) -> &'g str {
        match self.made_by("Max", value).map(|node| &node.input[..]) {
            Some([a, b]) if self.is_fixed(a) => b,
            Some([a, b]) if self.is_fixed(b) => a,
            _ => value,
        }
    }

    fn made_by(&self, op: &str, value: &'g str) -> Option<&'g Node> {
        self.producer(self.origin(value)).filter(|node| node.op() == op)
    }

    /// The value that another one is a reshaped copy of.
    fn origin(&self, value: &'g str) -> &'g str {
        let mut value = value;
        for _ in 0..MAX_WALK {
            match self.producer(value) {
                Some(node) if node.keeps_values() => match node.input.first() {
                    Some(input) => value = input,
                    None => break,
                },
                _ => break,
            }
        }
        value
    }
}
