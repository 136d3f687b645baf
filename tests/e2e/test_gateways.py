"""The campaign of gateways on a cluster in a box: what limited servers, and what their daemons took, in the ledger, in the table and in what is published."""

import csv
import json
import re

from test_cluster import pytestmark  # noqa: F401  root, iproute2 and MinIO

SMALL = {"at_least = 3": "at_least = 1", '"random"': '"as-written"'}


def small(text):
    """Two subjects and one PUT of the template, as short as readings of servers allow."""
    for a, b in SMALL.items():
        assert a in text
        text = text.replace(a, b, 1)
    text = text.split("\n[published]")[0]
    head, *subjects = text.split("[[workload]]")[0].split("[[subject]]")
    put = next(w for w in text.split("[[workload]]")[1:] if 'name = "PUT"' in w)
    put = re.sub(r"sizes = .*", 'sizes = ["64KiB"]', put).split("#")[0]
    # Beside other tests a host may take seconds to answer.
    put = re.sub(r"duration = .*", 'duration = "15s"', put)
    kept = [s for s in subjects if 'name = "2 nodes"' in s or 'name = "1 node"' in s]
    assert len(kept) == 2
    return head + "".join("[[subject]]" + s for s in kept) + "[[workload]]" + put


def test_servers_of_a_campaign_are_in_its_ledger_table_and_publication(plimsoll, runs, tmp_path):
    file = tmp_path / "g.toml"
    plimsoll("campaign", "new", "gateway-cluster", "--embedded", "-o", file, check=True)
    file.write_text(small(file.read_text()))
    told = plimsoll("campaign", "run", file, "--dry-run", check=True)
    assert "2 runs to go" in told.out and "17 s at least" in told.out, told.out
    r = plimsoll("campaign", "run", file, timeout=300)
    # How steady the rate is, on a machine that has other work, is not what is asked here.
    assert r.code in (0, 3), r.err
    [ledger] = (runs / "campaigns").glob("*/ledger.jsonl")
    done = [e for e in map(json.loads, ledger.read_text().splitlines()) if e["entry"] == "done"]
    assert len(done) == 2
    for entry in done:
        servers = entry["run"]["servers"]
        assert [d["kind"] for d in servers["daemons"]] == ["minio"], servers
        assert servers["daemons"][0]["cores_each"] > 0 and servers["daemons"][0]["rss_bytes"] > 1e6, servers
        assert set(servers["shares"]) >= {"network in", "network out"}, servers
        assert all(0 <= share < 1.2 for share in servers["shares"].values()), servers
        # Hosts have no place in what may be published.
        assert "10.213." not in json.dumps(servers), servers
    assert sorted(d["run"]["servers"]["daemons"][0]["daemons"] for d in done) == [1, 2]
    # What the run's own cluster is made of is known: redundancy's arithmetic stands beside what was counted, and labels tell it apart.
    made = [d.parent for d in runs.glob("*/summary.json")]
    assert len(made) == 2
    for run in made:
        plan = (run / "plan.toml").read_text()
        assert 'redundancy = "ec:2+2"' in plan and "10.213." in plan, plan
        summary = json.loads((run / "summary.json").read_text())
        nodes = summary["labels"]["nodes"]
        traffic = {t["what"]: t for w in summary["servers"]["windows"] for t in w["traffic"]}
        assert traffic["written to drives"]["expected"] == 2, traffic
        # A single server sends nothing to another.
        assert (traffic["between servers"]["expected"] > 0) == (nodes == "2") if "between servers" in traffic else nodes == "1", traffic
    valid = [e for e in done if any(f["valid"] for f in e["run"]["figures"])]
    status = plimsoll("campaign", "status", file)
    site = tmp_path / "site"
    plimsoll("publish", file, "-o", site, check=True)
    sheet = site / "tables" / "servers.csv"
    assert sheet.exists() == bool(valid) and ("CPU s/GiB" in status.out) == bool(valid), status.out
    if valid:
        rows = list(csv.DictReader(sheet.open()))
        assert {r["figure"] for r in rows} >= {"share_of_ceiling", "cores_each", "cpu_s_per_gib", "most_memory"}, rows
        assert len({r["subject"] for r in rows}) == len(valid)
