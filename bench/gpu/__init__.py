"""Step time and memory on a machine with a GPU, for models that are only shapes."""
