"""What statuses are explained as."""

import threading

import numpy as np
import pytest
from cases import each

import aclnn
from aclnn.acl import arguments, constants


@pytest.mark.parametrize(
    "status",
    [-1, 42, 161003, "161001", None, 10**5000, 1.5, np.zeros(2), []],
    ids=arguments.shown,
)
def test_what_is_no_status_is_said_to_be_none(status):
    assert aclnn.explain(status).endswith("no status of this library")


@each("status", [*constants.aclnnStatus, *constants.aclError])
def test_every_status_is_explained(status):
    text = aclnn.explain(status)
    assert status.name in text
    assert str(int(status)) in text
    assert len(text.splitlines()) == 3


def test_success_has_both_names():
    assert aclnn.explain(0).startswith("ACLNN_SUCCESS = ACL_SUCCESS (0)\n")


def test_statuses_are_explained_by_number_too():
    assert aclnn.explain(161002) == aclnn.explain(constants.aclnnStatus.ACLNN_ERR_PARAM_INVALID)


def test_the_latest_failure_is_explained_without_a_status():
    seen = []
    fresh_thread = threading.Thread(target=lambda: seen.append(aclnn.explain()))
    fresh_thread.start()
    fresh_thread.join()
    assert seen == ["nothing failed on this thread"]
    assert aclnn.aclnnGeluGetWorkspaceSize(None, None)[2] == 161001
    message = aclnn.aclGetRecentErrMsg()
    text = aclnn.explain()
    assert text.startswith(aclnn.explain(161001))
    assert text.endswith(message)
