//! The transforms by their names.

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use shafer::{
    Entmax, Evidential, MinP, Softmax, SparsegenHg, SparsegenLin, Sparsemax, TopK, TopP, Transform,
};

/// What parameters are if nothing is said about them.
const ROUNDS: usize = 1;
const ALPHA: f64 = 1.5;
const LAMBDA: f64 = 0.5;
const Q: f64 = 1.0;
const K: usize = 5;
const TOP_P: f64 = 0.9;
const MIN_P: f64 = 0.05;

/// The paper's three, as they are called on the command line.
pub(crate) const EVIDENTIAL: &str = "evidential";
pub(crate) const SOFTMAX: &str = "softmax";
pub(crate) const SPARSEMAX: &str = "sparsemax";

/// Which transform, and its parameters.
#[derive(Args, Clone, Debug)]
pub(crate) struct MethodArgs {
    /// How to choose the classes
    #[arg(short, long, value_enum, default_value_t = Method::Evidential)]
    pub(crate) method: Method,

    /// Divide the logits by this first; never changes what `evidential` keeps
    #[arg(short, long, default_value_t = 1.0, value_name = "T")]
    pub(crate) temperature: f64,

    /// evidential: apply it again to the survivors, this often in all [default: 1]
    #[arg(long, value_name = "R")]
    rounds: Option<usize>,

    /// entmax: from 1 (softmax) over 1.5 to 2 (sparsemax) and beyond [default: 1.5]
    #[arg(long, value_name = "A")]
    alpha: Option<f64>,

    /// sparsegen-lin: less than 1, and larger is sparser [default: 0.5]
    #[arg(long, value_name = "L", allow_negative_numbers = true)]
    lambda: Option<f64>,

    /// sparsegen-hg: 0 ignores scale, and large ignores translation [default: 1]
    #[arg(long, value_name = "Q")]
    q: Option<f64>,

    /// top-k: how many classes to keep [default: 5]
    #[arg(short, long, value_name = "K")]
    k: Option<usize>,

    /// top-p: the probability to cover [default: 0.9]; min-p: the share of the best [default: 0.05]
    #[arg(short, long, value_name = "P")]
    p: Option<f64>,
}

/// The transforms that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Method {
    /// The classes with direct evidence in their favour (the paper's)
    Evidential,
    /// All classes
    Softmax,
    /// The Euclidean projection onto the simplex
    Sparsemax,
    /// Sparsemax with a regularisation
    SparsegenLin,
    /// Sparsemax of logits scaled by their sum
    SparsegenHg,
    /// Between softmax and sparsemax
    Entmax,
    /// The k most probable classes
    TopK,
    /// The fewest classes that cover a probability
    TopP,
    /// The classes at least p times as probable as the best
    MinP,
}

impl MethodArgs {
    /// The transform, or which parameter does not fit.
    pub(crate) fn transform(&self) -> Result<Box<dyn Transform>> {
        let owners = [
            ("--rounds", self.rounds.is_some(), &[Method::Evidential][..]),
            ("--alpha", self.alpha.is_some(), &[Method::Entmax]),
            ("--lambda", self.lambda.is_some(), &[Method::SparsegenLin]),
            ("--q", self.q.is_some(), &[Method::SparsegenHg]),
            ("--k", self.k.is_some(), &[Method::TopK]),
            ("--p", self.p.is_some(), &[Method::TopP, Method::MinP]),
        ];
        for (option, given, methods) in owners {
            if given && !methods.contains(&self.method) {
                bail!("{option} is for {}, not for {}", names(methods), names(&[self.method]));
            }
        }
        Ok(match self.method {
            Method::Evidential => Box::new(Evidential::with_rounds(self.rounds.unwrap_or(ROUNDS))?),
            Method::Softmax => Box::new(Softmax),
            Method::Sparsemax => Box::new(Sparsemax),
            Method::SparsegenLin => Box::new(SparsegenLin::new(self.lambda.unwrap_or(LAMBDA))?),
            Method::SparsegenHg => Box::new(SparsegenHg::new(self.q.unwrap_or(Q))?),
            Method::Entmax => Box::new(Entmax::new(self.alpha.unwrap_or(ALPHA))?),
            Method::TopK => Box::new(TopK::new(self.k.unwrap_or(K))?),
            Method::TopP => Box::new(TopP::new(self.p.unwrap_or(TOP_P))?),
            Method::MinP => Box::new(MinP::new(self.p.unwrap_or(MIN_P))?),
        })
    }
}

/// Every transform with its default parameters, and what to call it beside the others.
///
/// The first is the evidential one, the second softmax.
pub(crate) fn all(classes: usize) -> Result<Vec<(String, Box<dyn Transform>)>> {
    // A file of fewer classes than k is no reason to leave top-k out.
    let k = K.min(classes);
    Ok(vec![
        ("evidential".to_owned(), Box::new(Evidential::with_rounds(ROUNDS)?) as _),
        ("softmax".to_owned(), Box::new(Softmax) as _),
        ("sparsemax".to_owned(), Box::new(Sparsemax) as _),
        (format!("sparsegen-lin {LAMBDA}"), Box::new(SparsegenLin::new(LAMBDA)?) as _),
        (format!("sparsegen-hg {Q}"), Box::new(SparsegenHg::new(Q)?) as _),
        (format!("entmax {ALPHA}"), Box::new(Entmax::new(ALPHA)?) as _),
        (format!("top-k {k}"), Box::new(TopK::new(k)?) as _),
        (format!("top-p {TOP_P}"), Box::new(TopP::new(TOP_P)?) as _),
        (format!("min-p {MIN_P}"), Box::new(MinP::new(MIN_P)?) as _),
    ])
}

fn names(methods: &[Method]) -> String {
    let name = |method: &Method| {
        method.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    };
    methods.iter().map(name).collect::<Vec<_>>().join(" and ")
}
