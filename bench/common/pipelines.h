// What the pipelines of `data` are made of; bench/peers/pipelines.py has the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/common/samples.h"

namespace bench {

constexpr double kPipelineSeconds = 1.0;  // what passes over a dataset add up to, at least
constexpr std::int64_t kImages = 512, kImageBatch = 32, kImageSide = 224;
constexpr float kBrightness = 0.1f;
constexpr int kMemoryEpochs = 4;
constexpr std::int64_t kNumbers = 200'000;
constexpr std::int64_t kRecords = 200'000, kRecordBytes = 1000;
constexpr std::int64_t kExamples = 20'480, kExampleBatch = 256;
constexpr int kFeatures = 5;  // of floats, and as many of integers
constexpr std::int64_t kPictures = 20'000;
constexpr std::int64_t kSequences = 20'000, kLongest = 200;
constexpr std::uint64_t kRecordSeed = 6, kExampleSeed = 7, kLengthSeed = 8;

// The text of `preprocessing`: lines of 20 to 200 words, of which the frequent ones are far more
// frequent than the rest, with capitals and punctuation.
constexpr std::int64_t kTextBytes = 100'000'000, kWords = 50'000, kTokens = 20'000;
constexpr std::int64_t kLinesAdapted = 20'000;  // of which text_adapt learns its vocabulary
constexpr std::int64_t kTextBatch = 512, kTokensInLine = 200;
constexpr std::uint64_t kTextSeed = 9, kWordSeed = 10;
// The images of `preprocessing`.
constexpr std::int64_t kAugmented = 256, kAugmentedSide = 160;

inline std::string float_key(int i) { return "float_" + std::to_string(i); }
inline std::string int_key(int i) { return "int_" + std::to_string(i); }

// From 1 to kLongest.
inline std::vector<std::int64_t> sequence_lengths() {
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(kSequences));
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    lengths[i] = 1 + static_cast<std::int64_t>(mixed(i, kLengthSeed) % std::uint64_t{kLongest});
  }
  return lengths;
}

}  // namespace bench
