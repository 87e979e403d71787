//! The smallest experiment of two stages: train classifiers of points, then measure them.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use shafer_data::Column;
use shafer_data::dataset::Set;
use shafer_nets::training::CrossEntropy;
use shafer_nets::{Classifier, ClassifierConfig, Examples, Step, Trainer};

use crate::drawing::Figure;
use crate::experiments::preset::Preset;
use crate::experiments::report::{Report, Results, VERSION};
use crate::experiments::training::{Training, TrainingRecord};
use crate::experiments::{
    CPU, Columns, Entry, Experiment, Handle, Reproduced, Request, Run, Task, reproduce,
};

/// The line of the registry.
const TOY: Entry = Entry::new::<Toy>("toy", "Bright or dark", PRESETS);

const PRESETS: &[Preset] = &[Preset {
    name: "paper",
    about: "All of it",
    text: "seeds = 3\nepochs = 10\nlearning_rate = 0.1",
}];

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    seeds: u64,
    epochs: usize,
    learning_rate: f64,
}

/// Bright images are of class 1, dark ones of class 0.
struct Data {
    pixels: Vec<u8>,
    labels: Vec<u8>,
}

struct Toy;

impl Experiment for Toy {
    type Config = Config;
    type Data = Data;
    type Results = ToyResults;

    fn check(config: &Config) -> Result<()> {
        if config.seeds == 0 {
            bail!("seeds is 0");
        }
        Ok(())
    }

    fn data_set(_: &Config) -> Result<Option<&'static Set>> {
        Ok(None)
    }

    fn load(_: &Config, _: &[PathBuf]) -> Result<Data> {
        let pixels = (0..64).flat_map(|i| [if i % 2 == 1 { 200 } else { 40 }; 4]).collect();
        Ok(Data { pixels, labels: (0..64).map(|i| i % 2).collect() })
    }

    fn run(config: &Config, data: &Data, run: &Run<'_>) -> Result<(ToyResults, Columns)> {
        let trainings: Vec<_> =
            (0..config.seeds).map(|seed| Train { seed, config, data }).collect();
        let records = run.parallel("training", "batches", &trainings)?;
        let trained = trainings.iter().zip(&records).filter(|(_, record)| !record.diverged);
        let measure = |(training, _): (&Train<'_>, _)| {
            let name = Training::name(training);
            Task {
                name: format!("{name}.accuracy"),
                size: 1,
                run: move |_: &Handle<'_>| -> Result<f64> {
                    let classifier = run.weights(&name, Classifier::from_safetensors)?;
                    Ok(classifier.accuracy(data.examples()?)?)
                },
            }
        };
        let tasks: Vec<_> = trained.map(measure).collect();
        let accuracy = run.sequential("accuracy", "networks", &tasks)?;
        let seeds = (0..config.seeds).map(u64::cast_signed).collect();
        let table = vec![("seed", Column::Integers(seeds))];
        let losses = records.iter().map(|record| record.loss).collect();
        let experiment = ToyResults::KIND.to_owned();
        Ok((ToyResults { version: VERSION, experiment, accuracy, losses }, table))
    }
}

impl Data {
    fn examples(&self) -> Result<Examples<'_>> {
        Ok(Examples::new(&self.pixels, &self.labels, 4)?)
    }
}

struct Train<'a> {
    seed: u64,
    config: &'a Config,
    data: &'a Data,
}

#[derive(Default, Serialize, Deserialize)]
struct Record {
    diverged: bool,
    seconds: f64,
    loss: Option<f64>,
}

impl TrainingRecord for Record {
    fn status(&mut self) -> (&mut bool, &mut f64) {
        (&mut self.diverged, &mut self.seconds)
    }
}

impl<'a> Training for Train<'a> {
    type Model = Classifier;
    type Record = Record;
    type Data = &'a Data;

