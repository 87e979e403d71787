//! Predictors of pedestrians against `PyTorch` and `SciPy`, and properties of predictors.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;

use common::{Parameter, assert_parameters, parameters};
use serde::Deserialize;
use shafer_nets::behaviour::{
    Component, Config, Displacement, Draw, Example, Feedback, Forecast, LOG_DENSITY_FLOOR,
    Likelihood, NetworkConfig, Observation, Point, Predictor, Query, State, TrainingConfig,
    kernel_log_density, kernel_nll, mixture_log_density,
};
use shafer_nets::{Error, Precision, Trainer, cpu};

#[derive(Deserialize)]
struct Fixture {
    cases: Vec<Case>,
    densities: Vec<Density>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    seed: u64,
    config: Config,
    examples: Vec<States>,
    losses: Vec<[f64; 3]>,
    parameters: BTreeMap<String, Parameter>,
    predicted: Predicted,
}

#[derive(Deserialize)]
struct States {
    history: Vec<State>,
    neighbours: Vec<State>,
    future: Vec<State>,
}

#[derive(Deserialize)]
struct Predicted {
    encodings: Vec<Vec<f64>>,
    logits: Vec<Vec<f64>>,
    forecasts: Vec<PredictedPath>,
}

#[derive(Deserialize)]
struct PredictedPath {
    agent: usize,
    class: usize,
    mean: Vec<Point>,
    covariance: Vec<[f64; 3]>,
    paths: Vec<Vec<Point>>,
}

#[derive(Deserialize)]
struct Density {
    log_weights: Vec<f64>,
    means: Vec<Point>,
    sigmas: Vec<[f64; 2]>,
    correlations: Vec<f64>,
    at: Point,
    mixture: f64,
    paths: Vec<Vec<Point>>,
    truth: Vec<Point>,
    kernel: Vec<f64>,
    kernel_nll: f64,
    ade: Vec<f64>,
    fde: Vec<f64>,
}

fn fixture() -> Fixture {
    serde_json::from_str(include_str!("fixtures/behaviour.json")).unwrap()
}

#[track_caller]
fn assert_close<'a>(
    found: impl IntoIterator<Item = &'a f64>,
    expected: impl IntoIterator<Item = &'a f64>,
    tolerance: f64,
) {
    let (found, expected) = (found.into_iter(), expected.into_iter());
    for (i, (found, expected)) in found.zip(expected).enumerate() {
        let error = (found - expected).abs();
        assert!(error <= tolerance * expected.abs().max(1.0), "{i}: {found}, not {expected}");
    }
}

/// Everything follows from the seed: initial parameters, order, noise, losses, gradients, their clipping and
/// updates; then the forward pass with the trained weights.
#[test]
fn predictors_are_those_of_pytorch() {
    let cases = fixture().cases;
    assert_eq!(cases.len(), 2);
    for case in cases {
        let examples: Vec<Example> = case
            .examples
            .iter()
            .map(|e| Example::new(&e.history, &e.neighbours, &e.future).unwrap())
            .collect();
        let mut trainer =
            Trainer::<Predictor>::new(&case.config, &examples, case.seed, &cpu()).unwrap();
        for (number, expected) in case.losses.iter().enumerate() {
            let losses = trainer.step().unwrap().unwrap().losses;
            let found = [losses.reconstruction, losses.kl, losses.information];
            for (found, expected) in found.iter().zip(expected) {
                let error = (found - expected).abs();
                let name = &case.name;
                assert!(error < 1e-4, "{name}, step {number}: {found}, not {expected}");
            }
        }
        assert!(trainer.step().unwrap().is_none());
        let predictor = trainer.model();
        let weights = predictor.to_safetensors(Precision::Single).unwrap();
        assert_parameters(&weights, &case.parameters, &case.name);

        let agents = case.predicted.logits.len();
        let seen: Vec<Observation> =
            examples[..agents].iter().map(|e| e.observation().clone()).collect();
        let encoded = predictor.encode(&seen).unwrap();
        let wide = |x: &[f32]| x.iter().copied().map(f64::from).collect::<Vec<_>>();
        for agent in 0..agents {
            let predicted = &case.predicted;
            assert_close(&wide(encoded.encoding(agent)), &predicted.encodings[agent], 1e-4);
            assert_close(&wide(encoded.logits(agent)), &predicted.logits[agent], 1e-4);
        }
        let expected = case.predicted.forecasts;
        let queries: Vec<Query> =
            expected.iter().map(|f| Query { agent: f.agent, class: f.class }).collect();
        let draws: Vec<Draw> = expected
            .iter()
            .map(|f| Draw { agent: f.agent, class: f.class, paths: f.paths.len() })
            .collect();
        let forecasts = predictor.forecast(&encoded, &queries).unwrap();
        let paths = predictor.sample(&encoded, &draws, 11).unwrap();
        for ((Forecast { mean, covariance }, paths), expected) in
            forecasts.iter().zip(&paths).zip(&expected)
        {
            assert_eq!((mean.len(), paths.len()), (3, 2));
            assert_close(mean.as_flattened(), expected.mean.as_flattened(), 1e-4);
            assert_close(covariance.as_flattened(), expected.covariance.as_flattened(), 1e-4);
            for (path, expected) in paths.iter().zip(&expected.paths) {
                assert_close(path.as_flattened(), expected.as_flattened(), 1e-4);
            }
        }
    }
}

