"""Random programs of views, writes, reads, clones and copies through the backend, beside eager calls."""

import pytest

torch = pytest.importorskip("torch")
import torch_programs  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
COUNT = 100  # of each kind: with gradients and without take turns


@pytest.mark.parametrize(("first", "take"), [(0, "all"), (1_000_000, "default")])
def test_programs_give_what_eager_calls_give(first, take):
    compared = 0
    for seed in range(first, first + COUNT):
        try:
            compared += torch_programs.check(seed, {"take": take})
        except RuntimeError:  # of gradients that need what was written since
            assert torch_programs.refuses(seed), f"program {seed} is refused here alone"
    assert compared > COUNT // 2