    const DEPENDS_ON: &'static [&'static str] = &["epochs", "learning_rate"];

    fn name(&self) -> String {
        format!("seed-{}", self.seed)
    }

    fn count(&self) -> usize {
        self.data.labels.len()
    }

    fn config(&self) -> ClassifierConfig {
        let Config { epochs, learning_rate, .. } = *self.config;
        ClassifierConfig { pixels: 4, hidden: 8, classes: 2, learning_rate, batch_size: 16, epochs }
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn load(&self) -> Result<&'a Data> {
        Ok(self.data)
    }

    fn examples<'d>(&self, data: &'d &'a Data) -> Result<Examples<'d>> {
        data.examples()
    }

    fn record(&self) -> Record {
        Record::default()
    }

    fn observe(
        &self,
        record: &mut Record,
        step: &Step<CrossEntropy>,
        _: &Trainer<'_, Classifier>,
    ) -> Result<()> {
        record.loss = Some(step.losses.cross_entropy);
        Ok(())
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct ToyResults {
    version: u32,
    experiment: String,
    accuracy: Vec<f64>,
    losses: Vec<Option<f64>>,
}

impl Report for ToyResults {
    fn name(&self) -> &str {
        Self::KIND
    }

    fn summary(&self) -> String {
        format!("accuracy {:?}\n", self.accuracy)
    }

    fn figures(&self) -> Vec<Figure> {
        Vec::new()
    }

    fn page(&self, _: &[Figure]) -> Result<String> {
        Ok(self.summary())
    }
}

impl Results for ToyResults {
    const KIND: &'static str = "toy";

    fn check(&self) -> Result<()> {
        Ok(())
    }
}

fn run(out: &Path, changes: &[&str], weights: Option<&Path>) -> Result<Reproduced> {
    let changes: Vec<String> = changes.iter().map(|&change| change.to_owned()).collect();
    reproduce(&Request {
        experiment: &TOY,
        preset: "paper",
        seeds: None,
        changes: &changes,
        out,
        folders: &[],
        own_data: false,
        weights,
        device: CPU,
        quiet: true,
    })
}

fn results(run: &Reproduced) -> ToyResults {
    serde_json::from_slice(&std::fs::read(&run.results).unwrap()).unwrap()
}

#[test]
fn an_experiment_is_a_folder_and_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let [out, cut, other] = ["out", "cut", "other"].map(|name| folder.path().join(name));
    let complete = run(&out, &[], None).unwrap();
    assert!(complete.text.starts_with("accuracy [1.0, 1.0, 1.0]"), "{}", complete.text);
    let whole = results(&complete);

    // Jobs that are missing are run again, each in its stage; a record that exists is used as it is.
    for file in ["seed-1.json", "seed-1.weights.safetensors", "seed-1.accuracy.json"] {
        std::fs::remove_file(out.join("trainings").join(file)).unwrap();
    }
    std::fs::write(out.join("trainings/seed-0.accuracy.json"), "0.25").unwrap();
    let again = results(&run(&out, &[], None).unwrap());
    assert_eq!((again.accuracy, &again.losses), (vec![0.25, 1.0, 1.0], &whole.losses));

    // A training that was cut off after six batches ends with the same numbers.
    let config = Config { seeds: 3, epochs: 10, learning_rate: 0.1 };
    let data = &Toy::load(&config, &[]).unwrap();
    let training = Train { seed: 0, config: &config, data };
    let device = shafer_nets::cpu();
    let mut trainer =
        Trainer::<Classifier>::new(&training.config(), data.examples().unwrap(), 0, &device)
            .unwrap();
    for _ in 0..6 {
        trainer.step().unwrap().unwrap();
    }
    let jobs = cut.join("trainings");
    std::fs::create_dir_all(&jobs).unwrap();
    std::fs::write(jobs.join("seed-0.safetensors"), trainer.save().unwrap()).unwrap();
    std::fs::write(jobs.join("seed-0.part.json"), serde_json::to_vec(&training.record()).unwrap())
        .unwrap();
    assert_eq!(results(&run(&cut, &[], None).unwrap()), whole);
    assert!(!jobs.join("seed-0.safetensors").exists() && !jobs.join("seed-0.part.json").exists());

    // Networks of another run are used if their configuration fits.
    let fewer = run(&other, &["seeds=2"], Some(&out)).unwrap();
    assert_eq!(results(&fewer).losses, whole.losses[..2]);
    let error = format!("{:#}", run(&cut.join("x"), &["epochs=12"], Some(&out)).err().unwrap());
    assert!(error.contains("trained with epochs = 10, but this one has 12"), "{error}");
    assert!(!cut.join("x").exists());
}

#[test]
fn a_training_that_diverges_is_recorded_and_the_others_are_measured() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let wild = run(&out, &["learning_rate=1e38", "epochs=20"], None).unwrap();
    let results = results(&wild);
    assert!(results.accuracy.len() < 3, "{results:?}");
    let record = std::fs::read_to_string(out.join("trainings/seed-0.json")).unwrap();
    assert!(record.contains(r#""diverged":true"#), "{record}");
    let error = run(&out, &["seeds=0"], None).err().unwrap();
    assert_eq!(format!("{error:#}"), "the configuration: seeds is 0");
}
