//! From trainings to results.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;
use shafer::{Sampler, Transform};

use super::measured::{Distributions, Measured, Part, PerMethod, Series, judged};
use super::results::{
    BOTH, Bars, ByQuery, Curve, Evolution, Exemplar, Final, Gains, ImageResults, Improvement,
    MethodName, QueryBars, Reduced, Table, TargetFrom, Training, VERSION, WithoutCollapsed,
    check_queries,
};
use super::seed_record::SeedRecord;
use super::statistics::{CONFIDENCE, Gain, Summary, mean};
use crate::method::{self, Choice};

/// What results say besides numbers.
#[derive(Clone, Debug)]
pub(crate) struct Meta {
    pub(crate) data_set: String,
    /// The names of the two queries, in the order of the logits.
    pub(crate) queries: [String; 2],
    pub(crate) config: serde_json::Value,
    pub(crate) machine: String,
    pub(crate) revision: String,
    pub(crate) wall_seconds: f64,
    pub(crate) target: TargetFrom,
    /// The seed to look at; `None` takes the first that neither diverged nor collapsed and has images.
    pub(crate) exemplar: Option<u64>,
    /// How many samples to draw for it.
    pub(crate) samples: usize,
}

impl ImageResults {
    /// Evaluates trainings: those on the whole data set (fraction 1) are the experiment, the others
    /// are reduced data.
    ///
    /// The target distribution comes from the last checkpoint unless `meta` says otherwise, classes lie
    /// at `k / (K - 1)` for the Wasserstein distance, and everything is computed in double precision.
    pub(crate) fn aggregate(meta: &Meta, records: &[SeedRecord]) -> Result<Self> {
        check_queries(&meta.queries)?;
        let Some(classes) = records.iter().find_map(SeedRecord::classes) else {
            bail!("there is no training with a checkpoint");
        };
        let mut seen = std::collections::HashSet::new();
        for record in records {
            record.check(classes).with_context(|| name(record))?;
            if !seen.insert((record.seed, record.fraction.to_bits())) {
                bail!("{} is there twice", name(record));
            }
        }
        let methods = Choice::all().into_iter().map(|choice| choice.transform(classes));
        let context = Context { meta, methods: methods.collect::<Result<_>>()? };
        let measured: Vec<Measured<'_>> = records
            .iter()
            .filter(|record| !record.diverged)
            .map(|record| {
                Measured::of(record, &context.methods, &meta.queries, meta.target)
                    .with_context(|| name(record))
            })
            .collect::<Result<_>>()?;
        let whole: Vec<&Measured<'_>> =
            measured.iter().filter(|seed| seed.record.fraction == 1.0).collect();
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
        let healthy = healthy(&whole);
        let main = Count::of(records.iter().filter(|record| record.fraction == 1.0));
        Ok(Self {
            version: VERSION,
            experiment: Self::EXPERIMENT.to_owned(),
            data_set: meta.data_set.clone(),
            queries: meta.queries.clone(),
            methods: context.method_names(),
            classes,
            seeds: main.seeds,
            collapsed: main.collapsed,
            diverged: main.diverged,
            steps: whole.iter().map(|seed| seed.record.steps).max().unwrap_or(0),
            wall_seconds: meta.wall_seconds,
            revision: meta.revision.clone(),
            machine: meta.machine.clone(),
            config: meta.config.clone(),
            target: meta.target,
            final_values: context.final_values(&whole),
            improvement: context.improvement(&whole),
            evolution: context.evolution(&whole, &iterations),
            without_collapsed: healthy.map(|healthy| WithoutCollapsed {
                final_values: context.final_values(&healthy),
                improvement: context.improvement(&healthy),
                evolution: context.evolution(&healthy, &iterations),
            }),
            reduced: context.reduced(records, &measured),
            exemplar: context.exemplar(&whole)?,
            trainings: context.trainings(records, &measured),
        })
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
    fn of<'a>(records: impl Iterator<Item = &'a SeedRecord>) -> Self {
        let mut count = Self { seeds: 0, collapsed: 0, diverged: 0 };
        for record in records {
            count.seeds += 1;
            count.collapsed += usize::from(record.collapsed && !record.diverged);
            count.diverged += usize::from(record.diverged);
        }
        count
    }
}

