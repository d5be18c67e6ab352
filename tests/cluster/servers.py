"""Tasks of a cluster on this machine: processes of `td server` and of TensorFlow's own server."""

import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import time

# What a task of TensorFlow's runs.
TENSORFLOW_SERVER = """
import json, sys, tensorflow as tf
job, task, cluster = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
config = tf.compat.v1.ConfigProto(device_count={"CPU": 1, "GPU": 0})
server = tf.distribute.Server(cluster, job_name=job, task_index=task, protocol="grpc", config=config)
print("listening as", job, task, flush=True)
server.join()
"""


def free_ports(count):
    """Ports that were free a moment ago."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Task:
    """One process that serves; `kind` is "tandem" or "tensorflow"."""

    def __init__(self, kind, job, task, cluster, td, options=()):
        self.kind, self.job, self.task = kind, job, task
        self.address = cluster[job][task]
        if kind == "tandem":
            text = ";".join(f"{name}={','.join(tasks)}" for name, tasks in cluster.items())
            command = [td, "server", "--job", job, "--task", str(task), "--cluster", text, *options]
        else:
            import json
            command = [sys.executable, "-c", TENSORFLOW_SERVER, job, str(task), json.dumps(cluster)]
        environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=environment, text=True)

    def wait_until_it_listens(self, seconds=120):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if select.select([self.process.stdout], [], [], 0.2)[0]:
                line = self.process.stdout.readline()
                if line.startswith("listening"):
                    return line.strip()
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.job} {self.task} ended: {self.process.stderr.read()}")
        raise RuntimeError(f"{self.job} {self.task} does not listen after {seconds} s")

    def stop(self):
        """The exit code after SIGTERM; TensorFlow's servers are killed."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM if self.kind == "tandem" else signal.SIGKILL)
        try:
            self.process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            return None
        return self.process.returncode


class Cluster:
    """Tasks by job and kind: Cluster(td, ps=["tandem"], worker=["tensorflow", "tandem"])."""

    def __init__(self, td, **kinds):
        ports = iter(free_ports(sum(len(tasks) for tasks in kinds.values())))
        self.spec = {job: [f"localhost:{next(ports)}" for _ in tasks] for job, tasks in kinds.items()}
        self.tasks = [Task(kind, job, number, self.spec, td)
                      for job, tasks in kinds.items() for number, kind in enumerate(tasks)]
        try:
            for task in self.tasks:
                task.wait_until_it_listens()
        except BaseException:
            self.stop()
            raise

    def target(self, job="worker", task=0):
        return "grpc://" + self.spec[job][task]

    def stop(self):
        return [task.stop() for task in self.tasks]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def td_path():
    """From the environment, as ctest sets it."""
    return os.environ.get("TANDEM_TD") or str(
        pathlib.Path(__file__).resolve().parents[2] / "build/bin/td")
