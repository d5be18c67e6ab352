// Rows on a GPU of NVIDIA's. Sizes are those of gpu/sizes.h.
//
// usage: bench_gpu | bench_gpu --check | bench_gpu --once [ROW...]
// Without arguments it answers the harness. --check says why there is no GPU, if there is none
// (exit code 3). --once measures each row once, without a harness, and prints a line of JSON each.
#include <cmath>
#include <cstdio>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tandem/device/device.h"
#include "tandem/runtime/runtime.h"

#include "bench/common/samples.h"
#include "bench/ours/gpu/rows.h"

namespace td = tandem;

namespace bench {

td::Device* gpu() {
  for (const auto& device : td::Runtime::current().devices()) {
    if (device->type() == "GPU" && device->kernel_class() == "cuda") return device.get();
  }
  return nullptr;
}

td::Tensor on_gpu(const td::Tensor& value) {
  const td::DeviceScope scope("/GPU:0");
  return td::identity(value);
}

void expect_close(const char* what, double value, double expected, double tolerance) {
  if (std::abs(value - expected) <= tolerance * std::abs(expected)) return;
  throw std::runtime_error(std::string(what) + " is " + std::to_string(value) + ", but should be " +
                           std::to_string(expected));
}

double seconds_per_gpu_step(const std::function<void(int)>& loop) {
  constexpr int kWarmUp = 3;
  loop(kWarmUp);
  double start = now();
  loop(1);
  const int steps = 1 + static_cast<int>(gpu_sizes().seconds / (now() - start));
  start = now();
  loop(steps);
  return (now() - start) / steps;
}

std::vector<float> tiled(std::int64_t count, std::uint64_t seed) {
  constexpr std::int64_t kPeriod = 1048573;
  std::vector<float> values = uniform(std::min(count, kPeriod), seed);
  values.resize(static_cast<std::size_t>(count));
  for (std::size_t i = kPeriod; i < values.size(); ++i) values[i] = values[i - kPeriod];
  return values;
}

}  // namespace bench

namespace {

// Why there is no GPU, or "".
std::string missing() {
  if (bench::gpu() != nullptr) return {};
  for (const auto& backend : td::Runtime::current().backends()) {
    const std::string why = backend->name() == "cuda" ? backend->unavailable() : "";
    if (!why.empty()) return "there is no GPU: " + why;
  }
  return "there is no GPU";
}

int measure_once(const bench::Rows& rows, const std::vector<std::string>& names) {
  int failed = 0;
  for (const auto& [name, run] : rows) {
    if (!names.empty() && std::find(names.begin(), names.end(), name) == names.end()) continue;
    std::string answer;
    try {
      const bench::Answer measured = run();
      if (!std::isfinite(measured.value) || !(measured.value > 0))
        throw std::runtime_error("the figure is " + std::to_string(measured.value));
      answer = bench::to_json(measured);
    } catch (const std::exception& error) {
      answer = "{\"error\": " + bench::json_string(error.what()) + "}";
      ++failed;
    }
    std::cout << "{\"row\": " << bench::json_string(name) << ", \"answer\": " << answer << "}"
              << std::endl;
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    td::config::threading::set_intra_op_parallelism_threads(bench::threads());
    td::config::threading::set_inter_op_parallelism_threads(bench::threads());
    if (const std::string why = missing(); !why.empty()) {
      std::fprintf(stderr, "%s\n", why.c_str());
      return 3;
    }
    if (!arguments.empty() && arguments.front() == "--check") return 0;
    bench::Rows rows;
    bench::add_products(rows);
    bench::add_training(rows);
    bench::add_eager(rows);
    bench::add_bandwidth(rows);
    bench::add_feeding(rows);
    if (arguments.empty()) return bench::serve(rows, "tandem");
    if (arguments.front() == "--once")
      return measure_once(rows, {arguments.begin() + 1, arguments.end()});
    std::fprintf(stderr, "usage: bench_gpu [--check | --once [ROW...]]\n");
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