#[test]
fn metrics_are_those_of_pytorch_and_scipy() {
    for case in fixture().densities {
        let components: Vec<Component> = (0..case.means.len())
            .map(|i| Component {
                log_weight: case.log_weights[i],
                mean: case.means[i],
                sigmas: case.sigmas[i],
                correlation: case.correlations[i],
            })
            .collect();
        assert_close(&[mixture_log_density(&components, case.at)], &[case.mixture], 1e-10);
        for (step, expected) in case.kernel.iter().enumerate() {
            let points: Vec<Point> = case.paths.iter().map(|path| path[step]).collect();
            let found = kernel_log_density(&points, case.truth[step]).unwrap();
            assert_close(&[found], &[*expected], 1e-10);
        }
        let found = kernel_nll(&case.paths, &case.truth).unwrap();
        assert_close(&[found], &[case.kernel_nll], 1e-10);
        for ((path, ade), fde) in case.paths.iter().zip(&case.ade).zip(&case.fde) {
            let found = Displacement::of(path, &case.truth).unwrap();
            assert_close(&[found.average, found.last], &[*ade, *fde], 1e-12);
        }
    }
}

#[test]
fn samples_without_a_density_are_an_error_and_count_for_the_floor() {
    let line: Vec<Point> = (0..10).map(|i| [f64::from(i), 2.0 * f64::from(i)]).collect();
    assert_eq!(
        kernel_log_density(&line, [0.0, 0.0]).unwrap_err().to_string(),
        "samples: have no density: they lie on a line, or are not finite",
    );
    assert!(kernel_log_density(&[[f64::NAN, 0.0]; 9], [0.0; 2]).is_err());
    assert!(kernel_log_density(&line[..2], [0.0; 2]).is_err());
    let paths: Vec<[Point; 1]> = line.iter().map(|&point| [point]).collect();
    assert_eq!(kernel_nll(&paths, &[[0.0, 0.0]]).unwrap(), -LOG_DENSITY_FLOOR);
    assert_eq!(
        kernel_nll(&paths, &[[0.0, 0.0]; 2]).unwrap_err().to_string(),
        "path: has 1 steps, but the truth has 2",
    );
    assert!(kernel_nll(&paths, &[]).is_err());
    assert!(Displacement::of(&line, &[]).is_err());
}

/// Pedestrians who walk straight on and turn left or right at the present.
fn turning(count: usize) -> Vec<Example> {
    let straight = |speed: f64, i: i32| [speed * 0.4 * f64::from(i), 0.0, speed, 0.0, 0.0, 0.0];
    (0..count)
        .map(|number| {
            let speed = 0.8 + 0.01 * number as f64;
            let side = if number.is_multiple_of(2) { 1.0 } else { -1.0 };
            let first = -(2 + number as i32 % 7);
            let history: Vec<State> = (first..=0).map(|i| straight(speed, i)).collect();
            let neighbours = vec![[1.0, -0.5, 0.3, 0.0, 0.0, 0.0]; history.len()];
            let future: Vec<State> = (1..=12)
                .map(|i| [0.0, side * speed * 0.4 * f64::from(i), 0.0, side * speed, 0.0, 0.0])
                .collect();
            Example::new(&history, &neighbours, &future).unwrap()
        })
        .collect()
}

/// A small one: burn is not optimised in tests.
fn small() -> Config {
    let network = NetworkConfig {
        future_steps: 4,
        history_width: 8,
        future_width: 6,
        edge_width: 3,
        prior_hidden: 8,
        decoder_width: 12,
        components: 3,
        ..NetworkConfig::default()
    };
    let training = TrainingConfig {
        iterations: 7,
        batch_size: 16,
        rotate: false,
        stretch: 1.0,
        ..TrainingConfig::default()
    };
    Config { network, training }
}

#[test]
fn a_killed_run_resumes_to_the_same_bits() {
    let examples = turning(40);
    for (feedback, rotate, stretch) in
        [(Feedback::Sample, true, 2.0), (Feedback::Truth, false, 1.0)]
    {
        let mut config = small();
        config.training.feedback = feedback;
        config.training.rotate = rotate;
        config.training.stretch = stretch;
        let finish = |mut trainer: Trainer<'_, Predictor>| {
            let mut losses = Vec::new();
            while let Some(step) = trainer.step().unwrap() {
                losses.push(step.losses);
            }
            (losses, trainer.save().unwrap())
        };
        let (losses, end) =
            finish(Trainer::<Predictor>::new(&config, &examples, 5, &cpu()).unwrap());
        assert_eq!(losses.len(), 7);
        // At the start, within an epoch of 3 batches, between epochs, and at the end.
        for steps in [0, 4, 6, 7] {
            let mut killed = Trainer::<Predictor>::new(&config, &examples, 5, &cpu()).unwrap();
            for _ in 0..steps {
                killed.step().unwrap();
            }
            let saved = killed.save().unwrap();
            let resumed =
                Trainer::<Predictor>::resume(&config, &examples, 5, &cpu(), &saved).unwrap();
            assert_eq!(resumed.iteration(), steps);
            assert!(resumed.save().unwrap() == saved);
            let (later, resumed_end) = finish(resumed);
            assert_eq!(later, losses[steps..]);
            assert!(resumed_end == end, "killed after {steps} steps");
        }
    }
}

#[test]
fn what_was_saved_must_fit() {
    let examples = turning(20);
    let config = small();
    let mut trainer = Trainer::<Predictor>::new(&config, &examples, 5, &cpu()).unwrap();
    trainer.step().unwrap();
    let saved = trainer.save().unwrap();
    let resume = |config: &Config, examples: &[Example], seed, bytes: &[u8]| {
        Trainer::<Predictor>::resume(config, examples, seed, &cpu(), bytes).unwrap_err().to_string()
    };
    let mut other = config.clone();
    other.training.kl_weight = 1.0;
    assert_eq!(
        resume(&other, &examples, 5, &saved),
        "the saved training has another configuration"
    );
    assert_eq!(resume(&config, &examples, 6, &saved), "the saved training has another seed");
    assert_eq!(resume(&config, &examples[1..], 5, &saved), "the saved training has other examples");
    let weights = trainer.model().to_safetensors(Precision::Single).unwrap();
    assert!(
        resume(&config, &examples, 5, &weights)
            .starts_with("the file is of another kind or version than expected: "),
    );
    for length in (0..saved.len()).step_by(997) {
        resume(&config, &examples, 5, &saved[..length]);
    }
    // A training may be extended.
    other = config.clone();
    other.training.iterations = 8;
    assert!(Trainer::<Predictor>::resume(&other, &examples, 5, &cpu(), &saved).is_ok());
}

