#!/usr/bin/env python3
"""Measures Tandem beside its peers: `./dev bench NAME` calls this.

Ours and the peer are measured in turns in one run, two threads each; of the pairs the one in the
middle counts. Rows go to build/bench/NAME.json, all pairs and versions to build/bench/
NAME.details.json, the programs' own words to build/bench/*.log, a table to stdout.
Exit codes: 0 done, 1 a row could not be measured, 2 wrong usage.
"""

import argparse
import json
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True

from harness import counted, data_files, machine, models, pairs, peers, sides, specs, table

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def parse():
    parser = argparse.ArgumentParser(description="Measure Tandem beside its peers.")
    parser.add_argument("name", choices=sorted(specs.BENCHES))
    parser.add_argument("--no-peers", action="store_true", help="our figures alone")
    parser.add_argument("--peers-only", action="store_true",
                        help="the peers' figures alone, to NAME.peers.json")
    parser.add_argument("--pairs", type=int, default=5, help="turns that count (at least 5)")
    parser.add_argument("--rows", default="",
                        help="only these, or those that begin so, separated by commas")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"),
                        help="the build folder that holds bench/bin/bench_NAME")
    parser.add_argument("--out", default=os.path.join(ROOT, "build/bench"),
                        help="the folder that results and logs go to")
    parser.add_argument("--without", default="", help="no such peers, separated by commas")
    parser.add_argument("--budget", type=float, default=0,
                        help="rows that have not begun after so many seconds are left out")
    options = parser.parse_args()
    options.without = options.without.split(",")
    spec = specs.BENCHES[options.name]
    words = options.rows.split(",") if options.rows else spec.names()
    options.rows = [name for word in words for name in spec.named(word)]
    if options.pairs < 5:
        parser.error("at least 5 pairs")
    if options.no_peers and options.peers_only:
        parser.error("--no-peers and --peers-only leave nothing to measure")
    for word in words:
        if not spec.named(word):
            parser.error(f"{options.name} has no row '{word}'; it has {', '.join(spec.names())}")
    return options


