"""Charts: plain data that matplotlib draws, for files, notebooks and reports.

Colours are Okabe and Ito's, which colour-blind people can distinguish; dashes and markers repeat
what the colour says, so that a chart also works in grey.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from saddlesvm.runtime.extras import import_extra
from saddlesvm.runtime.safe_text import escape_hidden

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6BB1", "#7F7F7F")
DASHES = ("solid", "dash", "dot", "dashdot")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
MATPLOTLIB_DASHES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}
# Captions of exported pictures.
CAPTION_SIZE = 6.5  # points
CAPTION_LETTERS = 19  # letters per inch
FEW_POINTS = 24  # lines of at most so many points get markers
MANY_POINTS = 1_000  # clouds of more points are pixels in an SVG, so that it stays small
DOTS_PER_INCH = 110  # of pictures in files
# The two ends of a heat map, which are the colours of the classes; its middle is clear.
NEGATIVE = "#0072B2"
POSITIVE = "#D55E00"
OPACITY = 0.55  # of a heat map's ends
LINE_WIDTH = 1.4  # points
# Values of a decision function whose lines are drawn: their names and dashes.
LEVELS = {0.0: ("decision 0", "-"), -1.0: ("margin -1", ":"), 1.0: ("margin +1", "--")}
LEVEL_STYLE = 2  # the number of their colour
POINT_AREA = 12.0  # square points of a point without a size of its own
# A logarithmic axis whose ends differ by less than this factor has labels between powers of ten.
FEW_DECADES = 50.0
# A logarithmic axis between these numbers has plain numbers as labels, else powers of ten.
LEAST_PLAIN = 1e-3
MOST_PLAIN = 1e5
# Margins of charts with short labels at their ticks, as shares of the figure.
MARGINS = {"left": 0.13, "right": 0.97, "bottom": 0.13, "top": 0.92}
# A colour that nothing else has: in a page the ink of the page, light or dark, takes its place.
INK = "#010203"
ON_PAGES: dict[Any, Any] = {
    "svg.fonttype": "none",
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.facecolor": "none",
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": INK,
}


@dataclass(frozen=True)
class Series:
    """A line or a cloud of points.

    Attributes
    ----------
    name : str
        The name in the legend.
    x, y : ndarray of shape (m,)
    low, high : ndarray of shape (m,), optional
        A band around the line.
    style : int
        The number of the colour.
    dash : str
        One of :data:`DASHES`; "none" draws points only.
    size : ndarray of shape (m,), optional
        Areas of the points, in square points.
    follows : str
        Name of a series whose entry in the legend stands for this series, too.
    steps : bool
        Whether it is a histogram: y is the height from each x to the next, and the area below is
        coloured.
    """

    name: str
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    style: int = 0
    dash: str = "solid"
    size: np.ndarray | None = None
    follows: str = ""
    steps: bool = False

    @property
    def colour(self) -> str:
        """The colour in hexadecimal."""
        return PALETTE[self.style % len(PALETTE)]


@dataclass(frozen=True)
class Shade:
    """A decision function over a chart: its level lines, and a heat map that is clear at zero.

    Attributes
    ----------
    x : ndarray of shape (columns,)
    y : ndarray of shape (rows,)
    values : ndarray of shape (rows, columns)
    is_filled : bool
        Draw the heat map and the ends of the margin, too, not the border alone.
    """

    x: np.ndarray
    y: np.ndarray
    values: np.ndarray
    is_filled: bool = True

    @property
    def bound(self) -> float:
        """The largest absolute value, at which the colour is full."""
        return float(np.abs(self.values).max()) or 1.0


@dataclass(frozen=True)
class Chart:
    """Lines and points on a pair of axes.

    Attributes
    ----------
    title, x_title, y_title : str
    series : tuple of Series
    x_log, y_log : bool
        Whether an axis is logarithmic; it omits values that are not positive.
    levels : dict of float to str
        Horizontal lines, and the words beside them.
    caption : str
        What a reader should see, in a sentence.
    equal : bool
        True if a unit is as long on both axes.
    shade : Shade, optional
        A decision function, drawn behind and over the series.
    uprights : tuple of float
        Places of vertical lines.
    """

    title: str
    x_title: str
    y_title: str
    series: tuple[Series, ...]
    x_log: bool = False
    y_log: bool = False
    levels: dict[float, str] = field(default_factory=dict)
    caption: str = ""
    equal: bool = False
    shade: Shade | None = None
    uprights: tuple[float, ...] = ()

    def draw(self, ax: Axes | None = None) -> Axes:
        """Draw with matplotlib, on a new figure unless axes are given.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional

        Returns
        -------
        matplotlib.axes.Axes
        """
        ax = new_axes() if ax is None else ax
        if self.shade is not None and self.shade.is_filled:
            _draw_shade(ax, self.shade)
        for series in self.series:
            _draw_series(ax, series)
        if self.shade is not None:
            _draw_levels(ax, self.shade)
        # Lines across the whole chart, with a word beside a level.
        for place in self.uprights:
            ax.axvline(place, color="0.5", linewidth=0.8, linestyle=":")
        for level, word in self.levels.items():
            ax.axhline(level, color="0.5", linewidth=0.8, linestyle=":")
            ax.annotate(
                plain(word),
                (1.0, level),
                xycoords=("axes fraction", "data"),
                fontsize=7,
                ha="right",
                va="bottom",
            )
        ax.set(title=plain(self.title), xlabel=plain(self.x_title), ylabel=plain(self.y_title))
        # Logarithmic axes, after the limits are known.
        if self.x_log and has_positive(self.series, "x"):
            ax.set_xscale("log")
            _label_log_axis(ax.xaxis)
        if self.y_log and has_positive(self.series, "y"):
            ax.set_yscale("log")
            _label_log_axis(ax.yaxis)
        if self.equal:
            ax.set_aspect("equal")
        ax.grid(True, linewidth=0.4, alpha=0.4)
        if any(not series.follows for series in self.series):
            ax.legend(loc="best", fontsize=7, framealpha=0.75, edgecolor="none")
        return ax


@dataclass(frozen=True)
class Picture:
    """A figure that a function draws, such as images or a confusion matrix.

    Attributes
    ----------
    title, caption : str
    draw : callable
        Draws on axes of its own and returns them.
    """

    title: str
    caption: str
    draw: Callable[[], Axes]


def plain(text: str) -> str:
    """Return text for matplotlib: dollars make no formula, invisible characters are spelled out."""
    return escape_hidden(text).replace("$", r"\$")


def new_axes(width: float = 6.0, height: float = 4.0) -> Axes:
    """Return axes on a new figure, outside pyplot's global state; sizes in inches."""
    figure = import_extra("matplotlib.figure", "lab", "a chart")
    return figure.Figure(figsize=(width, height), layout="constrained").subplots()


