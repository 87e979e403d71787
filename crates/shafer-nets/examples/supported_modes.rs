//! The loop of a robot: from the history of a pedestrian to the modes that the evidence supports.
//!
//! ```sh
//! cargo run --release -p shafer-nets --example supported_modes -- crates/shafer-lab/weights/behaviour.safetensors
//! ```

#![allow(clippy::print_stdout, reason = "a program for the terminal")]

use std::error::Error;

use shafer::{Logits, Method, Product, Threads};
use shafer_nets::behaviour::{Observation, Predictor, Query, State};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("name the weights of a predictor")?;
    let predictor = Predictor::from_safetensors(&std::fs::read(path)?)?;
    let network = predictor.config();

    // Nine steps to the right at 1.3 m/s, the last of them the present, without neighbours.
    let history: Vec<State> = (0..9)
        .map(|step| {
            let seconds = network.seconds_per_step * f64::from(step - 8);
            [1.3 * seconds, 0.0, 1.3, 0.0, 0.0, 0.0]
        })
        .collect();
    let nobody = vec![[0.0; 6]; history.len()];
    let encoded = predictor.encode(&[Observation::new(&history, &nobody)?])?;

    // The supported classes of each latent variable, and their joint classes.
    let logits: Vec<f64> = encoded.logits(0).iter().map(|&logit| f64::from(logit)).collect();
    let kept = Method::EVIDENTIAL.csr(&Logits::rows(&logits, network.classes)?, Threads::One)?;
    let variables: Vec<_> =
        kept.iter().map(|(classes, values)| (network.classes, classes, values)).collect();
    let joints: Vec<_> = Product::csr(&variables)?.iter_best().collect();

    // Only these classes are decoded.
    let queries: Vec<Query> = joints
        .iter()
        .map(|joint| Query { agent: 0, class: network.join(&joint.classes) })
        .collect();
    println!("{} of {} modes are supported", queries.len(), network.joint_classes());
    for (joint, forecast) in joints.iter().zip(predictor.forecast(&encoded, &queries)?) {
        if let Some([x, y]) = forecast.mean.last() {
            let seconds = forecast.mean.len() as f64 * network.seconds_per_step;
            println!("{:.3}  ({x:.2}, {y:.2}) after {seconds:.1} s", joint.probability);
        }
    }
    Ok(())
}
