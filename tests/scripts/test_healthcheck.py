"""Tests of the container healthcheck against real sockets on loopback."""

import argparse
import json
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from scripts import healthcheck

ROOT = Path(__file__).resolve().parents[2]
PATIENT = ("--timeout-ms", "60000")
AddressRow = tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[str, int]]


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A server socket on a free loopback port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A loopback port that is in use but refuses connections."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield read_port(holder)


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A loopback port whose full backlog leaves a new connection without an answer."""
    with ExitStack() as sockets:
        server = sockets.enter_context(socket.socket())
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(4096):
            client = sockets.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(server.getsockname())
            if not select.select([], [client], [], 0.2)[1]:
                break
        else:
            pytest.fail("the backlog takes every connection")
        yield read_port(server)


@pytest.fixture
def addresses(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[bytes]]:
    """Make name resolution answer with the given loopback ports, and return the names it was asked for."""

    def answer(*ports: int) -> list[bytes]:
        asked: list[bytes] = []

        def getaddrinfo(host: bytes, port: int, **_: object) -> list[AddressRow]:
            asked.append(host)
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", one)) for one in ports]

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        return asked

    return answer


def read_port(server: socket.socket) -> int:
    port = server.getsockname()[1]
    assert isinstance(port, int)
    return port


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a container does; a check that hangs is killed and fails the test."""
    command = [sys.executable, "-m", "scripts.healthcheck", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def read_only_line(output: str) -> dict[str, Any]:
    (line,) = output.splitlines()
    found = json.loads(line)
    assert isinstance(found, dict)
    return found


@pytest.mark.req("TQ-180", "TQ-181", "TQ-183")
def test_open_port_is_healthy(listener: socket.socket) -> None:
    """Mode tcp ends with 0 for a port that accepts connections and logs all options."""
    target = f"127.0.0.1:{read_port(listener)}"

    done = run("--mode", "tcp", "--target", target, *PATIENT, "--service", "gateway")

    assert (done.returncode, done.stderr) == (0, "")
    line = read_only_line(done.stdout)
    assert isinstance(line.pop("ts_ms"), int)
    assert line.pop("latency_ms") >= 0
    assert line == {
        "level": "INFO",
        "service": "gateway",
        "method": "",
        "event": "healthcheck",
        "message": "target accepts connections",
        "mode": "tcp",
        "target": target,
    }


@pytest.mark.req("TQ-180")
def test_timeout_and_service_are_optional(listener: socket.socket) -> None:
    """Mode and target are enough, the timeout is then 1000 ms and the service is the check itself."""
    target = f"127.0.0.1:{read_port(listener)}"

    done = run("--mode", "tcp", "--target", target)
    for _ in range(9):
        # A second may pass on a busy machine before it has looked; who runs it tries it several times, too.
        if done.returncode:
            done = run("--mode", "tcp", "--target", target)

    assert done.returncode == 0
    assert read_only_line(done.stdout)["service"] == "healthcheck"
    assert healthcheck._create_parser().parse_args(["--mode", "tcp", "--target", target]).timeout_ms == 1000


@pytest.mark.req("TQ-181", "TQ-183")
def test_closed_port_is_unhealthy(closed_port: int) -> None:
    """Mode tcp ends with 1 for a port that refuses connections and logs the cause."""
    done = run("--mode", "tcp", "--target", f"127.0.0.1:{closed_port}", *PATIENT)

    assert (done.returncode, done.stderr) == (1, "")
    line = read_only_line(done.stdout)
    assert (line["level"], line["message"]) == ("ERROR", "target cannot be reached: Connection refused")


@pytest.mark.req("TQ-181", "TQ-183")
def test_silent_target_ends_with_the_timeout(silent_port: int) -> None:
    """A target that never answers is unhealthy once the timeout has passed."""
    done = run("--mode", "tcp", "--target", f"127.0.0.1:{silent_port}", "--timeout-ms", "300")

    assert done.returncode == 1
    assert read_only_line(done.stdout)["message"] == "target did not answer within 300 ms"


@pytest.mark.req("TQ-182", "CH-83")
def test_worker_mode_connects_to_the_coordinator(listener: socket.socket, closed_port: int) -> None:
    """Mode worker follows whether the coordinator's port accepts a TCP connection."""
    up = run("--mode", "worker", "--target", f"127.0.0.1:{read_port(listener)}", *PATIENT)
    down = run("--mode", "worker", "--target", f"127.0.0.1:{closed_port}", *PATIENT)

    assert (up.returncode, read_only_line(up.stdout)["message"]) == (0, "coordinator accepts connections")
    assert down.returncode == 1
    assert read_only_line(down.stdout)["message"] == "coordinator cannot be reached: Connection refused"


@pytest.mark.req("TQ-182")
def test_check_sends_nothing(listener: socket.socket) -> None:
    """A check opens a connection and closes it without a byte, so it cannot act on the target."""
    assert (
        healthcheck.main(["--mode", "worker", "--target", f"127.0.0.1:{read_port(listener)}", *PATIENT]) == 0
    )

    connection, _ = listener.accept()
    with connection:
        assert connection.recv(1) == b""


@pytest.mark.req("TQ-180", "TQ-183", "CH-83")
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "required: --mode, --target"),
        (["--target", "127.0.0.1:50051"], "required: --mode"),
        (["--mode", "tcp"], "required: --target"),
        (["--mode", "udp", "--target", "127.0.0.1:50051"], "argument --mode: invalid choice: 'udp'"),
        (["--mode", "tcp", "--target", "127.0.0.1:"], "argument --target: '127.0.0.1:' needs a port from 1"),
        (["--mode", "tcp", "--target", "localhost"], "argument --target: 'localhost' is not host:port"),
        (
            ["--mode", "tcp", "--target", "127.0.0.1:50051", "--timeout-ms", "0"],
            "argument --timeout-ms: '0' is not a whole number from 1",
        ),
        (["--mode", "tcp", "--target", "127.0.0.1:50051", "--time", "5"], "unrecognized arguments: --time"),
    ],
)
def test_bad_arguments_exit_2(arguments: list[str], complaint: str) -> None:
    """Bad arguments end with 2, print no log line and name the option and its rule."""
    done = run(*arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr


@pytest.mark.req("TQ-180")
@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("127.0.0.1:50051", ("127.0.0.1", 50051)),
        ("coordinator:50054", ("coordinator", 50054)),
        ("my_node-1.example.:1", ("my_node-1.example.", 1)),
        ("[::1]:65535", ("::1", 65535)),
        ("[fe80::1%eth0]:80", ("fe80::1%eth0", 80)),
    ],
)
def test_targets_that_are_accepted(text: str, target: tuple[str, int]) -> None:
    """A target is a name, an IPv4 address or a bracketed IPv6 address with a port."""
    assert healthcheck.parse_target(text) == target


