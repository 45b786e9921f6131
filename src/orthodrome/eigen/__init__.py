"""Leading eigenpairs of symmetric operators, with a choice of solvers."""

from .dense import Dense
from .kha import Hebbian, HebbianResult, hebbian
from .krylov import Krylov
from .leading import SOLVERS, Choice, choose_solver, leading
from .nystroem import Nystroem
from .pairs import Eigenpairs

__all__ = [
    "SOLVERS",
    "Choice",
    "Dense",
    "Eigenpairs",
    "Hebbian",
    "HebbianResult",
    "Krylov",
    "Nystroem",
    "choose_solver",
    "hebbian",
    "leading",
]
