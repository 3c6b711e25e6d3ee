"""Passes: apply a function to each part of the rows, wherever they are, and combine the results.

:class:`InMemory` divides the rows among threads, :class:`FromFiles` reads a block after the
other, and a cluster holds its rows in partitions
(:class:`saddlesvm.cluster.partition.Partition`). Code over passes, such as margins or the sums of a
certificate, works in all these places.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np

from saddlesvm.rows.class_rows import add_combinations
from saddlesvm.rows.files import BlockReader
from saddlesvm.rows.layouts import Rows, add_rows, dot_rows, is_summed_in_arrays, norms_of
from saddlesvm.runtime.threads import count_pieces, run_pieces, worthwhile

Answer = TypeVar("Answer")

# Stored values of a part for each feature, at least: adding up the parts' vectors then takes little
# time. A guess.
ADDING = 16.0
SAMPLED = 256  # rows in a sample that represents all rows; a guess


class Part(NamedTuple):
    """Some rows of a pass, in memory.

    Attributes
    ----------
    X : Dense or CSR
    rows : ndarray of shape (m,)
        The numbers of the part's rows within `X`.
    place : slice
        The positions of these rows among all rows of the pass.
    first, last : int
        `X` holds the rows from `first` to `last` of the whole matrix; `last` is -1 if it is the
        whole matrix.
    """

    X: Rows
    rows: np.ndarray
    place: slice
    first: int = 0
    last: int = -1

    def pick(self, values: np.ndarray) -> np.ndarray:
        """Return the entries of an array over the whole matrix that belong to `X`, as a view."""
        return values if self.last < 0 else values[self.first : self.last]

    def move_to(self, members: np.ndarray) -> Part:
        """Return this part of a pass over other rows; `X` holds some rows of the matrix, not all.

        `members`, of shape (n,), are the numbers of the other rows, ascending.
        """
        # Edges of another type would have all members converted.
        edges = np.array([self.first, self.last], dtype=members.dtype)
        place = slice(*np.searchsorted(members, edges).tolist())
        return self._replace(rows=members[place] - self.first, place=place)


class Passes(ABC):
    """Passes over some rows of a matrix.

    Each place for rows (memory, files, a device) is a subclass that defines :meth:`each`.

    Attributes
    ----------
    X : Dense or CSR
        The whole matrix: in memory, or mapped.
    members : ndarray of shape (n,)
        The rows of the pass, ascending.
    holds_rows : bool
        True if `X` holds the values of the rows; else only its shape, precision and virtual feature
        count, and solvers that visit single rows of `X` refuse.
    in_arrays : bool
        True if margins and pulls are all that there is, because no part of the rows can be read.
    reads_files : bool
        True if each pass reads all rows from files, block by block; the squared norms of a block
        are known as soon as it has been read.
    """

    holds_rows: ClassVar[bool] = False
    reads_files: ClassVar[bool] = False
    in_arrays: ClassVar[bool] = False
    X: Rows
    members: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the whole matrix, without the virtual feature."""
        return self.X.n_rows, self.X.n_features

    def with_feature(self, value: float) -> Self:
        """Return passes over rows whose virtual feature has this value.

        A subclass that is not a dataclass overrides it.
        """
        changed: Any = replace(self, X=self.X._replace(bias=value))  # type: ignore[type-var]
        return changed

    def norms(self) -> np.ndarray:
        """Return ``||x_i||^2`` of the rows, shape (n,).

        It is not finite if a row holds NaN, infinity, or a value whose square overflows.
        """
        norms = np.empty(self.members.size)
        for _ in self.each(lambda part: norms_of(part.X, part.rows, norms[part.place])):
            pass
        return norms

    def close(self) -> None:  # noqa: B027 (most keep nothing)
        """Release what is kept from one pass to the next."""

    @abstractmethod
    def select(self, members: np.ndarray) -> Passes:
        """Return passes over other rows of the same matrix."""

    @abstractmethod
    def each(self, work: Callable[[Part], Answer]) -> Iterable[Answer]:
        """Return the results of `work` for each part, in order; several parts may run at a time."""

    def total(
        self, work: Callable[[Part, np.ndarray], None], shape: int | tuple[int, ...]
    ) -> np.ndarray:
        """Return the sum of what `work` adds to zeros of a shape for each part, in float64."""

        def sum_part(part: Part) -> np.ndarray:
            out = np.zeros(shape)
            work(part, out)
            return out

        # In the order of the parts, so that the sum has the same bits whichever thread is first.
        whole, *others = self.each(sum_part)
        for other in others:
            whole += other
        return whole

    def margins(self, w: np.ndarray) -> np.ndarray:
        """Return ``x_i . w`` of the rows, shape (n,), in float64, with the virtual feature."""
        z = np.empty(self.members.size)
        w = np.ascontiguousarray(w, dtype=np.float64)
        for _ in self.each(lambda part: dot_rows(part.X, part.rows, w, z[part.place])):
            pass
        return z

    def pull(self, alpha: np.ndarray) -> np.ndarray:
        """Return ``sum_i alpha_i x_i`` over the rows, shape (d + 1,), in float64.

        `alpha` has an entry for each row of X. If it has shape (n_all, K), the result has shape
        (K, d + 1).
        """
        if alpha.ndim == 1:
            return self.total(
                lambda part, w: add_rows(part.X, part.rows, part.pick(alpha), w),
                self.X.n_features + 1,
            )
        shape = self.X.weights_shape(alpha.shape[1])
        found = self.total(
            lambda part, W: add_combinations(part.X, part.rows, part.pick(alpha), W), shape
        )
        return np.ascontiguousarray(self.X.by_class(found))


