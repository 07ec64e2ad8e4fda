"""The wire schema of the taskqueue: a golden walk over the compiled descriptors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf.descriptor import FieldDescriptor

from tests.support.generated.descriptors import (
    FILES,
    INTERNAL,
    PUBLIC,
    enums,
    fields,
    format_type,
    messages,
    methods,
)

ROOT = Path(__file__).parents[2]
PUBLIC_METHODS = ["SubmitJob", "GetJobStatus", "GetJobResult", "CancelJob", "ListJobs"]
INTERNAL_METHODS = {
    "JobInternalService": [
        *("CreateJob", "DeleteJobIfStatus", "GetJobRecord"),
        *("ListJobRecords", "TransitionJobStatus", "SetCancelRequested"),
    ],
    "QueueInternalService": ["EnqueueJob", "DequeueJob", "RemoveJobIfPresent"],
    "CoordinatorInternalService": ["WorkerHeartbeat", "FetchWork", "ReportWorkOutcome"],
    "ResultInternalService": ["StoreResult", "GetResult"],
}
mark = pytest.mark


@pytest.mark.req("CH-11")
def test_a_method_takes_and_gives_the_messages_of_its_name() -> None:
    """Every method has a request and a response named after it, both in its own file."""
    for file in FILES:
        for service in file.services_by_name.values():
            for method in service.methods:
                assert method.input_type.full_name == f"{file.package}.{method.name}Request"
                assert method.output_type.full_name == f"{file.package}.{method.name}Response"


@pytest.mark.parametrize(
    ("name", "values"),
    [
        pytest.param(
            "JobStatus",
            ["JOB_STATUS_UNSPECIFIED", "QUEUED", "RUNNING", "DONE", "FAILED", "CANCELED"],
            marks=mark.req("TQ-024"),
        ),
        pytest.param(
            "JobOutcome",
            [f"JOB_OUTCOME_{word}" for word in ("UNSPECIFIED", "SUCCEEDED", "FAILED", "CANCELED")],
            marks=mark.req("TQ-025"),
        ),
        pytest.param(
            "JobSort",
            ["JOB_SORT_UNSPECIFIED", "CREATED_AT_DESC", "CREATED_AT_ASC"],
            marks=mark.req("TQ-026"),
        ),
    ],
)
def test_an_enum_counts_from_zero_in_this_order(name: str, values: list[str]) -> None:
    """The values of an enum and their numbers are exactly these."""
    found = enums(*FILES)[name]
    assert {value.name: value.number for value in found.values} == {
        value: number for number, value in enumerate(values)
    }


@pytest.mark.req("CH-10")
def test_only_the_internal_file_knows_outcomes() -> None:
    """A worker's report is not for clients, so its enum is internal."""
    assert list(enums(INTERNAL)) == ["JobOutcome", "Presence"]
    assert sorted(enums(PUBLIC)) == ["JobSort", "JobStatus"]


@pytest.mark.req("TQ-001", "TQ-206", "TQ-011")
def test_the_public_file_has_one_service_of_five_methods() -> None:
    """Clients can call five unary methods of one service, and nothing else."""
    assert methods(PUBLIC) == {"TaskQueuePublicService": PUBLIC_METHODS}


@pytest.mark.req("TQ-010", "TQ-206", "TQ-011")
def test_the_internal_file_has_fourteen_methods() -> None:
    """The four internal services have fourteen methods between them, these and no others."""
    assert methods(INTERNAL) == INTERNAL_METHODS
    assert sum(map(len, INTERNAL_METHODS.values())) == 14


@pytest.mark.req("TQ-001")
def test_no_method_streams() -> None:
    """Every call is one request and one answer."""
    for file in FILES:
        for service in file.services_by_name.values():
            assert not any(method.client_streaming or method.server_streaming for method in service.methods)


@pytest.mark.req("TQ-008", "CH-02")
def test_the_control_plane_of_workers_is_not_public() -> None:
    """Liveness, work retrieval and reports are unknown to the public file."""
    text = str(PUBLIC.serialized_pb)
    assert not [name for name in INTERNAL_METHODS["CoordinatorInternalService"] if name in text]


