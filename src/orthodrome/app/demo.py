from ..plots.demo import run_demo as _run  # noqa: D100


def run_demo(out, *, command, report):
    return _run(out, command=command, progress=lambda done, total, task: report(done / total, task))
