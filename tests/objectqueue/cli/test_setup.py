"""A bucket from nothing: created, checked, with a page in it."""

from __future__ import annotations

import urllib.request
from typing import Any

import pytest

from tests.support.objectqueue.shell import DONE, TROUBLE, USAGE, Shell
from tests.support.s3.fixtures import Bucket
from tests.support.s3.proxy import S3Proxy


@pytest.fixture
def empty_shell(bucket: Bucket) -> Shell:
    """A shell whose bucket does not exist yet."""
    return Shell(Bucket(f"{bucket.name}-new", bucket.endpoint, bucket.raw))


@pytest.mark.req("OQ-218", "OQ-219", "OQ-066", "OQ-173", "OQ-009", "OQ-180", "OQ-X09")
def test_init_creates_everything_and_may_be_repeated(empty_shell: Shell) -> None:
    """Versioning, rules, CORS for browsers, and a page that can be opened; then tasks can be submitted."""
    raw, name = empty_shell.bucket.raw, empty_shell.bucket.name
    assert empty_shell.run("list").exit_code == TROUBLE
    first = empty_shell.out("init", QO_ARCHIVE_DAYS="30")
    assert "is created" in first and "/ui/index.html" in first
    state = _read_state(raw, name)
    assert "there" in empty_shell.out("init", QO_ARCHIVE_DAYS="30")
    assert _read_state(raw, name) == state
    assert state["versions"] == "Enabled"
    (cors,) = state["cors"]
    assert cors["AllowedOrigins"] == cors["AllowedHeaders"] == ["*"]
    assert set(cors["AllowedMethods"]) == {"GET", "PUT", "HEAD"}
    assert {"ready/", "leases/", "workers/"} <= {_read_prefix(each) for each in state["rules"]}
    archived = [each for each in state["rules"] if "And" in each["Filter"]]
    assert {each["Filter"]["And"]["Prefix"] for each in archived} == {"tasks/", "data/"}
    for each in archived:
        assert each["Filter"]["And"]["Tags"] == [{"Key": "qo-status", "Value": "archived"}]
        assert each["Expiration"]["Days"] == 30
    assert {"ui/index.html", "ui/app.js", "ui/spec.js"} <= set(empty_shell.bucket.keys("ui/"))
    assert empty_shell.run("submit", "--type", "echo").exit_code == DONE


@pytest.mark.req("OQ-009", "OQ-180", "OQ-199")
def test_the_page_is_public_and_nothing_else_is(empty_shell: Shell) -> None:
    """A browser gets it without a key; there is none in it, and tasks are not readable."""
    empty_shell.out("init", "--no-page")
    assert empty_shell.bucket.keys("ui/") == []
    url = empty_shell.json("ui", "deploy")["url"]
    with urllib.request.urlopen(url) as page:
        assert page.headers["content-type"].startswith("text/html")
        assert b"app.js" in page.read()
    task_id = empty_shell.submit()
    with pytest.raises(OSError, match="403"):
        urllib.request.urlopen(f"{url.partition('/ui/')[0]}/tasks/{task_id[0]}/{task_id}.json")
    for key in empty_shell.bucket.keys("ui/"):
        body = empty_shell.bucket.raw.get_object(Bucket=empty_shell.bucket.name, Key=key)["Body"].read()
        assert empty_shell.environ["AWS_SECRET_ACCESS_KEY"].encode() not in body


@pytest.mark.req("OQ-199")
def test_the_page_is_presigned_where_it_is_not_public(empty_shell: Shell) -> None:
    """By an address that opens it for a while; it is uploaded for that, and stays private."""
    empty_shell.out("init", "--no-page")
    url = empty_shell.out("ui", "presign", "--seconds", "10m")
    with urllib.request.urlopen(url) as page:
        assert page.headers["content-type"].startswith("text/html")
    assert "X-Amz-Expires=600&" in url
    with pytest.raises(OSError, match="403"):
        urllib.request.urlopen(url.partition("?")[0])
    assert empty_shell.json("ui", "presign")["seconds"] == 3600
    for wrong in ("8d", "0", "ever"):
        assert empty_shell.run("ui", "presign", "--seconds", wrong).exit_code == USAGE


@pytest.mark.req("OQ-X09", "OQ-017")
def test_doctor_reports_the_abilities_of_a_store(proxied_shell: Shell, s3_proxy: S3Proxy) -> None:
    """All is well here; where conditional writes are ignored, that is reported."""
    well = proxied_shell.run("doctor", "--json")
    assert well.exit_code == DONE, well.output
    s3_proxy.rule(having="if-match", strip=("if-match",), times=None)
    ill = proxied_shell.run("doctor")
    assert ill.exit_code == TROUBLE
    assert "wrong" in ill.stdout and "qo init" in ill.stderr
    assert proxied_shell.bucket.keys("trials/") == []


def _read_state(raw: Any, name: str) -> dict[str, Any]:
    return {
        "versions": raw.get_bucket_versioning(Bucket=name)["Status"],
        "cors": raw.get_bucket_cors(Bucket=name)["CORSRules"],
        "rules": raw.get_bucket_lifecycle_configuration(Bucket=name)["Rules"],
        "policy": raw.get_bucket_policy(Bucket=name)["Policy"],
    }


def _read_prefix(rule: dict[str, Any]) -> str | None:
    found: str | None = rule["Filter"].get("Prefix")
    return found
