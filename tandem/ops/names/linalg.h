#pragma once

// Names of tf.linalg that are declared elsewhere: see tandem/ops/names/math.h.

#include "tandem/ops/creation_ops.h"
#include "tandem/ops/layout_ops.h"
#include "tandem/ops/linalg_functions.h"
#include "tandem/ops/norm_ops.h"

namespace tandem::linalg {

using nn::l2_normalize;
using tandem::eye;
using tandem::matrix_transpose;

}  // namespace tandem::linalg
