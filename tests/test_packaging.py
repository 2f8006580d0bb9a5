"""What is built and installed."""

import pathlib
import runpy
import shutil

import pytest

ROOT = pathlib.Path(__file__).parent.parent
if not (ROOT / "setup.py").exists():
    pytest.skip("run from an installation without sources", allow_module_level=True)


@pytest.fixture
def setup_in(tmp_path):
    """What setup.py defines, run from a folder of its own."""
    pytest.importorskip("Cython")
    pytest.importorskip("setuptools")
    shutil.copy(ROOT / "setup.py", tmp_path)
    for folder in ("aclnn", "graph"):
        (tmp_path / folder).mkdir()
    shutil.copy(ROOT / "aclnn" / "_version.py", tmp_path / "aclnn")
    return runpy.run_path(str(tmp_path / "setup.py"))


def test_without_kernels_nothing_is_built(setup_in):
    with pytest.raises(SystemExit) as caught:
        setup_in["kernel_extensions"]()
    assert "no aclnn/_kernels.pyx" in str(caught.value.code)


@pytest.mark.parametrize("word", ["0", "false", "OFF", " no "])
def test_openmp_is_left_out_on_demand(setup_in, monkeypatch, word):
    monkeypatch.setenv("ACLNN_OPENMP", word)
    assert setup_in["openmp_flags"]() == []
