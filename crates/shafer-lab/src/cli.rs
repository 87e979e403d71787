//! The arguments of the command line.

use std::fmt;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::method::MethodArgs;

/// Makes the categorical distributions of trained networks sparse without losing their modes.
///
/// Logits come from a file, or from a model's last linear layer and its input features. For each row,
/// the classes with direct evidence in their favour are kept and the others dropped.
#[derive(Debug, Parser)]
#[command(name = "shafer", version, arg_required_else_help = true, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Print JSON instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Print no progress and no summary
    #[arg(short = 'Q', long, global = true)]
    pub(crate) quiet: bool,

    /// Use this many threads [default: all cores]
    #[arg(long, global = true, value_name = "N")]
    pub(crate) threads: Option<usize>,
}

const AFTER_HELP: &str = "\
Exit codes: 0 done, 2 bad arguments or input, 130 interrupted.

Examples:
  shafer sparsify logits.npy                     how many classes each row keeps
  shafer sparsify logits.npy -o sparse.npz       the sparse rows, for scipy.sparse.load_npz
  shafer explain logits.npy --row 7              one row: evidence, belief and what is dropped
  shafer compare logits.npy --html report.html   all methods side by side";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Sparsify(Sparsify),
    Explain(Explain),
    Compare(Compare),
    Heads(Heads),
    Report(Report),
    Completions(Completions),
    /// Print the manual page
    Man,
}

/// Where logits come from.
#[derive(Args, Debug)]
pub(crate) struct Input {
    /// The logits: .npy, .npz, .safetensors, .csv or - for standard input; `file.npz:name` names an
    /// array
    #[arg(value_name = "IN", required_unless_present = "head")]
    pub(crate) logits: Option<String>,

    /// A model instead, whose last linear layer makes logits of --features: .safetensors, .pt or
    /// .onnx; `model.pt:prior.weight` names the layer
    #[arg(long, value_name = "MODEL", conflicts_with = "logits", requires = "features")]
    pub(crate) head: Option<String>,

    /// What enters that layer, one row of features for each row of logits
    #[arg(long, value_name = "FILE", requires = "head")]
    pub(crate) features: Option<String>,

    /// The axis that the classes lie along; negative ones count from the end
    #[arg(long, default_value_t = -1, value_name = "A", allow_negative_numbers = true)]
    pub(crate) axis: isize,

    /// A file with one number for each class; classes with a 0 are masked out of every row, as logits
    /// of -inf are
    #[arg(long, value_name = "FILE")]
    pub(crate) mask: Option<String>,
}

impl fmt::Display for Input {
    /// The file that an error is about.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.logits.as_deref().or(self.features.as_deref()).unwrap_or("input"))
    }
}

/// Make the rows of a file sparse
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  shafer sparsify logits.npy
  shafer sparsify logits.npz:prior -o sparse.npz
  shafer sparsify logits.npy -o dense.npy --method sparsemax --temperature 0.7
  shafer sparsify --head model.pt --features phi.npy -o sparse.npz
  cat logits.csv | shafer sparsify - --json")]
pub(crate) struct Sparsify {
    #[command(flatten)]
    pub(crate) input: Input,

    /// Where to write, by its ending: .npz and .safetensors sparse, .npy dense, .csv as triples;
    /// without it, only the summary is printed
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) method: MethodArgs,
}

/// Explain one row: the evidence for and against each class, and what is kept
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  shafer explain logits.npy --row 7
  shafer explain logits.npy --row 7 --labels names.txt --method sparsemax")]
pub(crate) struct Explain {
    #[command(flatten)]
    pub(crate) input: Input,

    /// Which row, counted from 0
    #[arg(short, long, default_value_t = 0, value_name = "I")]
    pub(crate) row: usize,

    /// Names of the classes, one a line
    #[arg(short, long, value_name = "FILE")]
    pub(crate) labels: Option<PathBuf>,

    /// Show every class, however many there are
    #[arg(short, long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) method: MethodArgs,
}

/// Compare all methods over a whole file
///
/// Each method runs with its default parameters. The table says how many classes it keeps, how much
/// of the softmax mass lies on them, whether the most probable class stays the same, what share of
/// the classes with direct evidence (the evidential support: the modes) it keeps, how far it is
/// from softmax, and how long it takes.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  shafer compare logits.npy
  shafer compare logits.npy --html report.html --labels names.txt
  shafer compare --head model.pt --features phi.npy --json")]
pub(crate) struct Compare {
    #[command(flatten)]
    pub(crate) input: Input,

    /// Write a page for a browser too: plots, a table that sorts, and rows to step through; it
    /// needs nothing but itself
    #[arg(long, value_name = "OUT")]
    pub(crate) html: Option<PathBuf>,

    /// Names of the classes for the page, one a line
    #[arg(short, long, value_name = "FILE", requires = "html")]
    pub(crate) labels: Option<PathBuf>,

    /// Divide the logits by this first
    #[arg(short, long, default_value_t = 1.0, value_name = "T")]
    pub(crate) temperature: f64,
}

/// List the linear layers of a model that may be its head
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  shafer heads model.safetensors")]
pub(crate) struct Heads {
    /// .safetensors, .pt, .pth, .bin or .onnx; nothing in it is executed
    #[arg(value_name = "MODEL")]
    pub(crate) model: PathBuf,
}

/// Draw the figures and the report of experiments again
///
/// Reads results.json in the folder of each run and writes, beside it, report.html and the folder
/// figures, with every figure as SVG and as PNG. Nothing is trained or computed anew. The page needs
/// nothing but itself.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  shafer report runs/mnist
  shafer report runs/* --json")]
pub(crate) struct Report {
    /// Folders of runs
    #[arg(value_name = "DIR", required = true)]
    pub(crate) folders: Vec<PathBuf>,
}

/// Print a completion script
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  shafer completions bash > ~/.local/share/bash-completion/completions/shafer")]
pub(crate) struct Completions {
    /// For which shell
    pub(crate) shell: clap_complete::Shell,
}
