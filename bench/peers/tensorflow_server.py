"""tensorflow_server.py JOB TASK CLUSTER THREADS: a task of a cluster (JSON) by TensorFlow's own server,
for bench/ours/cluster; ends when it is killed."""

import json
import sys

import tensorflow as tf


def main():
    job, task, cluster, threads = sys.argv[1:]
    config = tf.compat.v1.ConfigProto(device_count={"CPU": 1, "GPU": 0},
                                      intra_op_parallelism_threads=int(threads),
                                      inter_op_parallelism_threads=int(threads))
    server = tf.distribute.Server(json.loads(cluster), job_name=job, task_index=int(task),
                                  protocol="grpc", config=config)
    print("listening", flush=True)
    server.join()


if __name__ == "__main__":
    main()
