"""Pictures of fitted models and of paths, named as in scikit-learn: ``from_estimator``,
``from_path``, ``plot``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from saddlesvm.lab.charts import Chart, Series
from saddlesvm.runtime.allowed import one_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

FINE = 241  # number of values of C at which a path is drawn
MOST_WEIGHTS = 12  # number of features whose weights are drawn, the largest first
AGAINST = {
    "epochs": ("epoch", "epochs"),
    "seconds": ("seconds_solving", "seconds of solving"),
}  # columns of a trace
GAP_KINDS = ("gap", "closing")  # charts of a fit
PATH_KINDS = ("gap", "error", "weights", "features")  # charts of a path
SMALLEST_GAP = 1e-16  # relative gap; smaller ones are drawn at this height


class Display:
    """A picture that remembers where it was drawn, as scikit-learn's displays do.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure
        Of the last :meth:`plot`.
    """

    ax_: Axes
    figure_: Figure | SubFigure

    def _drawn(self, chart: Chart, ax: Axes | None) -> Self:
        self.ax_ = chart.draw(ax)
        self.figure_ = self.ax_.figure
        return self


@dataclass
class GapDisplay(Display):
    """The primal and the dual objective of a fitted model along the fit.

    Attributes
    ----------
    trace : Trace
        Of the model.
    name : str
        Of the model, for the title.
    ax_, figure_
        Where it was drawn last.

    Examples
    --------
    >>> from saddlesvm import LinearSVC
    >>> from saddlesvm.lab import GapDisplay
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> model = LinearSVC(C=0.01, random_state=0).fit(notes.X, notes.y)
    >>> GapDisplay.from_estimator(model).ax_.get_xlabel()
    'epochs'
    """

    trace: Any = field(repr=False)
    name: str = ""

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        ax: Axes | None = None,
        name: str = "",
        against: str = "epochs",
        kind: str = "gap",
    ) -> Self:
        """Draw the trace of a fitted estimator; see :meth:`plot`."""
        return cls(model.trace_, name or type(model).__name__).plot(ax, against=against, kind=kind)

    def chart(self, against: str = "epochs") -> Chart:
        """The relative gap of each certificate, against epochs or seconds of solving, a line a
        sub-problem.
        """
        column, words = AGAINST[against]
        names = list(dict.fromkeys(record["problem"] for record in self.trace))
        series = []
        for style, problem in enumerate(names):
            mine = [record for record in self.trace if record["problem"] == problem]
            gaps = np.maximum([record["relative_gap"] for record in mine], SMALLEST_GAP)
            series.append(
                Series(
                    problem or "relative gap",
                    np.array([one[column] for one in mine]),
                    gaps,
                    style=style,
                )
            )
        return Chart(
            self.name,
            words,
            "relative gap, (P - D) / max(|P|, |D|)",
            tuple(series),
            x_log=True,
            y_log=True,
            caption="Every point is a proof: the model was at most this far above the optimum.",
        )

    def closing_chart(self, against: str = "epochs") -> Chart:
        """The primal objective from above and the dual one from below, by their distance from the
        optimum.

        The optimum lies between the lowest primal and the highest dual objective. The distances are
        measured from the far end of this interval, relative to the objective, so the optimum is no
        farther away. The scale is logarithmic on both sides, and each point is a proof.

        Parameters
        ----------
        against : {"epochs", "seconds"}, default="epochs"

        Raises
        ------
        ValueError
            The model has several sub-problems.
        """
        if len({record["problem"] for record in self.trace}) > 1:
            raise ValueError(
                "kind='closing' draws one sub-problem, and the model has several: select the "
                "records of one, and give "
                "them to GapDisplay(trace=...)"
            )
        column, words = AGAINST[against]
        x, primal, dual = (
            np.array([one[name] for one in self.trace]) for name in (column, "primal", "dual")
        )
        size = max(abs(primal.min()), abs(dual.max())) or 1.0
        above = np.maximum((primal - dual.max()) / size, SMALLEST_GAP)
        below = np.maximum((primal.min() - dual) / size, SMALLEST_GAP)
        floor = float(np.floor(np.log10(min(above.min(), below.min()))))
        top = int(np.ceil(np.log10(max(above.max(), below.max())) - floor))
        step = max(1, top // 6)
        ticks = {0.0: "optimum"}
        for decades in range(step, top + 1, step):
            power = f"1e{floor + decades:.0f}" if floor + decades else "1"
            ticks |= {float(decades): f"+{power}", float(-decades): f"-{power}"}
        series = (
            Series("primal, from above", x, np.log10(above) - floor, style=1),
            Series("dual, from below", x, floor - np.log10(below), style=0),
        )
        return Chart(
            self.name,
            words,
            "relative distance from the optimum, at most",
            series,
            x_log=True,
            y_ticks=ticks,
            levels={0.0: ""},
            caption="Every point is a proof: neither objective is farther than this from the "
            "optimum.",
        )

    def plot(self, ax: Axes | None = None, *, against: str = "epochs", kind: str = "gap") -> Self:
        """Draw on `ax`, or on a figure of its own; returns the display.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
        against : {"epochs", "seconds"}, default="epochs"
        kind : {"gap", "closing"}, default="gap"
            The relative gap, a line a sub-problem; or both objectives, on a logarithmic scale on
            either side of the optimum.

        Raises
        ------
        ValueError
            `against` or `kind` is unknown, or ``kind="closing"`` and the model has several
            sub-problems.
        """
        one_of("against", against, tuple(AGAINST))
        one_of("kind", kind, GAP_KINDS)
        return self._drawn((self.chart if kind == "gap" else self.closing_chart)(against), ax)


@dataclass
class PathDisplay(Display):
    """Pictures of a certified path, or of a grid of C.

    Attributes
    ----------
    path : CertifiedPath or RegularizationPath
    scores : dict of str to (Cs, scores)
        Curves to draw over C: of validation data, or of leave-one-out.
    chosen : float, optional
        The C that was chosen.
    names : sequence of str, optional
        Of the features.
    ax_, figure_
        Where it was drawn last.

    Examples
    --------
    >>> from saddlesvm import LinearSVC
    >>> from saddlesvm.lab import PathDisplay
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> path = LinearSVC.path(notes.X, notes.y, C=(1e-2, 1.0), gap=0.1, random_state=0)
    >>> PathDisplay.from_path(path, kind="gap").ax_.get_xlabel()
    'C'
    """

    path: Any = field(repr=False)
    scores: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict, repr=False)
    chosen: float | None = None
    names: Sequence[str] | None = field(default=None, repr=False)

    @classmethod
    def from_path(
        cls,
        path: Any,
        X: Any = None,
        y: Any = None,
        *,
        kind: str = "gap",
        ax: Axes | None = None,
        names: Sequence[str] | None = None,
    ) -> Self:
        """Draw one picture of a path; see :meth:`plot`. `X` and `y` are validation data for
        ``kind="error"``.
        """
        scores = {}
        if X is not None:
            grid = path.grid(FINE)
            scores["validation"] = (grid, 1.0 - path.score(X, y, grid))
        return cls(path, scores, names=names).plot(ax, kind=kind)

    @classmethod
    def from_estimator(cls, model: Any, *, kind: str = "error", ax: Axes | None = None) -> Self:
        """Draw the path behind a model that was fitted with ``C="auto"``, with the leave-one-out
        error on it.
        """
        return cls.of_choice(model.choice_, getattr(model, "feature_names_in_", None)).plot(
            ax, kind=kind
        )

    @classmethod
    def of_choice(cls, choice: Any, names: Sequence[str] | None = None) -> Self:
        """The path and the leave-one-out errors of a choice of C."""
        return cls(
            choice.path, {"leave-one-out (estimated)": (choice.Cs, choice.errors)}, choice.C, names
        )

    def plot(self, ax: Axes | None = None, *, kind: str = "gap") -> Self:
        """Draw on `ax`, or on a figure of its own; returns the display.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
        kind : {"gap", "error", "weights", "features"}, default="gap"
            The proven gap over C; the error over C; the weights over C; how many features have a
            weight.
        """
        one_of("kind", kind, PATH_KINDS)
        return self._drawn(getattr(self, f"{kind}_chart")(), ax)

    def _certificates(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        grid = np.union1d(self.path.grid(FINE), self.path.Cs)
        found = [self.path.certificate(C) for C in grid]
        return grid, np.array([one.primal for one in found]), np.array([one.dual for one in found])

    def gap_chart(self) -> Chart:
        """The relative gap that is proven at each C, the fits as dots."""
        fits = np.maximum(self.path.fit_gaps, SMALLEST_GAP)
        series = [Series(f"the {len(fits)} fits", self.path.Cs, fits, style=1, dash="none")]
        shown = "Each fit proves the model of its own C."
        if self.path.every_C:
            grid, primal, dual = self._certificates()
            gaps = np.maximum(
                (primal - dual) / np.maximum(np.abs(primal), np.abs(dual)), SMALLEST_GAP
            )
            series.insert(0, Series("proven for the model of each C", grid, gaps))
            shown = f"{len(fits)} fits prove a model for every C between the ends."
        return Chart(
            "Proven gap",
            "C",
            "relative gap",
            tuple(series),
            x_log=True,
            y_log=True,
            levels={self.path.gap: "asked for"},
            caption=shown,
        )

    def error_chart(self) -> Chart:
        """The error over C of each of the scores, with the chosen C."""
        if not self.scores:
            raise ValueError(
                "there is no error to draw: give validation data, or a path of C='auto'"
            )
        series = [
            Series(name, np.asarray(Cs), np.asarray(errors), style=style)
            for style, (name, (Cs, errors)) in enumerate(self.scores.items())
        ]
        if self.chosen is not None:
            Cs, errors = next(iter(self.scores.values()))
            at = np.array([self.chosen])
            height = np.array([float(np.interp(np.log(self.chosen), np.log(Cs), errors))])
            series.append(
                Series(
                    f"chosen: C = {self.chosen:.3g}",
                    at,
                    height,
                    style=len(series),
                    dash="none",
                    size=np.array([90.0]),
                )
            )
        return Chart("Error along the path", "C", "error", tuple(series), x_log=True)

    def weights_chart(self) -> Chart:
        """The largest weights over C, of the first sub-problem where there are several."""
        grid = self.path.grid(FINE)
        weights = np.stack([np.atleast_2d(self.path.coef(C))[0] for C in grid])
        largest = np.argsort(-np.abs(weights).max(axis=0))[:MOST_WEIGHTS]
        names = (
            self.names
            if self.names is not None
            else [f"feature {j}" for j in range(weights.shape[1])]
        )
        series = tuple(
            Series(
                str(names[j]),
                grid,
                weights[:, j],
                style=style,
                dash=("solid", "dash")[style // 8 % 2],
            )
            for style, j in enumerate(sorted(largest.tolist()))
        )
        shown = (
            f"The {len(series)} largest of {weights.shape[1]} weights."
            if len(series) < weights.shape[1]
            else ""
        )
        return Chart("Weights along the path", "C", "weight", series, x_log=True, caption=shown)

    def features_chart(self) -> Chart:
        """The number of features with a weight over C, in any of the sub-problems."""
        grid = self.path.grid(FINE)
        weights = [np.atleast_2d(self.path.coef(C)) for C in grid]
        counts = np.array([float(one.any(axis=0).sum()) for one in weights])
        series = (Series("features with a weight", grid, counts),)
        shown = f"Of {weights[0].shape[1]:,} features; all other weights are exactly zero."
        return Chart(
            "Features along the path",
            "C",
            "features with a weight",
            series,
            x_log=True,
            caption=shown,
        )
