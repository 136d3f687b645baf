"""Prices of one's own: figures of a run in money, its bound before it starts, and a budget that ends it."""

import json
import re
import socket
import threading

import pytest

pytestmark = pytest.mark.measures

HEAD = """version = 1
currency = "USD"
month = "30d"
[subjects.one]
date = "2026-11-23"
region = "here"
source = "this test"
"""
# Each request is a dollar: what is paid is what was counted.
A_DOLLAR_EACH = HEAD + """
[[subjects.one.requests]]
class = "any"
ops = ["put", "get", "stat", "list", "delete", "delete-batch", "copy", "multipart", "upload-part"]
price = 1
per = 1
"""
TRANSACTIONS = HEAD + """
[[subjects.one.requests]]
class = "transactions"
ops = ["read", "write", "fsync", "trim"]
price = 0.0005
per = 10000
unit = "256KiB"
"""
LOAD = ["--size", "4KiB", "--concurrency", "4", "--quiet"]


class Counting:
    """Between a client and a server: counts the requests."""

    def __init__(self, endpoint):
        self.server = ("127.0.0.1", int(endpoint.rsplit(":", 1)[1]))
        self.count = 0
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(self.server)
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.pump, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self.pump, args=(server, client, False), daemon=True).start()

    def pump(self, source, sink, counts):
        kept, mark = b"", b" HTTP/1.1\r\n"
        try:
            while data := source.recv(65536):
                if counts:
                    seen = kept + data
                    with self.lock:
                        self.count += seen.count(mark)
                    kept = seen[-(len(mark) - 1):]
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


@pytest.fixture
def counted(bucket_here):
    counting = Counting(bucket_here.server.endpoint)
    yield counting
    counting.listener.close()


@pytest.fixture
def prices(tmp_path):
    def write(text):
        path = tmp_path / "prices.toml"
        path.write_text(text)
        return str(path)

    return write


def put(bucket, counted, *flags):
    return ["object", "put", "--endpoint", counted.endpoint, "--bucket", bucket.name, *LOAD, *flags]


def figures(cost):
    return {f["name"]: f for f in cost["figures"]}


def test_what_a_run_sends_is_never_more_than_its_bound(plimsoll, bucket_here, counted, prices):
    file = prices(A_DOLLAR_EACH)
    command = put(bucket_here, counted, "--max-ops", "300", "--prices", file)
    said = plimsoll(*command, "--dry-run", server=bucket_here.server, check=True).out
    assert counted.count == 0
    bound = float(re.search(r"cost: at most ([0-9.]+) USD", said).group(1))
    done = plimsoll(*command, "--json", server=bucket_here.server)
    cost = done.summary["cost"]
    # The load is what it sent, to the request; all around it is within the bound, and the bound is no wild guess.
    assert figures(cost)["run"]["amount"]["value"] == 300
    assert 300 <= counted.count <= bound < 300 * 2 + 100, (counted.count, bound, said)
    assert cost["source"] == "this test" and len(cost["sha256"]) == 64
    # The same of the stored run, in each form.
    again = json.loads(plimsoll("cost", "last", "--json", check=True).out)
    assert figures(again)["run"] == figures(cost)["run"]
    text = plimsoll("cost", "last", "--prices", file, check=True).out
    assert "Prices of one, here, 2026-11-23, as given: this test" in text and "300 requests / 1 x 1 USD" in text
    assert "Cost in USD" in plimsoll("runs", "show", "last", check=True).out
    assert "### Cost in USD" in plimsoll("runs", "show", "last", "--markdown", check=True).out


def test_a_budget_refuses_before_and_ends_what_cannot_be_bounded(plimsoll, bucket_here, counted, prices):
    file = prices(A_DOLLAR_EACH)
    too_much = put(bucket_here, counted, "--max-ops", "5000", "--prices", file, "--budget-cost", "20USD")
    refused = plimsoll(*too_much, server=bucket_here.server)
    assert refused.code == 2 and counted.count == 0
    assert "may cost" in refused.err and "its budget is 20 USD" in refused.err and "--budget-cost" in refused.err
    # A closed loop has no bound: it ends where its requests come to the budget.
    ended = plimsoll(
        *put(bucket_here, counted, "--duration", "10m", "--warmup", "0s", "--prices", file, "--budget-cost", "2000USD", "--json"),
        server=bucket_here.server)
    assert ended.code == 8, (ended.code, ended.err)
    found = next(f for f in ended.summary["findings"] if f["name"] == "cost_budget_reached")
    spent = float(re.search(r"([0-9.]+) USD of 2000 USD were spent", found["text"]).group(1))
    assert spent >= 2000 and figures(ended.summary["cost"])["run"]["amount"]["value"] > 500
    assert ("more than that was sent" in found["text"]) == (spent > 2000)
    # What it says it spent is no less than what came to the server.
    assert counted.count <= spent
    assert not [o for o in bucket_here.client.list_objects_v2(Bucket=bucket_here.name).get("Contents", [])]


