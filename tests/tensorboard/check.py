#!/usr/bin/env python3
"""What TensorBoard makes of our logs: check.py --writer PROGRAM --python PYTHON --out FOLDER.

Event files are read by TensorBoard's EventAccumulator, the profile by XProf's tools, and a server is asked, with
either of its loaders, for what its pages ask. Where there is a Chromium the pages are opened: nothing may be said on
their consoles, and their pictures stay in FOLDER. Exit code 77: TensorBoard's environment is missing.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent


def files(logs, fast):
    """The options for reading event files, by the fast loader or by EventMultiplexer."""
    return ["--logdir", logs, "--load_fast", "true" if fast else "false", "--reload_interval", "1"]


class Server:
    """A TensorBoard on a port of its own."""

    def __init__(self, python, source, log):
        self.log = open(log, "w+")
        self.process = subprocess.Popen(
            [python, "-m", "tensorboard.main", *source, "--port", "0", "--host", "127.0.0.1"],
            stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True)
        self.url = self.wait_for(r"http://127\.0\.0\.1:\d+")

    def wait_for(self, pattern):
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            self.log.seek(0)
            text = self.log.read()
            if found := re.search(pattern, text):
                return found[0]
            if self.process.poll() is not None:
                break
            time.sleep(0.2)
        sys.exit(f"TensorBoard did not start:\n{text}")

    def get(self, path, **query):
        url = f"{self.url}/data/{path}"
        if query:
            url += "?" + urllib.parse.urlencode(query)
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.read()

    def json(self, path, **query):
        return json.loads(self.get(path, **query))

    def post(self, path, body):
        request = urllib.request.Request(f"{self.url}/data/{path}", data=json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def wait_for_runs(self, wanted):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            runs = self.json("runs")
            if set(wanted) <= set(runs):
                return runs
            time.sleep(0.3)
        sys.exit(f"TensorBoard has only the runs {runs}")

    def close(self):
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait(timeout=30)
        self.log.close()


def check_endpoints(server):
    server.wait_for_runs(["kinds", "function", "hparams/adam", "fit/train", "fit/validation"])
    scalars = server.json("plugin/scalars/scalars", run="kinds", tag="loss")
    assert [point[1] for point in scalars] == list(range(20)), scalars
    histograms = server.json("plugin/histograms/histograms", run="kinds", tag="waves")
    assert len(histograms) == 20 and len(histograms[0][2]) == 30, histograms[0]
    distributions = server.json("plugin/distributions/distributions", run="kinds", tag="waves")
    assert len(distributions) == 20
    images = server.json("plugin/images/images", run="kinds", tag="gradient", sample=0)
    assert len(images) == 1 and images[0]["step"] == 1, images
    png = server.get("plugin/images/individualImage?" + images[0]["query"])
    assert png.startswith(b"\x89PNG")
    clips = server.json("plugin/audio/audio", run="kinds", tag="tone", sample=0)
    assert server.get("plugin/audio/individualAudio?" + clips[0]["query"]).startswith(b"RIFF")
    text = server.json("plugin/text/text", run="kinds", tag="note")
    assert "<strong>bold</strong>" in text[0]["text"], text
    info = server.json("plugin/graphs/info")
    assert info["function"]["run_graph"] and info["fit/train"]["run_graph"], info
    assert info["fit/train"]["tags"]["keras"]["conceptual_graph"], info
    assert info["fit/train"]["tags"]["batch_12"]["op_graph"], info
    layers = server.get("plugin/graphs/graph", run="fit/train", tag="keras", conceptual="true").decode()
    assert 'name: "digits/conv"' in layers and 'name: "digits/head/dense"' in layers, layers
    assert "Conv2D" in server.get("plugin/graphs/graph", run="fit/train", conceptual="false").decode()
    experiment = server.post("plugin/hparams/experiment", {"experimentName": ""})
    assert {h["name"] for h in experiment["hparamInfos"]} >= {"lr", "optimizer"}, experiment
    groups = server.post("plugin/hparams/session_groups", {
        "experimentName": "", "allowedStatuses": ["STATUS_UNKNOWN", "STATUS_SUCCESS", "STATUS_RUNNING", "STATUS_FAILURE"],
        "colParams": [{"hparam": "optimizer"}], "startIndex": 0, "sliceSize": 10})
    assert len(groups["sessionGroups"]) == 2, groups


def check_projector(server):
    deadline = time.monotonic() + 30
    runs = []
    while not runs and time.monotonic() < deadline:
        server.json("plugins_listing")
        runs = server.json("plugin/projector/runs")
        time.sleep(0.3)
    run = "."
    assert run in runs, runs
    (embedding,) = server.json("plugin/projector/info", run=run)["embeddings"]
    assert embedding["tensorShape"] == [20, 8], embedding
    values = server.get("plugin/projector/tensor", run=run, name=embedding["tensorName"])
    assert len(values) == 20 * 8 * 4, len(values)
    assert server.get("plugin/projector/metadata", run=run, name=embedding["tensorName"]).startswith(b"word 0")


PAGES = {page: page for page in ("scalars", "distributions", "histograms", "images", "graphs", "hparams", "profile")}


def take_pictures(server, out, pages):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        print("no Chromium: the pages are not opened")
        return
    for name, page in pages.items():
        picture = out / f"{name}.png"
        picture.unlink(missing_ok=True)
        subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1400,1000",
                        "--virtual-time-budget=15000", f"--screenshot={picture}", f"{server.url}/#{page}"],
                       check=True, timeout=120, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        assert picture.stat().st_size > 20_000, f"the picture of {page} is empty"
        print("picture:", picture)


def main():
    parser = argparse.ArgumentParser()
    for name in ("writer", "python", "out"):
        parser.add_argument(f"--{name}", required=True)
    arguments = parser.parse_args()
    if not pathlib.Path(arguments.python).exists():
        print("TensorBoard is missing (./dev peers tensorboard): nothing is checked")
        sys.exit(77)
    out = pathlib.Path(arguments.out)
    logs = out / "logs"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    subprocess.run([arguments.writer, logs], check=True)
    (logs / "words" / "words.tsv").write_text("".join(f"word {i}\n" for i in range(20)))
    subprocess.run([arguments.python, HERE / "read_events.py", logs], check=True)
    subprocess.run([arguments.python, HERE / "read_profile.py", logs, out], check=True)
    accelerated = out / "accelerated"
    subprocess.run([arguments.writer, accelerated / "logs"], check=True,
                   env=os.environ | {"TANDEM_EMULATE": "GPU:1,memory=2GiB,latency=5us"})
    subprocess.run([arguments.python, HERE / "read_profile.py", accelerated / "logs", accelerated, "/device:GPU:0"],
                   check=True)
    for fast in (True, False):
        server = Server(arguments.python, files(logs, fast), out / f"server_{fast}.log")
        try:
            check_endpoints(server)
            print("endpoints:", "fast loader" if fast else "EventMultiplexer")
            if not fast:
                take_pictures(server, out, PAGES)
        finally:
            server.close()
    # The projector's files lie in the callback's folder, so that must be TensorBoard's.
    server = Server(arguments.python, files(logs / "words", False), out / "server_words.log")
    try:
        check_projector(server)
        take_pictures(server, out, {"projector": "projector"})
    finally:
        server.close()


if __name__ == "__main__":
    main()
