"""A bucket made ready by a process of its own, as the compose file has it."""

from __future__ import annotations

import pytest

from runtime.make_buckets import main
from tests.support.s3.fixtures import Bucket


def use(bucket: Bucket, monkeypatch: pytest.MonkeyPatch, **changes: str) -> None:
    for name, value in {**bucket.variables, **changes}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.req("OQ-X09")
def test_a_bucket_is_made_with_all_that_belongs_to_it(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Versions, the page, and whatever was there already when it is done again."""
    name = f"{bucket.name}-made"
    use(bucket, monkeypatch, S3_BUCKET=name)
    assert main(["objectqueue"]) == 0
    assert f"The bucket {name} is made." in capsys.readouterr().out
    assert bucket.raw.get_bucket_versioning(Bucket=name)["Status"] == "Enabled"
    bucket.raw.head_object(Bucket=name, Key="ui/index.html")
    assert main(["objectqueue"]) == 0
    assert f"The bucket {name} is there." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "wrong"}, 1, "does not take the key"),
        ({"QO_ARCHIVE_DAYS": "soon"}, 2, "QO_ARCHIVE_DAYS"),
    ],
)
def test_what_is_wrong_is_one_line(
    bucket: Bucket,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    changes: dict[str, str],
    code: int,
    said: str,
) -> None:
    use(bucket, monkeypatch, **changes)
    assert main(["objectqueue"]) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


@pytest.mark.parametrize("words", [[], ["objectqueue", "more"], ["nothing"]])
def test_wrong_words_are_told(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert "usage: python -m runtime.make_buckets <system>" in capsys.readouterr().err
