"""What a user sees besides figures: streams, forms, exit codes, reports."""

import json
import re
import subprocess

import pytest
from conftest import BIN, ROOT

PLANS = sorted((ROOT / "plans").glob("*.toml"))


def sim(plimsoll, *flags, env=None):
    return plimsoll("run", ROOT / "plans/sim.toml", *flags, env=env)


def test_a_result_on_stdout_and_all_else_on_stderr(plimsoll):
    result = sim(plimsoll, "--json").ok()
    assert result.summary["schema"] == "plimsoll.run/2"
    assert result.summary["rerun"].startswith("plimsoll run ")


def test_the_command_that_repeats_it_repeats_it(plimsoll):
    first = sim(plimsoll, "--json").ok().summary
    words = first["rerun"].split()[1:]
    again = plimsoll(*words).ok().summary
    strip = lambda s: [(w["op"], w["outcomes"], w["latency_ns"]) for w in s["workloads"]]  # noqa: E731
    assert strip(first) == strip(again), "the simulated target is exact, so a repeat must be the same"


@pytest.mark.parametrize("form,told", [("--markdown", "|"), ("--csv", ","), ("--json", '"schema"'), ("-v", "Again: plimsoll run ")])
def test_forms(plimsoll, form, told):
    assert told in sim(plimsoll, form).ok().out


def test_html_is_one_file_that_loads_nothing(plimsoll, tmp_path):
    page = tmp_path / "report.html"
    sim(plimsoll, "--html", page).ok()
    text = page.read_text()
    assert len(text) > 5_000
    assert not re.search(r'(src|href)="https?://', text)


def test_no_secret_is_taken_from_the_command_line(plimsoll, tmp_path):
    """Neither stored nor repeated, by whatever option it comes."""
    secret = "SuperSecret12345678901"
    env = {"AWS_SECRET_ACCESS_KEY": secret}
    # What a person would call a bucket may be somebody's careless key as well: a short one is no reason to refuse a command.
    assert sim(plimsoll, "--name", "bench", env={"AWS_SECRET_ACCESS_KEY": "bench"}).code == 0
    plimsoll("runs", "rm", "last").ok()
    for flags in (["--label", f"note={secret}"], ["--name", f"a{secret}b"], [f"--mark-at=1s={secret}"]):
        r = sim(plimsoll, *flags, env=env)
        assert r.code == 2 and flags[0].split("=")[0] in r.err and "SuperSecret" not in r.out + r.err, (flags, r.err)
    assert json.loads(plimsoll("runs", "list", "--json").ok().out) == []


def test_a_page_is_not_written_under_the_name_of_another_form(plimsoll, tmp_path):
    sim(plimsoll).ok()
    r = plimsoll("report", "last", "-o", tmp_path / "x.md")
    assert r.code == 2 and "--markdown" in r.err and not (tmp_path / "x.md").exists(), r.err


def test_expectations_decide_the_exit_code(plimsoll):
    assert sim(plimsoll, "--expect", "get.ops_per_s >= 1").code == 0
    missed = sim(plimsoll, "--expect", "get.ops_per_s >= 1000000", "--json")
    assert missed.code == 4
    assert missed.summary["expectations"][0]["met"] is False


def test_labels_group_a_report(plimsoll, tmp_path):
    for tier in ("a", "b"):
        sim(plimsoll, "--label", f"tier={tier}").ok()
    ids = [r["id"] for r in json.loads(plimsoll("runs", "list", "--json").ok().out)]
    assert len(ids) == 2
    out = plimsoll("report", *ids, "--by", "op,label:tier", "--markdown", "-o", tmp_path / "r.html").ok().out
    assert "| a" in out and "| b" in out, out
    assert (tmp_path / "r.html").stat().st_size > 5_000


def test_what_is_said_first_fits_twelve_lines(plimsoll):
    for plan in ("sim", "sim-bucket", "sim-open-loop", "sim-sweep"):
        for width in "80", "100":
            printed = plimsoll("run", ROOT / f"plans/{plan}.toml", env={"COLUMNS": width}).ok().out.splitlines()
            assert printed[0].startswith("VALID") and len(printed) <= 12, printed
            assert all(len(line) <= int(width) for line in printed), printed


