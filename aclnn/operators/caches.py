"""Key-value caches: rows of tokens written into blocks, and read out of them; rotary with a cache."""

from __future__ import annotations

import math
from collections.abc import Mapping

from aclnn.acl import dtypes
from aclnn.acl.constants import ACLNN_ERR_PARAM_NULLPTR, aclDataType
from aclnn.graph.strides import contiguous_strides
from aclnn.operators.checks import (
    NOTHING_TO_DO,
    Call,
    Rule,
    dtype_among,
    of_cann,
    rule,
    same_dtype,
    switch_among,
    when,
)
from aclnn.operators.declaration import ROW_ACCURACY, Attribute, Operator, entry
from aclnn.operators.lowering import Lowering
from aclnn.operators.quantization import BYTE, HALVES, LONG, PACKED, SINGLE, quantized
from aclnn.operators.rotary import INTERLEAVE_HALF, rotate
from aclnn.operators.sizes import is_absent, planned, size_is, together
from aclnn.operators.words import require, specs

Shape = tuple[int, ...]
Inferred = Mapping[str, tuple[aclDataType, Shape]]

_INDICES = (PACKED, LONG)
_STORED = (*HALVES, BYTE)
# Wider elements, which functional forms take, too.
_COPIED = (*_STORED, SINGLE)
_MISSING = "what it is for is not implemented here"
SLOTS, POSITIONS, BLOCKS = range(3)
_BYTES_OF_BLOCK = 32
_EXACT = "Elements keep their bits."
_BEYOND = (
    "Negative indices are skipped; one beyond the cache ends the run with 161002, and nothing is written. Of "
    "tokens with one slot the last one stays."
)


def _columns_of_block(dtype: aclDataType) -> int:
    return _BYTES_OF_BLOCK // dtypes.item_size(dtype)


# --- Rows into a cache ----------------------------------------------------------------------------

_MODES = ("Norm", "PA_NZ")
_SCATTER_MODES = ("None", "NHSD")


def _mode(call: Call) -> str:
    return str(call.switches["cache_mode"] or "Norm")


def _slot_axis(call: Call, cache: str) -> int:
    if _mode(call) == "PA_NZ":
        return len(call.shape(cache)) - 2
    return 2 if call.switches.get("scatter_mode") == "NHSD" else 1


def _row_sizes(call: Call, cache: str) -> Shape:
    """The sizes of a row as a cache has them."""
    axis = _slot_axis(call, cache)
    return tuple([size for n, size in enumerate(call.shape(cache)) if n not in (0, axis)])


def _has_value(call: Call) -> bool:
    return "value" in call.tensors and call.tensors["value"].size > 0


@rule("`value_cache` is given with `value`", "value", "value_cache", status=ACLNN_ERR_PARAM_NULLPTR)
def _value_cache_given(call: Call) -> str | None:
    if "value" not in call.tensors or "value_cache" in call.tensors:
        return None
    return f"{call.names['value_cache']} is null, but {call.names['value']} is not"


def _nothing_to_write() -> Rule:
    def test(call: Call) -> str | None:
        empty = [call.tensors[role].size == 0 for role in ("key", "key_cache")]
        rest = [call.tensors[r].size == 0 for r in ("value", "value_cache") if r in call.tensors]
        return NOTHING_TO_DO if any(empty) and (not rest or any(rest)) else None

    roles = ("key", "key_cache", "value", "value_cache")
    return Rule("if there is nothing to write, nothing more is checked", test, roles)


def _rank_among(role: str, allowed: tuple[int, ...]) -> Rule:
    words = " or ".join(map(str, allowed))

    def test(call: Call) -> str | None:
        if role not in call.tensors or len(call.shape(role)) in allowed:
            return None
        return f"{call.ranked(role)}, must have {words}"

    return Rule(f"`{role}` has {words} dimensions", test, (role,))


def _unless_blocks(rule: Rule) -> Rule:
    return when(lambda call: _mode(call) != "PA_NZ", rule, "unless cache_mode is 'PA_NZ', {}")


@rule("INT8 values need INT8 keys", "key", "value")
def _keys_of_bytes(call: Call) -> str | None:
    if not _has_value(call) or call.dtype("value") != BYTE or call.dtype("key") == BYTE:
        return None
    return f"{call.names['value']} has dtype {call.word(BYTE)}, but {call.names['key']} has not"


