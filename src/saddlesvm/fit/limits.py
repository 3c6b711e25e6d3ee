"""When a fit stops."""

from __future__ import annotations

from dataclasses import dataclass

from saddlesvm.fit.outcome import Outcome
from saddlesvm.runtime.allowed import LIMIT, RELATIVE_GAP, check


@dataclass(frozen=True)
class Limits:
    """When to stop.

    Attributes
    ----------
    tol : float, default=1e-4
        Relative duality gap to prove; 0 never stops on the gap.
    max_epochs : float, optional
    max_time : float, optional
        Seconds, certificates included.
    certify_every : float, optional
        Epochs between certificates. Left out, the fit certifies at growing intervals, and when the solver's estimate is
        below `tol`.
    certify_growth : float, default=0.0
        With `certify_every`: the interval is at least this share of the epochs done, so that certificates become rarer.
    certify_start : bool, default=False
        Certify the starting point before any work: it may suffice.
    """

    tol: float = 1e-4
    max_epochs: float | None = None
    max_time: float | None = None
    certify_every: float | None = None
    certify_growth: float = 0.0
    certify_start: bool = False

    def __post_init__(self) -> None:
        for name in ("max_epochs", "max_time", "certify_every"):
            check(name, getattr(self, name), LIMIT)
        check("tol", self.tol, RELATIVE_GAP)

    def reached(
        self, epochs: float, seconds: float, unit: str = "epochs", reserve: float = 0.0
    ) -> tuple[Outcome, str] | None:
        """The outcome and reason where a fit has reached its limit on epochs (or rounds) or on seconds; else None.

        `reserve` are the seconds that its end will still take.
        """
        if self.max_epochs is not None and epochs >= self.max_epochs - 1e-9:
            return Outcome.EPOCH_LIMIT, f"{epochs:.0f} {unit}"
        if self.max_time is not None and seconds + reserve >= self.max_time:
            return Outcome.TIME_LIMIT, f"{seconds:.3g} s"
        return None
