#pragma once

#include <string>
#include <vector>

#include "tandem/core/dtype.h"
#include "tandem/core/export.h"
#include "tandem/core/name_argument.h"

namespace tandem::keras {

/// In which dtypes a layer computes and keeps its weights. Layers, models and cells take one as
/// their option `dtype`, also by name or as a plain DType:
///
///     Dense(10, {.dtype = "mixed_bfloat16"})   // computes in bfloat16, weights in float32
///     Dense(10, {.dtype = td::float32})        // both float32
///
/// What is left out is the global policy at the time when the layer is made, "float32" unless
/// mixed_precision::set_global_policy says otherwise. Floating inputs of a layer are cast to the
/// compute dtype, and so are weights where the layer uses them; results have the compute dtype.
class TANDEM_EXPORT DTypePolicy {
 public:
  /// The global policy.
  DTypePolicy();
  /// "mixed_bfloat16", "mixed_float16", or the name of a dtype, which is then that of both. Throws
  /// InvalidArgumentError for other names.
  DTypePolicy(const std::string& name);
  DTypePolicy(const char* name)
      : DTypePolicy(tandem::internal::name_argument(name, "the name of a dtype policy")) {}
  /// Throws InvalidArgumentError unless values of this dtype are numbers.
  DTypePolicy(DType dtype);

  const std::string& name() const noexcept { return name_; }
  DType compute_dtype() const noexcept { return compute_; }
  DType variable_dtype() const noexcept { return variable_; }
  bool operator==(const DTypePolicy& other) const noexcept { return name_ == other.name_; }

  /// The names that the constructor takes.
  static std::vector<std::string> names();

 private:
  std::string name_;
  DType compute_;
  DType variable_;
};

/// Half precision where it is fast, full precision where it matters: weights, losses, metrics, the
/// statistics of normalising layers and the optimizer stay float32.
///
///     td::keras::mixed_precision::set_global_policy("mixed_bfloat16");
///     Sequential model{Input({28, 28, 1}), Conv2D(32, 3), Flatten(),
///                      Dense(10, {.activation = "softmax", .dtype = "float32"})};
///
/// "mixed_float16" also scales the loss (optimizers::LossScaleOptimizer); bfloat16 has float32's
/// range and does without.
namespace mixed_precision {

using Policy = DTypePolicy;

/// The policy of layers made from now on without one of their own. Thread-safe; layers that exist
/// keep theirs. Throws InvalidArgumentError unless it computes with floating-point numbers.
TANDEM_EXPORT void set_global_policy(const DTypePolicy& policy);
TANDEM_EXPORT DTypePolicy global_policy();

/// Keras' other names for the same.
TANDEM_EXPORT void set_dtype_policy(const DTypePolicy& policy);
TANDEM_EXPORT DTypePolicy dtype_policy();

}  // namespace mixed_precision
}  // namespace tandem::keras
