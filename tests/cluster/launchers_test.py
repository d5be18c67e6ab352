"""launchers_test.py mpirun|srun: servers that a launcher starts on this machine find each other.

Exit code 77, with the reason, where the launcher is not installed. Slurm's daemons are started for the
test alone, with a configuration of their own.
"""

import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

import servers

SKIPPED = 77
TD = servers.td_path()
SECONDS = 60

# A value of the parameter server, doubled on the second worker.
GRAPH = """
node { name: "three" op: "Const" device: "/job:ps/task:0"
       attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 3 } } } }
node { name: "y" op: "AddV2" input: "three" input: "three" device: "/job:worker/task:1"
       attr { key: "T" value { type: DT_FLOAT } } }
"""


def wait_for(what, condition):
    end = time.monotonic() + SECONDS
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not after {SECONDS} s")
        time.sleep(0.1)
    return value


def first_port():
    """The first of three ports in a row that are free."""
    for port in range(20000 + os.getpid() % 10000, 60000, 7):
        try:
            for offset in range(3):
                with servers.socket.socket() as one:
                    one.bind(("127.0.0.1", port + offset))
            return port
        except OSError:
            continue
    raise AssertionError("there are no three free ports in a row")


def check_cluster(port, folder):
    """All three tasks answer each other, and a step runs across them."""
    target = f"grpc://localhost:{port + 1}"
    shown = subprocess.run([TD, "cluster", "status", "--target", target, "--json"],
                           capture_output=True, text=True, timeout=SECONDS, check=True)
    tasks = json.loads(shown.stdout)
    assert [(task["task"], task.get("error")) for task in tasks] == [
        ("/job:ps/replica:0/task:0", None), ("/job:worker/replica:0/task:0", None),
        ("/job:worker/replica:0/task:1", None)], tasks
    (folder / "graph.pbtxt").write_text(GRAPH)
    subprocess.run([TD, "run", str(folder / "graph.pbtxt"), "--fetch", "y", "--target", target,
                    "--out", str(folder)], timeout=SECONDS, check=True)
    assert struct.unpack("<f", (folder / "y_0.npy").read_bytes()[-4:]) == (6,)


def run_servers(command, environment, folder, end):
    """Starts three servers by a launcher's command, checks them, and has `end` end them."""
    port = first_port()
    out = folder / "servers.txt"
    # A server's shell outlives the signal and keeps the exit code.
    script = 'trap : TERM; "$0" server; echo $? >"$1/$$.code"'
    with open(out, "w") as file, subprocess.Popen(
            [*command, "sh", "-c", script, TD, str(folder)], stdout=file, stderr=subprocess.STDOUT,
            env=dict(os.environ, TANDEM_CLUSTER_JOBS="ps=1;worker=2", TANDEM_PORT=str(port),
                     **environment)) as launcher:
        try:
            wait_for("all listen", lambda: out.read_text().count("listening on") == 3)
            check_cluster(port, folder)
            end(launcher)
            launcher.wait(SECONDS)
        except BaseException:
            print(out.read_text())
            raise
        finally:
            if launcher.poll() is None:
                launcher.kill()
    codes = [code.read_text().strip() for code in folder.glob("*.code")]
    assert codes == ["0", "0", "0"], (codes, out.read_text())


def mpirun(folder):
    # Seconds before SIGTERM is passed on, and then before SIGKILL: 1 is too little to drain.
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca",
               "odls_base_sigkill_timeout", "3", "-np", "3"]
    run_servers(command, {}, folder, lambda launcher: launcher.send_signal(signal.SIGTERM))


SLURM = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
MpiDefault=none
SwitchType=switch/none
NodeName=localhost NodeHostname={host} NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def srun(folder):
    host = os.uname().nodename.split(".")[0]
    for name in ("state", "spool"):
        (folder / name).mkdir()
    (folder / "slurm.conf").write_text(
        SLURM.format(host=host, ports=servers.free_ports(2), folder=folder))
    (folder / "cgroup.conf").write_text("CgroupPlugin=autodetect\n")
    environment = {"SLURM_CONF": str(folder / "slurm.conf")}
    everything = dict(os.environ, **environment)
    daemons = []
    try:
        for command in (["slurmctld", "-D"], ["slurmd", "-D", "-N", "localhost"]):
            daemons.append(subprocess.Popen(command, env=everything, stdout=subprocess.DEVNULL,
                                            stderr=subprocess.DEVNULL))

        def idle():
            for daemon in daemons:
                if daemon.poll() is not None:
                    return "ended"
            shown = subprocess.run(["sinfo", "-h", "-o", "%T"], env=everything, text=True,
                                   capture_output=True, check=False)
            return shown.stdout.strip() == "idle"

        # Whether Slurm comes up is the machine's matter: how it starts processes, what it may mount.
        try:
            ready = wait_for("Slurm is ready", idle) is True
        except AssertionError:
            ready = False
        if not ready:
            log = folder / "slurmd.log"
            print("skipped: Slurm's daemons cannot run here:",
                  log.read_text().strip().split("\n")[-1] if log.exists() else "slurmd wrote no log")
            return SKIPPED

        def cancel(_):
            subprocess.run(["scancel", "--signal=TERM", "--name=tandem"], env=everything, check=True)

        run_servers(["srun", "--job-name=tandem", "--ntasks=3", "--overcommit"], environment, folder,
                    cancel)
    finally:
        for daemon in daemons:
            daemon.terminate()
        for daemon in daemons:
            daemon.wait(SECONDS)
    return 0


def main():
    launcher = sys.argv[1]
    needed = {"mpirun": ["mpirun"], "srun": ["srun", "scancel", "sinfo", "slurmctld", "slurmd"]}
    missing = [tool for tool in needed[launcher] if not shutil.which(tool)]
    if missing:
        print(f"skipped: {', '.join(missing)} not installed (Debian: openmpi-bin, slurm-client, slurmctld, slurmd)")
        return SKIPPED
    if launcher == "srun" and os.getuid() != 0:
        print("skipped: Slurm's daemons need root")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        return {"mpirun": mpirun, "srun": srun}[launcher](pathlib.Path(folder)) or 0


if __name__ == "__main__":
    sys.exit(main())
