// The preprocessing layers in Dataset::map. bench/peers/tensorflow_preprocessing.py is the same on
// Keras; harness/data_files.py makes the text that both read.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <tandem/tandem.h>

#include "bench/common/pipelines.h"
#include "bench/common/samples.h"
#include "bench/common/serve.h"
#include "bench/common/timing.h"

namespace td = tandem;
namespace keras = tandem::keras;

namespace {

const td::data::MapOptions kParallel{.num_parallel_calls = td::data::kAutotune, .traced = true};

std::string folder() {
  const char* given = std::getenv("TANDEM_BENCH_DATA");
  if (given == nullptr) throw std::runtime_error("TANDEM_BENCH_DATA names no folder");
  return given;
}

double sum(const td::Tensor& tensor) {
  return td::reduce_sum(td::cast(tensor, td::float64)).item<double>();
}

// Calls of `pass`, which gives the number of rows it saw, for a second or more, `units` each.
template <class Pass>
bench::Answer rate(Pass pass, std::int64_t rows, double units, double check) {
  bench::Answer answer;
  answer.check = check;
  const double start = bench::now();
  double elapsed = 0;
  int passes = 0;
  for (; elapsed < bench::kPipelineSeconds; elapsed = bench::now() - start, ++passes) {
    if (pass() != rows) throw std::runtime_error("a pass has not all elements");
  }
  answer.value = units * passes / elapsed;
  return answer;
}

std::int64_t epoch(const td::data::Dataset& dataset) {
  std::int64_t rows = 0;
  for (const td::data::Element& element : dataset) rows += element[0].dim(0);
  return rows;
}

td::data::Dataset images() {
  constexpr std::int64_t kSide = bench::kAugmentedSide;
  static const td::Tensor values =
      td::Tensor::from(bench::uniform(bench::kAugmented * kSide * kSide * 3, bench::kImageSeed),
                       {bench::kAugmented, kSide, kSide, 3}) *
      255.0f;
  return td::data::from_tensor_slices(values);
}

keras::Sequential augment() {
  return keras::Sequential{keras::RandomFlip("horizontal"), keras::RandomRotation(0.1),
                           keras::RandomZoom(0.2), keras::RandomContrast(0.2)};
}

// What the layers make of images where nothing is left to chance.
double fixed_sum() {
  const keras::Sequential fixed{keras::RandomRotation(keras::FactorRange{0.1, 0.1}),
                                keras::RandomZoom(keras::FactorRange{0.2, 0.2})};
  for (const td::data::Element& batch : images().batch(bench::kImageBatch).take(1)) {
    return sum(fixed(batch[0], {.training = true}));
  }
  return 0;
}

bench::Answer augmentation() {
  static const auto dataset =
      images()
          .batch(bench::kImageBatch)
          .map([layer = augment()](td::Tensor x) { return layer(x, {.training = true}); },
               kParallel)
          .prefetch(td::data::kAutotune);
  static const double check = fixed_sum();
  return rate([] { return epoch(dataset); }, bench::kAugmented, bench::kAugmented, check);
}

bench::Answer augmentation_by_image() {
  static const auto dataset =
      images()
          .map([layer = augment()](td::Tensor x) { return layer(x, {.training = true}); },
               kParallel)
          .batch(bench::kImageBatch)
          .prefetch(td::data::kAutotune);
  static const double check = fixed_sum();
  return rate([] { return epoch(dataset); }, bench::kAugmented, bench::kAugmented, check);
}

td::data::Dataset lines() { return td::data::TextLineDataset(folder() + "/text.txt"); }

bench::Answer text_vectorization() {
  static const auto dataset = [] {
    std::vector<std::string> words;
    std::ifstream file(folder() + "/words.txt");
    for (std::string word; words.size() < bench::kTokens - 2 && file >> word;) {
      words.push_back(word);
    }
    const keras::TextVectorization layer({.max_tokens = bench::kTokens,
                                          .output_sequence_length = bench::kTokensInLine,
                                          .vocabulary = words});
    return lines()
        .batch(bench::kTextBatch)
        .map([layer](td::Tensor text) { return layer(text); }, kParallel)
        .prefetch(td::data::kAutotune);
  }();
  static const std::int64_t count = [] {
    std::ifstream file(folder() + "/text.txt");
    return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
  }();
  static const double check = [] {
    double total = 0;
    for (const td::data::Element& batch : dataset.take(8)) total += sum(batch[0]);
    return total;
  }();
  return rate([] { return epoch(dataset); }, count, bench::kTextBytes / 1e6, check);
}

bench::Answer text_adapt() {
  static const auto dataset = lines().take(bench::kLinesAdapted).batch(bench::kTextBatch);
  static const double size = [] {
    std::size_t total = 0;
    for (const td::data::Element& batch : dataset) {
      for (const std::string& line : batch[0].data<std::string>()) total += line.size() + 1;
    }
    return static_cast<double>(total);
  }();
  const auto adapt = [] {
    const keras::TextVectorization layer({.max_tokens = bench::kTokens});
    layer.adapt(dataset);
    return layer.get_vocabulary();
  };
  static const std::vector<std::string> words = adapt();
  static const double letters = [] {
    double total = 0;
    for (std::size_t i = 0; i < words.size(); ++i) {
      total += static_cast<double>(i * words[i].size());
    }
    return total;
  }();
  return rate([&] { return static_cast<std::int64_t>(adapt().size()); },
              static_cast<std::int64_t>(words.size()), size / 1e6, letters);
}

}  // namespace

int main() {
  td::config::threading::set_intra_op_parallelism_threads(bench::threads());
  td::config::threading::set_inter_op_parallelism_threads(bench::threads());
  return bench::serve({{"augmentation", augmentation},
                       {"augmentation_by_image", augmentation_by_image},
                       {"text_vectorization", text_vectorization},
                       {"text_adapt", text_adapt}},
                      "tandem");
}
