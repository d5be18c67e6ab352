"""JAX: calls of a jitted function, jitted training steps, matrix products."""

import numpy as np

import common as c

import jax
import jax.numpy as jnp
from jax import lax

RATE, BETA1, BETA2, EPSILON = 1e-3, 0.9, 0.999, 1e-7


def function_call():
    add = jax.jit(lambda y, x: y + x)
    x, y = jnp.float32(0.5), jnp.float32(1.0)

    def loop(n):
        z = y
        for _ in range(n):
            z = add(z, x)
        z.block_until_ready()

    def run():
        loop(2)
        return {"value": c.seconds_per_call(loop) * 1e6, "nodes": 1, "check": float(add(y, x))}

    return run


def cross_entropy(logits, target):
    chosen = jnp.take_along_axis(logits, target[:, None], axis=1)[:, 0]
    return jnp.mean(jax.nn.logsumexp(logits, axis=1) - chosen)


def glorot(rng, *shape):
    receptive = int(np.prod(shape[:-2]))
    limit = np.sqrt(6.0 / (receptive * (shape[-2] + shape[-1])))
    return jnp.asarray(rng.uniform(-limit, limit, shape), jnp.float32)


def trainer(model, parameters, images, targets, batch, units):
    """Epochs of Adam in one jitted step a batch, which picks its samples by a shuffled order."""
    data = images, targets
    images, targets = jnp.asarray(images), jnp.asarray(targets)
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    state = [(parameters, zeros, jax.tree.map(jnp.zeros_like, parameters), jnp.int32(0))]
    steps = len(images) // batch
    rng = np.random.default_rng(1)

    def step(state, images, targets, order):
        parameters, m, v, t = state
        x, y = images[order], targets[order]
        loss, gradients = jax.value_and_grad(lambda p: cross_entropy(model(p, x), y))(parameters)
        t = t + 1
        time = t.astype(jnp.float32)
        rate = RATE * jnp.sqrt(1 - BETA2**time) / (1 - BETA1**time)
        m = jax.tree.map(lambda a, g: BETA1 * a + (1 - BETA1) * g, m, gradients)
        v = jax.tree.map(lambda a, g: BETA2 * a + (1 - BETA2) * g * g, v, gradients)
        move = lambda p, a, b: p - rate * a / (jnp.sqrt(b) + EPSILON)
        return (jax.tree.map(move, parameters, m, v), m, v, t), loss

    step = jax.jit(step, donate_argnums=0)

    def epoch():
        order = rng.permutation(len(images)).astype(np.int32)
        now = state[0]
        for i in range(steps):
            now, _ = step(now, images, targets, order[i * batch : (i + 1) * batch])
        state[0] = jax.block_until_ready(now)

    evaluate = jax.jit(lambda p: cross_entropy(model(p, images), targets))
    return c.Trainer(data, epoch, lambda: evaluate(state[0][0]), units).run


def mlp():
    images, targets = c.mlp_data()
    rng = np.random.default_rng(0)
    parameters = {
        "w1": glorot(rng, 784, c.MLP_HIDDEN), "b1": jnp.zeros(c.MLP_HIDDEN),
        "w2": glorot(rng, c.MLP_HIDDEN, c.CLASSES), "b2": jnp.zeros(c.CLASSES),
    }

    def model(p, x):
        return jax.nn.relu(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]

    return trainer(model, parameters, images, targets, c.MLP_BATCH, c.MLP_SAMPLES // c.MLP_BATCH)


def cnn():
    images, targets = c.cnn_data()
    rng = np.random.default_rng(0)
    parameters = {
        "k": glorot(rng, 3, 3, 1, c.CNN_FILTERS), "b1": jnp.zeros(c.CNN_FILTERS),
        "w": glorot(rng, 13 * 13 * c.CNN_FILTERS, c.CLASSES), "b2": jnp.zeros(c.CLASSES),
    }

    def model(p, x):
        x = lax.conv_general_dilated(
            x, p["k"], (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = jax.nn.relu(x + p["b1"])
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return x.reshape(x.shape[0], -1) @ p["w"] + p["b2"]

    return trainer(model, parameters, images, targets, c.CNN_BATCH, c.CNN_SAMPLES)


def matmul(dtype, n):
    def make():
        a = jnp.asarray(c.uniform((n, n), c.LEFT_SEED)).astype(dtype)
        b = jnp.asarray(c.uniform((n, n), c.RIGHT_SEED)).astype(dtype)
        product = jax.jit(jnp.matmul)

        def loop(times):
            for _ in range(times):
                product(a, b).block_until_ready()

        def run():
            value = c.seconds_per_call(loop) * 1e3
            return {"value": value, "check": float(product(a, b)[n // 3, n // 2])}

        return run

    return make


ROWS = {"function_call": function_call, "mlp": mlp, "cnn": cnn}
for size in (512, 1024, 2048):
    ROWS[f"float_{size}"] = matmul(jnp.float32, size)
    ROWS[f"bfloat16_{size}"] = matmul(jnp.bfloat16, size)

if __name__ == "__main__":
    c.serve({name: c.Lazy(make) for name, make in ROWS.items()}, f"jax {jax.__version__}")
