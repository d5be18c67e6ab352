// Square matrix products in the GPU's memory, dtype and size by row name: float_1024,
// bfloat16_8192.
#include <string>
#include <vector>

#include "bench/common/samples.h"
#include "bench/ours/gpu/rows.h"

namespace td = tandem;

namespace bench {
namespace {

td::Tensor square(std::int64_t n, std::uint64_t seed, td::DType dtype) {
  const td::DeviceScope scope("/GPU:0");
  return td::cast(td::Tensor::from(tiled(n * n, seed), {n, n}), dtype);
}

// The element that is verified, from the same values on the host.
double expected(const td::Tensor& a, const td::Tensor& b, std::int64_t n) {
  const td::DeviceScope scope("/CPU:0");
  const std::int64_t row = n / 3, column = n / 2;
  const auto left = td::cast(a[row], td::float64).to_vector<double>();
  const auto right = td::cast(b[{td::ellipsis, column}], td::float64).to_vector<double>();
  double sum = 0;
  for (std::size_t i = 0; i < left.size(); ++i) sum += left[i] * right[i];
  return sum;
}

Answer product(td::DType dtype, std::int64_t n) {
  const td::Tensor a = square(n, kLeftSeed, dtype), b = square(n, kRightSeed, dtype);
  td::Tensor c;
  {
    const td::DeviceScope scope("/GPU:0");
    c = td::matmul(a, b);
  }
  Answer answer;
  answer.value = 1e3 * seconds_per_call([&](std::int64_t times) {
                   const td::DeviceScope scope("/GPU:0");
                   for (std::int64_t i = 0; i < times; ++i) c = td::matmul(a, b);
                   c.synchronize();
                 });
  answer.check = td::cast(c[{n / 3, n / 2}], td::float32).item<float>();
  expect_close("the product", answer.check, expected(a, b, n), dtype == td::float32 ? 1e-4 : 1e-2);
  return answer;
}

}  // namespace

void add_products(Rows& rows) {
  for (const std::int64_t n : {1024, 2048, 4096, 8192}) {
    const std::int64_t side = n / gpu_sizes().product_scale;
    rows["float_" + std::to_string(n)] = [=] { return product(td::float32, side); };
    rows["bfloat16_" + std::to_string(n)] = [=] { return product(td::bfloat16, side); };
  }
}

}  // namespace bench
