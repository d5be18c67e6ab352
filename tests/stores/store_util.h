#pragma once

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "tandem/fs/file_systems.h"
#include "tandem/fs/stores.h"

namespace tandem::fs {

/// A variable of the test's environment that run.py sets; empty where its server is missing.
inline std::string server(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// Bytes that look random, the same for the same arguments.
inline std::string some_bytes(std::size_t size, std::uint64_t seed) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) {
    if (i % 4 == 0) seed = seed * 6364136223846793005u + 1442695040888963407u;
    bytes[i] = static_cast<char>(seed >> (32 + i % 4 * 8));
  }
  return bytes;
}

/// Settings with which failures are found and repeated quickly.
inline StoreOptions quick_options(std::string endpoint) {
  StoreOptions options;
  options.endpoint = std::move(endpoint);
  options.part_bytes = std::size_t{5} << 20;
  options.first_backoff = std::chrono::milliseconds(10);
  options.max_backoff = std::chrono::milliseconds(200);
  options.attempts = 12;
  return options;
}

/// A folder of a store that no other test uses, reached by its own scheme.
struct TestStore {
  std::string name;    ///< "s3", "s3 with faults"
  std::string scheme;  ///< registered for it
  bool available() const {
    const auto all = registered_file_systems().schemes();
    return std::find(all.begin(), all.end(), scheme) != all.end();
  }
  std::string folder(const std::string& test) const { return scheme + "://bucket/" + test; }
};

}  // namespace tandem::fs
