"""The report of what ran where."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from aclnn.graph.views.tables import make, to_text
from aclnn.graph.views.text import human_bytes
from aclnn.torch.npu.settings import Settings


@dataclass(frozen=True)
class Report:
    """Counts of what the device computed, what fell back, what was refused, and how much memory was in use.

    Attributes
    ----------
    settings : Settings or None
    counts : dict of str to tuple of int
        As `aclnn.torch.npu.counts` gives them.
    refused : dict
        Calls that rules refused: counts by operator and status, or by the code of the NPU's PyTorch.
    memory : list of dict
        For each device the peak and the limit, in bytes.
    graphs : tuple of str
        For each captured graph, the first ones, its calls and the executors that would do them.
    """

    settings: Settings | None
    counts: dict[str, tuple[int, int]]
    refused: dict[tuple[str, int | str], int]
    memory: list[dict[str, int]]
    graphs: tuple[str, ...] = ()

    @classmethod
    def now(cls, settings: Settings | None) -> Report:
        """The report of the calls up to now."""
        if settings is None:
            return cls(None, {}, {}, [])
        from aclnn.torch.npu import capture, registration

        peaks = [registration.DEVICE.stats(k)[1] for k in range(settings.devices)]
        memory = [
            {"device": k, "peak": peak, "limit": settings.memory} for k, peak in enumerate(peaks)
        ]
        graphs = tuple([str(one) for one in capture.PLANS])
        return cls(settings, registration.counts(), dict(registration.REFUSED), memory, graphs)

    def to_text(self) -> str:
        """Tables in lines of a terminal, the heaviest fallback first."""
        if self.settings is None:
            return "the npu device is not enabled"
        order = sorted(self.counts.items(), key=lambda one: (-one[1][1], -one[1][0], one[0]))
        rows = [[name, ours, fallback] for name, (ours, fallback) in order]
        parts: list[Any] = [
            make(["operator", "computed", "fell back"], rows, "computed,fell back", "operator")
        ]
        if self.refused:
            refused = sorted(
                [name, str(status), count] for (name, status), count in self.refused.items()
            )
            parts.append(make(["refused", "status", "calls"], refused, "status,calls", "refused"))
        ours, fallbacks = (sum(pair[k] for pair in self.counts.values()) for k in (0, 1))
        operators = [sum(bool(pair[k]) for pair in self.counts.values()) for k in (0, 1)]
        parts.append(
            f"{ours} calls of {operators[0]} operators computed by aclnn functions, {fallbacks} of {operators[1]} by "
            "fallback to PyTorch's CPU kernels"
        )
        if self.refused:
            parts.append(f"{sum(self.refused.values())} calls refused")
        parts += [
            f"npu:{one['device']} at most {human_bytes(one['peak'])} of {human_bytes(one['limit'])} in use"
            for one in self.memory
        ]
        parts += [f"graph {number}: {text}" for number, text in enumerate(self.graphs, 1)]
        return to_text(tuple(parts))

    __str__ = to_text

    def __repr__(self) -> str:
        return self.to_text()

    def to_json(self) -> str:
        """The same as a JSON document."""
        refused = [{"operator": n, "status": s, "calls": c} for (n, s), c in self.refused.items()]
        counts = {name: {"computed": a, "fallback": b} for name, (a, b) in self.counts.items()}
        return json.dumps(
            {"operators": counts, "refused": refused, "memory": self.memory, "graphs": self.graphs},
            indent=2,
        )
