"""Measurements of this machine: files that processes share, broken ones, folders that cannot be written."""

import json
import os
import stat
from importlib.machinery import EXTENSION_SUFFIXES

import pytest
from setups import fresh

from aclnn import measurements
from aclnn.measurements import Measurements


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ACLNN_CACHE_DIR", str(tmp_path / "kept"))
    return tmp_path / "kept"


def test_others_read_what_was_saved(folder):
    first, second = (Measurements("one", {"threads": 1}) for _ in range(2))
    first.put("a", (1.0, 2.0))
    second.put("b", (3.0,))
    assert not folder.exists()
    first.save()
    second.save()
    third = Measurements("one", {"threads": 1})
    assert (third.get("a"), third.get("b"), third.get("c")) == ((1.0, 2.0), (3.0,), None)
    assert len(measurements.files()) == 1


def test_a_file_is_parsed_once_for_each_version_of_it(folder, monkeypatch):
    parsed, loads = [], json.loads
    monkeypatch.setattr(measurements.json, "loads", lambda text: parsed.append(text) or loads(text))
    found = Measurements("example", {})
    found.put("relu", (1.0, 2.0))
    found.save()
    parsed.clear()
    for _ in range(3):
        other = Measurements("example", {})
        assert other.get("relu") == (1.0, 2.0)
        other.put("exp", (3.0, 4.0))  # which no other one sees before it is saved
        assert Measurements("example", {}).get("exp") is None
    assert len(parsed) == 1
    other.save()
    assert Measurements("example", {}).get("exp") == (3.0, 4.0)


def test_other_facts_have_files_of_their_own(folder):
    for threads in (1, 2):
        one = Measurements("one", {"threads": threads})
        assert one.get("a") is None
        one.put("a", (float(threads),))
        one.save()
    assert len(measurements.files()) == 2
    assert measurements.clear() == 2
    assert measurements.files() == []


def test_another_build_measures_anew(folder, monkeypatch):
    def kept(threads, time=None):
        one = Measurements("one", {"threads": threads})
        if time is not None:
            one.put("a", (time,))
            one.save()
        return one.get("a")

    kept(1, 1.0), kept(2, 2.0)
    monkeypatch.setattr(measurements, "build", lambda: "another")
    assert kept(1) is None
    assert kept(1, 3.0) == (3.0,)
    assert len(measurements.files()) == 2  # the one for two threads stays until these are measured
    monkeypatch.undo()
    monkeypatch.setenv("ACLNN_CACHE_DIR", str(folder))
    assert (kept(1), kept(2)) == (None, (2.0,))


def test_a_build_is_known_by_its_modules(monkeypatch, tmp_path):
    (tmp_path / "part").mkdir()
    module = tmp_path / "part" / ("_one" + EXTENSION_SUFFIXES[0])
    module.write_bytes(b"1")
    monkeypatch.setattr(measurements, "_packages", lambda: [tmp_path])
    first = measurements.build.__wrapped__()
    assert first == measurements.build.__wrapped__() != measurements.build()
    os.utime(module, ns=(1, 1))  # built anew
    assert measurements.build.__wrapped__() != first


@pytest.mark.parametrize(
    "text", ["", "[", "[]", "{}", '{"microseconds": {"a": "b"}}', '{"microseconds": 3}']
)
def test_broken_files_are_measured_anew(folder, text):
    one = Measurements("one", {})
    one.put("a", (1.0,))
    one.save()
    (path,) = measurements.files()
    path.write_text(text)
    again = Measurements("one", {})
    assert again.get("a") is None
    again.put("a", (2.0,))
    again.save()
    assert json.loads(path.read_text())["microseconds"] == {"a": [2.0]}


def test_a_folder_that_cannot_be_made_keeps_nothing(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ACLNN_CACHE_DIR", str(tmp_path / "file" / "below"))
    one = Measurements("one", {})
    one.put("a", (1.0,))
    one.save()
    assert one.get("a") == (1.0,)
    assert measurements.files() == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anything")
def test_a_folder_that_cannot_be_written_keeps_nothing(folder):
    folder.mkdir()
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    one = Measurements("one", {})
    one.put("a", (1.0,))
    one.save()
    assert measurements.files() == []


def test_the_command_line_shows_and_clears_them(folder):
    one = Measurements("one", {})
    one.put("a", (1.0,))
    one.save()
    code = "from aclnn.cli import main; main(['config']); main(['config', '--clear-measurements'])"
    done = fresh(code, ACLNN_CACHE_DIR=str(folder))
    assert f"folder {folder}, kept 1, build {measurements.build()}" in done.stdout
    assert f"removed 1 files in {folder}" in done.stdout
    assert measurements.files() == []


def replaced_by_a_pipe(path):
    os.mkfifo(path)


def replaced_by_a_device(path):
    path.symlink_to("/dev/zero")


def replaced_by_depth(path):
    path.write_text("[" * 100_000)


def replaced_by_size(path):
    with path.open("wb") as file:
        file.truncate(measurements.MOST_BYTES + 1)


def replaced_by_a_folder(path):
    path.mkdir()


@pytest.mark.parametrize(
    "replaced",
    [
        replaced_by_a_pipe,
        replaced_by_a_device,
        replaced_by_depth,
        replaced_by_size,
        replaced_by_a_folder,
    ],
)
def test_what_is_no_plain_file_of_a_sane_size_is_ignored(folder, replaced):
    found = Measurements("example", {})
    found.put("relu", (1.0, 2.0))
    found.save()
    (path,) = measurements.files()
    path.unlink()
    replaced(path)
    assert measurements.read(path) == {}
    again = Measurements("example", {})
    assert again.get("relu") is None
    again.put("relu", (3.0,))
    again.save()
    other = Measurements("other", {})  # which looks into all files, for those of other builds
    other.put("gelu", (1.0,))
    other.save()
    assert Measurements("other", {}).get("gelu") == (1.0,)
