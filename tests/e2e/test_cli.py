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


@pytest.mark.parametrize("form,told", [("--markdown", "|"), ("--csv", ","), ("--json", '"schema"')])
def test_forms(plimsoll, form, told):
    assert told in sim(plimsoll, form).ok().out


def test_html_is_one_file_that_loads_nothing(plimsoll, tmp_path):
    page = tmp_path / "report.html"
    sim(plimsoll, "--html", page).ok()
    text = page.read_text()
    assert len(text) > 5_000
    assert not re.search(r'(src|href)="https?://', text)


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


def test_the_sample_of_the_readme_is_what_is_printed(plimsoll):
    """All of it but the run's own number."""
    readme = (ROOT / "README.md").read_text().splitlines()
    printed = sim(plimsoll, "--seed", "1", env={"COLUMNS": "100"}).ok().out.rstrip().splitlines()
    begin = readme.index("    " + printed[0])
    shown = [line.removeprefix("    ") for line in readme[begin:begin + len(printed)]]

    def sound(lines):
        return [re.sub(r"^Run .*", "Run", line).replace(f"{ROOT}/", "") for line in lines]

    assert sound(shown) == sound(printed)
