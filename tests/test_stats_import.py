"""What importing the statistics brings along."""

import subprocess
import sys


def test_statistics_load_neither_statsmodels_nor_pandas():
    code = (
        "import sys, patchstudy.stats; "
        "print(sorted({'statsmodels', 'pandas', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
