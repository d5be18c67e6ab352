"""The two sides of a benchmark: programs that measure a row each time they are asked."""

import json
import os
import selectors
import subprocess
import time

ANSWER_SECONDS = 600


class Failure(Exception):
    """A side that did not measure what it was asked for."""


class Skipped(Exception):
    """A row that can't be measured on this machine, which is no failure."""


class Side:
    """A running program that answers `run ROW` (bench/common/serve.h, bench/peers/common.py)."""

    def __init__(self, title, command, log, environment):
        self.title, self.log_path = title, log
        self.log = open(log, "w")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
            env=environment)
        self.pending = b""
        self.about = self.answer()["about"]

    def answer(self):
        """The next line of the program's stdout."""
        deadline = time.monotonic() + ANSWER_SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in self.pending:
                if not selector.select(max(0, deadline - time.monotonic())):
                    self.close()
                    raise Failure(f"{self.title} took longer than {ANSWER_SECONDS} s")
                received = os.read(self.process.stdout.fileno(), 65536)
                if not received:
                    raise Failure(f"{self.title} ended early, see {self.log_path}")
                self.pending += received
        line, _, self.pending = self.pending.partition(b"\n")
        return json.loads(line)

    def run(self, row):
        try:
            self.process.stdin.write(f"run {row}\n".encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failure(f"{self.title} ended early, see {self.log_path}") from None
        answer = self.answer()
        if "skipped" in answer:
            raise Skipped(answer["skipped"])
        if "error" in answer:
            raise Failure(f"{self.title}: {answer['error']}")
        return answer

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


class OneShotSide:
    """A program that is started again for each measurement and ends with one line of JSON, once the
    first step is done or the run is over. A row that ends in `memory` is the peak that it reports; any
    other row is the milliseconds from its start to that line."""

    def __init__(self, title, command, log, environment):
        self.title, self.command, self.log, self.environment = title, command, log, environment
        self.about = title

    def run(self, row):
        with open(self.log, "w") as log:
            start = time.perf_counter()
            process = subprocess.Popen(
                self.command + [row], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log,
                env=self.environment)
            with process:
                line = process.stdout.readline()
                elapsed = time.perf_counter() - start
        if process.returncode != 0 or not line:
            raise Failure(f"{self.title} failed with code {process.returncode}, see {self.log}")
        answer = json.loads(line)
        answer["value"] = answer["peak_mb"] if row.endswith("memory") else elapsed * 1e3
        return answer

    def close(self):
        pass
