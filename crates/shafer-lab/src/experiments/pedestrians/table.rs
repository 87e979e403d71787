//! Everything that was measured: a row for each scene, seed, pedestrian and method.

use shafer_data::Column;

use super::evaluate::Evaluated;
use super::measure::{BestOf, Errors};
use crate::experiments::Columns;
use crate::experiments::methods::MethodName;

pub(super) fn table(scenes: &[Evaluated<'_>], methods: &[MethodName]) -> Columns {
    let [mut scene_name, mut method_name] = [const { Vec::new() }; 2];
    let [mut seed, mut pedestrian, mut frame, mut steps, mut kept] = [const { Vec::new() }; 5];
    let mut errors: [[Vec<f64>; 3]; 2] = std::array::from_fn(|_| [const { Vec::new() }; 3]);
    let [mut best20_ade, mut best20_fde, mut nearest] = [const { Vec::new() }; 3];
    for scene in scenes {
        for evaluation in &scene.evaluations {
            for agent in &evaluation.agents {
                for (name, method) in methods.iter().zip(&agent.methods) {
                    scene_name.push(scene.test.scene.clone());
                    seed.push(evaluation.seed.cast_signed());
                    pedestrian.push(i64::from(agent.agent));
                    frame.push(i64::from(agent.frame));
                    steps.push(agent.steps as i64);
                    method_name.push(name.name.clone());
                    for (columns, Errors { nll, ade, fde }) in
                        errors.iter_mut().zip([method.direct, method.top])
                    {
                        for (column, error) in columns.iter_mut().zip([nll, ade, fde]) {
                            column.push(error);
                        }
                    }
                    let BestOf { ade, fde } = method.best20;
                    best20_ade.push(ade);
                    best20_fde.push(fde);
                    nearest.push(method.nearest);
                    kept.push(method.kept as i64);
                }
            }
        }
    }
    let [[direct_nll, direct_ade, direct_fde], [top5_nll, top5_ade, top5_fde]] = errors;
    vec![
        ("scene", Column::Words(scene_name)),
        ("seed", Column::Integers(seed)),
        ("pedestrian", Column::Integers(pedestrian)),
        ("frame", Column::Integers(frame)),
        ("steps", Column::Integers(steps)),
        ("method", Column::Words(method_name)),
        ("direct_nll", Column::Numbers(direct_nll)),
        ("direct_ade", Column::Numbers(direct_ade)),
        ("direct_fde", Column::Numbers(direct_fde)),
        ("best20_ade", Column::Numbers(best20_ade)),
        ("best20_fde", Column::Numbers(best20_fde)),
        ("top5_nll", Column::Numbers(top5_nll)),
        ("top5_ade", Column::Numbers(top5_ade)),
        ("top5_fde", Column::Numbers(top5_fde)),
        ("nearest", Column::Numbers(nearest)),
        ("kept", Column::Integers(kept)),
    ]
}
