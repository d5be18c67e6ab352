#include "bench/ours/data/autotune.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "bench/common/pipelines.h"
#include "bench/common/timing.h"

namespace td = tandem;

namespace bench {
namespace {

constexpr double kToSettle = 3, kSettled = 3;  // seconds

// Threads of two maps, and the batches prefetched.
using Pipeline = std::function<td::data::Dataset(std::int64_t, std::int64_t, std::int64_t)>;

// Two stages of unlike work, apart so that there is something to share out.
td::data::Dataset two_stages(std::int64_t first, std::int64_t second, std::int64_t ahead) {
  return td::data::list_files(folder() + "/photos/*.jpg", {.shuffle = false})
      .repeat()
      .map(load, {.num_parallel_calls = first})
      .map(
          [](td::Tensor image) {
            const td::Tensor large = td::image::resize(image, {3 * kImageSide, 3 * kImageSide});
            return td::image::resize(large / 255.0f, {kImageSide, kImageSide});
          },
          {.num_parallel_calls = second})
      .batch(32)
      .prefetch(ahead)
      .with_options({.fusion = false});
}

// Elements that come over a slow line, say, and then a light step.
td::data::Dataset waiting_stage(std::int64_t waiting, std::int64_t light, std::int64_t ahead) {
  return td::data::range(std::int64_t{1} << 40)
      .map(
          [](td::Tensor x) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            return td::fill({64, 64, 3}, td::cast(x, td::float32));
          },
          {.num_parallel_calls = waiting, .traced = false})
      .map(
          [](td::Tensor image) {
            return td::image::resize(image / 255.0f, {256, 256});
          },
          {.num_parallel_calls = light})
      .batch(32)
      .prefetch(ahead)
      .with_options({.fusion = false});
}

// So little that no thread pays, and apart from the batch so that it is called for each element.
td::data::Dataset short_stage(std::int64_t first, std::int64_t second, std::int64_t ahead) {
  return td::data::range(std::int64_t{1} << 40)
      .map([](td::Tensor x) { return x * 2 + 1; }, {.num_parallel_calls = first})
      .shuffle(64)
      .map([](td::Tensor x) { return td::cast(x, td::float32) / 3.0f; },
           {.num_parallel_calls = second})
      .batch(32)
      .prefetch(ahead)
      .with_options({.fusion = false});
}

// Elements a second, after some seconds to find out.
double settled(const td::data::Dataset& dataset, double before, double seconds) {
  auto iterator = dataset.iterator();
  td::data::Element batch;
  const auto draw_for = [&](double length) {
    const double start = now();
    std::int64_t elements = 0;
    double elapsed = 0;
    while (elapsed < length) {
      if (!iterator.next(batch)) throw std::runtime_error("a pipeline without end has ended");
      elements += batch[0].dim(0);
      elapsed = now() - start;
    }
    return static_cast<double>(elements) / elapsed;
  };
  draw_for(before);
  return draw_for(seconds);
}

Answer by_itself(const Pipeline& pipeline) {
  constexpr std::int64_t kItself = td::data::kAutotune;
  Answer answer;
  answer.value = settled(pipeline(kItself, kItself, kItself), kToSettle, kSettled);
  return answer;
}

// The threads of the best of all settings, each tried once.
std::array<std::int64_t, 2> best_of(const Pipeline& pipeline,
                                    const std::vector<std::int64_t>& firsts,
                                    const std::vector<std::int64_t>& seconds) {
  double fastest = 0;
  std::array<std::int64_t, 2> found{1, 1};
  for (const std::int64_t first : firsts) {
    for (const std::int64_t second : seconds) {
      const double rate = settled(pipeline(first, second, 2), 0.5, 1);
      std::fprintf(stderr, "by hand: %d and %d threads: %.0f elements/s\n", static_cast<int>(first),
                   static_cast<int>(second), rate);
      if (rate > fastest) found = {first, second};
      fastest = std::max(fastest, rate);
    }
  }
  return found;
}

Answer by_hand(const Pipeline& pipeline, const std::array<std::int64_t, 2>& threads) {
  Answer answer;
  answer.value = settled(pipeline(threads[0], threads[1], 2), kToSettle, kSettled);
  return answer;
}

// The number of threads that computing takes, and one more.
std::vector<std::int64_t> few() {
  std::vector<std::int64_t> counts;
  for (std::int64_t count = 1; count <= threads() + 1; ++count) counts.push_back(count);
  return counts;
}

}  // namespace

Answer autotune() { return by_itself(two_stages); }

Answer autotune_by_hand() {
  static const auto best = best_of(two_stages, few(), few());
  return by_hand(two_stages, best);
}

Answer autotune_short() { return by_itself(short_stage); }

Answer autotune_short_by_hand() {
  static const auto best = best_of(short_stage, {0, 1, 2}, {0, 1, 2});
  return by_hand(short_stage, best);
}

Answer autotune_waiting() { return by_itself(waiting_stage); }

Answer autotune_waiting_by_hand() {
  static const auto best = best_of(waiting_stage, {2, 4, 8, 16, 24, 32, 48, 64, 96}, few());
  return by_hand(waiting_stage, best);
}

}  // namespace bench
