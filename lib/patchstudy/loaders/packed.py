"""Raw files inside gz, xz, zst, bz2, zip and tar files, read in memory, never unpacked.

A compressed file is its content; an archive is its members, one after the other. No
more than a limit is ever uncompressed, of a file or of all members together, so that a
bomb costs no more than a large raw file. Nothing is written to the disk, no name of a
member is used as a path, and links and devices are not followed but told.
"""

import bz2
import gzip
import io
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from patchstudy.errors import CaptureError

#: What a Mac adds to an archive; never a raw file.
_JUNK: Final = frozenset({"__MACOSX", ".DS_Store"})
_XZ_MEMORY: Final = 128 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A file of an archive; its name is empty where the file is no archive."""

    name: str
    data: bytes


def members(path: Path, data: bytes, limit: int) -> Iterator[Member | CaptureError]:
    """Yield every file that the bytes of a file hold, or why it is left out.

    A file that is neither compressed nor an archive is its own only member. Folders
    of an archive are passed over, as are a Mac's own notes in it.

    Raises
    ------
    CaptureError
        If the file is broken, or larger than ``limit`` bytes when uncompressed.
    """
    if not packs(data):
        yield Member(name="", data=data)
        return
    plain = _plain(path, data, limit)
    for name, begins, entries in _ARCHIVES:
        if begins(plain):
            yield from _of_archive(path, name, entries(plain), limit)
            return
    yield Member(name="", data=plain)


def packs(data: bytes) -> bool:
    """Say whether the bytes may be compressed or an archive."""
    return data[:1] in _FIRST or _is_tar(data)


def too_large(what: str, limit: int) -> str:
    """Say that something is larger than can be read, and what to do."""
    return f"{what} larger than {limit // 2**20} MiB; cut it or split it"


# ---- compressed ---------------------------------------------------------------------


def _plain(path: Path, data: bytes, limit: int) -> bytes:
    """Return the bytes without their compression."""
    for name, magic, unpack in _COMPRESSIONS:
        if not data.startswith(magic):
            continue
        try:
            plain = unpack(data, limit + 1)
        except (EOFError, OSError, zlib.error, lzma.LZMAError, ValueError) as error:
            problem = f"broken {name} ({error}); was it cut short?"
            raise CaptureError(path, problem) from error
        if len(plain) > limit:
            raise CaptureError(path, too_large("uncompressed content", limit))
        return plain
    return data


def _gunzip(data: bytes, size: int) -> bytes:
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        return file.read(size)


def _bunzip2(data: bytes, size: int) -> bytes:
    with bz2.BZ2File(io.BytesIO(data)) as file:
        return file.read(size)


def _unxz(data: bytes, size: int) -> bytes:
    """Uncompress every stream; a header may ask for no more than 128 MiB."""
    plain = b""
    while data and len(plain) < size:
        stream = lzma.LZMADecompressor(memlimit=_XZ_MEMORY)
        plain += stream.decompress(data, size - len(plain))
        if not stream.eof and len(plain) < size:
            raise EOFError("the stream does not end")
        data = stream.unused_data.lstrip(b"\0")
    return plain


def _unzstd(data: bytes, size: int) -> bytes:
    import pyarrow as pa  # noqa: PLC0415 - needed for few files, and slow to import

    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as file:
        return file.read(size)


_COMPRESSIONS: Final[tuple[tuple[str, bytes, Callable[[bytes, int], bytes]], ...]] = (
    ("gzip", b"\x1f\x8b", _gunzip),
    ("xz", b"\xfd7zXZ\0", _unxz),
    ("zstd", b"\x28\xb5\x2f\xfd", _unzstd),
    ("bzip2", b"BZh", _bunzip2),
)

#: First bytes of compressed files and of zip.
_FIRST: Final = frozenset(magic[:1] for _n, magic, _f in _COMPRESSIONS) | {b"P"}

# ---- archives -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """A member as its archive lists it.

    Attributes
    ----------
    kind
        What it is instead of a file, in words; empty for a file.
    read
        Returns its first so many bytes.
    """

    name: str
    kind: str
    read: Callable[[int], bytes]


def _of_archive(
    path: Path, kind: str, entries: Iterator[_Entry], limit: int
) -> Iterator[Member | CaptureError]:
    """Yield the members, together no larger than the limit."""
    left, empty = limit, True
    try:
        for one in entries:
            empty = False
            found = _member(path, one, left)
            if isinstance(found, Member):
                left -= len(found.data)
            yield found
    except NotImplementedError as error:  # zipfile's word for an unknown compression
        problem = f"a {kind} that cannot be read here ({error}); pack it anew"
        raise CaptureError(path, problem) from error
    except _BROKEN as error:
        problem = f"broken {kind} ({error}); was it cut short?"
        raise CaptureError(path, problem) from error
    if empty:
        raise CaptureError(path, f"an empty {kind}; it holds no file")


def _member(path: Path, entry: _Entry, left: int) -> Member | CaptureError:
    """Read one member of an archive.

    Raises
    ------
    CaptureError
        If it holds more bytes than are left.
    """
    inner = path / entry.name.lstrip("/")
    if _leads_out(entry.name):
        return CaptureError(path, f"{entry.name!r} leads out of the archive; left out")
    if entry.kind:
        return CaptureError(inner, f"{entry.kind} in an archive; left out")
    data = entry.read(left + 1)
    if len(data) > left:
        raise CaptureError(path, "holds more than can be read at once; unpack it")
    try:
        data = _plain(inner, data, left)
    except CaptureError as error:
        return error
    if any(begins(data) for _name, begins, _entries in _ARCHIVES):
        return CaptureError(inner, "an archive in an archive; unpack the outer one")
    return Member(name=entry.name, data=data)


def _leads_out(name: str) -> bool:
    """Say whether a name is absolute or climbs, here or on another system."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    return not parts or ".." in parts or parts[0] == "/" or parts[0].endswith(":")


