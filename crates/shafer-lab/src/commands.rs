//! Runs the commands: checks arguments, opens inputs and outputs, prints results.

use std::ffi::OsStr;
use std::fmt::{self, Write as _};
use std::io::{self, Write as _};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::CommandFactory as _;
use serde::Serialize;
use shafer_data::{
    ArrayReader, AtomicFile, HeadCandidate, Location, ModelFile, NpyWriter, ParquetWriter,
    RowWriter, TensorInfo,
};

use crate::cli::{
    Audit, Calibrate, Cli, Command, Compare, Explain, Heads, Input, Predict, Reproduce, RowGroups,
    Sparsify, TrueClasses,
};
use crate::columns::Taken;
use crate::explain::Explainer;
use crate::head::HeadReader;
use crate::labels::{Kind, Labels};
use crate::method::{Choice, EVIDENTIAL};
use crate::one_row::one_row;
use crate::output::Source;
use crate::predict::{FrameChoice, JsonPredictions, KeptCounts, PredictionFile};
use crate::progress::Progress;
use crate::sparsify::{Output, Transform};
use crate::stream::Rows;
use crate::terminal::Colours;
use crate::words::counted;
use crate::{
    calibrate, columns, compare, data, demo, experiments, interrupt, memory, output, predict,
    query, sparsify, tables, terminal,
};

/// Runs the command.
pub(crate) fn run(cli: &Cli) -> Result<()> {
    interrupt::listen().context("cannot listen for Ctrl-C")?;
    start_threads(cli.threads)?;
    match &cli.command {
        Command::Demo(arguments) => run_demo(cli, &arguments.out),
        Command::Sparsify(arguments) => run_sparsify(cli, arguments),
        Command::Explain(arguments) => run_explain(cli, arguments),
        Command::Compare(arguments) => run_compare(cli, arguments),
        Command::Calibrate(arguments) => run_calibrate(cli, arguments),
        Command::Audit(arguments) => run_audit(cli, arguments),
        Command::Heads(arguments) => run_heads(cli, arguments),
        Command::Query(arguments) => query::run(cli, &arguments.arguments),
        Command::Data(arguments) => data::run(cli, arguments),
        Command::Reproduce(arguments) => run_reproduce(cli, arguments),
        Command::Predict(arguments) => run_predict(cli, arguments),
        Command::Report(arguments) => run_report(cli, &arguments.folders),
        Command::Completions(arguments) => {
            let mut command = Cli::command();
            let mut script = Vec::new();
            clap_complete::generate(arguments.shell, &mut command, "shafer", &mut script);
            print(&String::from_utf8_lossy(&script))
        }
        Command::Man => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page)?;
            print(&String::from_utf8_lossy(&page))
        }
    }
}

/// Starts the global thread pool. If rayon started it on first use, a failure would panic.
fn start_threads(wanted: Option<usize>) -> Result<()> {
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = match wanted {
        Some(0) => bail!("--threads is 0, but must be at least 1"),
        Some(wanted) if wanted > processors => {
            let used = counted(processors, "thread");
            let _ = writeln!(
                io::stderr(),
                "shafer: --threads {wanted}: using {used}, one per processor"
            );
            processors
        }
        Some(wanted) => wanted,
        None => processors,
    };
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build_global()
        .context("cannot start the threads")
}

/// Prints help or the version.
pub(crate) fn print_help(help: &clap::Error) -> Result<()> {
    help.print().and_then(|()| io::stdout().flush()).context(STANDARD_OUTPUT)
}

/// Refuses an output that is one of the inputs, or that exists and was not written by shafer.
fn check_output(
    input: &Input,
    others: &[Option<&Path>],
    output: Option<&Path>,
    kind: output::Kind,
    force: bool,
) -> Result<()> {
    let Some(output) = output else { return Ok(()) };
    let paths: Vec<Option<PathBuf>> = input.sources().collect();
    let sources = paths.iter().map(|path| match path {
        Some(path) => Source::File(path),
        None => Source::StandardInput,
    });
    let others = others.iter().flatten().map(|path| Source::File(path));
    output::check(&sources.chain(others).collect::<Vec<_>>(), output, kind, force)
}

