"""`td server`, `td run --target` and `td cluster status` as operators use them."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import grpc
import numpy as np

import servers

TD = servers.td_path()


def td(*words, environment=None):
    return subprocess.run([TD, *words], capture_output=True, text=True, timeout=120, check=False,
                          env=dict(os.environ, **(environment or {})))


GRAPH = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "three" op: "Const" device: "/job:ps/task:0"
       attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 3 } } } }
node { name: "y" op: "Mul" input: "x" input: "three" device: "/job:ps/task:0"
       attr { key: "T" value { type: DT_FLOAT } } }
"""

# Takes an element of a queue on the parameter server that nothing ever puts there.
WAITING = """
node { name: "q" op: "FIFOQueueV2" device: "/job:ps/task:0"
       attr { key: "component_types" value { list { type: DT_FLOAT } } } }
node { name: "y" op: "QueueDequeueV2" input: "q" device: "/job:ps/task:0"
       attr { key: "component_types" value { list { type: DT_FLOAT } } } }
"""


def certificates(folder):
    """An authority, and a certificate that it has signed for localhost."""
    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=folder)
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem",
            "-days", "2", "-subj", "/CN=authority")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "task.key", "-out", "task.csr",
            "-subj", "/CN=localhost")
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1")
    openssl("x509", "-req", "-in", "task.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
            "-out", "task.pem", "-days", "2", "-extfile", "names")
    return ["--tls-cert", str(folder / "task.pem"), "--tls-key", str(folder / "task.key"),
            "--tls-ca", str(folder / "ca.pem")]


class ToolsTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        np.save(self.folder / "x.npy", np.float32([1, 2]))

    def run_graph(self, target, *options):
        (self.folder / "graph.pbtxt").write_text(GRAPH)
        return td("run", str(self.folder / "graph.pbtxt"), "--feed", f"x={self.folder / 'x.npy'}", "--fetch",
                  "y", "--target", target, "--out", str(self.folder), *options)

    def test_a_graph_runs_in_a_cluster_and_its_status_names_all_tasks(self):
        with servers.Cluster(TD, ps=["tandem"], worker=["tandem"]) as cluster:
            ran = self.run_graph(cluster.target())
            self.assertEqual(ran.returncode, 0, ran.stderr)
            np.testing.assert_array_equal(np.load(self.folder / "y_0.npy"), [3, 6])
            shown = td("cluster", "status", "--target", cluster.target(), "--json")
            tasks = {task["task"]: task for task in json.loads(shown.stdout)}
            self.assertEqual(sorted(tasks), ["/job:ps/replica:0/task:0",
                                             "/job:worker/replica:0/task:0"])
            for name, task in tasks.items():
                self.assertEqual(task["running_steps"], 0)
                self.assertEqual(task["devices"][0]["name"], name + "/device:CPU:0")
                self.assertNotEqual(task["devices"][0]["incarnation"], "0")
                self.assertGreater(task["local"]["calls"], 0)  # all of it is on this machine
            # A task that is gone is named, with the reason.
            self.assertEqual(cluster.tasks[0].stop(), 0)
            shown = td("cluster", "status", "--target", cluster.target())
            self.assertRegex(shown.stdout, "/job:ps/replica:0/task:0 at .*: does not answer: ")

    def test_explain_takes_the_devices_of_a_cluster_that_runs(self):
        with servers.Cluster(TD, ps=["tandem"], worker=["tandem"]) as cluster:
            (self.folder / "graph.pbtxt").write_text(GRAPH)
            words = ["explain", str(self.folder / "graph.pbtxt"), "--feed", "x=1000", "--fetch", "y", "--target",
                     cluster.target(), "--json"]
            explained = td(*words)
            self.assertEqual(explained.returncode, 0, explained.stderr)
            seen = json.loads(explained.stdout)
            self.assertEqual([device["name"] for device in seen["devices"]],
                             ["/job:worker/replica:0/task:0/device:CPU:0", "/job:ps/replica:0/task:0/device:CPU:0"])
            self.assertEqual([(way["from"], way["to"], way["values"], way["bytes"]) for way in seen["network"]],
                             [("/job:worker/task:0", "/job:ps/task:0", ["x/fed_0"], 4000)])
            self.assertGreater(seen["network"][0]["seconds"], 0)
            self.assertEqual(td(*words, "--measure", "3").returncode, 2)

    def test_the_environment_says_which_task_it_is(self):
        port, = servers.free_ports(1)
        config = {"cluster": {"worker": [f"localhost:{port}"]},
                  "task": {"type": "worker", "index": 0}}
        for variables in ({"TF_CONFIG": json.dumps(config)},
                          {"SLURM_PROCID": "0", "SLURM_STEP_NODELIST": "localhost",
                           "SLURM_STEP_TASKS_PER_NODE": "1"},
                          {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"}):
            with subprocess.Popen([TD, "server"], stdout=subprocess.PIPE, text=True,
                                  env=dict(os.environ, **variables)) as process:
                line = process.stdout.readline()
                process.send_signal(signal.SIGTERM)
                self.assertRegex(line, "^listening on .* as /job:worker/replica:0/task:0")
                self.assertEqual(process.wait(30), 0)

    def test_prometheus_finds_figures(self):
        port, metrics = servers.free_ports(2)
        task = servers.Task("tandem", "worker", 0, {"worker": [f"localhost:{port}"]}, TD,
                            ["--metrics-port", str(metrics)])
        try:
            task.wait_until_it_listens()
            with urllib.request.urlopen(f"http://localhost:{metrics}/metrics", timeout=30) as reply:
                text = reply.read().decode()
            self.assertIn('tandem_running_steps{task="/job:worker/replica:0/task:0"} 0\n', text)
            self.assertIn("# TYPE tandem_parameter_updates_total counter\n", text)
            self.assertNotIn("tandem_unimplemented_calls_total", text)
            with grpc.insecure_channel(f"localhost:{port}") as channel:
                heartbeat = channel.unary_unary("/tensorflow.CoordinationService/Heartbeat")
                with self.assertRaises(grpc.RpcError) as raised:
                    heartbeat(b"", timeout=30)
                self.assertEqual(raised.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
            with urllib.request.urlopen(f"http://localhost:{metrics}/metrics", timeout=30) as reply:
                self.assertIn('method="/tensorflow.CoordinationService/Heartbeat"} 1\n', reply.read().decode())
            with self.assertRaises(urllib.error.HTTPError):
                urllib.request.urlopen(f"http://localhost:{metrics}/other", timeout=30)
        finally:
            self.assertEqual(task.stop(), 0)

    @unittest.skipUnless(shutil.which("openssl"), "openssl makes the certificates")
    def test_tls_is_mutual(self):
        words = certificates(self.folder)
        ports = servers.free_ports(2)
        spec = {"ps": [f"localhost:{ports[0]}"], "worker": [f"localhost:{ports[1]}"]}
        tasks = [servers.Task("tandem", job, 0, spec, TD, words) for job in spec]
        try:
            for task in tasks:
                task.wait_until_it_listens()
            target = "grpc://" + spec["worker"][0]
            shown = td("cluster", "status", "--target", target, "--json", *words)
            self.assertEqual(shown.returncode, 0, shown.stderr)
            self.assertEqual([task.get("error") for task in json.loads(shown.stdout)], [None, None])
            plain = td("cluster", "status", "--target", target)
            self.assertEqual(plain.returncode, 1)
            self.assertIn("No task answers", plain.stderr)
            ran = self.run_graph("grpcs://" + spec["worker"][0], *words)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            np.testing.assert_array_equal(np.load(self.folder / "y_0.npy"), [3, 6])
            self.assertEqual(self.run_graph("grpcs://" + spec["worker"][0]).returncode, 2)
        finally:
            self.assertEqual([task.stop() for task in tasks], [0, 0])

    @unittest.skipUnless(shutil.which("openssl"), "openssl makes the certificates")
    def test_certificates_are_replaced_while_servers_run(self):
        folders = [self.folder / name for name in ("old", "new", "served")]
        for folder in folders:
            folder.mkdir()
        old, new = (certificates(folder) for folder in folders[:2])

        def install(folder):
            for name in ("task.key", "task.pem", "ca.pem"):
                shutil.copy(folder / name, folders[2] / ("next." + name))
            for name in ("task.key", "task.pem", "ca.pem"):
                os.replace(folders[2] / ("next." + name), folders[2] / name)

        install(folders[0])
        served = [word.replace(str(folders[0]), str(folders[2])) for word in old]
        ports = servers.free_ports(2)
        spec = {"ps": [f"localhost:{ports[0]}"], "worker": [f"localhost:{ports[1]}"]}
        tasks = [servers.Task("tandem", job, 0, spec, TD, served) for job in spec]
        try:
            for task in tasks:
                task.wait_until_it_listens()
            target = "grpc://" + spec["worker"][0]

            def trusted(words):
                return td("cluster", "status", "--target", target, *words).returncode == 0

            self.assertTrue(trusted(old))
            self.assertFalse(trusted(new))
            install(folders[1])
            end = time.monotonic() + 60
            while not trusted(new):
                self.assertLess(time.monotonic(), end, "the new certificates are not used")
                time.sleep(0.5)
            self.assertFalse(trusted(old))
            # Servers trust each other by the new ones as well, and the same processes have served throughout.
            ran = self.run_graph("grpcs://" + spec["worker"][0], *new, "--timeout", "30")
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertEqual([task.process.poll() for task in tasks], [None, None])
        finally:
            self.assertEqual([task.stop() for task in tasks], [0, 0])

    def test_a_task_that_stops_answering_is_named_and_comes_back(self):
        ports = servers.free_ports(2)
        spec = {"ps": [f"localhost:{ports[0]}"], "worker": [f"localhost:{ports[1]}"]}
        tasks = [servers.Task("tandem", job, 0, spec, TD, ["--heartbeat-timeout", "1.5"])
                 for job in spec]
        try:
            for task in tasks:
                task.wait_until_it_listens()
            target = "grpc://" + spec["worker"][0]
            np.save(self.folder / "x.npy", np.float32([1, 2]))
            (self.folder / "wait.pbtxt").write_text(WAITING)
            command = [TD, "run", str(self.folder / "wait.pbtxt"), "--fetch", "y", "--target", target,
                       "--repeat", "0"]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True) as step:
                time.sleep(3)  # a step may take longer than the timeout where all tasks answer
                self.assertIsNone(step.poll())
                tasks[0].process.send_signal(signal.SIGSTOP)
                begin = time.monotonic()
                _, text = step.communicate(timeout=60)
            self.assertLess(time.monotonic() - begin, 10)
            self.assertEqual(step.returncode, 1)
            self.assertIn("/job:ps/replica:0/task:0 does not answer", text)
            tasks[0].process.send_signal(signal.SIGCONT)
            ran = self.run_graph(target)
            self.assertEqual(ran.returncode, 0, ran.stderr)
        finally:
            tasks[0].process.send_signal(signal.SIGCONT)
            self.assertEqual([task.stop() for task in tasks], [0, 0])

    def test_beyond_this_machine_is_not_served_in_the_clear(self):
        refused = td("server", "--job", "worker", "--cluster", "worker=192.0.2.1:0")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("--insecure", refused.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
