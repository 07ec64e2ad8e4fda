"""The reference pages: what they say, and that they render."""

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
from tests.support.codegen.specs import FOLDERS, ROOT, changed, run, spec, texts

Row = dict[str, str]


def page(of: Spec) -> str:
    return texts(reference.emit, of)[f"docs/reference/{of.name}.md"]


def tables(text: str) -> list[list[Row]]:
    """Every table of a page, its cells without code marks, by header."""
    found = []
    for block in re.findall(r"(?:^\|.*\|\n?)+", text, re.MULTILINE):
        header, _, *rows = [_cells(line) for line in block.splitlines()]
        assert all(len(row) == len(header) for row in rows), block
        found.append([dict(zip(header, row, strict=True)) for row in rows])
    return found


def _cells(line: str) -> list[str]:
    cells = re.split(r"(?<!\\)\|", line.strip())[1:-1]
    return [cell.strip().replace("`", "").replace("\\|", "|") for cell in cells]


def table(text: str, column: str) -> dict[str, Row]:
    """The one table whose first column is called so, by that column."""
    (found,) = [rows for rows in tables(text) if next(iter(rows[0])) == column]
    return {row[column]: row for row in found}


@pytest.mark.req("TQ-176", "TQ-177")
def test_endpoints_are_those_of_the_contract() -> None:
    """DNS name, service, bind host and port of each node are in the table, and the worker has none."""
    first, second = [rows for rows in tables(page(spec("spec/taskqueue"))) if "DNS name" in rows[0]]
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
    """What has routes is named; a node that only tells how it is serves nothing."""
    served = {
        row["DNS name"]: row["Service"]
        for rows in tables(page(spec("spec/queuey")))
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
            changed(spec("spec/priority"), "deployments", more),
            "127.0.0.1:50071 to 127.0.0.1:50074, 127.0.0.1:8090 to 127.0.0.1:8093",
        ),
    ):
        _, compose = [rows for rows in tables(page(of)) if "DNS name" in rows[0]]
        assert compose[0]["From outside"] == wanted


@pytest.mark.req("TQ-189")
def test_tables_follow_the_start_command_and_the_environment() -> None:
    """The page names each container, command, variable and file of compose, and changes with them."""
    of = spec("spec/taskqueue")
    shown = page(of)
    for path, text in texts(compose.emit, of).items():
        if path.endswith("compose.yaml"):
            for name, service in quick_yaml.read(text)["services"].items():
                if "profiles" in service:
                    continue
                node = re.sub(r"-\d$", "", name)
                row = f"`{name}`" if node == name else f"`{node}-0` to `{node}-5`"
                command = service["command"].removesuffix(node) + "{node}"
                assert f"| {row} |" in shown
                assert f"`{command}`" in shown
                assert all(f"| `{variable}` |" in shown for variable in service["environment"])
        assert f"(../../{path})" in shown

    def start_otherwise(data: Any) -> None:
        data["monolith"]["command"] = "python -m other {node}"

    assert "`python -m other {node}`" in page(changed(of, "deployments", start_otherwise))


def test_variables_tell_type_default_bounds_and_readers() -> None:
    """A variable's row has all that one needs to set it."""
    rows = table(page(spec("spec/taskqueue")), "Variable")
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
def test_each_method_is_explained_once(folder: str) -> None:
    """Each method has a row with its messages, deadline, idempotency, retry and conditions."""
    found = [rows for rows in tables(page(spec(folder))) if "Request → response" in rows[0]]
    rows = [row for rows in found for row in rows]
    assert [row["Method"] for row in rows] == [row.name for row in spec(folder).methods.values()]
    assert all(row["Deadline"] and row["Idempotent"] and row["Retry"] for row in rows)


def test_a_method_says_when_it_may_be_repeated() -> None:
    """A keyed submit may be repeated, a dequeue never, and soft outcomes stand apart from errors."""
    rows = {
        row["Method"]: row
        for rows in tables(page(spec("spec/taskqueue")))
        for row in rows
        if "Retry" in row and "Method" in row
    }
    assert rows["SubmitJob"]["Idempotent"] == "when client_request_id is set"
    assert rows["SubmitJob"]["Retry"] == "standard when keyed"
    assert (rows["DequeueJob"]["Idempotent"], rows["DequeueJob"]["Retry"]) == ("no", "never")
    assert rows["GetJobResult"]["Conditions"] == "job_not_found, result_missing, *result_not_ready*"


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_matrix_has_a_mark_for_each_permission_and_no_other(folder: str) -> None:
    """A mark stands where, and only where, the spec lets a principal call a method."""
    of = spec(folder)
    (matrix,) = [
        rows for rows in tables(page(of)) if {"Method"} < set(rows[0]) <= {"Method", *of.callers.principals}
    ]
    marks = {
        (principal, row["Method"])
        for row in matrix
        for principal, cell in row.items()
        if principal != "Method" and cell.startswith("✓")
    }
    assert marks == set(of.permissions)