def has_positive(series: tuple[Series, ...], axis: str) -> bool:
    """Return True if a logarithmic axis would have anything to show."""
    return any(bool((getattr(line, axis) > 0.0).any()) for line in series)


def _label_log_axis(axis: Axis) -> None:
    """Label a logarithmic axis: plain numbers if they are short, else powers of ten."""
    from matplotlib.ticker import (
        FuncFormatter,
        LogFormatterSciNotation,
        LogLocator,
        NullFormatter,
    )

    low, high = sorted(axis.get_view_interval())
    if low >= LEAST_PLAIN and high <= MOST_PLAIN:
        formatter: Any = FuncFormatter(lambda value, _: f"{value:,.10g}")
    else:
        # The thresholds let it label every tick that it is asked for.
        formatter = LogFormatterSciNotation(minor_thresholds=(np.inf, np.inf))
    axis.set_major_formatter(formatter)
    # An axis of few powers of ten needs labels between them.
    if high < FEW_DECADES * low:
        axis.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
        axis.set_minor_formatter(formatter)
    else:
        axis.set_minor_locator(LogLocator(subs="auto"))
        axis.set_minor_formatter(NullFormatter())


def _draw_levels(ax: Axes, shade: Shade) -> None:
    """Draw the border, and both ends of the margin, as far as they cross the chart."""
    for level, (name, dash) in LEVELS.items():
        is_crossed = shade.values.min() < level < shade.values.max()
        if is_crossed and (shade.is_filled or level == 0.0):
            colour = PALETTE[LEVEL_STYLE]
            line = ax.contour(shade.x, shade.y, shade.values, levels=[level], colors=colour)
            line.set(linestyle=dash, linewidth=LINE_WIDTH)
            # Lines of a contour have no entry in the legend; an empty line has.
            ax.plot([], [], dash, color=colour, label=name)