def test_a_sweep_says_which_cap_binds_at_which_size(plimsoll):
    """800 op/s and 600 MiB/s: below 786 KB operations bind, which one concurrency does not tell from latency."""
    lines = plimsoll("run", ROOT / "plans/sim-sweep.toml", env={"COLUMNS": "100"}).ok().out.splitlines()
    head = next(line for line in lines if line.startswith("size"))
    columns = [m.start() for m in re.finditer("bound", head)]
    assert re.findall(r"PUT|GET", head) == ["PUT", "GET"] and len(columns) == 2, head
    at = [line for line in lines if re.match(r"\d+ [KM]B ", line)]
    assert [re.match(r"\d+ [KM]B", line)[0] for line in at] == ["4 KB", "64 KB", "512 KB", "1 MB", "10 MB"], lines
    for column in columns:
        assert [line[column:].split("  ")[0].strip() for line in at] == ["ops/lat"] * 3 + ["bytes"] * 2, lines
    whole = plimsoll("runs", "show", "last", env={"COLUMNS": "120"}).ok().out
    rows = [re.split(r"  +", line) for line in whole.splitlines()]
    head = next(r for r in rows if r[0] == "Operation")
    bound = {(r[0], r[1]): r[head.index("Bound by")] for r in rows if r[0] in ("PUT", "GET") and len(r) == len(head)}
    for op in "PUT", "GET":
        assert [bound[op, size] for size in ("4 KB", "64 KB", "512 KB", "1 MB", "10 MB")] == ["ops or latency"] * 3 + ["bytes"] * 2, bound


def test_a_list_says_what_came_of_each_run(plimsoll):
    sim(plimsoll, "--name", "nightly", "--label", "tier=gold", "--seed", "1").ok()
    head, _, row = plimsoll("runs", "list", env={"COLUMNS": "120"}).ok().out.splitlines()
    assert re.split(r"  +", head) == ["run", "started (UTC)", "what", "result", "status"]
    assert re.split(r"  +", row)[2:] == ["nightly tier=gold", "3,459 ± 5 op/s of 64KiB GET", "VALID"], row


def test_runs_list_show_rm(plimsoll):
    sim(plimsoll).ok()
    assert plimsoll("runs", "show", "last").ok().out
    assert plimsoll("runs", "rm", "last").code == 0
    assert plimsoll("runs", "list").out == ""
    assert plimsoll("runs", "show", "last").code == 2


@pytest.mark.parametrize("plan", PLANS, ids=lambda p: p.name)
def test_every_example_plan_is_a_plan(plimsoll, plan):
    out = plimsoll("run", plan, "--dry-run").ok().out
    assert out.startswith("# What would happen:")


@pytest.mark.parametrize("plan", [p for p in PLANS if 'kind = "sim"' in p.read_text()], ids=lambda p: p.name)
def test_simulated_plans_run(plimsoll, plan):
    result = plimsoll("run", plan, "--json")
    assert result.code == 0, result.err
    assert result.summary["workloads"]


def test_help_of_every_command():
    def commands(words):
        text = subprocess.run([BIN, *words, "--help"], capture_output=True, text=True, check=True).stdout
        yield words, text
        block = re.search(r"^Commands:\n((?:  .*\n|\n)+)", text, re.M)
        for name in re.findall(r"^  ([a-z0-9]+)", block[1], re.M) if block else []:
            if name != "help":
                yield from commands([*words, name])

    seen = list(commands([]))
    assert len(seen) > 25
    assert all("Usage:" in text for _, text in seen)


def test_progress_goes_to_stderr_only_and_quiet_silences_it(plimsoll):
    loud, quiet = sim(plimsoll), sim(plimsoll, "--quiet")
    assert loud.err and not quiet.err


def test_a_killed_sweep_goes_on_where_it_was(plimsoll, background, canned):
    """Cells that were complete are not measured again; the result has every cell once."""
    server = canned("--delay", "1ms")
    flags = ["--endpoint", server.endpoint, "--bucket", "b", "--ops", "put", "--sizes", "1KiB,2KiB,3KiB,4KiB",
             "--duration", "1s", "--warmup", "0s", "--concurrency", "4"]
    run = background("object", "sweep", *flags, server=server)
    told = ""
    for line in run.stderr:
        told += line
        if "stage 2/4 done" in line:
            break
    run.kill()
    run.wait()
    result = plimsoll("run", "--resume", "last", "--json", server=server)
    assert result.code in (0, 3, 5), result.err
    assert {w["size_bytes"] for w in result.summary["workloads"]} == {1024, 2048, 3072, 4096}, told + result.err
    assert result.err.count(" done: ") in (2, 3), result.err
    assert len(json.loads(plimsoll("runs", "list", "--json").out)) == 1


@pytest.mark.parametrize("plan", ["sim", "sim-sweep"])
def test_the_sample_of_the_readme_is_what_is_printed(plimsoll, plan):
    """All of it but the run's own number."""
    readme = (ROOT / "README.md").read_text().splitlines()
    seed = ["--seed", "1"] if plan == "sim" else []
    printed = plimsoll("run", ROOT / f"plans/{plan}.toml", *seed, env={"COLUMNS": "100"}).ok().out.rstrip().splitlines()
    begin = readme.index("    " + printed[0])
    shown = [line.removeprefix("    ") for line in readme[begin:begin + len(printed)]]

    def sound(lines):
        return [re.sub(r"^  more  .*", "  more", line).replace(f"{ROOT}/", "") for line in lines]

    assert sound(shown) == sound(printed)
