"""What is said of the machine, where the system says little."""

from orthodrome._core import machine


def test_without_cpuinfo_the_machine_has_a_name(monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "_CPUINFO", tmp_path / "none")
    monkeypatch.setattr(machine.platform, "processor", lambda: "")
    monkeypatch.setattr(machine.platform, "machine", lambda: "abacus")
    assert machine.machine().startswith("abacus, ")
