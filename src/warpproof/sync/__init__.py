"""The PTX memory model for litmus tests and protocol cores: allowed outcomes, races, endless waiting, repairs."""

from warpproof.sync.analysis import LIMIT_S, Answer, Race, check, find_race, outcomes
from warpproof.sync.drawing import draw
from warpproof.sync.execution import Execution
from warpproof.sync.model import LATEST, MODELS, SWITCHES, Model, Scope, model_named
from warpproof.sync.nvlitmus import load_tests, read_nvlitmus, read_tests
from warpproof.sync.program import Litmus
from warpproof.sync.reading import load_litmus, read_file, read_litmus
from warpproof.sync.repair import Edit, Repair, apply, find_repair
from warpproof.sync.results import Result, evaluate, result_dict, result_lines
from warpproof.sync.waiting import Hang, find_hang, weak_polls

__all__ = [
    "LATEST", "LIMIT_S", "MODELS", "SWITCHES", "Answer", "Edit", "Execution", "Hang", "Litmus", "Model", "Race",
    "Repair", "Result", "Scope", "apply", "check", "draw", "evaluate", "find_hang", "find_race", "find_repair",
    "load_litmus", "load_tests", "model_named", "outcomes", "read_file", "read_litmus", "read_nvlitmus", "read_tests",
    "result_dict", "result_lines", "weak_polls",
]
