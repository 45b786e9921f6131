"""Commands in this process, in a folder of their own."""

import pytest

from orthodrome import app


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(capsys):
    """Return a function that runs a command line and returns what it printed."""

    def run(*arguments, code=0):
        found = app.main(list(map(str, arguments)))
        printed = capsys.readouterr()
        assert found == code, printed.err
        assert "Traceback" not in printed.err
        return printed

    return run
