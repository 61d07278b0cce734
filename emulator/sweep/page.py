"""The page of a sweep: a heat map of two settings or parallel coordinates of more, and the table.

Plotly stays in this module.
"""

import html
from pathlib import Path

import plotly.graph_objects as go
import polars as pl

from emulator.run_directory import writing
from emulator.sweep.ranking import Ranking

__all__ = ["write_page"]

_TABLE_ROWS = 500


def write_page(ranking: Ranking, path: Path, *, title: str, notes: list[str]) -> None:
    """Write one self-contained HTML file."""
    figure = _figure(ranking)
    plot = figure.to_html(include_plotlyjs=True, full_html=False, config={"displaylogo": False})
    lines = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    text = (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{html.escape(title)}</h1>{lines}{plot}{_table(ranking)}</body></html>"
    )
    with writing(path.parent):
        path.write_text(text, encoding="utf-8")


_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem}"
    ".table{overflow-x:auto}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "td,th{padding:.2rem .7rem;text-align:right;border-bottom:1px solid #ddd}"
)


def _figure(ranking: Ranking) -> go.Figure:
    varied = [path for path in ranking.settings if ranking.table[path].n_unique() > 1]
    if len(varied) == 1:
        return _line(ranking, varied[0])
    if len(varied) == 2:
        return _heat_map(ranking, varied[0], varied[1])
    return _parallel(ranking, varied)


def _line(ranking: Ranking, path: str) -> go.Figure:
    table = ranking.table.drop_nulls("value").sort(path)
    above = (table["highest"] - table["value"]).to_list()
    below = (table["value"] - table["lowest"]).to_list()
    figure = go.Figure(
        go.Scatter(
            x=table[path].cast(pl.String).to_list(),
            y=table["value"].to_list(),
            mode="markers+lines",
            error_y={"type": "data", "array": above, "arrayminus": below},
        )
    )
    figure.update_layout(xaxis_title=path, yaxis_title=ranking.figure, xaxis_type="category")
    return figure


def _heat_map(ranking: Ranking, across: str, down: str) -> go.Figure:
    table = ranking.table
    columns = table[across].unique().sort().to_list()
    rows = table[down].unique().sort().to_list()
    value = {(row[down], row[across]): row["value"] for row in table.iter_rows(named=True)}
    cells = [[value.get((row, column)) for column in columns] for row in rows]
    figure = go.Figure(
        go.Heatmap(
            x=[str(column) for column in columns],
            y=[str(row) for row in rows],
            z=cells,
            texttemplate="%{z:.4s}",
            colorscale="Viridis",
            reversescale=not ranking.higher_is_better,
            colorbar={"title": {"text": ranking.figure}},
        )
    )
    figure.update_layout(
        xaxis={"title": across, "type": "category"}, yaxis={"title": down, "type": "category"}
    )
    return figure


def _parallel(ranking: Ranking, varied: list[str]) -> go.Figure:
    table = ranking.table.drop_nulls("value")
    dimensions = [_dimension(table, path) for path in varied]
    dimensions.append({"label": ranking.figure, "values": table["value"].to_list()})
    return go.Figure(
        go.Parcoords(
            line={
                "color": table["value"].to_list(),
                "colorscale": "Viridis",
                "reversescale": not ranking.higher_is_better,
                "showscale": True,
            },
            dimensions=dimensions,
        )
    )


def _dimension(table: pl.DataFrame, path: str) -> dict[str, object]:
    """One axis: the values at equal distances, labelled."""
    labels = [str(value) for value in table[path].unique().sort().to_list()]
    place = {label: index for index, label in enumerate(labels)}
    return {
        "label": path,
        "values": [place[str(value)] for value in table[path].to_list()],
        "tickvals": list(range(len(labels))),
        "ticktext": labels,
    }


def _table(ranking: Ranking) -> str:
    shown = ["place", *ranking.settings, "value", "lowest", "highest", "worse_than_first"]
    shown += ["compared_with_first", "repetitions", "failed"]
    shown += [name for name in ranking.table.columns if name not in shown and name.count(".") == 0]
    head = "".join(f"<th>{html.escape(name)}</th>" for name in shown)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(_cell(row[name]))}</td>" for name in shown) + "</tr>"
        for row in ranking.table.head(_TABLE_ROWS).iter_rows(named=True)
    )
    heading = html.escape(
        f"value, lowest, highest: {ranking.figure}, mean and range over the seeds; "
        "worse_than_first: on so many of compared_with_first seeds; all others: means over seeds"
    )
    return f"<p>{heading}</p><div class='table'><table><tr>{head}</tr>{body}</table></div>"


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
