"""Temporary keys: each way to them, their renewal while a load is on, and what is said when they cannot be had or expire."""

import hashlib
import json
import os
import subprocess
import time

import pytest
from cloud import CONTAINER_TOKEN, SSO_TOKEN, STATIC, WEB_TOKEN, Cloud, stamp

LOAD = ["--bucket", "b", "--size", "1KiB", "--warmup", "0s", "--concurrency", "2", "--json"]


@pytest.fixture
def cloud():
    with Cloud() as cloud:
        yield cloud


def environment(cloud, home, way):
    """What a machine has on which keys come this way; nothing of the one that the tests run on."""
    home.mkdir(exist_ok=True)
    (home / ".aws/sso/cache").mkdir(parents=True, exist_ok=True)
    (home / "jwt").write_text(WEB_TOKEN + "\n")
    (home / "container").write_text(CONTAINER_TOKEN)
    (home / ".aws/config").write_text(
        "[profile role]\nrole_arn = arn:aws:iam::123456789012:role/bench\nsource_profile = base\nexternal_id = ext 1\n"
        f"[profile base]\naws_access_key_id = {STATIC[0]}\naws_secret_access_key = {STATIC[1]}\n"
        "[profile sso]\nsso_session = corp\nsso_account_id = 123456789012\nsso_role_name = bench\n"
        "[sso-session corp]\nsso_region = eu-west-1\nsso_start_url = https://corp.example/start\n"
    )
    session = {"accessToken": SSO_TOKEN, "expiresAt": stamp(time.time() + 3600)}
    (home / f".aws/sso/cache/{hashlib.sha1(b'corp').hexdigest()}.json").write_text(json.dumps(session))
    return {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "PLIMSOLL_"))} | {"HOME": str(home)} | {
        "AWS_REGION": "eu-west-1", "AWS_ENDPOINT_URL_S3": cloud.storage.endpoint,
    } | {
        "web": {"AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/bench", "AWS_WEB_IDENTITY_TOKEN_FILE": str(home / "jwt"),
                "AWS_ENDPOINT_URL_STS": cloud.url},
        "role": {"AWS_PROFILE": "role", "AWS_ENDPOINT_URL_STS": cloud.url},
        "sso": {"AWS_PROFILE": "sso", "AWS_ENDPOINT_URL_SSO": cloud.url},
        "container": {"AWS_CONTAINER_CREDENTIALS_FULL_URI": cloud.url + "/v1/credentials",
                      "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(home / "container")},
        "instance": {"AWS_EC2_METADATA_SERVICE_ENDPOINT": cloud.url},
    }[way]


@pytest.fixture
def call(plimsoll, cloud, tmp_path):
    """Runs the binary where keys come this way, and holds all that it said and wrote against every secret there was."""

    class Where:
        def env(self):
            return environment(cloud, tmp_path / "home", self.way)

    def call(way, *args, env=None):
        where = Where()
        where.way = way
        result = plimsoll(*args, server=where, env=env)
        nowhere(cloud, result, tmp_path / "runs")
        return result

    return call


def nowhere(cloud, result, runs):
    said = [("stdout", result.out.encode()), ("stderr", result.err.encode())]
    for path in runs.rglob("*") if runs.exists() else []:
        if path.is_file():
            said.append((path, path.read_bytes()))
            if path.suffix == ".zst":
                said.append((path, subprocess.run(["zstd", "-dcq", path], stdout=subprocess.PIPE, check=False).stdout))
    for secret in cloud.secrets():
        found = [str(where) for where, data in said if secret.encode() in data]
        assert not found, f"a secret is in {found}"


def all_ok(result):
    """All that was asked of the storage was done. Twenty operations are no rate, and on a busy machine no load comes in time: whether it is
    valid is not the question."""
    assert result.code in (0, 3), result.err
    assert set(result.workload("put")["outcomes"]) == {"ok"}, result.workload("put")["outcomes"]
    return result


@pytest.mark.parametrize("way, told", [
    ("web", "role bench by web identity"), ("role", "role bench with profile base"), ("sso", "SSO session of profile sso"),
    ("container", "container"), ("instance", "instance (role bench-role)"),
])
def test_each_way_leads_to_keys_that_the_storage_takes(call, cloud, way, told):
    result = all_ok(call(way, "object", "put", "--max-ops", "20", *LOAD))
    notes = result.summary["environment"]["notes"]
    assert notes["credentials"].startswith(told) and "renewed" in notes["credentials"], notes
    assert "123456789012" not in result.out, "the account's number is nobody's business"
    assert not [k for k in cloud.storage.objects if k.startswith("plimsoll/")], "cleaned up with the same keys"
    call(way, "runs", "show", "last")


def test_a_result_says_which_machine_it_was_unless_that_is_not_wanted(call, cloud):
    identity = all_ok(call("instance", "object", "put", "--max-ops", "20", *LOAD)).summary["environment"]["identity"]
    assert (identity["cloud"], identity["instance_type"], identity["zone"]) == ("aws", "m7i.large", "eu-west-1b"), identity
    assert not any("123456789012" in v or "10.1.2.3" in v for v in identity.values()), identity
    cloud.asked.clear()
    result = all_ok(call("instance", "object", "put", "--max-ops", "20", "--no-identity", *LOAD))
    assert "identity" not in result.summary["environment"]
    assert not [path for _, path in cloud.asked if "instance-identity" in path]


def slow(_):
    time.sleep(8)
    return True


def garbage(handler):
    handler.say(200, "<html>" + "x" * 1000)
    return True


def redirects(handler):
    handler.say(307, "", [("Location", "http://127.0.0.1:1/steal")])
    return True


def huge(handler):
    handler.say(200, b"[" + b"0," * (4 << 20))
    return True


@pytest.mark.parametrize("way, odd, told", [
    ("instance", slow, ["did not answer within 1s", "hop limit"]),
    ("container", slow, ["did not answer within 5s"]),
    ("web", garbage, ["STS at http://127.0.0.1", "gave no"]),
    ("role", redirects, ["redirect (HTTP 307), which is not followed"]),
    ("sso", huge, ["longer than expected"]),
])
def test_who_misbehaves_is_named_and_nothing_is_done(call, cloud, way, odd, told):
    cloud.odd = odd
    result = call(way, "object", "put", "--max-ops", "20", *LOAD)
    assert result.code == 2, result.err
    words = " ".join(result.err.split())
    assert all(t in words for t in told), result.err
    assert not cloud.storage.seen


def test_a_token_that_sts_repeats_is_not_shown(call, cloud, tmp_path):
    cloud.odd = lambda h: h.say(403, f"<ErrorResponse><Error><Code>InvalidIdentityToken</Code><Message>{WEB_TOKEN}</Message></Error></ErrorResponse>") or True
    result = call("web", "object", "put", "--max-ops", "20", *LOAD)
    assert result.code == 2 and "InvalidIdentityToken" in result.err, result.err


def test_keys_of_ten_seconds_are_renewed_and_no_operation_fails(call, cloud):
    cloud.lasts = 10
    result = all_ok(call("web", "object", "put", "--rate", "40/s", "--duration", "25s", *LOAD))
    assert len(cloud.issued) >= 3 and "V25" not in result.codes(), (len(cloud.issued), result.codes())


def test_keys_that_nobody_renews_are_told_before_dated_and_void_the_result(call, cloud):
    cloud.lasts = 6
    key, secret, token, expires = cloud.issue()
    env = {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret, "AWS_SESSION_TOKEN": token, "AWS_CREDENTIAL_EXPIRATION": expires}
    result = call("instance", "object", "put", "--rate", "40/s", "--duration", "12s", "--keep", *LOAD, env=env)
    said = " ".join(result.err.split())
    assert f"expire at {expires}, before this load would end" in said, result.err
    assert result.code == 3 and result.summary["valid"] is False, (result.code, result.err)
    found = [f for f in result.summary["findings"] if f["code"] == "V25"]
    assert len(found) == 1 and expires in found[0]["text"] and "nothing here can renew them" in found[0]["text"], result.summary["findings"]
    w = result.workload("put")
    refused = w["outcomes"].get("http_4xx", 0)
    # At 40/s some six seconds of either, less what a busy machine did not send.
    assert refused > 40 and 0 < w["outcomes"]["ok"] <= 7 * 40, w["outcomes"]
    assert "Q18" in result.codes()
