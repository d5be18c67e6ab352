"""TensorFlow runs the graphs that it exported: a Session of compat.v1, oneDNN and Grappler on.

A callable made once is TensorFlow's quickest way in from Python; a pruned function of the same graph
(wrap_function) takes as long and more memory.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import common as c
import models_common

import tensorflow as tf

v1 = tf.compat.v1


class Model:
    def __init__(self, described):
        graph_def = v1.GraphDef()
        graph_def.ParseFromString((described.folder / "graph.pb").read_bytes())
        graph = tf.Graph()
        with graph.as_default():
            tf.import_graph_def(graph_def, name="")
        self.nodes = self.needed(graph_def, described)
        del graph_def
        config = v1.ConfigProto(intra_op_parallelism_threads=c.THREADS,
                                inter_op_parallelism_threads=c.THREADS)
        self.session = v1.Session(graph=graph, config=config)
        if described.init:
            self.session.run(described.init)
        self.call = self.session.make_callable(
            [described.fetches[0], described.targets], list(described.feeds))
        self.values = list(described.feeds.values())

    def __del__(self):
        self.session.close()

    @staticmethod
    def needed(graph_def, described):
        """Nodes that a step needs, before any optimisation; feeds are not counted."""
        inputs = {node.name: node.input for node in graph_def.node}
        fed = {name.split(":")[0] for name in described.feeds}
        waiting, seen = [name.split(":")[0] for name in described.fetches + described.targets], set()
        while waiting:
            name = waiting.pop()
            if name not in seen and name not in fed:
                seen.add(name)
                waiting += [given.lstrip("^").split(":")[0] for given in inputs[name]]
        return len(seen)

    def step(self):
        return self.call(*self.values)[0]


if __name__ == "__main__":
    models_common.main(Model, models_common.names(), f"tensorflow {tf.__version__}")
