//! What was measured, as a table: a row for each training, checkpoint, query and method.

use anyhow::Result;
use shafer_data::Column;

use super::aggregate::Meta;
use super::measured::Measured;
use super::seed_record::SeedRecord;
use crate::method::Choice;

/// The columns of the table of trainings that [`ImageResults::aggregate`](super::ImageResults::aggregate)
/// has taken. Infinite distances are infinite; diverged trainings are left out.
pub(crate) fn table(meta: &Meta, records: &[SeedRecord]) -> Result<Vec<(&'static str, Column)>> {
    let classes = records.iter().find_map(SeedRecord::classes).unwrap_or(0);
    let choices = Choice::all();
    let methods =
        choices.iter().map(|choice| choice.transform(classes)).collect::<Result<Vec<_>>>()?;
    let [mut seed, mut iteration, mut kept, mut collapsed] = [const { Vec::new() }; 4];
    let [mut fraction, mut bhattacharyya, mut wasserstein] = [const { Vec::new() }; 3];
    let [mut query_name, mut method_name] = [const { Vec::new() }; 2];
    for record in records.iter().filter(|record| !record.diverged) {
        let measured = Measured::of(record, &methods, &meta.queries, meta.target)?;
        for (point, checkpoint) in record.checkpoints.iter().enumerate() {
            for (query, name) in meta.queries.iter().enumerate() {
                for (place, (_, method)) in methods.iter().enumerate() {
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
    Ok(vec![
        ("seed", Column::Integers(seed)),
        ("fraction", Column::Numbers(fraction)),
        ("collapsed", Column::Integers(collapsed)),
        ("iteration", Column::Integers(iteration)),
        ("query", Column::Words(query_name)),
        ("method", Column::Words(method_name)),
        ("bhattacharyya", Column::Numbers(bhattacharyya)),
        ("wasserstein", Column::Numbers(wasserstein)),
        ("kept", Column::Integers(kept)),
    ])
}
