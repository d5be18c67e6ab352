"""Counts instructions under callgrind, where exactness is needed and time would not give it."""

import os
import re
import shutil
import subprocess
import tempfile

# Short of these steps, first runs still differ from later ones.
FEW, MANY = 20, 60


def available():
    return shutil.which("valgrind") is not None


def run(command, text="", environment=None, within=None):
    """Instructions that a program executes, in all its threads, and what it says on stdout when it
    receives `text`. `within` counts those alone that a thread executes between entering and leaving
    a function, by its name as callgrind has it."""
    only = [f"--toggle-collect={within}"] if within else []
    # Kernels that measure themselves take as long as the machine lets them.
    environment = {**(os.environ if environment is None else environment), "TANDEM_TUNING": "0"}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", "--quiet",
             "--callgrind-out-file=" + os.path.join(folder, "out")] + only + command,
            input=text, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} failed under callgrind:\n{done.stderr}")
        with open(os.path.join(folder, "out"), encoding="utf-8") as file:
            found = re.search(r"^(?:summary|totals):\s*(\d+)", file.read(), re.MULTILINE)
    if not found:
        raise RuntimeError("callgrind wrote no total")
    if within and int(found.group(1)) == 0:
        raise RuntimeError(f"callgrind found no function {within}")
    return int(found.group(1)), done.stdout


def count(command):
    return run(command)[0]


def per_step(command):
    """Instructions of one step; the command's last argument is the number of steps."""
    return (count(command + [str(MANY)]) - count(command + [str(FEW)])) / (MANY - FEW)


def profiler_overhead(program):
    """The row profiler_overhead: the share by which recording lengthens an MLP's training step.
    `program` is bench_profiler. Also returns both counts."""
    off, on = per_step([program, "off"]), per_step([program, "on"])
    return {"name": "profiler_overhead", "unit": "share", "ours": (on - off) / off, "peer": None,
            "peer_name": None, "ratio": None, "better": "lower"}, {"off": off, "on": on}


if __name__ == "__main__":
    import json
    import sys
    print(json.dumps(profiler_overhead(sys.argv[1])))
