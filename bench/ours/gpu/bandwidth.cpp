// What the link and the GPU's memory bound: a copy to the GPU, and kernels that read a large value
// once and write one as large. MB/s are those of all bytes that are read and written on the GPU.
#include <cmath>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tandem/device/memory_space.h"

#include "bench/common/samples.h"
#include "bench/ours/gpu/plain_copy.h"
#include "bench/ours/gpu/rows.h"

namespace td = tandem;

namespace bench {
namespace {

constexpr std::uint64_t kValueSeed = 20;
constexpr double kEpsilon = 1e-3;  // of layer normalization

double megabytes() { return static_cast<double>(gpu_sizes().bytes) / 1e6; }

// Rows of values in pinned host memory.
td::Tensor pinned_rows() {
  const std::int64_t length = gpu_sizes().row_length;
  const std::int64_t count = gpu_sizes().bytes / static_cast<std::int64_t>(sizeof(float));
  const td::Array array = td::allocate_staging(*gpu(), td::float32, {count / length, length});
  const std::vector<float> values = tiled(count, kValueSeed);
  std::copy(values.begin(), values.end(), array.data<float>());
  return td::Tensor(array);
}

Answer host_to_device() {
  const td::Tensor host = pinned_rows();
  td::Tensor copy = on_gpu(host);
  Answer answer;
  answer.value = megabytes() / seconds_per_call([&](std::int64_t times) {
                   for (std::int64_t i = 0; i < times; ++i) copy = on_gpu(host);
                   copy.synchronize();
                 });
  const auto sent = host.array().values<float>();
  const std::vector<float> arrived = copy.to_vector<float>();
  if (!std::equal(arrived.begin(), arrived.end(), sent.begin(), sent.end()))
    throw std::runtime_error("other values arrived than were sent");
  return answer;
}

using Row = std::vector<double>;

Row softmax_of(Row row) {
  double sum = 0;
  for (double& x : row) sum += x = std::exp(x);
  for (double& x : row) x /= sum;
  return row;
}

Row tanh_of(Row row) {
  for (double& x : row) x = std::tanh(x);
  return row;
}

Row normalized(Row row) {
  double mean = 0, variance = 0;
  for (const double x : row) mean += x / static_cast<double>(row.size());
  for (const double x : row) variance += (x - mean) * (x - mean) / static_cast<double>(row.size());
  for (double& x : row) x = (x - mean) / std::sqrt(variance + kEpsilon);
  return row;
}

// The last row of the result is verified.
Answer read_and_write(const char* name, const std::function<td::Tensor(const td::Tensor&)>& run,
                      const std::function<Row(Row)>& expected) {
  const td::DeviceScope scope("/GPU:0");
  const td::Tensor x = on_gpu(pinned_rows());
  td::Tensor y = run(x);
  Answer answer;
  answer.value = 2 * megabytes() / seconds_per_call([&](std::int64_t times) {
                   for (std::int64_t i = 0; i < times; ++i) y = run(x);
                   y.synchronize();
                 });
  const Row row = expected(td::cast(x[-1], td::float64).to_vector<double>());
  const std::vector<float> computed = td::Tensor(y[-1]).to_vector<float>();
  for (std::size_t i = 0; i < row.size(); ++i)
    expect_close(name, static_cast<double>(computed[i]), row[i], 1e-4);
  return answer;
}

Answer layer_norm() {
  const td::DeviceScope scope("/GPU:0");
  const td::keras::LayerNormalization layer({.epsilon = kEpsilon});
  const auto normalize = td::function([layer](td::Tensor x) { return layer(x); });
  return read_and_write(
      "layer_norm", [&](const td::Tensor& x) { return normalize(x); }, normalized);
}

Answer plain(void (PlainCopy::*copy)(), double megabytes_moved) {
  PlainCopy memory(static_cast<std::size_t>(gpu_sizes().bytes));
  if (!memory.is_right()) throw std::runtime_error("the driver copies wrongly");
  Answer answer;
  answer.value = megabytes_moved / seconds_per_call([&](std::int64_t times) {
                   for (std::int64_t i = 0; i < times; ++i) (memory.*copy)();
                   memory.wait();
                 });
  return answer;
}

}  // namespace

void add_bandwidth(Rows& rows) {
  rows["host_to_device"] = host_to_device;
  rows["elementwise"] = [] {
    return read_and_write(
        "elementwise", [](const td::Tensor& x) { return td::tanh(x); }, tanh_of);
  };
  rows["softmax"] = [] {
    return read_and_write(
        "softmax", [](const td::Tensor& x) { return td::nn::softmax(x); }, softmax_of);
  };
  rows["layer_norm"] = layer_norm;
  rows["plain_host_to_device"] = [] { return plain(&PlainCopy::host_to_device, megabytes()); };
  rows["plain_device_to_device"] = [] {
    return plain(&PlainCopy::device_to_device, 2 * megabytes());
  };
}

}  // namespace bench
