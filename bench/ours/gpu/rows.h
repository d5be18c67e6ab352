// The rows of bench_gpu, by subject. Each verifies what it computes and throws where it is wrong.
#pragma once

#include <functional>

#include "tandem/device/device.h"
#include <tandem/tandem.h>

#include "bench/common/serve.h"
#include "bench/common/timing.h"
#include "bench/ours/gpu/sizes.h"

namespace bench {

void add_products(Rows& rows);
void add_training(Rows& rows);
void add_eager(Rows& rows);
// Copies and what memory bounds; `plain_*` are the driver's own copies.
void add_bandwidth(Rows& rows);
void add_feeding(Rows& rows);

/// GPU:0, or null where Tandem finds no GPU.
tandem::Device* gpu();

/// A copy of `value` in the GPU's memory.
tandem::Tensor on_gpu(const tandem::Tensor& value);

/// Throws unless the two are as close as `tolerance` demands, relative to `expected`.
void expect_close(const char* what, double value, double expected, double tolerance);

/// `loop(n)` runs n steps and returns when the GPU has done them all. The seconds of one, after
/// those steps in which plans are made and kernels chosen.
double seconds_per_gpu_step(const std::function<void(int)>& loop);

/// `count` floats in [0, 1) that repeat a sequence of prime length: quick to make, and no row of
/// a matrix is another's.
std::vector<float> tiled(std::int64_t count, std::uint64_t seed);

}  // namespace bench
