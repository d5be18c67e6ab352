// What the calling thread spends on an eager op that the GPU computes: the time to enqueue it. The
// GPU finishes later, which is waited for outside of what is timed.
#include <algorithm>
#include <vector>

#include "bench/ours/gpu/rows.h"

namespace td = tandem;

namespace bench {
namespace {

Answer eager_add() {
  const td::DeviceScope scope("/GPU:0");
  const td::Tensor x = on_gpu(td::ones({8})), one = on_gpu(td::ones({8}));
  const std::int64_t times = gpu_sizes().additions;
  td::Tensor y;
  const auto enqueue = [&] {
    y = one;
    const double start = now();
    for (std::int64_t i = 0; i < times; ++i) y = td::add(y, x);
    const double elapsed = now() - start;
    y.synchronize();
    return elapsed / static_cast<double>(times);
  };
  constexpr int kWarmUp = 5, kBlocks = 25;
  for (int i = 0; i < kWarmUp; ++i) enqueue();
  std::vector<double> seconds(kBlocks);
  for (double& each : seconds) each = enqueue();
  std::nth_element(seconds.begin(), seconds.begin() + kBlocks / 2, seconds.end());
  Answer answer;
  answer.value = 1e6 * seconds[kBlocks / 2];
  answer.check = y.to_vector<float>()[7];
  answer.nodes = 1;
  expect_close("the sum", answer.check, static_cast<double>(times + 1), 0);
  return answer;
}

}  // namespace

void add_eager(Rows& rows) { rows["eager_add"] = eager_add; }

}  // namespace bench
