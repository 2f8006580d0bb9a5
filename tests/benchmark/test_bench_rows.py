"""The benchmark's cells of row-wise operators: what they compute, and what the command makes of them."""

import importlib.util
import json
import math

import numpy as np
import pytest

from aclnn import cli
from aclnn.benchmark import attention, cells, products, rows

HAS_TORCH = importlib.util.find_spec("torch") is not None


@pytest.fixture(autouse=True)
def few_elements(monkeypatch):
    monkeypatch.setattr(rows, "ELEMENTS", 1 << 12)


def test_cells_cover_axes_lengths_and_dtypes():
    found = rows.select()
    assert {(cell.along, cell.length) for cell in found if cell.operator == "softmax"} == {
        (along, length) for along in rows.AXES for length in rows.LENGTHS
    }
    assert {cell.dtype for cell in found} == set(cells.DTYPES)
    for cell in found:
        assert cell.shape[cell.axis] == cell.length
        assert math.prod(cell.shape) == max(rows.ELEMENTS, cell.length)


@pytest.mark.parametrize("name", rows.FORMS)
def test_our_calls_leave_no_element_out(name):
    for cell in rows.select([name], lengths=[64]):
        made = rows.build(cell)
        made["out"].fill(np.nan)
        assert np.isfinite(rows.first_result(rows.ours(cell, made)())).all()


@pytest.mark.skipif(not HAS_TORCH, reason="compares with PyTorch")
@pytest.mark.parametrize("name", rows.FORMS)
def test_pytorchs_calls_compute_the_same(name):
    for cell in rows.select([name], lengths=[64], dtypes=["float32"]):
        made = rows.build(cell)
        want = rows.first_result(rows.ours(cell, made)())
        found = rows.first_result(rows.theirs(cell, made)())
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(not HAS_TORCH, reason="compares with PyTorch")
def test_cells_of_attention_compute_what_pytorch_does(tmp_path):
    for cell in attention.select(sizes=[64], queries=[1, 16], keys=[128], dtypes=["float32"]):
        made = attention.build(cell)
        want = rows.first_result(attention.theirs(cell, made)())
        found = rows.first_result(attention.ours(cell, made)())
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)
    path = tmp_path / "attention.json"
    options = ["--quick", "--rounds", "1", "--dtypes", "float16", "--json", str(path)]
    assert cli.main(["bench", "--attention", *options]) == 0
    found = json.loads(path.read_text())["rows"]
    assert len(found) == 16
    assert found[0]["operator"] == "attention, 8 heads of 64"
    assert all("torch" in row["ratios"] for row in found)


def test_the_command(tmp_path, capsys):
    path = tmp_path / "rows.json"
    status = cli.main(
        ["bench", "--rows", "softmax", "rms_norm", "--axes", "last", "first", "--lengths", "64",
         "--dtypes", "float16", "--quick", "--rounds", "1", "--json", str(path)]
    )  # fmt: skip
    assert status == 0
    found = json.loads(path.read_text())["rows"]
    assert [row["operator"] for row in found] == [
        "softmax, last axis", "softmax, first axis", "rms_norm, last axis",
    ]  # fmt: skip
    assert {row["regime"] for row in found} == {"rows of 64"}
    for row in found:
        assert row["bytes"] == 2 * 2 * rows.ELEMENTS
        assert set(row["ratios"]) == ({"torch"} if HAS_TORCH else set())
    assert ("softmax, first axis" in capsys.readouterr().out) == HAS_TORCH


def test_cells_of_products_compute_what_numpy_does():
    for cell in products.select(shapes=[(3, 40, 50)], dtypes=["float32", "bfloat16"]):
        made = products.build(cell)
        want = made["a"].astype(np.float64) @ made["b"].astype(np.float64)
        for call in (products.ours(cell, made), products.packed(cell, made)):
            made["out"].fill(np.nan)
            found = rows.first_result(call()).reshape(want.shape)
            np.testing.assert_allclose(found, want, rtol=2e-2, atol=2e-2)


def test_the_command_for_products(tmp_path, capsys):
    path = tmp_path / "products.json"
    options = ["--quick", "--rounds", "1", "--dtypes", "float32", "--json", str(path)]
    assert cli.main(["bench", "--products", *options]) == 0
    found = json.loads(path.read_text())["rows"]
    assert [(row["operator"], row["regime"]) for row in found] == [
        (f"product, B by {layout}", regime)
        for layout in ("rows", "columns")
        for regime in ("1 x 256 x 256", "16 x 256 x 256")
    ]
    others = {"torch", "onednn"} if HAS_TORCH else set()
    for row in found:
        assert set(row["ratios"]) >= {"packed"} | others
        assert row["times"]["aclnn"]["median_us"] > 0
    assert "The packed form's time over ours" in capsys.readouterr().out
