"""CANN's functions of attention: layouts, lengths, pages, sparse modes over one node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from aclnn.acl.arguments import shown
from aclnn.acl.constants import (
    ACLNN_ERR_INNER_TILING_ERROR,
    ACLNN_ERR_RUNTIME_ERROR,
    aclDataType,
)
from aclnn.operators.attention_nodes import ACCURACY, EVERYTHING, attend, gradients
from aclnn.operators.cache_scales import NOTES as _QUANTISED_CACHE
from aclnn.operators.cache_scales import CacheScales
from aclnn.operators.checks import (
    FLOATING,
    Call,
    Rule,
    answering,
    dtype_among,
    dtype_like_or,
    of_cann,
    rule,
    same_dtype,
)
from aclnn.operators.declaration import REQUIRED, Attribute, Entry, Operator, argument, entry
from aclnn.operators.lowering import Lowering, graph_dtype
from aclnn.operators.quantization import BITS, BYTE, LONG, quantized
from aclnn.operators.words import require, specs

Shape = tuple[int, ...]
_SINGLE, _BOOL = aclDataType.ACL_FLOAT, aclDataType.ACL_BOOL
_HALVES = (aclDataType.ACL_FLOAT16, aclDataType.ACL_BF16)
_BITS = (BITS, LONG)
_SCALES = (_SINGLE, aclDataType.ACL_BF16)
_MASKS = (_BOOL, aclDataType.ACL_INT8, aclDataType.ACL_UINT8)
_INDICES = (aclDataType.ACL_INT32, aclDataType.ACL_INT64)
_NO_MASK, _ALL, _LEFT_UP, _RIGHT_DOWN, _BAND, _PREFIX, _PREFIX_COMPRESSED = range(7)
_TREE = 9
_SLOPES = (2, 3)  # kinds of shifts
_COMPRESSED = (_LEFT_UP, _RIGHT_DOWN, _BAND)
_UNLIMITED = 2147483647

_NO_SCALES = CacheScales()

# Of a layout, the dimension of batches, heads, and rows; heads and elements are one in the first two.
_MERGED = {"BSH": "BS", "SBH": "SB"}
_SPLIT = {"BSND": "BSND", "BNSD": "BNSD", "TND": "TND", "NTD": "NTD", "NBSD": "NBSD"}
_INFERENCE = ("BSH", "BSND", "BNSD", "BNSD_BSND", "TND")
_WITH_ROPE = (*_INFERENCE, "BSH_NBSD", "BSND_NBSD", "BNSD_NBSD", "TND_NTD", "NTD_TND")
_ALL_LAYOUTS = (*_WITH_ROPE, "NTD", "BSH_BNSD", "BSND_BNSD")
_TRAINING = ("BSH", "SBH", "BSND", "BNSD")


# --- What a call is about ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Words:
    """Names of the parameters that several functions have; empty where one lacks it."""

    heads: str = "num_heads"
    key_heads: str = "num_key_value_heads"
    scale: str = "scale"
    layout: str = "input_layout"
    mode: str = "sparse_mode"
    before: str = "pre_tokens"
    after: str = "next_tokens"
    shift: str = "pse_shift"
    mask: str = "atten_mask"
    lengths: str = "actual_seq_lengths"
    key_lengths: str = "actual_seq_lengths_kv"
    table: str = "block_table"
    block_size: str = "block_size"
    query_rope: str = ""
    key_rope: str = ""
    sink: str = ""
    lse: str = ""  # the option
    inner_precise: str = ""
    prefix: str = ""
    key_prefix: str = ""
    value_prefix: str = ""
    prefix_length: str = ""
    query_padding: str = ""
    key_padding: str = ""
    shift_kind: str = ""  # the option
    query_start: str = ""
    key_start: str = ""
    out_scale: str = ""  # of int8 results
    out_offset: str = ""
    cache: CacheScales = _NO_SCALES
    products: tuple[str, ...] = ()  # scales of products of int8
    layouts: tuple[str, ...] = _INFERENCE
    training: bool = False
    one_query: bool = False

    def has(self, call: Call, name: str) -> bool:
        role = getattr(self, name)
        return bool(role) and role in call.tensors

    def option(self, call: Call, name: str, default: object = 0) -> object:
        role = getattr(self, name)
        return call.switches[role] if role else default

    def number(self, call: Call, name: str, default: int = 0) -> int:
        found = self.option(call, name, default)
        assert isinstance(found, int)
        return found

    def layout_in(self, call: Call) -> str:
        return str(call.switches[self.layout]).partition("_")[0]

    def layout_out(self, call: Call) -> str:
        first, _, second = str(call.switches[self.layout]).partition("_")
        return second or first


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of query, key and value, whatever their layout."""

    batch: int
    heads: int
    key_heads: int
    queries: int  # with cumulative lengths of all batches
    keys: int  # in pages, as many as the table has room for; without those that batches share
    shared: int
    depth: int
    values: int
    cumulative: bool

    @property
    def all_keys(self) -> int:
        return self.shared + self.keys


class _MismatchError(Exception):
    """Tensors do not fit a layout."""


def _fits(name: str, shape: Shape, rank: int, layout: str) -> None:
    if len(shape) != rank:
        raise _MismatchError(
            f"{name} has {len(shape)} dimensions, must have {rank} in the layout {layout}"
        )


def _of_layout(
    name: str, shape: Shape, layout: str, heads: int | None
) -> tuple[int, int, int, int]:
    """Batches, heads, rows, elements; of merged ones by the number of heads."""
    if layout in _MERGED:
        _fits(name, shape, 3, layout)
        found = dict(zip(_MERGED[layout], shape[:2], strict=True))
        assert heads is not None
        if heads == 0 or shape[2] % heads:
            raise _MismatchError(
                f"{name} has the last size {shape[2]}, which {heads} heads do not divide"
            )
        return found["B"], heads, found["S"], shape[2] // heads
    order = _SPLIT[layout]
    _fits(name, shape, len(order), layout)
    found = dict(zip(order, shape, strict=True))
    return found.get("B", 1), found["N"], found.get("S", found.get("T", 0)), found["D"]


def _key_heads(call: Call, words: Words, heads: int) -> int:
    if not words.key_heads:
        return heads
    return words.number(call, "key_heads") or heads


def sizes_of(call: Call, words: Words) -> Sizes:
    """The sizes of a call; raises `_MismatchError` where tensors do not fit."""
    layout, names = words.layout_in(call), call.names
    heads = words.number(call, "heads")
    cumulative = layout in ("TND", "NTD")
    batch, own, queries, depth = _of_layout(names["query"], call.shape("query"), layout, heads)
    if own != heads:
        raise _MismatchError(f"{names['query']} has {own} heads, {names[words.heads]} is {heads}")
    key_heads: int | None = _key_heads(call, words, heads)
    if words.training:  # by the tensor
        key_heads = _heads_of_key(call, layout, depth)
    found = [_cached(call, words, role, layout, key_heads) for role in ("key", "value")]
    (rows, of_key, keys, own_depth), (value_rows, of_value, value_keys, values) = found
    if own_depth != depth:
        raise _MismatchError(
            f"heads of {names['query']} have the size {depth}, of {names['key']} {own_depth}"
        )
    if (rows, of_key, keys) != (value_rows, of_value, value_keys):
        raise _MismatchError(
            f"{names['key']} has {rows} batches, {of_key} heads and {keys} rows, "
            f"{names['value']} {value_rows}, {of_value} and {value_keys}"
        )
    if key_heads != of_key or of_key == 0 or heads % of_key:
        raise _MismatchError(
            f"{names['key']} has {of_key} heads, must have {key_heads}, which divides {heads}"
        )
    if words.has(call, "table"):
        table = call.shape(words.table)
        keys = table[1] * keys if len(table) == 2 else keys
    elif rows != batch:
        raise _MismatchError(f"{names['query']} has {batch} batches, {names['key']} {rows}")
    if cumulative and words.has(call, "lengths"):
        batch = call.shape(words.lengths)[0]
    shared = _shared_rows(call, words, layout, of_key)
    return Sizes(batch, heads, of_key, queries, keys, shared, depth, values, cumulative)


def _shared_rows(call: Call, words: Words, layout: str, heads: int) -> int:
    if not words.has(call, "key_prefix"):
        return 0
    name = call.names[words.key_prefix]
    return _of_layout(name, call.shape(words.key_prefix), layout, heads)[2]


def _heads_of_key(call: Call, layout: str, depth: int) -> int:
    shape = call.shape("key")
    if layout not in _MERGED:
        return shape[_SPLIT[layout].index("N")] if len(shape) == len(_SPLIT[layout]) else 0
    return shape[2] // depth if len(shape) == 3 and depth else 0


def _cached(
    call: Call, words: Words, role: str, layout: str, heads: int | None
) -> tuple[int, int, int, int]:
    """Key or value: in pages batches are blocks."""
    shape, name = call.shape(role), call.names[role]
    if not words.has(call, "table"):
        return _of_layout(name, shape, layout, heads)
    if len(shape) not in (3, 4):
        raise _MismatchError(f"{name} has {len(shape)} dimensions, pages have 3 or 4")
    if len(shape) == 3:
        return _of_layout(name, shape, "BSH", heads)
    return _of_layout(name, shape, "BNSD", heads)


def _out_shape(call: Call, words: Words) -> Shape:
    s, layout = sizes_of(call, words), words.layout_out(call)
    known = {"B": s.batch, "S": s.queries, "T": s.queries, "N": s.heads, "D": s.values}
    if layout in _MERGED:
        return (*[known[one] for one in _MERGED[layout]], s.heads * s.values)
    return tuple([known[one] for one in _SPLIT[layout]])


def _out_dtype(call: Call, words: Words) -> aclDataType:
    if words.has(call, "out_scale"):
        return BYTE
    return _HALVES[0] if call.dtype("query") == BYTE else call.dtype("query")


# --- Rules ------------------------------------------------------------------------------------------


def _tested(
    text: str, test: Callable[[Call], str | None], *roles: str, status: int | None = None
) -> Rule:
    rule = Rule(text, test, tuple([role for role in roles if role]))
    return rule if status is None else answering(status, rule)[0]


def _tiling(text: str, test: Callable[[Call], str | None], *roles: str) -> Rule:
    return _tested(text, test, *roles, status=ACLNN_ERR_INNER_TILING_ERROR)


def _not_on_950(*, only: bool = False) -> Rule:
    def test(call: Call) -> str | None:
        if (call.soc == "Ascend950") == only:
            return None
        return f"the function is not supported on {call.soc}, where another version takes its place"

    text = f"the product is {'' if only else 'not '}Ascend950"
    return of_cann(_tested(text, test, status=ACLNN_ERR_RUNTIME_ERROR))


def _optional_dtype(role: str, allowed: tuple[aclDataType, ...]) -> Rule:
    return dtype_among(role, allowed)


