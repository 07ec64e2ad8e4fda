"""Tell by exit code whether a target accepts TCP connections: 0 healthy, 1 unhealthy, 2 bad arguments.

Every container starts this each few seconds, so it imports little and keeps to the standard library.
"""

import argparse
import json
import socket
import sys
import time
from _thread import allocate_lock, start_new_thread
from collections.abc import Sequence

HEALTHY = 0
UNHEALTHY = 1
MAX_TIMEOUT_MS = 3_600_000

Target = tuple[str, int]
_SocketAddress = tuple[str | int | bytes, ...]
_Addresses = list[tuple[int, _SocketAddress]]


def main(argv: Sequence[str] | None = None) -> int:
    """Check the target once, print one JSON log line and return the exit code."""
    options = _parser().parse_args(argv)
    host, port = options.target
    begin = time.monotonic()
    try:
        probe(host, port, deadline=begin + options.timeout_ms / 1000)
        code, level, message = HEALTHY, "INFO", f"{_subject(options.mode)} accepts connections"
    except TimeoutError:
        code, level = UNHEALTHY, "ERROR"
        message = f"{_subject(options.mode)} did not answer within {options.timeout_ms} ms"
    except OSError as error:
        code, level = UNHEALTHY, "ERROR"
        message = f"{_subject(options.mode)} cannot be reached: {error.strerror or error}"
    line = {
        "ts_ms": time.time_ns() // 1_000_000,
        "level": level,
        "service": options.service,
        "method": "",
        "event": "healthcheck",
        "message": message,
        "mode": options.mode,
        "target": f"[{host}]:{port}" if ":" in host else f"{host}:{port}",
        "latency_ms": round((time.monotonic() - begin) * 1000, 3),
    }
    print(json.dumps(line))
    return code


def probe(host: str, port: int, deadline: float) -> None:
    """Open and close one TCP connection before the monotonic deadline, or raise OSError."""
    addresses = _resolve(host, port, deadline)
    failure: OSError | None = None
    for index, (family, address) in enumerate(addresses):
        # An equal share of what is left, so one silent address cannot starve those behind it.
        share = _left(deadline) / (len(addresses) - index)
        try:
            _connect(family, address, share)
        except OSError as error:
            failure = error
        else:
            return
    raise failure or OSError("the name has no address")


def parse_target(text: str) -> Target:
    """Split host:port, with an IPv6 host in brackets; raise ArgumentTypeError on anything else."""
    host, colon, port = text.rpartition(":")
    if not colon:
        raise argparse.ArgumentTypeError(f"{text!r} is not host:port")
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and 1 <= int(port) <= 65535):
        raise argparse.ArgumentTypeError(f"{text!r} needs a port from 1 to 65535")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
        if not _is_ipv6(host):
            raise argparse.ArgumentTypeError(f"{text!r} needs an IPv6 address between the brackets")
    elif not (host.isascii() and host.replace(".", "").replace("-", "").replace("_", "").isalnum()):
        rule = "needs an ASCII host name or IPv4 address; IPv6 goes in brackets, as in [::1]:50051"
        raise argparse.ArgumentTypeError(f"{text!r} {rule}")
    return host, int(port)


def parse_timeout_ms(text: str) -> int:
    """Read a positive whole number of milliseconds; raise ArgumentTypeError on anything else."""
    if text.isascii() and text.isdigit() and len(text) <= 9 and 1 <= int(text) <= MAX_TIMEOUT_MS:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {MAX_TIMEOUT_MS}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m scripts.healthcheck", allow_abbrev=False)
    parser.add_argument(
        "--mode",
        required=True,
        choices=("tcp", "worker"),
        help="tcp: the target is the server itself; worker: it is the coordinator the worker needs",
    )
    parser.add_argument("--target", required=True, type=parse_target, metavar="HOST:PORT")
    parser.add_argument(
        "--timeout-ms", type=parse_timeout_ms, default=1000, metavar="MS", help="limit for the whole check"
    )
    parser.add_argument(
        "--service", default="healthcheck", metavar="NAME", help="service name in the log line"
    )
    return parser


def _subject(mode: str) -> str:
    return "coordinator" if mode == "worker" else "target"


def _is_ipv6(host: str) -> bool:
    try:
        socket.inet_pton(socket.AF_INET6, host.partition("%")[0])
    except (OSError, UnicodeError):
        return False
    return host.isascii()


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _resolve(host: str, port: int, deadline: float) -> _Addresses:
    # getaddrinfo takes no timeout: a bare thread is left behind when it is late and ends with the process.
    found: list[_Addresses | OSError] = []
    done = allocate_lock()
    done.acquire()

    def look_up() -> None:
        try:
            # Bytes, because text would load the whole IDNA codec.
            rows = socket.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM)
            found.append([(family, address) for family, _, _, _, address in rows])
        except OSError as error:
            found.append(error)
        finally:
            done.release()

    start_new_thread(look_up, ())
    if not done.acquire(timeout=_left(deadline)):
        raise TimeoutError
    answer = found[0]
    if isinstance(answer, OSError):
        raise answer
    return answer


def _connect(family: int, address: _SocketAddress, timeout: float) -> None:
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout)
        connection.connect(address)
        # A closed loopback port in the ephemeral range can be connected to itself by chance.
        if connection.getsockname() == connection.getpeername():
            raise ConnectionRefusedError("connection refused")


if __name__ == "__main__":
    sys.exit(main())
