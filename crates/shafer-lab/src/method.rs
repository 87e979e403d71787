//! Methods on the command line.

use std::str::FromStr;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use shafer::Method;

/// The classes that top-k keeps by default.
const K: usize = 5;

/// The paper's three methods by their names on the command line.
pub(crate) const EVIDENTIAL: &str = "evidential";
pub(crate) const SOFTMAX: &str = "softmax";
pub(crate) const SPARSEMAX: &str = "sparsemax";

/// A method and its parameter on the command line.
#[derive(Args, Clone, Debug)]
pub(crate) struct MethodArgs {
    /// The method that selects the classes
    #[arg(short, long, value_enum, default_value_t = Name::Evidential)]
    method: Name,

    /// Divide the logits by this first; does not change the classes that evidential keeps
    #[arg(short, long, default_value_t = 1.0, value_name = "T")]
    pub(crate) temperature: f64,

    #[command(flatten)]
    parameters: Parameters,
}

/// The parameters of all methods.
#[derive(Args, Clone, Debug)]
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
    /// probability [default: 0.05]; min-probability: threshold [default: 0.01]
    #[arg(short, long, value_name = "P")]
    p: Option<f64>,

    /// top-n-sigma: number of standard deviations below the largest logit [default: 1]
    #[arg(short, long, value_name = "N")]
    n: Option<f64>,

    /// min-evidence: least weight of evidence, the logit minus the mean of the row [default: 0]
    #[arg(short, long, value_name = "W", allow_negative_numbers = true)]
    w: Option<f64>,
}

/// The names of all methods, with their help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Name {
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
    /// The classes within n standard deviations of the largest logit
    TopNSigma,
    /// The classes with a probability of at least p
    MinProbability,
    /// The classes with a weight of evidence of at least w
    MinEvidence,
}

impl MethodArgs {
    /// The method. Fails if a parameter belongs to another one or is out of range.
    pub(crate) fn method(&self) -> Result<Method> {
        let name = self.method.to_possible_value();
        let name = name.as_ref().map_or("", |value| value.get_name());
        let Parameters { rounds, alpha, lambda, q, k, p, n, w } = self.parameters;
        let given = [
            ("rounds", rounds.map(|rounds| rounds as f64)),
            ("alpha", alpha),
            ("lambda", lambda),
            ("q", q),
            ("k", k.map(|k| k as f64)),
            ("p", p),
            ("n", n),
            ("w", w),
        ];
        let has = |name: &str, parameter: &str| {
            let method = Method::named(name, None);
            method.is_ok_and(|m| m.parameter().is_some_and(|(known, _)| known == parameter))
        };
        let mut value = None;
        for (parameter, given) in given.into_iter().filter(|(_, given)| given.is_some()) {
            if !has(name, parameter) {
                let owners: Vec<&str> =
                    Method::names().filter(|name| has(name, parameter)).collect();
                bail!("{parameter} is a parameter of {}, not of {name}", owners.join(" and "));
            }
            value = given;
        }
        Ok(Method::named(name, value)?)
    }
}

/// A method to compare with others, as text: `top-k` or `top-k:k=3`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Choice {
    method: Method,
    /// Whether the text has a parameter.
    parameter: bool,
}

impl FromStr for Choice {
    type Err = shafer::Error;

    fn from_str(text: &str) -> shafer::Result<Self> {
        Ok(Self { method: text.parse()?, parameter: text.contains(':') })
    }
}

impl Choice {
    /// All methods with their default parameters. Min-evidence with its default is the paper's method.
    pub(crate) fn all() -> Vec<Self> {
        let default = |name| Method::named(name, None).ok();
        let methods = Method::names().filter(|&name| name != "min-evidence").filter_map(default);
        methods.map(|method| Self { method, parameter: false }).collect()
    }

    /// The method for rows of this many classes, with its title.
    pub(crate) fn method(&self, classes: usize) -> Result<(String, Method)> {
        let method = match (self.method.name(), self.parameter) {
            // The default k must not exceed the number of classes.
            ("top-k", false) => Method::top_k(K.min(classes))?,
            _ => self.method,
        };
        let name = method.name();
        let title = match method.parameter() {
            // One round is the paper's method.
            Some(_) if name == EVIDENTIAL && !self.parameter => name.to_owned(),
            Some((_, value)) => format!("{name} {value}"),
            None => name.to_owned(),
        };
        Ok((title, method))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn titles_and_parameters() {
        let named = |text: &str| text.parse::<Choice>().unwrap().method(100).unwrap();
        assert_eq!(named("top-k:k=3"), ("top-k 3".to_owned(), Method::top_k(3).unwrap()));
        let lin = Method::sparsegen_lin(-1.5).unwrap();
        assert_eq!(named("sparsegen-lin:lambda=-1.5"), ("sparsegen-lin -1.5".to_owned(), lin));
        for (text, title) in [
            ("evidential", "evidential"),
            ("evidential:rounds=2", "evidential 2"),
            ("softmax", "softmax"),
            ("entmax:alpha=1.3", "entmax 1.3"),
            ("top-p:p=0.5", "top-p 0.5"),
            ("min-p", "min-p 0.05"),
            ("top-k", "top-k 5"),
            ("top-n-sigma", "top-n-sigma 1"),
            ("min-evidence:w=-0.5", "min-evidence -0.5"),
        ] {
            assert_eq!(named(text).0, title);
        }
        assert_eq!("top-k".parse::<Choice>().unwrap().method(4).unwrap().0, "top-k 4");
        assert_eq!(Choice::all().len(), Method::names().len() - 1);
    }

    #[test]
    fn the_command_line_has_the_methods_of_the_library() {
        let names: Vec<String> = Name::value_variants()
            .iter()
            .filter_map(|name| Some(name.to_possible_value()?.get_name().to_owned()))
            .collect();
        assert!(Method::names().eq(names));
    }

    #[test]
    fn parameters_of_other_methods_are_refused() {
        let parameters = Parameters {
            rounds: None,
            alpha: None,
            lambda: None,
            q: None,
            k: None,
            p: None,
            n: None,
            w: None,
        };
        let arguments = |method, parameters| MethodArgs { method, temperature: 1.0, parameters };
        let alpha = Parameters { alpha: Some(2.0), ..parameters.clone() };
        let error = arguments(Name::TopK, alpha).method().unwrap_err();
        assert_eq!(error.to_string(), "alpha is a parameter of entmax, not of top-k");
        let p = Parameters { p: Some(0.5), ..parameters.clone() };
        let error = arguments(Name::Softmax, p.clone()).method().unwrap_err();
        assert_eq!(
            error.to_string(),
            "p is a parameter of top-p and min-p and min-probability, not of softmax"
        );
        assert_eq!(arguments(Name::MinP, p).method().unwrap(), Method::min_p(0.5).unwrap());
        assert_eq!(
            arguments(Name::TopP, parameters).method().unwrap(),
            Method::top_p(0.9).unwrap()
        );
    }
}
