//! The arguments of the command line.

use std::fmt::Write as _;
#[cfg(feature = "cluster")]
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZero;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, Parser, Subcommand, ValueEnum};
use shafer_sql::{Format, Query};

/// SQL over tables of logits, on this machine or on a cluster.
#[derive(Debug, Parser)]
#[command(name = "shafer-sql", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Print JSON instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Print no progress and no summary
    #[arg(short = 'Q', long, global = true)]
    pub(crate) quiet: bool,

    /// Number of threads [default: all processors]
    #[arg(long, global = true, value_name = "N")]
    threads: Option<usize>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Query(QueryArguments),
    /// List the functions
    Functions,
    #[cfg(feature = "cluster")]
    Scheduler(SchedulerArguments),
    #[cfg(feature = "cluster")]
    Executor(ExecutorArguments),
}

/// Answer a query over Parquet files
///
/// The FROM clause has the path of a file, a folder or a pattern, in quotes.
#[derive(Args, Debug)]
#[command(after_help = query_help())]
pub(crate) struct QueryArguments {
    /// The query
    #[arg(value_name = "SQL")]
    sql: String,

    /// Write the result to a file: .parquet, .csv, .jsonl or .json
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// The format of the result [default: that of the output's name, otherwise a table of the first 100 rows]
    #[arg(long, value_enum)]
    format: Option<FormatName>,

    /// Replace an output that exists
    #[arg(long)]
    pub(crate) force: bool,

    /// Run on the cluster of this scheduler
    #[cfg(feature = "cluster")]
    #[arg(long, value_name = "HOST:PORT")]
    scheduler: Option<String>,
}

/// Start the scheduler of a cluster
///
/// There is no authentication: listen only where everybody may run queries.
#[cfg(feature = "cluster")]
#[derive(Args, Debug)]
pub(crate) struct SchedulerArguments {
    /// The address to listen on; 0.0.0.0 is all of this machine
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub(crate) host: IpAddr,

    /// The port; 0 is any that is free
    #[arg(long, default_value_t = shafer_sql::cluster::PORT)]
    pub(crate) port: u16,
}

/// Start an executor of a cluster, which does --threads tasks at a time
#[cfg(feature = "cluster")]
#[derive(Args, Debug)]
pub(crate) struct ExecutorArguments {
    /// The scheduler
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:50050")]
    pub(crate) scheduler: String,

    /// The address to listen on; 0.0.0.0 is all of this machine
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub(crate) host: IpAddr,

    /// The name by which others reach this machine [default: the address that the scheduler sees]
    #[arg(long, value_name = "NAME")]
    pub(crate) public_host: Option<String>,

    /// The folder of results between stages [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    pub(crate) work_folder: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatName {
    Table,
    Json,
    Jsonl,
    Csv,
    Parquet,
}

impl Cli {
    pub(crate) fn threads(&self) -> Result<usize> {
        match self.threads {
            Some(0) => bail!("--threads is 0, but must be at least 1"),
            Some(threads) => Ok(threads),
            None => Ok(std::thread::available_parallelism().map_or(1, NonZero::get)),
        }
    }
}

impl QueryArguments {
    pub(crate) fn query(&self, threads: usize) -> Query {
        let mut query = Query::new(&self.sql);
        query.threads = threads;
        #[cfg(feature = "cluster")]
        query.scheduler.clone_from(&self.scheduler);
        query
    }

    /// Whether the query can run more than once.
    #[cfg(feature = "cluster")]
    pub(crate) fn on_cluster(&self) -> bool {
        self.scheduler.is_some()
    }

    #[cfg(not(feature = "cluster"))]
    #[allow(clippy::unused_self, reason = "there is a cluster with the feature")]
    pub(crate) fn on_cluster(&self) -> bool {
        false
    }

    /// The format of the option, or else of the output's extension.
    pub(crate) fn format(&self, json: bool) -> Result<Format> {
        if let Some(format) = self.format {
            return Ok(match format {
                FormatName::Table => Format::Table,
                FormatName::Json => Format::Json,
                FormatName::Jsonl => Format::Jsonl,
                FormatName::Csv => Format::Csv,
                FormatName::Parquet => Format::Parquet,
            });
        }
        let Some(output) = &self.output else {
            return Ok(if json { Format::Json } else { Format::Table });
        };
        let ending = output.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        match ending.as_deref() {
            Some("parquet") => Ok(Format::Parquet),
            Some("csv") => Ok(Format::Csv),
            Some("jsonl" | "ndjson") => Ok(Format::Jsonl),
            Some("json") => Ok(Format::Json),
            _ => bail!(
                "{}: the name has no format; end it in .parquet, .csv, .jsonl or .json, or add --format",
                output.display()
            ),
        }
    }
}

/// All functions, one a line.
pub(crate) fn functions_help() -> String {
    let all = shafer_sql::descriptions();
    let width = all.iter().map(|function| function.call.len()).max().unwrap_or(0);
    let mut text = String::new();
    for function in all {
        let _ = writeln!(text, "  {:width$}  {}", function.call, function.gives);
    }
    text
}

fn query_help() -> String {
    format!(
        "\
Functions of columns of lists of logits, beside those of DataFusion:
{}
Examples:
  shafer query \"SELECT id, evidential(logits) AS p, support_size(logits) AS n FROM 'logits/*.parquet'\"
  shafer query \"SELECT id, top_k(logits, 3) AS p FROM 'logits/' WHERE conflict(logits) > 0.5\" -o p.parquet
  shafer query \"SELECT avg(support_size(logits, 'sparsemax')) FROM 'logits/'\" --json
  shafer query \"SELECT id, draw(logits, 'softmax', id) AS class FROM 'a.parquet'\" --format csv
  shafer query \"SELECT * FROM 'a.parquet'\" --scheduler 127.0.0.1:50050",
        functions_help()
    )
}
