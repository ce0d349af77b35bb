"""How fast a reinforcement step is: ours, TRL's `GRPOTrainer`, and a plain loop, side by side."""
