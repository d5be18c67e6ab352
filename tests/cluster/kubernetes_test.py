"""The manifests of docs/kubernetes: every server in them starts, and is the task that its pod is meant
to be. Exit code 77, with the reason, without a YAML parser."""

import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

import servers

try:
    import yaml
except ImportError:
    print("skipped: no YAML parser (Debian: python3-yaml)")
    sys.exit(77)

TD = servers.td_path()
ROOT = pathlib.Path(__file__).resolve().parents[2]
MANIFESTS = ROOT / "docs/kubernetes"


def documents(name):
    return list(yaml.safe_load_all((MANIFESTS / name).read_text()))


def of_kind(name, kind):
    return [document for document in documents(name) if document["kind"] == kind]


def first_line(container, variables):
    """What the container's server prints first. Its files are not here, so that it is started without
    certificates and durable state, on a free port."""
    command = list(container["command"])
    assert command[:2] == ["td", "server"], command
    help_text = subprocess.run([TD, "server", "--help"], capture_output=True, text=True, check=True)
    for flag in command[2::2]:
        assert re.search(rf"^ *{flag}\b", help_text.stdout, re.MULTILINE), flag
    of_tests = ("TANDEM_TD", "TANDEM_CONNECT_TEST")  # which td itself does not know
    environment = {name: value for name, value in os.environ.items() if name not in of_tests}
    environment |= {entry["name"]: entry["value"] for entry in container.get("env", [])}
    environment |= variables
    with subprocess.Popen([TD, "server", "--insecure", "--port", "0"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True,
                          env=environment) as process:
        line = process.stdout.readline()
        process.terminate()
        warnings = process.stderr.read()
        assert process.wait(30) == 0, warnings
    # No variable that Tandem does not know.
    assert "no effect" not in warnings, warnings
    return re.sub(r":\d+ ", " ", line.strip())


class KubernetesTest(unittest.TestCase):
    def check_tls(self, pod_spec, container):
        mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
        secrets = {volume["name"]: volume["secret"]["secretName"] for volume in pod_spec["volumes"]}
        self.assertEqual(secrets[mounts["/tls"]], "digits-tls")
        self.assertGreater(pod_spec["terminationGracePeriodSeconds"], 10)

    def test_pods_of_stateful_sets_are_their_tasks(self):
        service, = of_kind("cluster.yaml", "Service")
        name = service["metadata"]["name"]
        self.assertEqual(service["spec"]["clusterIP"], "None")
        sizes, hosts = {}, set()
        for stateful in of_kind("cluster.yaml", "StatefulSet"):
            spec, pod_spec = stateful["spec"], stateful["spec"]["template"]["spec"]
            container, = pod_spec["containers"]
            self.check_tls(pod_spec, container)
            self.assertEqual(spec["serviceName"], name)
            labels = spec["template"]["metadata"]["labels"]
            self.assertEqual(labels, {**spec["selector"]["matchLabels"], **service["spec"]["selector"]})
            job = labels["job"]
            sizes[job] = spec["replicas"]
            for task in range(spec["replicas"]):
                pod = f"{stateful['metadata']['name']}-{task}"
                hosts.add(f"{pod}.{name}")
                self.assertEqual(first_line(container, {"HOSTNAME": pod}),
                                 f"listening on {pod}.{name} as /job:{job}/replica:0/task:{task}")
        for stateful in of_kind("cluster.yaml", "StatefulSet"):
            env = stateful["spec"]["template"]["spec"]["containers"][0]["env"]
            jobs, = [entry["value"] for entry in env if entry["name"] == "TANDEM_CLUSTER_JOBS"]
            self.assertEqual(jobs, ";".join(f"{job}={size}" for job, size in sizes.items()))
        self.assertLessEqual(hosts, self.certified())

    def certified(self):
        """The names in the certificate."""
        made = {certificate["spec"]["secretName"]: certificate["spec"]
                for certificate in of_kind("tls.yaml", "Certificate")}
        return set(made["digits-tls"]["dnsNames"])

    def test_tf_config_of_a_tf_job_says_which_task_it_is(self):
        job, = of_kind("tfjob.yaml", "TFJob")
        replicas = job["spec"]["tfReplicaSpecs"]
        cluster = {kind.lower(): [f"{job['metadata']['name']}-{kind.lower()}-{i}.default.svc:2222"
                                  for i in range(replica["replicas"])]
                   for kind, replica in replicas.items()}
        for kind, replica in replicas.items():
            pod_spec = replica["template"]["spec"]
            container, = pod_spec["containers"]
            self.check_tls(pod_spec, container)
            self.assertEqual(container["name"], "tensorflow")
            self.assertEqual(container["ports"], [{"name": "tfjob-port", "containerPort": 2222}])
            for task, address in enumerate(cluster[kind.lower()]):
                host = address.removesuffix(":2222")
                self.assertIn(host, self.certified())
                if kind == "Chief":
                    continue
                config = {"cluster": cluster, "task": {"type": kind.lower(), "index": task},
                          "environment": "cloud"}
                self.assertEqual(
                    first_line(container, {"TF_CONFIG": json.dumps(config)}),
                    f"listening on {host} as /job:{kind.lower()}/replica:0/task:{task}")

    def test_all_manifests_name_what_they_are(self):
        for manifest in MANIFESTS.glob("*.yaml"):
            for document in documents(manifest.name):
                self.assertLessEqual({"apiVersion", "kind", "metadata"}, set(document), manifest)


if __name__ == "__main__":
    unittest.main(verbosity=2)
