//! From the records of trainings to results.

use std::collections::{BTreeMap, HashSet};

use anyhow::{Context as _, Result, bail};
use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;
use shafer::Sampler;
use shafer_data::Column;

use super::measure::{Distributions, Measured, PerMethod, PerQuery, Series, judged};
use super::record::SeedRecord;
use super::results::{
    BOTH, Bars, ByQuery, Evolution, Exemplar, Final, Gains, ImageResults, Improvement, QueryBars,
    Reduced, Table, TargetFrom, Training, WithoutCollapsed, check_queries,
};
use crate::experiments::Columns;
use crate::experiments::methods::{self, Method, MethodName};
use crate::experiments::origin::Origin;
use crate::experiments::report::{Results as _, VERSION};
use crate::experiments::statistics::{CONFIDENCE, Curve, Gain, Summary, mean};
use crate::method::{EVIDENTIAL, SOFTMAX, SPARSEMAX};

/// What results contain besides measurements.
#[derive(Clone, Debug)]
pub(crate) struct Meta {
    pub(crate) data_set: String,
    /// The names of the queries, in the order of the logits.
    pub(crate) queries: Vec<String>,
    pub(crate) origin: Origin,
    pub(crate) target: TargetFrom,
    /// The seed to show; `None` chooses the first with images that neither diverged nor collapsed.
    pub(crate) exemplar: Option<u64>,
    /// The number of samples to draw for it.
    pub(crate) samples: usize,
}

/// The evaluation of trainings. Those on the whole data set (fraction 1) are the experiment, the others are reduced
/// data. Class k of K lies at `k / (K - 1)` for the Wasserstein distance; everything is computed in f64.
pub(crate) struct Evaluation<'a> {
    meta: &'a Meta,
    records: &'a [SeedRecord],
    classes: usize,
    methods: Vec<Method>,
    /// The trainings that did not diverge.
    measured: Vec<Measured<'a>>,
}

/// One of the measurements.
type Part<T> = for<'s, 'r> fn(&'s Measured<'r>) -> &'s T;
/// One series of a training.
type Of<'f> = &'f dyn for<'s, 'r> Fn(&'s Measured<'r>) -> &'s Series;

/// The tables that exist at the end of training as well as over its course.
struct Tables<T> {
    bhattacharyya: Table<T>,
    wasserstein: Table<T>,
    kept: Table<T>,
    ignorance: ByQuery<T>,
    internal_conflict: ByQuery<T>,
}

impl<'a> Evaluation<'a> {
    pub(crate) fn new(meta: &'a Meta, records: &'a [SeedRecord]) -> Result<Self> {
        check_queries(&meta.queries)?;
        let Some(classes) = records.iter().find_map(SeedRecord::classes) else {
            bail!("there is no training with a checkpoint");
        };
        let mut seen = HashSet::new();
        for record in records {
            record.check(meta.queries.len(), classes).with_context(|| name(record))?;
            if !seen.insert((record.seed, record.fraction.to_bits())) {
                bail!("{} is there twice", name(record));
            }
        }
        let methods = methods::all(classes)?;
        let measured = records
            .iter()
            .filter(|record| !record.diverged)
            .map(|record| {
                Measured::of(record, &methods, &meta.queries, meta.target)
                    .with_context(|| name(record))
            })
            .collect::<Result<_>>()?;
        Ok(Self { meta, records, classes, methods, measured })
    }

