"""`plimsoll publish`: a folder that stands by itself; nothing of others is touched, nothing leaves that was to stay."""

import csv
import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
BURST = 'target = { kind = "sim", base = "5ms", spread = 0.1, ops = { sustained_per_s = 100, burst_per_s = 400, capacity = 2000 } }'
FAST = 'target = { kind = "sim", base = "5ms", spread = 0.1, ops = { sustained_per_s = 700, capacity = 1 }, bytes = { sustained_per_s = 400000000, capacity = 1 } }'
SLOW = 'target = { kind = "sim", base = "5ms", spread = 0.1, ops = { sustained_per_s = 200, capacity = 1 } }'


def write_campaign(place, subjects, name="two-tiers", head="repeat = { at_least = 2 }", sizes='"4KiB", "1MiB"'):
    text = f'version = 1\nname = "{name}"\nquestion = "Which tier is faster, and what limits it?"\n{head}\n'
    for subject, lines in subjects.items():
        text += f'[[subject]]\nname = "{subject}"\n{lines}\n'
    text += f'[[workload]]\nname = "put"\nmix = {{ put = 1 }}\nsizes = [{sizes}]\nconcurrency = [8]\nduration = "10s"\nwarmup = "1s"\n'
    file = place / "c.toml"
    file.write_text(text)
    return file


@pytest.fixture
def measured(plimsoll, tmp_path):
    subjects = {
        "fast": FAST + '\nlabels = { tier = "premium" }\npromised = { ops_per_s = "700/s" }',
        "slow": SLOW + '\nlabels = { tier = "standard" }\npromised = { ops_per_s = "300/s" }',
    }
    file = write_campaign(tmp_path, subjects)
    plimsoll("campaign", "run", file, "-q", timeout=300)
    return file


