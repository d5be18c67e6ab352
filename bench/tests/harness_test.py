#!/usr/bin/env python3
"""Tests of the harness: python3 bench/tests/harness_test.py. Needs no peer and nothing built."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
BENCH = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(BENCH))

import run
from harness import data_files, machine, machinery, models, pairs, sides, specs, table

# A program that measures: its n-th answer to any row is n.
FAKE = """\
import json, sys
print(json.dumps({"ready": True, "about": "fake"}), flush=True)
for turn, line in enumerate(sys.stdin):
    row = line.split()[1]
    if row == "broken":
        print(json.dumps({"error": "no such thing"}), flush=True)
    elif row == "skipped":
        print(json.dumps({"skipped": "there is no such kernel"}), flush=True)
    elif row == "mode":
        print(json.dumps({"value": turn, "mode": sys.argv[1:]}), flush=True)
    elif row == "gone":
        sys.exit(1)
    else:
        print(json.dumps({"value": turn, "check": 7}), flush=True)
"""
FASTER_IS_LOWER = specs.Row("row", "us", "lower", ())
FASTER_IS_HIGHER = specs.Row("row", "steps/s", "higher", ())


class Scripted:
    """A side whose answers are given."""

    def __init__(self, log, name, answers):
        self.log, self.name, self.answers = log, name, iter(answers)

    def run(self, row):
        self.log.append((self.name, row))
        return next(self.answers)


def values(*numbers):
    return [{"value": number} for number in numbers]


class Pairs(unittest.TestCase):
    def test_ahead_is_above_one_in_both_directions(self):
        self.assertEqual(pairs.ratio(FASTER_IS_LOWER, ours=2, peer=6), 3)
        self.assertEqual(pairs.ratio(FASTER_IS_HIGHER, ours=6, peer=2), 3)

    def test_sides_take_turns_and_the_first_turn_is_not_counted(self):
        log = []
        ours = Scripted(log, "ours", values(9, 1, 2))
        peer = Scripted(log, "peer", values(9, 3, 4))
        taken = pairs.take_turns(FASTER_IS_LOWER, ours, peer, "theirs", 2)
        self.assertEqual(log, [("ours", "row"), ("peer", "theirs")] * 3)
        self.assertEqual(taken, [({"value": 1}, {"value": 3}), ({"value": 2}, {"value": 4})])

    def test_the_median_pair_is_the_one_in_the_middle_by_ratio(self):
        taken = list(zip(values(1, 1, 1, 1, 1), values(5, 1, 4, 2, 3)))
        self.assertEqual(pairs.median_pair(FASTER_IS_LOWER, taken)[1], {"value": 3})

    def test_alone_the_median_value_counts(self):
        taken = [(value, None) for value in values(5, 1, 4)]
        self.assertEqual(pairs.median_pair(FASTER_IS_LOWER, taken)[0], {"value": 4})

    def test_different_work_is_refused(self):
        with self.assertRaisesRegex(sides.Failure, "1999"):
            pairs.agree(FASTER_IS_LOWER, {"nodes": 2000}, {"nodes": 1999})
        with self.assertRaisesRegex(sides.Failure, "computed"):
            pairs.agree(FASTER_IS_LOWER, {"check": 1.0}, {"check": 1.1})
        pairs.agree(FASTER_IS_LOWER, {"check": 1.0, "nodes": 3}, {"check": 1.00001, "nodes": 3})

    def test_sides_with_different_graphs_must_still_compute_the_same(self):
        def turns(check, same_graph):
            ours = {"value": 1, "nodes": 9, "check": 1.0}
            peer = {"value": 1, "nodes": 7, "check": check}
            pairs.take_turns(FASTER_IS_LOWER, Scripted([], "ours", [ours] * 2),
                             Scripted([], "peer", [peer] * 2), "theirs", 1, same_graph)

        turns(1.0, same_graph=False)
        with self.assertRaisesRegex(sides.Failure, "executed 9 nodes"):
            turns(1.0, same_graph=True)
        with self.assertRaisesRegex(sides.Failure, "computed"):
            turns(2.0, same_graph=False)

    def test_only_ours_in_float_may_have_another_graph(self):
        rows = [row for bench in specs.BENCHES.values() for row in bench.rows]
        other = {(row.name, peer.name) for row in rows for peer in row.peers if not peer.same_graph}
        self.assertEqual(other, {("resnet50_inference_bf16", "tandem float"),
                                 ("resnet50_training_bf16", "tandem float")})

    def test_a_result_has_the_promised_fields(self):
        result = pairs.result(FASTER_IS_LOWER, ({"value": 2}, {"value": 5}), "jax")
        self.assertEqual(result, {
            "name": "row", "unit": "us", "ours": 2, "peer": 5, "peer_name": "jax", "ratio": 2.5,
            "better": "lower"})
        alone = pairs.result(FASTER_IS_LOWER, ({"value": 2}, None), None)
        self.assertEqual([alone[k] for k in ("peer", "peer_name", "ratio")], [None] * 3)


class Mean(unittest.TestCase):
    def test_it_is_geometric_and_of_the_counted_rows_against_one_peer(self):
        rows = [{"name": name, "peer_name": peer, "ratio": ratio} for name, peer, ratio in (
            ("a", "tensorflow", 2.0), ("a", "torch", 50.0), ("b", "tensorflow", 8.0),
            ("memory", "tensorflow", 9.0), ("c", None, None))]
        mean = pairs.mean(rows, {"a", "b", "c"}, "tensorflow")
        self.assertAlmostEqual(mean["ratio"], 4)
        self.assertEqual((mean["name"], mean["unit"], mean["peer_name"]),
                         ("geomean", "x", "tensorflow"))
        self.assertIsNone(pairs.mean(rows, {"c"}, "tensorflow"))

    def test_processes_of_their_own_need_no_warming_up(self):
        log = []
        row = specs.Row("memory", "MB", "lower", (), one_shot=True)
        taken = pairs.take_turns(row, Scripted(log, "ours", values(1, 2)), None, "", 2)
        self.assertEqual([left["value"] for left, _ in taken], [1, 2])


class Machinery(unittest.TestCase):
    def test_each_recorded_row_is_compared(self):
        ratios = machinery.ratios({"a": 110.0, "b": 90.0}, {"a": 100.0, "b": 100.0})
        self.assertAlmostEqual(ratios["a"], 1.1)
        self.assertAlmostEqual(ratios["b"], 0.9)
        with self.assertRaisesRegex(RuntimeError, "not measured: c"):
            machinery.ratios({"a": 1.0}, {"a": 1.0, "c": 1.0})

    def test_what_is_recorded_is_what_is_counted(self):
        recorded = json.loads((BENCH / "machinery.json").read_text())
        self.assertEqual(recorded["instructions_per_op"].keys(), machinery.ROWS.keys())


class Exports(unittest.TestCase):
    def test_the_graphs_are_exported_once(self):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "bench/peers"))
            os.makedirs(os.path.join(root, "tests"))
            for path in ("tests/peers.txt", "bench/peers/export.py", "bench/peers/exporting.py"):
                pathlib.Path(root, path).write_text("one")
            with self.assertRaisesRegex(sides.Failure, "can't be installed"):
                models.exported(root, "export.py", lambda: False, print)
            version = models.version(root, os.path.join(root, "bench/peers/export.py"))
            ready = os.path.join(root, "build/bench/graphs/export", version)
            os.makedirs(ready)
            self.assertEqual(models.exported(root, "export.py", self.fail, print), ready)
            pathlib.Path(root, "bench/peers/exporting.py").write_text("two")
            with self.assertRaises(sides.Failure):
                models.exported(root, "export.py", lambda: False, print)


class Files(unittest.TestCase):
    """Files to be read are made once for each version of the programs that make them."""

    def test_they_are_made_once(self):
        with tempfile.TemporaryDirectory() as root:
            for path in data_files.SOURCES:
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                pathlib.Path(root, path).write_text(path)
            build = os.path.join(root, "build")
            reported = []
            with self.assertRaises(sides.Failure):
                data_files.made(root, build, reported.append)
            for name, folder_at in (("bin/cut_photos", "$1"), ("bench/bin/bench_data", "$2")):
                program = pathlib.Path(build, name)
                program.parent.mkdir(parents=True)
                program.write_text(f'#!/bin/sh\nmkdir -p "{folder_at}"\n')
                program.chmod(0o755)
            first = data_files.made(root, build, reported.append)
            self.assertTrue(os.path.isdir(os.path.join(first, "photos")))
            self.assertEqual(data_files.made(root, build, reported.append), first)
            self.assertEqual(len(reported), 1)
            pathlib.Path(root, data_files.SOURCES[0]).write_text("changed")
            self.assertNotEqual(data_files.made(root, build, reported.append), first)
            self.assertFalse(os.path.exists(first))


class Sides(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.log = os.path.join(folder.name, "log")

    def side(self):
        side = sides.Side("fake", [sys.executable, "-c", FAKE], self.log, machine.environment())
        self.addCleanup(side.process.stdout.close)
        return side

    def test_a_program_lives_through_many_turns(self):
        side = self.side()
        self.assertEqual([side.run("row")["value"] for _ in range(3)], [0, 1, 2])
        side.close()
        self.assertEqual(side.process.returncode, 0)

    def test_an_error_is_reported(self):
        side = self.side()
        with self.assertRaisesRegex(sides.Failure, "no such thing"):
            side.run("broken")
        self.assertEqual(side.run("row")["value"], 1)
        side.close()

    def test_what_cannot_be_measured_here_is_no_failure(self):
        side = self.side()
        with self.assertRaisesRegex(sides.Skipped, "no such kernel"):
            side.run("skipped")
        self.assertEqual(side.run("row")["value"], 1)
        side.close()

    def test_an_end_is_noticed(self):
        side = self.side()
        with self.assertRaisesRegex(sides.Failure, "ended early"):
            side.run("gone")
        side.close()

    def test_one_shot_times_the_process(self):
        program = "import time; time.sleep(0.05); print('{\"peak_mb\": 12}')"
        side = sides.OneShotSide(
            "fake", [sys.executable, "-c", program], self.log, machine.environment())
        self.assertEqual(side.run("memory")["value"], 12)
        self.assertGreaterEqual(side.run("first_step")["value"], 50)


class Table(unittest.TestCase):
    def test_spread_is_of_the_ratios_or_of_the_single_side(self):
        taken = list(zip(values(1, 1), values(2, 4)))
        result = pairs.result(FASTER_IS_LOWER, taken[0], "jax")
        self.assertIn("2.00..4.00", table.line(FASTER_IS_LOWER, result, taken, "-", {}))
        alone = [(value, None) for value in values(3, 5)]
        result = pairs.result(FASTER_IS_LOWER, alone[0], None)
        self.assertIn("3..5", table.line(FASTER_IS_LOWER, result, alone, "-", {}))


class Rows(unittest.TestCase):
    BENCH = specs.Bench(tuple(specs.Row(name, "us", "lower", ()) for name in (
        "step", "step_long", "info_step_many", "pull")))

    def test_a_name_is_of_one_row(self):
        self.assertEqual(self.BENCH.named("step"), ["step"])

    def test_a_beginning_is_of_all_rows_that_have_it(self):
        self.assertEqual(self.BENCH.named("ste"), ["step", "step_long", "info_step_many"])
        self.assertEqual(self.BENCH.named("step_"), ["step_long", "info_step_many"])
        self.assertEqual(self.BENCH.named("nothing"), [])

    def test_scaling_has_rows_for_each_number_of_workers_on_both_networks(self):
        named = specs.BENCHES["cluster"].named("scaling")
        for network in ("", "loopback_"):
            for work in ("ps_step", "ps_train"):
                for workers in (1, 2, 4, 8):
                    self.assertIn(f"info_scaling_{network}{work}_{workers}", named)


class Program(unittest.TestCase):
    """bench/run.py as a whole, on a stand-in for what is built."""

    def run_bench(self, *arguments, program=FAKE):
        with tempfile.TemporaryDirectory() as root:
            os.symlink(BENCH, os.path.join(root, "bench"))
            build = os.path.join(root, "build")
            folder = os.path.join(build, "bench/bin")
            os.makedirs(folder)
            fake = os.path.join(folder, "bench_overhead")
            with open(fake, "w") as file:
                file.write(f"#!{sys.executable}\n{program}")
            os.chmod(fake, 0o755)
            ran = subprocess.run(
                [sys.executable, os.path.join(root, "bench/run.py"), *arguments],
                capture_output=True, text=True)
            written = os.path.join(build, "bench/overhead.json")
            rows = json.loads(pathlib.Path(written).read_text()) if os.path.exists(written) else None
            return ran, rows

    def test_our_figures_alone(self):
        ran, rows = self.run_bench("overhead", "--no-peers")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("our figures alone", ran.stderr)
        self.assertEqual([row["name"] for row in rows],
                         [row.name for row in specs.BENCHES["overhead"].rows])
        for row in rows:
            self.assertEqual(sorted(row), [
                "better", "name", "ours", "peer", "peer_name", "ratio", "unit"])
            self.assertIsNone(row["peer_name"])

    def test_a_row_that_fails_fails_the_run(self):
        broken = FAKE.replace('"broken"', '"graph_wide"')
        ran, rows = self.run_bench("overhead", "--no-peers", program=broken)
        self.assertEqual(ran.returncode, 1)
        self.assertIn("FAILED: tandem: no such thing", ran.stderr)
        self.assertNotIn("graph_wide", [row["name"] for row in rows])

    def test_a_row_that_is_skipped_fails_nothing(self):
        skips = FAKE.replace('row == "skipped"', 'row.startswith("graph")')
        ran, rows = self.run_bench("overhead", "--no-peers", program=skips)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(ran.stderr.count("there is no such kernel"), 1)
        self.assertEqual([row["name"] for row in rows], ["eager_add", "function_call"])

    def test_rows_of_a_mode_have_a_process_of_their_own(self):
        with tempfile.TemporaryDirectory() as build:
            program = pathlib.Path(build, "bench/bin/bench_overhead")
            program.parent.mkdir(parents=True)
            program.write_text(f"#!{sys.executable}\n{FAKE}")
            program.chmod(0o755)
            bench = run.Bench(argparse.Namespace(name="overhead", build=build, out=build,
                                                   peers_only=False))
            plain = bench.our_side(FASTER_IS_LOWER)
            apart = bench.our_side(specs.Row("row", "us", "lower", (), mode="apart"))
            self.assertEqual([side.run("mode")["mode"] for side in (plain, apart)], [[], ["apart"]])
            self.assertIs(bench.our_side(FASTER_IS_LOWER), plain)
            bench.close()
            for side in (plain, apart):
                side.process.stdout.close()

    def test_wrong_usage(self):
        for arguments in (["nonsense"], ["overhead", "--pairs", "4"], ["overhead", "--rows", "x"]):
            ran, _ = self.run_bench(*arguments)
            self.assertEqual(ran.returncode, 2, arguments)


if __name__ == "__main__":
    unittest.main()