/// Prints an error in one line and returns its exit code.
pub(crate) fn report_error(error: &anyhow::Error) -> ExitCode {
    let broken_pipe = error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    });
    // The reader closed the pipe, as `head` does. That is not an error.
    if broken_pipe {
        return ExitCode::SUCCESS;
    }
    let _ = writeln!(io::stderr(), "shafer: {error:#}");
    if error.is::<interrupt::Interrupted>() {
        return ExitCode::from(interrupt::EXIT_CODE);
    }
    ExitCode::from(2)
}

fn run_sparsify(cli: &Cli, arguments: &Sparsify) -> Result<()> {
    if let Some(logits) = &arguments.input.logits
        && means_table(logits, arguments)
    {
        return run_sparsify_table(cli, logits, arguments);
    }
    let calibration = arguments.calibration.as_deref().map(calibrate::read).transpose()?;
    let RowGroups { row_groups, row_group } = &arguments.row_groups;
    let has_groups = row_groups.is_some() || row_group.is_some();
    let method = match calibration {
        Some(calibration) => {
            let groups = groups_of(&arguments.input, &arguments.row_groups)?;
            Transform::calibrated(calibration, groups)?
        }
        None if has_groups => {
            bail!("--row-groups and --row-group are for a calibration by group; give --calibration")
        }
        None => Transform::Method(arguments.method.method()?, arguments.method.temperature),
    };
    let output = arguments.output.as_deref();
    let groups = path_of(arguments.row_groups.row_groups.as_deref());
    let others = [arguments.calibration.as_deref(), groups.as_deref()];
    check_output(&arguments.input, &others, output, output::Kind::Rows, arguments.force)?;
    let rows = open(&arguments.input, &arguments.grouping.groups)?;
    let taken = Taken::of(&rows);
    sparsify::check_memory(&rows, output.is_some())
        .map_err(|error| about(error, &arguments.input))?;
    interrupt::hold();
    let output = output.map(|path| create(path, &rows, &method.name())).transpose()?;
    let progress = Progress::new(rows.count(), cli.quiet);
    let report = sparsify::sparsify(rows, method, output, progress)
        .map_err(|error| about(error, &arguments.input))?;
    if cli.json {
        print_json(&taken.beside(&report))
    } else if cli.quiet {
        Ok(())
    } else {
        print(&format!("{report}{taken}"))
    }
}

/// Whether the input is a table of which all columns are meant.
fn means_table(logits: &OsStr, arguments: &Sparsify) -> bool {
    let Sparsify { output, column, keep, dense, .. } = arguments;
    let Some(path) = Location::parse(logits).path else { return false };
    let to_folder = output.as_deref().is_some_and(tables::is_folder);
    column.is_some()
        || keep.is_some()
        || *dense
        || shafer_data::means_several(&path)
        || to_folder && shafer_data::is_table(&path)
}

fn run_sparsify_table(cli: &Cli, logits: &OsStr, arguments: &Sparsify) -> Result<()> {
    let Sparsify { input, output, column, keep, dense, force, grouping, method, .. } = arguments;
    for (given, name) in [
        (input.mask.is_some(), "--mask"),
        (input.axis != -1, "--axis"),
        (!input.columns.is_empty(), "--columns"),
        (!input.exclude.is_empty(), "--exclude"),
        (input.delimiter.is_some(), "--delimiter"),
        (!grouping.groups.is_empty(), "--groups"),
        (arguments.calibration.is_some(), "--calibration"),
        (arguments.row_groups.row_groups.is_some(), "--row-groups"),
        (arguments.row_groups.row_group.is_some(), "--row-group"),
    ] {
        if given {
            bail!("{name} is not for tables with all their columns; leave it out");
        }
    }
    let (path, column) = tables::location(logits, column.as_deref())?;
    if let Some(output) = output.as_deref().filter(|output| !tables::is_folder(output)) {
        let output = output.display();
        bail!("{output}: the output of a table is a folder; write {output}/ for a new one");
    }
    let request = tables::Request {
        method: method.method()?,
        temperature: method.temperature,
        column,
        keep: keep.clone(),
        dense: *dense,
        force: *force,
    };
    let parts = tables::parts(&path, output.as_deref())?;
    let report = tables::sparsify(&parts, &request, cli.quiet)?;
    if cli.json {
        print_json(&report)
    } else if cli.quiet {
        Ok(())
    } else {
        print(&report.to_string())
    }
}

