"""Kernels that a wheel brings along, compiled for a portable processor: they serve until this one has its own.

They lie in ``_kernels`` beside the rooms, a folder a module, in the files of :class:`~saddlesvm.runtime.kernel_cache.
CheckedCacheFile`. A process takes one where it has no kernel of its own in Numba's cache and its processor has the
instructions. The files are of one version of Python and of Numba, and of the very text of the module: with another one
they count as missing, and the kernel is compiled as without them. ``python -m saddlesvm.ship_kernels`` makes them.
"""

from __future__ import annotations

import functools
import hashlib
import platform
from pathlib import Path

from llvmlite import binding

__all__ = ["FOLDER", "PROCESSOR", "fits_this_processor", "stamp_of"]

FOLDER = Path(__file__).parents[1] / "_kernels"
PROCESSOR = "x86-64-v3"  # LLVM's name of what nearly all processors since 2015 (AMD) or 2013 (Intel) have
NEEDED = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")  # beyond x86-64-v2


@functools.cache
def fits_this_processor() -> bool:
    """Whether there are such kernels, and this processor has their instructions."""
    if not FOLDER.is_dir() or platform.system() != "Linux" or platform.machine() != "x86_64":
        return False
    features = binding.get_host_cpu_features()
    return all(features.get(name) for name in NEEDED)


@functools.cache
def stamp_of(file: str) -> str:
    """A hash of the text that a kernel was compiled of."""
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()
