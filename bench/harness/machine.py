"""The machine that a benchmark runs on, and holding both sides to two processors of it."""

import os

THREADS = 2


def model():
    with open("/proc/cpuinfo") as cpus:
        for line in cpus:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return "unknown processor"


def about():
    return f"{model()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}"


def siblings(cpu):
    try:
        with open(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") as file:
            return file.read().strip()
    except OSError:
        return str(cpu)


def hold_to_two():
    """Pins this process, and so all that it starts, to two processors, on cores of their own where
    there are two such: some peers take as many threads as they see processors."""
    allowed = sorted(os.sched_getaffinity(0))
    chosen = {}
    for cpu in allowed:
        chosen.setdefault(siblings(cpu), cpu)
    cpus = list(chosen.values())
    cpus += [cpu for cpu in allowed if cpu not in cpus]
    os.sched_setaffinity(0, cpus[:THREADS])


def environment():
    """What both sides see."""
    return {
        **os.environ,
        "TANDEM_BENCH_THREADS": str(THREADS),
        "OMP_NUM_THREADS": str(THREADS),
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }
