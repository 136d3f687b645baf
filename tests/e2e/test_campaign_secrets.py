"""Secrets in a campaign's commands, labels and URLs: in no trace that it leaves, on the disk or on a terminal, and in no publication."""

import signal
from pathlib import Path

from conftest import wait_until
from test_campaign import SIM, campaign, ledger

ONE = '[[workload]]\nname = "put"\nmix = { put = 1 }\nconcurrency = [4]\nduration = "10s"\nwarmup = "1s"\n'
SECRETS = ["KEYmc1", "Secretmc1", "calvin-user", "dbhunter22", "flaghunter22", "envhunter22", "jsonhunter22", "saidhunter22", "sas%2Bhunter", "amzhunter22",
           "labelhunter22"]
COMMANDS = [
    "true mc alias set tier http://127.0.0.1:9 KEYmc1 Secretmc1",
    "true curl --user root:calvin-user http://127.0.0.1:9",
    "true mysql -uroot -pdbhunter22 tiers",
    "true tool --password flaghunter22 --size 4KiB # a password is needed, mkdir -p /data/new",
    "MINIO_ROOT_PASSWORD=envhunter22 true",
    """true curl -d '{"secretKey":"jsonhunter22"}' http://127.0.0.1:9""",
]
LABELS = ('labels = { tier = "premium", url = "https://a.example.net/c?sv=2022&sig=sas%2Bhunter", '
          'object = "http://h/b/k?X-Amz-Algorithm=A&X-Amz-Signature=amzhunter22", token = "labelhunter22" }')


def traces(place):
    """All that is below it, as text; names, too."""
    files = [p for p in place.rglob("*") if p.is_file()]
    assert files
    return {str(p.relative_to(place)): p.read_bytes().decode(errors="replace") for p in files}


def without(secrets, text, where):
    found = [s for s in secrets if s in text]
    assert not found, (where, found, text[max(0, text.find(found[0]) - 80) :][:200])


def test_secrets_of_commands_and_labels_leave_nowhere(plimsoll, runs, tmp_path):
    quoted = ", ".join(f"'''{c}'''" for c in COMMANDS)
    file = campaign(tmp_path, {"a": f"before = [{quoted}]\n{LABELS}\n{SIM}"}, "repeat = { at_least = 1 }", ONE)
    of_commands = [s for s in SECRETS if s in quoted]
    seen = plimsoll("campaign", "run", file)
    assert seen.code == 2 and "--allow-hooks" in seen.err, seen.err
    without(SECRETS, seen.err, "the commands that are shown")
    # What is done is seen all the same, and words that are no secrets.
    for shown in ("mc alias set tier http://127.0.0.1:9 (secret left out) (secret left out)", "# a password is needed, mkdir -p /data/new"):
        assert shown in seen.err, seen.err
    ran = plimsoll("campaign", "run", file, "--allow-hooks", check=True)
    without(of_commands, ran.out + ran.err, "the terminal")
    for path, text in traces(runs / "campaigns").items():
        without(of_commands, text, path)
    # The copy without them is a copy all the same: the file is as it was, and an edit of it is named without them.
    plimsoll("campaign", "resume", file, "-q", "--allow-hooks", check=True)
    file.write_text(file.read_text().replace("flaghunter22", "otherhunter22").replace("4KiB", "8KiB"))
    edited = plimsoll("campaign", "resume", file, "--allow-hooks")
    assert edited.code == 2 and "8KiB" in edited.err, edited.err
    without([*SECRETS, "otherhunter22"], edited.err, "the edit")
    file.write_text(file.read_text().replace("otherhunter22", "flaghunter22").replace("8KiB", "4KiB"))

    site = tmp_path / "site"
    told = plimsoll("publish", file, "-o", site, check=True)
    without(SECRETS, told.out + told.err, "publish")
    texts = traces(site)
    for path, text in texts.items():
        without(SECRETS, text, path)
    assert "premium" in texts["tables/results.csv"] and "mkdir -p /data/new" in texts["campaign.toml"]
    assert "1 cell," in plimsoll("campaign", "run", site / "campaign.toml", "--dry-run", check=True).out
    for command in (("campaign", "run", site / "campaign.toml"), ("replicate", site, "-o", tmp_path / "again.toml")):
        left = plimsoll(*command, "--allow-hooks", "--runs-dir", tmp_path / "other")
        assert left.code == 2 and "secrets were left out of the file's commands" in left.err, left.err
    # The plans of runs have the labels, and nothing can be left out of a copy.
    copies = plimsoll("publish", file, "-o", tmp_path / "copies", "--with-runs")
    assert copies.code == 2 and "plan.toml line" in copies.err and "leave out --with-runs" in copies.err, copies.err
    without(SECRETS, copies.err, "the refusal")
    assert not (tmp_path / "copies").exists()
    single = plimsoll("publish", "last", "-o", tmp_path / "single", check=True)
    for path, text in traces(tmp_path / "single").items():
        without(SECRETS, text, path)
    assert "with their directories" not in single.out
    assert plimsoll("publish", "last", "-o", tmp_path / "copies", "--with-runs").code == 2


def test_what_a_command_that_fails_says_is_told_without_its_secrets(plimsoll, runs, tmp_path):
    says = "set -x; true --token flaghunter22; echo denied: flaghunter22, password=saidhunter22 >&2; exit 3"
    file = campaign(tmp_path, {"a": f"before = ['''{says}''']\n{SIM}", "b": SIM}, "repeat = { at_least = 1 }", ONE)
    ran = plimsoll("campaign", "run", file, "--allow-hooks")
    assert ran.code == 5 and "denied: (secret left out)" in ran.err, ran.err
    again = plimsoll("campaign", "status", file)
    for what, text in {"run": ran.out + ran.err, "status": again.out + again.err, **traces(runs / "campaigns")}.items():
        without(SECRETS, text, what)
    assert any(e["entry"] == "hook" and "secret left out" in (e["problem"] or "") for e in ledger(runs))


def test_a_killed_session_leaves_no_secret_in_its_note(plimsoll, background, runs, tmp_path):
    mark = tmp_path / "mark"
    hangs = f"before = ['''echo > {mark}; sleep 1000 # --password flaghunter22''']\n{SIM}"
    file = campaign(tmp_path, {"a": hangs}, "repeat = { at_least = 1 }", ONE)
    process = background("campaign", "run", file, "--allow-hooks")
    wait_until(lambda: mark.exists(), 60, "the command")
    process.send_signal(signal.SIGKILL)
    process.wait()
    files = traces(runs / "campaigns")
    assert any(path.endswith("hook.json") for path in files)
    for path, text in files.items():
        without(SECRETS, text, path)
    file.write_text(file.read_text().replace("sleep 1000", "true"))
    resumed = plimsoll("campaign", "resume", file, "--allow-hooks", "--accept-changes")
    # Shown once more, because it was edited: and the one that was left is ended and told by the next.
    resumed = plimsoll("campaign", "resume", file, "--allow-hooks", "--accept-changes", check=True)
    assert "was ended" in resumed.err, resumed.err
    without(SECRETS, resumed.err, "resume")
    assert not Path(next(runs.glob("campaigns/*"))).joinpath("hook.json").exists()
