"""What may be written on the command line."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

from warpproof import __version__

DEFAULT_TIMEOUT_S: Final = 100.0
_MODES: Final = {"auto": "the strictest confinement this machine offers", "strict": "all of it, else nothing runs",
                 "filter": "without namespaces and Landlock"}
_EPILOG: Final = """\
exit codes: 0 all proved, 1 something refuted, 2 usage or input error,
            3 inconclusive and nothing refuted, 4 internal error
"""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors carry a code."""

    def error(self, message: str) -> NoReturn:
        """Print `error[CLI601]` and the usage line, and exit with code 2."""
        sys.stderr.write(f"error[CLI601]: {message}\n  hint: {self.format_usage().strip()}\n")
        raise SystemExit(2)


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The parsed arguments; exits with code 2 if they make no sense."""
    parser = _build()
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        parser.print_help(sys.stderr)
        raise SystemExit(2)
    if arguments.command in ("prove", "run"):
        split = (arguments.spec, arguments.kernel, arguments.launch)
        if arguments.contract is None and not all(split):
            parser.error("give a contract file, or all of --spec, --kernel and --launch")
        if arguments.contract is not None and (arguments.spec or arguments.launch):
            parser.error("a contract file holds its own spec and launch; leave --spec and --launch out")
    return arguments


def _build() -> argparse.ArgumentParser:
    parser = _Parser(prog="warpproof", description="Prove GPU kernels correct for every input, size and schedule.",
                     epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=f"warpproof {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    prove = commands.add_parser("prove", help="prove or refute a kernel against its reference")
    _add_job(prove)
    prove.add_argument("--check-sizes", action="append", default=[], metavar="n=128,…",
                       help="where no proof for all sizes is found, prove the kernel for these sizes and say so; "
                            "`samples` takes the contract's samples (repeatable)")
    prove.add_argument("--save", metavar="FILE", help="write a counterexample here, for `warpproof replay`")
    run = commands.add_parser("run", help="run a kernel bit-exactly on this CPU and compare it with its reference")
    _add_job(run)
    run.add_argument("--seed", type=int, default=0, help="seed of the random inputs (default 0)")
    run.add_argument("--sample", type=_natural, default=0, metavar="I",
                     help="which of the contract's sample sizes to take (default 0, the first)")
    replay = commands.add_parser("replay", help="run a saved counterexample again, bit for bit")
    replay.add_argument("file", help="what `prove --save` wrote")
    _add_limits(replay)
    explain = commands.add_parser("explain", help="say what an error or reason code means and what to do")
    explain.add_argument("code", nargs="?", help="such as CUD701 or unbounded-loop; without it, list all codes")
    _add_litmus(commands.add_parser("litmus", help="evaluate litmus tests under the PTX memory model"))
    commands.add_parser("doctor", help="show versions of what is installed, and what is missing")
    _add_sandbox(commands.add_parser("sandbox", help="prove what a seccomp filter lets through"))
    return parser


def _add_sandbox(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=_Parser)
    verify = actions.add_parser("verify", help="prove the obligations of a filter and print what it lets through",
                                epilog="exit codes: 0 all proved, 1 something refuted or let through, 2 input error, "
                                       "3 inconclusive, 4 internal error")
    subject = verify.add_mutually_exclusive_group(required=True)
    subject.add_argument("filter", nargs="?", metavar="FILTER",
                         help="raw sock_filter bytes, assembly text, a policy (.toml), or a shipped policy's name")
    subject.add_argument("--pid", type=_natural, metavar="N", help="the filters of a running process (CAP_SYS_ADMIN)")
    subject.add_argument("--profile", metavar="FILE[::thread]",
                         help="an OCI or Docker profile, a Firecracker filter file, or a systemd unit")
    verify.add_argument("--policy", metavar="FILE", help="also prove the filter equal to this policy")
    verify.add_argument("--assume", action="append", default=[], metavar="LAYER",
                        help="another layer of confinement taken to be in force (repeatable)")
    verify.add_argument("--permit", action="append", default=[], metavar="CAPABILITY",
                        help="a capability that the process may have (repeatable)")
    verify.add_argument("--cap", action="append", default=[], metavar="CAP_X",
                        help="a capability of the container, for Docker profiles (repeatable)")
    verify.add_argument("--groups", metavar="FILE", help="what `systemd-analyze syscall-filter` printed")
    verify.add_argument("--certificate", metavar="FILE", help="write the closure's certificate here")
    verify.add_argument("--no-live", action="store_true", help="try nothing on the running kernel")
    verify.add_argument("--format", choices=("text", "json"), default="text")
    explain = actions.add_parser("explain", help="what a system call, capability, layer or shipped policy is")
    explain.add_argument("topic", nargs="?", help="without it, list all but the system calls")
    _add_guard(verify, 300.0, "auto")
    _add_command(actions.add_parser("run", help="run a command confined by a policy",
                                    usage="%(prog)s [options] -- CMD [ARG ...]",
                                    epilog="exit codes: the command's own (128 + N if signal N ended it), 2 input "
                                           "error, 124 time limit, 125 a layer of confinement is missing"))
    work = actions.add_parser("do", help="compile, print or solve in a confined process",
                              epilog="exit codes: 0 done, 2 input error, 3 no answer or a layer of confinement missing")
    work.add_argument("work", choices=("compile", "print", "solve"),
                      help="CUDA C++ to PTX, PTX to canonical PTX, or SMT-LIB to sat, unsat or unknown")
    work.add_argument("file", help="the input; - for standard input")
    _add_guard(work, 30.0, "strict", memory=4.0)
    actions.add_parser("doctor", help="what this machine lets `sandbox verify` do")


def _add_command(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--policy", metavar="P", default="command",
                        help="what it may call: a policy (.toml) or a shipped one's name (default: command)")
    parser.add_argument("--read", metavar="PATH", action="append", default=[],
                        help="a file or folder it may read and execute, besides the system's programs and libraries "
                             "(repeatable)")
    parser.add_argument("--write", metavar="PATH", action="append", default=[],
                        help="a file or folder it may also write to (repeatable)")
    parser.add_argument("--env", metavar="NAME[=VALUE]", action="append", default=[],
                        help="an environment variable, with the value it has here or another (repeatable)")
    parser.add_argument("--disk", type=_positive, default=4.0, metavar="GIB",
                        help="stop it when so much less is free where it may write (default %(default)s)")
    _add_guard(parser, 3600.0, "strict", memory=4.0, modes=("auto", "strict"))
    parser.add_argument("command_line", nargs="+", metavar="CMD", help="the command and its arguments, behind --")


def _add_guard(parser: argparse.ArgumentParser, timeout_s: float, mode: str, memory: float | None = None,
               modes: Sequence[str] = tuple(_MODES)) -> None:
    parser.add_argument("--timeout", type=_positive, default=timeout_s, metavar="S",
                        help=f"seconds after which it is stopped (default {timeout_s:g})")
    _add_memory(parser, memory)
    _add_sandbox_mode(parser, mode, modes)


def _add_litmus(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="FILE|DIR",
                        help="litmus tests; a folder means all *.litmus and *.test in it")
    parser.add_argument("--model", default="8.6", metavar="V", help="6.0, 7.5, 7.8, 8.0 or 8.6 (default 8.6)")
    parser.add_argument("--switch", action="append", default=[], metavar="NAME",
                        help="change one rule: red-acquires, causality-identity, no-sc-per-location (repeatable)")
    parser.add_argument("--outcomes", action="store_true", help="list every allowed final state")
    parser.add_argument("--repair", action="store_true", help="find the weakest change that forbids the outcome")
    parser.add_argument("--svg", metavar="FILE|DIR",
                        help="draw an execution with the outcome, or else a race or endless waiting")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--timeout", type=_positive, default=60.0, metavar="S",
                        help="seconds for each question about a test (default 60)")
    _add_memory(parser)
    _add_sandbox_mode(parser)


def _add_job(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("contract", nargs="?", metavar="CONTRACT.py[::name]",
                        help="a Python file with a @contract: kernel, launch and reference")
    parser.add_argument("--spec", metavar="SPEC.py", help="a Python file with reference(**inputs)")
    parser.add_argument("--kernel", metavar="FILE[::name]",
                        help="the candidate, .cu or .ptx; with a contract, used instead of the one it names")
    parser.add_argument("--launch", metavar="LAUNCH.json", help="parameters, sizes, grid and block")
    parser.add_argument("--kernel-name", metavar="NAME", help="which kernel of the file: a name or C++ name expression")
    parser.add_argument("--arch", metavar="sm_XX", help="target of compiled source (default: the contract's, or sm_80)")
    parser.add_argument("--option", action="append", default=[], metavar="OPT",
                        help="option for the compiler, such as --option=-DN=4 (repeatable)")
    _add_limits(parser)


def _add_limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--timeout", type=_positive, default=DEFAULT_TIMEOUT_S, metavar="S",
                        help=f"seconds after which the answer is INCONCLUSIVE (default {DEFAULT_TIMEOUT_S:g})")
    _add_memory(parser)
    _add_sandbox_mode(parser)
    parser.add_argument("--debug", action="store_true",
                        help="work in this process, not confined, and show tracebacks")


def _add_memory(parser: argparse.ArgumentParser, default: float | None = None) -> None:
    said = "3/4 of the machine's memory, at most 16" if default is None else f"{default:g}"
    parser.add_argument("--memory", type=_positive, default=default, metavar="GIB",
                        help=f"address space after which it is too (default: {said})")


def _add_sandbox_mode(parser: argparse.ArgumentParser, default: str = "auto",
                      modes: Sequence[str] = tuple(_MODES)) -> None:
    said = "; ".join(f"{name}{' (default)' if name == default else ''}: {_MODES[name]}" for name in modes)
    parser.add_argument("--sandbox", choices=tuple(modes), default=default, help=said)
    if default == "auto":
        parser.add_argument("--no-sandbox", dest="sandbox", action="store_const", const="off",
                            help="confine nothing; the report says so")


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return min(value, 1e7)


def _natural(text: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 on")
    return int(text)