/// Adds the name of the input to an error that does not name its file. Errors of `shafer_data` do, and theirs
/// may be the output.
fn about(error: anyhow::Error, input: &impl fmt::Display) -> anyhow::Error {
    if error.is::<shafer_data::Error>() { error } else { error.context(input.to_string()) }
}

/// Creates an output file for rows. `.npy` is dense and has the shape of the input; `.parquet` stores the
/// name of the method in its metadata.
fn create(path: &Path, rows: &Rows, method: &str) -> Result<Output> {
    let ends_in = |wanted| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(wanted));
    let dense = ends_in("npy");
    let (classes, dtype) = (rows.shape().classes, rows.dtype());
    let writer: Box<dyn RowWriter> = match rows.array_shape() {
        Some(shape) if dense => Box::new(NpyWriter::create(path, classes, dtype)?.shaped(shape)?),
        _ if ends_in("parquet") => {
            Box::new(ParquetWriter::create(path, classes, dtype)?.noted("method", method))
        }
        _ => shafer_data::create(path, classes, dtype)?,
    };
    Ok(Output { writer, dense })
}

fn run_explain(cli: &Cli, arguments: &Explain) -> Result<()> {
    /// Listed in the terminal.
    const SCREEN: usize = 24;
    /// Listed in JSON.
    const LISTED: usize = 1000;
    let method = arguments.method.method()?;
    let names = read_class_names(arguments.class_names.as_deref())?;
    let rows = open(&arguments.input, &arguments.grouping.groups)?;
    let (groups, taken) = (rows.groups().to_vec(), Taken::of(&rows));
    let about = |error| about(error, &arguments.input);
    let most = match (arguments.all, cli.json) {
        (true, _) => usize::MAX,
        (false, true) => LISTED,
        (false, false) => SCREEN,
    };
    Explainer::check_memory(&rows, most).map_err(about)?;
    let (row, logits) = one_row(rows, arguments.row).map_err(about)?;
    check_class_names(&names, logits.len())?;
    let explainer = Explainer {
        row,
        logits: &logits,
        method,
        temperature: arguments.method.temperature,
        labels: &names,
        most,
    };
    let width = terminal::width();
    if groups.len() > 1 {
        let explanation = explainer.groups(&groups, arguments.best).map_err(about)?;
        return if cli.json {
            print_json(&taken.beside(&explanation))
        } else {
            print(&(explanation.text(width) + &taken.to_string()))
        };
    }
    let explanation = explainer.whole().map_err(about)?;
    if cli.json {
        print_json(&taken.beside(&explanation))
    } else {
        print(&(explanation.text(width) + &taken.to_string()))
    }
}

