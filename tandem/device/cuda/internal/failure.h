#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "tandem/device/plugin.h"

namespace tandem::cuda {

/// A failure that goes to Tandem as a status.
class Failure : public std::runtime_error {
 public:
  Failure(std::int32_t code, const std::string& text) : std::runtime_error(text), code_(code) {}
  std::int32_t code() const { return code_; }

 private:
  std::int32_t code_;
};

}  // namespace tandem::cuda