def test_the_matrix_tells_conditions() -> None:
    """A permission with a condition says so in its cell."""
    (cell,) = [
        row["gateway"]
        for rows in tables(page(spec("spec/taskqueue")))
        for row in rows
        if "gateway" in row and row["Method"] == "JobInternalService.TransitionJobStatus"
    ]
    assert cell == "✓ only expected_from_status = QUEUED and to_status = CANCELED (the queued-cancel step)"


@pytest.mark.parametrize("folder", FOLDERS)
def test_errors_and_soft_outcomes_are_all_there(folder: str) -> None:
    """Each condition has its code, or the field that tells it."""
    of = spec(folder)
    hard = table(page(of), "Condition")
    assert {name: row["gRPC"] for name, row in hard.items()} == {
        name: row.grpc for name, row in of.hard_conditions.items()
    }
    soft = [row for rows in tables(page(of)) for row in rows if "Outcome" in row]
    assert {row["Outcome"] for row in soft} == set(of.errors.conditions) - set(hard)


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_life_is_drawn_twice(folder: str) -> None:
    """The page shows the picture and has its Mermaid text, and both have every transition."""
    of = spec(folder)
    found = texts(reference.emit, of)
    for name, entity in of.lifecycle.entities.items():
        assert f"({of.name}/lifecycle-{name}.svg)" in page(of)
        picture = ET.fromstring(found[f"docs/reference/{of.name}/lifecycle-{name}.svg"])
        words = {"".join(each.itertext()) for each in picture.iter("{http://www.w3.org/2000/svg}text")}
        section = page(of).partition(f"\n### {name}\n")[2]
        diagram = re.search(r"```mermaid\n(stateDiagram-v2\n.*?)```", section, re.DOTALL)
        assert diagram
        assert f"[*] --> {entity.initial}\n" in diagram[1]
        for transition, row in entity.transitions.items():
            assert f"{row.from_} --> {row.to}: {transition} ({', '.join(row.by)})\n" in diagram[1]
            assert {transition, row.from_, row.to} <= words


def test_transitions_tell_who_when_and_what_is_kept() -> None:
    """A transition has its trigger, ends, actors, the calls before it and the fields it sets."""
    row = table(page(spec("spec/taskqueue")), "Transition")["withdraw"]
    assert row["Trigger"] == "A client cancels a job that still waits."
    assert (row["From"], row["To"], row["Actors"]) == ("QUEUED", "CANCELED", "gateway")
    assert row["After"] == "QueueInternalService.RemoveJobIfPresent, ResultInternalService.StoreResult"
    assert row["Stamps"].startswith("finished_at_ms, cancel_requested = true")


def test_transitions_tell_what_the_clock_does() -> None:
    """Counters, waits, ends and what is due are in the table of transitions."""
    burn = table(page(spec("tests/specs/bakery")), "Transition")["burn"]
    assert burn["Stamps"].endswith("burnt + 1")
    assert burn["Waits"].startswith("until again_at: COOLING_SECONDS seconds, twice as long for each")
    assert burn["Gives up"] == "bin once burnt is above MAX_BURNT"
    assert burn["Due"] == "at oven_until; porter looks every LOOK_SECONDS seconds"


def test_the_page_tells_where_entities_are_kept_and_how_they_are_shown() -> None:
    """Table, history, lease and what outsiders are told of each state are on the page."""
    text = page(spec("tests/specs/bakery"))
    assert "A postgres server keeps it, at `BAKERY_DATABASE` in the table `orders`" in text
    assert "No two have the same `order_number`." in text
    assert "Whoever takes it to `BAKING` owns it for `OVEN_SECONDS` seconds" in text
    assert table(text, "State")["BINNED"]["Shown as"] == "PROGRESS_GONE"
    assert "`counter`, `baker`, `porter` hold it as `OrderRow`" in text


def test_the_page_tells_routes_and_http_ports() -> None:
    """A method has its path and its status, a node its HTTP port."""
    text = page(spec("tests/specs/bakery"))
    ports = [row["HTTP"] for rows in tables(text) for row in rows if "DNS name" in row]
    assert ports[0] == "127.0.0.1 7101 (SHOP_PORT)"
    assert "`POST /orders`, 201" in text
    assert "with backoff, after 2 s" in text


