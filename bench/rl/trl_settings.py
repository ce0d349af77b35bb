"""What TRL is told beyond the workload: `defaults` are its own, the others were tried for speed."""

from typing import Any

SETTINGS: dict[str, dict[str, Any]] = {
    "defaults": {},
    # Recomputing activations saves memory that this machine has.
    "no_checkpointing": {"gradient_checkpointing": False},
    # Fewer, larger micro-batches, with more padding in them.
    "large_batches": {"gradient_checkpointing": False, "per_device_train_batch_size": 16},
    # Weights in the type that they are multiplied in; small updates are rounded away.
    "bf16_weights": {
        "gradient_checkpointing": False,
        "model_init_kwargs": {"dtype": "bfloat16"},
    },
    "static_cache": {"gradient_checkpointing": False, "cache_implementation": "static"},
    # On a CPU it takes all free memory for its cache, and a minute for a handful of tokens.
    "continuous_batching": {
        "gradient_checkpointing": False,
        "use_transformers_continuous_batching": True,
    },
    "compiled": {"gradient_checkpointing": False, "torch_compile": True},
    # Weights are pushed by `load_weights`, which vLLM's CPU engine refuses: it has packed them.
    # The other mode, a server, pushes them by NCCL, which needs GPUs.
    "vllm_colocate": {"gradient_checkpointing": False, "use_vllm": True},
}
