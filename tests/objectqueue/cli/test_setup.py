"""A bucket from nothing: made, tried out, with a page in it."""

from __future__ import annotations

import urllib.request
from typing import Any

import pytest

from tests.support.objectqueue.shell import DONE, TROUBLE, USAGE, Shell
from tests.support.s3.fixtures import Bucket
from tests.support.s3.proxy import S3Proxy


@pytest.fixture
def nothing(bucket: Bucket) -> Shell:
    """Somebody whose bucket is still to be made."""
    return Shell(Bucket(f"{bucket.name}-new", bucket.endpoint, bucket.raw))


@pytest.mark.req("OQ-218", "OQ-219", "OQ-066", "OQ-173", "OQ-009", "OQ-180", "OQ-X09")
def test_init_makes_everything_and_may_be_repeated(nothing: Shell) -> None:
    """Versions, rules, access for browsers, and a page that can be opened; then tasks can be submitted."""
    raw, name = nothing.bucket.raw, nothing.bucket.name
    assert nothing.run("list").exit_code == TROUBLE
    first = nothing.out("init", QO_ARCHIVE_DAYS="30")
    assert "made" in first and "/ui/index.html" in first
    state = _state(raw, name)
    assert "there" in nothing.out("init", QO_ARCHIVE_DAYS="30")
    assert _state(raw, name) == state
    assert state["versions"] == "Enabled"
    (cors,) = state["cors"]
    assert cors["AllowedOrigins"] == cors["AllowedHeaders"] == ["*"]
    assert set(cors["AllowedMethods"]) == {"GET", "PUT", "HEAD"}
    assert {"ready/", "leases/", "workers/"} <= {_prefix(each) for each in state["rules"]}
    archived = [each for each in state["rules"] if "And" in each["Filter"]]
    assert {each["Filter"]["And"]["Prefix"] for each in archived} == {"tasks/", "data/"}
    for each in archived:
        assert each["Filter"]["And"]["Tags"] == [{"Key": "qo-status", "Value": "archived"}]
        assert each["Expiration"]["Days"] == 30
    assert {"ui/index.html", "ui/app.js", "ui/spec.js"} <= set(nothing.bucket.keys("ui/"))
    assert nothing.run("submit", "--type", "echo").exit_code == DONE


@pytest.mark.req("OQ-009", "OQ-180", "OQ-199")
def test_the_page_is_open_to_everybody_and_nothing_else_is(nothing: Shell) -> None:
    """A browser gets it without a key; there is none in it, and tasks are not to be had."""
    nothing.out("init", "--no-page")
    assert nothing.bucket.keys("ui/") == []
    url = nothing.json("ui", "deploy")["url"]
    with urllib.request.urlopen(url) as page:
        assert page.headers["content-type"].startswith("text/html")
        assert b"app.js" in page.read()
    task_id = nothing.submitted()
    with pytest.raises(OSError, match="403"):
        urllib.request.urlopen(f"{url.partition('/ui/')[0]}/tasks/{task_id[0]}/{task_id}.json")
    for key in nothing.bucket.keys("ui/"):
        body = nothing.bucket.raw.get_object(Bucket=nothing.bucket.name, Key=key)["Body"].read()
        assert nothing.environ["AWS_SECRET_ACCESS_KEY"].encode() not in body


@pytest.mark.req("OQ-199")
def test_the_page_is_lent_where_nobody_may_read_it(nothing: Shell) -> None:
    """By an address that opens it for a while; it is put there for that, and stays closed to others."""
    nothing.out("init", "--no-page")
    url = nothing.out("ui", "presign", "--seconds", "10m")
    with urllib.request.urlopen(url) as page:
        assert page.headers["content-type"].startswith("text/html")
    assert "X-Amz-Expires=600&" in url
    with pytest.raises(OSError, match="403"):
        urllib.request.urlopen(url.partition("?")[0])
    assert nothing.json("ui", "presign")["seconds"] == 3600
    for wrong in ("8d", "0", "ever"):
        assert nothing.run("ui", "presign", "--seconds", wrong).exit_code == USAGE


@pytest.mark.req("OQ-X09", "OQ-017")
def test_doctor_says_what_a_store_does(proxied: Shell, s3_proxy: S3Proxy) -> None:
    """All is well here; where conditions are not kept, that is what is wrong."""
    well = proxied.run("doctor", "--json")
    assert well.exit_code == DONE, well.output
    s3_proxy.rule(having="if-match", strip=("if-match",), times=None)
    ill = proxied.run("doctor")
    assert ill.exit_code == TROUBLE
    assert "wrong" in ill.stdout and "qo init" in ill.stderr
    assert proxied.bucket.keys("trials/") == []


def _state(raw: Any, name: str) -> dict[str, Any]:
    return {
        "versions": raw.get_bucket_versioning(Bucket=name)["Status"],
        "cors": raw.get_bucket_cors(Bucket=name)["CORSRules"],
        "rules": raw.get_bucket_lifecycle_configuration(Bucket=name)["Rules"],
        "policy": raw.get_bucket_policy(Bucket=name)["Policy"],
    }


def _prefix(rule: dict[str, Any]) -> str | None:
    found: str | None = rule["Filter"].get("Prefix")
    return found
