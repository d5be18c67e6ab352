#pragma once

// Names of tf.math that are declared elsewhere. A function that TensorFlow has in several places is
// declared in one of them here, and named in the others by a line in the header of its namespace.

#include "tandem/ops/activation_ops.h"
#include "tandem/ops/loss_ops.h"
#include "tandem/ops/math_functions.h"
#include "tandem/ops/norm_ops.h"

namespace tandem::math {

using nn::in_top_k;
using nn::l2_normalize;
using nn::log_softmax;
using nn::softmax;
using nn::softplus;
using nn::softsign;

}  // namespace tandem::math
