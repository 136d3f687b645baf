"""A fleet's run in a browser: its agents, and one that is lost."""

import re

from conftest import wait_until
from test_fleet import AGENTS, LOAD, fleet, three  # noqa: F401 (fixtures)
from test_serve import Told, ask, data_of


def test_agents_stand_slowest_first_and_who_is_lost_is_said_to_be_missing(three, background, embedded, state, bucket_here):  # noqa: F811
    run = background("object", "put", *bucket_here.flags(), *LOAD, "--duration", "120s", "--fleet", "--deadman", "3s",
                     "--on-agent-loss", "continue", "--live", server=embedded, env=state)
    at = Told(run).address()
    now = lambda: data_of(ask(at, at.path)[2])["runs"][0]
    wait_until(lambda: len(now()["summary"].get("agents", [])) == 3, 60, "three agents")
    rates = [a["ops_per_s"] for a in now()["summary"]["agents"]]
    assert rates == sorted(rates) and now()["now"]["missing"] == []
    metrics = ask(at, "/metrics")[2]
    assert sorted(re.findall(r'plimsoll_agent_ops_per_second\{run="[^"]+",agent="([^"]+)"\}', metrics)) == AGENTS
    assert re.search(r"^plimsoll_agents_lost\{[^}]*\} 0$", metrics, re.M), metrics

    three["lg-2"].process.kill()
    wait_until(lambda: any("lg-2 is lost" in m for m in now()["now"]["missing"]), 60, "the loss")
    wait_until(lambda: re.search(r"^plimsoll_agents_lost\{[^}]*\} 1$", ask(at, "/metrics")[2], re.M), 60, "its count")
    token = re.search(r'name="plimsoll-stop" content="(\w+)"', ask(at, at.path)[2]).group(1)
    assert ask(at, at.path + "/stop", "POST", origin=f"http://127.0.0.1:{at.port}", x_plimsoll_token=token)[0] == 202
    assert run.wait(timeout=90) == 130