@pytest.mark.req("CH-83")
@pytest.mark.parametrize(
    "text",
    [
        *("", ":", ":50051", "host", "host:", "host:0", "host:65536", "host:000080", "host:-1", "host:+1"),
        *("host:1_0", "host: 1", "host:٣", "host:http", "a b:1", "http://host:1", "hôte:1", "...:1"),
        *("::1:80", "::1", "[::1]", "[::1]80", "[]:80", "[host]:80", "[127.0.0.1]:80", "[::1:80", "::1]:80"),
    ],
)
def test_targets_that_are_refused(text: str) -> None:
    """Any other target is an argument error."""
    with pytest.raises(argparse.ArgumentTypeError):
        healthcheck.parse_target(text)


@pytest.mark.req("TQ-180")
@pytest.mark.parametrize(
    "text", ["", "0", "-1", "1.5", "1e3", "1_000", " 5", "٣", "ms", "3600001", "9" * 5000]
)
def test_timeouts_that_are_refused(text: str) -> None:
    """A timeout is a whole number of milliseconds from 1 to one hour."""
    with pytest.raises(argparse.ArgumentTypeError):
        healthcheck.parse_timeout_ms(text)


@pytest.mark.req("TQ-181")
def test_ipv6_target_is_looked_up_without_brackets(
    listener: socket.socket, addresses: Callable[..., list[bytes]], capsys: pytest.CaptureFixture[str]
) -> None:
    """A bracketed IPv6 target is resolved bare and logged in brackets."""
    asked = addresses(read_port(listener))

    assert healthcheck.main(["--mode", "tcp", "--target", "[::1]:50051", *PATIENT]) == 0

    assert asked == [b"::1"]
    assert read_only_line(capsys.readouterr().out)["target"] == "[::1]:50051"