def test_the_page_tells_what_redis_keeps() -> None:
    """Hash, indexes, holder, clocks and shifts of an entity in Redis are on the page."""
    text = page(spec("tests/specs/rental"))
    assert "in the hash `bikes:{bike_id}` behind `RENTAL_PREFIX`" in text
    assert "No two have the same `plate` within `PLATE_SECONDS` seconds" in text
    assert "It is booked on a van in `DRIVING`, never more than its `room` at a time" in text
    text = text.partition("### van")[0]
    assert "Unless it is given, `most_drops` depends on `size`: `SMALL_DROPS` for `SIZE_SMALL`" in text
    assert table(text, "Index")["waiting"]["Parts"] == "yard:{urgency}:with:{signature} for each set of tools"
    drop = table(text, "Transition")["drop"]
    assert drop["Gives up"] == "lose in its place once drops has reached most_drops"
    assert "or as soon as its holder is in GONE" in drop["Due"]
    hurry = table(text, "Shift")["hurry_small"]
    assert (hurry["Needs"], hurry["Writes"]) == ("urgency = SIZE_SMALL", "urgency = SIZE_LARGE")


@pytest.mark.parametrize("folder", FOLDERS)
def test_links_lead_to_files(folder: str) -> None:
    """Every relative link of a page leads to something that is generated or in the project."""
    of = spec(folder)
    made = {
        path
        for emitter in (alerts, compose, dashboard, kubernetes, reference)
        for path in texts(emitter.emit, of)
    }
    made |= {f"proto/{row.file}" for row in of.system.protos.values()}
    for link in re.findall(r"\]\(([^)#]+)\)", page(of)):
        path = posixpath.normpath(f"docs/reference/{link}")
        assert path in made or (ROOT / path).exists(), link


def test_text_of_a_spec_cannot_break_a_table() -> None:
    """A bar, a tag or a line break in a meaning stays text."""

    def disturb(data: Any) -> None:
        data["variables"]["DOORS"]["doc"] = "this | that\nor <b>both</b>"

    rows = tables(page(changed(spec("tests/specs/locker"), "environment", disturb)))
    (row,) = [row for rows in rows for row in rows if row.get("Variable") == "DOORS"]
    assert row["Meaning"] == "this | that or &lt;b>both&lt;/b>"


def test_the_rest_of_the_contract_is_on_the_page() -> None:
    """Frozen decisions, policies, reasons and log events are there."""
    text = page(spec("spec/taskqueue"))
    assert "Since 2026-02-10 only a recorded blocker changes these:" in text
    assert "- Processing is at least once; nothing claims exactly once." in text
    assert table(text, "Profile")["standard"]["Backoff"] == "100 ms, times 2, up to 1 s"
    assert table(text, "Event")["consistency_anomaly"]["Written"] == "at any log level"


EMITTERS = (compose, image, kubernetes, service_config, reference)
DIGEST = """
import hashlib
from tests.support.codegen.specs import FOLDERS, spec
from tests.codegen.emit.docs.test_reference import everything
print(hashlib.sha256("".join(everything(folder) for folder in FOLDERS).encode()).hexdigest())
"""


@cache
def everything(folder: str) -> str:
    """All that these emitters make of a spec, as one text."""
    of = spec(folder)
    return "".join(
        f"{path}\n{text}" for emitter in EMITTERS for path, text in texts(emitter.emit, of).items()
    )


def test_same_spec_same_bytes() -> None:
    """Another process, with a hash seed of its own, writes what this one writes."""
    here = hashlib.sha256("".join(everything(folder) for folder in FOLDERS).encode()).hexdigest()
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    done = run(sys.executable, "-c", DIGEST, env={**os.environ, "PYTHONHASHSEED": seed})
    assert done.stdout.strip() == here, done.stderr


@pytest.mark.parametrize("folder", FOLDERS)
def test_nothing_names_the_machine_it_was_made_on(folder: str) -> None:
    """No path of this machine and no registry is in what is made; files end with one line break."""
    text = everything(folder)
    assert str(ROOT) not in text
    assert not re.search(r"docker\.io|ghcr\.io|gcr\.io|quay\.io", text)
    for emitter in EMITTERS:
        for path, content in texts(emitter.emit, spec(folder)).items():
            assert content.endswith("\n") and not content.endswith("\n\n"), path
            assert not re.search(r"[ \t]+$", content, re.MULTILINE), path
            assert "\n\n\n" not in content, path
