//! `shafer data`: lists, fetches and verifies data sets.

mod curl;
mod fetch;
mod folders;
mod package;
mod program;

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Result, bail};
use serde::Serialize;
use shafer_data::dataset::{ColourSource, Set, set, sets};

pub(crate) use self::folders::{decoded_images, folders};
use crate::cli::{Cli, Data, DataAction};
use crate::commands::{print, print_json};
use crate::interrupt;
use crate::words::counted;

/// Runs the command.
pub(crate) fn run(cli: &Cli, arguments: &Data) -> Result<()> {
    let folders = folders(arguments.data_dir.as_deref());
    match &arguments.action {
        DataAction::List { sets } => list(cli, &named(sets)?, &folders),
        DataAction::Fetch { sets, mirror } => {
            // Fetches into a given folder even if another one has the set.
            let explicit = arguments.data_dir.is_some();
            let folders = if explicit { &folders[..1] } else { &folders[..] };
            run_fetch(cli, &named(sets)?, folders, explicit, mirror.as_deref())
        }
        DataAction::Verify { sets } => verify(cli, sets, &folders),
        DataAction::Path { set: name } => {
            let found = set(name)?.find(&folders)?;
            if cli.json {
                return print_json(&serde_json::json!({ "set": name, "place": found.place() }));
            }
            print(&format!("{}\n", found.place().display()))
        }
    }
}

/// The sets with these names, or all sets.
fn named(names: &[String]) -> Result<Vec<&'static Set>> {
    if names.is_empty() {
        return Ok(sets().iter().collect());
    }
    Ok(names.iter().map(|name| set(name)).collect::<shafer_data::Result<_>>()?)
}

/// An entry of the JSON output of `list`.
#[derive(Serialize)]
struct Listed {
    set: &'static str,
    about: &'static str,
    licence: &'static str,
    classes: &'static [String],
    /// Whether it can be fetched automatically.
    fetches: bool,
    /// Its folder or archive, if it was found.
    place: Option<PathBuf>,
}

/// The names of the classes, where the catalogue has them.
fn classes(set: &Set) -> &[String] {
    match (&set.images, set.colour.as_ref().map(|colour| &colour.source)) {
        (Some(images), _) => &images.classes,
        (None, Some(ColourSource::Cifar(files))) => &files.classes,
        _ => &[],
    }
}

fn list(cli: &Cli, sets: &[&'static Set], folders: &[PathBuf]) -> Result<()> {
    let listed: Vec<Listed> = sets
        .iter()
        .map(|set| Listed {
            set: &set.name,
            about: &set.about,
            licence: &set.licence,
            classes: classes(set),
            fetches: set.manual.is_none(),
            place: set.find(folders).ok().map(|found| found.place().to_owned()),
        })
        .collect();
    if cli.json {
        return print_json(&listed);
    }
    let mut text = String::new();
    for Listed { set, about, licence, fetches, place, .. } in &listed {
        let place = match place {
            Some(place) => format!("in {}", place.display()),
            None if *fetches => format!("not found; run `shafer data fetch {set}`"),
            None => "not found; needs a manual download".to_owned(),
        };
        let _ = writeln!(text, "{set:<14}{about}\n{:<14}licence: {licence}\n{:<14}{place}", "", "");
    }
    print(&text)
}

fn run_fetch(
    cli: &Cli,
    sets: &[&Set],
    folders: &[PathBuf],
    explicit: bool,
    mirror: Option<&str>,
) -> Result<()> {
    // On Ctrl-C, kills the running program and removes temporary files.
    interrupt::hold();
    let mut reports = Vec::new();
    for set in sets {
        let system = if explicit { Vec::new() } else { set.system.clone() };
        let set = Set { system, ..(*set).clone() };
        let report = fetch::fetch(&set, folders, mirror, cli.quiet)?;
        if !cli.json && !cli.quiet {
            print(&described(&report))?;
        }
        reports.push(report);
    }
    if cli.json { print_json(&reports) } else { Ok(()) }
}

fn described(report: &fetch::Report) -> String {
    let place = report.place.display();
    if report.files.is_empty() {
        return format!("{}: complete in {place}, checksums verified\n", report.set);
    }
    let mut text = String::new();
    for note in &report.notes {
        let _ = writeln!(text, "{note}");
    }
    for files in report.files.chunk_by(|a, b| a.from == b.from) {
        let what = match files {
            [file] => file.name.clone(),
            _ => counted(files.len(), "file"),
        };
        let _ = writeln!(text, "{}: {what} from {}", report.set, files[0].from);
    }
    let _ = writeln!(text, "{}: complete in {place}, checksums verified", report.set);
    text
}

/// An entry of the JSON output of `verify`.
#[derive(Serialize)]
struct Verified {
    set: &'static str,
    place: PathBuf,
    files: Vec<VerifiedFile>,
}

#[derive(Serialize)]
struct VerifiedFile {
    name: String,
    right: bool,
    problem: Option<String>,
}

fn verify(cli: &Cli, names: &[String], folders: &[PathBuf]) -> Result<()> {
    let mut verified = Vec::new();
    for set in named(names)? {
        let found = match set.find(folders) {
            Ok(found) => found,
            // Without names, only the sets that are present are verified.
            Err(_) if names.is_empty() => continue,
            Err(error) => return Err(error.into()),
        };
        let files = found.verify().into_iter().map(|check| VerifiedFile {
            name: check.name,
            right: check.problem.is_none(),
            problem: check.problem,
        });
        let (files, place) = (files.collect(), found.place().to_owned());
        verified.push(Verified { set: &set.name, place, files });
    }
    if verified.is_empty() {
        let folders: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
        bail!("no data set in {}; run `shafer data fetch mnist` to get one", folders.join(", "));
    }
    if cli.json {
        print_json(&verified)?;
    } else if !cli.quiet {
        print(&verified.iter().map(verdict).collect::<String>())?;
    }
    let wrong = verified.iter().flat_map(|set| &set.files).filter(|file| !file.right).count();
    if wrong > 0 {
        let are = if wrong == 1 { "is" } else { "are" };
        bail!(
            "{} {are} missing or invalid; run `shafer data fetch` to replace them",
            counted(wrong, "file")
        );
    }
    Ok(())
}

fn verdict(Verified { set, place, files }: &Verified) -> String {
    let place = place.display();
    match files.len() {
        0 => format!("{set}: in {place}, no checksums to verify\n"),
        n if files.iter().all(|file| file.right) => {
            format!("{set}: in {place}, {} verified\n", counted(n, "checksum"))
        }
        _ => {
            files.iter().filter_map(|file| Some(format!("{}\n", file.problem.as_ref()?))).collect()
        }
    }
}
