"""A small corpus, and a search service that can be told to misbehave."""

import contextlib
import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from agentgym_envs.deepsearch.passages import Passage

RIVERS = {
    "Sarn": ("Avelonia", "412 km"),
    "Ulve": ("Brellmark", "87 km"),
    "Mirandel": ("Cortavia", "1,290 km"),
    "Withy": ("Dunmere", "301 km"),
    "Lenna": ("Estrovia", "655 km"),
    "Brack": ("the Fenwick Isles", "12 km"),
}
PASSAGES = [
    Passage(f"river/{number}", f"{river}: Course", f"The {river} is {length} long, all in {land}.")
    for number, (river, (land, length)) in enumerate(RIVERS.items())
]

HOSTILE = {
    "empty": "",
    "spaces": " \n\t ",
    "punctuation": "?!…\"'`´()[]{}",
    "control characters": "\x00\x01 Sarn\x1b[31m \x7f",
    "SQL": "'; DROP TABLE passages; -- Sarn",
    "SQL, one more": '" OR 1=1 UNION SELECT json FROM manifest --',
    "operators": "Sarn AND NOT (Ulve OR",
    "columns": "title:Sarn text:Ulve id:river/0",
    "near": "NEAR(Sarn Ulve, 2) + ^Sarn* -Ulve",
    "unbalanced quotes": 'Sarn "Ulve',
    "apostrophe": "it's the Sarn's",
    "a colon": "2001: A Space Odyssey",
    "lone surrogate": "Sarn \ud800",
    "right to left": "\u202eSarn\u202c",
    "one endless word": "x" * 1_000_000,
    "endless words": "Sarn " * 500_000,
    "different words": " ".join(f"word{number}" for number in range(100_000)),
    "deep": "(" * 1_000 + "Sarn",
    "emoji": "🏔 Sarn 🏔",
}


def write_corpus(path, passages=PASSAGES):
    """Write passages in turn in the two shapes; the path."""
    with path.open("w", encoding="utf-8") as file:
        for number, passage in enumerate(passages):
            record = {"id": passage.id, "title": passage.title, "text": passage.text}
            if number % 2:
                contents = f'"{passage.title}"\n{passage.text}'
                record = {"id": passage.id, "contents": contents}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return path


class Service:
    """Answers ``/retrieve`` with what `answer(body)` gives, ``/version`` with `version`.

    Args:
        answer: from the body of a request to the answer as JSON.
        faults: what to do with requests for ``/retrieve`` instead, one after the other: a status,
            a text to answer, a function that gets the handler, or None for the right answer.
            The last one goes on for ever if it is followed by `...`.
        version: JSON, or a status.
    """

    def __init__(self, answer=None, *, faults=(), version=404):
        self.answer = answer or found
        self.faults = list(faults)
        self.version = version
        self.bodies = []
        self.headers = []
        self._lock = threading.Lock()

    def post(self, handler):
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        with self._lock:
            self.bodies.append(body)
            self.headers.append(dict(handler.headers))
            fault = self.faults[0] if self.faults else None
            if self.faults and self.faults[1:] != [...]:
                self.faults.pop(0)
        if callable(fault):
            fault(handler)
        elif isinstance(fault, int):
            send(handler, fault, '{"detail": "no"}')
        elif fault is not None:
            send(handler, 200, fault)
        else:
            send(handler, 200, json.dumps(self.answer(body)))

    def get(self, handler):
        if isinstance(self.version, int):
            send(handler, self.version, "Not Found")
        else:
            send(handler, 200, json.dumps(self.version))

    @contextlib.contextmanager
    def running(self, port=0):
        service, open_sockets = self, []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self):
                super().setup()
                open_sockets.append(self.connection)

            def do_POST(self):
                with contextlib.suppress(OSError):
                    service.post(self)

            def do_GET(self):
                with contextlib.suppress(OSError):
                    service.get(self)

            def log_message(self, *args):
                pass

        server = _Server(("127.0.0.1", port), Handler)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        self.port = server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
            for one in open_sockets:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def handle_error(self, request, client_address):
        pass


def found(body):
    """Search-R1's answer, the same passages for every query."""
    one = [{"document": as_contents(passage), "score": 2.5} for passage in PASSAGES[: body["topk"]]]
    return {"result": [one for _ in body["queries"]]}


def as_contents(passage):
    return {"id": passage.id, "contents": f'"{passage.title}"\n{passage.text}'}


def send(handler, status, text):
    data = text.encode()
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


def hang_up(handler):
    """Close the connection without a word."""
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


def break_off(handler):
    """Promise more than is sent."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"result": [[]]}')
    hang_up(handler)


def drip(handler):
    """Send a byte now and then, for much longer than anybody waits."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    for _ in range(2_000):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.02)


def drip_headers(handler):
    """Send a header now and then, for ever."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    for number in range(2_000):
        handler.wfile.write(b"X-%d: y\r\n" % number)
        handler.wfile.flush()
        time.sleep(0.02)


def sleep(handler):
    """Say nothing for much longer than anybody waits."""
    time.sleep(5)
    hang_up(handler)


@contextlib.contextmanager
def half_open(port=0):
    """The URL of a server whose machine takes connections and whose program never looks."""
    with socket.create_server(("127.0.0.1", port), backlog=64) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@contextlib.contextmanager
def dead(port=0):
    """A URL at which nobody listens."""
    with socket.create_server(("127.0.0.1", port)) as listening:
        port = listening.getsockname()[1]
    yield f"http://127.0.0.1:{port}"
