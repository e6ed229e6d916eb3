"""A server that speaks chat completions, in a thread, and can be told to misbehave."""

import contextlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

OK = object()
"""An answer as it should be."""


class ChatServer:
    """Answers every request with what `answer(body)` gives: a text or a message.

    Args:
        answer: from the body of a request to the reply.
        faults: what to do instead, request by request, as long as there is some: `OK`, a status,
            a pair of status and text, or a function that gets the handler.
    """

    def __init__(self, answer, faults=()):
        self.answer = answer
        self.faults = list(faults)
        self.requests = []  # bodies
        self.headers = []
        self.paths = []
        self._lock = threading.Lock()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def handle(self, handler):
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        with self._lock:
            self.requests.append(body)
            self.headers.append(dict(handler.headers))
            self.paths.append(handler.path)
            fault = self.faults.pop(0) if self.faults else OK
        if callable(fault):
            fault(handler)
        elif fault is not OK:
            status, text = fault if isinstance(fault, tuple) else (fault, "no")
            send(handler, status, text)
        else:
            message = self.answer(body)
            if isinstance(message, str):
                message = {"role": "assistant", "content": message}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            send(handler, 200, json.dumps({"object": "chat.completion", "choices": [choice]}))

    @contextlib.contextmanager
    def running(self):
        handle = self.handle

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                with contextlib.suppress(ConnectionError):
                    handle(self)

            def log_message(self, *args):
                pass

        self._server = _Server(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


def send(handler, status, text, **headers):
    data = text.encode()
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


def hang_up(handler):
    """Close the connection without a word."""
    handler.close_connection = True
    handler.connection.close()


def break_off(handler):
    """Promise more than is sent."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [')


def sleep(seconds):
    """Say nothing for a while, then close."""

    def fault(handler):
        time.sleep(seconds)
        hang_up(handler)

    return fault


def drip(handler):
    """Send a byte every 50 ms, for ever."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    for _ in range(200):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.05)
