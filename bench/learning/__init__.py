"""Whether the trainer learns: the same jobs as TRL's GRPOTrainer, score by step and by minute."""
