//! Facts about the paper's image experiments, to show beside ours.
//!
//! Itkina et al., "Evidential Sparsification of Multimodal Latent Spaces in Conditional Variational
//! Autoencoders", `NeurIPS` 2020.

/// A data set of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DataSet {
    Mnist,
    FashionMnist,
    NotMnist,
}

impl DataSet {
    /// By its name in any common spelling.
    pub(super) fn named(name: &str) -> Option<Self> {
        let letters: String =
            name.chars().filter(char::is_ascii_alphabetic).collect::<String>().to_lowercase();
        match letters.as_str() {
            "mnist" => Some(Self::Mnist),
            "fashion" | "fashionmnist" => Some(Self::FashionMnist),
            "notmnist" => Some(Self::NotMnist),
            _ => None,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Mnist => "MNIST",
            Self::FashionMnist => "Fashion MNIST",
            Self::NotMnist => "NotMNIST",
        }
    }

    /// The number of seeds that the paper's means are over.
    pub(super) fn seeds(self) -> usize {
        match self {
            Self::Mnist | Self::FashionMnist => 25,
            Self::NotMnist => 5,
        }
    }

    /// The number of the paper's figure that corresponds to one of ours.
    pub(super) fn figure(self, name: &str) -> Option<u8> {
        let numbers = match self {
            Self::Mnist => [Some(2), Some(3), Some(7), Some(6)],
            Self::FashionMnist => [Some(8), Some(9), Some(10), None],
            Self::NotMnist => [Some(11), Some(12), None, None],
        };
        let place = ["bars", "evolution", "reduced", "samples"].iter().position(|n| *n == name)?;
        numbers[place]
    }
}

/// The title of a data set.
pub(crate) fn title(name: &str) -> &str {
    DataSet::named(name).map_or(name, |data_set| data_set.title())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_sets_are_known_however_they_are_spelt() {
        for name in ["fashion-mnist", "Fashion MNIST", "fashion_mnist", "fashion"] {
            assert_eq!(DataSet::named(name), Some(DataSet::FashionMnist));
        }
        assert_eq!((title("mnist"), title("cifar")), ("MNIST", "cifar"));
        assert_eq!(DataSet::NotMnist.figure("evolution"), Some(12));
        assert_eq!(DataSet::Mnist.figure("kept"), None);
    }
}
