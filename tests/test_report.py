# SPDX-License-Identifier: GPL-2.0-only
"""report: what the page holds, what a hostile folder can do to it (nothing)."""
from __future__ import annotations

import base64
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from made_folders import CALM, CELL, folder, kernels, run
from markupsafe import escape

from bench.problem import USAGE, Problem
from bench.report import choices, report, show
from bench.judge import judge

VARIANTS = {"two-level": 1.0, "first-word": 1.1, "two-level#clone": 1.001}
SVG = '<svg xmlns="http://www.w3.org/2000/svg"><title>figure</title></svg>'


def record(cell: dict[str, Any], speed: float, number: int) -> dict[str, Any]:
    """A run as `sweep` records it."""
    row = run({v: speed * by for v, by in VARIANTS.items()}, cell, run=number)
    for window in row["windows"]:
        window.update(redone=0, skewed=False, switches=0)
        window["ops"] = [1000 + i for i in range(cell["tasks"])]
    words = ["run", "dup-close", "--hold", cell["hold"], "--seed", f"{number}"]
    return row | {"variants": list(VARIANTS), "command": words}


def sweep(root: Path, name: str = "a", **host: Any) -> Path:
    """Two holds with one and two tasks, five runs each, and a figure for one."""
    cells: list[dict[str, Any]] = [
        CELL | {"hold": h, "tasks": n} for h in ("none", "low:64") for n in (1, 2)
    ]
    # The hold low:64 is the slower one, two tasks are the faster ones.
    rows = [
        record(c, 1e6 * c["tasks"] * x / (1 + len(c["hold"])), n)
        for c in cells
        for n, x in enumerate(CALM)
    ]
    made = Path(folder(root, name, rows, **host))
    (made / "figures").mkdir()
    (made / "figures/rate-dup-close-model-none-threads-compact.svg").write_text(SVG)
    return made


def page(made: Path) -> str:
    """The report of a folder."""
    assert report([made]) == 0
    return (made / "report.html").read_text()


def test_verdicts_numbers_and_commands(tmp_path: Path) -> None:
    made = sweep(tmp_path)
    text = page(made)
    rows = [json.loads(x) for x in (made / "results.jsonl").read_text().splitlines()]
    for result in judge(rows):
        verdict = result.variants["first-word"].verdict
        assert verdict is not None and verdict.word == "faster"
        assert verdict.text.removeprefix("faster: ") in text
    for row in rows:
        words = re.findall(r"<pre>(.*?) </pre>", text)
        typed = {re.sub("</?b>", "", line).replace("&#39;", "'") for line in words}
        assert shlex.join(["build/fdscale", *row["command"]]) in typed
        assert f"{row['windows'][0]['rate']:.0f}" in text
    assert base64.b64encode(SVG.encode()).decode() in text


def test_figures_that_the_sweep_left_out(tmp_path: Path) -> None:
    made = sweep(tmp_path, cpu__model="A CPU", cpu__pus=2)
    assert report([made], all_figures=True) == 0
    drawn = {p.stem: p for p in (made / "figures").glob("*.svg")}
    assert drawn.pop("rate-dup-close-model-none-threads-compact").read_text() == SVG
    assert {name.partition("-")[0] for name in drawn} == {
        *("map", "rate", "ratio", "windows"),
    }
    text = (made / "report.html").read_text()
    for path in drawn.values():
        assert "A CPU, 2 PUs, kernel" in path.read_text()
        assert base64.b64encode(path.read_bytes()).decode() in text


def test_a_guests_times_are_called_what_they_are(tmp_path: Path) -> None:
    own = sweep(tmp_path, "a")
    host = json.loads((own / "host.json").read_text())
    said = "say nothing about speed"
    assert said not in page(own)
    assert said in page(sweep(tmp_path, "b", guest={"accel": "tcg", "host": host}))


