#include "bench/ours/life/summaries.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <tandem/io/profile_export.h>
#include <tandem/io/summary.h>
#include <tandem/tandem.h>

#include "bench/common/samples.h"
#include "bench/common/timing.h"

namespace td = tandem;

namespace bench {
namespace {

// A folder of this process for event files.
std::string new_folder(const char* name) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / (std::string(name) + "_" + std::to_string(getpid()));
  std::filesystem::remove_all(folder);
  return folder.string();
}

Answer scalar() {
  const std::string folder = new_folder("tandem_bench_scalar");
  Answer answer;
  {
    const td::summary::SummaryWriter writer = td::summary::create_file_writer(folder);
    const auto on = writer.as_default();
    std::int64_t step = 0;
    answer.value = 1e9 * seconds_per_call([&](std::int64_t n) {
                     for (std::int64_t i = 0; i < n; ++i)
                       td::summary::scalar("loss", 0.5, {.step = step++});
                   });
    writer.flush();
  }
  std::filesystem::remove_all(folder);
  return answer;
}

// Blocks of profiled and of plain steps in turns: the machine's ups and downs meet both.
Answer xplane_overhead() {
  using namespace td::keras;
  const Samples made = samples(kMlpBatch);
  const td::Tensor x = td::Tensor::from(made.images, {kMlpBatch, kPixels});
  const td::Tensor y = td::Tensor::from(made.labels);
  Sequential model{Input({kPixels}), Dense(kMlpHidden, {.activation = "relu"}),
                   Dense(kClasses, {.activation = "softmax"})};
  model.compile({.optimizer = "adam", .loss = "sparse_categorical_crossentropy"});
  constexpr int kSteps = 200, kBlocks = 15;
  for (int i = 0; i < kSteps; ++i) model.train_on_batch(x, y);
  const auto block = [&](bool profiled) {
    if (profiled) td::profiler::start();
    const double start = now();
    for (int i = 0; i < kSteps; ++i) {
      const td::io::ProfiledStep step("train", i);
      model.train_on_batch(x, y);
    }
    const double seconds = now() - start;
    if (profiled) td::profiler::stop();
    return seconds;
  };
  std::vector<double> ratios;
  for (int i = 0; i < kBlocks; ++i) {
    const double plain = block(false);
    ratios.push_back(block(true) / plain);
  }
  std::nth_element(ratios.begin(), ratios.begin() + kBlocks / 2, ratios.end());
  return {.value = ratios[kBlocks / 2]};
}

}  // namespace

void add_summary_rows(Rows& rows) {
  rows["scalar"] = scalar;
  rows["xplane_overhead"] = xplane_overhead;
}

}  // namespace bench
