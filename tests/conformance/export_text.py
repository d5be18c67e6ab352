"""Cases of what comes before a model: text, tables, ragged arrays; and SavedModels as they serve."""

import pathlib
import tempfile

import numpy as np
import tensorflow as tf

from exporting import case, frozen, import_graph, run_v1, v1

TEXT = np.array([b"Hello, World! the cat", b"", b"a the THE b"], object)
WORDS = ["the", "cat", "hello", "world"]


def write_served(writer, function, *inputs):
    """The graph of a SavedModel, as TensorFlow 1 loads it: its tables are made by the init op."""
    module = tf.Module()
    module.serve = tf.function(
        lambda *args: {f"output_{i}": y for i, y in enumerate(tf.nest.flatten(function(*args)))},
        input_signature=[tf.TensorSpec((None, *i.shape[1:]), tf.as_dtype(i.dtype)) for i in inputs])
    concrete = module.serve.get_concrete_function()
    module.captures = [function, *concrete.graph.variables]
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "saved")
        tf.saved_model.save(module, path, signatures=concrete)
        with tf.Graph().as_default() as graph, v1.Session() as session:
            signatures = v1.saved_model.load(session, ["serve"], path).signature_def
            serve = signatures["serving_default"]
            init = signatures["__saved_model_init_op"].outputs["__saved_model_init_op"].name
            feeds = dict(zip([t.name for _, t in sorted(serve.inputs.items())], inputs))
            fetches = [t.name for _, t in sorted(serve.outputs.items())]
            expected = dict(zip(fetches, session.run(fetches, feeds)))
            nodes = [name.split(":")[0] for name in [init, *fetches]]
            constant = v1.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), nodes)
    writer.write(constant, feeds, expected, inits=nodes[:1])


@case
def text_classifier(writer):
    layers = tf.keras.layers
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential([
        layers.Input((), dtype="string"),
        layers.TextVectorization(vocabulary=WORDS, output_sequence_length=4), layers.Embedding(8, 4),
        layers.GlobalAveragePooling1D(), layers.Dense(2)])
    write_served(writer, model, TEXT)


@case
def text_layers(writer):
    vectorize = tf.keras.layers.TextVectorization
    write_served(writer, All([
        vectorize(vocabulary=WORDS), vectorize(vocabulary=WORDS, output_mode="count"),
        vectorize(vocabulary=WORDS, output_mode="tf_idf", idf_weights=[0.5, 0.6, 0.7, 0.8]),
        vectorize(vocabulary=[*WORDS, "the cat"], ngrams=2, standardize="lower"),
        vectorize(vocabulary=["a", "e", "h"], split="character", output_sequence_length=5),
        tf.keras.layers.StringLookup(vocabulary=WORDS, num_oov_indices=3),
        tf.keras.layers.Hashing(7, salt=[133, 137])]), TEXT)


class All(tf.Module):
    """Layers on one input, kept where tf.saved_model.save looks for their tables."""

    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def __call__(self, x):
        return [layer(x) for layer in self.layers]


class Price(tf.Module):
    """A tf.function with a hash table and a variable."""

    def __init__(self):
        super().__init__()
        self.table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(["apple", "pear"], tf.constant([1.5, 2.25])), -1.0)
        self.factor = tf.Variable([[2.0], [3.0]])

    def __call__(self, names, counts):
        return self.table.lookup(names) * tf.cast(counts, tf.float32) * self.factor


@case
def hash_table(writer):
    write_served(writer, Price(), np.array([b"pear", b"plum", b"apple"], object),
                 np.array([2, 5, 1], np.int32))


def write_function(writer, function, value):
    graph, names, outputs = frozen(function, tf.TensorSpec((None,), tf.as_dtype(value.dtype)))
    feeds = {names[0]: value}
    writer.write(graph, feeds, run_v1(import_graph(graph), outputs, feeds))


@case
def ragged_arrays(writer):
    def function(x):
        r = tf.RaggedTensor.from_row_lengths(x, [2, 0, 3])
        return (tf.reduce_mean(r, axis=1), tf.expand_dims(r, -1).to_tensor(),
                tf.ragged.boolean_mask(r, r > 0).to_tensor(), (r * 2 + 1).to_tensor(9.0, shape=[None, 2]),
                tf.ragged.range([3, 1, 2]).values, tf.concat([r, r[:, ::-1]], axis=1).row_lengths(),
                tf.gather(r, [2, 0]).to_tensor(), r.to_sparse().indices,
                tf.RaggedTensor.from_tensor(r.to_tensor(), padding=0.0).values)

    write_function(writer, function, np.array([0.5, -1, 2, 3, -4], np.float32))


@case
def rows_in_variants(writer):
    """tf.map_fn over rows of a ragged array, and to such rows."""
    rows = tf.RaggedTensorSpec([None, None], tf.float32)

    def function(x):
        r = tf.RaggedTensor.from_row_lengths(tf.RaggedTensor.from_row_lengths(x, [2, 0, 3]), [2, 1])
        twice = tf.map_fn(lambda row: row * 2, r, fn_output_signature=rows)
        deeper = tf.map_fn(lambda row: tf.map_fn(lambda y: y + 1, row), r, fn_output_signature=rows)
        counts = tf.map_fn(tf.range, tf.constant([3, 0, 2]),
                           fn_output_signature=tf.RaggedTensorSpec([None], tf.int32))
        return (*twice.nested_row_splits, twice.flat_values, deeper.flat_values, counts.values,
                counts.row_splits, tf.map_fn(tf.reduce_sum, r, fn_output_signature=tf.float32))

    write_function(writer, function, np.array([0.5, -1, 2, 3, -4], np.float32))


@case
def unicode_text(writer):
    def function(x):
        characters = tf.strings.unicode_decode(x, "UTF-8")
        return (characters.to_tensor(), tf.strings.unicode_split(x, "UTF-8").to_tensor(""),
                tf.strings.unicode_encode(characters + 1, "UTF-8"),
                tf.strings.ngrams(tf.strings.split(x), 2).to_tensor(""),
                tf.strings.unicode_transcode(x, "UTF-8", "UTF-8", errors="ignore"))

    write_function(writer, function,
                   np.array(["h\u00e9llo w\u00f6rld \u4e16".encode(), b"", b"x\x80 y"], object))
