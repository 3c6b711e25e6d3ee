"""When a fit no longer makes progress."""

from __future__ import annotations

from saddlesvm.problem.certificate import Certificate

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