def test_doctors_warnings(tmp_path: Path) -> None:
    check = {"name": "turbo", "state": "warn", "value": "it is on", "remedy": "off"}
    assert "The doctor was not asked" in page(sweep(tmp_path, "a"))
    warned = page(sweep(tmp_path, "b", checks=[check]))
    assert "warn: turbo" in warned and "it is on" in warned
    calm = page(sweep(tmp_path, "c", checks=[check | {"state": "ok"}]))
    assert "The doctor found nothing to warn of" in calm


def test_two_folders_are_compared(tmp_path: Path) -> None:
    out = tmp_path / "both.html"
    old, new = (sweep(tmp_path, n, kernel__boot_id="one") for n in ("old", "new"))
    report([old, new], out)
    text = out.read_text()
    assert "new against old" in text
    # four cells, two variants and no clone, all the same in both
    assert re.search(r"8 comparisons:\s*8 <span class=\"word same\">same", text)
    assert not (old / "report.html").exists()
    ids = re.findall(r'\bid="([^"]*)"', text)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]*)"', text)) <= set(ids)


def test_folders_with_nothing_in_common(tmp_path: Path) -> None:
    other = Path(folder(tmp_path, "b", [record(CELL | {"tasks": 9}, 1e6, 0)]))
    report([sweep(tmp_path), other])
    assert "nothing to compare" in (tmp_path / "a/report.html").read_text()


def hostile(value: Any, bad: str) -> Any:
    """The same with BAD at the end of every string."""
    if isinstance(value, dict):
        return {k: hostile(v, bad) for k, v in value.items()}
    if isinstance(value, list):
        return [hostile(v, bad) for v in value]
    return value + bad if isinstance(value, str) else value


KEPT = ("type", "schema")


@pytest.mark.parametrize(
    "bad",
    [
        "<script>document.title='owned'</script>",
        "\"'><img src=x onerror=\"document.title='owned'\">",
        "</style></script><script>document.title='owned'</script>",
        "{{ 7 * 7 }}{% raw %}",
        "\ud800",
    ],
)
def test_hostile_strings(tmp_path: Path, bad: str) -> None:
    made = sweep(tmp_path)
    lines = []
    for line in (made / "results.jsonl").read_text().splitlines():
        row = json.loads(line)
        row["cell"]["tasks"] = 2
        row["cell"]["options"] = {"key" + bad: "value"}
        for window in row["windows"]:
            window["ops"] = [5, 6]
        kept = {k: row[k] for k in KEPT}
        # These two are words of the schema: another is refused on reading.
        words = {k: row["cell"][k] for k in ("backend", "mode")}
        spoilt = hostile(row, bad) | kept
        spoilt["cell"] |= words
        lines.append(json.dumps(spoilt))
    failed = json.loads(lines[0])
    error = {"syscall": bad, "errno": 1, "remedy": bad, "text": bad}
    lines.append(json.dumps(failed | {"windows": [], "error": error}))
    (made / "results.jsonl").write_text("\n".join(lines) + "\n")
    host = json.loads((made / "host.json").read_text())
    for part in (host, host["cpu"], host["kernel"]):
        for key, value in part.items():
            if value is None and key in ("hostname", "model", "release"):
                part[key] = "x"
    preset = host["kernel"]["preset"]
    host = hostile(host, bad)
    host["kernel"]["preset"] = preset  # the schema has a list of these
    host["checks"] = [{"name": bad, "state": "warn", "value": bad, "remedy": bad}]
    (made / "host.json").write_text(json.dumps(host))
    (
        made
        / "figures"
        / ("x" + bad.replace("/", "") + ".svg").encode("utf-8", "replace").decode()
    ).write_text(SVG)
    text = page(made)
    assert text.count("<script") == 1 and text.count("</script") == 1
    assert text.count("<style") == 1 and text.count("</style") == 1
    assert "<img src=x" not in text
    told = bad.replace("\ud800", "?")
    assert f"first-word{escape(told)}" in text
    assert "script-src &#39;sha256-" in text


