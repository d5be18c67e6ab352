"""Our eager client (td::distribute::connect) on the real TensorFlow's servers, and on both kinds in one cluster: the
tests of tests/unit/distribute/connect_test.cpp and remote_dataset_test.cpp, which otherwise run on servers of ours."""

import os
import subprocess
import sys
import unittest

import servers

PROGRAM = os.environ.get("TANDEM_CONNECT_TEST", "")


class ConnectTest(unittest.TestCase):
    def check(self, kinds):
        with servers.Cluster(servers.td_path(), worker=kinds) as cluster:
            spec = "worker=" + ",".join(cluster.spec["worker"])
            ran = subprocess.run([PROGRAM, "--gtest_filter=ConnectTest.*:RemoteDatasetTest.*"], capture_output=True, text=True,
                                 timeout=100, check=False, env=dict(os.environ, TANDEM_TEST_CLUSTER=spec))
            self.assertEqual(ran.returncode, 0, ran.stdout[-4000:] + ran.stderr[-2000:])
            self.assertIn("[  PASSED  ] 16 tests.", ran.stdout)

    def test_tensorflows_servers(self):
        self.check(["tensorflow", "tensorflow"])

    def test_both_kinds(self):
        self.check(["tandem", "tensorflow"])


if __name__ == "__main__":
    if not os.path.exists(PROGRAM):
        print(f"skipped: {PROGRAM} is not built")
        sys.exit(77)
    unittest.main(verbosity=2)
