#!/usr/bin/env python3
"""TensorBoard with a running process as its source: serve.py --program PROGRAM --python PYTHON --out FOLDER.

What the process writes is asked for by the pages' own requests, and a step must be there within a second of its being
written. Exit code 77: TensorBoard's environment is missing.
"""

import argparse
import pathlib
import subprocess
import sys
import time

import check


def check_pages(server):
    assert server.json("runs") == ["train"]
    assert len(server.json("plugin/histograms/histograms", run="train", tag="waves")[0][2]) == 30
    images = server.json("plugin/images/images", run="train", tag="picture", sample=1)
    assert server.get("plugin/images/individualImage?" + images[0]["query"]).startswith(b"\x89PNG")
    clips = server.json("plugin/audio/audio", run="train", tag="tone", sample=0)
    assert server.get("plugin/audio/individualAudio?" + clips[0]["query"]).startswith(b"RIFF")
    assert "<strong>bold</strong>" in server.json("plugin/text/text", run="train", tag="note")[0]["text"]
    assert "Tanh" in server.get("plugin/graphs/graph", run="train", conceptual="false").decode()
    experiment = server.post("plugin/hparams/experiment", {"experimentName": ""})
    assert [hparam["name"] for hparam in experiment["hparamInfos"]] == ["lr"], experiment


def check_steps(server, process):
    longest = 0
    for step in range(20):
        began = time.monotonic()
        process.stdin.write(f"{1 / (step + 1)}\n")
        process.stdin.flush()
        while True:
            try:
                points = server.json("plugin/scalars/scalars", run="train", tag="loss")
            except check.urllib.error.HTTPError:  # there is no such tag before the first step
                points = []
            if len(points) > step:
                break
            assert time.monotonic() - began < 30, points
            time.sleep(0.02)
        longest = max(longest, time.monotonic() - began)
    assert abs(points[19][2] - 0.05) < 1e-6, points
    print(f"20 steps, each seen within {1000 * longest:.0f} ms")


def main():
    parser = argparse.ArgumentParser()
    for name in ("program", "python", "out"):
        parser.add_argument(f"--{name}", required=True)
    arguments = parser.parse_args()
    if not pathlib.Path(arguments.python).exists():
        print("TensorBoard is missing (./dev peers tensorboard): nothing is checked")
        sys.exit(77)
    out = pathlib.Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen([arguments.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    address = process.stdout.readline().strip()
    server = check.Server(arguments.python, ["--grpc_data_provider", address], out / "server_grpc.log")
    try:
        check_steps(server, process)
        check_pages(server)
        check.take_pictures(server, out, {"grpc_scalars": "scalars"})
    finally:
        server.close()
        process.stdin.close()
        process.wait(timeout=30)


if __name__ == "__main__":
    main()
