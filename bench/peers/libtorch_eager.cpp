// libtorch: an eager scalar addition called from C++.
#include <cstdint>
#include <stdexcept>
#include <string>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <torch/version.h>

#include "bench/common/serve.h"
#include "bench/common/timing.h"

namespace {

bench::Answer eager_add() {
  const c10::InferenceMode guard;  // what libtorch recommends where no gradient is wanted
  const at::Tensor x = at::scalar_tensor(0.5);
  const at::Tensor one = at::scalar_tensor(1.0);
  const auto loop = [&](std::int64_t n) {
    at::Tensor y = one;
    for (std::int64_t i = 0; i < n; ++i) y = at::add(y, x);
    if (!(y.item<float>() > 1)) throw std::runtime_error("the sum is wrong");
  };
  bench::Answer answer;
  answer.value = bench::seconds_per_call(loop) * 1e6;
  answer.nodes = 1;
  answer.check = at::add(one, x).item<float>();
  return answer;
}

}  // namespace

int main() {
  at::set_num_threads(bench::threads());
  return bench::serve({{"eager_add", eager_add}}, std::string("libtorch ") + TORCH_VERSION);
}
