"""When a fit stops, which of its points it returns, and when it no longer makes progress."""

from __future__ import annotations

from dataclasses import dataclass

from saddlesvm.fit.outcome import Outcome
from saddlesvm.problem.certificate import Certificate
from saddlesvm.runtime.allowed import KEEP, LIMIT, NOT_NEGATIVE, RELATIVE_GAP, check
from saddlesvm.runtime.option_names import Keep


@dataclass(frozen=True)
class Limits:
    """When to stop, and which point to return.

    Attributes
    ----------
    tol : float, default=1e-4
        Relative duality gap to prove; 0 never stops on it.
    gap : float, default=0.0
        Duality gap to prove in the units of the objective, which ends the fit, too; 0 never does.
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
    keep : {"best", "last"}, default="best"
        The best model and the best dual point that the run had at a certificate, which a multiple of the weights may
        still improve; or the solver's own last point, as it is, with the gap between its own two objectives. The gap of
        the same point is the one to prove.
    """

    tol: float = 1e-4
    max_epochs: float | None = None
    max_time: float | None = None
    certify_every: float | None = None
    certify_growth: float = 0.0
    certify_start: bool = False
    keep: Keep = "best"
    gap: float = 0.0

    def __post_init__(self) -> None:
        for name in ("max_epochs", "max_time", "certify_every"):
            check(name, getattr(self, name), LIMIT)
        check("tol", self.tol, RELATIVE_GAP)
        check("gap", self.gap, NOT_NEGATIVE)
        check("keep", self.keep, KEEP)

    def prove(self, certificate: Certificate) -> bool:
        """Whether a certificate proves a gap asked for; False where none is."""
        relative = self.tol > 0.0 and certificate.relative_gap <= self.tol
        return relative or (self.gap > 0.0 and certificate.gap <= self.gap)

    def proven(self, certificate: Certificate) -> str:
        """The gap that such a certificate proves, in words: the relative one where that was asked for and is."""
        if certificate.relative_gap <= self.tol:
            return f"relative gap {certificate.relative_gap:.2g}"
        return f"gap {certificate.gap:.2g}"

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


STALL_EPOCHS = 64  # epochs before which no fit counts as stalled
STALL_FACTOR = 0.98  # factor by which the gap or an objective must improve whenever the epochs double
LONG_EPOCHS = 20_000  # epochs beyond which only the gap counts
LONG_FACTOR = 0.7  # factor by which it must then fall whenever the epochs double, as 1 / sqrt(epochs) does
TINY_SHARE = 1e-6  # share of the primal objective that a smaller dual objective counts as


class StallWatch:
    """Remembers the certificates of a fit, to see whether they still improve.

    Parameters
    ----------
    least : float, default=STALL_EPOCHS
        Epochs, or rounds, before which there is no verdict.

    Attributes
    ----------
    history : list of tuple
        Epochs (or what they came to), relative gap, primal and dual of each certificate of the present phase.
    phase : str
    """

    def __init__(self, least: float = STALL_EPOCHS) -> None:
        self.least, self.phase = least, ""
        self.history: list[tuple[float, float, float, float]] = []

    def stalled(self, epochs: float, certificate: Certificate, phase: str = "") -> bool:
        """Whether neither the gap nor either objective has moved since half as many epochs, in the same phase.

        After very many epochs a gap that falls too slowly counts as one that stands: the fit would never end.
        """
        if phase != self.phase:
            self.phase, self.history = phase, []
        now = (float(epochs), certificate.relative_gap, certificate.primal, certificate.dual)
        self.history.append(now)
        earlier = [seen for seen in self.history if seen[0] <= 0.5 * now[0]]
        if now[0] < self.least or not earlier:
            return False
        _, gap, primal, dual = earlier[-1]
        if earlier[-1][0] >= LONG_EPOCHS and now[1] > LONG_FACTOR * gap:
            return True
        least = (1.0 - STALL_FACTOR) * max(abs(dual), TINY_SHARE * abs(primal))
        fallen = primal - (1.0 - STALL_FACTOR) * abs(primal)
        return now[1] > STALL_FACTOR * gap and now[2] > fallen and now[3] < dual + least