fn run_compare(cli: &Cli, arguments: &Compare) -> Result<()> {
    let names = arguments.class_names.as_deref();
    let labels = path_of(arguments.truth.labels.as_deref());
    let others = [names, labels.as_deref()];
    let html = arguments.html.as_deref();
    check_output(&arguments.input, &others, html, output::Kind::Page, arguments.force)?;
    let names = read_class_names(names)?;
    let rows = open(&arguments.input, &[])?;
    let (classes, taken) = (rows.shape().classes, Taken::of(&rows));
    check_class_names(&names, classes)?;
    compare::check_memory(&rows).map_err(|error| about(error, &arguments.input))?;
    let labels = true_classes(&arguments.input, &arguments.truth)?;
    interrupt::hold();
    // Created before the work, so that an unwritable path fails at once.
    let page = arguments.html.as_deref().map(AtomicFile::create).transpose()?;
    let progress = Progress::new(rows.count(), cli.quiet);
    let name = arguments.input.to_string();
    let choices =
        if arguments.methods.is_empty() { Choice::all() } else { arguments.methods.clone() };
    let methods = choices.iter().map(|choice| choice.method(classes)).collect::<Result<_>>()?;
    let temperature = arguments.temperature;
    let request = compare::Request { methods, temperature, labels, page: page.is_some() };
    let comparison = compare::compare(&name, rows, request, progress)
        .map_err(|error| about(error, &arguments.input))?;
    if let (Some(mut page), Some(path)) = (page, &arguments.html) {
        page.write_all(compare::html(&comparison, &names)?.as_bytes())
            .with_context(|| format!("{}: cannot write", path.display()))?;
        page.commit()?;
    }
    if cli.json {
        print_json(&taken.beside(&comparison))
    } else if cli.quiet {
        Ok(())
    } else {
        let mut text = comparison.text(terminal::width()) + &taken.to_string();
        if let Some(path) = &arguments.html {
            let _ = writeln!(text, "page written to {}", path.display());
        }
        print(&text)
    }
}

fn run_calibrate(cli: &Cli, arguments: &Calibrate) -> Result<()> {
    let TrueClasses { labels, .. } = &arguments.truth;
    let groups = arguments.row_groups.row_groups.as_deref();
    let [labels, groups] = [labels.as_deref(), groups].map(path_of);
    let others = [labels.as_deref(), groups.as_deref()];
    let (output, kind) = (arguments.output.as_deref(), output::Kind::Calibration);
    check_output(&arguments.input, &others, output, kind, arguments.force)?;
    let rows = open(&arguments.input, &[])?;
    let taken = Taken::of(&rows);
    compare::check_memory(&rows).map_err(|error| about(error, &arguments.input))?;
    let name = arguments.input.to_string();
    let request = calibrate::Request {
        score: arguments.score,
        miss: arguments.miss,
        confidence: arguments.confidence,
        labels: required(true_classes(&arguments.input, &arguments.truth)?)?,
        by: arguments.by,
        groups: groups_of(&arguments.input, &arguments.row_groups)?,
        keep_all: arguments.keep_all,
        name: &name,
    };
    interrupt::hold();
    let progress = Progress::new(rows.count(), cli.quiet);
    let calibrated = calibrate::calibrate(rows, request, progress)
        .map_err(|error| about(error, &arguments.input))?;
    if let Some(path) = output {
        calibrate::write(path, &calibrated)?;
    }
    if cli.json {
        print_json(&taken.beside(&calibrated))
    } else if cli.quiet {
        Ok(())
    } else {
        print(&format!("{calibrated}{taken}"))
    }
}

fn run_audit(cli: &Cli, arguments: &Audit) -> Result<()> {
    let TrueClasses { labels, .. } = &arguments.truth;
    let groups = arguments.row_groups.row_groups.as_deref();
    let [labels, groups] = [labels.as_deref(), groups].map(path_of);
    let others = [labels.as_deref(), groups.as_deref(), arguments.calibration.as_deref()];
    let (plot, kind) = (arguments.plot.as_deref(), output::Kind::Drawing);
    check_output(&arguments.input, &others, plot, kind, arguments.force)?;
    let calibration = arguments.calibration.as_deref().map(calibrate::read).transpose()?;
    let rows = open(&arguments.input, &[])?;
    let (classes, taken) = (rows.shape().classes, Taken::of(&rows));
    compare::check_memory(&rows).map_err(|error| about(error, &arguments.input))?;
    let choices = arguments.methods.iter();
    let request = calibrate::AuditRequest {
        methods: choices.map(|choice| choice.method(classes)).collect::<Result<_>>()?,
        calibration,
        labels: required(true_classes(&arguments.input, &arguments.truth)?)?,
        by: arguments.by,
        groups: groups_of(&arguments.input, &arguments.row_groups)?,
        temperature: arguments.temperature,
        confidence: arguments.confidence,
        plot: plot.is_some(),
    };
    interrupt::hold();
    let progress = Progress::new(rows.count(), cli.quiet);
    let report = calibrate::audit(rows, request, progress)
        .map_err(|error| about(error, &arguments.input))?;
    let mut notes = String::new();
    if let Some(path) = plot {
        let cut = report.draw(&arguments.input.to_string(), path)?;
        let of = if cut { " of the first rows" } else { "" };
        let _ = writeln!(notes, "plot{of} written to {}", path.display());
    }
    if cli.json {
        print_json(&taken.beside(&report))
    } else if cli.quiet {
        Ok(())
    } else {
        print(&format!("{report}{taken}{notes}"))
    }
}