    pub(crate) fn results(&self) -> Result<ImageResults> {
        let whole: Vec<&Measured<'_>> =
            self.measured.iter().filter(|seed| seed.record.fraction == 1.0).collect();
        let Some(first) = whole.first() else {
            bail!("there is no training on the whole data set that did not diverge");
        };
        let iterations: Vec<u64> = first.iterations().collect();
        if let Some(seed) =
            whole.iter().find(|seed| !seed.iterations().eq(iterations.iter().copied()))
        {
            bail!(
                "{} has other checkpoints than {}: means over seeds need the same",
                name(seed.record),
                name(first.record)
            );
        }
        let (meta, origin) = (self.meta, &self.meta.origin);
        let main = Count::of(self.records, 1.0);
        Ok(ImageResults {
            version: VERSION,
            experiment: ImageResults::KIND.to_owned(),
            data_set: meta.data_set.clone(),
            queries: meta.queries.clone(),
            methods: self.methods.iter().map(MethodName::of).collect(),
            classes: self.classes,
            seeds: main.seeds,
            collapsed: main.collapsed,
            diverged: main.diverged,
            steps: whole.iter().map(|seed| seed.record.steps).max().unwrap_or(0),
            wall_seconds: origin.wall_seconds,
            revision: origin.revision.clone(),
            machine: origin.machine.clone(),
            config: origin.config.clone(),
            target: meta.target,
            final_values: self.final_values(&whole),
            improvement: self.improvement(&whole),
            evolution: self.evolution(&whole, &iterations),
            without_collapsed: healthy(&whole).map(|healthy| WithoutCollapsed {
                final_values: self.final_values(&healthy),
                improvement: self.improvement(&healthy),
                evolution: self.evolution(&healthy, &iterations),
            }),
            reduced: self.reduced(),
            exemplar: self.exemplar(&whole)?,
            trainings: self.records.iter().map(|record| self.training(record)).collect(),
        })
    }

    /// A row for each training that did not diverge, checkpoint, query and method.
    pub(crate) fn columns(&self) -> Columns {
        let [mut seed, mut iteration, mut kept, mut collapsed] = [const { Vec::new() }; 4];
        let [mut fraction, mut bhattacharyya, mut wasserstein] = [const { Vec::new() }; 3];
        let [mut query_name, mut method_name] = [const { Vec::new() }; 2];
        for measured in &self.measured {
            let record = measured.record;
            for (point, checkpoint) in record.checkpoints.iter().enumerate() {
                for (query, name) in self.meta.queries.iter().enumerate() {
                    for (place, (_, method)) in self.methods.iter().enumerate() {
                        seed.push(record.seed.cast_signed());
                        fraction.push(record.fraction);
                        collapsed.push(i64::from(record.collapsed));
                        iteration.push(checkpoint.iteration.cast_signed());
                        query_name.push(name.clone());
                        method_name.push(method.name().to_owned());
                        bhattacharyya.push(measured.bhattacharyya[query][place][point]);
                        wasserstein.push(measured.wasserstein[query][place][point]);
                        kept.push(measured.kept[query][place][point] as i64);
                    }
                }
            }
        }
        vec![
            ("seed", Column::Integers(seed)),
            ("fraction", Column::Numbers(fraction)),
            ("collapsed", Column::Integers(collapsed)),
            ("iteration", Column::Integers(iteration)),
            ("query", Column::Words(query_name)),
            ("method", Column::Words(method_name)),
            ("bhattacharyya", Column::Numbers(bhattacharyya)),
            ("wasserstein", Column::Numbers(wasserstein)),
            ("kept", Column::Integers(kept)),
        ]
    }

    fn by_query<T>(&self, mut value: impl FnMut(usize) -> T) -> ByQuery<T> {
        let queries = self.meta.queries.iter().enumerate();
        queries.map(|(query, name)| (name.clone(), value(query))).collect()
    }

    fn table<T>(&self, mut value: impl FnMut(usize, usize) -> T) -> Table<T> {
        self.by_query(|query| {
            let methods = self.methods.iter().enumerate();
            methods
                .map(|(place, (_, method))| (method.name().to_owned(), value(query, place)))
                .collect()
        })
    }

