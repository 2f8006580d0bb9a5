"""Profiles in the layout of Ascend's profiler: tables, timeline, and what viewers insist on."""

import csv
import json
import re

import numpy as np
import pytest

import aclnn


@pytest.fixture
def seen():
    """A profile of two executors, one of which has several steps."""
    x = np.ones((64, 32), np.float32)
    softmax = aclnn.executor("softmax", x, dim=-1)
    add = aclnn.executor("add", x, np.ones(32, np.float16), materialize=True)
    with aclnn.profile() as profile:
        for _ in range(3):
            softmax.run()
            add.run()
    return profile


def rows(folder, name):
    (path,) = folder.glob(f"mindstudio_profiler_output/{name}_*.csv")
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_names_are_those_that_viewers_look_for(seen, tmp_path):
    made = seen.to_ascend(tmp_path)
    assert made.parent == tmp_path
    assert re.fullmatch(r"PROF_\d{6}_\d{14}_\w+", made.name)
    names = sorted(path.name for path in (made / "mindstudio_profiler_output").iterdir())
    assert [re.sub(r"_\d{1,14}\.", "_*.", name) for name in names] == [
        "api_statistic_*.csv", "msprof_*.json", "op_statistic_*.csv", "op_summary_*.csv",
        "task_time_*.csv",
    ]  # fmt: skip
    assert (made / "host").is_dir()
    assert (made / "device_0").is_dir()
    assert seen.to_ascend(tmp_path) != made, "a profile does not write over another"
    with pytest.raises(NotADirectoryError):
        seen.to_ascend(tmp_path / "nowhere")


def test_tables_have_every_step_of_every_run(seen, tmp_path):
    made = seen.to_ascend(tmp_path)
    summary = rows(made, "op_summary")
    steps = [len(run.plan.schedule.steps) for run in seen.runs]
    assert steps[1] > 1
    assert len(summary) == sum(steps)
    assert [int(row["Task ID"]) for row in summary] == list(range(len(summary)))
    assert {row["Model ID"] for row in summary} == {"1", "2"}
    assert summary[0]["Op Name"] == "softmax"
    assert summary[0]["Input Shapes"] == '"64,32"'
    assert summary[0]["Output Data Types"] == "FLOAT"
    cast = next(row for row in summary if row["Op Name"] == "other_cast")
    assert (cast["Input Data Types"], cast["Output Data Types"]) == ("FLOAT16", "FLOAT")
    assert {row["Task Type"] for row in summary} == {"AI_CPU"}
    starts = [float(row["Task Start Time(us)"]) for row in summary]
    assert starts == sorted(starts)
    assert all(float(row["Task Duration(us)"]) > 0 for row in summary)

    times = rows(made, "task_time")
    for task, row in zip(times, summary, strict=True):
        assert task["task_start(us)"] == row["Task Start Time(us)"]
        took = float(task["task_stop(us)"]) - float(task["task_start(us)"])
        assert took == pytest.approx(float(task["task_time(us)"]), abs=0.01)

    statistic = rows(made, "op_statistic")
    assert sum(int(row["Count"]) for row in statistic) == len(summary)
    assert sum(float(row["Ratio(%)"]) for row in statistic) == pytest.approx(100, abs=0.1)
    api = rows(made, "api_statistic")
    assert {row["API Name"]: row["Count"] for row in api} == {"softmax": "3", "add": "3"}


def test_the_timeline_shows_runs_and_tasks(seen, tmp_path):
    made = seen.to_ascend(tmp_path)
    (path,) = made.glob("mindstudio_profiler_output/msprof_*.json")
    trace = json.loads(path.read_text())
    named = {
        event["pid"]: event["args"]["name"] for event in trace if event["name"] == "process_name"
    }
    assert sorted(named.values()) == ["Ascend Hardware", "CANN"]
    slices = [event for event in trace if event["ph"] == "X"]
    tasks = [event for event in slices if named[event["pid"]] == "Ascend Hardware"]
    runs = [event for event in slices if named[event["pid"]] == "CANN"]
    assert len(runs) == len(seen)
    assert len(tasks) == len(rows(made, "op_summary"))
    assert {"Model Id", "Task Type", "Stream Id", "Task Id"} <= tasks[0]["args"].keys()
    begins = [event for event in trace if event["ph"] == "s"]
    ends = [event for event in trace if event["ph"] == "f"]
    assert len(begins) == len(ends) == len(runs)
    assert {event["id"] for event in begins} == {event["id"] for event in ends}


def test_an_empty_profile_is_written_too(tmp_path):
    made = aclnn.Profile().to_ascend(tmp_path)
    assert rows(made, "op_summary") == []
