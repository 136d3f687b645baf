"""A campaign by prices of one's own: what it may cost is said before, held against a budget, and counted over sessions."""

import json

from test_campaign import SIM, campaign, done, ledger

PACED = '[[workload]]\nname = "put"\nmix = { put = 1 }\npacing = { constant = "100/s" }\nconcurrency = [4]\nduration = "10s"\nwarmup = "1s"\n'


def price_list(path, *names):
    text = 'version = 1\ncurrency = "USD"\nmonth = "30d"\n'
    for name in names:
        text += f'[subjects.{name}]\ndate = "2026-11-24"\nregion = "here"\nsource = "this test"\nsize = "100GB"\n'
        text += 'capacity = { price = 0.1, per = "1GB" }\n'
        text += f'[[subjects.{name}.requests]]\nclass = "any"\nops = ["put"]\nprice = 1\nper = 1000\n'
    path.write_text(text)
    return path


def test_a_budget_of_money_is_told_kept_and_gone_on_with(plimsoll, runs, tmp_path):
    price_list(tmp_path / "prices.toml", "tier-1", "b")
    subjects = {"a": SIM + '\nprice = "tier-1"', "b": SIM}
    head = 'prices = "prices.toml"\nrepeat = { at_least = 2 }\nbudget = { cost = "3.5USD" }'
    file = campaign(tmp_path, subjects, head, PACED)
    # 100/s for 11 s, and up to four that are in flight at the end: 1,104 requests.
    plan = plimsoll("campaign", "run", file, "--dry-run", check=True).out
    assert "a, put  (a run: 1.11 USD at most)" in plan and "cost of these runs: 4.42 USD at most (each cell once: 2.21 USD)" in plan, plan
    assert "a as tier-1 (2026-11-24, here)" in plan and "a: 10 USD a month whatever is measured" in plan, plan
    small = plimsoll("campaign", "run", file, "--budget-cost", "1USD")
    assert small.code == 2 and "one run of 'a//put': it may cost 1.11 USD" in small.err and "0.104 USD too little" in small.err, small.err
    assert "Raise --budget-cost" in small.err and not runs.exists()
    both = plimsoll("campaign", "run", file, "--budget-cost", "1.5 USD")
    assert both.code == 2 and "each of 2 cells once may cost 2.21 USD" in both.err, both.err
    # Three runs fit, the fourth would go over.
    ended = plimsoll("campaign", "run", file)
    assert ended.code == 5 and "the budget is used up (cost: 3.5 USD" in ended.err and "--budget-cost MONEY" in ended.err, ended.err
    assert sum(done(runs).values()) == 3
    spent = [e["run"]["cost"] for e in ledger(runs) if e["entry"] == "done"]
    assert all(1.09 < float(cost.removesuffix("USD")) < 1.11 for cost in spent), spent
    status = plimsoll("campaign", "status", file, check=True).out
    total = sum(float(cost.removesuffix("USD")) for cost in spent)
    assert f"{total:.3g} USD" in status and "USD of 3.5 USD" in status, (total, status)
    # Each run has figures in money of its own, with what was left as its budget.
    last = json.loads(plimsoll("runs", "show", "last", "--json", check=True).out)
    assert last["cost"]["subject"] in ("tier-1", "b") and any(f["name"] == "run" for f in last["cost"]["figures"]), last["cost"]
    plimsoll("campaign", "resume", file, "--budget-cost", "9USD", check=True)
    assert done(runs) == {"a//put": 2, "b//put": 2}
    # What was spent is in the ledger: it is shown without the prices, too.
    (tmp_path / "prices.toml").unlink()
    left = plimsoll("campaign", "status", file, check=True)
    assert "4.4" in left.out and "USD of 3.5 USD" in left.out and "prices.toml cannot be read" in left.err, left


def test_what_has_no_bound_is_ended_by_what_is_left_and_what_has_no_price_is_said(plimsoll, runs, tmp_path):
    prices = price_list(tmp_path / "p.toml", "a")
    closed = PACED.replace('pacing = { constant = "100/s" }\n', "")
    file = campaign(tmp_path, {"a": SIM, "b": SIM}, "repeat = { at_least = 1 }", closed)
    plan = plimsoll("campaign", "run", file, "--prices", prices, "--dry-run", check=True).out
    assert "no price: b" in plan and "not bounded, a//put: a closed loop" in plan, plan
    refused = plimsoll("campaign", "run", file, "--prices", prices, "--budget-cost", "2USD")
    assert refused.code == 2 and "no price is known of b" in refused.err, refused.err
    nothing = plimsoll("campaign", "run", file, "--budget-cost", "2USD")
    assert nothing.code == 2 and "--prices FILE" in nothing.err, nothing.err
    # About 800/s for 11 s: 2 USD are sent long before.
    alone = campaign(tmp_path, {"a": SIM}, "repeat = { at_least = 1 }", closed)
    ended = plimsoll("campaign", "run", alone, "--prices", prices, "--budget-cost", "2USD")
    assert ended.code == 5 and "was ended by it, and does not count" in ended.err, ended.err
    assert done(runs) == {}
    dropped = next(e for e in ledger(runs) if e["entry"] == "dropped")
    assert 2 <= float(dropped["cost"].removesuffix("USD")) < 9, dropped
    # The budget was given beside the file: a command that only goes on is held to it.
    for flags in ([], ["--prices", prices]):
        again = plimsoll("campaign", "resume", alone, *flags)
        assert again.code in (2, 5) and ("2 USD" in again.err or "2USD" in again.err), again.err
    assert done(runs) == {}
    again = plimsoll("campaign", "resume", alone, "--prices", prices, "--budget-cost", "2USD")
    assert again.code == 2 and "are spent" in again.err, again.err
    plimsoll("campaign", "resume", alone, "--prices", prices, "--budget-cost", "20USD", check=True)
    assert done(runs) == {"a//put": 1}


def test_a_guard_is_no_budget(plimsoll, runs, tmp_path):
    """Both end a run with the same exit code; what a guard ended was measured until then, and the campaign goes on."""
    prices = price_list(tmp_path / "prices.toml", "a")
    prices.write_text(prices.read_text().replace('["put"]', '["put", "get", "delete", "list", "stat"]'))
    head = 'prices = "prices.toml"\nrepeat = { at_least = 2 }\nbudget = { cost = "900USD" }\noptions = { abort_if = ["put.p99 > 1us for 1s"] }'
    subjects = {"a": 'target = { kind = "s3", endpoints = ["embedded"], bucket = "bench", embedded = {} }'}
    closed = PACED.replace('constant = "100/s"', 'constant = "50/s"').replace("10s", "6s")
    file = campaign(tmp_path, subjects, head, closed)
    ended = plimsoll("campaign", "run", file)
    assert runs.exists(), ended.err
    assert "is ended by it" not in ended.err and "budget is used up" not in ended.err, ended.err
    runs_done = [e["run"] for e in ledger(runs) if e["entry"] == "done"]
    assert len(runs_done) == 2 and all(r["exit"] == 8 for r in runs_done), ended.err
    assert json.loads(plimsoll("campaign", "status", file, "--json").out)["to_go"] == 0
