//! The transforms by their names.

use std::str::FromStr;

use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum};
use shafer::{
    Entmax, Evidential, MinP, Softmax, SparsegenHg, SparsegenLin, Sparsemax, TopK, TopP, Transform,
};

/// Default parameters.
const ROUNDS: usize = 1;
const ALPHA: f64 = 1.5;
const LAMBDA: f64 = 0.5;
const Q: f64 = 1.0;
const K: usize = 5;
const TOP_P: f64 = 0.9;
const MIN_P: f64 = 0.05;

/// The paper's three methods by their names on the command line.
pub(crate) const EVIDENTIAL: &str = "evidential";
pub(crate) const SOFTMAX: &str = "softmax";
pub(crate) const SPARSEMAX: &str = "sparsemax";

/// A transform and its parameters on the command line.
#[derive(Args, Clone, Debug)]
pub(crate) struct MethodArgs {
    /// The transform that selects the classes
    #[arg(short, long, value_enum, default_value_t = Method::Evidential)]
    method: Method,

    /// Divide the logits by this before the transform; does not change the classes that evidential keeps
    #[arg(short, long, default_value_t = 1.0, value_name = "T")]
    pub(crate) temperature: f64,

    #[command(flatten)]
    parameters: Parameters,
}

/// The parameters of all transforms.
#[derive(Args, Clone, Debug, Default, PartialEq)]
struct Parameters {
    /// evidential: number of rounds, each applied to the survivors of the last [default: 1]
    #[arg(long, value_name = "R")]
    rounds: Option<usize>,

    /// entmax: at least 1; 1 is softmax, 2 is sparsemax [default: 1.5]
    #[arg(long, value_name = "A")]
    alpha: Option<f64>,

    /// sparsegen-lin: below 1, larger is sparser [default: 0.5]
    #[arg(long, value_name = "L", allow_negative_numbers = true)]
    lambda: Option<f64>,

    /// sparsegen-hg: 0 makes it scale-invariant, large values translation-invariant [default: 1]
    #[arg(long, value_name = "Q")]
    q: Option<f64>,

    /// top-k: number of classes to keep [default: 5]
    #[arg(short, long, value_name = "K")]
    k: Option<usize>,

    /// top-p: probability to cover [default: 0.9]; min-p: threshold relative to the largest
    /// probability [default: 0.05]
    #[arg(short, long, value_name = "P")]
    p: Option<f64>,
}

/// All transforms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Method {
    /// The classes with direct evidence in their favour (the paper's)
    Evidential,
    /// All classes
    Softmax,
    /// The Euclidean projection onto the simplex
    Sparsemax,
    /// Sparsemax with regularisation
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

impl Method {
    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

impl MethodArgs {
    /// The transform. Fails if a parameter belongs to another one or is out of range.
    pub(crate) fn transform(&self) -> Result<Box<dyn Transform>> {
        self.parameters.transform(self.method)
    }
}

impl Parameters {
    fn transform(&self, method: Method) -> Result<Box<dyn Transform>> {
        let owners = [
            ("rounds", self.rounds.is_some(), &[Method::Evidential][..]),
            ("alpha", self.alpha.is_some(), &[Method::Entmax]),
            ("lambda", self.lambda.is_some(), &[Method::SparsegenLin]),
            ("q", self.q.is_some(), &[Method::SparsegenHg]),
            ("k", self.k.is_some(), &[Method::TopK]),
            ("p", self.p.is_some(), &[Method::TopP, Method::MinP]),
        ];
        for (parameter, given, methods) in owners {
            if given && !methods.contains(&method) {
                let names: Vec<String> = methods.iter().map(|method| method.name()).collect();
                bail!(
                    "{parameter} is a parameter of {}, not of {}",
                    names.join(" and "),
                    method.name()
                );
            }
        }
        Ok(match method {
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

/// A method with an optional parameter, such as `top-k` or `top-k:k=3`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Choice {
    method: Method,
    parameters: Parameters,
}

impl FromStr for Choice {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, parameter) = text.split_once(':').map_or((text, None), |(a, b)| (a, Some(b)));
        let Ok(method) = Method::from_str(name, false) else {
            let names: Vec<String> = Method::value_variants().iter().map(|m| m.name()).collect();
            bail!("unknown method `{name}`; the methods are {}", names.join(", "));
        };
        let mut parameters = Parameters::default();
        if let Some(parameter) = parameter {
            let (key, value) = parameter.split_once('=').with_context(|| {
                format!("`{parameter}` is not a parameter with its value, such as k=5")
            })?;
            let bad = || format!("{key} cannot be `{value}`");
            match key {
                "rounds" => parameters.rounds = Some(value.parse().with_context(bad)?),
                "alpha" => parameters.alpha = Some(value.parse().with_context(bad)?),
                "lambda" => parameters.lambda = Some(value.parse().with_context(bad)?),
                "q" => parameters.q = Some(value.parse().with_context(bad)?),
                "k" => parameters.k = Some(value.parse().with_context(bad)?),
                "p" => parameters.p = Some(value.parse().with_context(bad)?),
                _ => {
                    bail!(
                        "unknown parameter `{key}`; the parameters are rounds, alpha, lambda, q, k, p"
                    )
                }
            }
        }
        parameters.transform(method)?;
        Ok(Self { method, parameters })
    }
}

impl Choice {
    /// All methods with their default parameters.
    pub(crate) fn all() -> Vec<Self> {
        let choice = |&method| Self { method, parameters: Parameters::default() };
        Method::value_variants().iter().map(choice).collect()
    }

