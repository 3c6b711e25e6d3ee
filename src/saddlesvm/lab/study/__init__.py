"""Tools for readers who write the algorithms themselves: the solvers' random draws, and a check against the solvers.

The pages in ``docs/study`` derive each algorithm and give it in plain NumPy; ``check`` replays such a function, or a
reader's own, against the compiled solver with the same draws.
"""

from saddlesvm.lab.study.check import ALGORITHMS, Agreement, check
from saddlesvm.lab.study.draws import Draws

__all__ = ["ALGORITHMS", "Agreement", "Draws", "check"]
