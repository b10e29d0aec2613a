"""A real HTTP server on the loopback interface that speaks the chat protocol and answers by a script."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Reply:
    """One HTTP answer. status 0 drops the connection without a word."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Log:
    """What the server saw: the chat requests' bodies and keys in order, and the most that were open at once."""

    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    open: int = 0
    most_open: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


def chat(content: str | None, finish_reason: str = "stop", **message: Any) -> Reply:
    """A chat completion. message: further fields, such as reasoning_content."""
    choice = {
        "index": 0,
        "finish_reason": finish_reason,
        "message": {"role": "assistant", "content": content, **message},
    }
    usage = {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}
    return Reply(
        {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}
    )


def refusal(status: int, message: str, **headers: str) -> Reply:
    return Reply({"error": {"message": message, "type": "x", "code": status}}, status, headers)


@contextlib.contextmanager
def scripted_server(
    answer: Callable[[int, dict[str, Any]], Reply], models: tuple[str, ...] = ("extractor",)
) -> Iterator[Log]:
    """Serves until the block ends. answer: called with (number of the chat request from 0, its body)."""
    log = Log()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send(Reply({"object": "list", "data": [{"id": name, "object": "model"} for name in models]}))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with log.lock:
                number = len(log.requests)
                log.requests.append(body)
                log.keys.append(self.headers.get("Authorization"))
                log.open += 1
                log.most_open = max(log.most_open, log.open)
            try:
                reply = answer(number, body)
            finally:
                with log.lock:
                    log.open -= 1
            self._send(reply)

        def _send(self, reply: Reply) -> None:
            if reply.status == 0:
                self.close_connection = True
                return
            data = reply.body.encode() if isinstance(reply.body, str) else json.dumps(reply.body).encode()
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: Any) -> None:  # a client that stops early closes its connections
            pass

    server = Server(("127.0.0.1", 0), Handler)
    log.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield log
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
