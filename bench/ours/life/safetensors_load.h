#pragma once

#include "bench/common/serve.h"

namespace bench {

/// From a safetensors file of 2 GB (32 float matrices of 4,096 × 4,096, which is written at the
/// first call and shared with the peer) to the products of a vector with all of them, in ms.
/// TANDEM_BENCH_SAFETENSORS names the file, build/bench/weights.safetensors by default.
Answer safetensors_load();

}  // namespace bench
