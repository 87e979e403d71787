//! The training of any network as a job.

use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;
use shafer_nets::training::Model;
use shafer_nets::{Error, Step, Trainer};

use super::runner::{Handle, Job};

/// A training of a network. It is a [`Job`].
pub(crate) trait Training: Sync {
    type Model: Model;
    type Record: Serialize + DeserializeOwned + Send;
    /// The examples. They are loaded when the training starts, and dropped when it ends.
    type Data;

    /// The keys of the experiment's configuration that the weights depend on.
    const DEPENDS_ON: &'static [&'static str];

    /// The name of its files, unique in the run.
    fn name(&self) -> String;

    /// The number of batches, for the progress bar.
    fn batches(&self) -> u64;

    fn config(&self) -> <Self::Model as Model>::Config;

    fn seed(&self) -> u64;

    fn load(&self) -> Result<Self::Data>;

    fn examples<'a>(&self, data: &'a Self::Data) -> Result<<Self::Model as Model>::Examples<'a>>;

    /// The record before the first step.
    fn record(&self) -> Self::Record;

    /// Two fields of a record: whether the loss stopped being finite, and the wall-clock seconds. A training that
    /// diverged is recorded, not repeated.
    fn status<'r>(&self, record: &'r mut Self::Record) -> (&'r mut bool, &'r mut f64);

    /// Drops what a record has of later batches: a record is saved before the state of its training, and may
    /// be ahead.
    fn rewind(&self, _: &mut Self::Record, _iteration: usize) {}

    /// Records a step. `Error::Diverged` ends the training as a loss that is not finite does.
    fn observe(
        &self,
        record: &mut Self::Record,
        step: &Step<<Self::Model as Model>::Losses>,
        trainer: &Trainer<'_, Self::Model>,
    ) -> Result<()>;

    /// Completes the record, and returns the weights as the bytes of a safetensors file.
    fn finish(
        &self,
        record: &mut Self::Record,
        model: &Self::Model,
        data: &Self::Data,
    ) -> Result<Vec<u8>>;

    /// Whether weights of another run are of the right shape.
    fn check_weights(&self, weights: &[u8]) -> Result<()>;
}

impl<T: Training> Job for T {
    type Record = T::Record;

    const WEIGHTS_DEPEND_ON: &'static [&'static str] = T::DEPENDS_ON;

    fn name(&self) -> String {
        Training::name(self)
    }

    fn size(&self) -> u64 {
        self.batches()
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
        self.rewind(&mut record, trainer.iteration());
        handle.advance(trainer.iteration() as u64);
        let before = *self.status(&mut record).1;
        loop {
            let step = trainer.step().map_err(anyhow::Error::from).and_then(|step| {
                step.map(|step| self.observe(&mut record, &step, &trainer)).transpose()
            });
            match step {
                Ok(Some(())) => {}
                Ok(None) => break,
                Err(error) if matches!(error.downcast_ref(), Some(Error::Diverged { .. })) => {
                    *self.status(&mut record).0 = true;
                    return Ok(record);
                }
                Err(error) => return Err(error),
            }
            *self.status(&mut record).1 = before + handle.seconds();
            handle.advance(1);
            handle.save(&record, || Ok(trainer.save()?))?;
        }
        let weights = self.finish(&mut record, &trainer.model(), &data)?;
        handle.write_weights(&weights)?;
        Ok(record)
    }

    fn check_weights(&self, record: &mut Self::Record, weights: Option<&[u8]>) -> Result<()> {
        match weights {
            Some(weights) => Training::check_weights(self, weights),
            None if *self.status(record).0 => Ok(()),
            None => bail!("does not exist"),
        }
    }
}