SIMULATED = """version = 1
[targets.disk]
kind = "sim"
base = "1ms"
[[stage]]
[[stage.workload]]
name = "disk"
mix = { read = 1 }
size = "4KiB"
concurrency = 16
pacing = { constant = "1100/s" }
stop = { duration = "60s" }
"""


def test_the_worst_month_of_a_disk(plimsoll, tmp_path, prices):
    """1,100 IOPS at 0.0005 USD for 10,000 are 142.56 USD in 30 days, on the virtual clock to the cent."""
    plan = tmp_path / "plan.toml"
    plan.write_text(SIMULATED)
    done = plimsoll("run", plan, "--prices", prices(TRANSACTIONS), "--json", "--quiet", check=True)
    rate = done.summary["workloads"][0]["ops_per_s"]
    month = figures(done.summary["cost"])["month_at_rate"]["amount"]
    assert month["value"] == pytest.approx(142.56, rel=1e-3)
    for end in ("value", "low", "high"):
        assert month[end] == pytest.approx(rate[end] * 2_592_000 / 10_000 * 0.0005, rel=1e-9)
    # A rate and an end make a bound, which a budget is held against.
    dear = prices(TRANSACTIONS.replace("price = 0.0005", "price = 100"))
    ended = plimsoll("run", plan, "--prices", dear, "--budget-cost", "1000USD", "--dry-run")
    # 1,100/s for 62 s and 16 in flight: 68,216 / 10,000 x 100.
    assert ended.code == 0 and "at most 682.16 USD" in ended.out, (ended.out, ended.err)
    refused = plimsoll("run", plan, "--prices", dear, "--budget-cost", "600USD")
    assert refused.code == 2 and "may cost 682.16 USD" in refused.err


def test_a_budget_is_overrun_by_a_slice_where_nothing_is_late(plimsoll, tmp_path, prices):
    """On the virtual clock: 16 in flight of 1 ms each are 1,600 reads a slice, a dollar each."""
    plan = tmp_path / "plan.toml"
    plan.write_text(SIMULATED.replace('pacing = { constant = "1100/s" }\n', "").replace("[[stage]]", '[[stage]]\nwarmup = "0s"', 1))
    dollar = prices(TRANSACTIONS.replace("price = 0.0005\nper = 10000", "price = 1\nper = 1"))
    texts = []
    for _ in range(2):
        ended = plimsoll("run", plan, "--prices", dollar, "--budget-cost", "5000USD", "--json", "--quiet")
        assert ended.code == 8, (ended.code, ended.err)
        found = next(f for f in ended.summary["findings"] if f["name"] == "cost_budget_reached")
        spent = figures(ended.summary["cost"])["run"]["amount"]["value"]
        assert 5000 <= spent <= 5000 + 2 * 1600 + 16, spent
        assert f"{spent:.0f} USD of 5000 USD were spent" in found["text"]
        texts.append(found["text"])
    assert texts[0] == texts[1]


def test_bad_prices_are_told_with_line_and_remedy(plimsoll, prices, tmp_path):
    base = ["object", "put", "--endpoint", "http://127.0.0.1:1", "--bucket", "b", "--prices"]
    typo = plimsoll(*base, prices(A_DOLLAR_EACH.replace("price = 1", "prise = 1")))
    assert typo.code == 2 and "line 12" in typo.err and "prise" in typo.err and "fix:" in typo.err
    other = plimsoll(*base, prices(A_DOLLAR_EACH), "--subject", "two")
    assert other.code == 2 and "no 'two'" in other.err and "one of: one" in other.err
    euros = plimsoll(*base, prices(A_DOLLAR_EACH), "--budget-cost", "20EUR")
    assert euros.code == 2 and "the budget is in EUR" in euros.err
    unpriced = plimsoll(*base, prices(A_DOLLAR_EACH.replace('"delete", ', "")), "--dry-run")
    assert unpriced.code == 2 and "no class for 'delete'" in unpriced.err
    gone = plimsoll(*base, str(tmp_path / "none.toml"))
    assert gone.code == 2 and "cannot be read" in gone.err