@rule("rows of `{cache}` are those of `{role}`")
def _cache_fits(call: Call, cache: str, role: str) -> str | None:
    if cache not in call.tensors or (role == "value" and not _has_value(call)):
        return None
    shape, blocks = call.shape(cache), _mode(call) == "PA_NZ"
    allowed = (4, 5) if blocks else (4,)
    name = call.names[cache]
    if len(shape) not in allowed:
        words = " or ".join(map(str, allowed))
        return f"{name} has {len(shape)} dimensions, must have {words}"
    row = call.shape(role)[1:]
    wide = _columns_of_block(call.dtype(role))
    sizes = _row_sizes(call, cache)
    if blocks and (shape[-1] != wide or row[-1] % wide):
        return f"{name} has shape {shape}, must end in {wide}, which divides the last size of {call.names[role]}"
    requested = row
    if blocks:
        flat = math.prod(row)
        requested = (flat // wide, wide) if len(shape) == 4 else (row[0], row[1] // wide, wide)
    if sizes == requested:
        return None
    return f"{name} has shape {shape}, whose rows are {sizes}, must be {requested} as {call.names[role]} has {row}"


def _same_places() -> Rule:
    def test(call: Call) -> str | None:
        if not _has_value(call):
            return None
        found = []
        for cache in ("key_cache", "value_cache"):
            shape = call.shape(cache)
            found.append((shape[0], shape[_slot_axis(call, cache)]))
        tokens = call.shape("key")[:2] == call.shape("value")[:2]
        if found[0] == found[1] and tokens:
            return None
        return (
            f"{call.names['value']} {call.shape('value')} and {call.names['value_cache']} "
            f"{call.shape('value_cache')} differ from {call.names['key']} {call.shape('key')} and "
            f"{call.names['key_cache']} {call.shape('key_cache')} not only in the last size"
        )

    roles = ("key", "key_cache", "value", "value_cache")
    return Rule("keys and values have as many tokens, heads, blocks and slots", test, roles)


@rule("`key_cache` has room for the tokens", "key", "key_cache")
def _room_for_tokens(call: Call) -> str | None:
    tokens, shape = call.shape("key")[0], call.shape("key_cache")
    room = shape[0] * shape[_slot_axis(call, "key_cache")]
    if tokens <= room:
        return None
    return f"{call.names['key']} has {tokens} tokens, {call.names['key_cache']} room for {room}"


def _mode_among(option: str, allowed: tuple[str, ...]) -> Rule:
    """Null and an empty string stand for the first."""
    among = switch_among(option, allowed)

    def test(call: Call) -> str | None:
        return None if call.switches[option] in (None, "") else among.test(call)

    return Rule(among.text, test, (option,))


@rule("`value` is given with scatter_mode 'NHSD'", "value", "scatter_mode")
def _value_unless_keys_alone(call: Call) -> str | None:
    turned = _mode(call) != "PA_NZ" and call.switches["scatter_mode"] == "NHSD"
    if _has_value(call) or not turned:
        return None
    return f"{call.names['value']} has no elements, must have some with {call.names['scatter_mode']} 'NHSD'"


def _as_cache_rows(lowering: Lowering, role: str, cache: str) -> int:
    call = lowering.call
    return lowering.reshaped(role, (call.shape(role)[0], *_row_sizes(call, cache)))


def scattered(
    lowering: Lowering,
    cache: int,
    rows: int,
    places: int,
    *,
    slot_axis: int,
    counts: int = SLOTS,
    sequence: int = 0,
) -> int:
    """A cache with rows of tokens in it, which may be written in the place of the cache."""
    value = lowering.builder.value(cache)
    return lowering.builder.compute(
        "scatter_rows",
        [cache, rows, places],
        value.shape,
        value.dtype,
        domain="opaque",
        reads_strided=True,
        writes_strided=True,
        in_place=(0,),
        slot_axis=slot_axis,
        counts=counts,
        sequence=sequence,
    )


def _lower_scatter(lowering: Lowering) -> Mapping[str, int]:
    call, found = lowering.call, {}
    pairs = (("key", "key_cache", "out_key"), ("value", "value_cache", "out_value"))
    for role, cache, made in pairs:
        if not lowering.wants(made):
            continue
        rows = _as_cache_rows(lowering, role, cache)
        places = lowering.value("slot_mapping")
        axis = _slot_axis(call, cache)
        found[made] = scattered(lowering, lowering.value(cache), rows, places, slot_axis=axis)
    return found


def _infer_scatter(call: Call) -> Inferred:
    found = {"out_key": (call.dtype("key_cache"), call.shape("key_cache"))}
    if _has_value(call) and call.tensors["value_cache"].size:
        found["out_value"] = (call.dtype("value_cache"), call.shape("value_cache"))
    return found


_LATER = ("compress_lens", "compress_seq_offset", "seq_lens")


def _stored(role: str) -> tuple[Rule, Rule]:
    return dtype_among(role, _COPIED), of_cann(dtype_among(role, _STORED))


scatter_pa_kv_cache = Operator(
    name="scatter_pa_kv_cache",
    in_place="scatter_pa_kv_cache",
    summary="Write keys and values of tokens into the slots of caches.",
    expression="key_cache[slot // size, slot % size] = key[token], slot = slot_mapping[token]; values likewise",
    notes=(
        f"{_EXACT} {_BEYOND} Without value, only keys are written. With cache_mode 'Norm', the default here (in "
        "PyTorch's adapter it is 'PA_NZ'), caches are (blocks, slots, heads, size), with scatter_mode 'NHSD' "
        "(blocks, heads, slots, size); with 'PA_NZ' (blocks, heads·size/c, slots, c) or (blocks, heads, size/c, "
        "slots, c), c elements being 32 bytes. Other modes are refused."
    ),
    inputs=("key", "value", "key_cache", "value_cache", "slot_mapping", *_LATER),
    optional=("value", "value_cache", *_LATER, "out_value"),
    outputs=("out_key", "out_value"),
    attributes=(
        Attribute("cache_mode", "Norm", "str", nullable=True, doc="'Norm' or 'PA_NZ'."),
        Attribute("scatter_mode", "None", "str", nullable=True, doc="'None' or 'NHSD'."),
        Attribute("strides", None, "ints", nullable=True, doc="Has no effect."),
        Attribute("offsets", None, "ints", nullable=True, doc="Has no effect."),
    ),
    parameters=("key", "value", "key_cache", "value_cache", "slot_mapping"),
    sample_specs=specs("key, value: [1,1,1]; key_cache, value_cache: [1,1,1,1]; slot_mapping: INT32[1]"),
    entries=(
        entry(
            "aclnnScatterPaKvCache",
            "key keyCacheRef=key_cache:inout slotMapping=slot_mapping value:in? "
            "valueCacheRef=value_cache:inout? compressLensOptional=compress_lens:in? "
            "compressSeqOffsetOptional=compress_seq_offset:in? seqLensOptional=seq_lens:in? "
            "cacheModeOptional=cache_mode:str? scatterModeOptional=scatter_mode:str? "
            "stridesOptional=strides:ints? offsetsOptional=offsets:ints?",
        ),
    ),
    rules=(
        _value_cache_given(),
        _nothing_to_write(),
        _rank_among("key", (3, 4)),
        _rank_among("value", (0, 3, 4)),
        *_stored("key"),
        *_stored("key_cache"),
        *require("slot_mapping: INT32 INT64; key_cache: dtype of key"),
        *_stored("value"),
        *_stored("value_cache"),
        *require("value_cache: dtype of value"),
        _unless_blocks(same_dtype("value", "key")),
        *[same_dtype(role, "slot_mapping") for role in _LATER],
        *planned(
            _mode_among("cache_mode", _MODES),
            _unless_blocks(_mode_among("scatter_mode", _SCATTER_MODES)),
            *[is_absent(role, _MISSING) for role in _LATER],
            _value_unless_keys_alone(),
            _keys_of_bytes(),
            *require("key: 3 dims; slot_mapping: 1 dim"),
            size_is("slot_mapping", lambda call: call.shape("key")[:1], "an index for each token"),
            _cache_fits("key_cache", "key"),
            _cache_fits("value_cache", "value"),
            _same_places(),
            _room_for_tokens(),
        ),
    ),
    infer=_infer_scatter,
    lower=_lower_scatter,
    example=(
        "scatter_pa_kv_cache(np.float16([[[7]]]), np.float16([[[8]]]), np.float16([[[[0]]]]), np.float16([[[[0]]]]), "
        "np.int32([0]))",
        "(array([[[[7.]]]], dtype=float16), array([[[[8.]]]], dtype=float16))",
    ),
    accuracy=_EXACT,
    seealso=("gather_pa_kv_cache",),
)  # fmt: skip


# --- Rows out of a cache --------------------------------------------------------------------------


def _nothing_to_read() -> Rule:
    roles = ("key_cache", "value_cache", "key", "value")

    def test(call: Call) -> str | None:
        return NOTHING_TO_DO if any(call.tensors[role].size == 0 for role in roles) else None

    return Rule("if a tensor is empty, nothing more is checked", test, roles)


@rule("rows of `{role}` are those of `{cache}`")
def _rows_fit(call: Call, role: str, cache: str) -> str | None:
    shape, blocks = call.shape(cache), _mode(call) == "PA_NZ"
    row = call.shape(role)[1:]
    sizes = _row_sizes(call, cache)
    wide = _columns_of_block(call.dtype(cache))
    if blocks and shape[-1] != wide:
        return f"{call.names[cache]} has shape {shape}, must end in {wide}"
    requested = (math.prod(sizes),) if blocks else sizes
    if row == requested:
        return None
    return f"{call.names[role]} has rows of {row}, must have {requested} as {call.names[cache]} has {shape}"


@rule("`seq_lens` has one for each row of `block_tables`, one more where they are sums", "seq_lens")
def _batches_fit(call: Call) -> str | None:
    requested = call.shape("block_tables")[0] + bool(call.switches["is_seq_lens_cumsum"])
    if call.shape("seq_lens") == (requested,):
        return None
    return f"{call.shaped('seq_lens')}, must have ({requested},)"


@rule("`key` and `value` have as many rows")
def _as_many_rows(call: Call) -> str | None:
    a, b = call.shape("key")[0], call.shape("value")[0]
    return None if a == b else f"{call.names['key']} has {a} rows, {call.names['value']} {b}"


def _lower_gather(lowering: Lowering) -> Mapping[str, int]:
    call, found = lowering.call, {}
    rest = [role for role in ("block_tables", "seq_lens", "seq_offset") if lowering.has(role)]
    for role, cache, made in (
        ("key", "key_cache", "out_key"),
        ("value", "value_cache", "out_value"),
    ):
        rows = lowering.reshaped(role, (call.shape(role)[0], *_row_sizes(call, cache)))
        one = lowering.taken(
            "gather_pages",
            [rows, lowering.value(cache), *[lowering.value(name) for name in rest]],
            call.dtype(role),
            lowering.builder.value(rows).shape,
            table=1,
            in_place=(0,),
            slot_axis=_slot_axis(call, cache),
            adds_up=bool(call.switches["is_seq_lens_cumsum"]),
        )
        found[made] = lowering.reshaped(one, call.shape(role))
    return found


gather_pa_kv_cache = Operator(
    name="gather_pa_kv_cache",
    in_place="gather_pa_kv_cache",
    summary="Read the keys and values of batches out of the pages of caches.",
    expression="key[n] = key_cache[block_tables[b, j // size], j % size], batch after batch, j < seq_lens[b]",
    notes=(
        f"{_EXACT} Rows after those of the last batch stay as they are. A missing block, or more rows than "
        "`key` has, end the run with 161002. With `seq_offset`, a batch begins seq_offset // size pages later. With "
        "cache_mode 'PA_NZ' caches are (blocks, heads·size/c, slots, c), c elements being 32 bytes, and rows have one "
        "dimension."
    ),
    inputs=("key_cache", "value_cache", "block_tables", "seq_lens", "key", "value", "seq_offset"),
    optional=("seq_offset",),
    outputs=("out_key", "out_value"),
    attributes=(
        Attribute("is_seq_lens_cumsum", False, "bool", doc="Whether lengths are running sums, from 0."),
        Attribute("cache_mode", "Norm", "str", nullable=True, doc="'Norm' or 'PA_NZ'."),
    ),
    parameters=("key_cache", "value_cache", "block_tables", "seq_lens", "key", "value"),
    sample_specs=specs("key, value: [1,1,1]; key_cache, value_cache: [1,1,1,1]; block_tables: INT32[1,1]; seq_lens: INT32[1]"),
    entries=(
        entry(
            "aclnnGatherPaKvCache",
            "keyCache=key_cache valueCache=value_cache blockTables=block_tables seqLens=seq_lens keyRef=key:inout "
            "valueRef=value:inout seqOffsetOptional=seq_offset:in? cacheMode=cache_mode:str "
            "isSeqLensCumsum=is_seq_lens_cumsum:bool",
        ),
    ),
    rules=(
        _nothing_to_read(),
        *require("key_cache, value_cache: 4 dims; block_tables: 2 dims; seq_lens: 1 dim"),
        *require("key, value: 2 to 3 dims"),
        *require("key_cache, value_cache: FLOAT16 BF16 INT8 FLOAT UINT8 INT16 INT32"),
        *require("block_tables, seq_lens: INT32 INT64; key: dtype of key_cache"),
        *require("value: dtype of value_cache"),
        _unless_blocks(same_dtype("value_cache", "key_cache")),
        *require("seq_lens, seq_offset: dtype of block_tables"),
        *planned(
            _mode_among("cache_mode", _MODES),
            _batches_fit(),
            size_is("seq_offset", lambda call: call.shape("block_tables")[:1], "one for each batch"),
            _as_many_rows(),
            _rows_fit("key", "key_cache"),
            _rows_fit("value", "value_cache"),
        ),
    ),
    infer=lambda call: {
        f"out_{role}": (call.dtype(role), call.shape(role)) for role in ("key", "value")
    },
    lower=_lower_gather,
    example=(
        "gather_pa_kv_cache(np.float16([[[[1]], [[2]]]]), np.float16([[[[3]], [[4]]]]), np.int32([[0]]), np.int32([1]), "
        "np.float16([[[0]]]), np.float16([[[0]]]))",
        "(array([[[1.]]], dtype=float16), array([[[3.]]], dtype=float16))",
    ),
    accuracy=_EXACT,
    seealso=("scatter_pa_kv_cache",),
)  # fmt: skip


# --- Rotary ---------------------------------------------------------------------------------------


@rule("`{role}` has the shape of `x` with one head, and with one position or all")
def _spread_or_one(call: Call, role: str) -> str | None:
    (batch, _, length, size), shape = call.shape("x"), call.shape(role)
    if shape in ((batch, 1, length, size), (batch, 1, 1, size)):
        return None
    return f"{call.names[role]} has shape {shape}, must have {(batch, 1, length, size)}, or 1 for {length}"


@rule("`{role}` has elements, and an even last size")
def _even_columns(call: Call, role: str) -> str | None:
    size = call.shape(role)[-1]
    if size and size % 2 == 0 and call.tensors[role].size:
        return None
    return f"{call.shaped(role)}, must have elements, and an even last size"


interleave_rope = Operator(
    name="interleave_rope",
    summary="Rotary position embedding of rows whose halves are gathered from pairs first.",
    expression="q·cos + (-q₂, q₁)·sin, q = the even elements of x, then the odd ones",
    notes="As rotary_position_embedding with mode 3.",
    inputs=("x", "cos", "sin"),
    sample_specs=specs("x, cos, sin: [1,1,1,2]"),
    entries=(entry("aclnnInterleaveRope", "x cos sin out:out"),),
    rules=(
        *require("x: FLOAT16 BF16 FLOAT"),
        *[same_dtype(role, "x") for role in ("cos", "sin", "out")],
        *planned(
            *require("x, cos, sin: 4 dims"),
            _even_columns("x"),
            _spread_or_one("cos"),
            size_is("sin", lambda call: call.shape("cos"), "the shape of `cos`"),
            size_is("out", lambda call: call.shape("x"), "the shape of `x`"),
        ),
    ),
    infer=lambda call: {"out": (call.dtype("x"), call.shape("x"))},
    lower=lambda lowering: {"out": rotate(lowering, "x", INTERLEAVE_HALF)},
    example=(
        "interleave_rope(np.float16([[[[3, 4]]]]), np.float16([[[[0, 0]]]]), np.float16([[[[1, 1]]]]))",
        "array([[[[-4.,  3.]]]], dtype=float16)",
    ),
    accuracy=ROW_ACCURACY,
    seealso=("rotary_position_embedding",),
    gradient={
        "x": "turned_back(grad, cos, sin, 3)",
        "cos": "grad * gathered(x, 3)",
        "sin": "grad * turned(x, 3)",
    },
)  # fmt: skip


# --- Norm and rotary into caches ------------------------------------------------------------------

_KV_MODES = ("Norm", "PA", "PA_BNSD", "PA_NZ", "PA_BLK_BNSD", "PA_BLK_NZ")


def _kv_mode(call: Call) -> str:
    mode = call.switches["cache_mode"]
    return mode if isinstance(mode, str) and mode in _KV_MODES else "Norm"


def _split(call: Call) -> tuple[int, int]:
    """Columns that are normalised, and those that are rotated."""
    size = call.shape("gamma")[0]
    return size, call.shape("kv")[-1] - size


@rule("`kv` has one head, the columns of `gamma`, and an even number of others")
def _kv_sizes(call: Call) -> str | None:
    shape, (first, rest) = call.shape("kv"), _split(call)
    if shape[1] == 1 and first > 0 and rest > 0 and rest % 2 == 0 and call.tensors["kv"].size:
        return None
    return (
        f"{call.names['kv']} has shape {shape}, must have one head, elements, and an even number of columns "
        f"besides the {first} of {call.names['gamma']}"
    )


@rule("`{role}` has the columns that are rotated, for one position or all", "{role}", "kv", "gamma")
def _angles(call: Call, role: str) -> str | None:
    batch, _, length, _ = call.shape("kv")
    rest, shape = _split(call)[1], call.shape(role)
    if shape in ((batch, 1, length, rest), (batch, 1, 1, rest)):
        return None
    return f"{call.names[role]} has shape {shape}, must have {(batch, 1, length, rest)}, or 1 for {length}"


@rule("`{role}` has one head, and as many columns", "{role}", "kv", "gamma")
def _kv_cache_fits(call: Call, role: str, part: int) -> str | None:
    shape, size = call.shape(role), _split(call)[part]
    heads = 1 if _kv_mode(call) == "Norm" else 2
    wide = _columns_of_block(call.dtype(role))
    tiles = _kv_mode(call).endswith("NZ")
    batch = call.shape("kv")[0] if _kv_mode(call) == "Norm" else shape[0]
    if shape[heads] != 1 or shape[3] != size or shape[0] != batch or (tiles and size % wide):
        return f"{call.names[role]} has shape {shape}, which does not fit {call.names['kv']} {call.shape('kv')}"
    return None


def _kv_index(call: Call) -> Shape:
    batch, _, length, _ = call.shape("kv")
    if _kv_mode(call) == "Norm":
        return batch, length
    if _kv_mode(call).startswith("PA_BLK"):
        slots = call.shape("k_cache")[1]
        return (batch * -(-length // slots),)
    return (batch * length,)


@rule("both caches differ in the last size only", "k_cache", "ckv_cache")
def _same_slots(call: Call) -> str | None:
    a, b = call.shape("k_cache"), call.shape("ckv_cache")
    if a[:3] == b[:3]:
        return None
    return (
        f"{call.names['ckv_cache']} has shape {b}, which differs from {call.names['k_cache']} {a}"
    )


@rule("`{role}` has one element, or one for each column")
def _of_part(call: Call, role: str, part: int) -> str | None:
    size = _split(call)[part]
    if role not in call.tensors or call.shape(role) in ((size,), (1,), (1, size)):
        return None
    return f"{call.shaped(role)}, must have ({size},), (1,) or (1, {size})"


@rule("`{role}` has the dtype of `kv`, with `{scale}` INT8")
def _cache_dtype(call: Call, role: str, scale: str) -> str | None:
    requested = BYTE if scale in call.tensors else call.dtype("kv")
    if call.dtype(role) == requested:
        return None
    return f"{call.typed(role)}, must be {call.word(requested)}"


@rule(
    "`k_rope` and `c_kv` are given where `is_output_kv` is true",
    "k_rope",
    "c_kv",
    status=ACLNN_ERR_PARAM_NULLPTR,
)
def _kv_given(call: Call) -> str | None:
    if not call.switches["is_output_kv"] or call.makes_absent:
        return None
    for role in ("k_rope", "c_kv"):
        if role not in call.tensors:
            return f"{call.names[role]} is null, but {call.names['is_output_kv']} is true"
    return None


def _infer_kv(call: Call) -> Inferred:
    found = {
        "k_out": (call.dtype("k_cache"), call.shape("k_cache")),
        "ckv_out": (call.dtype("ckv_cache"), call.shape("ckv_cache")),
    }
    if call.switches["is_output_kv"]:
        lead, (first, rest) = call.shape("kv")[:-1], _split(call)
        found["k_rope"] = (call.dtype("kv"), (*lead, rest))
        found["c_kv"] = (call.dtype("kv"), (*lead, first))
    return found


def _part_of_kv(lowering: Lowering, start: int, count: int) -> int:
    value = lowering.builder.value(lowering.value("kv"))
    shape = (*value.shape[:-1], count)
    return lowering.builder.view(
        lowering.value("kv"), shape, value.strides, start * value.strides[-1]
    )


def _lower_kv(lowering: Lowering) -> Mapping[str, int]:
    call, dtype = lowering.call, lowering.call.dtype("kv")
    first, rest = _split(call)
    batch, _, length, _ = call.shape("kv")
    rows = batch * length

    def norm(made: aclDataType) -> int:
        x = lowering.reshaped(lowering.dense(_part_of_kv(lowering, 0, first)), (rows, first))
        gamma = lowering.dense(lowering.reshaped("gamma", (1, first)))
        (found,) = lowering.rows(
            "rms_norm", [x, gamma], [(made, (rows, first))], -1,
            params=(lowering.number("epsilon", "exact"),), present=("gamma",),
        )  # fmt: skip
        return found

    def turned(made: aclDataType) -> int:
        x = lowering.dense(_part_of_kv(lowering, first, rest))
        return lowering.reshaped(
            rotate(lowering, "kv", INTERLEAVE_HALF, value=x, dtype=made), (rows, rest)
        )

    found = {}
    parts = (
        ("k_cache", "k_out", turned, "k_rope", rest, "k_rope_scale", "k_rope_offset"),
        ("ckv_cache", "ckv_out", norm, "c_kv", first, "c_kv_scale", "c_kv_offset"),
    )
    for cache, made, make, plain, size, scale, offset in parts:
        requested = lowering.wants(plain)
        whole = make(dtype) if requested or not lowering.has(scale) else -1
        if requested:
            found[plain] = lowering.reshaped(whole, (batch, 1, length, size))
        stored = whole
        if lowering.has(scale):
            roles = [role for role in (scale, offset) if lowering.has(role)]
            operands = [make(SINGLE)]
            for role in roles:
                flat = lowering.reshaped(role, (1, call.tensors[role].size))
                operands.append(lowering.dense(flat, None, (rows, size)))
            stored = quantized(lowering, operands, BYTE, (rows, size))
        found[made] = _into_kv_cache(lowering, cache, stored, size)
    return found


def _into_kv_cache(lowering: Lowering, role: str, rows: int, size: int) -> int:
    call, mode = lowering.call, _kv_mode(lowering.call)
    batch, _, length, _ = call.shape("kv")
    shape = call.shape(role)
    cache, axis, sizes = lowering.value(role), 1, (1, size)
    if mode == "Norm":
        axis = 2
    elif mode.endswith("NZ"):
        wide = _columns_of_block(call.dtype(role))
        sizes, axis = (size // wide, wide), 2
        cache = lowering.reshaped(role, (shape[0], size // wide, shape[1], wide))
    counts = {"Norm": POSITIONS}.get(mode, BLOCKS if mode.startswith("PA_BLK") else SLOTS)
    places = lowering.reshaped("index", (call.tensors["index"].size,))
    made = scattered(
        lowering,
        cache,
        lowering.reshaped(rows, (batch * length, *sizes)),
        places,
        slot_axis=axis,
        counts=counts,
        sequence=length,
    )
    return (
        lowering.builder.view(made, shape, contiguous_strides(shape))
        if mode.endswith("NZ")
        else made
    )


def _where_asked(rule: Rule) -> Rule:
    return when(lambda call: call.switches["is_output_kv"], rule, "where asked for, {}")


kv_rmsnorm_rope_cache = Operator(
    name="kv_rmsnorm_rope_cache",
    in_place="kv_rmsnorm_rope_cache",
    summary="RMS norm of some columns and rotary embedding of the others, written into caches.",
    expression="ckv_cache[index] = kv₁·gamma/√(Σkv₁²/N + eps); k_cache[index] = kv₂ rotated as interleave_rope does",
    notes=(
        f"kv₁ are as many columns as gamma has. {_BEYOND} With cache_mode 'Norm' caches are (batch, 1, positions, size) "
        "and `index` has positions; with 'PA' and 'PA_BNSD' (blocks, slots, 1, size) and slots; with 'PA_NZ' the "
        "same, each block laid out as (size/c, slots, c), c elements being 32 bytes; with 'PA_BLK_BNSD' and "
        "'PA_BLK_NZ' `index` has one slot for each block of tokens, of which the block counts. Any other mode is "
        "'Norm'. With scales, caches are INT8: round(v·scale + offset). k_rope and c_kv, which is_output_kv asks for, "
        "are not quantized."
    ),
    inputs=(
        "kv", "gamma", "cos", "sin", "index", "k_cache", "ckv_cache", "k_rope_scale", "c_kv_scale", "k_rope_offset",
        "c_kv_offset",
    ),
    optional=("k_rope_scale", "c_kv_scale", "k_rope_offset", "c_kv_offset", "k_rope", "c_kv"),
    outputs=("k_out", "ckv_out", "k_rope", "c_kv"),
    attributes=(
        Attribute("epsilon", 1e-5, "float", doc="Added to the mean square."),
        Attribute("cache_mode", "Norm", "str", nullable=True, doc="How caches are laid out."),
        Attribute("is_output_kv", False, "bool", doc="Whether k_rope and c_kv are results, too."),
    ),
    parameters=("kv", "gamma", "cos", "sin", "index", "k_cache", "ckv_cache"),
    sample_specs=specs("kv: [1,1,1,4]; gamma: [2]; cos, sin, k_cache, ckv_cache: [1,1,1,2]; index: INT64[1,1]"),
    entries=(
        entry(
            "aclnnKvRmsNormRopeCache",
            "kv gamma cos sin index kCacheRef=k_cache:inout ckvCacheRef=ckv_cache:inout "
            "kRopeScaleOptional=k_rope_scale:in? cKvScaleOptional=c_kv_scale:in? kRopeOffsetOptional=k_rope_offset:in? "
            "cKvOffsetOptional=c_kv_offset:in? epsilon:float cacheModeOptional=cache_mode:str? "
            "isOutputKv=is_output_kv:bool kRopeOut=k_rope:out? cKvOut=c_kv:out?",
        ),
    ),
    rules=(
        _kv_given(),
        *require("kv: FLOAT16 BF16 FLOAT; cann kv: FLOAT16 BF16"),
        *[same_dtype(role, "kv") for role in ("gamma", "cos", "sin")],
        *require("index: INT64"),
        _cache_dtype("k_cache", "k_rope_scale"),
        _cache_dtype("ckv_cache", "c_kv_scale"),
        *[dtype_among(f"{part}_{kind}", (SINGLE,)) for part in ("k_rope", "c_kv") for kind in ("scale", "offset")],
        *require("k_rope, c_kv: dtype of kv"),
        *planned(
            *require("kv: 4 dims; gamma: 1 dim"),
            _kv_sizes(),
            _angles("cos"),
            size_is("sin", lambda call: call.shape("cos"), "the shape of `cos`"),
            *require("k_cache, ckv_cache: 4 dims"),
            _kv_cache_fits("k_cache", 1),
            _kv_cache_fits("ckv_cache", 0),
            _same_slots(),
            size_is("index", _kv_index, "an index for each token, or each block of them"),
            together("k_rope_offset", "k_rope_scale"),
            together("c_kv_offset", "c_kv_scale"),
            *[_of_part(f"k_rope_{kind}", 1) for kind in ("scale", "offset")],
            *[_of_part(f"c_kv_{kind}", 0) for kind in ("scale", "offset")],
            _where_asked(size_is("k_rope", lambda call: (*call.shape("kv")[:-1], _split(call)[1]), "the rotated columns")),
            _where_asked(size_is("c_kv", lambda call: (*call.shape("kv")[:-1], _split(call)[0]), "the columns of `gamma`")),
        ),
    ),
    infer=_infer_kv,
    lower=_lower_kv,
    example=(
        "kv_rmsnorm_rope_cache(np.float16([[[[2, 2, 3, 4]]]]), np.float16([1, 3]), np.float16([[[[0, 0]]]]), "
        "np.float16([[[[1, 1]]]]), np.int64([[0]]), np.float16([[[[0, 0]]]]), "
        "np.float16([[[[0, 0]]]]), epsilon=0.0, is_output_kv=True)",
        "(array([[[[-4.,  3.]]]], dtype=float16), array([[[[1., 3.]]]], dtype=float16), "
        "array([[[[-4.,  3.]]]], dtype=float16), array([[[[1., 3.]]]], dtype=float16))",
    ),
    accuracy=ROW_ACCURACY,
    seealso=("interleave_rope", "native_rms_norm"),
)  # fmt: skip