def _is_junk(name: str) -> bool:
    return not _JUNK.isdisjoint(PurePosixPath(name).parts)


def _is_zip(data: bytes) -> bool:
    return data.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def _of_zip(data: bytes) -> Iterator[_Entry]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            if info.is_dir() or _is_junk(info.filename):
                continue

            def read(size: int, info: zipfile.ZipInfo = info) -> bytes:
                with archive.open(info) as file:
                    return file.read(size)

            yield _Entry(name=info.filename, kind=_kind_in_zip(info), read=read)


def _kind_in_zip(info: zipfile.ZipInfo) -> str:
    if info.flag_bits & 1:
        return "an encrypted file"
    mode = info.external_attr >> 16  # 0 where another system wrote it
    if stat.S_ISLNK(mode):
        return "a link"
    return "a device" if stat.S_IFMT(mode) and not stat.S_ISREG(mode) else ""


def _is_tar(data: bytes) -> bool:
    return data[257:262] == b"ustar"


def _of_tar(data: bytes) -> Iterator[_Entry]:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        for info in archive:
            if info.isdir() or _is_junk(info.name):
                continue

            def read(size: int, info: tarfile.TarInfo = info) -> bytes:
                file = archive.extractfile(info)
                return file.read(size) if file else b""

            yield _Entry(name=info.name, kind=_kind_in_tar(info), read=read)
        if data[archive.offset :].strip(b"\0") or not data.endswith(bytes(512)):
            raise EOFError("its end is missing")


def _kind_in_tar(info: tarfile.TarInfo) -> str:
    if info.issym() or info.islnk():
        return "a link"
    return "" if info.isreg() else "a device"


#: What a broken archive or a broken member of one raises; ``RuntimeError`` is that of
#: zipfile for a password or a compression that it does not know.
_BROKEN: Final = (
    EOFError,
    OSError,
    RuntimeError,
    ValueError,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)
_ARCHIVES: Final[
    tuple[tuple[str, Callable[[bytes], bool], Callable[[bytes], Iterator[_Entry]]], ...]
] = (("zip", _is_zip, _of_zip), ("tar", _is_tar, _of_tar))
