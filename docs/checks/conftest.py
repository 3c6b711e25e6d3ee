"""The checks of the manual run in folders of their own; nothing is left behind."""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")
