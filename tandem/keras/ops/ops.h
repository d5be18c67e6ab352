#pragma once

// All of keras.ops.

#include "tandem/keras/ops/arrays.h"
#include "tandem/keras/ops/elementwise.h"
#include "tandem/keras/ops/networks.h"
#include "tandem/keras/ops/reductions.h"

/// Keras' modules within keras.ops, all of whose functions are in `ops` itself.
namespace tandem::keras::ops {
namespace numpy = ::tandem::keras::ops;
namespace nn = ::tandem::keras::ops;
namespace linalg = ::tandem::keras::ops;
}  // namespace tandem::keras::ops
