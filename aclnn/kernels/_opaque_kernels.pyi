MAKERS: dict[str, str]
GRAPH_MAKERS: dict[str, str]
