"""How a training process should get its memory: read by the C library before Python starts.

Tensors of a step are megabytes large and live for milliseconds. By default glibc asks the kernel
for each such block and gives it back, and the kernel clears every page anew: a fifth of an update's
time. Kept in the process, blocks are used again by the next layer and the next step.
"""

#: Blocks up to 2 GiB come from the heap, and up to 16 GiB of it stay when they are free.
_TUNABLES = {
    "glibc.malloc.mmap_threshold": 2 << 30,
    "glibc.malloc.trim_threshold": 16 << 30,
}

ENVIRONMENT = {"GLIBC_TUNABLES": ":".join(f"{name}={value}" for name, value in _TUNABLES.items())}
