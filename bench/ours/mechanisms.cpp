// What makes models fast, each in a graph of its own that TensorFlow exported.
#include <cstddef>
#include <cstring>
#include <thread>
#include <vector>

#include "bench/common/model.h"

namespace {

// Megabytes read and written in a second by copying, each thread its part: what operations that
// compute little can reach.
bench::Answer info_copy() {
  constexpr std::size_t kBytes = std::size_t{32} << 20;  // a part
  const auto threads = static_cast<std::size_t>(bench::threads());
  static std::vector<char> from(kBytes * threads, 1), to(kBytes * threads);
  const auto copy = [&](std::size_t part) {
    std::memcpy(to.data() + part * kBytes, from.data() + part * kBytes, kBytes);
  };
  const double seconds = bench::seconds_per_call([&](std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) {
      std::vector<std::thread> others;
      for (std::size_t part = 1; part < threads; ++part) others.emplace_back(copy, part);
      copy(0);
      for (std::thread& other : others) other.join();
    }
  });
  bench::Answer answer;
  answer.value = 2e-6 * static_cast<double>(kBytes * threads) / seconds;
  return answer;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::measure_models(argc, argv, {{"info_copy", info_copy}});
}
