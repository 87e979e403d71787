//! The command line tool `shafer-sql`, which `shafer query` starts.

mod cli;

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::Parser as _;
use indicatif::{ProgressBar, ProgressStyle};
use shafer_sql::{Counts, Format, Lost, Output, Prepared};

use crate::cli::{Cli, Command, QueryArguments};

/// The same as in `shafer`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Plans of long queries are deep, and walked by recursion.
const STACK: usize = 16 << 20;
/// The most runs of a query whose results were lost with an executor.
const RUNS: usize = 3;
const PROGRESS_AFTER: Duration = Duration::from_secs(2);
/// 128 + SIGINT, the exit code that shells use.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(usage) => usage.exit(),
    };
    // Panics of the engine in a damaged file are errors, which are printed in one line.
    std::panic::set_hook(Box::new(|_| {}));
    match std::panic::catch_unwind(|| start(&cli)) {
        Ok(Ok(code)) => code,
        Ok(Err(error)) => report(&format!("{error:#}"), &error),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            let text = text.unwrap_or_default();
            let error = anyhow::anyhow!("the engine failed: {text}; please report it");
            report(&error.to_string(), &error)
        }
    }
}

fn report(text: &str, error: &anyhow::Error) -> ExitCode {
    let broken_pipe = error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    });
    // The reader closed the pipe, as `head` does. That is not an error.
    if broken_pipe {
        return ExitCode::SUCCESS;
    }
    let _ = writeln!(io::stderr(), "shafer-sql: {}", text.replace('\n', " "));
    ExitCode::from(2)
}

fn start(cli: &Cli) -> Result<ExitCode> {
    let threads = cli.threads()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_stack_size(STACK)
        .enable_all()
        .build()
        .context("cannot start the threads")?;
    // An executor tells its scheduler that it ends.
    let asks = matches!(cli.command, Command::Query(_));
    let code = runtime.block_on(async {
        tokio::select! {
            done = run(cli, threads) => done.map(|()| ExitCode::SUCCESS),
            interrupted = tokio::signal::ctrl_c(), if asks => {
                interrupted.context("cannot listen for Ctrl-C")?;
                let _ = writeln!(io::stderr(), "shafer-sql: interrupted; nothing was written");
                Ok(ExitCode::from(INTERRUPTED))
            }
        }
    });
    // Not after threads that still read.
    runtime.shutdown_background();
    code
}

async fn run(cli: &Cli, threads: usize) -> Result<()> {
    match &cli.command {
        Command::Query(arguments) => query(cli, arguments, threads).await,
        Command::Functions => list(cli.json),
        #[cfg(feature = "cluster")]
        Command::Scheduler(arguments) => {
            let scheduler =
                shafer_sql::cluster::Scheduler { host: arguments.host, port: arguments.port };
            scheduler.run(|address| ready(&format!("scheduler at {address}"))).await
        }
        #[cfg(feature = "cluster")]
        Command::Executor(arguments) => {
            let executor = shafer_sql::cluster::Executor {
                scheduler: arguments.scheduler.clone(),
                host: arguments.host,
                public_host: arguments.public_host.clone(),
                threads,
                work_folder: arguments.work_folder.clone(),
            };
            let of = format!("for the scheduler at {}", arguments.scheduler);
            executor.run(|address| ready(&format!("executor at {address} {of}"))).await
        }
    }
}

#[cfg(feature = "cluster")]
fn ready(what: &str) {
    let _ = writeln!(io::stdout(), "{what}");
    let _ = io::stdout().flush();
}

async fn query(cli: &Cli, arguments: &QueryArguments, threads: usize) -> Result<()> {
    let format = arguments.format(cli.json)?;
    let query = arguments.query(threads);
    let prepared = query.prepare().await?;
    if let Some(path) = &arguments.output {
        prepared.check_output(path)?;
        if path.exists() && !arguments.force {
            bail!("{}: exists; --force replaces it", path.display());
        }
    }
    let start = Instant::now();
    let mut run = 1;
    let counts = loop {
        match once(cli, arguments, format, &prepared).await {
            Err(error) if error.is::<Lost>() && run < RUNS => {
                run += 1;
                let _ = writeln!(io::stderr(), "shafer-sql: {error}; run {run} of {RUNS}");
            }
            done => break done?,
        }
    };
    let Some(path) = &arguments.output else { return Ok(()) };
    let (rows, path, seconds) = (counts.rows, path.display(), start.elapsed().as_secs_f64());
    let text = if cli.json {
        let report =
            serde_json::json!({ "output": path.to_string(), "rows": rows, "seconds": seconds });
        format!("{report:#}\n")
    } else if cli.quiet {
        String::new()
    } else {
        format!("{path}: {rows} {}\n", if rows == 1 { "row" } else { "rows" })
    };
    io::stdout().write_all(text.as_bytes()).context("cannot write to standard output")
}

/// Runs the query and writes its result.
async fn once(
    cli: &Cli,
    arguments: &QueryArguments,
    format: Format,
    prepared: &Prepared,
) -> Result<Counts> {
    let mut output = match &arguments.output {
        Some(path) => Output::file(path, format)?,
        None => Output::standard(format, !arguments.on_cluster())?,
    };
    let progress = progress(cli.quiet);
    let start = Instant::now();
    let mut rows = 0;
    let counts = prepared
        .run(&mut |batch| {
            rows += batch.num_rows() as u64;
            progress.set_position(rows);
            if start.elapsed() > PROGRESS_AFTER {
                progress.enable_steady_tick(Duration::from_millis(200));
            }
            output.write(batch)
        })
        .await;
    progress.finish_and_clear();
    let counts = counts?;
    output.finish(&counts.schema, counts.explains)?;
    Ok(counts)
}

/// A counter of rows, hidden if standard error is not a terminal.
fn progress(quiet: bool) -> ProgressBar {
    if quiet || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {elapsed} {pos} rows");
    ProgressBar::new_spinner()
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
}

fn list(json: bool) -> Result<()> {
    let all = shafer_sql::descriptions();
    let text = if json {
        let all: Vec<_> = all
            .iter()
            .map(|function| serde_json::json!({ "call": function.call, "gives": function.gives }))
            .collect();
        format!("{:#}\n", serde_json::Value::from(all))
    } else {
        cli::functions_help()
    };
    io::stdout().write_all(text.as_bytes()).context("cannot write to standard output")
}
