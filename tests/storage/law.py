from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from synthetic import write_corpus

from nephoscope.storage.features import features

if TYPE_CHECKING:
    from nephoscope.storage.corpus import Corpus
    from nephoscope.storage.features import Features


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Make a corpus of four levels, three mixes and two replicates whose law is that of ``synthetic.Law``."""
    folder = tmp_path_factory.mktemp("synthetic") / "corpus"
    return write_corpus(folder, levels=(20, 40, 80, 160), replicates=2)


@pytest.fixture(scope="session")
def runs(corpus: Corpus) -> list[Features]:
    return [features(corpus, run, corpus.types) for run in corpus.runs]
