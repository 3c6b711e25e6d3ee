"""Pictures of fitted models and of paths, made as in scikit-learn: ``from_estimator``, ``plot``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from saddlesvm.lab.charts import Chart, Series
from saddlesvm.lab.curves import AXES, QUANTITIES
from saddlesvm.runtime.allowed import one_of
from saddlesvm.runtime.data_types import LabelsLike, RowsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from saddlesvm.estimators.base import Estimator

FINE = 241  # values of C at which a path is drawn
CHOSEN_AREA = 90.0  # square points of the mark of the chosen C
PATH_KINDS = ("gap", "error")  # charts of a path
SMALLEST_GAP = 1e-16  # relative gap; smaller ones are drawn at this height


class Display:
    """A picture that remembers its axes, as scikit-learn's displays do.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure
        The axes and the figure of the last :meth:`plot`.
    """

    ax_: Axes
    figure_: Figure | SubFigure

    def _draw(self, chart: Chart, ax: Axes | None) -> Self:
        """Draw a chart, and remember its axes and its figure."""
        self.ax_ = chart.draw(ax)
        self.figure_ = self.ax_.figure
        return self


@dataclass
class GapDisplay(Display):
    """The relative gap of a fitted model along the fit, a line for each sub-problem.

    Attributes
    ----------
    trace : Trace
        The trace of the model.
    name : str
        The name of the model, for the title.
    ax_, figure_
        The axes and the figure of the last drawing.

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
        model: Estimator,
        *,
        ax: Axes | None = None,
        name: str = "",
        against: str = "epochs",
    ) -> Self:
        """Draw the trace of a fitted estimator; see :meth:`plot`."""
        display = cls(model.trace_, name or type(model).__name__)
        return display.plot(ax, against=against)

    def chart(self, against: str = "epochs") -> Chart:
        """Return the relative gap along the fit, a line for each sub-problem.

        Parameters
        ----------
        against : {"epochs", "seconds"}, default="epochs"
        """
        column, words = AXES[against]
        # A line for each sub-problem, in the order of the trace.
        names = list(dict.fromkeys(record["problem"] for record in self.trace))
        series = []
        for style, problem in enumerate(names):
            records = [record for record in self.trace if record["problem"] == problem]
            x = np.array([record[column] for record in records])
            gaps = np.maximum([record["relative_gap"] for record in records], SMALLEST_GAP)
            series.append(Series(problem or "relative gap", x, gaps, style=style))
        return Chart(
            self.name,
            words,
            QUANTITIES["gap"][1],
            tuple(series),
            x_log=True,
            y_log=True,
            caption="Every point is a proof: the model was at most this far above the optimum.",
        )

    def plot(self, ax: Axes | None = None, *, against: str = "epochs") -> Self:
        """Draw on `ax`, or on a new figure, and return the display.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
        against : {"epochs", "seconds"}, default="epochs"

        Raises
        ------
        ValueError
            `against` is unknown.
        """
        one_of("against", against, tuple(AXES))
        return self._draw(self.chart(against), ax)


@dataclass
class PathDisplay(Display):
    """Pictures of a certified path.

    Attributes
    ----------
    path : CertifiedPath
    scores : dict of str to (Cs, scores)
        Errors to draw over C: of validation data, or of leave-one-out.
    chosen : float, optional
        The C that was chosen.
    ax_, figure_
        The axes and the figure of the last drawing.

    Examples
    --------
    >>> from saddlesvm import LinearSVC
    >>> from saddlesvm.lab import PathDisplay
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> path = LinearSVC(random_state=0).path(notes.X, notes.y, C=(1e-2, 1.0), gap=0.1)
    >>> PathDisplay.from_path(path, kind="gap").ax_.get_xlabel()
    'C'
    """

    path: Any = field(repr=False)
    scores: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict, repr=False)
    chosen: float | None = None

    @classmethod
    def from_path(
        cls,
        path: Any,
        X: RowsLike | None = None,
        y: LabelsLike | None = None,
        *,
        kind: str = "gap",
        ax: Axes | None = None,
    ) -> Self:
        """Draw a picture of a path; see :meth:`plot`.

        `X` and `y` are validation data, which ``kind="error"`` needs.
        """
        scores = {}
        if X is not None:
            grid = path.grid(FINE)
            scores["validation"] = (grid, 1.0 - path.score(X, y, grid))
        return cls(path, scores).plot(ax, kind=kind)

    @classmethod
    def from_estimator(
        cls, model: Estimator, *, kind: str = "error", ax: Axes | None = None
    ) -> Self:
        """Draw the path of a model that was fitted with ``C="auto"``; see :meth:`plot`."""
        choice: Any = model.choice_
        name = "five folds" if choice.by_folds else "leave-one-out (estimated)"
        display = cls(choice.path, {name: (choice.Cs, choice.errors)}, choice.C)
        return display.plot(ax, kind=kind)

    def plot(self, ax: Axes | None = None, *, kind: str = "gap") -> Self:
        """Draw on `ax`, or on a new figure, and return the display.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
        kind : {"gap", "error"}, default="gap"
            The proven gap, or the error, over C.
        """
        one_of("kind", kind, PATH_KINDS)
        chart = self.gap_chart() if kind == "gap" else self.error_chart()
        return self._draw(chart, ax)

    def gap_chart(self) -> Chart:
        """Return the relative gap that is proven at each C, with the fits as dots."""
        path = self.path
        fits = np.maximum(path.fit_gaps, SMALLEST_GAP)
        # Between the fits, the certificates follow from the neighbours.
        grid = np.union1d(path.grid(FINE), path.Cs)
        gaps = np.array([path.certificate(C).relative_gap for C in grid])
        series = (
            Series("proven for the model of each C", grid, np.maximum(gaps, SMALLEST_GAP)),
            Series(f"the {len(fits)} fits", path.Cs, fits, style=1, dash="none"),
        )
        return Chart(
            "Proven gap",
            "C",
            "relative gap",
            series,
            x_log=True,
            y_log=True,
            levels={path.gap: "requested gap"},
            caption=f"{len(fits)} fits prove a model for every C between the ends.",
        )

    def error_chart(self) -> Chart:
        """Return the errors over C, with the chosen C."""
        if not self.scores:
            raise ValueError(
                "there is no error to draw: give validation data, or a path of C='auto'"
            )
        series = [
            Series(name, np.asarray(Cs), np.asarray(errors), style=style)
            for style, (name, (Cs, errors)) in enumerate(self.scores.items())
        ]
        # A large mark on the first curve, which chose C.
        if self.chosen is not None:
            Cs, errors = next(iter(self.scores.values()))
            error = float(np.interp(np.log(self.chosen), np.log(Cs), errors))
            series.append(
                Series(
                    f"chosen: C = {self.chosen:.3g}",
                    np.array([self.chosen]),
                    np.array([error]),
                    style=len(series),
                    dash="none",
                    size=np.array([CHOSEN_AREA]),
                )
            )
        return Chart("Error along the path", "C", "error", tuple(series), x_log=True)
