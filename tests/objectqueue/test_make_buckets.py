"""Preparation of a bucket by a process of its own, as in the compose file."""

from __future__ import annotations

import pytest

from runtime.make_buckets import main
from tests.support.s3.fixtures import Bucket


def use(bucket: Bucket, monkeypatch: pytest.MonkeyPatch, **changes: str) -> None:
    for name, value in {**bucket.variables, **changes}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.req("OQ-X09")
def test_a_bucket_is_created_with_its_settings_and_page(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Versioning, the page, and existing objects stay when it is repeated."""
    name = f"{bucket.name}-made"
    use(bucket, monkeypatch, S3_BUCKET=name)
    assert main(["objectqueue"]) == 0
    assert f"The bucket {name} is created." in capsys.readouterr().out
    assert bucket.raw.get_bucket_versioning(Bucket=name)["Status"] == "Enabled"
    bucket.raw.head_object(Bucket=name, Key="ui/index.html")
    assert main(["objectqueue"]) == 0
    assert f"The bucket {name} is there." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "wrong"}, 1, "does not take the key"),
        ({"QO_ARCHIVE_DAYS": "soon"}, 2, "QO_ARCHIVE_DAYS"),
    ],
)
def test_an_error_is_one_line(
    bucket: Bucket,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    changes: dict[str, str],
    code: int,
    message: str,
) -> None:
    use(bucket, monkeypatch, **changes)
    assert main(["objectqueue"]) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


@pytest.mark.parametrize("words", [[], ["objectqueue", "more"], ["nothing"]])
def test_wrong_arguments_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert "usage: python -m runtime.make_buckets <system>" in capsys.readouterr().err