struct Context<'a> {
    meta: &'a Meta,
    /// With what to show them as.
    methods: Vec<(String, Box<dyn Transform>)>,
}

impl Context<'_> {
    fn method_names(&self) -> Vec<MethodName> {
        let methods = self.methods.iter();
        methods
            .map(|(title, transform)| MethodName {
                name: transform.name().to_owned(),
                title: title.clone(),
            })
            .collect()
    }

    /// A number for every query and method.
    fn table<T>(&self, mut value: impl FnMut(usize, usize) -> T) -> Table<T> {
        self.by_query(|query| {
            let methods = self.methods.iter().enumerate();
            methods
                .map(|(place, (_, method))| (method.name().to_owned(), value(query, place)))
                .collect()
        })
    }

    fn by_query<T>(&self, mut value: impl FnMut(usize) -> T) -> ByQuery<T> {
        let queries = self.meta.queries.iter().enumerate();
        queries.map(|(query, name)| (name.clone(), value(query))).collect()
    }

    fn final_values(&self, seeds: &[&Measured<'_>]) -> Final {
        let table = |of: Part<PerMethod>| {
            self.table(|query, method| {
                Summary::of(seeds.iter().filter_map(|seed| of(seed)[query][method].last().copied()))
            })
        };
        let by_query = |of: Part<[Series; 2]>| {
            self.by_query(|query| {
                Summary::of(seeds.iter().filter_map(|seed| of(seed)[query].last().copied()))
            })
        };
        let judged = seeds.iter().any(|seed| seed.wrong.is_some());
        Final {
            bhattacharyya: table(|seed| &seed.bhattacharyya),
            wasserstein: table(|seed| &seed.wasserstein),
            kept: table(|seed| &seed.kept),
            wrong: judged.then(|| {
                self.table(|query, method| {
                    let wrong = |seed: &&Measured<'_>| Some(seed.wrong.as_ref()?[query][method]);
                    Summary::of(seeds.iter().filter_map(wrong))
                })
            }),
            ignorance: by_query(|seed| &seed.ignorance),
            internal_conflict: by_query(|seed| &seed.internal_conflict),
        }
    }

    fn evolution(&self, seeds: &[&Measured<'_>], iterations: &[u64]) -> Evolution {
        let table = |of: Part<PerMethod>| {
            self.table(|query, method| {
                curve(iterations.len(), |point| {
                    seeds.iter().map(move |s| of(s)[query][method][point])
                })
            })
        };
        let by_query = |of: Part<[Series; 2]>| {
            self.by_query(|query| {
                curve(iterations.len(), |point| seeds.iter().map(move |s| of(s)[query][point]))
            })
        };
        Evolution {
            iterations: iterations.to_vec(),
            bhattacharyya: table(|seed| &seed.bhattacharyya),
            wasserstein: table(|seed| &seed.wasserstein),
            kept: table(|seed| &seed.kept),
            ignorance: by_query(|seed| &seed.ignorance),
            internal_conflict: by_query(|seed| &seed.internal_conflict),
        }
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

    /// Of evidential over the baselines, at some points of the training.
    fn gains(
        &self,
        seeds: &[&Measured<'_>],
        points: fn(&Series) -> &[f64],
        of: Part<PerMethod>,
    ) -> Table<Gain> {
        let place = |name: &str| self.methods.iter().position(|(_, method)| method.name() == name);
        let gain = |queries: &[usize], baseline: &str| {
            let (method, baseline) = (place(method::EVIDENTIAL)?, place(baseline)?);
            let mut infinite = 0;
            let mut pairs = Vec::new();
            for seed in seeds {
                let (mut baselines, mut ours) = (Vec::new(), Vec::new());
                for &query in queries {
                    let series = &of(seed)[query];
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
        let queries = self.meta.queries.iter().enumerate();
        let mut rows: Vec<(String, Vec<usize>)> =
            queries.map(|(query, name)| (name.clone(), vec![query])).collect();
        rows.push((BOTH.to_owned(), vec![0, 1]));
        let row = |queries: &[usize]| -> BTreeMap<String, Gain> {
            let baselines = [method::SOFTMAX, method::SPARSEMAX];
            let entry = |name: &str| Some((name.to_owned(), gain(queries, name)?));
            baselines.into_iter().filter_map(entry).collect()
        };
        rows.into_iter().map(|(name, queries)| (name, row(&queries))).collect()
    }

    fn reduced(&self, records: &[SeedRecord], measured: &[Measured<'_>]) -> Vec<Reduced> {
        let mut fractions: Vec<f64> = records.iter().map(|record| record.fraction).collect();
        fractions.sort_by(f64::total_cmp);
        fractions.dedup();
        if fractions.len() < 2 {
            return Vec::new();
        }
        let reduced = |fraction: f64| {
            let count = Count::of(records.iter().filter(|record| record.fraction == fraction));
            let seeds: Vec<&Measured<'_>> =
                measured.iter().filter(|seed| seed.record.fraction == fraction).collect();
            Reduced {
                fraction,
                seeds: count.seeds,
                collapsed: count.collapsed,
                diverged: count.diverged,
                final_values: self.final_values(&seeds),
                without_collapsed: healthy(&seeds).map(|healthy| self.final_values(&healthy)),
            }
        };
        fractions.into_iter().map(reduced).collect()
    }

    fn trainings(&self, records: &[SeedRecord], measured: &[Measured<'_>]) -> Vec<Training> {
        let training = |record: &SeedRecord| {
            let seed = measured.iter().find(|seed| std::ptr::eq(seed.record, record));
            let table = |of: Part<PerMethod>| {
                let seed = seed?;
                let last = |query: usize, method: usize| of(seed)[query][method].last().copied();
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
        };
        records.iter().map(training).collect()
    }

    fn exemplar(&self, seeds: &[&Measured<'_>]) -> Result<Option<Exemplar>> {
        let pictured: Vec<_> =
            seeds.iter().filter_map(|seed| Some((*seed, seed.record.latents.as_ref()?))).collect();
        let chosen = match self.meta.exemplar {
            Some(wanted) => {
                let found = pictured.iter().find(|(seed, _)| seed.record.seed == wanted);
                Some(found.with_context(|| {
                    format!(
                        "the exemplar is seed {wanted}, which diverged or has no decoded images"
                    )
                })?)
            }
            None => pictured.iter().find(|(seed, _)| !seed.record.collapsed).or(pictured.first()),
        };
        let Some(&(seed, latents)) = chosen else { return Ok(None) };
        let queries = judged(latents);
        let mut bars = ByQuery::new();
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
                let wrong_samples = queries.as_ref().map(|queries| {
                    samples.iter().filter(|class| queries[**class] != query).count()
                });
                let row = Bars { probabilities: row.clone(), samples, wrong_samples };
                methods.insert(method.name().to_owned(), row);
            }
            bars.insert(name.clone(), QueryBars { target: target.clone(), methods });
        }
        Ok(Some(Exemplar { seed: seed.record.seed, latents: latents.clone(), queries: bars }))
    }
}

fn curve<I: Iterator<Item = f64>>(points: usize, values: impl Fn(usize) -> I) -> Curve {
    let mut curve = Curve::default();
    for point in 0..points {
        let Summary { mean, se, infinite, .. } = Summary::of(values(point));
        curve.mean.push(mean.map(|mean| mean as f32));
        curve.se.push(se.map(|se| se as f32));
        curve.infinite.push(infinite);
    }
    if curve.infinite.iter().all(|&infinite| infinite == 0) {
        curve.infinite.clear();
    }
    curve
}
