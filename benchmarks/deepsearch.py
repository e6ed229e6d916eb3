"""Deep Search's engines: the embedded corpus, a million passages beside bm25s, and the server.

::

    python benchmarks/deepsearch.py embedded
    python benchmarks/deepsearch.py million --folder /tmp/million      # tantivy, then bm25s
    python benchmarks/deepsearch.py server --clients 200 --seconds 60

Each figure is a JSON line. Every measurement runs in a process of its own, so that times to open
and memory are its own; times of searches are CPU seconds of that process and wall seconds, of
which the latter mean something only on a quiet machine. What is remembered is switched off.

The million passages are generated: 100 words each from 600,000, as unevenly common as those of a
language (Zipf); the commonest are the stop words, the others are made up. They say something about
speed and size, nothing about what is found. Both engines leave the same stop words out of queries.
"""

from __future__ import annotations

import argparse
import http.client
import importlib.util
import json
import math
import multiprocessing
import os
import re
import resource
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from common import emit

SPAWN = multiprocessing.get_context("spawn")
K = 3
NUM_WORDS = 600_000
WORDS_A_PASSAGE = 100
NUM_QUERIES = 2_000


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("embedded")
    command.add_argument("--index", help="another file of the engine fts5")
    command.set_defaults(run=embedded)
    command = commands.add_parser("million")
    command.add_argument("--folder", type=Path, required=True, help="some 3 GB are written there")
    command.add_argument("--passages", type=int, default=1_000_000)
    command.add_argument("--engines", nargs="+", default=["tantivy", "bm25s"])
    command.set_defaults(run=million)
    command = commands.add_parser("server")
    command.add_argument("--clients", type=int, default=200)
    command.add_argument("--seconds", type=float, default=60.0)
    command.add_argument("--index", help="another file of the engine fts5")
    command.set_defaults(run=server)
    options = parser.parse_args()
    options.run(options)


# ------------------------------------------------------------------------------ measuring itself


def apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function gives in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=SPAWN) as pool:
        return pool.submit(function, *arguments).result()