def _layout_known(words: Words, *, status: int | None) -> Rule:
    def test(call: Call) -> str | None:
        allowed = _layouts_of(call, words)
        layout = call.switches[words.layout]
        if layout in allowed:
            return None
        return f"{call.names[words.layout]} is {shown(layout)}, must be one of {', '.join(allowed)}"

    text = f"`{words.layout}` is one of {', '.join(words.layouts)}"
    return _tested(text, test, words.layout, status=status)


def _layouts_of(call: Call, words: Words) -> tuple[str, ...]:
    """Older versions of a C-shaped function, which lack parameters, have fewer."""
    if call.c_shaped and words is _VARLEN:
        named = call.names[words.lengths] != words.lengths  # the function has such a parameter
        has_lengths = named or words.lengths in call.tensors
        return ("TND",) if has_lengths else _TRAINING
    if not call.c_shaped or words.layouts != _ALL_LAYOUTS:
        return words.layouts
    if call.names[words.query_rope] == words.query_rope:
        return _INFERENCE
    return _WITH_ROPE if call.names[words.sink] == words.sink else _ALL_LAYOUTS


def _heads_positive(words: Words, *, status: int | None) -> Rule:
    def test(call: Call) -> str | None:
        heads = words.number(call, "heads")
        if heads > 0 and (not words.key_heads or words.number(call, "key_heads") >= 0):
            return None
        which = words.heads if heads <= 0 else words.key_heads
        return f"{call.chosen(which)}, must be positive"

    return _tested(f"`{words.heads}` is positive", test, words.heads, status=status)


def _tensors_fit(words: Words, *, status: int | None = ACLNN_ERR_INNER_TILING_ERROR) -> Rule:
    def test(call: Call) -> str | None:
        try:
            sizes_of(call, words)
        except _MismatchError as error:
            return str(error)
        return None

    text = f"query, key and value have the shapes that `{words.layout}` says"
    return _tested(text, test, "query", "key", "value", words.layout, words.heads, status=status)


def _mode_known(words: Words) -> Rule:
    tree = bool(words.sink)
    allowed = (0, 1, 2, 3, 4, *((5, 6) if words.training else ()), *((9,) if tree else ()))

    def test(call: Call) -> str | None:
        mode = words.number(call, "mode")
        if mode in allowed:
            return None
        text = f"{call.names[words.mode]} is {mode}, must be {', '.join(map(str, allowed))}"
        return f"{text}; 7 and 8 are not implemented here" if mode in (7, 8) else text

    return _tiling(f"`{words.mode}` is {', '.join(map(str, allowed))}", test, words.mode)


@rule(
    "`{words.before}` + `{words.after}` is not negative where they count",
    "{words.before}",
    "{words.after}",
    "{words.mode}",
    status=ACLNN_ERR_INNER_TILING_ERROR,
)
def _window_not_empty(call: Call, words: Words) -> str | None:
    used = (_BAND,) if not words.has(call, "mask") else (_NO_MASK, _BAND)
    before, after = words.number(call, "before"), words.number(call, "after")
    if _is_one_query(call, words) or words.number(call, "mode") not in used:
        return None
    if before + after >= 0:
        return None
    return (
        f"{call.names[words.before]} is {before}, {call.names[words.after]} {after}: their sum "
        "must not be negative"
    )


@rule("`{words.inner_precise}` is from 0 to {most}", status=ACLNN_ERR_INNER_TILING_ERROR)
def _inner_precise_known(call: Call, words: Words, most: int) -> str | None:
    value = words.number(call, "inner_precise")
    if 0 <= value <= most:
        return None
    return f"{call.names[words.inner_precise]} is {value}, must be from 0 to {most}"


def _is_one_query(call: Call, words: Words) -> bool:
    """Whether modes and windows do not count: one query, without ropes, not in one piece."""
    if words.training:
        return False
    s = sizes_of(call, words)
    roped = words.has(call, "query_rope") or s.depth != s.values
    return s.queries == 1 and not s.cumulative and not roped


def _mask_shape_fits(call: Call, words: Words) -> bool:
    shape, s, mode = call.shape(words.mask), sizes_of(call, words), words.number(call, "mode")
    one = _is_one_query(call, words)
    if mode == _PREFIX_COMPRESSED and not one:
        return shape == (3072, 2048)
    if mode in _COMPRESSED and not one:
        return shape in ((2048, 2048), (1, 2048, 2048), (1, 1, 2048, 2048))
    if mode == _TREE:
        return shape == (s.batch, s.queries, s.queries)
    if not 2 <= len(shape) <= 4 or (s.cumulative and not words.training):
        return False
    lead = shape[:-2]
    if words.training:
        allowed = {(), (1, 1), (s.batch, 1), (s.batch, s.heads), (1, s.heads)}
        # With cumulative lengths it is as large as the largest of them, which arrays tell.
        large = s.cumulative or (shape[-2] >= s.queries and shape[-1] >= s.all_keys)
        return lead in allowed and large
    if shape[-1] < s.all_keys:
        return False
    if s.queries == 1 and len(shape) == 2 and shape[0] in (s.batch, 1):
        return True
    allowed = {(), (1,), (s.batch,), (1, 1), (s.batch, 1)}
    return lead in allowed and shape[-2] >= s.queries


def _mask_fits(words: Words) -> Rule:
    needs = (_ALL, *_COMPRESSED, _PREFIX, _PREFIX_COMPRESSED, _TREE)

    def test(call: Call) -> str | None:
        mode = words.number(call, "mode")
        if words.has(call, "mask"):
            if _mask_shape_fits(call, words):
                return None
            return (
                f"{call.shaped(words.mask)}, which is none for "
                f"{call.names[words.mode] if words.mode else 'these tensors'} {mode}"
            )
        if mode not in needs or words.training or _is_one_query(call, words):
            return None
        return (
            f"{call.names[words.mask]} is null, must be given with {call.names[words.mode]} {mode}"
        )

    text = f"`{words.mask}` has a shape for the mode, and is given in modes but 0"
    return _tiling(text, test, words.mask, words.mode)


@rule("`{words.shift}` has the shape of the scores", status=ACLNN_ERR_INNER_TILING_ERROR)
def _shift_fits(call: Call, words: Words) -> str | None:
    if not words.has(call, "shift"):
        return None
    shape, s = call.shape(words.shift), sizes_of(call, words)
    if _has_slopes(call, words):
        if shape == (s.heads,):
            return None
        text = f"must have ({s.heads},) with {call.names[words.shift_kind]}"
        return f"{call.names[words.shift]} has shape {shape}, {text} 2 and 3"
    if not s.cumulative and len(shape) == 4 and shape[0] in (1, s.batch):
        rows = shape[2] >= s.queries or (words.training and shape[2] == 1)
        if shape[1] == s.heads and rows and shape[3] >= s.all_keys:
            return None
    return (
        f"{call.names[words.shift]} has shape {shape}, must have ({s.batch} or 1, {s.heads}, "
        f"{s.queries}, {s.all_keys})"
    )


def _has_slopes(call: Call, words: Words) -> bool:
    """Whether the shift is a slope for each head, by which scores fall with distance."""
    return words.number(call, "shift_kind") in _SLOPES


def _shift_kind_known(words: Words) -> Rule:
    def test(call: Call) -> str | None:
        kind = words.number(call, "shift_kind")
        if kind not in range(4):
            return f"{call.names[words.shift_kind]} is {kind}, must be from 0 to 3"
        if kind in _SLOPES and not words.has(call, "shift"):
            return (
                f"{call.names[words.shift]} is null, but {call.names[words.shift_kind]} is {kind}"
            )
        for name in (words.query_start, words.key_start):
            numbers = call.switches[name]
            if numbers is not None and len(numbers) != 1:  # type: ignore[arg-type]
                return f"{call.names[name]} has {len(numbers)} numbers, must have 1"  # type: ignore[arg-type]
        return None

    roles = (words.shift_kind, words.shift, words.query_start, words.key_start)
    return _tiling(f"`{words.shift_kind}` is from 0 to 3; starts have a number each", test, *roles)


def _prefixes_fit(words: Words) -> Rule:
    """Keys and values that all batches share."""

    def test(call: Call) -> str | None:
        roles = (words.key_prefix, words.value_prefix)
        arguments = call.given(roles)
        if not arguments:
            if words.has(call, "prefix_length"):
                return f"{call.names[words.key_prefix]} is null, but {call.names[words.prefix_length]} is given"
            return None
        if len(arguments) == 1:
            missing = next(role for role in roles if role not in arguments)
            return f"{call.names[missing]} is null, but {call.names[arguments[0]]} is given"
        return _prefix_flaw(call, words)

    roles = (words.key_prefix, words.value_prefix, words.prefix_length)
    text = f"`{roles[0]}` and `{roles[1]}` are both null, or one batch like `key` and `value`"
    return _tiling(text, test, *roles)


def _prefix_flaw(call: Call, words: Words) -> str | None:
    s, layout, names = sizes_of(call, words), words.layout_in(call), call.names
    for name in ("table", "key_rope", "query_padding", "key_padding"):
        if words.has(call, name):
            return f"{names[getattr(words, name)]} is given besides {names[words.key_prefix]}"
    if s.cumulative:
        return f"{names[words.key_prefix]} is given, must be null in the layout {layout}"
    own = []
    for role, size in ((words.key_prefix, s.depth), (words.value_prefix, s.values)):
        try:
            found = _of_layout(names[role], call.shape(role), layout, s.key_heads)
        except _MismatchError as error:
            return str(error)
        own.append(found[2])
        if found[:2] != (1, s.key_heads) or found[3] != size:
            return (
                f"{names[role]} has shape {call.shape(role)}, must have one batch with "
                f"{s.key_heads} heads of {size} elements"
            )
    if own[0] != own[1]:
        return f"{names[words.key_prefix]} has {own[0]} rows, {names[words.value_prefix]} {own[1]}"
    if words.has(call, "prefix_length") and call.shape(words.prefix_length) != (1,):
        return f"{names[words.prefix_length]} has shape {call.shape(words.prefix_length)}, must have (1,)"
    modes = {words.cache.parts(call, role)[2] for role in ("key", "value")} - {0, 2}
    if modes and call.given(words.cache.inputs):
        return f"{names[words.key_prefix]} is given, but scales have the mode {max(modes)}, must be of channels or heads"
    return None


