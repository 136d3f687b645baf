"""Axes of a campaign, and cells that are searches: what the file says of them comes through the table, the JSON and the pages."""

import json

SIM = """
version = 1
name = "t"
repeat = { at_least = 1 }
[[subject]]
name = "volume"
promised = { ops_per_s = "500/s" }
target = { kind = "sim", base = "1ms", spread = 0.1, ops = { sustained_per_s = 500, burst_per_s = 750, capacity = 7500 } }
[[workload]]
name = "limits"
mix = { read = 1 }
concurrency = [16]
limits = { budget = "10m" }
[[workload]]
name = "watch"
mix = { read = 1 }
concurrency = [16]
watch = { duration = "2m" }
[[workload]]
name = "best"
mix = { read = 1 }
concurrency = [4]
speedtest = { budget = "2m", max_concurrency = 64, drain = "60s" }
[[workload]]
name = "block"
mix = { read = 1 }
concurrency = [1, 4]
duration = "5s"
[[workload.axis]]
name = "pattern"
values = [
  { name = "randread" },
  { name = "randrw", set = { mix = { read = 1, write = 1 } } },
]
"""


def test_searches_and_axes_come_through_the_table_and_the_pages(plimsoll, tmp_path):
    file = tmp_path / "c.toml"
    file.write_text(SIM)
    plimsoll("campaign", "run", file, timeout=300)
    rows = json.loads(plimsoll("campaign", "status", file, "--json", check=True).out)["rows"]
    limit = next(r for r in rows if r["workload"] == "limits")
    assert abs(limit["ops_per_s"]["value"] / 500 - 1) < 0.02, limit
    burst = limit["limit"]["ops"]
    # 7,500 tokens at 750/s, with 500/s that come in: 30 s.
    assert 20 < burst["lasts_s"]["value"] < 40 and abs(burst["per_s"]["value"] / 750 - 1) < 0.1, burst
    assert burst["full_again_s"]["value"] > 5, burst
    watch = [r for r in rows if r["workload"] == "watch"]
    falls = [f for r in watch for _, f in r["falls"]]
    assert falls and all(f["from_per_s"] > f["to_per_s"] for f in falls), watch
    best = next(r for r in rows if r["workload"] == "best")
    assert best["best_at"] or best["void"], best
    cells = {r["workload"]: dict(r["axes"]) for r in rows if r["workload"].startswith("block")}
    assert cells["block randrw x4"] == {"pattern": "randrw", "concurrency": "4"}, cells
    table = plimsoll("campaign", "status", file, "--by", "concurrency", check=True).out
    assert "By concurrency" in table and "Limits" in table and "fell at" in table and "full again" in table, table
    wrong = plimsoll("campaign", "status", file, "--by", "colour")
    assert wrong.code == 2 and "it has pattern, concurrency" in wrong.err, wrong.err
    site = tmp_path / "site"
    plimsoll("publish", file, "-o", site, check=True)
    assert "burst lasts" in (site / "tables" / "limits.csv").read_text()
    assert (site / "tables" / "by-pattern.md").exists()
    labels = [r["labels"] for r in json.loads(plimsoll("runs", "list", "--json", check=True).out)]
    assert {x.get("pattern") for x in labels} == {None, "randread", "randrw"}


def test_tls_is_an_axis_and_threads_are_one_of_files(plimsoll, runs, tmp_path):
    file = tmp_path / "c.toml"
    file.write_text(f"""
version = 1
name = "t"
repeat = {{ at_least = 1 }}
[[subject]]
name = "server"
target = {{ kind = "s3", endpoints = ["embedded"], bucket = "bench", create_bucket = true, embedded = {{ no_sync = true }} }}
[[subject.axis]]
name = "tls"
values = [{{ name = "off" }}, {{ name = "on", set = {{ target = {{ embedded = {{ tls = true }} }} }} }}]
[[subject]]
name = "disk"
target = {{ kind = "files", directory = "{tmp_path}", file_size = "1MiB" }}
labels = {{ tls = "none" }}
[[workload]]
name = "PUT"
mix = {{ put = 1 }}
duration = "1s"
warmup = "100ms"
only = {{ tls = "on" }}
[[workload]]
name = "PUT plain"
mix = {{ put = 1 }}
duration = "1s"
warmup = "100ms"
only = {{ tls = "off" }}
[[workload]]
name = "files"
file = {{ threads = [1, "cores"], total = "8MiB", iops_duration = "500ms" }}
only = {{ tls = "none" }}
""")
    result = plimsoll("campaign", "run", file, "--json", timeout=120)
    assert result.code in (0, 3), result.err
    rows = json.loads(result.out)["rows"]
    workloads = {(r["subject"], r["workload"]) for r in rows}
    assert {("server tls on", "PUT"), ("server tls off", "PUT plain"), ("disk", "files 1 thread"), ("disk", "files a thread per core")} == workloads
    on = next(r for r in rows if r["subject"] == "server tls on")
    run = (on["runs"] or [v["run"] for v in on["void"]])[0]
    summary = json.loads((runs / run / "summary.json").read_text())
    assert "https://" in json.dumps(summary) or "tls" in json.dumps(summary).lower(), summary["environment"]
    assert not list(tmp_path.glob("plimsoll*"))