def test_no_path_climbs_out(tmp_path: Path) -> None:
    made = sweep(tmp_path)
    secret = tmp_path / "secret.svg"
    secret.write_text("<svg>secret</svg>")
    (made / "figures/out.svg").symlink_to(secret)
    (made / "figures/ratio-dup-close-model-none-threads-compact.svg").symlink_to(
        "../../secret.svg"
    )
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (made / "report.html").symlink_to(victim)
    (made / "report.html.new").symlink_to(victim)
    assert base64.b64encode(secret.read_bytes()).decode() not in page(made)
    assert victim.read_text() == "mine"
    assert not (made / "report.html").is_symlink()


def test_a_figures_folder_elsewhere_is_not_read(tmp_path: Path) -> None:
    other, made = sweep(tmp_path, "other"), sweep(tmp_path)
    for path in (made / "figures").iterdir():
        path.unlink()
    (made / "figures").rmdir()
    (made / "figures").symlink_to(other / "figures")
    assert "data:image" not in page(made).split("</head>")[1]


def test_figures_go_to_their_table(tmp_path: Path) -> None:
    alike = CELL | {"hold": "none", "tasks": 4}
    cells = [alike | {"workload": w} for w in ("close", "dup-close")]
    made = Path(folder(tmp_path, "a", [record(c, 1e6, 0) for c in cells]))
    (made / "figures").mkdir()
    for name in ("ratio-close", "ratio-dup-close"):
        (made / f"figures/{name}-model-none-4-threads-compact.svg").write_text(SVG)
    for name in ("fairness-dup-close", "map-dup-close"):
        (made / f"figures/{name}-model-threads-compact.svg").write_text(SVG)
    (made / "figures/power.svg").write_text(SVG)
    shown = show(made, "f0")
    found = {
        s.group.workload: [figure.caption for figure in s.figures]
        for s in shown.sections
    }
    dots = "hold none: ratio to the baseline of 4 threads"
    tasks = "the rate of each task in the least fair cell, sorted"
    assert found == {"close": [dots], "dup-close": [dots, tasks]}
    # A map needs two holds: these results have none, wherever it came from.
    assert [f.caption for f in shown.figures] == [
        "map-dup-close-model-threads-compact",
        "how often an effect is found, against measuring time",
    ]


@pytest.mark.parametrize("key", ["windows", "cell", "variants", "seconds", "run"])
def test_damaged_rows_are_named(tmp_path: Path, key: str) -> None:
    made = sweep(tmp_path)
    row = json.loads((made / "results.jsonl").read_text().splitlines()[0])
    del row[key]
    (made / "results.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(
        Problem, match=f"results.jsonl: line 1: '{key}' is a required"
    ) as caught:
        report([made])
    assert caught.value.status == USAGE


def test_usage(tmp_path: Path, run_py: Run) -> None:
    missing = run_py("report", str(tmp_path / "no"))
    assert missing.returncode == USAGE and "no/results.jsonl" in missing.stderr
    made = sweep(tmp_path)
    wrong = run_py("report", str(made), "--out", str(tmp_path))
    assert wrong.returncode == USAGE and "a folder; name a file" in wrong.stderr
    done = run_py("report", str(made))
    assert done.returncode == 0 and "report.html" in done.stdout


def test_no_run_at_all(tmp_path: Path) -> None:
    text = page(Path(folder(tmp_path, "empty", [])))
    assert "No comparison" in text


def test_choices(tmp_path: Path) -> None:
    shown = show(sweep(tmp_path), "f0")
    found = choices([shown])
    assert found["hold"] == ["none", "low:64"]
    assert found["tasks"] == [1, 2]