/// The true class of each row, if it is given.
fn true_classes(input: &Input, given: &TrueClasses) -> Result<Option<Labels>> {
    integers(input, given.labels.as_deref(), given.label.as_deref(), Kind::Label)
}

/// The group of each row, if it is given.
fn groups_of(input: &Input, given: &RowGroups) -> Result<Option<Labels>> {
    integers(input, given.row_groups.as_deref(), given.row_group.as_deref(), Kind::Group)
}

/// Integers of a file, or of a column of the table that the rows are from.
fn integers(
    input: &Input,
    file: Option<&OsStr>,
    column: Option<&str>,
    kind: Kind,
) -> Result<Option<Labels>> {
    match (file, column) {
        (Some(file), _) => Labels::open(file, kind).map(Some),
        (None, Some(column)) => Labels::of_parts(&files(input)?, column, kind).map(Some),
        (None, None) => Ok(None),
    }
}

/// The parser of arguments has made sure that it is given.
fn required(labels: Option<Labels>) -> Result<Labels> {
    labels.context("the true class of each row is missing; give --labels FILE or --label COLUMN")
}

/// The file of an input; `None` for standard input, and without a name.
fn path_of(name: Option<&OsStr>) -> Option<PathBuf> {
    name.and_then(|name| Location::parse(name).path)
}

fn run_heads(cli: &Cli, arguments: &Heads) -> Result<()> {
    let model = &arguments.model;
    if arguments.all {
        let model = ModelFile::open(model)?;
        let tensors = model.tensors();
        if cli.json {
            let tensor = |tensor: &TensorInfo| {
                let TensorInfo { name, dtype, shape } = tensor;
                serde_json::json!({ "name": name, "dtype": dtype, "shape": shape })
            };
            return print_json(&tensors.iter().map(tensor).collect::<Vec<_>>());
        }
        let mut text = String::new();
        for tensor in tensors {
            let _ = writeln!(text, "{tensor}");
        }
        return print(&text);
    }
    let heads = shafer_data::heads(model)?;
    if cli.json {
        let head = |head: &HeadCandidate| {
            serde_json::json!({
                "weight": head.weight,
                "bias": head.bias,
                "features": head.features,
                "classes": head.classes,
                "reason": head.reason,
                "doubt": head.doubt.map(|doubt| doubt.to_string()),
            })
        };
        return print_json(&heads.iter().map(head).collect::<Vec<_>>());
    }
    let line = |head: &HeadCandidate| match head.doubt {
        None => format!("{head}: {}\n", head.reason),
        Some(doubt) => format!("{head}: {}, but {doubt}\n", head.reason),
    };
    print(&heads.iter().map(line).collect::<String>())
}

fn run_demo(cli: &Cli, out: &Path) -> Result<()> {
    const NETWORKS: usize = 64 << 20;
    memory::check(NETWORKS, "the networks of the demo")?;
    let demo = demo::demo(out)?;
    if cli.json {
        print_json(&demo)
    } else if cli.quiet {
        Ok(())
    } else {
        print(&demo.text(Colours::of_standard_output()))
    }
}

