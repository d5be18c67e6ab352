// libtorch on a GPU: what the calling thread spends on an eager addition called from C++.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <torch/version.h>

#include "bench/common/serve.h"
#include "bench/common/timing.h"
#include "bench/ours/gpu/sizes.h"

namespace {

bench::Answer eager_add() {
  const c10::InferenceMode guard;  // what libtorch recommends where no gradient is wanted
  const at::Tensor x = at::ones({8}, at::kCUDA), one = at::ones({8}, at::kCUDA);
  const std::int64_t times = bench::gpu_sizes().additions;
  at::Tensor y;
  const auto enqueue = [&] {
    y = one;
    const double start = bench::now();
    for (std::int64_t i = 0; i < times; ++i) y = at::add(y, x);
    const double elapsed = bench::now() - start;
    y[0].item<float>();  // waits
    return elapsed / static_cast<double>(times);
  };
  constexpr int kWarmUp = 5, kBlocks = 25;
  for (int i = 0; i < kWarmUp; ++i) enqueue();
  std::vector<double> seconds(kBlocks);
  for (double& each : seconds) each = enqueue();
  std::nth_element(seconds.begin(), seconds.begin() + kBlocks / 2, seconds.end());
  bench::Answer answer;
  answer.value = 1e6 * seconds[kBlocks / 2];
  answer.check = y[7].item<float>();
  answer.nodes = 1;
  return answer;
}

}  // namespace

int main() {
  at::set_num_threads(bench::threads());
  return bench::serve({{"eager_add", eager_add}}, std::string("libtorch ") + TORCH_VERSION);
}
