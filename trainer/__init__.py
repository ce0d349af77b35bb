"""Learning: policy, rollouts, objectives, loops, evaluation, checkpoints.

One process learns one job from one job directory (``python -m trainer JOBDIR``). It knows no
database, no object store and no secret; it speaks to whoever started it through two pipes.
"""
