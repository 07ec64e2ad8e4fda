"""The reference pages: their content, and that they render."""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
import sys
import xml.etree.ElementTree as ET
from functools import cache
from typing import Any

import pytest

from codegen.emit.deploy import alerts, compose, dashboard, image, kubernetes, service_config
from codegen.emit.docs import reference
from codegen.source.spec import Spec
from tests.support import quick_yaml
from tests.support.codegen.specs import FOLDERS, ROOT, change_spec, run, spec, texts

Row = dict[str, str]


def render(of: Spec) -> str:
    return texts(reference.emit, of)[f"docs/reference/{of.name}.md"]


def parse_tables(text: str) -> list[list[Row]]:
    """Every table of a page, its cells without code formatting, by header."""
    found = []
    for block in re.findall(r"(?:^\|.*\|\n?)+", text, re.MULTILINE):
        header, _, *rows = [_split_cells(line) for line in block.splitlines()]
        assert all(len(row) == len(header) for row in rows), block
        found.append([dict(zip(header, row, strict=True)) for row in rows])
    return found


def _split_cells(line: str) -> list[str]:
    cells = re.split(r"(?<!\\)\|", line.strip())[1:-1]
    return [cell.strip().replace("`", "").replace("\\|", "|") for cell in cells]


def find_table(text: str, column: str) -> dict[str, Row]:
    """The one table whose first column is called so, by that column."""
    (found,) = [rows for rows in parse_tables(text) if next(iter(rows[0])) == column]
    return {row[column]: row for row in found}


@pytest.mark.req("TQ-176", "TQ-177")
def test_endpoints_are_those_of_the_contract() -> None:
    """DNS name, service, bind host and port of each node are in the table, and the worker has none."""
    first, second, *_ = [
        rows for rows in parse_tables(render(spec("spec/taskqueue"))) if "DNS name" in rows[0]
    ]
    found = {
        row["DNS name"]: (row["Service"], row["Bind host"], row["Port"], row["Inbound RPC"]) for row in first
    }
    internal = "taskqueue.internal.v1"
    assert found == {
        "gateway": ("taskqueue.v1.TaskQueuePublicService", "0.0.0.0", "50051 (GATEWAY_PORT)", "yes"),
        "job": (f"{internal}.JobInternalService", "0.0.0.0", "50052 (JOB_PORT)", "yes"),
        "queue": (f"{internal}.QueueInternalService", "0.0.0.0", "50053 (QUEUE_PORT)", "yes"),
        "coordinator": (
            f"{internal}.CoordinatorInternalService",
            "0.0.0.0",
            "50054 (COORDINATOR_PORT)",
            "yes",
        ),
        "worker": ("none", "none", "none", "no"),
        "result": (f"{internal}.ResultInternalService", "0.0.0.0", "50055 (RESULT_PORT)", "yes"),
    }
    assert second == [
        {
            "DNS name": "monolith-0 to monolith-5",
            "Service": "taskqueue.v1.TaskQueuePublicService",
            "Bind host": "0.0.0.0",
            "Port": "50051 (NODE_PORT)",
            "Inbound RPC": "yes",
            "From outside": "127.0.0.1:50051 to 127.0.0.1:50056",
        }
    ]


@pytest.mark.req("TQ-189")
def test_a_node_that_is_called_over_http_alone_serves_something() -> None:
    """Services with routes are named; a node that only has health pages serves nothing."""
    served = {
        row["DNS name"]: row["Service"]
        for rows in parse_tables(render(spec("spec/queuey")))
        for row in rows
        if "DNS name" in row
    }
    assert served["store"] == "queuey.v1.StoreService"
    assert served["runner-0, runner-1"] == "none"


def test_addresses_from_outside_are_a_range_of_one_port() -> None:
    """Replicas with two ports each have two lists of addresses, and nothing between them."""

    def more(deployments: Any) -> None:
        deployments["compose"]["nodes"]["api"]["replicas"] = 4

    for of, wanted in (
        (spec("spec/priority"), "127.0.0.1:50071, 127.0.0.1:50072, 127.0.0.1:8090, 127.0.0.1:8091"),
        (
            change_spec(spec("spec/priority"), "deployments", more),
            "127.0.0.1:50071 to 127.0.0.1:50074, 127.0.0.1:8090 to 127.0.0.1:8093",
        ),
    ):
        _, compose, *_ = [rows for rows in parse_tables(render(of)) if "DNS name" in rows[0]]
        assert compose[0]["From outside"] == wanted


