"""Ctrl-C while Spark works: an interruption that is told as one, and a JVM that is not asked any more than it
must be.

Spark's own handler asks the JVM from within the call that it interrupts, and py4j writes a traceback to the
terminal. Here the handler of the program stays, what py4j has to say goes to Spark's log, and an error that
only says that the JVM was cut off is the interruption that it comes from.
"""

import logging
import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def own_interrupts() -> Iterator[None]:
    """Whatever is started within leaves the handler of SIGINT as it is."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


@contextmanager
def stopping(session: "SparkSession", log: Path) -> Iterator[None]:
    """Stop it at the end. Raises KeyboardInterrupt for whatever came of one."""
    handler = logging.FileHandler(log, delay=True)
    logging.getLogger().addHandler(handler)
    try:
        yield
    except BaseException as error:
        if not _came_of_an_interrupt(error):
            session.stop()
            raise
        _stop_quietly(session)
        raise KeyboardInterrupt from None
    else:
        session.stop()
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()


def _came_of_an_interrupt(error: BaseException) -> bool:
    found: BaseException | None = error
    while found is not None and not isinstance(found, KeyboardInterrupt):
        found = found.__cause__ or found.__context__
    return found is not None


def _stop_quietly(session: "SparkSession") -> None:
    """Its connection was cut off within a call: whether it still answers is nobody's concern."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    with warnings.catch_warnings(), suppress(Py4JError, PySparkException, OSError):
        warnings.simplefilter("ignore")
        session.stop()