fn run_reproduce(cli: &Cli, arguments: &Reproduce) -> Result<()> {
    let experiment = experiments::find(&arguments.experiment)?;
    let mut name = format!("{}-{}", experiment.name, arguments.preset);
    let mut changes = Vec::new();
    for meaning in arguments.options.meanings(experiment)? {
        let _ = write!(name, "-{}", meaning.suffix);
        changes.push(meaning.change);
    }
    // Last, so that an explicit --set takes precedence.
    changes.extend_from_slice(&arguments.changes);
    let out = arguments.out.clone().unwrap_or_else(|| PathBuf::from("shafer-runs").join(name));
    let device = arguments.device.clone().or_else(|| std::env::var("SHAFER_DEVICE").ok());
    let device = device.unwrap_or_else(|| experiments::CPU.to_owned());
    let reproduced = experiments::reproduce(&experiments::Request {
        experiment,
        preset: &arguments.preset,
        seeds: arguments.seeds,
        changes: &changes,
        out: &out,
        folders: &data::folders(arguments.data_dir.as_deref()),
        own_data: arguments.own_data,
        weights: arguments.weights.as_deref(),
        device: &device,
        quiet: cli.quiet,
    })?;
    if cli.json {
        print_json(&reproduced)
    } else if cli.quiet {
        Ok(())
    } else {
        print(&reproduced.text)
    }
}

fn run_predict(cli: &Cli, arguments: &Predict) -> Result<()> {
    const NETWORK: usize = 32 << 20;
    let methods = match &arguments.methods[..] {
        [] => &[EVIDENTIAL.parse()?],
        methods => methods,
    };
    let calibration = arguments.calibration.as_deref().map(calibrate::read).transpose()?;
    let inputs =
        [Some(&arguments.scene), arguments.weights.as_ref(), arguments.calibration.as_ref()];
    let inputs: Vec<_> = inputs.into_iter().flatten().map(|path| Source::File(path)).collect();
    let outputs =
        [(&arguments.output, output::Kind::Prediction), (&arguments.html, output::Kind::Page)];
    for (path, kind) in outputs {
        if let Some(path) = path {
            output::check(&inputs, path, kind, arguments.force)?;
        }
    }
    memory::check(NETWORK, "the network and its predictions")?;
    let forecaster = predict::Forecaster::new(&predict::Request {
        scene: &arguments.scene,
        rate: arguments.fps,
        units: arguments.units,
        weights: arguments.weights.as_deref(),
        methods,
        calibration: calibration.as_ref(),
    })?;
    let frames = forecaster.frames(arguments.frame)?;
    let all = arguments.frame == FrameChoice::All;
    interrupt::hold();
    // Created before the work, so that an unwritable path fails at once.
    let mut output =
        arguments.output.as_deref().map(|path| PredictionFile::create(path, all)).transpose()?;
    let page = arguments.html.as_deref().map(AtomicFile::create).transpose()?;
    for warning in forecaster.warnings() {
        let _ = writeln!(io::stderr(), "shafer: {}: {warning}", arguments.scene.display());
    }
    let on_page = if page.is_some() { predict::shown(&frames) } else { Vec::new() };
    let mut pictured = Vec::new();
    let mut list = (cli.json && all).then(|| JsonPredictions::new(io::stdout().lock(), true));
    let mut kept = KeptCounts::default();
    let mut single = None;
    let mut progress =
        Progress::counted("predicting", "frames", frames.len() as u64, cli.quiet || cli.json);
    for &frame in &frames {
        interrupt::check()?;
        let prediction = forecaster.at(frame)?;
        if let Some(output) = &mut output {
            output.write(&prediction)?;
        }
        if let Some(list) = &mut list {
            list.write(&prediction)?;
        }
        kept.add(&prediction);
        if on_page.binary_search(&frame).is_ok() {
            pictured.push(prediction.clone());
        }
        single = Some(prediction);
        progress.add(1);
    }
    drop(progress);
    if let (Some(mut page), Some(path)) = (page, &arguments.html) {
        page.write_all(predict::page(&pictured, frames.len())?.as_bytes())
            .with_context(|| format!("{}: cannot write", path.display()))?;
        page.commit()?;
    }
    if let Some(output) = output {
        output.finish()?;
    }
    match single {
        _ if list.is_some() => {
            list.map(JsonPredictions::finish).transpose()?;
            Ok(())
        }
        Some(prediction) if cli.json => print_json(&prediction),
        _ if cli.quiet => Ok(()),
        Some(prediction) if !all => print(&prediction.text()),
        _ => print(&kept.text(&arguments.scene, forecaster.pedestrians())),
    }
}