@pytest.mark.req("TQ-181")
def test_one_good_address_is_enough(
    listener: socket.socket,
    closed_port: int,
    silent_port: int,
    addresses: Callable[..., list[bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A refusing and a silent address leave enough of the one budget for the address behind them."""
    addresses(closed_port, silent_port, read_port(listener))
    shares: dict[int, float] = {}
    connect = healthcheck._connect

    def connect_without_waiting(family: int, address: tuple[str, int], timeout: float) -> socket.socket:
        """The share of the silent one is noted, and not waited for."""
        shares[address[1]] = timeout
        return connect(family, address, 0.1 if address[1] == silent_port else timeout)

    monkeypatch.setattr(healthcheck, "_connect", connect_without_waiting)

    assert healthcheck.main(["--mode", "tcp", "--target", "node:1", *PATIENT]) == 0
    assert list(shares) == [closed_port, silent_port, read_port(listener)]
    assert shares[silent_port] <= 30


@pytest.mark.req("TQ-181")
def test_several_silent_addresses_share_the_timeout(
    silent_port: int, addresses: Callable[..., list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shares of all addresses together never exceed the timeout."""
    addresses(*[silent_port] * 5)
    shares: list[float] = []
    connect = healthcheck._connect

    def record_timeout(family: int, address: tuple[str | int | bytes, ...], timeout: float) -> None:
        shares.append(timeout)
        connect(family, address, timeout)

    monkeypatch.setattr(healthcheck, "_connect", record_timeout)

    # On a busy machine the time may be over before the first of them is tried.
    while not shares:
        assert healthcheck.main(["--mode", "tcp", "--target", "node:1", "--timeout-ms", "1500"]) == 1
    assert len(shares) <= 5
    assert sum(shares) <= 1.5


@pytest.mark.req("TQ-181")
def test_name_resolution_counts_against_the_timeout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A resolver that hangs does not hold the check beyond its timeout."""
    release = threading.Event()
    ended = threading.Event()

    def getaddrinfo(*_: object, **__: object) -> list[AddressRow]:
        release.wait()
        ended.set()
        return []

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    try:
        assert healthcheck.main(["--mode", "tcp", "--target", "node:1", "--timeout-ms", "50"]) == 1
    finally:
        release.set()
    assert ended.wait(timeout=30)
    assert read_only_line(capsys.readouterr().out)["message"] == "target did not answer within 50 ms"


@pytest.mark.req("TQ-181")
def test_unknown_name_is_unhealthy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name that does not resolve is unhealthy with the resolver's cause."""

    def getaddrinfo(*_: object, **__: object) -> list[AddressRow]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)

    assert healthcheck.main(["--mode", "worker", "--target", "coordinator:50054", *PATIENT]) == 1
    message = read_only_line(capsys.readouterr().out)["message"]
    assert message == "coordinator cannot be reached: Name or service not known"


@pytest.mark.req("TQ-181")
def test_connection_to_itself_is_unhealthy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A socket that meets itself on a closed port proves no server."""
    met: list[bool] = []

    class SelfConnecting(socket.socket):
        def connect(self, address: object) -> None:
            self.bind(("127.0.0.1", 0))
            super().connect(self.getsockname())
            met.append(self.getsockname() == self.getpeername())

    monkeypatch.setattr(socket, "socket", SelfConnecting)

    assert healthcheck.main(["--mode", "tcp", "--target", "127.0.0.1:50051", *PATIENT]) == 1
    assert met == [True]
    assert (
        read_only_line(capsys.readouterr().out)["message"] == "target cannot be reached: connection refused"
    )


@pytest.mark.req("TQ-180")
def test_check_loads_few_modules(closed_port: int) -> None:
    """A whole check loads none of the slow modules that a service needs."""
    arguments = ["--mode", "tcp", "--target", f"127.0.0.1:{closed_port}"]
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from scripts import healthcheck; "
        f"healthcheck.main({arguments!r}); print(*sys.modules)"
    )
    # -I -S keeps site packages out, which may load anything before the first line runs.
    command = [sys.executable, "-I", "-S", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    loaded = set(done.stdout.splitlines()[-1].split())
    assert "scripts.healthcheck" in loaded
    assert not {"asyncio", "logging", "grpc", "typing", "threading", "encodings.idna"} & loaded