@dataclass(frozen=True, eq=False)
class InMemory(Passes):
    """Passes over rows in memory, divided among threads if that saves time.

    With a single thread there is a single part. With several, the size of the rows alone says how
    many parts there are, so that sums are the same for two threads and for twenty.

    Attributes
    ----------
    threads : int
        At most this many work on the parts.
    """

    holds_rows: ClassVar[bool] = True
    X: Rows
    members: np.ndarray
    threads: int = 1

    def each(self, work: Callable[[Part], Answer]) -> list[Answer]:
        """Return the results of `work` for each part; a single thread has a single part."""
        size = self.members.size
        if self.threads == 1:
            return [work(Part(self.X, self.members, slice(0, size)))]
        n_values = self.X.n_values * size / self.X.n_rows
        seconds = self.X.reading_time(n_values)
        # Few parts if there are many features: their vectors are added up by one thread.
        most = max(2, int(n_values / (ADDING * (self.X.n_features + 1))))
        count = min(count_pieces(seconds), size, most)

        def work_on_part(k: int) -> Answer:
            place = slice(size * k // count, size * (k + 1) // count)
            return work(Part(self.X, self.members[place], place))

        return run_pieces(work_on_part, count, worthwhile(seconds, self.threads))

    def pull(self, alpha: np.ndarray) -> np.ndarray:
        """Return ``sum_i alpha_i x_i`` over the rows, in one part if there are several classes."""
        # The sums of several classes are large: adding them up takes longer than threads save.
        if self.threads > 1 and alpha.ndim > 1:
            return replace(self, threads=1).pull(alpha)
        return super().pull(alpha)

    def select(self, members: np.ndarray) -> InMemory:
        """Return passes over other rows of the same matrix."""
        return InMemory(self.X, members, self.threads)


@dataclass(frozen=True, eq=False)
class FromFiles(Passes):
    """Passes over rows in files, block by block; the next block is read during the work on a block.

    Attributes
    ----------
    reader : BlockReader
    members : ndarray of shape (n,)
        The rows of the pass, ascending.
    """

    holds_rows: ClassVar[bool] = True
    reads_files: ClassVar[bool] = True
    reader: BlockReader
    members: np.ndarray

    @property
    def X(self) -> Rows:  # type: ignore[override]
        """The mapped rows."""
        return self.reader.X

    def with_feature(self, value: float) -> FromFiles:
        """Return passes over the same files, by another reader, with this virtual feature."""
        old = self.reader
        norms = np.empty_like(old.norms)
        X = old.X._replace(bias=value)
        return FromFiles(BlockReader(X, old.edges, old.per_block, norms), self.members)

    def norms(self) -> np.ndarray:
        """Return ``||x_i||^2`` of all rows of the files, which the first pass computes."""
        return self.reader.norms

    def close(self) -> None:
        """Close the files; another pass opens them again."""
        self.reader.close()

    def select(self, members: np.ndarray) -> FromFiles:
        """Return passes over other rows of the same files."""
        return FromFiles(self.reader, members)

    def each(self, work: Callable[[Part], Answer]) -> Iterator[Answer]:
        """Yield the results of `work` for each block, in the order of the files.

        Raises
        ------
        ValueError
            A value is NaN or infinite.
        OSError
            A file cannot be read.
        """
        for number in range(self.reader.n_blocks):
            yield work(self.part(number))

    def part(self, number: int, *, again: bool = False) -> Part:
        """Return the rows of the block with this number, and read the next block ahead.

        Parameters
        ----------
        number : int
        again : bool, default=False
            True if another pass will follow: the first block is read after the last.
        """
        reader = self.reader
        now = self._chunks(number)
        then = self._chunks(number + 1)
        # The next pass begins with the first block.
        if again and not len(then):
            then = self._chunks(0)
        first = int(reader.edges[now.start])
        last = int(reader.edges[now.stop])
        block = reader.fetch(now, then)
        return Part(block.X, np.empty(0, dtype=np.int32), slice(0, 0), first, last).move_to(
            self.members
        )

    def _chunks(self, number: int) -> range:
        """Return the chunks of a block; none after the last."""
        count = self.reader.n_chunks
        size = self.reader.per_block
        return range(min(number * size, count), min((number + 1) * size, count))

    def total(
        self, work: Callable[[Part, np.ndarray], None], shape: int | tuple[int, ...]
    ) -> np.ndarray:
        """Return the sum, in a single array, because the blocks come in turn."""
        out = np.zeros(shape)
        for _ in self.each(lambda part: work(part, out)):
            pass
        return out


def squared_norms(X: Rows, threads: int = 1) -> np.ndarray:
    """Return ``||x_i||^2`` of all rows, shape (n,); see :meth:`Passes.norms`."""
    if is_summed_in_arrays(X):
        return X.squared_norms()
    return InMemory(X, np.arange(X.n_rows), threads).norms()


def sample_rows(X: Rows) -> np.ndarray:
    """Return the numbers of some rows, evenly spread."""
    return np.unique(np.linspace(0, X.n_rows - 1, SAMPLED).astype(np.int64))


def sampled_norms(X: Rows) -> np.ndarray:
    """Return the squared norms of some rows, evenly spread."""
    return np.array([squared_norms(X.between(i, i + 1))[0] for i in sample_rows(X)])
