//! The training of any network as a job.

use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;
use shafer_nets::training::Model;
use shafer_nets::{Error, Net, Precision, Step, Trainer};

use super::runner::{Handle, Job};

/// The trained network of a model.
type Trained<M> = Net<<M as Model>::Network>;

/// A training of a network. It is a [`Job`].
pub(crate) trait Training: Sync {
    type Model: Model;
    type Record: TrainingRecord;
    /// The examples. They are loaded when the training starts, and dropped when it ends.
    type Data;

    /// The keys of the experiment's configuration that the weights depend on.
    const DEPENDS_ON: &'static [&'static str];

    /// Of the weights that are kept.
    const PRECISION: Precision = Precision::Half;

    /// The name of its files, unique in the run.
    fn name(&self) -> String;

    fn config(&self) -> <Self::Model as Model>::Config;

    fn seed(&self) -> u64;

    /// The number of examples, for the progress bar.
    fn count(&self) -> usize;

    fn load(&self) -> Result<Self::Data>;

    fn examples<'a>(&self, data: &'a Self::Data) -> Result<<Self::Model as Model>::Examples<'a>>;

    /// The record before the first step.
    fn record(&self) -> Self::Record;

    /// Records a step. `Error::Diverged` ends the training as a loss that is not finite does.
    fn observe(
        &self,
        record: &mut Self::Record,
        step: &Step<<Self::Model as Model>::Losses>,
        trainer: &Trainer<'_, Self::Model>,
    ) -> Result<()>;

    /// Completes the record.
    fn finish(
        &self,
        _: &mut Self::Record,
        _model: &Trained<Self::Model>,
        _: &Self::Data,
    ) -> Result<()> {
        Ok(())
    }
}

/// What a training records.
pub(crate) trait TrainingRecord: Serialize + DeserializeOwned + Send {
    /// Two fields: whether the loss stopped being finite, and the wall-clock seconds. A training that diverged
    /// is recorded, not repeated.
    fn status(&mut self) -> (&mut bool, &mut f64);

    /// Drops what it has of later batches: a record is saved before the state of its training, and may be ahead.
    fn rewind(&mut self, _iteration: usize, _batches_per_epoch: usize) {}
}

impl<T: Training> Job for T {
    type Record = T::Record;

    const WEIGHTS_DEPEND_ON: &'static [&'static str] = T::DEPENDS_ON;

    fn name(&self) -> String {
        Training::name(self)
    }

    fn size(&self) -> u64 {
        T::Model::plan(&self.config()).batches(self.count()) as u64
    }

    fn run(&self, handle: &Handle<'_>) -> Result<Self::Record> {
        let data = self.load()?;
        let (config, examples, seed) = (self.config(), self.examples(&data)?, self.seed());
        let (mut trainer, mut record) = match handle.saved()? {
            Some((record, state)) => {
                let trainer =
                    Trainer::<T::Model>::resume(&config, examples, seed, handle.device(), &state)
                        .with_context(|| handle.start_again())?;
                (trainer, record)
            }
            None => (Trainer::new(&config, examples, seed, handle.device())?, self.record()),
        };
        record.rewind(trainer.iteration(), trainer.batches_per_epoch());
        handle.advance(trainer.iteration() as u64);
        let before = *record.status().1;
        loop {
            let step = trainer.step().map_err(anyhow::Error::from).and_then(|step| {
                step.map(|step| self.observe(&mut record, &step, &trainer)).transpose()
            });
            match step {
                Ok(Some(())) => {}
                Ok(None) => break,
                Err(error) if matches!(error.downcast_ref(), Some(Error::Diverged { .. })) => {
                    *record.status().0 = true;
                    return Ok(record);
                }
                Err(error) => return Err(error),
            }
            *record.status().1 = before + handle.seconds();
            handle.advance(1);
            handle.save(&record, || Ok(trainer.save()?))?;
        }
        let model = trainer.model();
        self.finish(&mut record, &model, &data)?;
        handle.write_weights(&model.to_safetensors(T::PRECISION)?)?;
        Ok(record)
    }

    fn check_weights(&self, record: &mut Self::Record, weights: Option<&[u8]>) -> Result<()> {
        match weights {
            Some(weights) => {
                let model = Trained::<T::Model>::from_safetensors(weights)?;
                if model.config() != T::Model::shape(&self.config()) {
                    bail!("is a network of another shape");
                }
                Ok(())
            }
            None if *record.status().0 => Ok(()),
            None => bail!("does not exist"),
        }
    }
}
