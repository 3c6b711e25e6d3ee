"""A chart's description as the JSON that plotly.js draws."""

from __future__ import annotations

import html
from typing import Any

import numpy as np

from saddlesvm.lab.charts import FEW_POINTS, NEGATIVE, OPACITY, PALETTE, POSITIVE, Chart, Grid, Series, Shade
from saddlesvm.runtime.shown import shown

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
        layout["yaxis"] |= {"tickvals": list(chart.y_ticks), "ticktext": list(map(plain, chart.y_ticks.values()))}
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
    return {"text": plain(text), "standoff": STANDOFF}


def plain(text: str) -> str:
    """A name for plotly, with its few tags and their addresses escaped."""
    return html.escape(shown(str(text)), quote=False)


def _line(along: str, across: str, place: float) -> dict[str, Any]:
    """A dotted line over the whole paper along one axis, at a place of the other."""
    ends = {f"{along}ref": "paper", f"{along}0": 0, f"{along}1": 1, f"{across}0": place, f"{across}1": place}
    return {"type": "line", **ends, "line": {"width": 1, "dash": "dot", "color": "#888"}}


def _word(value: float, word: str, logarithmic: bool) -> dict[str, Any]:
    place = float(np.log10(value)) if logarithmic else value
    style = {"xanchor": "right", "yanchor": "bottom", "showarrow": False, "font": {"size": 10, "color": "#888"}}
    return {"xref": "paper", "x": 1, "y": place, "text": plain(word), **style}


def _traces(series: Series) -> list[dict[str, Any]]:
    """The line, with its band before it; a legend entry switches both."""
    if series.steps:
        return [_histogram(series)]
    group = series.follows or series.name
    main: dict[str, Any] = {
        "x": numbers(series.x),
        "y": numbers(series.y),
        "name": plain(series.name),
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
        "name": plain(series.name),
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
        "colorbar": {"title": {"text": plain(shade.name), "side": "right"}, "thickness": 10, "outlinewidth": 0},
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
        "x": list(map(plain, grid.x_labels)),
        "y": list(map(plain, grid.y_labels)),
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
