"""Descriptions of charts, which matplotlib draws for files and notebooks, and plotly.js in a report.

A description is plain data, and gives the JSON that plotly.js draws. Colours are Okabe and Ito's, which colour-blind
people can distinguish; dashes and markers repeat what the colour says, so that a chart also works in grey.
"""

from __future__ import annotations

import html
import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from saddlesvm.runtime.shown import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6BB1", "#7F7F7F")
DASHES = ("solid", "dash", "dot", "dashdot")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
MATPLOTLIB_DASHES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}
SHADES = ("#eef3f7", "#0b4f8a")  # colours of a grid's squares, for a share of 0 and of 1 of the row
CAPTION_SIZE, CAPTION_LETTERS = 6.5, 19  # captions of exported pictures: size in points, letters per inch
FEW_POINTS = 24  # lines of fewer points get markers
DOTS_PER_INCH = 110  # of pictures in files
NEGATIVE, POSITIVE = "#0072B2", "#D55E00"  # the two ends of a heat map, those of the classes; its middle is clear
OPACITY = 0.55  # of a heat map's ends


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
        Name of a series whose legend entry stands for this one too.
    steps : bool
        A histogram: y is the height from each x to the next, and the area below it is tinted.
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
        """Its colour in hexadecimal."""
        return PALETTE[self.style % len(PALETTE)]


@dataclass(frozen=True)
class Shade:
    """A heat map behind a chart, clear where its value is zero.

    Attributes
    ----------
    x : ndarray of shape (columns,)
    y : ndarray of shape (rows,)
    values : ndarray of shape (rows, columns)
    name : str
        What the values are.
    """

    x: np.ndarray
    y: np.ndarray
    values: np.ndarray
    name: str

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
        Logarithmic axes; values that are not positive are left out on them.
    levels : dict of float to str
        Horizontal lines with a word beside each.
    caption : str
        What a reader should see, in a sentence.
    equal : bool
        One unit is as long on both axes.
    shade : Shade, optional
        A heat map behind it.
    uprights : tuple of float
        Where vertical lines stand.
    y_ticks : dict of float to str
        Places on the vertical axis, and the words there in place of numbers.
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
    y_ticks: dict[float, str] = field(default_factory=dict)

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
        if self.shade is not None:
            _draw_shade(ax, self.shade)
        for series in self.series:
            _draw_series(ax, series)
        for place in self.uprights:
            ax.axvline(place, color="0.5", linewidth=0.8, linestyle=":")
        for level, word in self.levels.items():
            ax.axhline(level, color="0.5", linewidth=0.8, linestyle=":")
            ax.annotate(
                plain(word), (1.0, level), xycoords=("axes fraction", "data"), fontsize=7, ha="right", va="bottom"
            )
        ax.set(title=plain(self.title), xlabel=plain(self.x_title), ylabel=plain(self.y_title))
        if self.x_log and has_positive(self.series, "x"):
            ax.set_xscale("log")
            _label_sparsely(ax.xaxis)
        if self.y_log and has_positive(self.series, "y"):
            ax.set_yscale("log")
            _label_sparsely(ax.yaxis)
        if self.y_ticks:
            ax.set_yticks(list(self.y_ticks), list(map(plain, self.y_ticks.values())))
        if self.equal:
            ax.set_aspect("equal")
        ax.grid(True, linewidth=0.4, alpha=0.4)
        if any(not series.follows for series in self.series):
            ax.legend(loc="best", fontsize=7, framealpha=0.75, edgecolor="none")
        return ax


