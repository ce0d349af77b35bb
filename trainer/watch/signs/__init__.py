"""Signs that a rising reward is no real gain, each a warning with its evidence."""
