"""`td server --etcd` with a real etcd (Debian: etcd-server): tasks find each other, get numbers, and leave. Skipped
where there is no etcd."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import servers

TD = servers.td_path()
PROGRAM = os.environ.get("TANDEM_CONNECT_TEST", "")


class EtcdTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        client, peer = servers.free_ports(2)
        self.endpoint = f"localhost:{client}"
        here, other = f"http://localhost:{client}", f"http://localhost:{peer}"
        self.etcd = subprocess.Popen(
            ["etcd", "--data-dir", self.folder, "--listen-client-urls", here, "--advertise-client-urls", here,
             "--listen-peer-urls", other, "--initial-advertise-peer-urls", other, "--initial-cluster",
             f"default={other}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(self.etcd.wait)
        self.addCleanup(self.etcd.kill)

    def start(self, job, jobs="ps=1;worker=2"):
        port, = servers.free_ports(1)
        process = subprocess.Popen(
            [TD, "server", "--etcd", self.endpoint, "--job", job, "--address", f"localhost:{port}"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=dict(os.environ, TANDEM_CLUSTER_JOBS=jobs))
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process, f"localhost:{port}"

    def test_tasks_find_each_other(self):
        tasks = [self.start(job) for job in ("worker", "ps", "worker")]
        lines = [process.stdout.readline() for process, _ in tasks]
        names = [line.strip().rpartition(" as ")[2] for line in lines]
        self.assertEqual(sorted(names), ["/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0",
                                         "/job:worker/replica:0/task:1"], lines)
        shown = subprocess.run([TD, "cluster", "status", "--target", "grpc://" + tasks[0][1]], capture_output=True,
                               text=True, timeout=60, check=True).stdout
        for name, (_, address) in zip(names, tasks):
            self.assertIn(f"{name} at {address}: tandem", shown)
        for process, _ in tasks:
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(30), 0)
        # They have left, so that others get their numbers at once.
        again = [self.start(job) for job in ("worker", "ps", "worker")]
        lines = [process.stdout.readline().strip().rpartition(" as ")[2] for process, _ in again]
        self.assertEqual(sorted(lines), sorted(names))

    @unittest.skipUnless(os.path.exists(PROGRAM), "tests/distribute_test is not built")
    def test_a_strategy_uses_members_that_are_new(self):
        jobs = "ps=1;worker=1"
        _, (worker, _) = [self.start(job, jobs) for job in ("ps", "worker")]
        chief = subprocess.Popen([PROGRAM, "--gtest_filter=EtcdClusterTest.*"], stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True,
                                 env=dict(os.environ, TANDEM_TEST_ETCD=self.endpoint))
        self.addCleanup(chief.kill)
        shown = []
        for line in chief.stdout:
            shown.append(line)
            if line == "trained\n":
                break
        worker.kill()
        self.start("worker", jobs)  # the number 0 is taken until the lease of the first one has run out
        shown.append(chief.communicate(timeout=120)[0])
        self.assertEqual(chief.returncode, 0, "".join(shown))
        self.assertIn("[  PASSED  ] 1 test.", shown[-1])

    def test_what_is_missing_is_said(self):
        done = subprocess.run([TD, "server", "--etcd", self.endpoint, "--job", "ps"], capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--etcd needs --job, --address", done.stderr)


if __name__ == "__main__":
    if not shutil.which("etcd"):
        print("skipped: etcd is not installed (Debian: etcd-server)")
        sys.exit(77)
    unittest.main(verbosity=2)
