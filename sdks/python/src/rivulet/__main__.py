"""`python3 -m rivulet agents.py`: runs every agent that these files define, as one worker, until SIGTERM."""
from __future__ import annotations

import argparse
import os
import runpy
import signal
import sys
import threading
import traceback
import types
from typing import Any

from .agent import Agent
from .errors import RivuletError
from .worker import agents_by_name, run, url_of_environment

# What the command line of Rivulet takes for files that cannot work until they change.
unusable = 78


def agents_in(file: str) -> list[Agent]:
    """Agents that a file has imported from another one are among them, as in TypeScript."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
    try:
        found = load(file)
    except Exception as error:
        place = next((frame for frame in reversed(traceback.extract_tb(error.__traceback__)) if frame.filename == file), None)
        line = error.lineno if isinstance(error, SyntaxError) and error.filename == file else place and place.lineno
        sys.exit(refusal(f"{file}{f':{line}' if line else ''} cannot be loaded: {type(error).__name__}: {error}"))
    agents = [value for value in found.values() if isinstance(value, Agent)]
    if not agents:
        sys.exit(refusal(f'{file} has no agent: write @agent("name") above an async function'))
    return agents


def load(file: str) -> dict[str, Any]:
    """A file that is both named and imported runs once, so that its agents are the same objects."""
    path = os.path.abspath(file)
    for module in list(sys.modules.values()):
        if os.path.abspath(getattr(module, "__file__", None) or "") == path:
            return vars(module)
    module = types.ModuleType(os.path.splitext(os.path.basename(file))[0])
    vars(module).update(runpy.run_path(file, run_name="agents"), __name__=module.__name__, __file__=path)
    sys.modules.setdefault(module.__name__, module)
    return vars(module)


def refusal(reason: str) -> int:
    print(reason, file=sys.stderr, flush=True)
    return unusable


def stop_with_stdin() -> None:
    """The worker ends with the program that has started it, also if that was killed."""

    def read() -> None:
        while os.read(0, 1024):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=read, daemon=True).start()


def main() -> None:
    parser = argparse.ArgumentParser("python3 -m rivulet", description=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--stop-with-stdin", action="store_true", help="end when stdin is closed")
    arguments = parser.parse_args()
    try:
        agents = agents_by_name(agent for file in arguments.files for agent in agents_in(file))
        url_of_environment()
    except RivuletError as error:
        sys.exit(refusal(str(error)))
    if arguments.stop_with_stdin:
        stop_with_stdin()
    options: dict[str, Any] = {}
    if "WORKER_DRAIN_MS" in os.environ:
        options["drain_seconds"] = int(os.environ["WORKER_DRAIN_MS"]) / 1000
    if "WORKER_CONCURRENCY" in os.environ:
        options["concurrency"] = int(os.environ["WORKER_CONCURRENCY"])
    if "WORKER_VERSION" in os.environ:
        options["version"] = os.environ["WORKER_VERSION"]
    run(*agents.values(), **options)


main()
