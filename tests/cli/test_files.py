"""Files that commands and reports write: as a whole, or not at all."""

import os
import resource
import signal
import stat
import subprocess
import sys

import pytest
from cases import each

import aclnn
from aclnn.acl import files
from aclnn.cli import main

LIMIT = 4096  # bytes that a file may have, in place of a disk that is full


@pytest.fixture
def full_disk():
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "old"
    path.write_text("what was there")
    return path


def test_what_was_there_stays_where_the_disk_is_full(old, full_disk):
    with pytest.raises(OSError, match="File too large"):
        files.write(old, "x" * 2 * LIMIT)
    assert old.read_text() == "what was there"
    assert os.listdir(old.parent) == ["old"]


LIFETIMES = "id,lower,upper,size\n" + "".join(f"b{k},{k},{k + 3},64\n" for k in range(400))


@each("option", ["--svg", "--csv"])
def test_plans_stay_where_the_disk_is_full(tmp_path, option):
    lives, target = tmp_path / "lives.csv", tmp_path / f"plan{option}"
    lives.write_text(LIFETIMES)
    assert main(["plan", "--lifetimes", str(lives), option, str(target)]) == 0
    before = target.read_bytes()
    assert len(before) > LIMIT
    code = f"""
import resource, signal, sys
from aclnn.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({LIMIT}, {LIMIT}))
sys.exit(main(["plan", "--lifetimes", {str(lives)!r}, {option!r}, {str(target)!r}]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode != 0
    assert "File too large" in done.stderr
    assert target.read_bytes() == before
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


def test_permissions_and_links_stay(old):
    old.chmod(0o640)
    link = old.with_name("link")
    link.symlink_to("old")
    files.write(link, "new")
    assert (old.read_text(), link.is_symlink()) == ("new", True)
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    dangling = old.with_name("dangling")
    dangling.symlink_to("made")
    files.write(dangling, b"\xff")
    assert old.with_name("made").read_bytes() == b"\xff"
    assert sorted(os.listdir(old.parent)) == ["dangling", "link", "made", "old"]


def test_new_files_have_the_permissions_of_others(tmp_path):
    (tmp_path / "plain").write_text("")
    files.write(tmp_path / "new", "")
    modes = {(tmp_path / name).stat().st_mode for name in ("plain", "new")}
    assert len(modes) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anything")
def test_files_that_may_not_be_written_are_refused(old):
    old.chmod(0o440)
    with pytest.raises(PermissionError):
        files.write(old, "new")
    assert old.read_text() == "what was there"


def test_folders_are_refused(tmp_path):
    with pytest.raises(IsADirectoryError):
        files.write(tmp_path, "new")
    with pytest.raises(FileNotFoundError):
        files.write(tmp_path / "none" / "new", "new")


def test_what_is_no_plain_file_is_written_in_place(tmp_path):
    files.write("/dev/null", "gone")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    files.write(pipe, "through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_what_the_shell_has_opened_is_written_in_place(tmp_path):
    out = tmp_path / "out"
    code = "from aclnn.acl import files; files.write('/dev/stdout', 'text')"
    with out.open("w") as file:
        inode = os.fstat(file.fileno()).st_ino
        subprocess.run([sys.executable, "-c", code], stdout=file, check=True)
    assert (out.read_text(), out.stat().st_ino) == ("text", inode)
    piped = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert piped.stdout == b"text"


def test_a_models_description_stays_where_the_disk_is_full(old, full_disk):
    stream, _ = aclnn.aclrtCreateStream()
    aclnn.aclmdlRICaptureBegin(stream, 0)
    event, _ = aclnn.aclrtCreateEvent()
    for _ in range(100):
        aclnn.aclrtRecordEvent(event, stream)
    model, status = aclnn.aclmdlRICaptureEnd(stream)
    assert status == 0
    assert aclnn.aclmdlRIDebugJsonPrint(model, str(old), 0) == 107000
    assert "File too large" in aclnn.aclGetRecentErrMsg()
    assert old.read_text() == "what was there"
    assert aclnn.aclmdlRIDestroy(model) == aclnn.aclrtDestroyStream(stream) == 0