class Bench:
    def __init__(self, options):
        self.options = options
        self.spec = specs.BENCHES[options.name]
        self.out = options.out
        os.makedirs(self.out, exist_ok=True)
        self.environment = machine.environment()
        self.environment["TANDEM_BENCH_ROOT"] = ROOT
        if self.spec.gpu:  # the peer needs some of its memory
            self.environment.setdefault("TANDEM_MEMORY_GROWTH", "1")
        self.running = {}  # program, and its mode if it is ours -> side
        self.installed = {}  # environment -> whether it is there
        self.ours = {}  # whether it is started again for each measurement, its mode -> our program
        self.reported = set()  # why peers are missing
        self.rows, self.lines, self.details = [], [], []
        self.failures, self.skipped = [], []

    def start(self, title, command, log_name, one_shot):
        kind = sides.OneShotSide if one_shot else sides.Side
        log_name += "_once" if one_shot else ""
        return kind(title, command, os.path.join(self.out, log_name + ".log"), self.environment)

    def our_command(self, mode=""):
        program = os.path.join(self.options.build, "bench/bin/bench_" + self.options.name)
        if not os.path.exists(program):
            raise sides.Failure(f"{program} is missing: build with -DTANDEM_BUILD_BENCHES=ON")
        return [program, mode] if mode else [program]

    def our_side(self, row):
        """Our running program, or None where only the peers are measured."""
        if self.options.peers_only:
            return None
        key = row.one_shot, row.mode
        if key not in self.ours:
            log = "_".join(filter(None, ("ours", self.options.name, row.mode)))
            self.ours[key] = self.start("tandem", self.our_command(row.mode), log, row.one_shot)
        return self.ours[key]

    def install(self, environment):
        if environment not in self.installed:
            self.installed[environment] = peers.install(ROOT, environment)
            if not self.installed[environment]:
                say(f"{environment} can't be installed: rows without it")
        return self.installed[environment]

    def check_gpu(self):
        """Throws where our program says why it has no GPU."""
        checked = subprocess.run(self.our_command() + ["--check"], env=self.environment,
                                 stderr=subprocess.PIPE, text=True, check=False)
        if checked.returncode != 0:
            raise sides.Failure(checked.stderr.strip() or f"no GPU: code {checked.returncode}")

    def missing(self, peer):
        """Why a peer of this machine's own Python is not there; "" if it is."""
        why = peers.missing(peer.program)
        if why and why not in self.reported:
            self.reported.add(why)
            say(f"{why}: rows without it")
        return why

    def peer(self, row, peer):
        """The peer's running program, or None where it can't be had."""
        program = peer.program
        if program.ours:
            if self.options.peers_only:
                return None
        if program.environment and not self.install(program.environment):
            return None
        mode = row.mode if program.ours else ""
        if (program, mode) not in self.running:
            name = program.native or program.script.removesuffix(".py") or "ours_again"
            command = self.our_command(mode) if program.ours else peers.command(ROOT, program)
            log = "_".join(filter(None, (name, mode)))
            self.running[program, mode] = self.start(peer.name, command, log, program.one_shot)
        return self.running[program, mode]

    def measure(self, row, peer, side, remark=""):
        against = f" against {peer.name}" if side else ""
        say(f"{row.name}{against}")
        peer_row = (peer.row or row.name) if side else ""
        taken = pairs.take_turns(row, self.our_side(row), side, peer_row, self.options.pairs,
                                 not peer or peer.same_graph)
        pair = pairs.median_pair(row, taken)
        result = pairs.result(row, pair, peer.name if side else None)
        self.rows.append(result)
        answer = pair[0] or pair[1]
        self.lines.append(table.line(row, result, taken, table.aim(row, peer), answer, remark))
        self.details.append({**result, "pairs": taken, **({"remark": remark} if remark else {})})

    def count(self, row):
        """A row that is counted, not measured: once says it all."""
        say(f"{row.name}: counted")
        try:
            value, details = counted.measure(row, ROOT, self.options.build, say)
        except (RuntimeError, OSError) as failure:
            raise sides.Failure(f"{row.name}: {failure}") from None
        pair = ({"value": value}, None)
        result = pairs.result(row, pair, None)
        self.rows.append(result)
        self.lines.append(table.line(row, result, [pair], table.aim(row, None), pair[0]))
        self.details.append({**result, **details})

    def measure_row(self, row):
        if row.counted:
            if not self.options.peers_only:
                self.count(row)
            return
        wanted = [] if self.options.no_peers else [
            peer for peer in row.peers if peer.name not in self.options.without]
        missing = list(dict.fromkeys(why for peer in wanted if (why := self.missing(peer))))
        found = [(peer, side) for peer in wanted
                 if not peers.missing(peer.program) and (side := self.peer(row, peer))]
        if not found and self.options.peers_only:
            raise sides.Failure(f"{row.name} has no peer here")
        for peer, side in found or [(None, None)]:
            self.measure(row, peer, side, "" if found else "; ".join(missing))

    def run(self):
        if not self.options.peers_only:
            self.our_command()
            if self.spec.gpu:
                self.check_gpu()
        if self.options.no_peers:
            say("our figures alone, as asked")
        if self.spec.models:
            self.environment["TANDEM_BENCH_MODELS"] = models.exported(
                ROOT, self.spec.models, lambda: self.install("tensorflow"), say)
        if self.spec.files:
            self.environment["TANDEM_BENCH_DATA"] = data_files.made(ROOT, self.options.build, say)
        started = time.monotonic()
        for row in self.spec.rows:
            if row.name not in self.options.rows:
                continue
            if 0 < self.options.budget < time.monotonic() - started:
                say(f"{row.name}: left out, {self.options.budget:g} s are over")
                continue
            try:
                self.measure_row(row)
            except sides.Failure as failure:
                say(f"FAILED: {failure}")
                self.failures.append(str(failure))
            except sides.Skipped as why:
                self.skip(row, str(why))
        if self.spec.mean and "geomean" in self.options.rows:
            self.add_mean(self.spec.mean)

    def skip(self, row, why):
        if why not in (skipped["why"] for skipped in self.skipped):
            say(f"{row.name} and its like are skipped: {why}")
        self.skipped.append({"row": row.name, "why": why})

    def add_mean(self, peer):
        counted = {row.name for row in self.spec.rows if row.in_mean}
        result = pairs.mean(self.rows, counted, peer.name)
        if result:
            self.rows.append(result)
            self.lines.append(table.mean_line(result, peer.aim))

    def close(self):
        for side in [*self.ours.values(), *self.running.values()]:
            side.close()

    def report(self):
        name = self.options.name + (".peers" if self.options.peers_only else "")
        with open(os.path.join(self.out, name + ".json"), "w") as file:
            json.dump(self.rows, file, indent=1)
            file.write("\n")
        versions = sorted({program.environment if program.ours else side.about
                           for (program, _), side in self.running.items()
                           if program.environment or not program.ours})
        about = {"machine": machine.about(), "versions": versions, "failures": self.failures,
                 "skipped": self.skipped}
        with open(os.path.join(self.out, name + ".details.json"), "w") as file:
            json.dump({**about, "rows": self.details}, file, indent=1)
            file.write("\n")
        print(f"{about['machine']}; {'; '.join(versions) or 'no peers'}")
        print(table.text(self.lines))


def main():
    options = parse()
    machine.hold_to_two()
    bench = Bench(options)
    try:
        bench.run()
    except sides.Failure as failure:
        say(str(failure))
        return 1
    finally:
        bench.close()
    bench.report()
    return 1 if bench.failures else 0


if __name__ == "__main__":
    sys.exit(main())
