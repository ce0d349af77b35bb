"""Learning: policy, rollouts, objectives, loops, evaluation, checkpoints.

One process learns one job from one job directory (``python -m trainer JOBDIR``). It knows no
database, no object store and no secret; it speaks to whoever started it through two pipes.
"""

import os

# Models come as local folders: nothing is to be looked for on a hub.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