def _paddings_fit(words: Words) -> Rule:
    """Rows after the last query or key, where lengths end: without these, padding has no effect."""

    def test(call: Call) -> str | None:
        names = call.names
        for name in ("query_padding", "key_padding"):
            if not getattr(words, name) or not words.has(call, name):
                continue
            own = getattr(words, name)
            if call.shape(own) != (1,):
                return f"{names[own]} has shape {call.shape(own)}, must have (1,)"
            if words.has(call, "table"):
                return f"{names[words.table]} is given besides {names[own]}"
            if sizes_of(call, words).cumulative:
                return f"{names[own]} is given, must be null in the layout {words.layout_in(call)}"
            if words.number(call, "mode") == _TREE:
                return f"{names[own]} is given, must be null with {names[words.mode]} {_TREE}"
        return None

    listed = [role for role in (words.query_padding, words.key_padding) if role]
    text = f"{' and '.join(f'`{role}`' for role in listed)} have 1 number"
    return _tiling(text, test, *listed)


@rule(
    "lengths are one, or one for each batch; they are given with TND, NTD, and those of keys with pages",
    "{words.lengths}",
    "{words.key_lengths}",
    status=ACLNN_ERR_INNER_TILING_ERROR,
)
def _lengths_fit(call: Call, words: Words) -> str | None:
    s = sizes_of(call, words)
    for name in ("lengths", "key_lengths"):
        role = getattr(words, name)
        if not role:
            continue
        if not words.has(call, name):
            if s.cumulative or (name == "key_lengths" and words.has(call, "table")):
                return f"{call.names[role]} is null, must be given"
            continue
        shape = call.shape(role)
        if len(shape) != 1:
            return f"{call.names[role]} has {len(shape)} dimensions, must have 1"
        if shape[0] < s.batch and (shape[0] != 1 or s.cumulative):
            return f"{call.names[role]} has {shape[0]} numbers, must have {s.batch} or 1"
        if s.cumulative and shape[0] != s.batch:
            return f"{call.names[role]} has {shape[0]} numbers, must have {s.batch}"
    return None


@rule(
    "`{words.table}` has a row for each batch, and `{words.block_size}` is that of blocks",
    status=ACLNN_ERR_INNER_TILING_ERROR,
)
def _pages_fit(call: Call, words: Words) -> str | None:
    if not words.has(call, "table"):
        return None
    shape, size = call.shape(words.table), words.number(call, "block_size")
    name, s = call.names[words.table], sizes_of(call, words)
    if len(shape) != 2 or shape[0] != s.batch:
        return f"{name} has shape {shape}, must have {s.batch} rows"
    key = call.shape("key")
    own = key[1] if len(key) == 3 else key[2]
    if size > 0 and own == size:
        return None
    return (
        f"{call.names[words.block_size]} is {size}, blocks of {call.names['key']} have {own} rows"
    )


@rule(
    "`{words.query_rope}` and `{words.key_rope}` are both null, or like query and key",
    status=ACLNN_ERR_INNER_TILING_ERROR,
)
def _ropes_fit(call: Call, words: Words) -> str | None:
    arguments = [words.has(call, name) for name in ("query_rope", "key_rope")]
    if not any(arguments):
        return None
    first, second = call.names[words.query_rope], call.names[words.key_rope]
    if not all(arguments):
        return f"{first if arguments[1] else second} is null, but the other is given"
    s, layout = sizes_of(call, words), words.layout_in(call)
    try:
        query = _of_layout(first, call.shape(words.query_rope), layout, s.heads)
        key = _cached(call, words, words.key_rope, layout, s.key_heads)
    except _MismatchError as error:
        return str(error)
    own = _of_layout(call.names["query"], call.shape("query"), layout, s.heads)
    keys = _cached(call, words, "key", layout, s.key_heads)
    if (query[:3], key[:3], query[3]) == (own[:3], keys[:3], key[3]):
        return None
    return (
        f"{first} has shape {call.shape(words.query_rope)}, {second} "
        f"{call.shape(words.key_rope)}: they must be like query and key, with heads of one size"
    )


@rule("`{words.sink}` has a number for each head", status=ACLNN_ERR_INNER_TILING_ERROR)
def _sink_fits(call: Call, words: Words) -> str | None:
    heads = words.number(call, "heads")
    if not words.has(call, "sink") or call.shape(words.sink) == (heads,):
        return None
    return f"{call.shaped(words.sink)}, must have ({heads},)"


def _has_out_shape(role: str, words: Words, *, status: int | None) -> Rule:
    def test(call: Call) -> str | None:
        if role not in call.tensors or call.shape(role) == _out_shape(call, words):
            return None
        return f"{call.shaped(role)}, must have {_out_shape(call, words)}"

    text = f"`{role}` has the shape of `query`, with heads of the size of `value`'s, in its layout"
    return _tested(text, test, role, status=status)


def _out_has_dtype(role: str, words: Words) -> Rule:
    if not words.out_scale:
        return same_dtype(role, "query")
    text = f"`{role}` has the dtype of `query`, FLOAT16 for INT8, with `{words.out_scale}` INT8"
    return _has_dtype(role, lambda call: _out_dtype(call, words), text)


def _dtype_of_query(role: str, words: Words) -> Rule:
    if not (words.products or words.shift_kind):
        return same_dtype(role, "query")

    def requested(call: Call) -> aclDataType:
        if role == words.shift and _has_slopes(call, words):
            return _SINGLE
        return _HALVES[0] if call.dtype("query") == BYTE else call.dtype("query")

    return _has_dtype(role, requested, f"`{role}` has the dtype of `query`, FLOAT16 for INT8")


def _has_dtype(role: str, dtype: Callable[[Call], aclDataType], text: str) -> Rule:
    def test(call: Call) -> str | None:
        requested = dtype(call)
        if role not in call.tensors or call.dtype(role) == requested:
            return None
        return f"{call.typed(role)}, must have {call.word(requested)}"

    return _tested(text, test, role, "query")


def _cache_has_dtype(words: Words) -> tuple[Rule, ...]:
    if not words.cache.inputs:
        return require("key, value: dtype of query")
    return (dtype_like_or("key", "query", BYTE), *require("value: dtype of key"))


def _product_scales_fit(words: Words) -> Rule:
    def test(call: Call) -> str | None:
        arguments, names = call.given(words.products), call.names
        if call.dtype("query") != BYTE:
            return (
                f"{names[arguments[0]]} is given, but {names['query']} is not INT8"
                if arguments
                else None
            )
        for role in words.products:
            if role not in arguments:
                return f"{names[role]} is null, but {names['query']} is INT8"
            if call.shape(role) != (1,):
                return f"{names[role]} has shape {call.shape(role)}, must have (1,)"
        if words.has(call, "query_rope"):
            return f"{names[words.query_rope]} is given, but {names['query']} is INT8"
        return None

    listed = ", ".join(f"`{role}`" for role in words.products)
    return _tiling(f"{listed} have 1 number each, where `query` is INT8", test, *words.products)


def _cache_scales_fit(words: Words) -> Rule:
    def test(call: Call) -> str | None:
        s, layout = sizes_of(call, words), words.layout_in(call)
        heads = {one: _cached(call, words, one, layout, s.key_heads) for one in ("key", "value")}
        return words.cache.flaw(call, heads, paged=words.has(call, "table"))

    text = "scales are given where `key` and `value` are INT8, in the shape of their mode"
    return _tiling(text, test, "key", "value", *words.cache.inputs)


@rule(
    "`{words.out_scale}` and `{words.out_offset}` have 1 number, or one for each channel",
    status=ACLNN_ERR_INNER_TILING_ERROR,
)
def _out_scales_fit(call: Call, words: Words) -> str | None:
    scale, offset = words.out_scale, words.out_offset
    if scale not in call.tensors:
        return (
            f"{call.names[scale]} is null, but {call.names[offset]} is given"
            if (offset in call.tensors)
            else None
        )
    s = sizes_of(call, words)
    allowed = _shapes_of_channels(s.heads, s.values)
    for role in call.given((scale, offset)):
        if call.shape(role) not in allowed:
            return f"{call.shaped(role)}, must have (1,) or ({s.heads}, {s.values})"
    return None


def _shapes_of_channels(heads: int, size: int) -> tuple[Shape, ...]:
    """Shapes of a number for all, or of one for each head's elements, in any layout."""
    merged, split, with_axis = (heads * size,), (heads, size), (heads, 1, size)
    return ((1,), merged, (1, 1, *merged), split, (1, 1, *split), with_axis, (1, *with_axis))


def _lse_shape(call: Call, words: Words) -> Shape:
    s = sizes_of(call, words)
    return (s.queries, s.heads, 1) if s.cumulative else (s.batch, s.heads, s.queries, 1)


@rule(
    "`softmax_lse` is given where `{words.lse}` is true, with an element for each row",
    status=ACLNN_ERR_INNER_TILING_ERROR,
)
def _lse_fits(call: Call, words: Words) -> str | None:
    if not words.option(call, "lse") or call.makes_absent:
        return None
    if "softmax_lse" not in call.tensors:
        return f"{call.names['softmax_lse']} is null, but {call.names[words.lse]} is true"
    if call.shape("softmax_lse") == _lse_shape(call, words):
        return None
    return f"{call.shaped('softmax_lse')}, must have {_lse_shape(call, words)}"


def _check_arrays(words: Words) -> Callable[[Call, Mapping[str, tuple[int, ...]]], str | None]:
    """Rules about the lengths of a C-shaped call."""

    def check(call: Call, arguments: Mapping[str, tuple[int, ...]]) -> str | None:
        s = sizes_of(call, words)
        paged = words.has(call, "table")
        for number in arguments.get(words.prefix_length, ()):
            if not 0 <= number <= s.shared:
                return (
                    f"{call.names[words.prefix_length]} has {number}, must be from 0 to {s.shared}"
                )
        for name, room in (("lengths", s.queries), ("key_lengths", s.keys)):
            role = getattr(words, name)
            numbers = arguments.get(role, ())
            own = call.names.get(role, role)
            if not numbers or (name == "lengths" and s.queries == 1 and not s.cumulative):
                continue
            if s.cumulative and not (paged and name == "key_lengths"):
                if list(numbers) != sorted(numbers) or numbers[0] < 0 or numbers[-1] != room:
                    return f"{own} is {list(numbers)}, must not decrease, and end with {room}"
                continue
            for number in numbers[: s.batch]:
                if not 0 <= number <= room:
                    return f"{own} has {number}, must be from 0 to {room}"
        return _mask_flaw(call, words, arguments) if s.cumulative and words.training else None

    return check


def _mask_flaw(call: Call, words: Words, arguments: Mapping[str, tuple[int, ...]]) -> str | None:
    """Whether the rows of some batch exceed a mask of scores, which all batches share."""
    if not (words.has(call, "mask") and words.number(call, "mode") in (_NO_MASK, _ALL)):
        return None
    shape = call.shape(words.mask)
    for role, room in zip((words.lengths, words.key_lengths), shape[-2:], strict=True):
        ends = arguments.get(role, ())
        most = max([end - begin for begin, end in pairwise((0, *ends))], default=0)
        if most > room:
            return f"{call.names[words.mask]} has shape {shape}, but {call.names[role]} has a batch of {most}"
    return None


