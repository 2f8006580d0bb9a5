"""``python -m aclnn``."""

import sys

from aclnn.cli import main

sys.exit(main())
