"""What a trainer or grader process may know of its starter's environment: no secrets."""

import os
from collections.abc import Mapping
from pathlib import Path

_SOURCE_ROOT = Path(__file__).parents[2]

#: What a child may inherit. Everything else, above all database, broker and object-store secrets,
#: stays with the process that starts it.
_INHERITED_NAMES = frozenset(
    {"PATH", "HOME", "USER", "LANG", "LANGUAGE", "TZ", "TMPDIR", "VIRTUAL_ENV"}
    | {"LD_LIBRARY_PATH", "LD_PRELOAD", "MALLOC_ARENA_MAX", "SSL_CERT_FILE", "SSL_CERT_DIR"}
    # The process of a grader looks at a python grader's source with the Python that will run it.
    | {"RFT_SANDBOX_PYTHON"}
    | {"CUBLAS_WORKSPACE_CONFIG", "HF_HOME", "HF_HUB_OFFLINE", "XDG_CACHE_HOME"}
)
_INHERITED_PREFIXES = (
    *("LC_", "PYTHON", "OMP_", "KMP_", "MKL_", "NCCL_", "GLOO_"),
    *("CUDA_", "NVIDIA_", "TORCH_", "PYTORCH_", "TRITON_", "VLLM_", "TOKENIZERS_"),
)
_SECRET_WORDS = frozenset({"KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIALS"})


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that a trainer or grader process sees; no secrets."""
    kept = {
        name: value
        for name, value in environment.items()
        if (name in _INHERITED_NAMES or name.startswith(_INHERITED_PREFIXES))
        and _SECRET_WORDS.isdisjoint(name.split("_"))
    }
    # The child runs in a folder of its own; the packages are found from where its starter has them.
    paths = [str(_SOURCE_ROOT), *filter(None, [kept.get("PYTHONPATH")])]
    return kept | {"PYTHONPATH": os.pathsep.join(paths)}
