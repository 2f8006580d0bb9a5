"""What holds for the whole suite, and which part of it is quick."""

import gc
import itertools
import os
import pathlib
import zlib

import cases
import pytest
from hypothesis import HealthCheck, settings
from samples import product_that_has_it  # noqa: F401 - for all tests

import aclnn
from aclnn import isa

# Examples are not timed: the first one of a test imports what the others find there, and machines
# are busy.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("untimed"), max_examples=20)
settings.load_profile("untimed")


# PyTorch reads it when it is imported: graphs of tests are not kept where other runs of them find them.
os.environ.setdefault("TORCHINDUCTOR_AUTOGRAD_CACHE", "0")


SLOW = pathlib.Path(__file__).with_name("slow.txt")


def pytest_addoption(parser):
    parser.addoption(
        "--quick", action="store_true", help="one case of each test but of those in tests/slow.txt"
    )
    parser.addoption(
        "--every-case", action="store_true", help="all cases where tests otherwise take turns"
    )


def pytest_configure(config):
    cases.EVERY = config.getoption("--every-case")
    config.addinivalue_line(
        "markers", "each_instruction_set: once with the kernels of each that this machine has"
    )
    if config.getoption("--quick"):
        settings.load_profile("quick")
        cases.ONE = True


def pytest_collection_modifyitems(config, items):
    """Of a test's cases always the same one, but not of all tests the first: operators take turns."""
    if not config.getoption("--quick"):
        return
    slow, kept = set(SLOW.read_text(encoding="utf-8").splitlines()), []
    for name, listed in itertools.groupby(items, lambda item: item.nodeid.partition("[")[0]):
        cases = list(listed)
        if name.removeprefix("tests/") not in slow:
            kept.append(cases[zlib.crc32(name.encode()) % len(cases)])
    chosen = set(kept)
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = kept


def pytest_collection_finish(session):
    """The tests themselves, and all that their files make, stay: there is nothing to look for in them."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def measurements_apart(tmp_path_factory):
    """What tests measure on a busy machine is not kept for others."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("measurements"))


@pytest.fixture
def instruction_set(request, monkeypatch):
    """What is planned uses the kernels of an instruction set, not of the best one."""
    monkeypatch.setattr(isa, "name", lambda: request.param)
    aclnn.clear_cache()
    yield request.param
    aclnn.clear_cache()


def pytest_generate_tests(metafunc):
    """Whoever asks for an instruction set, or is marked so, has each one."""
    marked = metafunc.definition.get_closest_marker("each_instruction_set") is not None
    if marked and "instruction_set" not in metafunc.fixturenames:
        metafunc.fixturenames.append("instruction_set")
    if "instruction_set" in metafunc.fixturenames:
        metafunc.parametrize("instruction_set", isa.available(), indirect=True)


@pytest.fixture
def threads_as_before():
    """A test may set how many threads there are."""
    before = aclnn.get_num_threads()
    yield
    aclnn.set_num_threads(before)


@pytest.fixture(scope="module")
def chromium():
    """A headless browser, for tests of pages."""
    import browsers

    browser, reason = browsers.start()
    if browser is None:
        (pytest.fail if browsers.REQUIRED else pytest.skip)(reason)
    yield browser
    browser.quit()
