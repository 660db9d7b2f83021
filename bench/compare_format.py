# SPDX-License-Identifier: GPL-2.0-only
"""A comparison as text, Markdown, CSV, JSON, and in the two forms of LKP."""
from __future__ import annotations

import csv
import io
import json
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from bench import stats
from bench.compare_rows import Comparison, Measured, Report, cell_name, hold_of
from bench.host import Difference, caution

WIDTH = 80


def _wrap(text: str, indent: int = 0) -> list[str]:
    """Lines of at most WIDTH columns; the later ones stand two columns in."""
    first = " " * indent
    if text.strip() and text.isprintable() and indent + len(text) <= WIDTH:
        return [first + text.rstrip()]  # most are: textwrap takes its time
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=first + "  ",
        break_on_hyphens=False,
    )


def rate_text(rate: float) -> str:
    """Operations a second to three digits, as in "8.33 M/s"."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        # 999.5 of a unit would show as four digits.
        if rate >= size * 0.9995:
            return f"{_three(rate / size)} {unit}/s"
    return f"{_three(rate)} /s"


def _three(value: float) -> str:
    if value <= 0:
        return "0"
    return f"{value:.{max(0, 2 - math.floor(math.log10(value * 1.0005)))}f}"


def _rate_line(side: Measured) -> str:
    text = rate_text(side.interval.estimate)
    if side.interval.known:
        percent = side.interval.half_width_percent
        text += f" ±{percent:.1f}%" if percent <= stats.WILD else f" ±>{stats.WILD}%"
    return text


def _labels(item: Comparison) -> tuple[str, str]:
    """What tells the two sides apart."""
    if item.base.side == item.other.side:
        return item.base.variant, item.other.variant
    base, other = (f"{m.variant} ({m.side})" for m in (item.base, item.other))
    return base, other


def _difference(item: Difference) -> str:
    text = f"{item.key}: {item.a} against {item.b}"
    return f"{text} ({item.why})" if item.why else text


def _host_lines(report: Report) -> tuple[list[str], list[str]]:
    """Doubtful differences, and the others: what is the same for several folders
    is said once."""
    doubtful: dict[str, list[str]] = {}
    others: dict[str, list[str]] = {}
    for first, second, item in report.differences:
        into = doubtful if item.doubtful else others
        into.setdefault(_difference(item), []).append(f"{first}, {second}")
    many = len(report.folders) > 2

    def lines(found: Mapping[str, list[str]]) -> list[str]:
        return [f"{k} [{'; '.join(v)}]" if many else k for k, v in found.items()]

    return lines(doubtful), lines(others)


def _cautions(report: Report) -> list[str]:
    """What times of guests are worth, once each."""
    said = (caution(folder.host) for folder in report.folders)
    return [text for text in dict.fromkeys(said) if text]


LOUD = "WARNING: the hosts differ in what may explain a difference by itself:"
QUIET = "The hosts differ, without a known effect on the results, in:"


def _first_of(heading: str, found: Sequence[str], most: int = 4) -> list[str]:
    lines = [f"{heading}: {text}." for text in found[:most]]
    if len(found) > most:
        lines.append(f"{heading}: {len(found) - most} more, all of them in json.")
    return lines


def _closing(report: Report) -> list[str]:
    """What stands below every table that people read."""
    n = len(report.comparisons)
    what = "comparison" if n == 1 else "comparisons"
    lines = [
        f"{n} {what} at 95%: {report.expected_false:.2g} would differ by chance alone."
    ]
    words = [item.verdict.word for item in report.comparisons]
    if report.opposite:
        up, down = words.count("faster"), words.count("slower")
        lines.append(
            f"Both signs: {up} faster, {down} slower. No mean is taken of them."
        )
    if report.failed_runs:
        lines.append(f"Failed runs, left out: {report.failed_runs}.")
    lines += _cautions(report)
    lines += _first_of("Not compared", report.missing)
    lines += _first_of("Nothing beside it", report.alone)
    if report.not_counted:
        lines.append(f"Not counted: {report.not_counted}")
    return lines


def _counted(side: Measured) -> str:
    """What an operation took of each perf event: "instructions 12+606.3"; or ""."""
    found = [f"{event} {each}" for event, each in side.events.items()]
    return f"an operation (user+kernel): {', '.join(found)}" if found else ""


def _title(report: Report) -> str:
    if len(report.folders) == 1:
        return f"{report.folders[0].name}: variants against {report.sides[0]}"
    return f"{', '.join(report.sides[1:])} against {report.sides[0]}"


def _by_cell(report: Report) -> list[tuple[str, list[Comparison]]]:
    cells: dict[str, list[Comparison]] = {}
    for item in report.comparisons:
        cells.setdefault(cell_name(item.cell), []).append(item)
    return list(cells.items())


def text(report: Report) -> str:
    """For a terminal of 80 columns."""
    lines = _wrap(_title(report))
    doubtful, others = _host_lines(report)
    for heading, found in ((LOUD, doubtful), (QUIET, others)):
        if found:
            lines += ["", *_wrap(heading)]
            lines += [line for item in found for line in _wrap(item, 2)]
    for name, items in _by_cell(report):
        lines += ["", *_wrap(name)]
        shown: set[str] = set()
        for item in items:
            base, other = _labels(item)
            if base not in shown:
                lines += _wrap(f"{base}: {_rate_line(item.base)}, the baseline", 2)
                lines += _wrap(_counted(item.base), 4)
                shown.add(base)
            lines += _wrap(f"{other}: {_rate_line(item.other)}", 2)
            lines += _wrap(_counted(item.other), 4)
            lines += _wrap(item.verdict.text, 4)
            lines += [line for note in item.notes for line in _wrap(f"! {note}", 4)]
    lines += ["", *(line for item in _closing(report) for line in _wrap(item))]
    return "\n".join(lines) + "\n"


def _md(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def markdown(report: Report) -> str:
    """A table for a page or a mail."""
    lines = [f"### {_title(report)}", ""]
    doubtful, others = _host_lines(report)
    for heading, found in ((f"**{LOUD}**", doubtful), (QUIET, others)):
        if found:
            lines += [heading, "", *(f"- {item}" for item in found), ""]
    header = ["cell", "baseline", "its rate", "variant", "rate", "verdict"]
    lines += [_md(header), _md(["---"] * len(header))]
    for item in report.comparisons:
        base, other = _labels(item)
        said = "; ".join([item.verdict.text, *item.notes])
        rates = [
            "; ".join(filter(None, (_rate_line(side), _counted(side))))
            for side in (item.base, item.other)
        ]
        lines.append(_md([cell_name(item.cell), base, rates[0], other, rates[1], said]))
    lines += ["", *(f"{item}  " for item in _closing(report))]
    return "\n".join(lines) + "\n"


def _number(value: float) -> float | None:
    """JSON has no nan."""
    return None if math.isnan(value) else value


def _row(item: Comparison) -> dict[str, Any]:
    ratio = item.verdict.ratio
    row: dict[str, Any] = {"cell": dict(item.cell), "unit": item.unit, "n": ratio.n}
    for name, side in (("baseline", item.base), ("other", item.other)):
        row[name] = {
            "side": side.side,
            "variant": side.variant,
            "runs": len(side.rates),
            "rate": side.interval.estimate,
            "rate_low": _number(side.interval.low),
            "rate_high": _number(side.interval.high),
            "least": side.fairness.least,
            "most": side.fairness.most,
            "cv": side.fairness.cv,
            "jain": side.fairness.jain,
            "starved": side.fairness.starved,
            "bimodal": side.bimodal,
            "outliers": side.outliers,
            "per_op": {event: asdict(each) for event, each in side.events.items()},
        }
    row["ratio"] = ratio.estimate
    row["ratio_low"], row["ratio_high"] = _number(ratio.low), _number(ratio.high)
    row["verdict"], row["text"] = item.verdict.word, item.verdict.text
    row["notes"] = list(item.notes)
    return row


def as_json(report: Report) -> str:
    """All of it, for programs: one object."""
    found = {
        "schema": 1,
        "folders": [folder.name for folder in report.folders],
        "sides": list(report.sides),
        "differences": [
            {
                "folders": [first, second],
                "key": item.key,
                "values": [item.a, item.b],
                "doubtful": item.doubtful,
                "why": item.why,
            }
            for first, second, item in report.differences
        ],
        "cautions": _cautions(report),
        "comparisons": [_row(item) for item in report.comparisons],
        "expected_false": report.expected_false,
        "opposite_signs": report.opposite,
        "failed_runs": report.failed_runs,
        "not_counted": report.not_counted or None,
        "missing": list(report.missing),
        "alone": list(report.alone),
    }
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def _flat(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, Mapping) and key != "options":
            inner = "" if key == "cell" else f"{key}_"
            flat.update(_flat(value, prefix + inner))
        elif isinstance(value, Mapping):
            flat[prefix + key] = " ".join(f"{k}={v}" for k, v in sorted(value.items()))
        elif isinstance(value, list):
            flat[prefix + key] = "; ".join(map(str, value))
        else:
            flat[prefix + key] = value
    return flat


def as_csv(report: Report) -> str:
    """One line a comparison; doubtful differences of the hosts are a column, and
    what a guest's times are worth."""
    doubts = "; ".join([*_cautions(report), *_host_lines(report)[0]])
    rows = [_flat(_row(item)) | {"doubts": doubts} for item in report.comparisons]
    out = io.StringIO()
    columns = list(dict.fromkeys(key for row in rows for key in row))
    writer = csv.DictWriter(out, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _same_variant(item: Comparison) -> str | None:
    """The variant that two folders have in common; it is a parameter there."""
    if item.base.side == item.other.side or item.base.variant != item.other.variant:
        return None
    return item.base.variant


def _columns(item: Comparison) -> tuple[str, str]:
    """What heads the two columns of LKP's table."""
    if _same_variant(item):
        return item.base.side, item.other.side
    return _labels(item)


def _testcase(report: Report, item: Comparison) -> list[tuple[str, str]]:
    """Testcase parameters by the names that LKP's readers know."""
    cell, host = item.cell, report.folders[0].host
    known = {
        "backend": cell["backend"],
        "compiler": f"gcc-{(host.get('versions') or {}).get('gcc') or 'unknown'}",
        "cpufreq_governor": (host.get("frequency") or {}).get("governor") or "unknown",
        "hold": hold_of(cell),
        "mode": {"threads": "thread", "processes": "process"}.get(
            cell["mode"], cell["mode"]
        ),
        "nr_task": cell["tasks"],
        "place": cell["place"],
        "table_size": cell.get("table_size"),
        "tbox_group": host.get("hostname") or "unknown",
        "test": cell["workload"],
        "variant": _same_variant(item),
        **cell.get("options", {}),
    }
    found = [(key, str(value)) for key, value in sorted(known.items()) if value]
    return [*found, ("testcase", "fdscale")]


def _metrics(item: Comparison) -> list[tuple[str, list[float], list[float]]]:
    """LKP's metrics of a workload: the total under two names, and a task's part."""
    a, b = list(item.base.rates), list(item.other.rates)
    tasks = int(item.cell["tasks"])
    found = [
        (f"fdscale.{tasks}.{item.cell['mode']}", a, b),
        ("fdscale.per_task_ops", [x / tasks for x in a], [x / tasks for x in b]),
        ("fdscale.workload", a, b),
    ]
    for event, metric in COUNTED.items():
        counts = [_totals(side, event) for side in (item.base, item.other)]
        if all(counts):
            found.append((metric, counts[0], counts[1]))
    return found


# LKP's name of it, though here it is what it says: instructions of an operation.
COUNTED = {
    "instructions": "perf-stat.overall.path-length",
    "cycles": "fdscale.cycles_per_op",
    "cache-misses": "fdscale.cache_misses_per_op",
}


def _totals(side: Measured, event: str) -> list[float]:
    """Of each run that counted the event on both sides of the kernel's door."""
    runs = [run[event].total for run in side.per_op if event in run]
    return [total for total in runs if total is not None]


def _deviation(values: list[float]) -> float:
    """The relative standard deviation in percent; what stands after LKP's ±."""
    if len(values) < 2:
        return 0.0
    return 100 * float(np.std(values, ddof=1)) / float(np.mean(values))


def _with_deviation(value: float, percent: float, width: int) -> str:
    """As LKP does, a deviation that rounds to 0 or 1 is left out."""
    shown = f"{value:{width}.0f}" if value >= 100 else f"{value:{width}.2f}"
    return shown + (f" ±{percent:3.0f}%" if percent >= 1.5 else " " * 6)


def _lkp_lines(items: list[Comparison]) -> list[str]:
    lines = []
    for item in items:
        base, other = _columns(item)
        lines += [
            f"{base[:16]:16s} {other[:27]:27s} ".rstrip(),
            f"{'-' * 16} {'-' * 27} ",
            "         %stddev     %change         %stddev",
            "             \\          |                \\  ",
        ]
        for metric, a, b in _metrics(item):
            old, new = float(np.mean(a)), float(np.mean(b))
            lines.append(
                _with_deviation(old, _deviation(a), 10)
                + f"{100 * (new / old - 1):+10.1f}%"
                + _with_deviation(new, _deviation(b), 11)
                + f"  {metric}"
            )
        lines.append(f"  {other} against {base}: {item.verdict.text}")
        lines += [f"  ! {note}" for note in item.notes]
        lines.append("")
    return lines


def lkp(report: Report) -> str:
    """The table of the kernel test robot's mails; means, as there. The verdict below
    each is ours: from ratios within blocks, so it may differ from %change."""
    lines = []
    doubtful, others = _host_lines(report)
    for heading, found in ((LOUD, doubtful), (QUIET, others)):
        if found:
            lines += [heading, *(f"  {item}" for item in found), ""]
    what = "variant" if len(report.folders) == 1 else "commit"
    tables: dict[tuple[tuple[str, str], ...], list[Comparison]] = {}
    for item in report.comparisons:
        tables.setdefault(tuple(_testcase(report, item)), []).append(item)
    for case, items in tables.items():
        names = dict.fromkeys(name for item in items for name in _columns(item))
        lines += [
            "=" * 89,
            "/".join(key for key, _ in case) + ":",
            "  " + "/".join(value for _, value in case),
            "",
            f"{what}: ",
            *(f"  {name}" for name in names),
            "",
            *_lkp_lines(items),
        ]
    return "\n".join([*lines, *_closing(report)]) + "\n"


def lkp_stats(report: Report) -> str:
    """ "key: value" lines, no key twice; a colon within a key becomes a minus."""
    found: dict[str, Any] = {}
    for item in report.comparisons:
        cell = item.cell
        words = [cell["workload"]]
        words += [f"{k}={v}" for k, v in sorted(cell.get("options", {}).items())]
        words += [cell["backend"], cell["hold"], cell["place"], cell["mode"]]
        words += [str(cell["tasks"])]
        if cell.get("hold_top"):
            words.append(f"below={cell['hold_top']}")
        if cell.get("table_size"):
            words.append(f"table={cell['table_size']}")
        base, other = _labels(item)
        for name, side in ((base, item.base), (other, item.other)):
            found[_stat(*words, name, "ops_per_s")] = f"{side.interval.estimate:.6g}"
            for event, each in side.events.items():
                key = event.replace("-", "_") + "_per_op"
                for half, count in asdict(each).items():
                    if count is not None:
                        found[_stat(*words, name, f"{key}_{half}")] = f"{count:.6g}"
        ratio = item.verdict.ratio
        against = (*words, other, "against", base)
        found[_stat(*against, "ratio")] = f"{ratio.estimate:.6g}"
        if ratio.known:
            found[_stat(*against, "ratio_low")] = f"{ratio.low:.6g}"
            found[_stat(*against, "ratio_high")] = f"{ratio.high:.6g}"
        found[_stat(*against, "n")] = ratio.n
        found[_stat(*against, "verdict")] = item.verdict.word
    found["fdscale.comparisons"] = len(report.comparisons)
    found["fdscale.expected_false"] = f"{report.expected_false:.3g}"
    doubtful = {item.key for _, _, item in report.differences if item.doubtful}
    found["fdscale.doubtful_differences"] = ",".join(sorted(doubtful)) or "none"
    return "".join(f"{key}: {value}\n" for key, value in found.items())


def _stat(*words: str) -> str:
    return ".".join(["fdscale", *words]).replace(":", "-").replace(" ", "_")


FORMATS: dict[str, Callable[[Report], str]] = {
    "text": text,
    "markdown": markdown,
    "csv": as_csv,
    "json": as_json,
    "lkp": lkp,
    "lkp-stats": lkp_stats,
}
