#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/layer.h"

namespace tandem::keras {

struct NamedOptions {
  String name = {};
  DTypePolicy dtype = {};
};

/// All axes but the batch in one: [batch, a, b] gives [batch, a·b].
class TANDEM_EXPORT Flatten : public Layer {
 public:
  explicit Flatten(const NamedOptions& options = {});
};

/// Another shape for the same elements of each example; one size may be -1 and follows from the
/// rest.
class TANDEM_EXPORT Reshape : public Layer {
 public:
  explicit Reshape(std::vector<std::int64_t> target_shape, const NamedOptions& options = {});
};

/// The axes in another order; 1 is the first after the batch. Permute({2, 1}) transposes.
class TANDEM_EXPORT Permute : public Layer {
 public:
  explicit Permute(std::vector<int> dims, const NamedOptions& options = {});
};

/// [batch, features] n times: [batch, n, features].
class TANDEM_EXPORT RepeatVector : public Layer {
 public:
  explicit RepeatVector(std::int64_t n, const NamedOptions& options = {});
};

/// Its input as it is.
class TANDEM_EXPORT Identity : public Layer {
 public:
  explicit Identity(const NamedOptions& options = {});
};

/// input · scale + offset, for pixels for example.
class TANDEM_EXPORT Rescaling : public Layer {
 public:
  explicit Rescaling(double scale, double offset = 0, const NamedOptions& options = {});
};

}  // namespace tandem::keras
