"""The same bytes in any folder, time zone, locale, user and order of files."""

import locale
import os
import random
import shutil
import subprocess
import sys
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import pytest

#: One that has boots, raw files of several tools, facts and times.
STUDY = "e1000/rx-prefetch"
SURROUNDINGS = [
    {"TZ": "UTC", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0"},
    {"TZ": "Asia/Kolkata", "LC_ALL": "de_DE.UTF-8", "PYTHONHASHSEED": "7",
     "USER": "somebody", "HOME": "/nowhere", "LANGUAGE": "de"},
    {"TZ": "America/St_Johns", "LC_ALL": "C", "PYTHONHASHSEED": "11",
     "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"TZ": "Pacific/Apia", "LC_ALL": "tr_TR.UTF-8", "PYTHONHASHSEED": "random"},
]  # fmt: skip


def told(folder, seed):
    """Print the digest of the results, the text, and each section with its figures."""
    shuffle_the_disk(int(seed))
    set_the_locale()
    sys.stderr.write(f"comma {locale.localeconv()['decimal_point']}\n")
    from patchstudy.findings import assess
    from patchstudy.report import sections
    from patchstudy.report.results import written
    from patchstudy.report.text import for_mail, text
    from patchstudy.study import open_study

    one = assess(open_study(Path(folder)))
    made = {"json": written(one), "text": text(for_mail(one)).encode()}
    for name in ("study", "changes", "guards", "forest", "all_runs", "provenance"):
        made[name] = repr(getattr(sections, name)(one)).encode()
    for name, content in made.items():
        sys.stdout.write(f"{name} {len(content)} {sha256(content).hexdigest()}\n")


def make_locales(folder):
    """Make the locales of the surroundings where the system can; return the folder."""
    for name in ("de_DE", "tr_TR") if shutil.which("localedef") else ():
        order = ["localedef", "-i", name, "-f", "UTF-8", folder / f"{name}.UTF-8"]
        subprocess.run(order, capture_output=True, check=False)
    return folder


def set_the_locale():
    """Set the locale of the surroundings; one that is not installed stays C."""
    with suppress(locale.Error):
        locale.setlocale(locale.LC_ALL, "")


class Listed:
    """What ``os.scandir`` returns: an iterator that can be closed."""

    def __init__(self, entries):
        self._left = iter(entries)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._left)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._left = iter(())


def shuffle_the_disk(seed):
    """Let every folder be listed in another order; 0 leaves it as it is."""
    listed, real_scan, real_list = random.Random(seed), os.scandir, os.listdir

    def scan(path="."):
        with real_scan(path) as entries:
            found = list(entries)
        listed.shuffle(found)
        return Listed(found)

    def names(path="."):
        found = real_list(path)
        listed.shuffle(found)
        return found

    if seed:
        os.scandir, os.listdir = scan, names


def test_the_bytes_are_the_same_everywhere(data, tmp_path):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import test_reproducible as t\n"
        "t.told(*sys.argv[2:])"
    )
    locales = {"LOCPATH": str(make_locales(tmp_path))}
    running = []
    for seed, changed in enumerate(SURROUNDINGS):
        place = tmp_path / f"folder {seed}" / STUDY
        shutil.copytree(data / STUDY, place)
        order = [sys.executable, "-c", code, str(Path(__file__).parent), str(place)]
        surroundings = {k: v for k, v in os.environ.items() if not k.startswith("LC_")}
        running.append(
            subprocess.Popen(
                [*order, str(seed)],
                env=surroundings | locales | changed | {"MPLCONFIGDIR": str(tmp_path)},
                cwd=place.parents[seed % 2],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    outs, errs = zip(*(one.communicate() for one in running), strict=True)
    assert [one.returncode for one in running] == [0] * len(SURROUNDINGS), errs
    for changed, err in zip(SURROUNDINGS, errs, strict=True):
        if (tmp_path / changed["LC_ALL"]).is_dir():
            assert "comma ,\n" in err
    assert len(outs[0].splitlines()) == 8
    assert set(outs) == {outs[0]}


@pytest.mark.slow
def test_every_file_of_a_report_is_the_same_on_another_desk():
    """Notebook, HTML, PDF, text, JSON and the index, twice; the script does all."""
    script = Path(__file__).parents[1] / "benchmarks" / "same_bytes.py"
    order = [sys.executable, script, "--study", "bgmac/prefetch", "--only", "at once"]
    done = subprocess.run(order, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [one for one in done.stdout.splitlines() if "not tried" not in one]
    assert [one.split("  ")[0] for one in lines] == ["as it is", "all at once"]
    assert all(one.endswith("8 files, the same bytes") for one in lines)
