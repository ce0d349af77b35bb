"""What the grader makes of a model before anything is trained."""
