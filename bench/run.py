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
import sys

sys.dont_write_bytecode = True

from harness import machine, pairs, peers, sides, specs, table

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
    parser.add_argument("--rows", default="", help="only these, separated by commas")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"),
                        help="the build folder that holds bench/bin/bench_NAME")
    options = parser.parse_args()
    known = [row.name for row in specs.BENCHES[options.name].rows]
    options.rows = options.rows.split(",") if options.rows else known
    if options.pairs < 5:
        parser.error("at least 5 pairs")
    if options.no_peers and options.peers_only:
        parser.error("--no-peers and --peers-only leave nothing to measure")
    for row in options.rows:
        if row not in known:
            parser.error(f"{options.name} has no row '{row}'; it has {', '.join(known)}")
    return options


class Bench:
    def __init__(self, options):
        self.options = options
        self.spec = specs.BENCHES[options.name]
        self.out = os.path.join(ROOT, "build/bench")
        os.makedirs(self.out, exist_ok=True)
        self.environment = machine.environment()
        self.running = {}  # program -> side
        self.installed = {}  # environment -> whether it is there
        self.ours = None
        self.rows, self.lines, self.details, self.failures = [], [], [], []

    def start(self, title, command, log_name, one_shot):
        kind = sides.OneShotSide if one_shot else sides.Side
        return kind(title, command, os.path.join(self.out, log_name + ".log"), self.environment)

    def start_ours(self):
        program = os.path.join(self.options.build, "bench/bin/bench_" + self.options.name)
        if not os.path.exists(program):
            raise sides.Failure(f"{program} is missing: build with -DTANDEM_BUILD_BENCHES=ON")
        self.ours = self.start("tandem", [program], "ours_" + self.options.name, self.spec.one_shot)

    def peer(self, peer):
        """The peer's running program, or None where it can't be had."""
        program = peer.program
        if program.environment not in self.installed:
            there = peers.install(ROOT, program.environment)
            self.installed[program.environment] = there
            if not there:
                say(f"{program.environment} can't be installed: rows without it")
        if not self.installed[program.environment]:
            return None
        if program not in self.running:
            name = program.native or program.script.removesuffix(".py")
            self.running[program] = self.start(
                peer.name, peers.command(ROOT, program), name, program.one_shot)
        return self.running[program]

    def measure(self, row, peer, side):
        against = f" against {peer.name}" if side else ""
        say(f"{row.name}{against}")
        peer_row = (peer.row or row.name) if side else ""
        taken = pairs.take_turns(row, self.ours, side, peer_row, self.options.pairs)
        pair = pairs.median_pair(row, taken)
        result = pairs.result(row, pair, peer.name if side else None)
        self.rows.append(result)
        answer = pair[0] or pair[1]
        self.lines.append(table.line(row, result, taken, table.aim(row, peer), answer))
        self.details.append({**result, "pairs": taken})

    def measure_row(self, row):
        wanted = () if self.options.no_peers else row.peers
        found = [(peer, side) for peer in wanted if (side := self.peer(peer))]
        if not found and not self.ours:
            raise sides.Failure(f"{row.name} has no peer here")
        for peer, side in found or [(None, None)]:
            self.measure(row, peer, side)

    def run(self):
        if not self.options.peers_only:
            self.start_ours()
        if self.options.no_peers:
            say("our figures alone, as asked")
        for row in self.spec.rows:
            if row.name not in self.options.rows:
                continue
            try:
                self.measure_row(row)
            except sides.Failure as failure:
                say(f"FAILED: {failure}")
                self.failures.append(str(failure))

    def close(self):
        for side in [self.ours, *self.running.values()]:
            if side:
                side.close()

    def report(self):
        name = self.options.name + (".peers" if self.options.peers_only else "")
        with open(os.path.join(self.out, name + ".json"), "w") as file:
            json.dump(self.rows, file, indent=1)
            file.write("\n")
        versions = sorted({side.about for side in self.running.values()})
        about = {"machine": machine.about(), "versions": versions, "failures": self.failures}
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
