"""A batch pipeline: records in half precision become features, a batch at a time, into one array.

Every batch runs the same plan; the last one, which is smaller, gets a plan of its own. Results go
where they belong (``out=``), so that nothing is copied together in the end. Run it with
``python examples/batches.py``.
"""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

import aclnn

RECORDS, FIELDS, FEATURES, BATCH = 10_000, 64, 32, 1024


@aclnn.compile
def features(
    records: NDArray[np.float16], scale: NDArray[np.float32], projection: NDArray[np.float32]
) -> NDArray[Any]:
    """Records, scaled and normalised, as probabilities of features."""
    x = aclnn.layer_norm(records.astype(np.float32) * scale, (FIELDS,))
    return aclnn.softmax(aclnn.silu(x) @ projection, -1)


def batches(count: int) -> list[slice]:
    """The slices of so many records."""
    return [slice(begin, min(begin + BATCH, count)) for begin in range(0, count, BATCH)]


def main() -> None:
    draw = np.random.default_rng(0)
    records = draw.normal(size=(RECORDS, FIELDS)).astype(np.float16)
    scale = draw.uniform(0.5, 2, FIELDS).astype(np.float32)
    projection = draw.normal(0, 0.2, (FIELDS, FEATURES)).astype(np.float32)
    results = np.empty((RECORDS, FEATURES), np.float32)

    begin = time.perf_counter()
    for rows in batches(RECORDS):
        features(records[rows], scale, projection, out=results[rows])
    took = time.perf_counter() - begin

    known = features.cache_info()
    print(f"{RECORDS} records in {len(batches(RECORDS))} batches: {1e3 * took:.1f} ms")
    print(f"{known['misses']} plans, which {known['hits']} batches found again")
    one = features.executor(records[:BATCH], scale, projection)
    print(f"a batch moves {sum(s.bytes_read + s.bytes_written for s in one.schedule.steps)} bytes")
    print(one.plan.to_text())

    whole = features(records, scale, projection)
    assert np.allclose(results, whole, atol=1e-6)
    assert np.allclose(results.sum(-1), 1, atol=1e-5)
    assert known["misses"] == 2


if __name__ == "__main__":
    main()
