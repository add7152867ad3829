"""The session tests that the OpenAI Agents SDK publishes, run against our session.

They are in the SDK's source distribution, not in its wheel. It is looked for where
``OPENAI_AGENTS_SDIST`` says (the unpacked directory), else fetched by pip for the version that is installed:

    pytest tests/external/test_openai_sessions.py
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

import pytest

from eventlog.server.binary import find

HERE = Path(__file__).parent
SESSIONS = "tests/extensions/memory/test_redis_session.py"
APPLY = 33
"""How many of them apply; none of these may be lost, or become a test that is passed by."""


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked source distribution."""
    given = os.environ.get("OPENAI_AGENTS_SDIST")
    if given:
        assert (Path(given) / SESSIONS).is_file(), f"OPENAI_AGENTS_SDIST={given} has no {SESSIONS}"
        return Path(given)
    home = tmp_path_factory.mktemp("sdist")
    wanted = f"openai-agents=={version('openai-agents')}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", "openai-agents", "-d", str(home)]
    done = subprocess.run([*command, wanted], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, f"pip cannot fetch {wanted}; set OPENAI_AGENTS_SDIST:\n{done.stderr[-2000:]}"
    with tarfile.open(next(home.glob("*.tar.gz"))) as archive:
        archive.extractall(home, filter="data")
    return next(path for path in home.iterdir() if path.is_dir())


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> object:
    """The socket of a server with a database for each client of each test."""
    home = tmp_path_factory.mktemp("db")
    socket = home / "s"
    command = [str(find(None).path), "--port", "0", "--unixsocket", str(socket), "--databases", "2000", "--save", ""]
    process = subprocess.Popen([*command, "--dir", str(home)], stdout=subprocess.DEVNULL)
    try:
        yield socket
    finally:
        process.terminate()
        process.wait()


def test_the_sessions_of_the_sdk_and_ours_pass_the_same_tests(sdist: Path, databases: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "openai_sessions_plugin", "-p", "no:cacheprovider", SESSIONS]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(HERE), str(HERE.parents[1]))),
        "EVENTLOG_TEST_SOCKET": str(databases),
    }
    done = subprocess.run(command, cwd=sdist, env=environment, capture_output=True, text=True, timeout=110, check=False)
    print(done.stdout[-4000:])
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    figures = dict(re.findall(r"(\d+) (passed|failed|skipped|error|deselected)", done.stdout.splitlines()[-1]))
    told = {what: int(number) for number, what in figures.items()}
    assert told["passed"] == APPLY
    assert set(told) <= {"passed", "deselected"}, "a test that is passed by does not count"


def test_each_test_that_is_left_out_has_its_reason() -> None:
    lines = (HERE / "openai_sessions_left_out.txt").read_text().splitlines()
    told = [line for line in lines if line and not line.startswith("#")]
    assert told
    assert all(re.fullmatch(r"test_\w+: \w.+", line) for line in told)
    assert len({line.partition(":")[0] for line in told}) == len(told)
