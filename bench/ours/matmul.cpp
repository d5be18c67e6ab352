// Square matrix products, dtype and size by row name: float_512, bfloat16_2048.
#include <functional>
#include <string>
#include <vector>

#include <tandem/tandem.h>

#include "bench/common/samples.h"
#include "bench/common/serve.h"
#include "bench/common/timing.h"

namespace td = tandem;

namespace {

td::Tensor square(std::int64_t n, std::uint64_t seed, td::DType dtype) {
  return td::cast(td::Tensor::from(bench::uniform(n * n, seed), {n, n}), dtype);
}

std::function<bench::Answer()> product(td::DType dtype, std::int64_t n) {
  return [=] {
    const td::Tensor a = square(n, bench::kLeftSeed, dtype),
                     b = square(n, bench::kRightSeed, dtype);
    const auto multiply = td::function([](td::Tensor x, td::Tensor y) { return td::matmul(x, y); });
    td::Tensor c = multiply(a, b);
    bench::Answer answer;
    answer.value = 1e3 * bench::seconds_per_call([&](std::int64_t times) {
                     for (std::int64_t i = 0; i < times; ++i) c = multiply(a, b);
                   });
    answer.check = td::cast(c, td::float32).at<float>({n / 3, n / 2});
    return answer;
  };
}

}  // namespace

int main() {
  td::config::threading::set_intra_op_parallelism_threads(bench::threads());
  td::config::threading::set_inter_op_parallelism_threads(bench::threads());
  bench::Rows rows;
  for (std::int64_t n : {512, 1024, 2048}) {
    rows["float_" + std::to_string(n)] = product(td::float32, n);
    rows["bfloat16_" + std::to_string(n)] = product(td::bfloat16, n);
  }
  return bench::serve(rows, "tandem");
}
