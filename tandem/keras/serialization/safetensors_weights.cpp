#include "tandem/keras/internal/safetensors_weights.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/io/safetensors.h"

namespace tandem::keras::internal {
namespace {

constexpr const char* kOptimizer = "optimizer/";

// The weights by name, and what the optimizer remembers.
std::map<std::string, Variable> named_variables(const Model& model, bool optimizer,
                                                const char* what) {
  if (!model.built()) {
    throw FailedPreconditionError(
        cat(what, ": model '", model.name(),
            "' has no weights yet. Give its first layer an Input, call it, or call build(shape)."));
  }
  std::map<std::string, Variable> named;
  const auto add = [&](const std::string& name, const Variable& variable) {
    if (named.emplace(name, variable).second) return;
    throw InvalidArgumentError(cat(what, ": two weights of model '", model.name(), "' are named '",
                                   name, "'. Give their layers different names."));
  };
  for (const Variable& variable : model.weights()) add(variable.name(), variable);
  if (optimizer) {
    model.optimizer().build(model.trainable_weights());
    for (const Variable& variable : model.optimizer().variables())
      add(kOptimizer + variable.name(), variable);
  }
  return named;
}

}  // namespace

void save_safetensors_weights(const Model& model, const std::string& path,
                              const SaveWeightsOptions& options) {
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, variable] : named_variables(model, options.optimizer, "save_weights"))
    tensors.emplace(name, variable.read_value());
  io::save_safetensors(path, tensors, {.metadata = {{"format", "tandem"}}});
}

void load_safetensors_weights(const Model& model, const std::string& path,
                              const LoadWeightsOptions& options) {
  const io::SafetensorsReader reader(path);
  const auto variables = named_variables(model, options.optimizer, "load_weights");
  for (const auto& [name, theirs] : options.names) {
    if (variables.count(name) == 0) {
      throw NotFoundError(cat("load_weights: model '", model.name(), "' has no weight '", name,
                              "', for which `names` gives '", theirs, "'."));
    }
  }
  std::set<std::string> used;
  std::vector<std::pair<Variable, Array>> changes;
  for (const auto& [name, variable] : variables) {
    const auto mapped = options.names.find(name);
    const std::string& theirs = mapped == options.names.end() ? name : mapped->second;
    if (!reader.contains(theirs)) {
      throw NotFoundError(cat("load_weights: ", path, " has no tensor '", theirs,
                              "' for the weight '", name, "'."));
    }
    const Shape shape = variable.shape().to_shape();
    if (reader.dtype(theirs) != variable.dtype() || !(reader.shape(theirs) == shape)) {
      throw InvalidArgumentError(cat("load_weights: weight '", name, "' is ", variable.dtype(),
                                     shape, ", but ", path, " has ", reader.dtype(theirs),
                                     reader.shape(theirs), " for it ('", theirs, "')."));
    }
    used.insert(theirs);
    changes.emplace_back(variable, reader.read(theirs));
  }
  if (options.names.empty()) {
    for (const std::string& name : reader.names()) {
      // What the optimizer remembered is only for those who ask for it.
      if (used.count(name) > 0 || (!options.optimizer && name.starts_with(kOptimizer))) continue;
      throw InvalidArgumentError(cat("load_weights: ", path, " holds '", name,
                                     "', for which model '", model.name(), "' has no weight."));
    }
  }
  // Nothing is changed unless all fits.
  for (auto& [variable, value] : changes) variable.assign(Tensor(std::move(value)));
}

}  // namespace tandem::keras::internal