@pytest.mark.req("TQ-189")
def test_tables_follow_the_start_command_and_the_environment() -> None:
    """The page names each container, command, variable and file of compose, and changes with them."""
    of = spec("spec/taskqueue")
    names = render(of)
    for path, text in texts(compose.emit, of).items():
        if path.endswith("compose.yaml"):
            for name, service in quick_yaml.read(text)["services"].items():
                if "profiles" in service or name.startswith("postgres"):
                    continue
                node = re.sub(r"-\d$", "", name)
                row = f"`{name}`" if node == name else f"`{node}-0` to `{node}-5`"
                command = service["command"].removesuffix(node) + "{node}"
                assert f"| {row} |" in names
                assert f"`{command}`" in names
                assert all(f"| `{variable}` |" in names for variable in service["environment"])
        assert f"(../../{path})" in names

    def start_otherwise(data: Any) -> None:
        data["monolith"]["command"] = "python -m other {node}"

    assert "`python -m other {node}`" in render(change_spec(of, "deployments", start_otherwise))


def test_variables_have_type_default_bounds_and_readers() -> None:
    """A variable's row has all that one needs to set it."""
    rows = find_table(render(spec("spec/taskqueue")), "Variable")
    assert rows["FETCH_RETRY_AFTER_MS"] == {
        "Variable": "FETCH_RETRY_AFTER_MS",
        "Type": "int, ms",
        "Default": "200",
        "Bounds": "at least 0; used as 50 to 1000",
        "Read by": "coordinator",
        "Meaning": "Hint to an idle worker on when to ask again.",
    }
    assert rows["NODE_INDEX"]["Default"] == "**required**"
    assert rows["WORKER_SLOTS"]["Default"] == "6; 1 in monolith"
    assert rows["WORKER_ID"]["Default"] == "the hostname"
    assert set(rows) == set(spec("spec/taskqueue").environment.variables)


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_method_has_one_row(folder: str) -> None:
    """Each method has a row with its messages, deadline, idempotency, retry and conditions."""
    found = [rows for rows in parse_tables(render(spec(folder))) if "Request → response" in rows[0]]
    rows = [row for rows in found for row in rows]
    assert [row["Method"] for row in rows] == [row.name for row in spec(folder).methods.values()]
    assert all(row["Deadline"] and row["Idempotent"] and row["Retry"] for row in rows)


def test_a_method_says_when_it_may_be_repeated() -> None:
    """A keyed submit may be repeated, a dequeue never, and soft outcomes are separate from errors."""
    rows = {
        row["Method"]: row
        for rows in parse_tables(render(spec("spec/taskqueue")))
        for row in rows
        if "Retry" in row and "Method" in row
    }
    assert rows["SubmitJob"]["Idempotent"] == "when client_request_id is set"
    assert rows["SubmitJob"]["Retry"] == "standard when keyed"
    assert (rows["DequeueJob"]["Idempotent"], rows["DequeueJob"]["Retry"]) == ("no", "never")
    assert rows["GetJobResult"]["Conditions"] == "job_not_found, result_missing, *result_not_ready*"


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_matrix_has_a_check_mark_for_each_permission_and_no_other(folder: str) -> None:
    """A cell is checked where, and only where, the spec permits a principal to call a method."""
    of = spec(folder)
    (matrix,) = [
        rows
        for rows in parse_tables(render(of))
        if {"Method"} < set(rows[0]) <= {"Method", *of.callers.principals}
    ]
    checked = {
        (principal, row["Method"])
        for row in matrix
        for principal, cell in row.items()
        if principal != "Method" and cell.startswith("✓")
    }
    assert checked == set(of.permissions)


def test_the_matrix_has_conditions() -> None:
    """A permission with a condition has it in its cell."""
    (cell,) = [
        row["gateway"]
        for rows in parse_tables(render(spec("spec/taskqueue")))
        for row in rows
        if "gateway" in row and row["Method"] == "JobInternalService.TransitionJobStatus"
    ]
    assert cell == "✓ only expected_from_status = QUEUED and to_status = CANCELED (the queued-cancel step)"