    /// The display name, and the transform for rows of this many classes.
    pub(crate) fn transform(&self, classes: usize) -> Result<(String, Box<dyn Transform>)> {
        let Self { method, mut parameters } = self.clone();
        // The default k must not exceed the number of classes.
        if method == Method::TopK {
            parameters.k = parameters.k.or(Some(K.min(classes)));
        }
        let parameter = match method {
            Method::Evidential => parameters.rounds.map(|rounds| rounds.to_string()),
            Method::Softmax | Method::Sparsemax => None,
            Method::SparsegenLin => Some(parameters.lambda.unwrap_or(LAMBDA).to_string()),
            Method::SparsegenHg => Some(parameters.q.unwrap_or(Q).to_string()),
            Method::Entmax => Some(parameters.alpha.unwrap_or(ALPHA).to_string()),
            Method::TopK => parameters.k.map(|k| k.to_string()),
            Method::TopP => Some(parameters.p.unwrap_or(TOP_P).to_string()),
            Method::MinP => Some(parameters.p.unwrap_or(MIN_P).to_string()),
        };
        let name = parameter.map_or_else(|| method.name(), |p| format!("{} {p}", method.name()));
        Ok((name, parameters.transform(method)?))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_method_and_its_parameter() {
        let named = |text: &str| text.parse::<Choice>().unwrap().transform(100).unwrap();
        let (name, transform) = named("top-k:k=3");
        assert_eq!(name, "top-k 3");
        assert_eq!(format!("{transform:?}"), format!("{:?}", TopK::new(3).unwrap()));
        let (name, transform) = named("sparsegen-lin:lambda=-1.5");
        assert_eq!(name, "sparsegen-lin -1.5");
        assert_eq!(format!("{transform:?}"), format!("{:?}", SparsegenLin::new(-1.5).unwrap()));
        for (text, name) in [
            ("evidential", "evidential"),
            ("evidential:rounds=2", "evidential 2"),
            ("softmax", "softmax"),
            ("entmax:alpha=1.3", "entmax 1.3"),
            ("top-p:p=0.5", "top-p 0.5"),
            ("min-p", "min-p 0.05"),
            ("top-k", "top-k 5"),
        ] {
            assert_eq!(named(text).0, name);
        }
        assert_eq!("top-k".parse::<Choice>().unwrap().transform(4).unwrap().0, "top-k 4");
        assert_eq!(Choice::all().len(), 9);
    }

    #[test]
    fn what_is_no_choice() {
        let error = |text: &str| format!("{:#}", text.parse::<Choice>().unwrap_err());
        assert!(
            error("top").starts_with("unknown method `top`; the methods are evidential, softmax")
        );
        assert_eq!(error("top-k:alpha=2"), "alpha is a parameter of entmax, not of top-k");
        assert_eq!(error("top-k:3"), "`3` is not a parameter with its value, such as k=5");
        assert!(
            error("top-k:n=3").starts_with("unknown parameter `n`; the parameters are rounds,")
        );
        assert!(error("top-k:k=-3").starts_with("k cannot be `-3`: "));
        assert!(error("top-p:p=2").starts_with("p is 2, but must"));
        assert!(error("sparsegen-lin:lambda=1").starts_with("lambda is 1, but must"));
    }
}
