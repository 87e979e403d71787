//! Methods as text: `evidential`, `top-k:k=5`.

use std::fmt;
use std::str::FromStr;

use super::{Method, Rule};
use crate::error::{Error, Result, check_parameter};

const NAMES: [&str; 12] = [
    "evidential",
    "softmax",
    "sparsemax",
    "sparsegen-lin",
    "sparsegen-hg",
    "entmax",
    "top-k",
    "top-p",
    "min-p",
    "top-n-sigma",
    "min-probability",
    "min-evidence",
];

impl Method {
    /// The names of all methods.
    ///
    /// ```
    /// assert!(shafer::Method::names().any(|name| name == "top-k"));
    /// ```
    pub fn names() -> impl ExactSizeIterator<Item = &'static str> {
        NAMES.into_iter()
    }

    /// The name: `evidential`, `top-k`.
    ///
    /// ```
    /// assert_eq!(shafer::Method::top_k(3)?.name(), "top-k");
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn name(&self) -> &'static str {
        self.parts().0
    }

    /// The parameter's name and value, for a method that has one.
    ///
    /// ```
    /// use shafer::Method;
    ///
    /// assert_eq!(Method::top_k(3)?.parameter(), Some(("k", 3.0)));
    /// assert_eq!(Method::SOFTMAX.parameter(), None);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn parameter(&self) -> Option<(&'static str, f64)> {
        self.parts().1
    }

    fn parts(&self) -> (&'static str, Option<(&'static str, f64)>) {
        match self.0 {
            Rule::Evidential { rounds } => ("evidential", Some(("rounds", rounds.get() as f64))),
            Rule::Softmax => ("softmax", None),
            Rule::Sparsemax => ("sparsemax", None),
            Rule::SparsegenLin { lambda } => ("sparsegen-lin", Some(("lambda", lambda))),
            Rule::SparsegenHg { q } => ("sparsegen-hg", Some(("q", q))),
            Rule::Entmax { alpha } => ("entmax", Some(("alpha", alpha))),
            Rule::TopK { k } => ("top-k", Some(("k", k.get() as f64))),
            Rule::TopP { p } => ("top-p", Some(("p", p))),
            Rule::MinP { p } => ("min-p", Some(("p", p))),
            Rule::TopNSigma { n } => ("top-n-sigma", Some(("n", n))),
            Rule::MinProbability { p } => ("min-probability", Some(("p", p))),
            Rule::MinEvidence { w } => ("min-evidence", Some(("w", w))),
        }
    }

    /// The method of this name, with the value of its parameter or the default.
    ///
    /// # Errors
    /// There is no such method, it has no parameter, or the value is out of range.
    ///
    /// ```
    /// use shafer::Method;
    ///
    /// assert_eq!(Method::named("top-k", Some(3.0))?, Method::top_k(3)?);
    /// assert_eq!(Method::named("entmax", None)?, Method::entmax(1.5)?);
    /// assert!(Method::named("softmax", Some(1.0)).is_err());
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn named(name: &str, value: Option<f64>) -> Result<Self> {
        let or = |default: f64| value.unwrap_or(default);
        match name {
            "softmax" | "sparsemax" if value.is_some() => {
                refuse(name, "the method has no parameter".to_owned())
            }
            "softmax" => Ok(Self::SOFTMAX),
            "sparsemax" => Ok(Self::SPARSEMAX),
            "evidential" => Self::evidential(count("rounds", or(1.0))?),
            "sparsegen-lin" => Self::sparsegen_lin(or(0.5)),
            "sparsegen-hg" => Self::sparsegen_hg(or(1.0)),
            "entmax" => Self::entmax(or(1.5)),
            "top-k" => Self::top_k(count("k", or(5.0))?),
            "top-p" => Self::top_p(or(0.9)),
            "min-p" => Self::min_p(or(0.05)),
            "top-n-sigma" => Self::top_n_sigma(or(1.0)),
            "min-probability" => Self::min_probability(or(0.01)),
            "min-evidence" => Self::min_evidence(or(0.0)),
            _ => {
                let names = NAMES.join(", ");
                refuse(name, format!("there is no such method; use {names}"))
            }
        }
    }
}

/// A whole number.
fn count(name: &'static str, value: f64) -> Result<usize> {
    // 2^53: every smaller whole number is an f64.
    let holds = value.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&value);
    Ok(check_parameter(name, value, holds, "must be a whole number of at least 1")? as usize)
}

