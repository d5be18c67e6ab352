// What the benchmarks compute on: equal to the bit to what bench/peers/common.py makes.
#pragma once

#include <cstdint>
#include <vector>

namespace bench {

constexpr std::int64_t kMlpSamples = 8192, kMlpBatch = 32, kMlpHidden = 128;
constexpr std::int64_t kCnnSamples = 4096, kCnnBatch = 128, kCnnFilters = 32;
constexpr std::int64_t kPixels = 784, kClasses = 10, kBand = 78;
constexpr std::uint64_t kImageSeed = 1, kLabelSeed = 2, kLeftSeed = 3, kRightSeed = 4,
                        kClassSeed = 5;

// A model that has learnt what there is to learn comes to a loss of 1.4, one that has learnt
// nothing to 2.3.
constexpr double kLearnt = 2.0;

// A well mixed number that depends on its place and on the seed alone.
inline std::uint64_t mixed(std::uint64_t place, std::uint64_t seed) {
  std::uint64_t z = (place + 1) * 0x9E3779B97F4A7C15u + seed * 0xD1342543DE82EF95u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// `count` floats in [0, 1).
inline std::vector<float> uniform(std::int64_t count, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(mixed(i, seed) >> 40) * 0x1p-24f;
  }
  return values;
}

struct Samples {
  std::vector<float> images;  // count x 784
  std::vector<std::int32_t> labels;
};

// Images of noise in which a band is brighter, and labels that name the band of every second image
// and are random for the rest, so that the gradients stay alive however long one trains.
inline Samples samples(std::int64_t count) {
  Samples made;
  made.images = uniform(count * kPixels, kImageSeed);
  made.labels.resize(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto place = static_cast<std::uint64_t>(i);
    const auto bright = static_cast<std::int64_t>(mixed(place, kClassSeed) % kClasses);
    const auto random = static_cast<std::int64_t>(mixed(place, kLabelSeed) % kClasses);
    made.labels[place] = static_cast<std::int32_t>(i % 2 == 0 ? bright : random);
    for (std::int64_t p = bright * kBand; p < (bright + 1) * kBand; ++p) {
      made.images[static_cast<std::size_t>(i * kPixels + p)] += 0.5f;
    }
  }
  return made;
}

}  // namespace bench
