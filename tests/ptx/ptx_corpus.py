"""The corpus as text."""

from __future__ import annotations

import tarfile
from pathlib import Path

CORPUS = Path(__file__).parent.parent / "corpus"


def read_corpus() -> dict[str, str]:
    """Every corpus file by `front end/name`."""
    texts: dict[str, str] = {}
    for archive in sorted(CORPUS.glob("*.tar.xz")):
        with tarfile.open(archive) as files:
            for member in files:
                data = files.extractfile(member)
                if data is not None:
                    texts[f"{archive.name.split('.')[0]}/{member.name}"] = data.read().decode("latin-1")
    return texts
