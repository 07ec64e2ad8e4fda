"""Log lines: JSON objects with their required fields, and the levels that let them through."""

from __future__ import annotations

import asyncio
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated.studio.events import EVENTS
from generated.studio.messages import HangFilmRequest
from runtime.call import Call
from runtime.model.system import Event
from runtime.observe import log as events
from runtime.observe.log import LEVELS, Log, open_buffered_stdout
from runtime.simulation import simulate
from runtime.world import World
from tests.runtime.hand_world import HandWorld, Lines, make_call

ENGINE_EVENTS = {name: each for name, each in vars(events).items() if isinstance(each, Event)}
ALWAYS = ("service_ready", "printer_started", "film_lost", "rpc_error", "invalid_transition")
PLAIN = Event("plain", "INFO")


def count_lines(level: str, event: Event, times: int = 1) -> int:
    """Count the lines that a log at some level writes of an event."""
    lines = Lines()
    log = Log("test", level, HandWorld(), lines)
    for _ in range(times):
        log.write(event, "a message")
    return len(lines.read_back())


@pytest.mark.req("TQ-162", "TQ-163", "CH-84")
def test_a_line_has_the_required_fields_in_order() -> None:
    """Time, level, service, method, event and message come first; outside a call the method is empty."""
    lines = Lines()
    Log("ledger", "INFO", HandWorld(), lines).write(PLAIN, "hello", fields={"film_id": "x"})
    assert lines.getvalue() == (
        '{"ts_ms":1000000,"level":"INFO","service":"ledger","method":"","event":"plain",'
        '"message":"hello","film_id":"x"}\n'
    )


@pytest.mark.req("TQ-162")
@given(message=st.text(), value=st.text() | st.binary() | st.none() | st.integers() | st.floats())
def test_whatever_is_logged_is_one_line_of_json(message: str, value: object) -> None:
    """No text and no value breaks a line in two or out of JSON; None is left out."""
    lines = Lines()
    Log("test", "INFO", HandWorld(), lines).write(PLAIN, message, "M", {"value": value})
    (line,) = lines.getvalue().split("\n")[:-1]
    read = json.loads(line)
    assert read["message"] == message
    assert ("value" in read) == (value is not None)


@given(
    shared=st.dictionaries(st.sampled_from(["a", "b", "c"]), st.text() | st.integers()),
    each=st.lists(st.dictionaries(st.sampled_from(["c", "d", "e"]), st.text() | st.integers())),
)
def test_many_lines_at_once_are_as_if_each_was_written_alone(
    shared: dict[str, object], each: list[dict[str, object]]
) -> None:
    """Whatever the shared fields, whatever their own, and also where one of its own replaces a shared one."""
    together, apart = Lines(), Lines()
    Log("test", "INFO", HandWorld(), together).write_all(PLAIN, "a message", "M", shared, each)
    for fields in each:
        Log("test", "INFO", HandWorld(), apart).write(PLAIN, "a message", "M", {**shared, **fields})
    assert together.getvalue() == apart.getvalue()


@pytest.mark.req("TQ-163", "TQ-164", "TQ-165", "CH-84")
def test_a_call_adds_its_fields() -> None:
    """A log line of a call has its method, caller and id, and the notes so far."""
    lines, world = Lines(), HandWorld()
    call = make_call(world, caller="printer", lines=lines)
    call.tell(PLAIN, "first")
    call.note(film_id="x")
    call.tell(PLAIN, "second", expected_status="WAITING")
    first, second = lines.read_back()
    assert (first["method"], first["caller"], first["request_id"]) == ("Test.Method", "printer", "a request")
    assert "film_id" not in first
    assert (second["film_id"], second["expected_status"]) == ("x", "WAITING")


def test_a_note_before_the_first_line_is_shown_beside_the_request() -> None:
    """A note wins over a field of the request, whether it was made before or after the request was read."""
    lines, world = Lines(), HandWorld()
    request = HangFilmRequest(film_id="from the request", hung_at_ms=7)
    named = ("film_id", "hung_at_ms")
    call = Call(world, Log("test", "INFO", world, lines), "desk", "M", request=request, named=named)
    call.note(film_id="noted")
    call.note(printer_id="w")
    call.tell(PLAIN, "first")
    call.note(film_id="noted later")
    call.tell(PLAIN, "second")
    first, second = lines.read_back()
    assert (first["film_id"], first["hung_at_ms"], first["printer_id"]) == ("noted", 7, "w")
    assert (second["film_id"], second["hung_at_ms"], second["printer_id"]) == ("noted later", 7, "w")


@pytest.mark.req("TQ-165")
def test_a_caller_that_is_not_known_is_left_out() -> None:
    """Without proof there is no caller to name."""
    lines = Lines()
    make_call(HandWorld(), caller="", lines=lines).tell(PLAIN, "hello")
    assert "caller" not in lines.read_back()[0]


@pytest.mark.parametrize("least", LEVELS)
@pytest.mark.parametrize("level", LEVELS)
def test_a_level_lets_through_itself_and_all_above(level: str, least: str) -> None:
    """An ordinary event is written from its own level up."""
    assert count_lines(least, Event("e", level)) == (LEVELS[level] >= LEVELS[least])


@pytest.mark.req("CH-85", "CH-86", "TQ-178")
@pytest.mark.parametrize("name", ALWAYS)
def test_some_events_are_logged_at_any_level(name: str) -> None:
    """Readiness, anomalies, errors and illegal transitions are written whatever the level is."""
    known = {each.name: each for each in (*EVENTS.values(), *ENGINE_EVENTS.values())}
    assert count_lines("ERROR", known[name], times=3) == 3


