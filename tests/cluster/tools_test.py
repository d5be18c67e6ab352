"""`td server`, `td run --target` and `td cluster status` as operators use them."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.request

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

    def run_graph(self, target):
        (self.folder / "graph.pbtxt").write_text(GRAPH)
        return td("run", str(self.folder / "graph.pbtxt"), "--feed", f"x={self.folder / 'x.npy'}", "--fetch",
                  "y", "--target", target, "--out", str(self.folder))

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
            # A task that is gone is named, with the reason.
            self.assertEqual(cluster.tasks[0].stop(), 0)
            shown = td("cluster", "status", "--target", cluster.target())
            self.assertRegex(shown.stdout, "/job:ps/replica:0/task:0 at .*: does not answer: ")

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
        finally:
            self.assertEqual([task.stop() for task in tasks], [0, 0])

    def test_beyond_this_machine_is_not_served_in_the_clear(self):
        refused = td("server", "--job", "worker", "--cluster", "worker=192.0.2.1:0")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("--insecure", refused.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