@pytest.mark.parametrize("folder", FOLDERS)
def test_errors_and_soft_outcomes_are_all_there(folder: str) -> None:
    """Each condition has its code, or the field that has it."""
    of = spec(folder)
    hard = find_table(render(of), "Condition")
    assert {name: row["gRPC"] for name, row in hard.items()} == {
        name: row.grpc for name, row in of.hard_conditions.items()
    }
    soft = [row for rows in parse_tables(render(of)) for row in rows if "Outcome" in row]
    assert {row["Outcome"] for row in soft} == set(of.errors.conditions) - set(hard)


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_lifecycle_is_drawn_twice(folder: str) -> None:
    """The page has the picture and its Mermaid text, and both have every transition."""
    of = spec(folder)
    found = texts(reference.emit, of)
    for name, entity in of.lifecycle.entities.items():
        assert f"({of.name}/lifecycle-{name}.svg)" in render(of)
        picture = ET.fromstring(found[f"docs/reference/{of.name}/lifecycle-{name}.svg"])
        words = {"".join(each.itertext()) for each in picture.iter("{http://www.w3.org/2000/svg}text")}
        section = render(of).partition(f"\n### {name}\n")[2]
        diagram = re.search(r"```mermaid\n(stateDiagram-v2\n.*?)```", section, re.DOTALL)
        assert diagram
        assert f"[*] --> {entity.initial}\n" in diagram[1]
        for transition, row in entity.transitions.items():
            assert f"{row.from_} --> {row.to}: {transition} ({', '.join(row.by)})\n" in diagram[1]
            assert {transition, row.from_, row.to} <= words


def test_transitions_have_actors_calls_and_fields() -> None:
    """A transition has its trigger, ends, actors, the calls before it and the fields it sets."""
    row = find_table(render(spec("spec/taskqueue")), "Transition")["withdraw"]
    assert row["Trigger"] == "A client cancels a job that still waits."
    assert (row["From"], row["To"], row["Actors"]) == ("QUEUED", "CANCELED", "gateway")
    assert row["After"] == "QueueInternalService.RemoveJobIfPresent, ResultInternalService.StoreResult"
    assert row["Stamps"].startswith("finished_at_ms, cancel_requested = true")


def test_transitions_have_their_clocks() -> None:
    """Counters, waits, ends and due transitions are in the table of transitions."""
    burn = find_table(render(spec("tests/specs/bakery")), "Transition")["burn"]
    assert burn["Stamps"].endswith("burnt + 1")
    assert burn["Waits"].startswith("until again_at: COOLING_SECONDS seconds, twice as long for each")
    assert burn["Gives up"] == "bin once burnt is above MAX_BURNT"
    assert burn["Due"] == "at oven_until; porter sweeps every LOOK_SECONDS seconds"


def test_the_page_has_storage_and_public_states_of_entities() -> None:
    """Table, history, lease and the public status of each state are on the page."""
    text = render(spec("tests/specs/bakery"))
    assert "A postgres server stores it, at `BAKERY_DATABASE` in the table `orders`" in text
    assert "No two have the same `order_number`." in text
    assert "A claim sets it to `BAKING` with a lease of `OVEN_SECONDS` seconds" in text
    assert find_table(text, "State")["BINNED"]["Shown as"] == "PROGRESS_GONE"
    assert "`counter`, `baker`, `porter` store it as `OrderRow`" in text


def test_the_page_has_routes_and_http_ports() -> None:
    """A method has its path and its status, a node its HTTP port."""
    text = render(spec("tests/specs/bakery"))
    ports = [row["HTTP"] for rows in parse_tables(text) for row in rows if "DNS name" in row]
    assert ports[0] == "127.0.0.1 7101 (SHOP_PORT)"
    assert "`POST /orders`, 201" in text
    assert "with backoff, after 2 s" in text


