"""Learning from pairs of answers, one of which is preferred."""
