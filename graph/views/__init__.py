"""Views: graphs, plans and schedules as text, JSON, DOT and SVG.

Each is registered for the type that it shows; its module is imported when it is first used.
"""

from ..ir import Graph
from ..lower.schedule import Schedule
from ..passes.pipeline import PassResult
from ..planner.footprint import Footprint
from ..planner.memories import DevicePlan
from ..planner.plan import WorkspacePlan
from ..planner.ranges import Curve
from ..planner.reduction import Reduction
from ..view_methods import register_view
from .diff import PlanDiff

_VIEWS: dict[type, dict[str, tuple[str, str]]] = {
    Graph: {
        "text": (".text", "graph_to_text"),
        "rich": (".text", "graph_to_rich"),
        "html": (".notebook", "picture_to_html"),
        "json": (".json", "graph_to_json"),
        "from_json": (".json", "graph_from_json"),
        "svg": (".graph_svg", "graph_to_svg"),
        "dot": (".dot", "graph_to_dot"),
        "onnx": (".onnx", "graph_to_onnx"),
        "model_explorer": (".model_explorer", "graph_to_model_explorer"),
        "model_explorer_data": (".model_explorer", "model_explorer_data"),
    },
    PassResult: {
        "text": (".passes", "passes_to_text"),
        "side_by_side": (".passes", "passes_side_by_side"),
        "rich": (".passes", "passes_to_rich"),
        "html": (".notebook", "passes_to_html"),
        "json": (".json", "passes_to_json"),
        "from_json": (".json", "passes_from_json"),
        "svg": (".passes", "passes_to_svg"),
    },
    WorkspacePlan: {
        "text": (".text", "plan_to_text"),
        "rich": (".text", "plan_to_rich"),
        "html": (".notebook", "picture_to_html"),
        "json": (".json", "plan_to_json"),
        "from_json": (".json", "plan_from_json"),
        "svg": (".plan_svg", "plan_to_svg"),
        "header": (".header", "plan_to_header"),
        "memory_snapshot": (".snapshot", "plan_to_snapshot"),
        "diff": (".diff", "plan_diff"),
    },
    DevicePlan: {
        "text": (".device", "device_to_text"),
        "rich": (".device", "device_to_rich"),
        "html": (".notebook", "picture_to_html"),
        "json": (".device", "device_to_json"),
        "svg": (".device", "device_to_svg"),
    },
    Curve: {
        "text": (".curve", "curve_to_text"),
        "rich": (".curve", "curve_to_rich"),
        "html": (".notebook", "picture_to_html"),
        "json": (".curve", "curve_to_json"),
        "svg": (".curve", "curve_to_svg"),
    },
    Reduction: {
        "text": (".reduction", "reduction_to_text"),
        "rich": (".reduction", "reduction_to_rich"),
        "json": (".reduction", "reduction_to_json"),
    },
    Footprint: {
        "text": (".footprint", "footprint_to_text"),
        "rich": (".footprint", "footprint_to_rich"),
        "json": (".footprint", "footprint_to_json"),
    },
    PlanDiff: {
        "html": (".notebook", "diff_to_html"),
        "json": (".json", "plan_diff_to_json"),
    },
    Schedule: {
        "text": (".text", "schedule_to_text"),
        "rich": (".text", "schedule_to_rich"),
        "html": (".notebook", "schedule_to_html"),
        "json": (".json", "schedule_to_json"),
        "from_json": (".json", "schedule_from_json"),
    },
}

for kind, views in _VIEWS.items():
    for name, (module, function) in views.items():
        register_view(kind, name, f"{__name__}{module}", function)
