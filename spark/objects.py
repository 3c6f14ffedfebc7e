"""A lake in an object store: as much of ``pathlib`` as a lake needs, over a filesystem of pyarrow.

An object is there as a whole or not at all, and durable once it is there: no temporary file, no rename, no
sync. Nothing can be locked: two collectors at once write the same entries twice, under names of which readers
take those that cover the others. So it costs time, and no report differs by it.

Who may read and write, the environment says (``AWS_ACCESS_KEY_ID``, ``AWS_PROFILE`` …), never the address.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from operator import attrgetter
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from spark.errors import InvalidLake, LakeUnreachable, SparkMissing

if TYPE_CHECKING:
    from pyarrow import Buffer, NativeFile
    from pyarrow.fs import FileSystem

SCHEME = "s3"
_OF_SPARK = "s3a"
"""What Spark calls the same."""


class ObjectPath:
    """An object, or the common beginning of the names of some."""

    __slots__ = ("_files", "_key", "_size")

    def __init__(self, files: "FileSystem", key: PurePosixPath, size: int | None = None) -> None:
        """``key`` begins with the bucket; ``size`` in bytes, if a listing told it."""
        self._files, self._key, self._size = files, key, size

    def __truediv__(self, name: str | PurePath) -> "ObjectPath":
        return ObjectPath(self._files, self._key / name)

    def __str__(self) -> str:
        return f"{SCHEME}://{self._key}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectPath) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def name(self) -> str:
        """The last part."""
        return self._key.name

    @property
    def parts(self) -> tuple[str, ...]:
        """The bucket first."""
        return self._key.parts

    @property
    def parent(self) -> "ObjectPath":
        """All but the last part."""
        return ObjectPath(self._files, self._key.parent)

    @property
    def size(self) -> int:
        """In bytes. Raises LakeUnreachable."""
        if self._size is None:
            with self._reached():
                self._size = int(self._files.get_file_info(str(self._key)).size or 0)
        return self._size

    @property
    def spark_name(self) -> str:
        """As Spark calls it."""
        return f"{_OF_SPARK}://{self._key}"

    def glob(self, pattern: str) -> Iterator["ObjectPath"]:
        """As ``Path.glob``, without ``**``. Raises LakeUnreachable."""
        first, _, rest = pattern.partition("/")
        for found in self._below():
            if fnmatchcase(found.name, first):
                yield from found.glob(rest) if rest else (found,)

    def _below(self) -> list["ObjectPath"]:
        from pyarrow.fs import FileSelector

        with self._reached():
            listed = self._files.get_file_info(FileSelector(str(self._key), allow_not_found=True))
        return [ObjectPath(self._files, PurePosixPath(info.path), info.size) for info in listed]

    def read_bytes(self) -> bytes:
        """All of it. Raises OSError."""
        with self.open() as file:
            return bytes(file.read())

    def open(self) -> "NativeFile":
        """To be read in parts. Raises OSError."""
        return self._files.open_input_file(str(self._key))

    def put(self, content: "bytes | Buffer") -> None:
        """Put the object in place, all at once. Raises LakeUnreachable."""
        with self._reached(), self._files.open_output_stream(str(self._key)) as file:
            file.write(content)

    def unlink(self) -> None:
        """Remove the object. Raises LakeUnreachable."""
        with self._reached():
            self._files.delete_file(str(self._key))

    @contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise LakeUnreachable(f"{self}: {str(error).partition(chr(10))[0]}") from error


LakePath = Path | ObjectPath
"""Where a lake is."""


def lake_path(address: str) -> LakePath:
    """A directory, or ``s3://bucket/prefix`` with pyarrow's options (``?endpoint_override=…``).

    Raises InvalidLake, LakeUnreachable, SparkMissing.
    """
    if "://" not in address:
        return Path(address)
    given = urlsplit(address)
    shown = f"{given.scheme}://{given.hostname or ''}{given.path}"
    if given.scheme != SCHEME or not given.hostname:
        raise InvalidLake(f"{shown[:80]!r} is no lake", hint="write a directory, or s3://bucket/prefix")
    if given.username or given.password or "key=" in given.query:
        raise InvalidLake(
            f"the address of {shown} has a secret in it",
            hint="keys belong in the environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        )
    try:
        from pyarrow.fs import FileSystem
    except ImportError as error:
        raise SparkMissing(f"pyarrow is not installed: {error}") from None
    try:
        files, key = FileSystem.from_uri(address)
    except ValueError as error:
        raise InvalidLake(f"{shown[:80]}: {error}", hint="see FileSystem.from_uri of pyarrow") from None
    except OSError as error:
        raise LakeUnreachable(f"{shown}: {str(error).partition(chr(10))[0]}") from error
    return ObjectPath(files, PurePosixPath(key))


def matching(directory: LakePath, pattern: str) -> list[LakePath]:
    """What is there of a pattern, in order. Raises LakeUnreachable."""
    found: list[LakePath] = [*directory.glob(pattern)]
    return sorted(found, key=attrgetter("parts"))


def parquet_of(path: LakePath) -> "Path | NativeFile":
    """What pyarrow's readers take. Raises OSError."""
    return path.open() if isinstance(path, ObjectPath) else path


def size_of(path: LakePath) -> int:
    """Bytes of a file. Raises OSError, LakeUnreachable."""
    return path.size if isinstance(path, ObjectPath) else path.stat().st_size


def spark_name(path: LakePath) -> str:
    """As Spark calls it."""
    return path.spark_name if isinstance(path, ObjectPath) else str(path.absolute())
