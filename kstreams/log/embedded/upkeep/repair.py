"""Going on with what is left of a catalogue that no copy makes whole, when somebody asks for it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from kstreams.log.embedded.catalogue.catalogue import Catalogue
from kstreams.log.embedded.catalogue.journaled_database import existing_log
from kstreams.log.embedded.catalogue.reconciliation import choose_copy_with_loss
from kstreams.log.embedded.disk import Disk
from kstreams.log.embedded.upkeep.consistency import forget_unknown


def repair(folder: str | Path) -> list[str]:
    """Take the copy of the catalogue that has more, and abort what the segments hold beyond it.

    Parameters
    ----------
    folder : str or Path
        A log's folder; no process may have it open.

    Returns
    -------
    list of str
        What was done and lost, a sentence each; empty when the catalogue is sound.

    Raises
    ------
    LogError
        When the folder holds no log, or nothing of its catalogue.

    Examples
    --------
    >>> import tempfile
    >>> from kstreams.log import open_log
    >>> folder = tempfile.mkdtemp()
    >>> open_log(folder).close()
    >>> repair(folder)
    []
    """
    root = existing_log(folder)
    with closing(Catalogue(root, "os", Disk(), choose_copy_with_loss)) as catalogue:
        done = [*catalogue.repairs, *forget_unknown(catalogue, root)]
    advice = "Applications that ran on it start anew from its offsets: delete their state folders before."
    return [f"{each}." for each in done] + ([advice] if done else [])
