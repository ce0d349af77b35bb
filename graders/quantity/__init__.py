"""Numbers as people and models write them: reading them exactly, or not at all."""
