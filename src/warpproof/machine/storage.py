"""Byte storage that is bit-exact, lane-vectorised, and sparse when large; it knows which bytes were ever written."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from warpproof.machine.launch import DENSE_LIMIT, POISON, Buffer, Bytes, Content, raw_bytes

Offsets = npt.NDArray[np.int64]
Word = npt.NDArray[Any]

PAGE_SHIFT: Final = 14
PAGE: Final = 1 << PAGE_SHIFT
_DTYPES: Final = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_ALL_KNOWN: Final = {size: np.array([(1 << 8 * size) // 255], dtype)[0] for size, dtype in _DTYPES.items()}


class Region:
    """`size` bytes of memory. Every offset given must be inside, and aligned to the access size.

    Bytes live in one flat array; a *slot* is a position in it. Dense regions have slot = offset; paged ones create a
    16 KiB page, filled by the content function, on first use.
    """

    __slots__ = ("_capacity", "_content", "_data", "_known", "_pages", "_poison", "_used", "_views", "name", "size",
                 "writable")

    def __init__(self, name: str, size: int, *, writable: bool = True, initial: Bytes | None = None,
                 content: int | Content | None = None, poison: int = POISON) -> None:
        self.name, self.size, self.writable = name, size, writable
        self._content, self._poison = content, np.frombuffer(poison.to_bytes(8, "little"), np.uint8)
        self._pages: dict[int, int] | None = None
        if size > DENSE_LIMIT and (initial is None or len(initial) < size):
            self._pages = {}
            self._capacity = self._used = 0
            self._data = np.zeros(0, np.uint8)
            self._known: Bytes | None = None if content is not None else np.zeros(0, np.uint8)
        else:
            self._capacity = self._used = -(-size // 16) * 16
            self._data = np.resize(self._poison, self._capacity)
            if content is not None:
                self._data[:size] = self._generated(0, size)
            everything = content is not None or (initial is not None and len(initial) == size)
            self._known = None if everything else np.zeros(self._capacity, np.uint8)
        self._views: dict[int, Word] = {}
        if initial is not None and len(initial):
            self._preload(initial)

    @classmethod
    def of(cls, buffer: Buffer, poison: int) -> Region:
        """The memory of a launch buffer before the launch."""
        initial = None if buffer.data is None else raw_bytes(buffer.data)
        return cls(buffer.name, buffer.size, writable=buffer.writable, initial=initial, content=buffer.fill,
                   poison=poison)

    @property
    def capacity(self) -> int:
        """The number of slots in existence; it grows as pages are created."""
        return self._capacity

    @property
    def tracks_writes(self) -> bool:
        """True when some byte may still be uninitialised."""
        return self._known is not None

    def slots(self, offsets: Offsets) -> Offsets:
        """The slot of each byte offset, creating pages as needed."""
        if self._pages is None or not len(offsets):
            return offsets
        pages = offsets >> PAGE_SHIFT
        first = int(pages[0])
        if (pages == first).all():
            return offsets + (self._page(first) - (first << PAGE_SHIFT))
        unique, inverse = np.unique(pages, return_inverse=True)
        bases = np.array([self._page(int(page)) for page in unique], np.int64)
        return bases[inverse] + (offsets & (PAGE - 1))

    def read(self, slots: Offsets, size: int) -> Word:
        """The `size`-byte little-endian word at each slot."""
        view: Word = self._view(size)[slots >> (size.bit_length() - 1)]
        return view

    def write(self, slots: Offsets, size: int, values: Word) -> None:
        """Store a word at each slot; of several lanes at one slot the last one stays."""
        index = slots >> (size.bit_length() - 1)
        self._view(size)[index] = values
        if self._known is not None:
            self._view(-size)[index] = _ALL_KNOWN[size]

    def initialised(self, slots: Offsets, size: int) -> npt.NDArray[np.bool_] | None:
        """For each word whether all its bytes have been written; None when that is true of all."""
        if self._known is None:
            return None
        known = self._view(-size)[slots >> (size.bit_length() - 1)] == _ALL_KNOWN[size]
        return None if known.all() else np.asarray(known, np.bool_)

    def image(self, offsets: Offsets, size: int) -> tuple[Bytes, Bytes | None]:
        """The `size` bytes from each offset on, and which of them are known (None: all)."""
        span = self.slots((offsets[:, None] + np.arange(size)).reshape(-1)).reshape(-1, size)
        return self._data[span], None if self._known is None else self._known[span]

    def put_image(self, offsets: Offsets, image: tuple[Bytes, Bytes | None]) -> None:
        """Put bytes at each offset, known or not as they came."""
        data, known = image
        span = self.slots((offsets[:, None] + np.arange(data.shape[1])).reshape(-1)).reshape(data.shape)
        self._data[span] = data
        if self._known is not None:
            self._known[span] = 1 if known is None else known

    def content(self, start: int = 0, stop: int | None = None) -> Bytes:
        """A copy of bytes [start, stop)."""
        stop = self.size if stop is None else stop
        if not 0 <= start <= stop <= self.size:
            raise IndexError(f"bytes [{start}, {stop}) of the {self.size} bytes of {self.name}")
        if self._pages is None:
            return self._data[start:stop].copy()
        return self._data[self.slots(np.arange(start, stop, dtype=np.int64))]

    def written(self, start: int = 0, stop: int | None = None) -> npt.NDArray[np.bool_]:
        """For bytes [start, stop), whether each was initialised or written."""
        stop = self.size if stop is None else stop
        if self._known is None:
            return np.ones(stop - start, np.bool_)
        return np.asarray(self._known[self.slots(np.arange(start, stop, dtype=np.int64))] != 0, np.bool_)

    def array(self, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """A copy of the whole content as a one-dimensional array of `dtype`."""
        return self.content().view(dtype)

    def touched_pages(self) -> tuple[int, ...] | None:
        """The numbers of the pages in existence, or None for a dense region."""
        return None if self._pages is None else tuple(sorted(self._pages))

    def _preload(self, initial: Bytes) -> None:
        slots = self.slots(np.arange(len(initial), dtype=np.int64))
        self._data[slots] = initial
        if self._known is not None:
            self._known[slots] = 1

    def _generated(self, start: int, stop: int) -> Bytes:
        if callable(self._content):
            made = np.asarray(self._content(start, stop), np.uint8)
            if made.shape != (stop - start,):
                raise ValueError(f"the content function of {self.name} gave {made.shape} for {stop - start} bytes")
            return made
        return np.full(stop - start, 0 if self._content is None else self._content, np.uint8)

    def _page(self, page: int) -> int:
        assert self._pages is not None
        slot = self._pages.get(page)
        if slot is not None:
            return slot
        slot = self._used
        if slot + PAGE > self._capacity:
            self._capacity = max(4 * PAGE, 2 * self._capacity)
            self._data = np.concatenate([self._data, np.resize(self._poison, self._capacity - len(self._data))])
            if self._known is not None:
                self._known = np.concatenate([self._known, np.zeros(self._capacity - len(self._known), np.uint8)])
            self._views.clear()
        if self._content is not None:
            start, stop = page << PAGE_SHIFT, min((page + 1) << PAGE_SHIFT, self.size)
            self._data[slot:slot + stop - start] = self._generated(start, stop)
        self._used += PAGE
        self._pages[page] = slot
        return slot

    def _view(self, size: int) -> Word:
        view = self._views.get(size)
        if view is None:
            base = self._data if size > 0 else self._known
            assert base is not None
            view = self._views[size] = base.view(_DTYPES[abs(size)])
        return view
