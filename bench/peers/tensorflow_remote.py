"""TensorFlow's Python client and its own servers: eager ops on another task (bench/ours/cluster.cpp)."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import json
import pathlib
import socket
import subprocess
import sys

import common as c

import tensorflow as tf

tf.config.threading.set_inter_op_parallelism_threads(c.THREADS)
tf.config.threading.set_intra_op_parallelism_threads(c.THREADS)

CHAIN = 100


def free_addresses(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    addresses = [f"localhost:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    return addresses


def remote_eager():
    addresses = free_addresses(3)
    spec = {"ps": addresses[:1], "worker": addresses[1:]}
    servers = []
    for job, tasks in spec.items():
        for task in range(len(tasks)):
            servers.append(subprocess.Popen(
                [sys.executable, str(pathlib.Path(__file__).parent / "tensorflow_server.py"), job, str(task),
                 json.dumps(spec), str(c.THREADS)], stdout=subprocess.PIPE, text=True))
    for server in servers:
        server.stdout.readline()
    started.extend(servers)
    tf.config.experimental_connect_to_cluster(tf.train.ClusterSpec(spec), job_name="client")

    def chain(n):
        with tf.device("/job:worker/task:1"):
            for _ in range(n):
                total = tf.constant(0.0)
                one = tf.constant(1.0)
                for _ in range(CHAIN):
                    total = total + one
                if float(total) != CHAIN:
                    raise RuntimeError(f"the sum is {float(total)}")

    return lambda: {"value": 1e6 * c.seconds_per_call(chain) / CHAIN, "check": float(CHAIN)}


started = []

if __name__ == "__main__":
    try:
        c.serve({"remote_eager": c.Lazy(remote_eager)}, f"tensorflow {tf.__version__}")
    finally:
        for process in started:
            process.kill()
        os._exit(0)  # threads of the client would wait for the servers
