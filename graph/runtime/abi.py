"""The numbers of `program.h` and `kernel_abi.h`, for Python: a test holds them together.

They are written again, and not read from the compiled scheduler, so that graphs are built, planned
and drawn without it.
"""

MAX_DIMS = 8  # that a step loops over
MAX_THREADS = 1024  # that a schedule may have tiles for
ALIGNMENT = 64  # bytes, of memory that kernels have for themselves

WORKSPACE = -1  # base of an operand: it is in the workspace
SCRATCH = -2  # or in the tiles that each thread has there

TILE_STREAM = 1  # the output will not be read soon: stores bypass the cache
TILE_PREFETCH_NEAR = 2  # operands are larger than the nearest cache: prefetch a little ahead
TILE_PREFETCH_FAR = 4  # far larger than a core's own caches: prefetch further ahead as well
TILE_SAWTOOTH = 8  # somewhat larger than these caches: runs walk back and forth
