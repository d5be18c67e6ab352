#pragma once

#include <optional>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/shape.h"
#include "tandem/graph/function.h"

namespace tandem {

/// What shape inference knows of a value.
struct KnownValue {
  PartialShape shape;
  std::optional<PartialShape> held;  ///< the shape that it stands for: an integer vector's
                                     ///< elements, or that of a handle's variable
  bool operator==(const KnownValue&) const = default;
};

/// What the function returns when it is called with arguments of which this is known. Its body is
/// inferred for them; what cannot fit there has the shapes of any call, since the error is its
/// kernel's to give. Functions that are called with many different shapes, or through many others,
/// are answered for any call as well, so that this takes time in proportion to the bodies.
TANDEM_EXPORT std::vector<KnownValue> infer_results(const FunctionRef& function,
                                                    const std::vector<KnownValue>& args);

/// As long as one lives, its thread remembers what `infer_results` found out. Those made meanwhile
/// have no effect. Keeps the functions alive.
class TANDEM_EXPORT InferenceMemory {
 public:
  InferenceMemory();
  ~InferenceMemory();
  InferenceMemory(const InferenceMemory&) = delete;
  InferenceMemory& operator=(const InferenceMemory&) = delete;

 private:
  bool outermost_;
};

}  // namespace tandem