def test_order_of_rows(tmp_path: Path) -> None:
    """By what is held, as a number, then by the table's size."""
    cells = [CELL | {"hold": f"low:{n}", "tasks": 1} for n in (1000, 64, 8)]
    cells.insert(1, cells[2] | {"table_size": 4096})
    rows = [record(cell, 1e6, 0) for cell in cells]
    shown = show(Path(folder(tmp_path, "a", rows)), "f0")
    found = [(r.cell.hold, r.cell.table_size) for r in shown.sections[0].rows[::3]]
    want = [("low:8", 128), ("low:8", 4096), ("low:64", 128), ("low:1000", 128)]
    assert found == want


# In a real browser

CHROMIUM = [
    *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
    *("--disable-background-networking", "--disable-dev-shm-usage"),
]


class Browser:
    """Chromium with a profile of its own; what it asked for and complained of."""

    def __init__(self, profile: Path) -> None:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for flag in (*CHROMIUM[1:], f"--user-data-dir={profile}"):
            options.add_argument(flag)
        logs = {"browser": "ALL", "performance": "ALL"}
        options.set_capability("goog:loggingPrefs", logs)
        service = Service("/usr/bin/chromedriver")
        self.driver = webdriver.Chrome(service=service, options=options)
        self.driver.get("about:blank")  # away from the page for new tabs

    def open(self, path: Path) -> None:
        """A page from disk."""
        self.driver.get(path.as_uri())

    def do(self, script: str) -> Any:
        """What a script returns."""
        return self.driver.execute_script(script)

    def click(self, selector: str) -> None:
        """The first that matches."""
        self.driver.find_element("css selector", selector).click()

    def choose(self, name: str, value: str) -> None:
        """In one of the filters."""
        at = f'select[name="{name}"] option[value="{value}"]'
        self.click(at)

    def column(self, number: int) -> list[str]:
        """The texts of a column of the first table of results that are shown."""
        found: list[str] = self.do(
            "return [...document.querySelectorAll('section table.rows')[0].tBodies]"
            ".filter(b => b.getClientRects().length)"
            f".map(b => b.rows[0].cells[{number}].innerText.trim())"
        )
        return found

    def requests(self) -> list[str]:
        """Addresses asked for since the last call."""
        events = [
            json.loads(entry["message"])["message"]
            for entry in self.driver.get_log("performance")
        ]
        return [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One for all tests: starting it takes longer than they do."""
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.driver.quit()


def test_browser_sorts_and_filters(tmp_path: Path, browser: Browser) -> None:
    made = sweep(tmp_path)
    page(made)
    browser.requests()
    browser.open(made / "report.html")
    before = browser.column(0)
    assert len(before) == 12 and before[0] == "two-level"

    browser.click("table.rows th:nth-child(4) button")
    rates = [float(r.split()[0].rstrip("kM")) for r in browser.column(3)]
    assert rates == sorted(rates) and rates[0] < rates[-1]
    browser.click("table.rows th:nth-child(4) button")
    again = [float(r.split()[0].rstrip("kM")) for r in browser.column(3)]
    assert again == rates[::-1]
    # what has no ratio stays last, whichever way it is sorted
    for _ in range(2):
        browser.click("table.rows th:nth-child(5) button")
        assert browser.column(4)[-4:] == [""] * 4
        assert "" not in browser.column(4)[:-4]

    browser.choose("variant", "first-word")
    assert set(browser.column(0)) == {"first-word"} and len(browser.column(0)) == 4
    browser.choose("hold", "low:64")
    assert browser.column(1) == ["low:64"] * 2
    browser.choose("tasks", "2")
    assert browser.column(2) == ["2"]
    assert browser.do("return document.getElementById('count').innerText") == (
        "1 of 12 rows"
    )
    browser.click("#filters button")
    assert len(browser.column(0)) == 12

    assert browser.driver.get_log("browser") == []
    asked = browser.requests()
    assert asked and {a.split(":")[0] for a in asked} <= {"file", "data"}
    assert [a for a in asked if a.startswith("file")] == [
        (made / "report.html").as_uri()
    ]
    loaded = "return [...document.images].map(i => i.complete && i.naturalWidth > 0)"
    assert browser.do(loaded) == [True]


def test_browser_follows_a_link_to_a_hidden_row(
    tmp_path: Path, browser: Browser
) -> None:
    report([sweep(tmp_path, "a"), sweep(tmp_path, "b")], tmp_path / "r.html")
    browser.open(tmp_path / "r.html")
    assert set(browser.column(0)) != {""}
    link = browser.do("return document.querySelector('.raw a').getAttribute('href')")
    browser.choose("tasks", "2")
    hidden = f"return document.querySelector('{link}').hidden"
    assert browser.do(hidden) is True
    browser.do(f"location.hash = '{link}'")
    browser.do("return new Promise(done => setTimeout(done, 200))")
    assert browser.do(hidden) is False
    assert browser.do(f"return document.querySelector('{link} details').open") is True


@pytest.mark.parametrize("width", [320, 390, 768, 1280, 2560])
def test_browser_fits_the_width(tmp_path: Path, browser: Browser, width: int) -> None:
    report([sweep(tmp_path, "a"), sweep(tmp_path, "b")], tmp_path / "r.html")
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.open(tmp_path / "r.html")
    browser.do("for (const d of document.querySelectorAll('details')) d.open = true")
    wide = "return document.documentElement.scrollWidth - innerWidth"
    assert browser.do(wide) <= 0
    browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_browser_runs_nothing_of_a_hostile_folder(
    tmp_path: Path, browser: Browser
) -> None:
    bad = "<img src=http://127.0.0.1:9/x onerror=\"document.title='owned'\">"
    rows = [record(CELL | {"hold": bad}, 1e6 * x, n) for n, x in enumerate(CALM)]
    made = Path(folder(tmp_path, "evil", rows, cpu__model=bad, kernel__release=bad))
    (made / "figures").mkdir()
    (made / "figures/evil.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)" width="9" '
        'height="9"><script>parent.document.title="owned"</script>'
        '<image href="http://127.0.0.1:9/y" width="9" height="9"/></svg>'
    )
    page(made)
    browser.requests()
    browser.open(made / "report.html")
    assert browser.do("return document.title") == "fdscale: evil"
    assert browser.do("return document.querySelectorAll('[onerror]').length") == 0
    assert not [a for a in browser.requests() if a.startswith("http")]


def test_readable_without_javascript(tmp_path: Path, browser: Browser) -> None:
    made = sweep(tmp_path)
    page(made)
    command = browser.driver.execute_cdp_cmd
    command("Emulation.setScriptExecutionDisabled", {"value": True})
    browser.open(made / "report.html")
    root = command("DOM.getDocument", {"depth": 0})["root"]["nodeId"]
    text = command("DOM.getOuterHTML", {"nodeId": root})["outerHTML"]
    command("Emulation.setScriptExecutionDisabled", {"value": False})
    assert re.search(r'<form id="filters" hidden', text)
    assert "<button" not in text.split("</form>")[1]
    # no row is hidden: verdicts, tables and numbers are there as written
    assert text.count("<tbody id=") == 12
    assert not re.search(r"<tbody[^>]* hidden", text)
    assert text.count("<b>build/fdscale</b>") == 60


def test_boots_of_two_kernels(tmp_path: Path) -> None:
    paths = [Path(p) for p in kernels(tmp_path, [1e6] * 3, [2e6] * 3)]
    for path in paths:
        rows = [
            json.loads(x) for x in (path / "results.jsonl").read_text().split("\n") if x
        ]
        for row in rows:
            row["variants"] = ["first-word"]
            for window in row["windows"]:
                window.update(redone=0, skewed=False, switches=0)
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (path / "results.jsonl").write_text(text)
    report(paths, tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    assert re.search(r"1 comparison:\s*1 <span class=\"word faster\">", text)
    assert "+100" in text