def _draw_shade(ax: Axes, shade: Shade) -> None:
    """Draw a heat map with its colour bar."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgba

    # Clear in the middle, so that the decision line stays white.
    ends = [to_rgba(NEGATIVE, OPACITY), to_rgba("white", 0.0), to_rgba(POSITIVE, OPACITY)]
    colours = LinearSegmentedColormap.from_list("shade", ends)
    bound = shade.bound
    drawn = ax.pcolormesh(
        shade.x,
        shade.y,
        shade.values,
        cmap=colours,
        vmin=-bound,
        vmax=bound,
        shading="nearest",
        rasterized=True,
    )
    ax.figure.colorbar(drawn, ax=ax, label="decision")


def _draw_series(ax: Axes, series: Series) -> None:
    """Draw a histogram, a cloud of points, or a line with its band."""
    marker = MARKERS[series.style % len(MARKERS)]
    label = "_nolegend_" if series.follows else plain(series.name)
    # A histogram: the area under the steps.
    if series.steps:
        ax.fill_between(
            series.x,
            series.y,
            step="post",
            color=series.colour,
            alpha=0.5,
            linewidth=0,
            label=label,
        )
        return
    # A cloud of points.
    if series.dash == "none":
        area = POINT_AREA if series.size is None else series.size
        ax.scatter(
            series.x,
            series.y,
            s=area,
            marker=marker,
            color=series.colour,
            linewidths=0,
            alpha=0.8,
            label=label,
            rasterized=series.x.size > MANY_POINTS,
        )
        return
    # A line; few points are marked, too.
    marks = marker if 2 < series.x.size <= FEW_POINTS else ""
    line = MATPLOTLIB_DASHES[series.dash]
    ax.plot(
        series.x,
        series.y,
        line,
        marker=marks,
        markersize=3.5,
        color=series.colour,
        linewidth=LINE_WIDTH,
        label=label,
    )
    if series.low is not None and series.high is not None:
        ax.fill_between(
            series.x, series.low, series.high, color=series.colour, alpha=0.18, linewidth=0
        )


def save(ax: Any, path: str, *, caption: str = "") -> None:
    """Write the figure of `ax` as PNG, SVG or PDF, by the ending of `path`, with its caption."""
    if caption:
        width = int(CAPTION_LETTERS * ax.figure.get_size_inches()[0])
        ax.figure.supxlabel(
            "\n".join(textwrap.wrap(caption, width)), fontsize=CAPTION_SIZE, color="0.35"
        )
    ax.figure.savefig(path, dpi=DOTS_PER_INCH)


def draw_svg(draw: Callable[[], Any], name: str, margins: Mapping[str, float] | None = None) -> str:
    """Return a figure as an SVG element for a page.

    Parameters
    ----------
    draw : callable
        Draws on axes of its own, and returns them.
    name : str
        Makes the identifiers of this figure unique on the page.
    margins : mapping of str to float, optional
        The ends of the axes, as shares of the figure. Without them, matplotlib searches room for
        all words, which takes half of the time.
    """
    mpl = import_extra("matplotlib", "lab", "a chart")
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    buffer = io.StringIO()
    with mpl.rc_context({**ON_PAGES, "svg.hashsalt": name}):
        figure = draw().figure
        if margins is not None:
            figure.set_layout_engine(None)
            figure.subplots_adjust(**margins)
        FigureCanvasSVG(figure).print_svg(buffer)
    text = buffer.getvalue()
    # Only the element itself: no document head, no comments, no metadata, no styles that would
    # reach the whole page.
    text = text[text.index("<svg") :].rstrip()
    for part in (r"<!--.*?-->", r"<metadata>.*?</metadata>", r"<style.*?</style>"):
        text = re.sub(part, "", text, flags=re.DOTALL)
    text = re.sub(r'<g id="[^"]*"', "<g", text)
    return text.replace(INK, "currentColor")
