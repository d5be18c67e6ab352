"""JAX on a GPU: products, and steps of an MLP. It runs by this machine's own Python, whose JAX has CUDA."""

import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # the other side needs memory too

import jax
import jax.numpy as jnp
import numpy as np

import common as c
import jax_peer

PERIOD = 1048573


def product(dtype, n):
    def run():
        def tiled(seed):
            return jnp.asarray(np.resize(c.uniform((min(n * n, PERIOD),), seed), (n, n))).astype(dtype)

        a, b = tiled(c.LEFT_SEED), tiled(c.RIGHT_SEED)
        multiply = jax.jit(lambda x, y: jnp.matmul(x, y, precision="highest" if dtype == jnp.float32 else None))

        def loop(times):
            for _ in range(times):
                out = multiply(a, b)
            out.block_until_ready()

        value = c.seconds_per_call(loop) * 1e3
        return {"value": value, "check": float(multiply(a, b)[n // 3, n // 2])}

    return run


if __name__ == "__main__":
    made = {"mlp": c.Lazy(jax_peer.mlp)}
    for size in (1024, 2048, 4096, 8192):
        made[f"float_{size}"] = product(jnp.float32, size)
        made[f"bfloat16_{size}"] = product(jnp.bfloat16, size)
    c.serve(made, f"jax {jax.__version__} on {jax.devices()[0].device_kind}")