@dataclass(frozen=True)
class Grid:
    """A table of numbers as coloured squares, such as a confusion matrix.

    Attributes
    ----------
    title, x_title, y_title : str
    values : ndarray of shape (rows, columns)
        Written into the squares.
    x_labels, y_labels : tuple of str
    caption : str
    """

    title: str
    x_title: str
    y_title: str
    values: np.ndarray
    x_labels: tuple[str, ...]
    y_labels: tuple[str, ...]
    caption: str = ""

    @property
    def shades(self) -> np.ndarray:
        """Share of each row's total, which decides the colour."""
        totals = self.values.sum(axis=1, keepdims=True)
        return self.values / np.where(totals > 0, totals, 1)

    def draw(self, ax: Axes | None = None) -> Axes:
        """Draw with matplotlib, on a new figure unless axes are given."""
        from matplotlib.colors import LinearSegmentedColormap

        ax = new_axes() if ax is None else ax
        shades = self.shades
        ax.imshow(shades, cmap=LinearSegmentedColormap.from_list("shades", SHADES), vmin=0.0, vmax=1.0)
        for row, column in np.ndindex(*self.values.shape):
            ink = "white" if shades[row, column] > 0.5 else "black"
            text = f"{self.values[row, column]:,}"
            ax.text(column, row, text, ha="center", va="center", color=ink, fontsize=7)
        ax.set_xticks(range(len(self.x_labels)), list(map(plain, self.x_labels)), rotation=45, ha="right", fontsize=7)
        ax.set_yticks(range(len(self.y_labels)), list(map(plain, self.y_labels)), fontsize=7)
        ax.set(title=plain(self.title), xlabel=plain(self.x_title), ylabel=plain(self.y_title))
        return ax


def plain(text: str) -> str:
    """A name for matplotlib: dollars make no formula, and invisible characters are spelled out."""
    return shown(text).replace("$", r"\$")


def new_axes(width: float = 6.0, height: float = 4.0) -> Axes:
    """Axes on a new figure outside pyplot's global state; sizes in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained").subplots()


def has_positive(series: tuple[Series, ...], axis: str) -> bool:
    """Whether a logarithmic axis would have anything to show."""
    return any(bool((getattr(one, axis) > 0.0).any()) for one in series)


def _label_sparsely(axis: Any) -> None:
    """On a logarithmic axis, labels between the powers of ten only where there are few of these."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = sorted(axis.get_view_interval())
    few = high < 50.0 * low
    axis.set_minor_locator(LogLocator(subs=(2.0, 5.0) if few else "auto"))
    axis.set_minor_formatter(FuncFormatter(lambda value, _: f"{value:g}") if few else NullFormatter())


def _draw_shade(ax: Axes, shade: Shade) -> None:
    from matplotlib.colors import LinearSegmentedColormap, to_rgba

    ends = [to_rgba(NEGATIVE, OPACITY), to_rgba("white", 0.0), to_rgba(POSITIVE, OPACITY)]
    colours = LinearSegmentedColormap.from_list("shade", ends)
    bound = shade.bound
    drawn = ax.pcolormesh(
        shade.x, shade.y, shade.values, cmap=colours, vmin=-bound, vmax=bound, shading="nearest", rasterized=True
    )
    ax.figure.colorbar(drawn, ax=ax, label=plain(shade.name))


def _draw_series(ax: Axes, series: Series) -> None:
    marker = MARKERS[series.style % len(MARKERS)]
    label = "_nolegend_" if series.follows else plain(series.name)
    if series.steps:
        ax.fill_between(series.x, series.y, step="post", color=series.colour, alpha=0.5, linewidth=0, label=label)
        return
    if series.dash == "none":
        area = 12.0 if series.size is None else series.size
        ax.scatter(series.x, series.y, s=area, marker=marker, color=series.colour, linewidths=0, alpha=0.8, label=label)
        return
    marks = marker if 2 < series.x.size <= FEW_POINTS else ""
    line = MATPLOTLIB_DASHES[series.dash]
    ax.plot(series.x, series.y, line, marker=marks, markersize=3.5, color=series.colour, linewidth=1.4, label=label)
    if series.low is not None and series.high is not None:
        ax.fill_between(series.x, series.low, series.high, color=series.colour, alpha=0.18, linewidth=0)


def save(ax: Any, path: str, *, caption: str = "") -> None:
    """Write the figure of `ax` as PNG, SVG or PDF, by the ending of `path`, with a caption below it."""
    if caption:
        width = int(CAPTION_LETTERS * ax.figure.get_size_inches()[0])
        ax.figure.supxlabel("\n".join(textwrap.wrap(caption, width)), fontsize=CAPTION_SIZE, color="0.35")
    ax.figure.savefig(path, dpi=DOTS_PER_INCH)