def test_the_page_has_the_keys_of_redis() -> None:
    """Hash, indexes, holder, clocks and updates of an entity in Redis are on the page."""
    text = render(spec("tests/specs/rental"))
    assert "in the hash `bikes:{bike_id}` with the prefix `RENTAL_PREFIX`" in text
    assert "No two have the same `plate` within `PLATE_SECONDS` seconds" in text
    assert "Its lease belongs to a van in `DRIVING`, which has at most `room` at a time" in text
    text = text.partition("### van")[0]
    assert "Unless it is given, `most_drops` depends on `size`: `SMALL_DROPS` for `SIZE_SMALL`" in text
    assert (
        find_table(text, "Index")["waiting"]["Parts"]
        == "yard:{urgency}:with:{signature} for each set of tools"
    )
    drop = find_table(text, "Transition")["drop"]
    assert drop["Gives up"] == "lose instead once drops has reached most_drops"
    assert "or as soon as its owner is in GONE" in drop["Due"]
    hurry = find_table(text, "Update")["hurry_small"]
    assert (hurry["Needs"], hurry["Writes"]) == ("urgency = SIZE_SMALL", "urgency = SIZE_LARGE")


@pytest.mark.parametrize("folder", FOLDERS)
def test_links_lead_to_files(folder: str) -> None:
    """Every relative link of a page leads to something that is generated or in the project."""
    of = spec(folder)
    paths = {
        path
        for emitter in (alerts, compose, dashboard, kubernetes, reference)
        for path in texts(emitter.emit, of)
    }
    paths |= {f"proto/{row.file}" for row in of.system.protos.values()}
    for link in re.findall(r"\]\(([^)#]+)\)", render(of)):
        path = posixpath.normpath(f"docs/reference/{link}")
        assert path in paths or (ROOT / path).exists(), link


def test_text_of_a_spec_cannot_break_a_table() -> None:
    """A bar, a tag or a line break in a meaning stays text."""

    def disturb(data: Any) -> None:
        data["variables"]["DOORS"]["doc"] = "this | that\nor <b>both</b>"

    rows = parse_tables(render(change_spec(spec("tests/specs/locker"), "environment", disturb)))
    (row,) = [row for rows in rows for row in rows if row.get("Variable") == "DOORS"]
    assert row["Meaning"] == "this | that or &lt;b>both&lt;/b>"


def test_the_rest_of_the_contract_is_on_the_page() -> None:
    """Frozen decisions, policies, reasons and log events are there."""
    text = render(spec("spec/taskqueue"))
    assert "Since 2026-02-10 only a recorded blocker changes these:" in text
    assert "- Processing is at least once; nothing claims exactly once." in text
    assert find_table(text, "Profile")["standard"]["Backoff"] == "100 ms, times 2, up to 1 s"
    assert find_table(text, "Event")["consistency_anomaly"]["Written"] == "at any log level"


EMITTERS = (compose, image, kubernetes, service_config, reference)
DIGEST = """
import hashlib
from tests.support.codegen.specs import FOLDERS, spec
from tests.codegen.emit.docs.test_reference import emit_everything
print(hashlib.sha256("".join(emit_everything(folder) for folder in FOLDERS).encode()).hexdigest())
"""


@cache
def emit_everything(folder: str) -> str:
    """All output of these emitters for a spec, as one text."""
    of = spec(folder)
    return "".join(
        f"{path}\n{text}" for emitter in EMITTERS for path, text in texts(emitter.emit, of).items()
    )


def test_equal_specs_give_equal_bytes() -> None:
    """Another process, with a hash seed of its own, writes the same as this one."""
    here = hashlib.sha256("".join(emit_everything(folder) for folder in FOLDERS).encode()).hexdigest()
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    completed = run(sys.executable, "-c", DIGEST, env={**os.environ, "PYTHONHASHSEED": seed})
    assert completed.stdout.strip() == here, completed.stderr


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_output_names_the_machine(folder: str) -> None:
    """No path of this machine and no registry is in the output; files end with one line break."""
    text = emit_everything(folder)
    assert str(ROOT) not in text
    assert not re.search(r"docker\.io|ghcr\.io|gcr\.io|quay\.io", text)
    for emitter in EMITTERS:
        for path, content in texts(emitter.emit, spec(folder)).items():
            assert content.endswith("\n") and not content.endswith("\n\n"), path
            assert not re.search(r"[ \t]+$", content, re.MULTILINE), path
            assert "\n\n\n" not in content, path
