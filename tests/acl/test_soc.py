"""Names of products, and what follows from them."""

import pytest

import aclnn
from aclnn.acl import socs

PRODUCTS = {
    "Ascend910B": [
        "Ascend910B1",
        "Ascend910B2",
        "Ascend910B3",
        "Ascend910B2C",
        "ascend910b4-1",
        " ASCEND910B ",
    ],
    "Ascend910": ["Ascend910A", "Ascend910ProA", "Ascend910ProB", "Ascend910PremiumA"],
    "Ascend910_93": ["Ascend910_9391", "Ascend910_9372", "ascend910_93"],
    "Ascend310P": ["Ascend310P1", "Ascend310P3", "Ascend310P7"],
    "Ascend310B": ["Ascend310B1", "Ascend310B4"],
    "Ascend950": ["ASCEND950", "Ascend950PR", "Ascend950PR_9589", "Ascend950DT_95A1"],
}
UNKNOWN = ["", "Ascend", "Ascend911", "910B", "Ascend9109", "Ascend910C", "Ascend910_94", "Ascend910_931",
           "Ascend310", "Ascend310PX", "Ascend310B12", "Ascend910B3!", "Ascend910B33", "xAscend910",
           b"Ascend910", 910, 3, None, "Ascend910\nB", 10**5000]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "family"), [(n, f) for f, names in PRODUCTS.items() for n in [f, *names]]
)
def test_families(name, family):
    assert socs.family(name) == family
    before = aclnn.get_soc_version()
    aclnn.set_soc_version(name)
    assert aclnn.get_soc_version() == family == aclnn.aclrtGetSocName()
    aclnn.set_soc_version(before)


@pytest.mark.parametrize("name", UNKNOWN, ids=aclnn.acl.arguments.shown)
def test_unknown_products_change_nothing(name):
    before = aclnn.get_soc_version()
    with pytest.raises(aclnn.AclnnError, match=r"SoC version is [\s\S]*Ascend910B") as caught:
        aclnn.set_soc_version(name)
    assert caught.value.status == aclnn.ACLNN_ERR_PARAM_INVALID
    assert aclnn.get_soc_version() == before


def test_what_families_have():
    with_bfloat16 = {soc for soc in socs.FAMILIES if socs.supports_bfloat16(soc)}
    assert with_bfloat16 == {"Ascend910B", "Ascend910_93", "Ascend950"}
    assert {s for s in socs.FAMILIES if not socs.has_operators(s)} == {"Ascend310B"}