fn run_report(cli: &Cli, folders: &[PathBuf]) -> Result<()> {
    // Reads all results before drawing any, so that a bad file fails at once.
    let runs = folders
        .iter()
        .map(|folder| Ok((folder, experiments::read(folder)?)))
        .collect::<Result<Vec<_>>>()?;
    let mut drawn = Vec::new();
    for (folder, results) in runs {
        interrupt::check()?;
        drawn.push(experiments::draw(folder, &*results)?);
    }
    if cli.json {
        return print_json(&drawn);
    }
    if cli.quiet {
        return Ok(());
    }
    let line = |run: &experiments::Drawn| {
        let figures = counted(run.figures.len() / 2, "figure");
        format!("{}: {}, {figures}\n", run.data_set, run.report.display())
    };
    print(&drawn.iter().map(line).collect::<String>())
}

/// The files of an input: one, or those of a folder or a pattern.
fn files(input: &Input) -> Result<Vec<PathBuf>> {
    let logits = input.logits.as_deref().unwrap_or_default();
    let (path, _) = tables::location(logits, None)?;
    Ok(tables::parts(&path, None)?.into_iter().map(|part| part.input).collect())
}

fn open(input: &Input, groups: &[usize]) -> Result<Rows> {
    let streams = [&input.logits, &input.features, &input.mask].into_iter().flatten();
    if streams.filter(|name| Location::parse(name).path.is_none()).count() > 1 {
        bail!("standard input (-) is used for two inputs; give one of them as a file");
    }
    let reader: Box<dyn ArrayReader> = match (&input.logits, &input.head, &input.features) {
        (Some(logits), ..) => {
            let at = Location::parse(logits);
            let several = at.path.as_deref().is_some_and(shafer_data::means_several);
            let reader = if several {
                let name = at.name.as_deref();
                shafer_data::open_parts(&files(input)?, name, &input.table_options())?
            } else {
                shafer_data::open_with(&at, &input.table_options())?
            };
            columns::check_classes(&*reader).with_context(|| input.to_string())?;
            reader
        }
        (None, Some(model), Some(features)) => {
            let at = Location::parse(model);
            let Some(path) = &at.path else { bail!("a model cannot be read from standard input") };
            let head = input.head_request(at.name.as_deref()).load(path)?;
            let wanted = head.features;
            let reader =
                shafer_data::open_with(&Location::parse(features), &input.table_options())?;
            let found = reader.info().to_string();
            let reader = HeadReader::new(reader, head).with_context(|| {
                let features = Path::new(features).display();
                format!("{features}: is {found}, but the head needs rows of {wanted} features")
            })?;
            Box::new(reader)
        }
        _ => bail!("no input; give a file of logits, or --head and --features"),
    };
    let rows = Rows::new(reader, input.axis)
        .and_then(|rows| rows.grouped(groups))
        .with_context(|| input.to_string())?;
    let Some(mask) = &input.mask else { return Ok(rows) };
    rows.masked(shafer_data::open_mask(&Location::parse(mask))?)
        .map_err(|error| about(error, &Path::new(mask).display()))
}

/// The lines of a file of class names; none without a file.
fn read_class_names(path: Option<&Path>) -> Result<Vec<String>> {
    let Some(path) = path else { return Ok(Vec::new()) };
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("{}: cannot read the class names", path.display()))?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// Fails unless there is one name per class, or none at all.
fn check_class_names(names: &[String], classes: usize) -> Result<()> {
    if names.is_empty() || names.len() == classes {
        return Ok(());
    }
    let (names, classes) = (counted(names.len(), "name"), counted(classes, "class"));
    bail!("--class-names has {names}, but there are {classes}; write one name per line")
}

const STANDARD_OUTPUT: &str = "cannot write to standard output";

pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context(STANDARD_OUTPUT)
}

pub(crate) fn print_json(value: &impl Serialize) -> Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    serde_json::to_writer_pretty(&mut out, value)
        .map_err(io::Error::from)
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush())
        .context(STANDARD_OUTPUT)
}
