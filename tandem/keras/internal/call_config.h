#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tandem/keras/call_options.h"
#include "tandem/keras/config.h"
#include "tandem/keras/internal/operations.h"
#include "tandem/keras/layer_impl.h"

// How layers are called in the file of a functional model ("inbound_nodes").

namespace tandem::keras::internal {

/// A tensor in a file: a result of a call of a layer.
struct History {
  std::string layer;
  std::size_t call = 0;
  std::size_t result = 0;
};
/// Throws InvalidArgumentError if the value is no tensor's name.
History history_of(const ConfigValue& value);

/// A call of a layer.
struct SavedCall {
  std::vector<History> inputs;
  /// By input; those left out, and std::nullopt, were not given.
  std::vector<std::optional<History>> masks;
  CallOptions options;
};

/// Throws UnimplementedError that names an argument which the layer does not have here.
SavedCall read_call(const ConfigValue& value, const LayerImpl& layer);
/// The inputs of a call in no particular order, without masks by name: those that come with the
/// tensors look like those that were given.
void collect_inputs(const ConfigObject& call, std::vector<History>& inputs);

struct OperationCall {
  std::vector<History> inputs;
  SavedOperation saved;
};
/// Whether the object is no layer, but what stands between layers where Keras' tensors are
/// calculated with.
bool is_operation(const ConfigObject& object);
/// An operation stands for one call.
OperationCall read_operation(const ConfigObject& object);

/// What `list`, an entry of a file's object, holds. Throws InvalidArgumentError if there is none.
const ConfigList& list_in(const Config& config, const char* name);

}  // namespace tandem::keras::internal
