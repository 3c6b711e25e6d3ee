"""The attack on this package that stays in the project: ``python -m tests.attack --hours 1`` from its root.

A campaign (:data:`tests.attack.campaigns.CAMPAIGNS`) is a name and a function of a number and a seed: each number is
one hostile case, made again whenever the number is given again. The tests beside this file are a short run of each.
"""

import sys
from pathlib import Path

if (
    tests := str(Path(__file__).parents[1])
) not in sys.path:  # where `support` is; pytest knows it, `python -m` does not
    sys.path.append(tests)