@pytest.mark.req("CH-86", "TQ-179")
def test_the_first_line_of_an_event_is_logged_at_any_level() -> None:
    """The first is written whatever the level is, and the others only where it lets them."""
    assert count_lines("ERROR", EVENTS["printer_heartbeat"], times=3) == 1
    assert count_lines("DEBUG", EVENTS["printer_heartbeat"], times=3) == 3


def test_components_of_a_node_log_under_their_own_names() -> None:
    """A view has another name and the same stream, level and memory of first lines."""
    lines = Lines()
    node = Log("booth", "ERROR", HandWorld(), lines)
    view = node.of("printer")
    first = Event("first", "DEBUG", first_always=True)
    view.write(first, "once")
    node.write(first, "not again")
    assert [line["service"] for line in lines.read_back()] == ["printer"]


def test_without_a_stream_lines_go_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    """A node logs to its standard output."""
    Log("ledger", "INFO", HandWorld()).write(PLAIN, "hello")
    assert json.loads(capsys.readouterr().out)["message"] == "hello"


class Counting(Lines):
    """A stream that counts how often it is flushed."""

    flushed = 0

    def flush(self) -> None:
        self.flushed += 1


def test_ordinary_lines_are_flushed_together_and_a_warning_at_once() -> None:
    """One system call for many lines, also of several turns of the loop; a warning does not wait."""

    async def write_lines(world: World) -> None:
        lines = Counting()
        log = Log("ledger", "INFO", world, lines)
        for _ in range(3):
            log.write(PLAIN, "hello")
            await asyncio.sleep(0)
        assert lines.flushed == 0
        await asyncio.sleep(0.1)
        assert lines.flushed == 1
        log.write(Event("odd", "WARNING"), "hello")
        assert lines.flushed == 2

    simulate(write_lines)


def test_standard_output_is_buffered_whatever_the_flags_of_python(capfd: pytest.CaptureFixture[str]) -> None:
    """Ordinary lines leave the process with the next warning, or when the stream is closed, and in order."""

    async def write_lines() -> None:
        with open_buffered_stdout() as stream:
            log = Log("test", "INFO", HandWorld(), stream)
            log.write(PLAIN, "first")
            assert capfd.readouterr().out == ""
            log.write(events.RPC_ERROR, "second")
            first, second = capfd.readouterr().out.splitlines()
            assert (json.loads(first)["message"], json.loads(second)["message"]) == ("first", "second")
            log.write(PLAIN, "third")
            assert capfd.readouterr().out == ""
        assert json.loads(capfd.readouterr().out)["message"] == "third"

    asyncio.run(write_lines())


def test_every_ordinary_line_is_flushed_in_the_end() -> None:
    """Also one that comes after a flush, and one with a warning between it and its flush."""

    async def write_lines(world: World) -> None:
        lines = Counting()
        log = Log("ledger", "INFO", world, lines)
        for _ in range(2):
            log.write(PLAIN, "hello")
            log.write(Event("odd", "WARNING"), "hello")
            log.write(PLAIN, "hello")
            before = lines.flushed
            await asyncio.sleep(0.1)
            assert lines.flushed == before + 1

    simulate(write_lines)


@pytest.mark.parametrize(
    ("level", "same"),
    [("trace", "DEBUG"), ("debug", "DEBUG"), ("info", "INFO"), ("warn", "WARNING"), ("error", "ERROR")],
)
@pytest.mark.parametrize("event_level", LEVELS)
def test_levels_may_have_the_names_that_others_use(level: str, same: str, event_level: str) -> None:
    """A log at `warn` writes what one at WARNING does."""
    event = Event("plain", event_level)
    assert count_lines(level, event) == count_lines(same, event)


@pytest.mark.parametrize("value", ["x" * 100_000, "é" * 100_000, ["x" * 60_000] * 2, {"x" * 100_000: 1}])
def test_a_line_has_a_maximum_length(value: object) -> None:
    """A long value keeps its beginning and its end, and says how much is left out; the others are whole."""
    lines = Lines()
    log = Log("ledger", "INFO", HandWorld(), lines)
    log.write(PLAIN, "hello", "A.B", {"film_id": value, "printer_id": "w-1"})
    log.write_all(PLAIN, "hello", "A.B", {"printer_id": "w-1"}, [{"film_id": value}, {"film_id": "short"}])
    first, second, third = lines.read_back()
    for line in (first, second):
        assert re.search(r"\[\.\.\. \d+ characters left out \.\.\.\]", line["film_id"])
        assert len(line["film_id"]) < 1100
        assert (line["message"], line["method"], line["printer_id"]) == ("hello", "A.B", "w-1")
    assert third["film_id"] == "short"
    assert max(map(len, lines.getvalue().splitlines())) < 10_000


def test_a_traceback_keeps_more_of_itself() -> None:
    lines = Lines()
    text = "".join(f"line {number}\n" for number in range(10_000))
    for detail in (text[:16_000], text):
        Log("ledger", "INFO", HandWorld(), lines).write(events.RPC_FAULT, "oh", fields={"detail": detail})
    whole, cut = lines.read_back()
    assert whole["detail"] == text[:16_000]
    assert cut["detail"].startswith("line 0\nline 1\n")
    assert cut["detail"].endswith("line 9999\n")
    assert len(cut["detail"]) < 17_000
