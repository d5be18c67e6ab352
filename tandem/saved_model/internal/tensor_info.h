#pragma once

#include <string>
#include <vector>

#include "tandem/io/proto/messages.h"
#include "tandem/saved_model/value.h"

namespace tandem::saved_model::internal {

/// What a signature of a graph takes or returns under a name.
struct NamedTensors {
  Value spec;                        ///< of a tensor or a composite one
  std::vector<std::string> tensors;  ///< "node:0", one for each spec within
};
/// Throws InvalidArgumentError if it names no tensor or contradicts itself.
NamedTensors tensors_of(const io::proto::TensorInfo& info);

}  // namespace tandem::saved_model::internal