@pytest.mark.req("TQ-028")
def test_nothing_has_a_priority() -> None:
    """No message has a field about priority in this version."""
    assert not [field.full_name for field in fields(*FILES) if "priority" in field.name]


@pytest.mark.req("TQ-050")
def test_there_is_no_message_for_errors() -> None:
    """Errors are codes; the schema has no message for them."""
    assert not [name for name in messages(*FILES) if "Error" in name]


def expected_type(field: FieldDescriptor) -> str | None:
    """The type that the name of a field asks for."""
    endings = {
        "_id": "string",
        "_at_ms": "int64",
        "_ms": "uint32",
        "output_bytes": "bytes",
        "_token": "string",
    }
    return next((kind for ending, kind in endings.items() if field.name.endswith(ending)), None)


@pytest.mark.req("TQ-051")
def test_the_same_kind_of_thing_has_the_same_type_everywhere() -> None:
    """Ids are text, times are 64-bit, durations unsigned 32-bit, and only outputs are bytes, but for what is
    kept and never sent."""
    for field in fields(*FILES):
        assert format_type(field) == (expected_type(field) or format_type(field)), field.full_name
        is_output = field.name == "output_bytes" or field.full_name.endswith(".JobRow.spec")
        assert (format_type(field) == "bytes") == is_output, field.full_name


@pytest.mark.req("TQ-051")
def test_unset_text_is_empty_text() -> None:
    """No scalar can be distinguished from its zero value, so unset text is the empty string."""
    for field in fields(*FILES):
        assert field.message_type is not None or not field.has_presence, field.full_name


@pytest.mark.req("TQ-205")
def test_there_are_two_files_and_no_third() -> None:
    """One public and one internal file exist, each with its package, and neither needs another."""
    assert sorted(path.name for path in (ROOT / "proto").glob("taskqueue*")) == [INTERNAL.name, PUBLIC.name]
    assert {file.name: file.package for file in FILES} == {
        "taskqueue_public.proto": "taskqueue.v1",
        "taskqueue_internal.proto": "taskqueue.internal.v1",
    }
    assert [each.name for each in INTERNAL.dependencies] == [PUBLIC.name]
    assert not PUBLIC.dependencies


@pytest.mark.req("TQ-207")
def test_no_type_is_defined_twice() -> None:
    """A type that clients see is defined in the public file, and there only."""
    names = [{*messages(file), *enums(file)} for file in FILES]
    assert not names[0] & names[1]
    assert {"JobStatus", "JobSort", "JobSpec", "JobSummary", "PageRequest", "PageResponse"} <= names[0]


@pytest.mark.req("TQ-211")
def test_client_messages_are_flat_and_tell_nothing_of_the_architecture() -> None:
    """Public messages nest nothing, choose between nothing, and name no node, shard, service or design."""
    architecture = {
        "node",
        "shard",
        "service",
        "worker",
        "coordinator",
        "gateway",
        "monolith",
        "owner",
        "replica",
    }
    for message in messages(PUBLIC).values():
        assert all(nested.GetOptions().map_entry for nested in message.nested_types)
        assert not message.oneofs and not message.enum_types
        assert not architecture & {word for field in message.fields for word in field.name.split("_")}


@pytest.mark.req("TQ-208", "CH-12")
def test_the_stubs_import_cleanly_from_anywhere(tmp_path: Path) -> None:
    """In a new interpreter elsewhere, the stub modules import without a warning or a change of the path."""
    modules = [
        f"generated.taskqueue_{part}_pb2{kind}" for part in ("public", "internal") for kind in ("", "_grpc")
    ]
    program = f"import importlib, sys\nbefore = list(sys.path)\nfor name in {modules}:\n"
    program += "    importlib.import_module(name)\nassert sys.path == before\n"
    subprocess.run([sys.executable, "-I", "-W", "error", "-c", program], cwd=tmp_path, check=True)
    assert all((ROOT / f"{name.replace('.', '/')}.py").is_file() for name in modules)
