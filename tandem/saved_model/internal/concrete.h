#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "tandem/runtime/traced_function.h"
#include "tandem/saved_model/value.h"

namespace tandem::saved_model::internal {

/// A function for one signature. It is imported when it is first called: most functions of a
/// SavedModel never are.
struct Concrete {
  std::string name;  ///< in its file
  Value inputs;      ///< (positional arguments, keyword arguments)
  Value outputs;
  std::function<ConcreteFunction()> make;
  /// How it runs where it is no function of its own: in a session of TensorFlow 1. Else empty.
  std::function<std::vector<Tensor>(const std::vector<Tensor>&)> run;

  // What a Signature shows.
  std::vector<TensorSpec> input_specs;
  std::vector<TensorSpec> output_specs;

  /// The function, made at first use.
  const ConcreteFunction& get() const;
  /// Calls with flat tensors.
  std::vector<Tensor> call(const std::vector<Tensor>& args) const {
    return run ? run(args) : get().call(args);
  }
  /// Sets what a Signature shows.
  void name_specs();

 private:
  mutable std::once_flag once_;
  mutable ConcreteFunction function_;
};

/// Whether the value may be passed where `spec` stands; its tensors are appended to `tensors`.
bool fits(const Value& spec, const Value& value, std::vector<Tensor>& tensors);

}  // namespace tandem::saved_model::internal