class Links(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.to, self.ids, self.scripts, self.tags = [], set(), 0, []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        of = dict(attributes)
        self.tags.append((tag, of))
        self.scripts += tag == "script"
        self.to += [of[k] for k in ("href", "src") if of.get(k)]
        if of.get("id"):
            self.ids.add(of["id"])


def pages(site):
    return {p.name: Links(p.read_text()) for p in site.glob("*.html")}


def everything(site):
    return {p.relative_to(site): p.read_bytes() for p in site.rglob("*") if p.is_file()}


def test_a_campaign_becomes_a_folder_that_stands_alone(plimsoll, runs, tmp_path, measured):
    site = tmp_path / "site"
    result = plimsoll("publish", measured, "-o", site, check=True)
    assert f"{site}/index.html" in result.out and "4 cells, 0 void or missing; 8 runs, by their hashes" in result.out, result.out
    # The figures are those of the campaign, to the last digit, and where another command looks for them.
    own = json.loads(plimsoll("campaign", "status", measured, "--json", check=True).out)
    published = json.loads((site / "data/result.json").read_text())
    assert published == own and published["schema"] == "plimsoll.campaign/1"
    assert (site / "campaign.toml").read_text() == measured.read_text()
    # Every link leads somewhere, inside of the folder.
    all_pages = pages(site)
    for name, page in all_pages.items():
        for to in page.to:
            if to.startswith("data:"):
                continue
            path, _, part = to.partition("#")
            assert "://" not in to, to
            target = site / path if path else site / name
            assert target.is_file(), f"{name}: {to}"
            if part and target.suffix == ".html":
                assert part in all_pages[target.name].ids, f"{name}: {to}"
        assert len((site / name).read_bytes()) < 2_000_000
    text = (site / "index.html").read_text()
    assert "fast is fastest in all 2 workloads" in text
    # What was promised and not reached is said with its figure.
    assert "promised was reached: 1 of 2" in text and re.search(r"slow \(\d", text)
    rows = list(csv.DictReader(io.StringIO((site / "tables/results.csv").read_text())))
    assert [r["subject"] for r in rows] == [r["subject"] for r in own["rows"]]
    for row, want in zip(rows, own["rows"]):
        assert float(row["ops_per_s"]) == want["ops_per_s"]["value"] and row["valid_runs"] == "2"
        assert row["runs"].split() == want["runs"]
    promised = list(csv.DictReader(io.StringIO((site / "tables/promised.csv").read_text())))
    assert {(r["subject"], r["verdict"]) for r in promised} == {("fast", "reached"), ("slow", "not reached")}
    difference = next(r["difference"] for r in promised if r["subject"] == "slow")
    assert re.fullmatch(r"-3[23]\.\d+ .*%|-33.*%", difference), difference
    assert "| slow |" in (site / "tables/results.md").read_text()
    # Hashes are those of the files, as any tool finds them.
    for line in (site / "data/runs.sha256").read_text().splitlines():
        digest, path = line.split("  ", 1)
        assert hashlib.sha256((runs / path).read_bytes()).hexdigest() == digest, path
    assert len({line.split("  ")[1].split("/")[0] for line in (site / "data/runs.sha256").read_text().splitlines()}) == 8


def test_single_runs_become_a_folder_of_their_own(plimsoll, runs, tmp_path, measured):
    site = tmp_path / "site"
    result = plimsoll("publish", "subject=fast", "subject=slow", "-o", site, "--with-runs", check=True)
    assert "4 cells, 0 void or missing; 8 runs, with their directories" in result.out, result.out
    # What did the same on the same storage is a repeat: the figures are the campaign's.
    own = json.loads(plimsoll("campaign", "status", measured, "--json", check=True).out)["rows"]
    rates = lambda rows: sorted((r["subject"], r["ops_per_s"]["value"], len(r["runs"])) for r in rows)
    assert rates(json.loads((site / "data/result.json").read_text())["rows"]) == rates(own)
    plans = sorted((site / "plans").iterdir())
    assert len(plans) == 4 and not (site / "campaign.toml").exists()
    assert "<code>plimsoll run plans/" in (site / "index.html").read_text()
    plimsoll("run", plans[0], "--dry-run", check=True)
    told = plimsoll("replicate", site)
    assert told.code == 2 and f"plimsoll run {plans[0]}" in told.err and "3 more" in told.err, told.err
    for line in (site / "data/runs.sha256").read_text().splitlines():
        digest, path = line.split("  ", 1)
        assert hashlib.sha256((site / "runs" / path).read_bytes()).hexdigest() == digest, path
    one = plimsoll("publish", "last", "-o", tmp_path / "one", check=True)
    assert "1 cell, 0 void or missing; 1 run," in one.out, one.out
    for args, why in ((("no-such",), "there is no run"), (("last", "last"), "given twice"), ((measured, "last"), "beside others")):
        refused = plimsoll("publish", *args, "-o", tmp_path / "none")
        assert refused.code == 2 and why in refused.err, refused.err


def test_void_missing_and_fallen_cells_are_marked(plimsoll, tmp_path):
    file = write_campaign(tmp_path, {"burst": BURST, "slow": SLOW}, name="burst", head="repeat = { at_least = 1 }", sizes='"4KiB"')
    plimsoll("campaign", "run", file, "-q", timeout=300)
    # A subject that was not measured yet.
    file.write_text(file.read_text() + f'[[subject]]\nname = "later"\n{SLOW}\n')
    site = tmp_path / "site"
    result = plimsoll("publish", file, "-o", site, check=True)
    own = {r["subject"]: r for r in json.loads((site / "data/result.json").read_text())["rows"]}
    assert own["later"]["ops_per_s"] is None
    without = sum(r["ops_per_s"] is None for r in own.values())
    assert f"3 cells, {without} void or missing" in result.out, result.out
    text = (site / "index.html").read_text()
    assert ">missing<" in text and f"{3 - without} of 3 cells valid" in text
    table = (site / "tables/void-and-missing.md").read_text()
    assert "later" in table
    # The rate fell in the run: its course is drawn, and its data is there.
    series = list(csv.DictReader(io.StringIO((site / "charts/rate-over-time.csv").read_text())))
    rates = [float(r["ops_per_s"]) for r in series if r["ops_per_s"] and r["series"].startswith("burst")]
    assert max(rates) > 300 and min(rates) < 150, (max(rates), min(rates))


def test_only_a_publication_of_ours_is_replaced(plimsoll, tmp_path, measured):
    site = tmp_path / "site"
    site.mkdir()
    (site / "letter").write_text("mine")
    refused = plimsoll("publish", measured, "-o", site)
    assert refused.code == 2 and "not empty" in refused.err and "fix:" in refused.err, refused.err
    assert everything(site) == {Path("letter"): b"mine"}
    (site / "letter").unlink()
    plimsoll("publish", measured, "-o", site, "--title", "First", check=True)
    plimsoll("publish", measured, "-o", site, "--title", "Second", check=True)
    assert "<h1>Second</h1>" in (site / "index.html").read_text()
    (site / "CNAME").write_text("bench.example")
    before = everything(site)
    refused = plimsoll("publish", measured, "-o", site)
    assert refused.code == 2 and "CNAME" in refused.err, refused.err
    assert everything(site) == before
    (site / "CNAME").unlink()
    with open(site / "index.html", "a") as f:
        f.write("<!-- mine -->")
    refused = plimsoll("publish", measured, "-o", site)
    assert refused.code == 2 and "index.html" in refused.err and "changed" in refused.err, refused.err
    # No trace beside it.
    assert sorted(p.name for p in tmp_path.iterdir() if "publish" in p.name) == []


def test_killed_it_leaves_the_old_site_whole(plimsoll, background, tmp_path, measured):
    site = tmp_path / "site"
    plimsoll("publish", measured, "-o", site, check=True)
    old = everything(site)
    for _ in range(6):
        process = background("publish", measured, "-o", site, "--title", "New", "--with-runs")
        # Sooner or later in its work, as the machine has it.
        try:
            process.wait(0.02)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait(30)
        now = everything(site)
        mark = json.loads(now[Path(".plimsoll-site.json")])["files"]
        assert now == old or {str(p) for p in now} - {".plimsoll-site.json"} == set(mark)
        for path, digest in mark.items():
            assert hashlib.sha256(now[Path(path)]).hexdigest() == digest
    plimsoll("publish", measured, "-o", site, "--with-runs", check=True)
    assert (site / "runs").is_dir() and not (tmp_path / ".site.plimsoll-publish").exists()


def test_bad_input(plimsoll, tmp_path):
    file = write_campaign(tmp_path, {"fast": FAST})
    nothing = plimsoll("publish", file, "-o", tmp_path / "site")
    assert nothing.code == 2 and "has no run yet" in nothing.err and "campaign run" in nothing.err
    gone = plimsoll("publish", tmp_path / "no.toml", "-o", tmp_path / "site")
    assert gone.code == 2 and "no.toml" in gone.err
    (tmp_path / "file").write_text("")
    for place, why in (("file", "no directory"), ("no/such/site", "No such file")):
        refused = plimsoll("publish", file, "-o", tmp_path / place)
        assert refused.code == 2 and why in refused.err, refused.err
    both = plimsoll("publish", file, "--redact", "hosts", "--with-runs")
    assert both.code == 2 and "cannot be used with" in both.err
    unknown = plimsoll("publish", file, "--redact", "names")
    assert unknown.code == 2 and "hosts" in unknown.err
    assert not (tmp_path / "site").exists()


EVIL = "<img src=x onerror=alert(1)>|`*[x](javascript:y)"


def test_hostile_names_stay_text_in_every_form(plimsoll, tmp_path):
    names = {"=cmd|' /C calc'!A0": SLOW, EVIL: FAST + '\nlabels = { tier = "</script><script>alert(2)</script>" }'}
    text = 'version = 1\nname = "evil"\nquestion = "<script>alert(3)</script>"\nrepeat = { at_least = 1 }\n'
    for name, lines in names.items():
        text += f"[[subject]]\nname = {json.dumps(name)}\n{lines}\n"
    text += '[[workload]]\nname = "put"\nmix = { put = 1 }\nsizes = ["4KiB"]\nduration = "10s"\nwarmup = "1s"\n'
    file = tmp_path / "c.toml"
    file.write_text(text)
    ran = plimsoll("campaign", "run", file, "-q", timeout=300)
    if ran.code == 2:
        # Names that no file takes: those that it does take are left.
        file.write_text(text.replace("=cmd|' /C calc'!A0", "=cmd calc").replace(json.dumps(EVIL), '"<b onerror=alert(1)>"'))
        ran = plimsoll("campaign", "run", file, "-q", timeout=300)
    assert ran.code in (0, 3), ran.err
    site = tmp_path / "site"
    plimsoll("publish", file, "-o", site, "--title", "</title><script>alert(4)</script>", check=True)
    for name, page in pages(site).items():
        body = (site / name).read_text()
        assert "<script>alert" not in body and "<img" not in body and "onerror" not in {k for _, of in page.tags for k in of}, name
        assert page.scripts == (2 if name == "index.html" else 0), (name, page.scripts)
    for sheet in site.rglob("*.csv"):
        for row in csv.reader(io.StringIO(sheet.read_text())):
            for cell in row:
                assert not re.match(r"[=@\t\r]", cell) and not re.match(r"[+-](?![\d.])", cell), (sheet, cell)
    for table in site.glob("tables/*.md"):
        assert not re.search(r"(?<!\\)<(img|b|script)", table.read_text()), table


def test_what_is_left_out_is_nowhere(plimsoll, runs, tmp_path, embedded):
    endpoint = embedded.endpoint
    bucket = "confidential-bucket"
    target = (f'target = {{ kind = "s3", endpoints = ["{endpoint}"], bucket = "{bucket}", create_bucket = true, region = "us-east-1" }}\n'
              f'before = ["true # as root@10.9.8.7 into {bucket}"]')
    file = write_campaign(tmp_path, {f"tier of {bucket}": target}, name="quiet", head="repeat = { at_least = 1 }", sizes='"4KiB"')
    file.write_text(file.read_text().replace('duration = "10s"', 'duration = "2s"') + f"# asked for by {os.uname().nodename}, password = \"hunter22\"\n")
    ran = plimsoll("campaign", "run", file, "-q", "--allow-hooks", server=embedded, timeout=300)
    assert ran.code in (0, 3), ran.err
    site = tmp_path / "site"
    plimsoll("publish", file, "-o", site, check=True)
    plain = b"\n".join(everything(site).values()).decode(errors="replace")
    assert bucket in plain and "127.0.0.1" in plain and "10.9.8.7" in plain and "hunter22" not in plain
    result = plimsoll("publish", file, "-o", site, "--redact", "hosts,endpoints,buckets,addresses", check=True)
    assert "left out of all files: " in result.out and "1 buckets" in result.out, result.out
    row = json.loads((site / "data/result.json").read_text())["rows"][0]
    # Void or not, it has names.
    [name] = row["runs"] or [v["run"] for v in row["void"]]
    run = json.loads((runs / name / "summary.json").read_text())
    names = [bucket, "127.0.0.1", "10.9.8.7", os.uname().nodename, run["environment"]["host"], run["environment"]["boot_id"], "hunter22"]
    for path, content in everything(site).items():
        # The page's own script is the same in every publication, and has short words of any kind.
        text = re.sub(r'<script type="module".*?</script>|<style>.*?</style>', "", content.decode(), flags=re.S).lower()
        for name in names:
            # A name of two letters is part of many words.
            at = re.search(rf"(?<!\w){re.escape(name.lower())}(?!\w)" if len(name) < 5 else re.escape(name.lower()), text)
            assert not at, (path, name, text[max(0, at.start() - 60) : at.end() + 60])
    # It is still a campaign's file, which another can measure by.
    shown = plimsoll("campaign", "run", site / "campaign.toml", "--dry-run")
    assert "1 cell," in shown.out, shown.err


def test_images_are_drawn_by_the_page_or_it_says_why_not(plimsoll, tmp_path, measured):
    site = tmp_path / "site"
    env = {"PATH": str(tmp_path)}
    without = plimsoll("publish", measured, "-o", site, "--images", env=env, check=True)
    assert "no image files: no Chromium is in PATH" in without.err
    if not Path(CHROMIUM).exists():
        pytest.skip("no Chromium here")
    (tmp_path / "chromium").symlink_to(CHROMIUM)
    with_it = plimsoll("publish", measured, "-o", site, "--images", env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}, timeout=200, check=True)
    if "without its web page" in with_it.err:
        pytest.skip("built without its web page")
    images = sorted(p.name for p in (site / "images").iterdir())
    assert "rates-1.svg" in images and "rates-1.png" in images, (images, with_it.err)
    assert (site / "images/rates-1.png").read_bytes().startswith(b"\x89PNG")
    svg = (site / "images/rates-1.svg").read_text()
    assert "<svg" in svg and "var(--" not in re.sub(r"<style.*?</style>", "", svg, flags=re.S).split("style=")[0]


def test_it_opens_in_a_browser_as_a_reader_has_it(plimsoll, tmp_path, measured):
    node = shutil.which("node")
    if not node or not Path(CHROMIUM).exists() or not (ROOT / "web/node_modules/playwright-core").is_dir():
        pytest.skip("needs node, playwright-core and a Chromium")
    site = tmp_path / "site"
    shown = plimsoll("publish", measured, "-o", site, check=True)
    if "without its web page" in shown.err:
        pytest.skip("built without its web page")
    done = subprocess.run([node, "--test", "test/publication.mjs"], cwd=ROOT / "web", capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PLIMSOLL_SITE": str(site), "CHROMIUM": CHROMIUM})
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
