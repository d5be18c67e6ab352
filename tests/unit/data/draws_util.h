#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/data/dataset.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/random_ops.h"
#include "tandem/runtime/runtime.h"

namespace tandem::data {

/// Other tests are not to see its seeds.
class OwnRuntime : public ::testing::Test {
 protected:
  Runtime runtime_;
  const RuntimeScope scope_{runtime_};
};

inline Tensor with_seed(Tensor) { return random::uniform({}, {.seed = 3}); }
inline Tensor without(Tensor) { return random::uniform({2}); }

// Traced, called, and called because it cannot be traced.
inline std::vector<std::function<Dataset(const Dataset&, MapOptions)>> ways(Tensor (*fn)(Tensor)) {
  return {[fn](const Dataset& ds, MapOptions options) {
            options.traced = true;
            return ds.map(fn, options);
          },
          [fn](const Dataset& ds, MapOptions options) {
            options.traced = false;
            return ds.map(fn, options);
          },
          [fn](const Dataset& ds, MapOptions options) {
            return ds.map([fn, offset = 0.f](Tensor x) { return fn(x) + offset; }, options);
          }};
}

inline std::vector<float> values(const Dataset& dataset) {
  std::vector<float> all;
  for (const Element& e : dataset) {
    const std::vector<float> one = reshape(e[0], {-1}).to_vector<float>();
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

inline std::size_t different(const std::vector<float>& all) {
  return std::set<float>(all.begin(), all.end()).size();
}

}  // namespace tandem::data