    fn tables<T>(&self, value: impl Fn(Of<'_>) -> T) -> Tables<T> {
        let table = |part: Part<PerMethod>| {
            self.table(|query, method| value(&move |seed| &part(seed)[query][method]))
        };
        let by_query =
            |part: Part<PerQuery>| self.by_query(|query| value(&move |seed| &part(seed)[query]));
        Tables {
            bhattacharyya: table(|seed| &seed.bhattacharyya),
            wasserstein: table(|seed| &seed.wasserstein),
            kept: table(|seed| &seed.kept),
            ignorance: by_query(|seed| &seed.ignorance),
            internal_conflict: by_query(|seed| &seed.internal_conflict),
        }
    }

    fn final_values(&self, seeds: &[&Measured<'_>]) -> Final {
        let last = |series: Of<'_>| {
            Summary::of(seeds.iter().filter_map(|seed| series(seed).last().copied()))
        };
        let Tables { bhattacharyya, wasserstein, kept, ignorance, internal_conflict } =
            self.tables(last);
        let judged = seeds.iter().any(|seed| seed.wrong.is_some());
        let wrong = judged.then(|| {
            self.table(|query, method| {
                let wrong = |seed: &&Measured<'_>| Some(seed.wrong.as_ref()?[query][method]);
                Summary::of(seeds.iter().filter_map(wrong))
            })
        });
        Final { bhattacharyya, wasserstein, kept, wrong, ignorance, internal_conflict }
    }

    fn evolution(&self, seeds: &[&Measured<'_>], iterations: &[u64]) -> Evolution {
        let curve = |series: Of<'_>| {
            let summary = |point| Summary::of(seeds.iter().map(|seed| series(seed)[point]));
            Curve::of((0..iterations.len()).map(summary))
        };
        let Tables { bhattacharyya, wasserstein, kept, ignorance, internal_conflict } =
            self.tables(curve);
        let iterations = iterations.to_vec();
        Evolution { iterations, bhattacharyya, wasserstein, kept, ignorance, internal_conflict }
    }

    fn improvement(&self, seeds: &[&Measured<'_>]) -> Improvement {
        let gains = |points: fn(&Series) -> &[f64]| Gains {
            bhattacharyya: self.gains(seeds, points, |seed| &seed.bhattacharyya),
            wasserstein: self.gains(seeds, points, |seed| &seed.wasserstein),
        };
        Improvement {
            confidence: CONFIDENCE,
            final_values: gains(|series| &series[series.len() - 1..]),
            training: gains(|series| series),
        }
    }

    /// Of evidential over the baselines, for each query and for all, at some points of the training.
    fn gains(
        &self,
        seeds: &[&Measured<'_>],
        points: fn(&Series) -> &[f64],
        part: Part<PerMethod>,
    ) -> Table<Gain> {
        let place = |name: &str| self.methods.iter().position(|(_, method)| method.name() == name);
        let gain = |queries: &[usize], baseline: &str| {
            let (method, baseline) = (place(EVIDENTIAL)?, place(baseline)?);
            let mut infinite = 0;
            let mut pairs = Vec::new();
            for seed in seeds {
                let (mut baselines, mut ours) = (Vec::new(), Vec::new());
                for &query in queries {
                    let series = &part(seed)[query];
                    for (b, m) in points(&series[baseline]).iter().zip(points(&series[method])) {
                        if b.is_finite() && m.is_finite() {
                            baselines.push(*b);
                            ours.push(*m);
                        } else {
                            infinite += 1;
                        }
                    }
                }
                pairs.extend(mean(&baselines).zip(mean(&ours)));
            }
            Some(Gain::of(&pairs, infinite))
        };
        let row = |queries: &[usize]| -> BTreeMap<String, Gain> {
            let entry = |name: &str| Some((name.to_owned(), gain(queries, name)?));
            [SOFTMAX, SPARSEMAX].into_iter().filter_map(entry).collect()
        };
        let mut table = self.by_query(|query| row(&[query]));
        let all: Vec<usize> = (0..self.meta.queries.len()).collect();
        table.insert(BOTH.to_owned(), row(&all));
        table
    }

    fn reduced(&self) -> Vec<Reduced> {
        let mut fractions: Vec<f64> = self.records.iter().map(|record| record.fraction).collect();
        fractions.sort_by(f64::total_cmp);
        fractions.dedup();
        if fractions.len() < 2 {
            return Vec::new();
        }
        let reduced = |fraction: f64| {
            let Count { seeds, collapsed, diverged } = Count::of(self.records, fraction);
            let measured: Vec<&Measured<'_>> =
                self.measured.iter().filter(|seed| seed.record.fraction == fraction).collect();
            Reduced {
                fraction,
                seeds,
                collapsed,
                diverged,
                final_values: self.final_values(&measured),
                without_collapsed: healthy(&measured).map(|healthy| self.final_values(&healthy)),
            }
        };
        fractions.into_iter().map(reduced).collect()
    }

    fn training(&self, record: &SeedRecord) -> Training {
        let seed = self.measured.iter().find(|seed| std::ptr::eq(seed.record, record));
        let table = |part: Part<PerMethod>| {
            let last = |query: usize, method: usize| part(seed?)[query][method].last().copied();
            seed?;
            Some(self.table(|query, method| last(query, method).filter(|x| x.is_finite())))
        };
        Training {
            seed: record.seed,
            fraction: record.fraction,
            collapsed: record.collapsed,
            diverged: record.diverged,
            steps: record.steps,
            wall_seconds: record.wall_seconds,
            losses: record.losses,
            bhattacharyya: table(|seed| &seed.bhattacharyya),
            wasserstein: table(|seed| &seed.wasserstein),
        }
    }

    fn exemplar(&self, seeds: &[&Measured<'_>]) -> Result<Option<Exemplar>> {
        let mut pictured = seeds.iter().filter(|seed| seed.record.latents.is_some());
        let chosen = match self.meta.exemplar {
            Some(wanted) => {
                let found = pictured.find(|seed| seed.record.seed == wanted);
                Some(found.with_context(|| {
                    format!(
                        "the exemplar is seed {wanted}, which diverged or has no decoded images"
                    )
                })?)
            }
            None => pictured.clone().find(|seed| !seed.record.collapsed).or(pictured.next()),
        };
        let Some((seed, latents)) =
            chosen.and_then(|seed| Some((seed, seed.record.latents.as_ref()?)))
        else {
            return Ok(None);
        };
        let classes_of = judged(latents);
        let mut queries = ByQuery::new();
        for (query, name) in self.meta.queries.iter().enumerate() {
            let Distributions { target, rows } = &seed.last[query];
            let mut methods = BTreeMap::new();
            for ((_, method), row) in self.methods.iter().zip(rows) {
                // The same random numbers for every method: what differs is the distribution.
                let mut rng = ChaCha8Rng::seed_from_u64(seed.record.seed);
                rng.set_stream(query as u64);
                let sampler = Sampler::dense(row)?;
                let samples: Vec<usize> =
                    (0..self.meta.samples).map(|_| sampler.sample(&mut rng)).collect();
                let wrong_samples = classes_of.as_ref().map(|queries| {
                    samples.iter().filter(|class| queries[**class] != query).count()
                });
                let row = Bars { probabilities: row.clone(), samples, wrong_samples };
                methods.insert(method.name().to_owned(), row);
            }
            queries.insert(name.clone(), QueryBars { target: target.clone(), methods });
        }
        Ok(Some(Exemplar { seed: seed.record.seed, latents: latents.clone(), queries }))
    }
}

fn name(record: &SeedRecord) -> String {
    format!("seed {}, fraction {}", record.seed, record.fraction)
}

/// The seeds that did not collapse, unless that is all of them or none.
fn healthy<'a, 'b>(seeds: &[&'a Measured<'b>]) -> Option<Vec<&'a Measured<'b>>> {
    let healthy: Vec<_> = seeds.iter().copied().filter(|seed| !seed.record.collapsed).collect();
    (!healthy.is_empty() && healthy.len() < seeds.len()).then_some(healthy)
}

struct Count {
    seeds: usize,
    collapsed: usize,
    diverged: usize,
}

impl Count {
    fn of(records: &[SeedRecord], fraction: f64) -> Self {
        let records = || records.iter().filter(move |record| record.fraction == fraction);
        Self {
            seeds: records().count(),
            collapsed: records().filter(|record| record.collapsed && !record.diverged).count(),
            diverged: records().filter(|record| record.diverged).count(),
        }
    }
}
