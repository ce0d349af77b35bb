"""Run one training job: claim, prepare, start the trainer, record what it reports, conclude."""