#[test]
fn a_training_that_diverges_is_an_error_and_keeps_its_last_numbers() {
    let examples = turning(16);
    let mut config = small();
    config.training.learning_rate.start = 1e30;
    let mut trainer = Trainer::<Predictor>::new(&config, &examples, 0, &cpu()).unwrap();
    let error = loop {
        match trainer.step() {
            Ok(step) => assert!(step.is_some(), "it did not diverge"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Diverged { .. }), "{error}");
    assert_eq!(trainer.step().unwrap_err().to_string(), error.to_string());
}

/// Half turn left and half turn right, at a right angle: the mean of both is far from each.
#[test]
fn a_training_learns_to_turn() {
    let examples = turning(32);
    let mut config = small();
    config.training.iterations = 100;
    config.training.batch_size = 32;
    config.training.learning_rate.start = 1e-2;
    let mut trainer = Trainer::<Predictor>::new(&config, &examples, 1, &cpu()).unwrap();
    let first = trainer.step().unwrap().unwrap().losses.reconstruction;
    let mut last = first;
    while let Some(step) = trainer.step().unwrap() {
        last = step.losses.reconstruction;
    }
    assert!(last < first - 5.0, "{last}, not well below {first}");
    let predictor = trainer.model();
    let encoded = predictor.encode(&[examples[20].observation().clone()]).unwrap();
    let draws: Vec<Draw> = (0..25).map(|class| Draw { agent: 0, class, paths: 20 }).collect();
    let paths = predictor.sample(&encoded, &draws, 0).unwrap().concat();
    // At 1 m/s, after 1.6 s.
    for side in [1.6, -1.6] {
        let near = |path: &&Vec<Point>| (path[3][1] - side).hypot(path[3][0]) < 0.8;
        let share = paths.iter().filter(near).count() as f64 / paths.len() as f64;
        assert!(share > 0.1, "{share} of all paths lead to {side}");
    }
}

#[test]
fn weights_come_back_as_they_were() {
    let predictor = Predictor::untrained(&NetworkConfig::default(), 3).unwrap();
    let bytes = predictor.to_safetensors(Precision::Single).unwrap();
    let count: usize = parameters(&bytes).values().map(|(_, values)| values.len()).sum();
    assert_eq!((count, predictor.parameters()), (138_482, 138_482));
    let again = Predictor::from_safetensors(&bytes).unwrap();
    assert!(again.to_safetensors(Precision::Single).unwrap() == bytes);
    let seen = [turning(3)[2].observation().clone()];
    let encoded = predictor.encode(&seen).unwrap();
    assert_eq!(again.encode(&seen).unwrap(), encoded);
    let query = [Query { agent: 0, class: 24 }];
    let expected = predictor.forecast(&encoded, &query).unwrap();
    assert_eq!(again.forecast(&encoded, &query).unwrap(), expected);
    let half = predictor.to_safetensors(Precision::Half).unwrap();
    assert!(half.len() < 300_000);
    let half = Predictor::from_safetensors(&half).unwrap();
    let found = half.forecast(&half.encode(&seen).unwrap(), &query).unwrap();
    assert_close(found[0].mean.as_flattened(), expected[0].mean.as_flattened(), 1e-2);
    for length in (0..bytes.len()).step_by(9973) {
        assert!(Predictor::from_safetensors(&bytes[..length]).is_err());
    }
}

/// Decoding other classes in the same block changes nothing, and more paths begin with the fewer.
#[test]
fn a_class_is_decoded_the_same_alone_and_among_others() {
    let predictor = Predictor::untrained(&small().network, 4).unwrap();
    let seen: Vec<Observation> = turning(5).iter().map(|e| e.observation().clone()).collect();
    let encoded = predictor.encode(&seen).unwrap();
    assert_eq!((encoded.len(), encoded.is_empty()), (5, false));
    let queries: Vec<Query> =
        (0..5).flat_map(|agent| (0..25).map(move |class| Query { agent, class })).collect();
    let all = predictor.forecast(&encoded, &queries).unwrap();
    for (query, together) in queries.iter().zip(&all).step_by(13) {
        let alone = predictor.forecast(&encoded, &[*query]).unwrap();
        assert_close(alone[0].mean.as_flattened(), together.mean.as_flattened(), 1e-5);
        let Query { agent, class } = *query;
        let few = predictor.sample(&encoded, &[Draw { agent, class, paths: 3 }], 9).unwrap();
        let many = predictor.sample(&encoded, &[Draw { agent, class, paths: 20 }], 9).unwrap();
        assert_eq!(many[0].len(), 20);
        for (few, many) in few[0].iter().zip(&many[0]) {
            assert_close(few.as_flattened(), many.as_flattened(), 1e-5);
        }
        let other = predictor.sample(&encoded, &[Draw { agent, class, paths: 3 }], 10).unwrap();
        assert_ne!(other, few);
    }
    // More than one block, of several classes.
    let draws = [3, 4, 5].map(|class| Draw { agent: 2, class, paths: 800 });
    let together = predictor.sample(&encoded, &draws, 9).unwrap();
    for (draw, together) in draws.iter().zip(&together) {
        let alone = predictor.sample(&encoded, &[*draw], 9).unwrap();
        let (alone, together) = (alone[0].concat(), together.concat());
        let (alone, together) = (alone.as_flattened(), together.as_flattened());
        assert_eq!(together.len(), 800 * 4 * 2);
        assert_close(alone, together, 1e-5);
    }
    assert_eq!(predictor.forecast(&encoded, &[]).unwrap(), []);
    assert!(predictor.sample(&encoded, &[], 1).unwrap().is_empty());
    let none = predictor.sample(&encoded, &[Draw { agent: 1, class: 2, paths: 0 }], 1).unwrap();
    assert_eq!(none, [Vec::<Vec<Point>>::new()]);
    assert!(predictor.encode(&[]).unwrap().is_empty());
}

/// The mean and covariance over many paths are those of the forecast, up to the effect of samples instead of
/// means as the decoder's input.
#[test]
fn paths_scatter_as_the_forecast_says() {
    let predictor = Predictor::untrained(&small().network, 8).unwrap();
    let encoded = predictor.encode(&[turning(1)[0].observation().clone()]).unwrap();
    let forecast = predictor.forecast(&encoded, &[Query { agent: 0, class: 7 }]).unwrap();
    let draw = Draw { agent: 0, class: 7, paths: 4000 };
    let paths = predictor.sample(&encoded, &[draw], 2).unwrap();
    for step in [0, 3] {
        let n = 4000.0;
        let mean = [0, 1].map(|axis| paths[0].iter().map(|p| p[step][axis]).sum::<f64>() / n);
        let of = |a: usize, b: usize| {
            paths[0].iter().map(|p| (p[step][a] - mean[a]) * (p[step][b] - mean[b])).sum::<f64>()
                / n
        };
        let scatter = [of(0, 0), of(0, 1), of(1, 1)];
        let size = forecast[0].covariance[step][0].sqrt();
        let near = if step == 0 { 0.06 } else { 0.3 };
        for (found, expected) in mean.iter().zip(forecast[0].mean[step]) {
            assert!((found - expected).abs() < near * size, "{step}: {found}, not {expected}");
        }
        for (found, expected) in scatter.iter().zip(forecast[0].covariance[step]) {
            let error = (found - expected).abs();
            assert!(error < 2.0 * near * size * size, "{step}: {found}, not {expected}");
        }
    }
}

#[test]
fn invalid_values_are_refused_by_name() {
    let refused = |change: fn(&mut Config)| {
        let mut config = Config::default();
        change(&mut config);
        config.check().unwrap_err().to_string()
    };
    assert_eq!(refused(|c| c.training.iterations = 0), "iterations must be at least 1, but is 0");
    assert_eq!(
        refused(|c| c.network.components = 0),
        "components must be from 1 to 65536, but is 0",
    );
    assert_eq!(
        refused(|c| c.network.variables = 9),
        "variables must have at most 65536 joint classes"
    );
    assert_eq!(
        refused(|c| c.training.temperature.decay = 1.5),
        "temperature must fall: decay at most 1, floor at most start",
    );
    assert_eq!(
        refused(|c| c.training.kl_floor = -1.0),
        "kl_floor must be a number of at least 0, but is -1",
    );
    assert_eq!(
        refused(|c| c.training.stretch = 0.5),
        "stretch must be a number of at least 1, but is 0.5",
    );
    let velocities = r#"{"training": {"likelihood": "velocities"}}"#;
    let config: Config = serde_json::from_str(velocities).unwrap();
    assert_eq!(config.training.likelihood, Likelihood::Velocities);

    let state = [0.0; 6];
    let bad = [0.0, f64::NAN, 0.0, 0.0, 0.0, 0.0];
    assert_eq!(
        Observation::new(&[state, bad], &[state; 2]).unwrap_err().to_string(),
        "history: step 1, column 1 is NaN, but must be finite",
    );
    assert_eq!(
        Observation::new(&[], &[]).unwrap_err().to_string(),
        "history: must have at least the present state, but is empty",
    );
    let short = Example::new(&[state], &[state], &[state; 11]).unwrap();
    let error =
        Trainer::<Predictor>::new(&Config::default(), &[short], 0, &cpu()).unwrap_err().to_string();
    assert_eq!(error, "examples: number 0 has 11 steps of future, but must have 12");
    assert!(Trainer::<Predictor>::new(&Config::default(), &[], 0, &cpu()).is_err());

    let predictor = Predictor::untrained(&NetworkConfig::default(), 0).unwrap();
    let encoded = predictor.encode(&[Observation::new(&[state], &[state]).unwrap()]).unwrap();
    let refused = |agent, class| {
        predictor.forecast(&encoded, &[Query { agent, class }]).unwrap_err().to_string()
    };
    assert_eq!(refused(0, 25), "class: must be below 25, but is 25");
    assert_eq!(refused(1, 0), "agent: must be below 1, but is 1");
}