SYMBOLS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x", "star")
DIGITS = 5
STANDOFF = 10
SHORT, NARROW = 100.0, 12.0  # ratios of largest to smallest up to which a logarithmic axis has ticks of its own
OPACITIES = (0.06, 0.6)  # of a grid's squares, for a share of 0 and of 1 of the row: the page's ink is read on all


def specification(item: Chart | Grid) -> dict[str, Any]:
    """`data` and `layout` for ``Plotly.newPlot``; colours of axes and paper are left to the page's theme."""
    return _of_grid(item) if isinstance(item, Grid) else _of_chart(item)


def _of_chart(chart: Chart) -> dict[str, Any]:
    data = [] if chart.shade is None else [_shade(chart.shade)]
    data += [trace for series in chart.series for trace in _traces(series)]
    layout: dict[str, Any] = {
        "xaxis": _axis(chart.x_title, chart.x_log, [one.x for one in chart.series]),
        "yaxis": _axis(chart.y_title, chart.y_log, [one.y for one in chart.series]),
        "shapes": [*(_line("x", "y", one) for one in chart.levels), *(_line("y", "x", one) for one in chart.uprights)],
        "annotations": [_word(value, word, chart.y_log) for value, word in chart.levels.items()],
    }
    if chart.equal:
        layout["yaxis"]["scaleanchor"] = "x"
    if chart.y_ticks:
        layout["yaxis"] |= {"tickvals": list(chart.y_ticks), "ticktext": list(map(escaped, chart.y_ticks.values()))}
    return {"data": data, "layout": layout}


