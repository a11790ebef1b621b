"""Runs named checks and prints one line for each: the part that every Python client shares."""

import argparse
import logging
import sys
import time
from collections.abc import Awaitable, Callable

import anyio

# A check that takes longer than this has hung; a healthy server answers each of them in well under a second.
CHECK_LIMIT_SECONDS = 20.0


# SDKs give a server two seconds to leave after its input closes and then send it a signal.
CLOSE_LIMIT_SECONDS = 1.8


class Skip(Exception):
    """Raised by a check that the server under test gives no means to run."""


class Report:
    """Counts what passed and what failed, and says so line by line."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed = 0

    def ok(self, name: str) -> None:
        self.passed += 1
        print(f"ok {name}", flush=True)

    def not_ok(self, name: str, why: str) -> None:
        self.failed += 1
        print(f"not ok {name}: {' '.join(why.split())}", flush=True)

    async def check(
        self, name: str, body: Callable[[], Awaitable[None]], limit_seconds: float = CHECK_LIMIT_SECONDS
    ) -> None:
        """Runs one check; its failure is reported and does not stop the checks after it."""
        try:
            with anyio.fail_after(limit_seconds):
                await body()
        except Skip as reason:
            print(f"skip {name}: {reason}", flush=True)
        except TimeoutError:
            self.not_ok(name, f"not done within {limit_seconds:.0f} s")
        except Exception as error:
            self.not_ok(name, explain(error))
        else:
            self.ok(name)

    def close(self, started: float) -> None:
        """Reports whether the connection closed without the client having to force it."""
        took = time.monotonic() - started
        if took <= CLOSE_LIMIT_SECONDS:
            self.ok("close")
        else:
            self.not_ok("close", f"closing took {took:.1f} s")

    def exit_status(self) -> int:
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        return 1 if self.failed else 0


class Complaints(logging.Handler):
    """Gathers what the SDK logs as a warning or worse: it complains there about messages it had to drop."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []
        logging.getLogger().addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.name}: {record.getMessage()}")

    async def must_be_none(self) -> None:
        require(not self.lines, "the SDK complained: " + " | ".join(self.lines))


def explain(error: BaseException) -> str:
    """Names the error, and looks inside a group for the errors that caused it."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(explain(inner) for inner in error.exceptions)
    if isinstance(error, TimeoutError):
        return f"no answer within {CHECK_LIMIT_SECONDS:.0f} s"
    return f"{type(error).__name__}: {error}"


def arguments(modes: list[str]) -> argparse.Namespace:
    """Reads `[--mode MODE] [--told | --upstreams] (--url URL | -- COMMAND [ARGUMENT…])`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=modes, default=modes[0])
    parser.add_argument("--told", action="store_true", help="do what standard input says, and check nothing")
    parser.add_argument("--upstreams", action="store_true", help="check the servers behind a hub")
    parser.add_argument("--config", help="the file of the hub, for checks that compare it with its servers")
    parser.add_argument("--url", help="a Streamable HTTP endpoint")
    parser.add_argument("command", nargs="*", help="a command line that speaks MCP on its standard streams")
    options = parser.parse_args()
    if bool(options.url) == bool(options.command):
        parser.error("give either --url URL or -- COMMAND")
    return options


def require(condition: object, why: str) -> None:
    """Fails the running check with `why` unless the condition holds."""
    if not condition:
        raise AssertionError(why)


def finish(report: Report) -> None:
    sys.exit(report.exit_status())
