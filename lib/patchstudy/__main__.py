"""``python -m patchstudy`` is ``patchstudy``."""

import sys

from patchstudy.cli import main

sys.exit(main())
