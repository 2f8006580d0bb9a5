"""PyTorch's own samples of its operators, through the backend beside eager calls: a part of them.

`tests/support/operator_samples.py` runs all.
"""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")  # what PyTorch's own tests need
import operator_samples  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
EVERY = 27  # of PyTorch's operators
MOST = 3  # samples of each
DTYPES = [torch.float32, torch.bfloat16, torch.int64, torch.complex64, torch.bool]


@pytest.mark.parametrize("take", ["all", "default"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_samples_give_what_eager_calls_give(dtype, take):
    fates, failed = [], []
    for op in operator_samples.operators()[::EVERY]:
        if dtype not in op.supported_dtypes("cpu"):
            continue
        for way, calls in operator_samples.by_way(op, dtype, MOST).items():
            for _, fate, text in operator_samples.checked(calls, take):
                fates.append(fate)
                if fate == "failed":
                    failed.append(f"{operator_samples.title(op)}, {way}: {text}")
    assert not failed
    assert "taken" in fates
