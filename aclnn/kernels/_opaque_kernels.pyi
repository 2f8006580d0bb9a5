MAKERS: dict[str, str]
