"""Health check of a container: exit code 0 for healthy, 1 for unhealthy, 2 for bad arguments.

The target has to accept TCP connections or, in the mode `http`, to answer a GET with a status of success.

Every container starts this every few seconds, so it imports only little, all of it standard library.
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
_LONGEST_LINE = 1000

Target = tuple[str, int]
HttpTarget = tuple[str, int, str]
"""Host, port and path, which is empty where there is only a port."""
_SocketAddress = tuple[str | int | bytes, ...]
_Addresses = list[tuple[int, _SocketAddress]]


def main(argv: Sequence[str] | None = None) -> int:
    """Check the target once, print one JSON log line and return the exit code."""
    options = _parse_options(argv)
    target: HttpTarget = options.target
    begin = time.monotonic()
    try:
        code, level, message = _check(options.mode, target, begin + options.timeout_ms / 1000)
    except TimeoutError:
        code, level = UNHEALTHY, "ERROR"
        message = f"{_name_subject(options.mode)} did not answer within {options.timeout_ms} ms"
    except OSError as error:
        code, level = UNHEALTHY, "ERROR"
        message = f"{_name_subject(options.mode)} cannot be reached: {error.strerror or error}"
    line = {
        "ts_ms": time.time_ns() // 1_000_000,
        "level": level,
        "service": options.service,
        "method": "",
        "event": "healthcheck",
        "message": message,
        "mode": options.mode,
        "target": _format_target(target),
        "latency_ms": round((time.monotonic() - begin) * 1000, 3),
    }
    print(json.dumps(line))
    return code


def _check(mode: str, target: HttpTarget, deadline: float) -> tuple[int, str, str]:
    """Check the target; return exit code, log level and message, or raise OSError without an answer."""
    if mode != "http":
        probe(*target[:2], deadline)
        return HEALTHY, "INFO", f"{_name_subject(mode)} accepts connections"
    status = fetch_status(*target, deadline)
    if is_success(status):
        return HEALTHY, "INFO", f"target answers {status}"
    return UNHEALTHY, "ERROR", f"target answers {status}" if status else "target does not answer in HTTP"


def probe(host: str, port: int, deadline: float) -> None:
    """Open and close one TCP connection before the monotonic deadline, or raise OSError."""
    _open_connection(host, port, deadline).close()


def fetch_status(host: str, port: int, path: str, deadline: float) -> int:
    """Fetch the status of a GET; 0 for an answer that is no HTTP. Raise OSError without an answer."""
    request = f"GET {path or '/'} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode("ascii")
    with _open_connection(host, port, deadline) as connection:
        line = _request_first_line(connection, request, deadline)
    if line.startswith(b"HTTP/"):
        return _parse_status(line)
    # A TLS server answers the plain request with an alert, or not at all.
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Only the health matters, not the identity: the request has no secrets.
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with _open_connection(host, port, deadline) as plain:
        try:
            with context.wrap_socket(plain) as connection:
                return _parse_status(_request_first_line(connection, request, deadline))
        except ssl.SSLError:
            return 0


def is_success(status: int) -> bool:
    """Whether a status is one of success."""
    return 200 <= status < 300


def parse_http_target(text: str) -> HttpTarget:
    """Split host:port/path, of which the path may be missing."""
    target, slash, path = text.partition("/")
    if not all("!" <= letter <= "~" for letter in path):
        raise argparse.ArgumentTypeError(f"{text!r} needs a path of printable ASCII")
    return (*parse_target(target), slash + path)


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


def _parse_options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = _create_parser()
    options = parser.parse_args(argv)
    if options.mode != "http" and options.target[2]:
        parser.error(f"argument --target: {_format_target(options.target)!r} has a path, which only http has")
    return options


def _create_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m scripts.healthcheck", allow_abbrev=False)
    parser.add_argument(
        "--mode",
        required=True,
        choices=("tcp", "worker", "http"),
        help="tcp: the target is the server itself; worker: it is the coordinator the worker needs; "
        "http: the target answers a GET",
    )
    parser.add_argument("--target", required=True, type=parse_http_target, metavar="HOST:PORT[/PATH]")
    parser.add_argument(
        "--timeout-ms", type=parse_timeout_ms, default=1000, metavar="MS", help="limit for the whole check"
    )
    parser.add_argument(
        "--service", default="healthcheck", metavar="NAME", help="service name in the log line"
    )
    return parser


def _format_target(target: HttpTarget) -> str:
    host, port, path = target
    return f"[{host}]:{port}{path}" if ":" in host else f"{host}:{port}{path}"


def _name_subject(mode: str) -> str:
    return "coordinator" if mode == "worker" else "target"


def _is_ipv6(host: str) -> bool:
    try:
        socket.inet_pton(socket.AF_INET6, host.partition("%")[0])
    except (OSError, UnicodeError):
        return False
    return host.isascii()


def _compute_time_left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _resolve(host: str, port: int, deadline: float) -> _Addresses:
    # getaddrinfo has no timeout, so it runs in a bare thread, which ends with the process if it is late.
    data: list[_Addresses | OSError] = []
    done = allocate_lock()
    done.acquire()

    def look_up() -> None:
        try:
            # Bytes, because text would load the whole IDNA codec.
            rows = socket.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM)
            data.append([(family, address) for family, _, _, _, address in rows])
        except OSError as error:
            data.append(error)
        finally:
            done.release()

    start_new_thread(look_up, ())
    if not done.acquire(timeout=_compute_time_left(deadline)):
        raise TimeoutError
    answer = data[0]
    if isinstance(answer, OSError):
        raise answer
    return answer


def _open_connection(host: str, port: int, deadline: float) -> socket.socket:
    addresses = _resolve(host, port, deadline)
    failure: OSError | None = None
    for index, (family, address) in enumerate(addresses):
        # Split the time that is left equally, so that one silent address cannot starve those behind it.
        timeout = _compute_time_left(deadline) / (len(addresses) - index)
        try:
            return _connect(family, address, timeout)
        except OSError as error:
            failure = error
    raise failure or OSError("the name has no address")


def _connect(family: int, address: _SocketAddress, timeout: float) -> socket.socket:
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout)
        connection.connect(address)
        # A closed loopback port in the ephemeral range can be connected to itself by chance.
        if connection.getsockname() == connection.getpeername():
            raise ConnectionRefusedError("connection refused")
    except BaseException:
        connection.close()
        raise
    return connection


def _request_first_line(connection: socket.socket, request: bytes, deadline: float) -> bytes:
    """Send a request; return the first line of the answer, or its start if the other side closes."""
    connection.settimeout(_compute_time_left(deadline))
    connection.sendall(request)
    data = b""
    while b"\n" not in data and len(data) < _LONGEST_LINE:
        connection.settimeout(_compute_time_left(deadline))
        try:
            part = connection.recv(4096)
        except ConnectionResetError:
            break
        if not part:
            break
        data += part
    return data.partition(b"\n")[0]


def _parse_status(line: bytes) -> int:
    words = line.split()
    return int(words[1]) if len(words) > 1 and line.startswith(b"HTTP/") and words[1].isdigit() else 0


if __name__ == "__main__":
    sys.exit(main())
