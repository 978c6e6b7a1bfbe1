"""The command line. Exit codes: 0 all proved, 1 refuted, 2 usage or input error, 3 inconclusive, 4 internal error."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

EXIT_INPUT = 2
EXIT_INTERNAL = 4


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Every failure is a message on stderr, never a traceback."""
    try:
        code = _run(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Whoever read our output went away; keep the interpreter from failing again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13
    except KeyboardInterrupt:
        return 128 + 2
    except Exception as error:  # exit code 1, Python's own for this, would say that something is refuted
        if "--debug" in (sys.argv if argv is None else argv):
            raise
        print(f"internal error: {type(error).__name__}: {error}", file=sys.stderr)
        return EXIT_INTERNAL


def _run(argv: Sequence[str]) -> int:
    from warpproof.cli.arguments import parse_arguments

    arguments = parse_arguments(argv)
    match arguments.command:
        case "prove" | "run" | "replay":
            from warpproof.cli.commands import run_command

            return run_command(arguments)
        case "explain":
            from warpproof.cli.explain import explain

            return explain(arguments.code, sys.stdout, sys.stderr)
        case "litmus":
            from warpproof.cli.litmus import litmus

            return litmus(arguments)
        case "doctor":
            from warpproof.cli.doctor import doctor

            return doctor(sys.stdout)
        case "sandbox":
            from warpproof.cli.sandbox import sandbox_command

            return sandbox_command(arguments)
        case other:
            raise AssertionError(other)