def _axis(title: str, logarithmic: bool, drawn: list[np.ndarray]) -> dict[str, Any]:
    axis: dict[str, Any] = {"title": _title(title), "automargin": True}
    if logarithmic:
        axis |= {"type": "log", "exponentformat": "power", "dtick": None}
        ticks = short_ticks(np.concatenate([*drawn, np.empty(0)]))
        axis |= {"tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]} if ticks else {}
    return axis


def short_ticks(values: np.ndarray) -> list[float]:
    """Round numbers around positive values that span less than two powers of ten; else none: plotly's are fine then.

    plotly writes the digits between the powers of ten alone, 9 for 0.9, and in another size.
    """
    positive = values[np.isfinite(values) & (values > 0.0)]
    if not positive.size or positive.max() >= SHORT * positive.min():
        return []
    powers = range(int(np.floor(np.log10(positive.min()))) - 1, int(np.ceil(np.log10(positive.max()))) + 2)
    digits = (1, 2, 3, 4, 5, 6, 8) if positive.max() < NARROW * positive.min() else (1, 2, 5)
    return [float(f"{digit}e{power}") for power in powers for digit in digits]


def _title(text: str) -> dict[str, Any]:
    """The title of an axis; a standoff makes room for it beside long labels."""
    return {"text": escaped(text), "standoff": STANDOFF}


def escaped(text: str) -> str:
    """A name for plotly, with its few tags and their addresses escaped."""
    return html.escape(shown(str(text)), quote=False)


def _line(along: str, across: str, place: float) -> dict[str, Any]:
    """A dotted line over the whole paper along one axis, at a place of the other."""
    ends = {f"{along}ref": "paper", f"{along}0": 0, f"{along}1": 1, f"{across}0": place, f"{across}1": place}
    return {"type": "line", **ends, "line": {"width": 1, "dash": "dot", "color": "#888"}}


def _word(value: float, word: str, logarithmic: bool) -> dict[str, Any]:
    place = float(np.log10(value)) if logarithmic else value
    style = {"xanchor": "right", "yanchor": "bottom", "showarrow": False, "font": {"size": 10, "color": "#888"}}
    return {"xref": "paper", "x": 1, "y": place, "text": escaped(word), **style}


def _traces(series: Series) -> list[dict[str, Any]]:
    """The line, with its band before it; a legend entry switches both."""
    if series.steps:
        return [_histogram(series)]
    group = series.follows or series.name
    main: dict[str, Any] = {
        "x": numbers(series.x),
        "y": numbers(series.y),
        "name": escaped(series.name),
        "legendgroup": group,
        "showlegend": not series.follows,
        "marker": {"color": series.colour, "symbol": SYMBOLS[series.style % len(SYMBOLS)], "size": 5},
    }
    if series.dash == "none":
        sizes = 5 if series.size is None else numbers(np.sqrt(series.size) * 1.4)
        main["marker"] |= {"size": sizes, "opacity": 0.8, "line": {"width": 0}}
        return [main | {"type": "scatter", "mode": "markers"}]
    mode = "lines+markers" if 2 < series.x.size <= FEW_POINTS else "lines"
    main |= {"type": "scatter", "mode": mode, "line": {"color": series.colour, "dash": series.dash, "width": 2}}
    if series.low is None or series.high is None:
        return [main]
    return [_band(series, group), main]


def translucent(colour: str, opacity: float) -> str:
    """A hexadecimal colour that lets the paper shine through."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity:g})"


def _histogram(series: Series) -> dict[str, Any]:
    return {
        "x": numbers(series.x),
        "y": numbers(series.y),
        "name": escaped(series.name),
        "type": "scatter",
        "mode": "lines",
        "fill": "tozeroy",
        "fillcolor": translucent(series.colour, 0.5),
        "line": {"color": series.colour, "width": 1, "shape": "hv"},
    }


def _shade(shade: Shade) -> dict[str, Any]:
    ends = ((NEGATIVE, OPACITY), ("#ffffff", 0.0), (POSITIVE, OPACITY))
    return {
        "type": "heatmap",
        "x": numbers(shade.x),
        "y": numbers(shade.y),
        "z": [numbers(row) for row in shade.values],
        "zmin": -shade.bound,
        "zmax": shade.bound,
        "zsmooth": "best",
        "colorscale": [[place / 2, translucent(*end)] for place, end in enumerate(ends)],
        "colorbar": {"title": {"text": escaped(shade.name), "side": "right"}, "thickness": 10, "outlinewidth": 0},
        "hovertemplate": "%{z}<extra></extra>",
    }


def _band(series: Series, group: str) -> dict[str, Any]:
    assert series.low is not None and series.high is not None
    return {
        "x": numbers(np.concatenate([series.x, series.x[::-1]])),
        "y": numbers(np.concatenate([series.high, series.low[::-1]])),
        "type": "scatter",
        "mode": "lines",
        "fill": "toself",
        "fillcolor": translucent(series.colour, 0.18),
        "line": {"width": 0},
        "hoverinfo": "skip",
        "legendgroup": group,
        "showlegend": False,
    }


def _of_grid(grid: Grid) -> dict[str, Any]:
    data = {
        "type": "heatmap",
        "z": np.round(grid.shades, DIGITS).tolist(),
        "x": list(map(escaped, grid.x_labels)),
        "y": list(map(escaped, grid.y_labels)),
        "text": grid.values.tolist(),
        "texttemplate": "%{text}",
        "hovertemplate": "%{y} taken for %{x}: %{text}<extra></extra>",
        "colorscale": [[place, translucent(PALETTE[0], opacity)] for place, opacity in enumerate(OPACITIES)],
        "zmin": 0,
        "zmax": 1,
        "showscale": False,
    }
    layout = {
        "xaxis": {"title": _title(grid.x_title), "automargin": True, "type": "category"},
        "yaxis": {"title": _title(grid.y_title), "automargin": True, "type": "category", "autorange": "reversed"},
    }
    return {"data": [data], "layout": layout}


def numbers(values: np.ndarray) -> list[float | None]:
    """Numbers with few digits; values that are not finite become null, which leaves a hole."""
    flat = np.asarray(values, dtype=np.float64)
    return [float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None for value in flat]
