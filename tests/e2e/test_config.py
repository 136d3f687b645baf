"""A file of defaults: what it gives, what comes before it, what is refused in it, and that a run can be repeated without it."""

import json

import pytest
from conftest import ROOT

PLAN = ROOT / "plans" / "sim.toml"


@pytest.fixture
def config(tmp_path):
    file = tmp_path / "config" / "plimsoll" / "config.toml"
    file.parent.mkdir(parents=True)
    return file


def rows(text):
    """Flag to the rest of its row."""
    return {line.split()[0]: " ".join(line.split()[1:]) for line in text.splitlines() if line.strip().startswith("--")}


def test_each_value_is_shown_with_where_it_is_from(plimsoll, config, runs):
    assert plimsoll("config", "path", check=True).out.strip() == str(config)
    assert plimsoll("config", "show", check=True).out == ""
    config.write_text('[defaults]\nquiet = true\n[object]\nbucket = "lab"\n[object.put]\nconcurrency = 32\nlabel = ["a=b", "c=d"]\n')
    shown = rows(plimsoll("config", "show", "object", "put", "--size", "4KiB", "--concurrency", "8", check=True).out)
    assert shown["--concurrency"] == "8 flag" and shown["--size"] == "4KiB flag"
    assert shown["--bucket"] == "lab file (object.bucket)" and shown["--label"] == "a=b, c=d file (object.put.label)"
    assert shown["--runs-dir"] == f"{runs} environment (PLIMSOLL_RUNS)" and shown["--ring"] == "auto built-in"
    assert shown["--quiet"] == "true file (defaults.quiet)" and shown["--rate"] == "not set"
    dry = plimsoll("object", "put", "--endpoint", "http://h", "--size", "4KiB", "--dry-run", check=True).out
    assert "concurrency = 32" in dry and 'bucket = "lab"' in dry and 'a = "b"' in dry
    typed = plimsoll("object", "put", "--endpoint", "http://h", "--concurrency", "3", "--dry-run", check=True).out
    assert "concurrency = 3" in typed
    other = plimsoll("object", "put", "--endpoint", "http://h", "--bucket", "b", "--dry-run", env={"PLIMSOLL_CONFIG": "/dev/null"})
    assert "concurrency = 32" not in other.ok().out


def test_what_the_file_gave_is_in_the_command_that_repeats_the_run(plimsoll, config):
    config.write_text('[run]\nlabel = ["site=lab"]\n[defaults]\nquiet = true\n')
    made = plimsoll("run", PLAN, "--oneline", check=True)
    assert made.err == ""
    summary = plimsoll("report", "last", "--json", check=True).summary
    assert summary["labels"] == {"site": "lab"} and "--label site=lab" in summary["rerun"]


@pytest.mark.parametrize(
    "text, why",
    [
        ("[object.put]\nconcurency = 4\n", "object.put.concurency"),
        ("[objekt]\nsize = 1\n", "[objekt]"),
        ("[object.put]\nconcurrency = \n", "line 2"),
        ("[object.put]\nconcurrency = 'many'\n", "object.put.concurrency"),
        ("[block]\ndestroy-data = '/dev/sdz'\n", "cannot be a default"),
        ("[object]\nsecret-key = 'geheim123'\n", "a key, a password or a token"),
        ("[object]\nendpoint = 'http://me:geheim123@h'\n", "a key, a password or a token"),
    ],
)
def test_what_is_no_default_is_refused_with_place_and_remedy(plimsoll, config, text, why):
    config.write_text(text)
    told = plimsoll("object", "put", "--endpoint", "http://h", "--bucket", "b", "--dry-run")
    assert told.code == 2 and why in told.err and "fix:" in told.err and str(config) in told.err, told
    assert "geheim" not in told.err + told.out


@pytest.mark.parametrize(
    "text, words, place",
    [
        ("", ["--concurrency", "x"], "in the command: invalid value 'x' for '--concurrency"),
        ("[object.put]\nconcurrency = 'x'\n", [], "object.put.concurrency: invalid value 'x'"),
        ("", ["--concurency", "8"], "in the command: unexpected argument '--concurency'"),
    ],
)
def test_a_value_that_the_command_refuses_is_not_shown_as_none(plimsoll, config, text, words, place):
    config.write_text(text)
    told = plimsoll("config", "show", "object", "put", *words)
    assert told.code == 2 and place in told.err and "fix:" in told.err and told.out == "", told
    # What the command lacks besides is no matter.
    config.write_text("")
    assert rows(plimsoll("config", "show", "object", "put", check=True).out)["--size"] == "4KiB built-in"


def test_servers_that_runs_start_have_no_defaults(plimsoll, config):
    """A run starts `plimsoll target` itself: somebody's taste must not change it, and a broken file must not stop it."""
    config.write_text("[target.s3]\nno-sync = true\n")
    told = plimsoll("runs", "list")
    assert told.code == 2 and "takes no defaults" in told.err
    config.write_text('[defaults]\nlabel = ["from=file"]\n')
    made = plimsoll(
        "object", "put", "--endpoint", "embedded", "--size", "4KiB", "--duration", "1s", "--warmup", "0s", "--json", "-q"
    )
    assert made.code in (0, 3), made
    assert json.loads(made.out)["labels"]["from"] == "file"


def test_a_named_file_that_is_not_there_is_refused(plimsoll, tmp_path, config):
    config.write_text("[defaults]\nquiet = true\n")
    for missing in (tmp_path / "none.toml", config / "below-a-file"):
        told = plimsoll("runs", "list", env={"PLIMSOLL_CONFIG": str(missing)})
        assert told.code == 2 and f"PLIMSOLL_CONFIG names {missing}" in told.err and "fix:" in told.err, told
    # Nobody named the usual place: it may be empty.
    config.unlink()
    assert plimsoll("runs", "list").code == 0


def test_every_key_that_is_listed_is_one_of_the_file(plimsoll, config):
    keys = [line.split() for line in plimsoll("config", "keys", check=True).out.splitlines() if " --" in line]
    assert all(key == flag.removeprefix("--") for key, flag, *_ in keys) and len(keys) > 100
    assert {"runs-dir", "quiet", "endpoint"} <= {k[0] for k in keys} and not {"json", "destroy-data", "help"} & {k[0] for k in keys}
    # What takes no value is taken as true, all of it at once; of commands that are not given.
    switches = [k[0] for k in keys if k[2:5] == ["true", "or", "false"]]
    config.write_text("[object]\n" + "".join(f"{k} = true\n" for k in ("keep", "verify") if k in switches))
    assert plimsoll("config", "show", check=True).out.count("plimsoll object") == 2
    put = plimsoll("config", "keys", "object", "put", check=True).out
    assert "--concurrency" in put and "--iodepth" not in put
    wrong = plimsoll("config", "keys", "objekt")
    assert wrong.code == 2 and "there is no such command" in wrong.err and "fix:" in wrong.err
