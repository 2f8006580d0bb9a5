"""Size of a wheel by folder: `python tools/wheel_size.py FILE`."""

import sys
import zipfile
from collections import Counter
from pathlib import Path


def main(path: Path) -> None:
    packed: Counter[str] = Counter()
    for one in zipfile.ZipFile(path).infolist():
        packed["/".join(one.filename.split("/")[:2])] += one.compress_size
    for folder, size in packed.most_common(12):
        print(f"{size:10,} {folder}")
    print(f"{path.stat().st_size:10,} {path.name}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
