"""``serve-search``: a search engine as a service, for Deep Search and for Search-R1's trainer."""

from __future__ import annotations

import argparse
import json
import signal
import threading
from typing import Any

from agentgym_envs.cli.environments import Figures
from agentgym_envs.deepsearch.retrievers import open_retriever
from agentgym_envs.deepsearch.server import SearchServer, SearchService, ServerLimits


def add_serve_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "retriever",
        nargs="?",
        default="fts5",
        type=retriever_spec,
        help="a name, or a JSON object of a name and its settings (default: fts5, the own corpus)",
    )
    parser.add_argument("--host", default="127.0.0.1", help="where to listen (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8000, help="0 takes a free one (default: 8000)")
    defaults = ServerLimits()
    for name, what in (
        ("threads", "searches made at once"),
        ("max_queries", "in one request"),
        ("max_waiting", "requests under way; more are turned away"),
    ):
        default = getattr(defaults, name)
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            type=int,
            default=default,
            metavar="N",
            help=f"{what} (default: {default})",
        )


def serve_search(options: argparse.Namespace) -> tuple[int, Figures]:
    """Run the command until it is stopped by SIGINT or SIGTERM."""
    limits = ServerLimits(
        threads=options.threads, max_queries=options.max_queries, max_waiting=options.max_waiting
    )
    service = SearchService(lambda: open_retriever(options.retriever), limits)
    server = SearchServer(service, options.host, options.port, limits)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    print(f"listening on {server.url}", flush=True)
    threading.Thread(target=server.serve_forever, name="serve", daemon=True).start()
    try:
        service.load()
        version = service.version()
        print(f"ready: engine {version['engine']}, corpus {version['digest']}", flush=True)
        stop.wait()
    finally:
        server.shutdown()
        server.server_close()
        service.close()
    return 0, {"url": server.url, **version}


def retriever_spec(text: str) -> Any:
    """A name, or the JSON of an object that names an engine and its settings."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"expected a name or a JSON object: {error}") from error