fn refuse<T>(text: &str, problem: String) -> Result<T> {
    Err(Error::Method { text: text.to_owned(), problem })
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self.0 {
            // The paper's method is one round.
            Rule::Evidential { rounds } if rounds.get() == 1 => Ok(()),
            Rule::Evidential { rounds } => write!(f, ":rounds={rounds}"),
            Rule::TopK { k } => write!(f, ":k={k}"),
            _ => match self.parameter() {
                Some((name, value)) => write!(f, ":{name}={value}"),
                None => Ok(()),
            },
        }
    }
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let Some((name, parameter)) = text.split_once(':') else {
            return Self::named(text, None);
        };
        let default = Self::named(name, None)?;
        let expected = default.parameter().map(|(name, _)| name);
        let Some(expected) = expected else {
            return refuse(text, format!("{name} has no parameter"));
        };
        let Some((key, value)) = parameter.split_once('=') else {
            return refuse(text, format!("write the parameter as {name}:{expected}=VALUE"));
        };
        if key != expected {
            return refuse(text, format!("the parameter of {name} is {expected}, not {key}"));
        }
        // As an integer first: not every one is an f64.
        match (default.0, value.parse::<usize>(), value.parse::<f64>()) {
            (Rule::Evidential { .. }, Ok(rounds), _) => Self::evidential(rounds),
            (Rule::TopK { .. }, Ok(k), _) => Self::top_k(k),
            (_, _, Ok(number)) => Self::named(name, Some(number)),
            (_, _, Err(_)) => refuse(text, format!("{key} must be a number, not `{value}`")),
        }
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Method {
    fn serialize<S: serde::Serializer>(
        &self,
        serializer: S,
    ) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Method {
    fn deserialize<D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> std::result::Result<Self, D::Error> {
        let text = <String as serde::Deserialize>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn all() -> Vec<Method> {
        let defaults = Method::names().map(|name| Method::named(name, None).unwrap());
        let others = [
            Method::evidential(usize::MAX).unwrap(),
            Method::sparsegen_lin(-1.0 / 3.0).unwrap(),
            Method::sparsegen_hg(0.0).unwrap(),
            Method::entmax(f64::MAX).unwrap(),
            Method::top_k(usize::MAX).unwrap(),
            Method::top_p(f64::from_bits(1)).unwrap(),
            Method::min_p(0.1 + 0.2).unwrap(),
        ];
        defaults.chain(others).collect()
    }

    #[test]
    fn text_is_read_back() {
        for method in all() {
            assert_eq!(method.to_string().parse(), Ok(method));
            assert_eq!(method.name(), method.to_string().split(':').next().unwrap());
        }
        let texts: Vec<String> = all().iter().take(12).map(Method::to_string).collect();
        let expected = "evidential softmax sparsemax sparsegen-lin:lambda=0.5 sparsegen-hg:q=1 \
                        entmax:alpha=1.5 top-k:k=5 top-p:p=0.9 min-p:p=0.05 top-n-sigma:n=1 \
                        min-probability:p=0.01 min-evidence:w=0";
        assert_eq!(texts.join(" "), expected);
    }

    #[test]
    fn problems_are_named() {
        let problem = |text: &str| text.parse::<Method>().unwrap_err().to_string();
        assert!(
            problem("top").starts_with("method `top`: there is no such method; use evidential, ")
        );
        assert_eq!(problem("softmax:k=3"), "method `softmax:k=3`: softmax has no parameter");
        assert_eq!(problem("top-k:3"), "method `top-k:3`: write the parameter as top-k:k=VALUE");
        assert_eq!(
            problem("top-k:alpha=2"),
            "method `top-k:alpha=2`: the parameter of top-k is k, not alpha"
        );
        assert_eq!(problem("top-p:p=x"), "method `top-p:p=x`: p must be a number, not `x`");
        assert_eq!(problem("top-k:k=-3"), "k is -3, but must be a whole number of at least 1");
        assert_eq!(problem("top-k:k=0"), "k is 0, but must be at least 1");
        assert!(problem("top-p:p=nan").starts_with("p is NaN, but must be"));
        assert!(problem("evidential:rounds=1.5").starts_with("rounds is 1.5, but must be a whole"));
    }

    #[cfg(feature = "serde")]
    #[test]
    fn serialised_as_text() {
        for method in all() {
            let json = serde_json::to_string(&method).unwrap();
            assert_eq!(json, format!("\"{method}\""));
            assert_eq!(serde_json::from_str::<Method>(&json).unwrap(), method);
        }
        assert!(serde_json::from_str::<Method>("\"top-p:p=2\"").is_err());
    }
}
