// The fuzz targets on their known inputs, and on each of them cut and changed a little.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/fs/file_system.h"

#include "tests/fuzz/targets.h"

namespace tandem::fuzz {
namespace {

std::vector<std::string> corpus(const std::string& target) {
  std::vector<std::string> inputs;
  for (const auto& entry : std::filesystem::directory_iterator("tests/fuzz/corpus/" + target))
    inputs.push_back(fs::read_file(entry.path().string()));
  return inputs;
}

void run_with_changes(const std::string& target, void (*run)(std::string_view)) {
  const std::vector<std::string> inputs = corpus(target);
  ASSERT_FALSE(inputs.empty());
  std::uint64_t random = 1;
  const auto next = [&](std::size_t below) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>(random >> 33) % below;
  };
  for (const std::string& input : inputs) {
    run(input);
    constexpr int kChanges = 60;
    for (int i = 0; i < kChanges && !input.empty(); ++i) {
      std::string changed = input;
      for (std::size_t n = next(4); n > 0; --n)
        changed[next(changed.size())] = static_cast<char>(next(256));
      if (i % 3 == 0) changed.resize(next(changed.size()));
      run(changed);
    }
  }
}

TEST(FuzzCorpus, GraphDef) { run_with_changes("graph_def_fuzz", graph_def); }
TEST(FuzzCorpus, Npy) { run_with_changes("npy_fuzz", npy); }
TEST(FuzzCorpus, RecordFile) { run_with_changes("record_file_fuzz", record_file); }
TEST(FuzzCorpus, EventFile) { run_with_changes("event_file_fuzz", event_file); }
TEST(FuzzCorpus, DataProvider) { run_with_changes("data_provider_fuzz", data_provider); }
TEST(FuzzCorpus, Example) { run_with_changes("example_fuzz", example); }
TEST(FuzzCorpus, Csv) { run_with_changes("csv_fuzz", csv); }
TEST(FuzzCorpus, Jpeg) { run_with_changes("jpeg_fuzz", jpeg); }
TEST(FuzzCorpus, Png) { run_with_changes("png_fuzz", png); }
TEST(FuzzCorpus, Gif) { run_with_changes("gif_fuzz", gif); }
TEST(FuzzCorpus, Bmp) { run_with_changes("bmp_fuzz", bmp); }
TEST(FuzzCorpus, KerasConfig) { run_with_changes("keras_config_fuzz", keras_config); }
TEST(FuzzCorpus, Safetensors) { run_with_changes("safetensors_fuzz", safetensors); }
TEST(FuzzCorpus, SavedModel) { run_with_changes("saved_model_fuzz", saved_model); }
TEST(FuzzCorpus, CheckpointState) { run_with_changes("checkpoint_state_fuzz", checkpoint_state); }
TEST(FuzzCorpus, TensorBundle) { run_with_changes("tensor_bundle_fuzz", tensor_bundle); }

}  // namespace
}  // namespace tandem::fuzz
