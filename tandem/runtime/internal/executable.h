#pragma once

#include <cstddef>
#include <vector>

#include "tandem/core/array.h"

namespace tandem {

class Cancellation;

/// A function made ready to run. Thread-safe: several calls may run at a time.
class Executable {
 public:
  virtual ~Executable() = default;
  /// Runs on the calling thread (and pool workers); throws the first failure.
  virtual std::vector<Array> run(std::vector<Array> args, const Cancellation* cancellation) = 0;
  /// Bytes that a call will take at its peak beyond what is taken now, by device; values of unknown
  /// size do not count.
  virtual std::vector<std::size_t> bytes_of_a_call() const = 0;
};

}  // namespace tandem
