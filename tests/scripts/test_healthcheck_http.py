"""Tests of the container healthcheck in the mode `http`, against real sockets on loopback."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from pathlib import Path

import pytest

from runtime.certs import Authority
from scripts import healthcheck

PATIENT = ("--timeout-ms", "60000")


class AnsweringServer:
    """A server that answers every connection with the same bytes, behind TLS if it has a certificate."""

    def __init__(self, answer: bytes, context: ssl.SSLContext | None = None) -> None:
        self._answer = answer
        self._context = context
        self.asked: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def __enter__(self) -> AnsweringServer:
        return self

    def __exit__(self, *_: object) -> None:
        # A listener that is only closed does not wake whoever waits for a connection.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            with plain:
                try:
                    connection = (
                        self._context.wrap_socket(plain, server_side=True) if self._context else plain
                    )
                    with connection:
                        self.asked.append(connection.recv(4096))
                        connection.sendall(self._answer)
                except OSError:
                    continue


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", 0, "target answers 200"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 0, "target answers 204"),
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\n", 1, "target answers 503"),
        (b"HTTP/1.1 302 Found\r\n\r\n", 1, "target answers 302"),
        (b"hello\r\n", 1, "target does not answer in HTTP"),
        (b"", 1, "target does not answer in HTTP"),
        (b"HTTP/1.1 fine\r\n", 1, "target does not answer in HTTP"),
    ],
)
def test_http_is_healthy_by_its_status(
    answer: bytes, code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The mode `http` asks for the path of the target and looks at the first line of the answer."""
    with AnsweringServer(answer) as server:
        target = f"127.0.0.1:{server.port}/readyz"
        assert healthcheck.main(["--mode", "http", "--target", target, *PATIENT]) == code
    line = json.loads(capsys.readouterr().out)
    assert (line["message"], line["target"], line["mode"]) == (message, target, "http")
    assert server.asked[0].startswith(b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n")


def test_http_behind_tls_is_asked_as_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A server that answers a plain request with an alert is asked again, under TLS."""
    issued = Authority("shop").issue("till")
    (tmp_path / "crt").write_bytes(issued.certificate)
    (tmp_path / "key").write_bytes(issued.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    with AnsweringServer(b"HTTP/1.1 200 OK\r\n\r\n", context) as server:
        target = f"127.0.0.1:{server.port}/"
        assert healthcheck.main(["--mode", "http", "--target", target, *PATIENT]) == 0
    assert json.loads(capsys.readouterr().out)["message"] == "target answers 200"


def test_http_that_says_nothing_is_late(capsys: pytest.CaptureFixture[str]) -> None:
    """The limit is for the whole check, the answer included."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        target = f"127.0.0.1:{listener.getsockname()[1]}"
        assert healthcheck.main(["--mode", "http", "--target", target, "--timeout-ms", "100"]) == 1
    assert "did not answer within 100 ms" in json.loads(capsys.readouterr().out)["message"]


@pytest.mark.parametrize(
    "arguments", [("tcp", "localhost:80/healthz"), ("http", "localhost:80/a b"), ("http", "localhost/a")]
)
def test_a_path_is_for_http_alone(arguments: tuple[str, str]) -> None:
    """Anything else is a bad argument."""
    with pytest.raises(SystemExit) as ended:
        healthcheck.main(["--mode", arguments[0], "--target", arguments[1]])
    assert ended.value.code == 2