def at_once(num: int, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """What a function gives in each of several fresh processes, which wait for one another."""
    barrier = SPAWN.Manager().Barrier(num)
    with ProcessPoolExecutor(num, mp_context=SPAWN) as pool:
        futures = [pool.submit(function, barrier, *arguments) for _ in range(num)]
        return [future.result() for future in futures]


def percentile(values: Sequence[float], share: float) -> float:
    """The least value that so many are not above."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]


def memory_mb() -> dict[str, float]:
    """Of this process: resident, its share of what is shared, and what is its alone."""
    text = Path("/proc/self/smaps_rollup").read_text()
    kb = {name: int(value) for name, value in re.findall(r"^(\w+): +(\d+) kB", text, re.M)}
    private = kb["Private_Dirty"] + kb["Private_Clean"]
    return {"rss": kb["Rss"] / 1024, "pss": kb["Pss"] / 1024, "private": private / 1024}


def peak_mb() -> float:
    """The most memory that this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def size_mb(path: Path) -> float:
    """Of a file, or of all files in a folder."""
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    return sum(one.stat().st_size for one in files) / 1e6


def load() -> float:
    """How many processes want to compute; figures of wall time are void if it is not near 0."""
    return round(os.getloadavg()[0], 1)


def time_searches(search: Callable[[str], Any], queries: Sequence[str]) -> dict[str, float]:
    """Milliseconds of a search after a first round that fills the caches of the machine."""
    for query in queries[:200]:
        search(query)
    cpu, wall = [], []
    for query in queries:
        cpu_begin, begin = time.process_time(), time.perf_counter()
        search(query)
        wall.append(1e3 * (time.perf_counter() - begin))
        cpu.append(1e3 * (time.process_time() - cpu_begin))
    return {
        "p50_ms": round(statistics.median(wall), 3),
        "p99_ms": round(percentile(wall, 0.99), 3),
        "cpu_p50_ms": round(statistics.median(cpu), 3),
        "cpu_p99_ms": round(percentile(cpu, 0.99), 3),
        "per_cpu_s": round(len(cpu) / (sum(cpu) / 1e3), 1),
        **{f"{name}_mb": round(value, 1) for name, value in memory_mb().items()},
    }


def report(prefix: str, figures: dict[str, float], **details: Any) -> None:
    """Print figures whose names end in their unit; ``per_s`` and ``per_cpu_s`` are rates."""
    for name, value in figures.items():
        figure, _, unit = name.rpartition("_")
        if figure.endswith(("per", "per_cpu")):
            figure, unit = name, "1/s"
        emit(f"{prefix}_{figure}", round(value, 4), unit, load=load(), **details)


# ----------------------------------------------------------------------------- embedded corpus


def embedded(options: argparse.Namespace) -> None:
    """First reset, searches, memory of one process and of eight."""
    index = options.index
    if not index:
        report("embedded_first", apart(first_reset))
    report("embedded_search", apart(search_fts5, index))
    shares = at_once(8, search_fts5_with, index)
    report(
        "embedded_8_processes",
        {"pss_mb": sum(one["pss_mb"] for one in shares), "per_cpu_s": shares[0]["per_cpu_s"]},
    )


def first_reset() -> dict[str, float]:
    """Seconds from the first import to the first observation; memory after 100 searches."""
    begin = time.perf_counter()
    import gymnasium

    import agentgym_envs  # noqa: F401

    imported = time.perf_counter()
    env = gymnasium.make("AgentGym/DeepSearch-v0")
    env.reset(seed=0)
    reset = time.perf_counter()
    for seed in range(100):
        env.reset(seed=seed)
        env.step(f"<search>{env.unwrapped.task.goal}</search>")
    return {"import_s": imported - begin, "reset_s": reset - imported, "rss_mb": memory_mb()["rss"]}


def search_fts5(index: str | None) -> dict[str, float]:
    """Open, and search for the package's questions and the steps that lead to their answers."""
    from agentgym_envs.deepsearch.retrievers.fts5 import EMBEDDED, Fts5Retriever

    begin = time.perf_counter()
    engine = Fts5Retriever(index or EMBEDDED)
    opened = time.perf_counter() - begin
    queries = questions_about(engine.passages(), engine.manifest.rows) if index else own_queries()
    figures = time_searches(lambda query: engine.search([query], K), queries)
    return {"open_s": opened, "file_mb": size_mb(Path(index or EMBEDDED)), **figures}


def search_fts5_with(barrier: Any, index: str | None) -> dict[str, float]:
    """The same, when all are ready."""
    barrier.wait()
    figures = search_fts5(index)
    barrier.wait()  # all are still open
    return figures | {f"{name}_mb": value for name, value in memory_mb().items()}


def own_queries() -> list[str]:
    """The package's test questions and the searches of their chains, in random order."""
    import random

    from agentgym_envs.deepsearch.questions import Question
    from agentgym_envs.deepsearch.tasks import default_questions

    queries: dict[str, None] = {}
    for task in default_questions().of_split("test", None):
        question = Question.of_task(task)
        queries |= dict.fromkeys([question.text, *(step.query for step in question.chain)])
    return random.Random(0).sample(list(queries), NUM_QUERIES)


def questions_about(passages: Iterator[Any], rows: int) -> list[str]:
    """Queries of a title and some words of the text, from passages all over the corpus."""
    step = max(1, rows // NUM_QUERIES)
    return [
        f"What is the {passage.title} {' '.join(passage.text.split()[3:6])} of"
        for number, passage in enumerate(passages)
        if number % step == 0
    ][:NUM_QUERIES]


# --------------------------------------------------------------------------- a million passages


def million(options: argparse.Namespace) -> None:
    """Build, size, searches and memory of each engine over the same generated corpus."""
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    corpus = folder / f"passages-{options.passages}.jsonl"
    if not corpus.exists():
        apart(write_corpus, corpus, options.passages)
    emit("million_corpus", round(size_mb(corpus), 1), "mb", passages=options.passages)
    for engine in options.engines:
        index = folder / f"{engine}-{options.passages}"
        details = {"engine": engine, "passages": options.passages}
        report("million_build", apart(BUILDERS[engine], corpus, index), **details)
        emit("million_index", round(size_mb(index), 1), "mb", **details)
        report("million_search", apart(search_index, engine, index, corpus), **details)
        for num in (2, 8):
            found = at_once(num, search_index_with, engine, index, corpus)
            report(
                f"million_{num}_processes",
                {
                    "searches_per_s": sum(one["per_s"] for one in found),
                    "pss_mb": sum(one["pss_mb"] for one in found),
                    "private_mb": sum(one["private_mb"] for one in found),
                },
                **details,
            )


def write_corpus(path: Path, num_passages: int) -> None:
    """Passages of made-up words, by a fixed seed."""
    rng = np.random.default_rng(0)
    common = stop_words()
    others = [f"{spell(number)}q" for number in range(NUM_WORDS - len(common))]
    words = np.array(common + others, dtype=object)
    shares = 1.0 / np.arange(1, NUM_WORDS + 1)
    bounds = np.cumsum(shares / shares.sum())
    part = path.with_suffix(".part")
    with part.open("w", encoding="ascii") as file:
        for begin in range(0, num_passages, 10_000):
            num = min(10_000, num_passages - begin)
            texts = words[np.searchsorted(bounds, rng.random((num, WORDS_A_PASSAGE)))]
            titles = words[rng.integers(1_000, NUM_WORDS, (num, 2))]
            for row in range(num):
                contents = f'"{" ".join(titles[row])}"\n{" ".join(texts[row])}'
                file.write(json.dumps({"id": str(begin + row), "contents": contents}) + "\n")
    part.replace(path)


def stop_words() -> list[str]:
    """The words that all engines leave out of queries."""
    from agentgym_envs.deepsearch.retrievers.terms import STOP_WORDS

    return sorted(STOP_WORDS)


def spell(number: int) -> str:
    """A word of syllables for a number."""
    syllables = []
    number += 1
    while number:
        number, rest = divmod(number, 85)
        syllables.append("bcdfghjklmnprstvz"[rest // 5] + "aeiou"[rest % 5])
    return "".join(syllables)


def queries_of(corpus: Path) -> list[str]:
    """Two words of a title, five of the text and four stop words, from all over the corpus."""
    rng = np.random.default_rng(1)
    size = corpus.stat().st_size
    left_out = set(stop_words())
    queries = []
    with corpus.open("rb") as file:
        for place in rng.integers(0, size - 10_000, NUM_QUERIES):
            file.seek(int(place))
            file.readline()
            title, text = json.loads(file.readline())["contents"].split("\n")
            some = rng.choice([word for word in text.split() if word not in left_out], 5)
            queries.append(f"what is the {title} of {' '.join(some)} and")
    return queries


def timed_build(build: Callable[[], Any]) -> dict[str, float]:
    """Seconds and peak memory of a build in this process."""
    begin, cpu_begin = time.perf_counter(), time.process_time()
    build()
    return {
        "wall_s": time.perf_counter() - begin,
        "cpu_s": time.process_time() - cpu_begin,
        "peak_mb": peak_mb(),
    }


def build_tantivy(corpus: Path, index: Path) -> dict[str, float]:
    """With the package's own builder."""
    from agentgym_envs.deepsearch.retrievers import tantivy

    return timed_build(lambda: tantivy.build(index, corpus))


def build_bm25s(corpus: Path, index: Path) -> dict[str, float]:
    """As bm25s is documented: all texts in memory, saved to be mapped."""
    import bm25s

    def build() -> None:
        with corpus.open(encoding="utf-8") as file:
            texts = [json.loads(line)["contents"] for line in file]
        engine = bm25s.BM25(backend="numba" if importlib.util.find_spec("numba") else "numpy")
        engine.index(
            bm25s.tokenize(texts, stopwords=stop_words(), show_progress=False),
            show_progress=False,
        )
        engine.save(str(index))

    return timed_build(build)


BUILDERS = {"tantivy": build_tantivy, "bm25s": build_bm25s}


def open_index(engine: str, index: Path) -> Callable[[str], Any]:
    """A function that searches for one query."""
    if engine == "tantivy":
        from agentgym_envs.deepsearch.retrievers.tantivy import TantivyRetriever

        ours = TantivyRetriever(index)
        return lambda query: ours.search([query], K)
    import bm25s

    theirs = bm25s.BM25.load(str(index), mmap=True)
    if importlib.util.find_spec("numba"):
        theirs.activate_numba_scorer()

    left_out = stop_words()

    def search(query: str) -> Any:
        tokens = bm25s.tokenize([query], stopwords=left_out, show_progress=False)
        return theirs.retrieve(tokens, k=K, show_progress=False, n_threads=1)

    return search


def search_index(engine: str, index: Path, corpus: Path) -> dict[str, float]:
    """Open, search, memory. bm25s gives rows only, the package's engine the passages."""
    begin = time.perf_counter()
    search = open_index(engine, index)
    opened = time.perf_counter() - begin
    return {"open_s": opened, **time_searches(search, queries_of(corpus))}


def search_index_with(barrier: Any, engine: str, index: Path, corpus: Path) -> dict[str, float]:
    """Searches a second while others do the same, and memory while all are open."""
    search, queries = open_index(engine, index), queries_of(corpus)
    for query in queries:
        search(query)
    barrier.wait()
    begin = time.perf_counter()
    for query in queries:
        search(query)
    per_s = len(queries) / (time.perf_counter() - begin)
    barrier.wait()
    memory = memory_mb()
    barrier.wait()
    return {"per_s": per_s, **{f"{name}_mb": value for name, value in memory.items()}}


# ------------------------------------------------------------------------------------ the server


def server(options: argparse.Namespace) -> None:
    """Many clients at once on the loopback device; errors, searches a second, latencies."""
    ready = SPAWN.Queue()
    process = SPAWN.Process(target=serve, args=(ready, options.index), daemon=True)
    process.start()
    url, queries = ready.get(timeout=300)
    parts = 4
    found = at_once(parts, ask, url, queries, options.clients // parts, options.seconds)
    process.terminate()
    latencies = [one for answers, _ in found for one in answers]
    errors = [one for _, problems in found for one in problems]
    details = {"clients": options.clients, "seconds": options.seconds, "first_errors": errors[:3]}
    report(
        "server",
        {
            "errors_count": len(errors),
            "searches_per_s": len(latencies) / options.seconds,
            "p50_ms": statistics.median(latencies),
            "p99_ms": percentile(latencies, 0.99),
        },
        **details,
    )


def ask(
    barrier: Any, url: str, queries: Sequence[str], num_clients: int, seconds: float
) -> tuple[list[float], list[str]]:
    """Milliseconds of each answer of so many clients, and what went wrong."""
    latencies: list[float] = []
    errors: list[str] = []
    barrier.wait()
    end = time.monotonic() + seconds

    def client(number: int) -> None:
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
        place = number
        while time.monotonic() < end:
            place += 17
            body = json.dumps({"queries": [queries[place % len(queries)]], "topk": K})
            begin = time.perf_counter()
            try:
                connection.request("POST", "/retrieve", body)
                response = connection.getresponse()
                (passages,) = json.loads(response.read())["result"]
                if response.status != 200 or not passages:
                    errors.append(f"status {response.status}, {len(passages)} passages")
            except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
                errors.append(repr(error))
                connection.close()
            latencies.append(1e3 * (time.perf_counter() - begin))

    threads = [threading.Thread(target=client, args=[number]) for number in range(num_clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return latencies, errors


def serve(ready: Any, index: str | None) -> None:
    """The server in a process of its own, without memory of what was asked."""
    from agentgym_envs.deepsearch.retrievers.fts5 import EMBEDDED, Fts5Retriever
    from agentgym_envs.deepsearch.server import SearchServer, SearchService, ServerLimits

    limits = ServerLimits()
    engine = Fts5Retriever(index or EMBEDDED)
    service = SearchService(lambda: engine, limits)
    carrier = SearchServer(service, "127.0.0.1", 0, limits)
    service.load()
    ready.put((carrier.url, questions_about(engine.passages(), engine.manifest.rows)))
    carrier.serve_forever()


if __name__ == "__main__":
    main()
