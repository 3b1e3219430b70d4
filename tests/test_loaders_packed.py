"""Compressed files and archives: read where they are, bounded, never unpacked."""

import bz2
import gzip
import io
import lzma
import os
import tarfile
import zipfile
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pytest

from patchstudy import loaders
from patchstudy.errors import CaptureError
from patchstudy.records import Capture, RawFile

GOLDEN = Path(__file__).parent / "golden" / "loaders"
UPTIME = GOLDEN / "uptime" / "udp200-egress80.uptime.after.txt"
IPERF3 = GOLDEN / "iperf3" / "v312-tcp-fwd.json"
MIB = 2**20


def zstd(data):
    packed = pa.compress(data, codec="zstd", asbytes=True)
    assert isinstance(packed, bytes)
    return packed


COMPRESS = {
    "gz": gzip.compress,
    "xz": lzma.compress,
    "zst": zstd,
    "bz2": bz2.compress,
}


def zipped(members, **options):
    """Return a zip of names (or ZipInfos) and their bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, **options) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return file.getvalue()


def tarred(members, mode="w"):
    """Return a tar of names and bytes, or of TarInfos as they are."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:
        for name, data in members:
            info = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return file.getvalue()


def special(name, kind, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info, b""


def link_in_zip(name):
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, 0o120777 << 16
    return info, b"/etc/passwd"


@pytest.fixture
def written(tmp_path):
    def write(name, data):
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return write


@pytest.fixture
def small(monkeypatch):
    """Let no more than a MiB be uncompressed."""
    monkeypatch.setattr(loaders, "MAX_BYTES", MIB)


@pytest.fixture(autouse=True)
def _nothing_is_written(tmp_path):
    """Fail where a test leaves more on the disk than the files it wrote."""
    yield
    assert all(path.is_file() for path in tmp_path.iterdir())
    assert not Path("evil").exists()


def told(path):
    """Return the captures by path below the archive, and the errors' texts."""
    found = list(loaders.load_all(path))
    captures = [one for one in found if isinstance(one, Capture)]
    errors = [str(one) for one in found if isinstance(one, CaptureError)]
    return {one.path.relative_to(path).as_posix(): one for one in captures}, errors


# ---- one raw file -------------------------------------------------------------------


@pytest.mark.parametrize("kind", COMPRESS)
def test_a_compressed_file_is_read_as_the_file(kind, written):
    packed = written(f"run.{kind}", COMPRESS[kind](IPERF3.read_bytes()))
    capture = loaders.load(packed)
    assert capture.measurements == loaders.load(IPERF3).measurements
    assert capture.path == packed


@pytest.mark.parametrize("kind", COMPRESS)
def test_several_streams_in_a_file_are_one_content(kind, written):
    half = len(data := IPERF3.read_bytes()) // 2
    pack = COMPRESS[kind]
    packed = written(f"run.{kind}", pack(data[:half]) + pack(data[half:]))
    assert loaders.read(packed).data == data


@pytest.mark.parametrize("kind", COMPRESS)
def test_a_cut_compressed_file_says_so(kind, written):
    data = COMPRESS[kind](os.urandom(5000))
    with pytest.raises(CaptureError, match=r"broken \w+ \(.*\); was it cut short"):
        loaders.read(written(f"run.{kind}", data[: len(data) // 2]))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(zipped([("a/run.json", IPERF3.read_bytes())]), id="zip"),
        pytest.param(tarred([("run.json", IPERF3.read_bytes())]), id="tar"),
        pytest.param(tarred([("r", IPERF3.read_bytes())], "w:gz"), id="tar.gz"),
        pytest.param(tarred([("r", IPERF3.read_bytes())], "w:xz"), id="tar.xz"),
        pytest.param(zstd(tarred([("r", IPERF3.read_bytes())])), id="tar.zst"),
        pytest.param(zipped([("r.gz", gzip.compress(IPERF3.read_bytes()))]), id="gz"),
        pytest.param(
            zipped([("__MACOSX/._r", b"\0"), ("r", IPERF3.read_bytes())]), id="mac"
        ),
    ],
)
def test_an_archive_of_one_file_is_that_file(data, written):
    path = written("run", data)
    capture = loaders.load(path)
    assert capture.measurements == loaders.load(IPERF3).measurements
    assert capture.path == path
    assert [one.path for one in loaders.load_all(path)] == [path]


# ---- several ------------------------------------------------------------------------


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_every_member_of_an_archive_is_a_capture(pack, written):
    members = [("a/one.json", IPERF3.read_bytes()), ("two.txt", UPTIME.read_bytes())]
    path = written("lab", pack(members))
    captures, errors = told(path)
    assert errors == []
    assert {name: one.tool for name, one in captures.items()} == {
        "a/one.json": "iperf3",
        "two.txt": "uptime",
    }
    assert {one.sha256 for one in captures.values()} == {
        sha256(path.read_bytes()).hexdigest()
    }


def test_one_broken_member_is_named_and_the_others_are_read(written):
    members = [("one.json", b'{"start": {"connected": ['), ("two", UPTIME.read_bytes())]
    captures, errors = told(written("lab.zip", zipped(members)))
    assert list(captures) == ["two"]
    assert "lab.zip/one.json:1: not JSON" in errors[0]


def test_load_says_what_to_do_with_an_archive_of_several_files(written):
    members = [("a", UPTIME.read_bytes()), ("b", UPTIME.read_bytes())]
    path = written("lab.zip", zipped(members))
    with pytest.raises(CaptureError, match="an archive of 2 files; unpack it, or read"):
        loaders.load(path)


# ---- what is left out, with a line --------------------------------------------------


@pytest.mark.parametrize(
    ("member", "problem"),
    [
        (special("evil", tarfile.SYMTYPE, "/etc/passwd"), "a link in an archive"),
        (special("evil", tarfile.LNKTYPE, "/etc/passwd"), "a link in an archive"),
        (special("evil", tarfile.CHRTYPE), "a device in an archive"),
        (special("evil", tarfile.FIFOTYPE), "a device in an archive"),
        (("../evil", b"x"), "'../evil' leads out of the archive"),
        (("/evil", b"x"), "'/evil' leads out of the archive"),
        (("a.tar", tarred([("b", b"x")])), "an archive in an archive"),
    ],
)
def test_what_is_no_file_of_a_tar_is_told_and_left_out(member, problem, written):
    path = written("lab.tar", tarred([member, ("ok", UPTIME.read_bytes())]))
    captures, errors = told(path)
    assert list(captures) == ["ok"]
    assert problem in errors[0]
    assert len(errors) == 1


@pytest.mark.parametrize(
    ("member", "problem"),
    [
        (link_in_zip("evil"), "a link in an archive"),
        (("../../evil", b"x"), "leads out of the archive"),
        (("..\\evil", b"x"), "leads out of the archive"),
        (("C:\\evil", b"x"), "leads out of the archive"),
        (("/evil", b"x"), "leads out of the archive"),
        (("a.zip", zipped([("b", b"x")])), "an archive in an archive"),
    ],
)
def test_what_is_no_file_of_a_zip_is_told_and_left_out(member, problem, written):
    path = written("lab.zip", zipped([member, ("ok", UPTIME.read_bytes())]))
    captures, errors = told(path)
    assert list(captures) == ["ok"]
    assert problem in errors[0]


def test_an_encrypted_member_is_told(written):
    data = bytearray(zipped([("a", UPTIME.read_bytes())]))
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + at] |= 1
    with pytest.raises(CaptureError, match="an encrypted file in an archive"):
        loaders.load(written("lab.zip", bytes(data)))


@pytest.mark.parametrize("data", [zipped([]), tarred([(tarfile.TarInfo("a"), b"")])])
def test_an_archive_without_content_is_an_error(data, written):
    with pytest.raises(CaptureError, match="empty"):
        loaders.load(written("lab", data))


@pytest.mark.parametrize("share", [0.3, 0.5, 0.65])
@pytest.mark.parametrize("pack", [zipped, tarred])
def test_a_cut_archive_is_an_error(pack, share, written):
    data = pack([("a", os.urandom(3000)), ("b", os.urandom(3000))])
    captures, errors = told(written("lab", data[: int(len(data) * share)]))
    assert captures == {}
    assert "was it cut short" in errors[-1]


# ---- bombs --------------------------------------------------------------------------


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kind", COMPRESS)
def test_a_bomb_is_refused(kind, written):
    path = written("bomb", COMPRESS[kind](bytes(8 * MIB)))
    with pytest.raises(CaptureError, match="uncompressed content larger than 1 MiB"):
        loaders.read(path)


@pytest.mark.usefixtures("small")
def test_members_together_may_not_be_larger_than_a_file(written):
    path = written("bomb.zip", zipped([(f"{at}", bytes(MIB // 2)) for at in range(9)]))
    found = list(loaders.read_all(path))
    assert sum(isinstance(one, RawFile) for one in found) == 2
    assert "holds more than can be read at once; unpack it" in str(found[-1])


@pytest.mark.usefixtures("small")
def test_a_sparse_file_is_read_no_further_than_the_limit(written):
    info = tarfile.TarInfo("hole")
    info.type, info.size = tarfile.GNUTYPE_SPARSE, 0
    head = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    head[386:398], head[398:410] = b"%011o\0" % 0, b"%011o\0" % 0
    head[483:495] = b"%011o\0" % (7 * 2**30)
    head[148:156] = b"        "
    head[148:156] = b"%06o\0 " % sum(head)
    found = list(loaders.read_all(written("bomb.tar", bytes(head) + bytes(1024))))
    assert "holds more than can be read at once" in str(found[-1])


def test_a_header_that_asks_for_much_memory_is_refused(written):
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 512 * MIB}]
    data = lzma.compress(b"x" * 99, filters=filters)
    with pytest.raises(CaptureError, match=r"broken xz \(Memory usage limit"):
        loaders.read(written("run.xz", data))


def test_a_compression_that_is_not_known_is_no_cut_file(tmp_path):
    path = tmp_path / "new.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "text")
    data = bytearray(path.read_bytes())
    for magic, at in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        where = data.index(magic) + at
        data[where : where + 2] = (93).to_bytes(2, "little")
    path.write_bytes(data)
    with pytest.raises(CaptureError, match=r"cannot be read here .*pack it anew"):
        loaders.load(path)
