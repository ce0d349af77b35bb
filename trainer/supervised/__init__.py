"""Learning from demonstrations: supervised jobs, and what they share with the warm start."""
