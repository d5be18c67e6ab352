#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tandem/data/dataset.h"

// What cache_processes_test and the program that it starts read through one cache file.
namespace tandem::data {

constexpr std::int64_t kElements = 200;

/// Descriptors of the program: it reports there that it has come to its stop, and waits here.
constexpr int kRegistered = 200, kGate = 201;

/// Rows of 1,000 numbers, more than a writer keeps in memory, and how many were made.
inline Dataset cached(const std::string& path, std::shared_ptr<std::atomic<int>> made =
                                                   std::make_shared<std::atomic<int>>(0)) {
  return range(kElements)
      .map([made](Tensor x) {
        ++*made;
        return Tensor::from(std::vector<std::int64_t>(1000, x.item<std::int64_t>()));
      })
      .cache(path);
}

inline bool is_right(const Element& element, std::int64_t number) {
  return element.size() == 1 &&
         element[0].to_vector<std::int64_t>() == std::vector<std::int64_t>(1000, number);
}

inline bool all_right(const Dataset& dataset) {
  std::int64_t count = 0;
  for (const Element& element : dataset) {
    if (!is_right(element, count++)) return false;
  }
  return count == kElements;
}

}  // namespace tandem::data