# --- Nodes ------------------------------------------------------------------------------------------


def _split_heads(lowering: Lowering, value: int, layout: str, heads: int) -> int:
    """A tensor of a layout as [batch, heads, rows, elements]."""
    builder, shape = lowering.builder, lowering.builder.value(value).shape
    if layout in _MERGED:
        value = lowering.reshaped(value, (*shape[:2], heads, shape[2] // heads))
        return builder.transpose(value, (0, 2, 1, 3) if layout == "BSH" else (1, 2, 0, 3))
    if layout in ("TND", "NTD"):
        value = lowering.reshaped(value, (1, *shape))
        return builder.transpose(value, (0, 2, 1, 3)) if layout == "TND" else value
    if layout == "BSND":
        return builder.transpose(value, (0, 2, 1, 3))
    return builder.transpose(value, (1, 0, 2, 3)) if layout == "NBSD" else value


def _in_single(call: Call, words: Words) -> bool:
    """Whether products are of float32: those of integers, and what is rounded to integers."""
    return words.has(call, "out_scale") or call.dtype("key") == BYTE


def _read(lowering: Lowering, words: Words, role: str) -> int:
    if _in_single(lowering.call, words):
        return lowering.dense(role, _SINGLE)
    return lowering.value(role)


def _split_cache(lowering: Lowering, words: Words, role: str, heads: int) -> int:
    call, paged = lowering.call, words.has(lowering.call, "table")
    blocks = "BSH" if len(call.shape(role)) == 3 else "BNSD"
    layout = blocks if paged else words.layout_in(call)
    value = _split_heads(lowering, _read(lowering, words, role), layout, heads)
    return value if role == words.key_rope else _expanded(lowering, words, role, value)


def _expanded(lowering: Lowering, words: Words, role: str, value: int) -> int:
    """Keys or values as numbers: those of int8 by their scales, where the query is not int8 too."""
    call, paged = lowering.call, words.has(lowering.call, "table")
    if call.dtype(role) != BYTE or call.dtype("query") == BYTE:
        return value
    return words.cache.applied(lowering, role, value, paged=paged)


def _spread(lowering: Lowering, value: int, shape: Shape, matrix: bool = True) -> int:
    """A mask or shift of any accepted shape as a view of the scores: what exceeds them is cut off."""
    found = lowering.builder.value(value)
    own, strides = list(found.shape), list(found.strides)
    if not matrix:  # of one query each batch, the first dimension is that of batches
        own, strides = [own[0], 1, 1, own[1]], [strides[0], 0, 0, strides[1]]
    elif len(own) == 3:  # of batches, not of heads
        own, strides = [own[0], 1, *own[1:]], [strides[0], 0, *strides[1:]]
    lead = 4 - len(own)
    own, strides = [1] * lead + own, [0] * lead + strides
    steps = [
        0 if size == 1 and count > 1 else step
        for size, step, count in zip(own, strides, shape, strict=True)
    ]
    return lowering.builder.view(value, shape, tuple(steps))


def _nodes_of(lowering: Lowering, words: Words) -> tuple[dict[str, int], dict[str, object]]:
    """Operands and options of the node of a call."""
    call, s = lowering.call, sizes_of(lowering.call, words)
    layout = words.layout_in(call)
    query = _read(lowering, words, "query")
    if call.dtype("query") == BYTE:
        query = _times(lowering, query, _factor(lowering, words.products[0]))
    operands = {"query": _split_heads(lowering, query, layout, s.heads)}
    for role in ("key", "value"):
        operands[role] = _split_cache(lowering, words, role, s.key_heads)
    if words.has(call, "query_rope"):
        rope = _read(lowering, words, words.query_rope)
        operands["query_rope"] = _split_heads(lowering, rope, layout, s.heads)
        operands["key_rope"] = _split_cache(lowering, words, words.key_rope, s.key_heads)
    operands |= _shared_operands(lowering, words, layout, s)
    scores = (s.batch, s.heads, s.queries, s.all_keys)
    options = _window_of(call, words)
    mode = words.number(call, "mode")
    if words.has(call, "mask") and options.pop("reads_mask"):
        own = call.shape(words.mask)
        per_batch = s.queries == 1 and len(own) == 2 and own[0] == s.batch and not words.training
        width = s.queries if mode == _TREE else s.all_keys
        sizes = own[-2:] if s.cumulative else (s.queries, width)
        shape = (*scores[:2], *sizes)
        value = lowering.value(words.mask)
        operands["mask"] = _spread(lowering, value, shape, matrix=not per_batch)
        options["mask"] = "hides"
    options.pop("reads_mask", None)
    if words.has(call, "shift") and _has_slopes(call, words):
        operands["slopes"] = lowering.dense(words.shift)
        starts = [words.option(call, name, None) or (0,) for name in ("key_start", "query_start")]
        options["ahead"] = starts[0][0] - starts[1][0]  # type: ignore[index]
        options["slope_root"] = words.number(call, "shift_kind") == _SLOPES[1]
    elif words.has(call, "shift"):
        operands["shift"] = _spread(lowering, lowering.value(words.shift), scores)
        options["shift_first"] = words.training or words.number(call, "shift_kind") == 1
    if words.has(call, "sink"):
        operands["sink"] = _read(lowering, words, words.sink)
    if words.has(call, "lengths") and (s.cumulative or s.queries > 1):
        operands["lengths"] = lowering.value(words.lengths)
        options["cumulative"] = s.cumulative
    if words.has(call, "key_lengths"):
        operands["key_lengths"] = lowering.value(words.key_lengths)
        options["key_cumulative"] = s.cumulative and not words.has(call, "table")
    if words.has(call, "table"):
        operands["table"] = lowering.value(words.table)
    return operands, options


def _shared_operands(lowering: Lowering, words: Words, layout: str, s: Sizes) -> dict[str, int]:
    """Keys and values of all batches, and paddings, by the names of a node's operands."""
    call, found = lowering.call, {}
    if words.has(call, "key_prefix"):
        for name, role in (("key_prefix", "key"), ("value_prefix", "value")):
            value = _read(lowering, words, getattr(words, name))
            value = _split_heads(lowering, value, layout, s.key_heads)
            found[name] = _expanded(lowering, words, role, value)
        if words.has(call, "prefix_length"):
            found["prefix_length"] = lowering.value(words.prefix_length)
    if words.has(call, "query_padding") and words.has(call, "lengths") and s.queries > 1:
        found["query_padding"] = lowering.value(words.query_padding)
    if words.has(call, "key_padding") and words.has(call, "key_lengths"):
        found["key_padding"] = lowering.value(words.key_padding)
    return found


def _window_of(call: Call, words: Words) -> dict[str, object]:
    """Window of a mode, and whether the mask is read."""
    mode = words.number(call, "mode")
    before, after = words.number(call, "before"), words.number(call, "after")
    if not words.mode or _is_one_query(call, words):
        return {"reads_mask": True}
    if mode == _NO_MASK or (words.training and not words.has(call, "mask") and mode != _PREFIX):
        if not words.has(call, "mask"):
            return {"reads_mask": False}
        return {"window": (-before, after), "reads_mask": True}
    if mode in (_ALL, _TREE):
        return {"reads_mask": True, "tree": mode == _TREE}
    if mode == _LEFT_UP:
        return {"window": (-EVERYTHING, 0), "reads_mask": False}
    if mode == _BAND:
        return {"window": (-before, after), "anchored": True, "reads_mask": False}
    prefix = words.option(call, "prefix", ()) or ()
    more = {"prefix": prefix} if mode in (_PREFIX, _PREFIX_COMPRESSED) else {}
    return {"window": (-EVERYTHING, 0), "anchored": True, "reads_mask": False, **more}


def _placed(lowering: Lowering, name: str, value: int, shape: Shape, layout: str) -> int:
    """A result of heads as a tensor of a layout, which the node writes where it is."""
    builder, found = lowering.builder, lowering.builder.value(value)
    if layout == "BNSD":
        return value
    whole = builder.buffer(name, shape, found.dtype)
    builder.view_copy(value, _split_heads(lowering, whole, layout, found.shape[1]))
    return whole


def _as_result(lowering: Lowering, words: Words, value: int) -> int:
    """The node's result in the dtype of the call's."""
    if not _in_single(lowering.call, words):
        return value
    if lowering.call.dtype("query") == BYTE:
        first, second = (_factor(lowering, role) for role in words.products[1:])
        value = _times(lowering, value, _times(lowering, first, second))
    if not words.has(lowering.call, "out_scale"):
        return lowering.builder.cast(value, graph_dtype(_out_dtype(lowering.call, words)))
    shape = lowering.builder.shape(value)
    scales = [
        _of_channels(lowering, role, shape)
        for role in lowering.call.given((words.out_scale, words.out_offset))
    ]
    return quantized(lowering, [value, *scales], BYTE, shape)


def _factor(lowering: Lowering, role: str) -> int:
    """A scale of products as float32, which may be given as bits."""
    if lowering.call.dtype(role) == _SINGLE:
        return lowering.dense(role)
    return lowering.opaque("scale_of_bits", [lowering.value(role)], _SINGLE, (1,))


def _times(lowering: Lowering, value: int, factor: int) -> int:
    """A value of float32 times a single number of it."""
    shape = lowering.builder.shape(value)
    rank = (1,) * len(shape)
    spread = lowering.dense(lowering.reshaped(factor, rank), None, shape)
    return lowering.point("mul", [lowering.dense(value), spread], _SINGLE, shape)


def _of_channels(lowering: Lowering, role: str, shape: Shape) -> int:
    """A number for all, or one for each head's elements, as float32 in the shape of heads."""
    known = lowering.call.shape(role) != (1,)
    along = (1, shape[1], 1, shape[3]) if known else (1, 1, 1, 1)
    numbers = lowering.reshaped(lowering.dense(role, _SINGLE), along)
    return lowering.dense(numbers, None, shape)


def _lower(words: Words, statistics: tuple[str, ...] = (), out: str = "attention_out") -> Callable:
    def lower(lowering: Lowering) -> Mapping[str, int]:
        call, s = lowering.call, sizes_of(lowering.call, words)
        operands, options = _nodes_of(lowering, words)
        dtype, shape = lowering.results[out]
        made_as = _SINGLE if _in_single(call, words) else dtype
        batch = 1 if s.cumulative else s.batch
        rows = (batch, s.heads, s.queries)
        results = {"out": (made_as, (*rows, s.values))}
        for name, role in zip(("first", "second"), statistics, strict=False):
            if lowering.wants(role):
                results[name] = (_SINGLE, (*rows, 8 if words.training else 1))
        scale = lowering.number(words.scale, "exact")
        made = attend(lowering, operands, results, scale, **options)
        layout = words.layout_out(call)
        whole = _as_result(lowering, words, made["out"])
        found = {out: _placed(lowering, "attention", whole, shape, layout)}
        for name, role in zip(("first", "second"), statistics, strict=False):
            if name in made:
                kind = "TND" if s.cumulative else "BNSD"
                found[role] = _placed(lowering, role, made[name], lowering.results[role][1], kind)
        return found

    return lower


_NOTES = (
    "Layouts name dimensions: B batches, S rows, N heads, D a head's elements, H = N·D, T the rows "
    "of all batches one after the other, whose lengths are then cumulative; after an underscore "
    "that of the result. Modes: 0 all keys, or a mask and the window of pre and next tokens; 1 a "
    "mask; 2 keys up to the query's place; 3 the same counted from the last query and key; 4 a "
    "window counted so. Masks hide where they are not 0; compressed ones are not read. Lengths are "
    "read when the call runs, so that others need no new plan: numbers out of range, and blocks "
    "that do not exist, end the run with a status. Queries that see no key give 0, and infinity as "
    "logarithm of the sum."
)
_QUANTISED_PRODUCTS = (
    " Where query, keys and values are int8, the attention is that of float32, with query·"
    "dequant_scale1, and the result is times quant_scale1·dequant_scale2, in float16 or as int8: "
    "weights are not rounded to int8. The dequantizing scales may be bits, as `trans_quant_param` "
    "makes them."
)
_QUANTISED_OUT = (
    " With `{}` results are round(out·scale + offset), saturated, of int8: the attention is that of "
    "float32 then, rounded only there."
)
_PREFIXES = (
    " `key_shared_prefix` and `value_shared_prefix`, of one batch, precede the keys and values of every "
    "batch, as many rows as `actual_shared_prefix_len` says, by default all: key j is the j-th of both "
    "together, in masks and windows too."
)
_PADDED = (
    " With a padding size, rows of a length end so many rows before the end of the tensor, instead of "
    "beginning with its first; modes count from the first of these rows, masks and shifts are for rows of "
    "the tensors. Results of rows that are none are 0."
)
_STARTS = (
    " `pse_type` 1 adds `pse_shift` before scores are scaled. With 2 it has a slope for each head, of "
    "float32: the score of query i and key j falls by slope·|j + kv_start_idx - i - q_start_idx|, with 3 by "
    "the slope times the square root of that; i and j count from the first rows of a batch."
)
_PRODUCTS = ("dequant_scale1", "quant_scale1", "dequant_scale2")
_DEQUANTISING = (_PRODUCTS[0], _PRODUCTS[2])
_SCALED = ("quant_scale2", "quant_offset2")
_QKV = ("query", "key", "value")
_FIA_CACHE = CacheScales(
    both="antiquant_scale",
    both_offset="antiquant_offset",
    both_mode="antiquant_mode",
    key="key_antiquant_scale",
    key_offset="key_antiquant_offset",
    key_mode="key_antiquant_mode",
    value="value_antiquant_scale",
    value_offset="value_antiquant_offset",
    value_mode="value_antiquant_mode",
)
_FIA = Words(
    query_rope="query_rope",
    key_rope="key_rope",
    sink="learnable_sink",
    key_prefix="key_shared_prefix",
    value_prefix="value_shared_prefix",
    prefix_length="actual_shared_prefix_len",
    query_padding="query_padding_size",
    key_padding="kv_padding_size",
    lse="softmax_lse_flag",
    inner_precise="inner_precise",
    out_scale="quant_scale2",
    out_offset="quant_offset2",
    cache=_FIA_CACHE,
    products=_PRODUCTS,
    layouts=_ALL_LAYOUTS,
)
_FIA5 = replace(_FIA, shift_kind="pse_type", query_start="q_start_idx", key_start="kv_start_idx")
_FIA2 = Words(
    heads="num_query_heads",
    scale="softmax_scale",
    lengths="actual_seq_qlen",
    key_lengths="actual_seq_kvlen",
    query_rope="query_rope",
    key_rope="key_rope",
    sink="learnable_sink",
    lse="return_softmax_lse",
    inner_precise="inner_precise",
    out_scale="quant_scale_out",
    out_offset="quant_offset_out",
    cache=CacheScales(
        key="dequant_scale_key",
        key_offset="dequant_offset_key",
        key_mode="key_quant_mode",
        value="dequant_scale_value",
        value_offset="dequant_offset_value",
        value_mode="value_quant_mode",
    ),
    layouts=_ALL_LAYOUTS,
    shift_kind="pse_type",
    query_start="q_start_idx",
    key_start="kv_start_idx",
)
_PFA = Words(
    scale="scale_value",
    table="",
    block_size="",
    out_scale="quant_scale2",
    out_offset="quant_offset2",
    products=_PRODUCTS,
    layouts=("BSH", "BSND", "BNSD", "BNSD_BSND", "TND", "NTD"),
)
_IFA = Words(
    scale="scale_value",
    mode="",
    before="",
    after="",
    lengths="",
    key_lengths="actual_seq_lengths",
    inner_precise="inner_precise",
    out_scale="quant_scale2",
    out_offset="quant_offset2",
    cache=CacheScales(both="antiquant_scale", both_offset="antiquant_offset"),
    key_padding="kv_padding_size",
    products=_PRODUCTS,
    layouts=("BSH", "BSND", "BNSD"),
    one_query=True,
)
_FAS = Words(
    heads="head_num",
    key_heads="",
    before="pre_tockens",
    after="next_tockens",
    shift="pse",
    lengths="",
    key_lengths="",
    table="",
    block_size="",
    inner_precise="inner_precise",
    prefix="prefix",
    layouts=_TRAINING,
    training=True,
)
_VARLEN = replace(
    _FAS, lengths="actual_seq_qlen", key_lengths="actual_seq_kvlen", layouts=(*_TRAINING, "TND")
)


def _dtypes(words: Words, *others: str, out: str = "attention_out") -> tuple[Rule, ...]:
    """Dtypes of inputs and the result: CANN's inference functions take halves only."""
    more = (BYTE,) if words.products else ()
    allowed = of_cann(dtype_among("query", (*_HALVES, *more)))
    first = (dtype_among("query", (*FLOATING, *more)), *(() if words.training else (allowed,)))
    same = [_dtype_of_query(role, words) for role in (words.shift, *others) if role]
    prefixes = [(words.key_prefix, "key"), (words.value_prefix, "value")]
    same += [same_dtype(role, other) for role, other in prefixes if role]
    same = [*_cache_has_dtype(words), *same, *words.cache.dtypes]
    return (*first, *same, *_dtypes_of_scales(words), _out_has_dtype(out, words))


def _dtypes_of_scales(words: Words) -> tuple[Rule, ...]:
    if not words.out_scale:
        return ()
    products = [
        dtype_among(role, (_SINGLE, *(_BITS if role in _DEQUANTISING else ())))
        for role in words.products
    ]
    scale, offset = words.out_scale, words.out_offset
    results = (dtype_among(scale, _SCALES), dtype_among(offset, _SCALES))
    return (*products, *results, same_dtype(offset, scale))


def _indices(words: Words) -> tuple[Rule, ...]:
    counts = (words.prefix_length, words.query_padding, words.key_padding)
    roles = [role for role in (words.lengths, words.key_lengths, *counts) if role]
    rules = [_optional_dtype(role, _INDICES) for role in roles]
    return (*rules, *([_optional_dtype(words.table, _INDICES[:1])] if words.table else []))


@rule("with statistics, heads of `value` have elements")
def _values_have_elements(call: Call, words: Words) -> str | None:
    """Heads of value, where statistics of queries are asked for besides the result."""
    asked = words.training or (words.lse and call.switches[words.lse])
    if not asked or call.shape("value")[-1] or 0 in call.shape("query")[:-1]:
        return None
    return f"{call.shaped('value')}, whose heads have no element"


def _planning(words: Words) -> tuple[Rule, ...]:
    """Checks of the planning stage."""
    return (
        *([_mode_known(words)] if words.mode else []),
        _tensors_fit(words),
        *([_values_have_elements(words)] if words.lse else []),
        _lengths_fit(words),
        *([_pages_fit(words)] if words.table else []),
        *([_ropes_fit(words)] if words.query_rope else []),
        *([_sink_fits(words)] if words.sink else []),
        *([_prefixes_fit(words)] if words.key_prefix else []),
        *([_paddings_fit(words)] if words.key_padding else []),
        *([_shift_kind_known(words)] if words.shift_kind else []),
        *([_product_scales_fit(words)] if words.products else []),
        *([_cache_scales_fit(words)] if words.cache.inputs else []),
        *([_out_scales_fit(words)] if words.out_scale else []),
        *([_window_not_empty(words)] if words.mode else []),
        _mask_fits(words),
        _shift_fits(words),
    )


def _sample_specs(words: Words, out: str = "attention_out") -> dict[str, object]:
    """Parts of sample tensors for listing dtypes."""
    lengths = [role for role in (words.lengths, words.key_lengths) if role]
    return {
        **{role: {"shape": (1, 1, 2)} for role in (*_QKV, out)},
        **{role: {"shape": (1,), "dtype": aclDataType.ACL_INT64} for role in lengths},
        words.heads: 1,
        words.layout: "BSH",
    }


def _options(words: Words, after: int = _UNLIMITED) -> tuple[Attribute, ...]:
    """Attributes of inference functions in torch_npu's order."""
    rest = []
    if words.mode:
        rest += [
            Attribute(words.before, _UNLIMITED, "int", doc="Keys before a query that it sees."),
            Attribute(words.after, after, "int", doc="Number of keys after a query that it sees."),
        ]
    rest.append(Attribute(words.layout, "BSH", "str", doc="What dimensions are."))
    rest.append(
        Attribute(words.key_heads, 0, "int", doc="Heads of key and value; 0: as of the query.")
    )
    if words.mode:
        rest.append(Attribute(words.mode, 0, "int", doc="Which keys a query sees."))
    return (
        Attribute(words.heads, 1, "int", doc="Heads of the query."),
        Attribute(words.scale, 1.0, "float", doc="Factor of scores."),
        *rest,
    )


_QUANTISED = (
    "deqScale1Optional=dequant_scale1:in? quantScale1Optional=quant_scale1:in? "
    "deqScale2Optional=dequant_scale2:in? "
    "quantScale2Optional=quant_scale2:in? quantOffset2Optional=quant_offset2:in? antiquantScaleOptional=antiquant_scale:in? "
    "antiquantOffsetOptional=antiquant_offset:in?"
)
_SHARED = (
    "queryPaddingSizeOptional=query_padding_size:in? kvPaddingSizeOptional=kv_padding_size:in? "
    "keyAntiquantScaleOptional=key_antiquant_scale:in? keyAntiquantOffsetOptional=key_antiquant_offset:in? "
    "valueAntiquantScaleOptional=value_antiquant_scale:in? valueAntiquantOffsetOptional=value_antiquant_offset:in? "
    "keySharedPrefixOptional=key_shared_prefix:in? valueSharedPrefixOptional=value_shared_prefix:in? "
    "actualSharedPrefixLenOptional=actual_shared_prefix_len:ints?"
)
_FIA_TENSORS = (
    "query key:single value:single pseShiftOptional=pse_shift:in? attenMaskOptional=atten_mask:in? "
    "actualSeqLengthsOptional=actual_seq_lengths:ints? "
    f"actualSeqLengthsKvOptional=actual_seq_lengths_kv:ints? {_QUANTISED} "
    f"blockTableOptional=block_table:in? {_SHARED}"
)
_ROPES = (
    "queryRopeOptional=query_rope:in? keyRopeOptional=key_rope:in? "
    "keyRopeAntiquantScaleOptional:absent"
)
_SINK = "dequantScaleQueryOptional:absent learnableSinkOptional=learnable_sink:in?"
_FIA_OPTIONS = (
    "numHeads:int scaleValue=scale:float preTokens:int nextTokens:int inputLayout:str "
    "numKeyValueHeads:int sparseMode:int innerPrecise:int blockSize:int antiquantMode:int "
    "softmaxLseFlag:bool keyAntiquantMode:int valueAntiquantMode:int"
)
_FIA_RESULTS = "attentionOut=attention_out:out softmaxLse=softmax_lse:out?"


def _shared_inputs(words: Words) -> tuple[str, ...]:
    prefixes = (words.key_prefix, words.value_prefix, words.prefix_length)
    return (*prefixes, words.query_padding, words.key_padding)


def _starts(words: Words) -> tuple[Attribute, ...]:
    if not words.shift_kind:
        return ()
    ends = ((words.query_start, "query"), (words.key_start, "key"))
    kinds = "0: scale·product + shift, 1: scale·(product + shift), 2: slopes, 3: slopes, of roots."
    return (
        *[
            Attribute(role, None, "ints", doc=f"Place of the first {what}.", nullable=True)
            for role, what in ends
        ],
        Attribute(words.shift_kind, 0, "int", doc=kinds),
    )


def _fused(words: Words, name: str, *entries: Entry, product: str = "") -> Operator:
    """`product`: where alone it is supported, without a functional form of its own."""

    def infer(call: Call) -> Mapping[str, tuple]:
        found = {"attention_out": (_out_dtype(call, words), _out_shape(call, words))}
        if words.option(call, "lse"):
            found["softmax_lse"] = (_SINGLE, _lse_shape(call, words))
        return found

    inputs = (
        *_QKV,
        words.shift,
        words.mask,
        words.lengths,
        words.key_lengths,
        words.table,
        words.query_rope,
        words.key_rope,
        words.sink,
        words.out_scale,
        words.out_offset,
        *words.cache.inputs,
        *words.products,
        *filter(None, _shared_inputs(words)),
    )
    return Operator(
        name=name,
        summary="Attention of inference: caches, pages, lengths, grouped heads, sparse modes.",
        expression=(
            "out = softmax(scale·(query·keyᵀ + query_rope·key_ropeᵀ) + pse_shift, hidden keys "
            "without weight)·value; learnable_sink is a score without value"
        ),
        notes=(
            f"{_NOTES} With `{words.table}` key and value are pools of blocks, of shape (blocks, "
            "block size, heads·size) or (blocks, heads, block size, size). Without "
            f"`{words.lse}` the second result is None.{_QUANTISED_OUT.format(words.out_scale)}"
            f"{_QUANTISED_CACHE}{_QUANTISED_PRODUCTS if words.products else ''}"
            f"{_PREFIXES + _PADDED if words.key_prefix else ''}{_STARTS if words.shift_kind else ''}"
        ),
        infer=infer,
        lower=_lower(words, ("softmax_lse",)),
        inputs=inputs,
        outputs=("attention_out", "softmax_lse"),
        optional=(*inputs[3:], "softmax_lse"),
        sample_specs=_sample_specs(words),
        attributes=(
            *_options(words),
            Attribute(words.inner_precise, 0, "int", doc="From 0 to 3; results are the same."),
            Attribute(words.block_size, 0, "int", doc="Rows of a block."),
            Attribute(
                words.lse, False, "bool", doc="Whether the logarithm of the sum is a result."
            ),
            *words.cache.attributes,
            *_starts(words),
        ),
        parameters=_QKV,
        entries=entries,
        product=product,
        functional=not product,
        differentiable=False,
        form_of="fused_infer_attention_score" if product else "",
        checks_arrays=_check_arrays(words),
        rules=(
            _not_on_950(only=bool(product)),
            *_dtypes(words, words.query_rope, words.key_rope, words.sink),
            dtype_among(words.mask, _MASKS),
            *_indices(words),
            *require("softmax_lse: FLOAT; attention_out: if empty ends"),
            _layout_known(words, status=ACLNN_ERR_INNER_TILING_ERROR),
            _heads_positive(words, status=ACLNN_ERR_INNER_TILING_ERROR),
            _inner_precise_known(words, 3),
            *_planning(words),
            _has_out_shape("attention_out", words, status=ACLNN_ERR_INNER_TILING_ERROR),
            _lse_fits(words),
        ),
        example=(
            f"{name}(np.float16([[[0, 0]]]), np.float16([[[1, 2], [3, 4]]]), "
            f"np.float16([[[1, 2], [2, 4]]]), {words.lse}=True)",
            "(array([[[1.5, 3. ]]], dtype=float16), array([[[[0.6931472]]]], dtype=float32))",
        ),
        seealso=("scaled_dot_product_attention",),
        accuracy=ACCURACY,
    )


fused_infer_attention_score = _fused(
    _FIA,
    "fused_infer_attention_score",
    entry(
        "aclnnFusedInferAttentionScoreV4",
        f"{_FIA_TENSORS} {_ROPES} {_SINK} {_FIA_OPTIONS} queryQuantMode:ignored {_FIA_RESULTS}",
    ),
    entry(
        "aclnnFusedInferAttentionScoreV3",
        f"{_FIA_TENSORS} {_ROPES} {_FIA_OPTIONS} {_FIA_RESULTS}",
    ),
    entry("aclnnFusedInferAttentionScoreV2", f"{_FIA_TENSORS} {_FIA_OPTIONS} {_FIA_RESULTS}"),
)
fused_infer_attention_score_v2 = _fused(_FIA2, "fused_infer_attention_score_v2")
fused_infer_attention_score_v5 = _fused(
    _FIA5,
    "fused_infer_attention_score_v5",
    entry(
        "aclnnFusedInferAttentionScoreV5",
        f"{_FIA_TENSORS} {_ROPES} {_SINK} qStartIdxOptional=q_start_idx:ints? "
        "kvStartIdxOptional=kv_start_idx:ints? "
        f"{_FIA_OPTIONS} queryQuantMode:ignored pseType=pse_type:int {_FIA_RESULTS}",
    ),
    product="Ascend950",
)


def _ranks_of_prompts() -> Rule:
    def test(call: Call) -> str | None:
        layout, ranks = _PFA.layout_in(call), {role: len(call.shape(role)) for role in _QKV}
        requested = 3 if layout in _MERGED else len(_SPLIT.get(layout, "")) or ranks["query"]
        for role, rank in ranks.items():
            if rank != requested:
                return f"{call.names[role]} has {rank} dimensions, must have {requested} in the layout {layout}"
        size, heads = call.shape("query")[-1], _PFA.number(call, "heads")
        if layout not in _MERGED or size >= heads:
            return None
        return f"{call.names['query']} has the last size {size}, less than {call.names[_PFA.heads]}, {heads}"

    text = "query, key and value have the dimensions of the layout, merged ones an element for each head"
    return _tested(text, test, *_QKV, _PFA.layout, _PFA.heads)


_MOST_OF_HEAD = 512


@rule(f"heads have at most {_MOST_OF_HEAD} elements", "query", "value")
def _small_heads(call: Call) -> str | None:
    heads, merged = _PFA.number(call, "heads"), _PFA.layout_in(call) in _MERGED
    for role, count in (("query", heads), ("value", _key_heads(call, _PFA, heads))):
        size = call.shape(role)[-1] // count if merged else call.shape(role)[-1]
        if size > _MOST_OF_HEAD:
            return f"heads of {call.names[role]} have {size} elements, must have at most {_MOST_OF_HEAD}"
    return None


prompt_flash_attention = Operator(
    name="prompt_flash_attention",
    differentiable=False,
    summary="Attention of full prompts.",
    expression="out = softmax(scale_value·query·keyᵀ + pse_shift, hidden keys without weight)·value",
    notes=_NOTES + _QUANTISED_OUT.format("quant_scale2") + _QUANTISED_PRODUCTS,
    infer=lambda call: {"out": (_out_dtype(call, _PFA), _out_shape(call, _PFA))},
    lower=_lower(_PFA, out="out"),
    inputs=(*_QKV, _PFA.shift, _PFA.mask, _PFA.lengths, _PFA.key_lengths, *_SCALED, *_PRODUCTS),
    outputs=("out",),
    optional=(_PFA.shift, _PFA.mask, _PFA.lengths, _PFA.key_lengths, *_SCALED, *_PRODUCTS),
    sample_specs=_sample_specs(_PFA, "out"),
    attributes=_options(_PFA, 0),
    parameters=_QKV,
    entries=(
        entry(
            "aclnnPromptFlashAttentionV3",
            "query key value pseShift=pse_shift:in? attenMask=atten_mask:in? "
            "actualSeqLengths=actual_seq_lengths:ints? "
            "actualSeqLengthsKv=actual_seq_lengths_kv:ints? deqScale1=dequant_scale1:in? quantScale1=quant_scale1:in? "
            "deqScale2=dequant_scale2:in? quantScale2=quant_scale2:in? quantOffset2=quant_offset2:in? numHeads:int "
            "scaleValue:float preTokens:int nextTokens:int inputLayout:str numKeyValueHeads:int "
            "sparseMode:int innerPrecise:ignored attentionOut=out:out",
        ),
    ),
    checks_arrays=_check_arrays(_PFA),
    rules=(
        _not_on_950(),
        *require("out: if empty ends"),
        *_dtypes(_PFA, out="out"),
        *require("atten_mask: BOOL INT8 UINT8 FLOAT16"),
        *_indices(_PFA),
        _heads_positive(_PFA, status=None),
        _ranks_of_prompts(),
        _layout_known(_PFA, status=None),
        of_cann(_small_heads()),
        *_planning(_PFA),
        _has_out_shape("out", _PFA, status=None),
    ),
    example=(
        "prompt_flash_attention(np.float16([[[0, 0]]]), np.float16([[[1, 2], [3, 4]]]), "
        "np.float16([[[1, 2], [2, 4]]]))",
        "array([[[1.5, 3. ]]], dtype=float16)",
    ),
    seealso=("fused_infer_attention_score",),
    accuracy=ACCURACY,
)


@rule("`query` has one row for each batch", status=ACLNN_ERR_INNER_TILING_ERROR)
def _single_query(call: Call) -> str | None:
    s = sizes_of(call, _IFA)
    if s.queries == 1:
        return None
    return f"{call.names['query']} has {s.queries} rows, must have 1 for each batch"


incre_flash_attention = Operator(
    name="incre_flash_attention",
    differentiable=False,
    summary="Attention of one query for each batch over cached keys.",
    expression="out = softmax(scale_value·query·keyᵀ + pse_shift, hidden keys without weight)·value",
    notes=f"{_NOTES} `actual_seq_lengths` are those of the keys.{_QUANTISED_OUT.format('quant_scale2')}"
    f"{_QUANTISED_CACHE} Their scales are of channels, or one for all, those of keys first.{_PADDED}{_QUANTISED_PRODUCTS}",
    infer=lambda call: {"out": (_out_dtype(call, _IFA), _out_shape(call, _IFA))},
    lower=_lower(_IFA, out="out"),
    inputs=(
        *_QKV,
        _IFA.shift,
        _IFA.mask,
        _IFA.key_lengths,
        _IFA.table,
        *_SCALED,
        *_IFA.cache.inputs,
        _IFA.key_padding,
        *_PRODUCTS,
    ),
    outputs=("out",),
    optional=(
        *(_IFA.shift, _IFA.mask, _IFA.key_lengths, _IFA.table, *_SCALED, *_IFA.cache.inputs),
        _IFA.key_padding,
        *_PRODUCTS,
    ),
    sample_specs=_sample_specs(_IFA, "out"),
    attributes=(
        *_options(_IFA),
        Attribute(_IFA.block_size, 0, "int", doc="Rows of a block."),
        Attribute(_IFA.inner_precise, 1, "int", doc="0 or 1; results are the same."),
    ),
    parameters=_QKV,
    entries=(
        entry(
            "aclnnIncreFlashAttentionV4",
            "query key:single value:single pseShift=pse_shift:in? attenMask=atten_mask:in? "
            "actualSeqLengths=actual_seq_lengths:ints? dequantScale1=dequant_scale1:in? "
            "quantScale1=quant_scale1:in? dequantScale2=dequant_scale2:in? quantScale2=quant_scale2:in? quantOffset2=quant_offset2:in? antiquantScale=antiquant_scale:in? "
            "antiquantOffset=antiquant_offset:in? blocktable=block_table:in? kvPaddingSize=kv_padding_size:in? numHeads:int "
            "scaleValue:float inputLayout:str numKeyValueHeads:int blockSize:int "
            "innerPrecise:int attentionOut=out:out",
        ),
    ),
    checks_arrays=_check_arrays(_IFA),
    rules=(
        _not_on_950(),
        *_dtypes(_IFA, out="out"),
        *require("atten_mask: BOOL INT8 UINT8"),
        *_indices(_IFA),
        *require("out: if empty ends"),
        _layout_known(_IFA, status=ACLNN_ERR_INNER_TILING_ERROR),
        _heads_positive(_IFA, status=ACLNN_ERR_INNER_TILING_ERROR),
        _inner_precise_known(_IFA, 1),
        *_planning(_IFA),
        _single_query(),
        _has_out_shape("out", _IFA, status=ACLNN_ERR_INNER_TILING_ERROR),
    ),
    example=(
        "incre_flash_attention(np.float16([[[0, 0]]]), np.float16([[[1, 2], [3, 4]]]), "
        "np.float16([[[1, 2], [2, 4]]]))",
        "array([[[1.5, 3. ]]], dtype=float16)",
    ),
    seealso=("fused_infer_attention_score",),
    accuracy=ACCURACY,
)


# --- Training ---------------------------------------------------------------------------------------


def _statistics_shape(call: Call, words: Words) -> Shape:
    s = sizes_of(call, words)
    return (s.queries, s.heads, 8) if s.cumulative else (s.batch, s.heads, s.queries, 8)


def _has_statistics_shape(words: Words, *roles: str) -> Rule:
    def test(call: Call) -> str | None:
        requested = _statistics_shape(call, words)
        for role in call.given(roles):
            if call.shape(role) != requested:
                return f"{call.shaped(role)}, must have {requested}"
        return None

    names = " and ".join(f"`{role}`" for role in roles)
    shapes = "(B, N, S, 8)" + (", of TND (T, N, 8)" if words.lengths else "")
    return _tiling(f"{names} have 8 elements for each row, of shape {shapes}", test, *roles)


@rule("heads of `value` are not larger than those of `query`, at most 768", *_QKV)
def _value_not_larger(call: Call, words: Words) -> str | None:
    s = sizes_of(call, words)
    if s.values <= s.depth <= 768:
        return None
    return (
        f"heads of {call.names['query']} have the size {s.depth}, of {call.names['value']} "
        f"{s.values}: at most 768, and those of value not more"
    )


@rule("`keep_prob` is more than 0 and at most 1")
def _keep_prob_within(call: Call) -> str | None:
    number = call.scalars["keep_prob"]
    above = number.whole and not (number.one or number.zero)
    if not (number.negative or number.zero or number.nan or above) or not number.text:
        return None  # samples of calls lack a text
    return f"{call.names['keep_prob']} is {number.text}, must be more than 0 and at most 1"


@rule("`keep_prob` is 1 where `drop_mask` is given", status=ACLNN_ERR_INNER_TILING_ERROR)
def _no_dropout(call: Call) -> str | None:
    number = call.scalars["keep_prob"]
    if "drop_mask" not in call.tensors or number.one or not number.text:
        return None
    return (
        f"{call.names['keep_prob']} is {number.text}, must be 1 with {call.names['drop_mask']}: there is no "
        "dropout here"
    )


@rule(
    "lengths are given with TND only",
    "{words.lengths}",
    "{words.key_lengths}",
    status=ACLNN_ERR_INNER_TILING_ERROR,
)
def _lengths_of_tnd(call: Call, words: Words) -> str | None:
    for role in (words.lengths, words.key_lengths):
        if role in call.tensors and words.layout_in(call) != "TND":
            return (
                f"{call.names[role]} is given, must be null in the layout {words.layout_in(call)}"
            )
    return None


@rule("`prefix` has a number for each batch in modes 5 and 6", status=ACLNN_ERR_INNER_TILING_ERROR)
def _prefix_fits(call: Call, words: Words) -> str | None:
    mode = words.number(call, "mode")
    numbers = call.switches["prefix"] or ()
    if mode not in (_PREFIX, _PREFIX_COMPRESSED):
        return None
    batch = sizes_of(call, words).batch
    assert isinstance(numbers, tuple)
    if len(numbers) == batch:
        return None
    return f"{call.names['prefix']} has {len(numbers)} numbers, must have {batch}"


_FAS_ATTRIBUTES = (
    argument("head_num", REQUIRED, "int", "Heads of the query."),
    argument("input_layout", REQUIRED, "str", "What dimensions are."),
    argument("scale", 1.0, "float", "Factor of scores."),
    argument(
        "keep_prob",
        1.0,
        "float",
        "Must be 1 where there is a mask of dropout.",
        facts=("one", "zero", "nan", "whole"),
    ),
    argument("pre_tockens", _UNLIMITED, "int", "Keys before a query it sees."),
    argument("next_tockens", _UNLIMITED, "int", "Number of keys after a query that it sees."),
    argument("inner_precise", 0, "int", "From 0 to 2; no effect."),
    argument("prefix", None, "ints", "Keys that all queries see.", nullable=True),
    argument("sparse_mode", 0, "int", "Which keys a query sees."),
)


def _training_rules(words: Words) -> tuple[Rule, ...]:
    return (
        *require("drop_mask: UINT8"),
        _keep_prob_within(),
        _heads_positive(words, status=None),
        _layout_known(words, status=None),
        _tensors_fit(words, status=None),
        _value_not_larger(words),
        _values_have_elements(words),
        _inner_precise_known(words, 2),
        _mode_known(words),
        *((_lengths_of_tnd(words), _lengths_fit(words)) if words.lengths else ()),
        _window_not_empty(words),
        _mask_fits(words),
        _shift_fits(words),
        _no_dropout(),
        _prefix_fits(words),
    )


_FAS_UNLIKE = {
    **specs("query, key, value, attention_out: [1,1,2]"),
    "head_num": 1,
    "input_layout": "BSH",
    "prefix": None,
}
_OPTIONAL_OF_TRAINING = (
    *("pse", "drop_mask", "padding_mask", "atten_mask"),
    *(_VARLEN.lengths, _VARLEN.key_lengths),
)
fusion_attention = Operator(
    name="fusion_attention",
    summary="Attention of training, with the maximum and the sum of each query's exponentials.",
    expression=(
        "out = softmax(scale·(query·keyᵀ + pse), hidden keys without weight)·value, softmax_max = "
        "max, softmax_sum = Σ exp(score - softmax_max), eight times each"
    ),
    notes=(
        f"{_NOTES} Mode 5 is mode 3 with keys before `prefix` seen by all; 6 the same with a "
        "compressed mask. Statistics of queries that see no key are the least and the largest float. "
        "Lengths belong to TND."
    ),
    infer=lambda call: {
        "attention_out": (call.dtype("query"), _out_shape(call, _VARLEN)),
        "softmax_max": (_SINGLE, _statistics_shape(call, _VARLEN)),
        "softmax_sum": (_SINGLE, _statistics_shape(call, _VARLEN)),
    },
    lower=_lower(_VARLEN, ("softmax_max", "softmax_sum")),
    inputs=(*_QKV, *_OPTIONAL_OF_TRAINING),
    outputs=("attention_out", "softmax_max", "softmax_sum"),
    optional=_OPTIONAL_OF_TRAINING,
    unread=("drop_mask", "padding_mask"),
    sample_specs=_FAS_UNLIKE | _sample_specs(_VARLEN) | {"input_layout": "TND"},
    checks_arrays=_check_arrays(_VARLEN),
    attributes=_FAS_ATTRIBUTES,
    parameters=(
        *(*_QKV, "head_num", "input_layout", "pse", "padding_mask", "atten_mask", "scale"),
        *("keep_prob", "pre_tockens", "next_tockens", "inner_precise", "prefix"),
        *(_VARLEN.lengths, _VARLEN.key_lengths, "sparse_mode"),
    ),
    entries=(
        entry(
            "aclnnFlashAttentionScore",
            "query key value realShiftOptional=pse:in? dropMaskOptional=drop_mask:in? "
            "paddingMaskOptional=padding_mask:in? attenMaskOptional=atten_mask:in? "
            "prefixOptional=prefix:ints? scaleValue=scale:float keepProb:float "
            "preTokens=pre_tockens:int nextTokens=next_tockens:int headNum:int inputLayout:str "
            "innerPrecise:int sparseMode:int softmaxMaxOut=softmax_max:out "
            "softmaxSumOut=softmax_sum:out softmaxOutOut:ignored? attentionOutOut=attention_out:out",
        ),
        entry(
            "aclnnFlashAttentionVarLenScore",
            "query key value realShiftOptional=pse:in? dropMaskOptional=drop_mask:in? "
            "paddingMaskOptional=padding_mask:in? attenMaskOptional=atten_mask:in? "
            "prefixOptional=prefix:ints? actualSeqQLenOptional=actual_seq_qlen:ints? "
            "actualSeqKvLenOptional=actual_seq_kvlen:ints? scaleValue=scale:float keepProb:float "
            "preTokens=pre_tockens:int nextTokens=next_tockens:int headNum:int inputLayout:str "
            "innerPrecise:int sparseMode:int softmaxMaxOut=softmax_max:out "
            "softmaxSumOut=softmax_sum:out softmaxOutOut:ignored? attentionOutOut=attention_out:out",
            example=(
                "fusion_attention(np.float32([[[0]]]), np.float32([[[1]], [[3]]]), "
                "np.float32([[[1]], [[2]]]), 1, 'TND', actual_seq_qlen=(1,), actual_seq_kvlen=(2,))",
                "(array([[[1.5]]], dtype=float32), array([[[0., 0., 0., 0., 0., 0., 0., 0.]]], "
                "dtype=float32), array([[[2., 2., 2., 2., 2., 2., 2., 2.]]], dtype=float32))",
            ),
        ),
    ),
    rules=(
        *require("attention_out: if empty ends"),
        *_dtypes(_FAS),
        *_indices(_VARLEN),
        *require("padding_mask: FLOATING; atten_mask: BOOL UINT8; softmax_max, softmax_sum: FLOAT"),
        *_training_rules(_VARLEN),
        _has_out_shape("attention_out", _VARLEN, status=ACLNN_ERR_INNER_TILING_ERROR),
        _has_statistics_shape(_VARLEN, "softmax_max", "softmax_sum"),
    ),
    example=(
        "fusion_attention(np.float32([[[0]]]), np.float32([[[1], [3]]]), np.float32([[[1], [2]]]), 1, "
        "'BSH')",
        "(array([[[1.5]]], dtype=float32), array([[[[0., 0., 0., 0., 0., 0., 0., 0.]]]], "
        "dtype=float32), array([[[[2., 2., 2., 2., 2., 2., 2., 2.]]]], dtype=float32))",
    ),
    seealso=("scaled_dot_product_attention", "fusion_attention_grad"),
    accuracy=ACCURACY,
    gradient={
        "query, key, value": (
            "ops.fusion_attention_grad(query, key, value, grad, head_num, input_layout, pse=pse, "
            "drop_mask=drop_mask, padding_mask=padding_mask, atten_mask=atten_mask, softmax_max=softmax_max, "
            "softmax_sum=softmax_sum, attention_in=attention_out, scale=scale, "
            "keep_prob=keep_prob, pre_tockens=pre_tockens, next_tockens=next_tockens, "
            "inner_precise=inner_precise, prefix=prefix, actual_seq_qlen=actual_seq_qlen, "
            "actual_seq_kvlen=actual_seq_kvlen, sparse_mode=sparse_mode)"
        )
    },
)


def _lower_gradient(lowering: Lowering) -> Mapping[str, int]:
    call, s = lowering.call, sizes_of(lowering.call, _VARLEN)
    operands, options = _nodes_of(lowering, _VARLEN)
    layout = _VARLEN.layout_in(call)
    for name, role in (("grad", "dy"), ("output", "attention_in")):
        operands[name] = _split_heads(lowering, lowering.value(role), layout, s.heads)
    rows = (1 if s.cumulative else s.batch, s.heads, s.queries, 1)
    for name, role in (("first", "softmax_max"), ("second", "softmax_sum")):
        kind = "TND" if s.cumulative else "BNSD"
        value = _split_heads(lowering, lowering.value(role), kind, s.heads)
        strides = lowering.builder.value(value).strides
        operands[name] = lowering.builder.view(value, rows, strides)
    scale = lowering.number("scale", "exact")
    made = gradients(lowering, operands, call.dtype("query"), scale, **options)
    return {
        f"d{role}": _placed(lowering, f"d{role}", value, call.shape(name), layout)
        for role, name, value in zip("qkv", _QKV, made, strict=True)
    }


@rule("`{role}` has the shape of `{other}`", status=ACLNN_ERR_INNER_TILING_ERROR)
def _like(call: Call, role: str, other: str) -> str | None:
    if role not in call.tensors or call.shape(role) == call.shape(other):
        return None
    return f"{call.shaped(role)}, must have {call.shape(other)}"


fusion_attention_grad = Operator(
    name="fusion_attention_grad",
    summary="Gradients of fusion_attention with respect to query, key and value.",
    expression=(
        "P = exp(score - softmax_max) / softmax_sum, dS = P ∘ (dy·valueᵀ - Σ dy ∘ attention_in), "
        "dq = scale·dS·key, dk = scale·dSᵀ·query, dv = Pᵀ·dy; where heads share a key, their sum"
    ),
    notes="Options are those of the forward function, whose results are inputs here.",
    infer=lambda call: {
        f"d{role}": (call.dtype("query"), call.shape(name))
        for role, name in zip("qkv", _QKV, strict=True)
    },
    lower=_lower_gradient,
    inputs=(
        *_QKV,
        "dy",
        "pse",
        "drop_mask",
        "padding_mask",
        "atten_mask",
        "softmax_max",
        "softmax_sum",
        "attention_in",
        _VARLEN.lengths,
        _VARLEN.key_lengths,
    ),
    outputs=("dq", "dk", "dv"),
    optional=_OPTIONAL_OF_TRAINING,
    unread=("drop_mask", "padding_mask"),
    sample_specs={
        **specs(
            "dy, attention_in, dq, dk, dv: [1,1,2]; "
            "softmax_max, softmax_sum: FLOAT[1,1,8]; "
            "actual_seq_qlen, actual_seq_kvlen: INT64[1]"
        ),
        **_FAS_UNLIKE,
        "input_layout": "TND",
    },
    attributes=_FAS_ATTRIBUTES,
    parameters=(
        *(*_QKV, "dy", "head_num", "input_layout", "softmax_max", "softmax_sum", "attention_in"),
        *("pse", "padding_mask", "atten_mask", "scale", "keep_prob", "pre_tockens"),
        *("next_tockens", "inner_precise", "prefix", _VARLEN.lengths, _VARLEN.key_lengths),
        "sparse_mode",
    ),
    entries=(
        entry(
            "aclnnFlashAttentionScoreGrad",
            "query keyIn=key value dy pseShiftOptional=pse:in? dropMaskOptional=drop_mask:in? "
            "paddingMaskOptional=padding_mask:in? attenMaskOptional=atten_mask:in? "
            "softmaxMaxOptional=softmax_max softmaxSumOptional=softmax_sum softmaxInOptional:ignored? "
            "attentionInOptional=attention_in prefixOptional=prefix:ints? scaleValue=scale:float "
            "keepProb:float preTokens=pre_tockens:int nextTokens=next_tockens:int headNum:int "
            "inputLayout:str innerPrecise:int sparseMode:int dqOut=dq:out dkOut=dk:out dvOut=dv:out "
            "dpseOut:ignored?",
        ),
        entry(
            "aclnnFlashAttentionUnpaddingScoreGrad",
            "query keyIn=key value dy pseShiftOptional=pse:in? dropMaskOptional=drop_mask:in? "
            "paddingMaskOptional=padding_mask:in? attenMaskOptional=atten_mask:in? "
            "softmaxMaxOptional=softmax_max softmaxSumOptional=softmax_sum softmaxInOptional:ignored? "
            "attentionInOptional=attention_in prefixOptional=prefix:ints? "
            "actualSeqQLenOptional=actual_seq_qlen:ints? actualSeqKvLenOptional=actual_seq_kvlen:ints? "
            "scaleValue=scale:float keepProb:float preTokens=pre_tockens:int "
            "nextTokens=next_tockens:int headNum:int inputLayout:str innerPrecise:int sparseMode:int "
            "dqOut=dq:out dkOut=dk:out dvOut=dv:out dpseOut:ignored?",
            example=(
                "fusion_attention_grad(np.float32([[[0]]]), np.float32([[[1]]]), np.float32([[[2]]]), "
                "np.float32([[[1]]]), 1, 'TND', "
                "np.float32([[[0, 0, 0, 0, 0, 0, 0, 0]]]), np.float32([[[1, 1, 1, 1, 1, 1, 1, 1]]]), "
                "np.float32([[[2]]]), actual_seq_qlen=(1,), actual_seq_kvlen=(1,))",
                "(array([[[0.]]], dtype=float32), array([[[0.]]], dtype=float32), "
                "array([[[1.]]], dtype=float32))",
            ),
        ),
    ),
    checks_arrays=_check_arrays(_VARLEN),
    rules=(
        *require("dq, dk, dv: if empty ends"),
        *[
            rule
            for rule in _dtypes(_VARLEN, "dy", "attention_in")
            if "attention_out" not in rule.roles
        ],
        *[same_dtype(role, "query") for role in ("dq", "dk", "dv")],
        *_indices(_VARLEN),
        *require("padding_mask: FLOATING; atten_mask: BOOL UINT8; softmax_max, softmax_sum: FLOAT"),
        *_training_rules(_VARLEN),
        _has_out_shape("dy", _VARLEN, status=ACLNN_ERR_INNER_TILING_ERROR),
        _has_out_shape("attention_in", _VARLEN, status=ACLNN_ERR_INNER_TILING_ERROR),
        _has_statistics_shape(_VARLEN, "softmax_max", "softmax_sum"),
        *[_like(f"d{role}", name) for role, name in zip("qkv", _QKV, strict=True)],
    ),
    example=(
        "fusion_attention_grad(np.float32([[[0]]]), np.float32([[[1]]]), np.float32([[[2]]]), "
        "np.float32([[[1]]]), 1, 'BSH', "
        "np.float32([[[[0, 0, 0, 0, 0, 0, 0, 0]]]]), np.float32([[[[1, 1, 1, 1, 1, 1, 1, 1]]]]), "
        "np.float32([[[2]]]))",
        "(array([[[0.]]], dtype=float32), array([[[0.]]], dtype=float32), "
        "array([[[1.]]], dtype=float32))",
    ),
    seealso=("fusion_attention",),
    accuracy=ACCURACY,
)
