#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string_list.h"
#include "tandem/runtime/tensor.h"
#include "tandem/runtime/traced_function.h"
#include "tandem/saved_model/value.h"

namespace tandem::saved_model {

namespace internal {
struct Concrete;
}

/// Names of what a function takes and returns.
struct Names {
  /// A name for each argument; empty: those of the trace.
  StringList inputs = {};
  /// A name for each result; empty: "output_0", "output_1", …
  StringList outputs = {};
};

/// A function that takes and returns tensors by name: what servers call. A shared handle;
/// thread-safe.
///
///     Signature predict = model.signature("serving_default");
///     Tensor y = predict({{"x", x}})["output_0"];
///
/// It can be traced, and differentiated by a GradientTape, as any function.
class TANDEM_EXPORT Signature {
 public:
  /// None, of which only defined() may be asked: the rest throws FailedPreconditionError.
  Signature() = default;
  /// Throws InvalidArgumentError if the names are in another number than arguments or results, or
  /// not different.
  explicit Signature(const ConcreteFunction& function, const Names& names = {});

  bool defined() const { return concrete_ != nullptr; }
  /// What it takes, by name.
  const std::vector<TensorSpec>& inputs() const;
  /// What it returns, by name; the components of a composite tensor "NAME:0", "NAME:1", …
  const std::vector<TensorSpec>& outputs() const;
  /// Throws InvalidArgumentError for missing or unknown names, and for tensors of another dtype or
  /// shape.
  std::map<std::string, Value> operator()(const std::map<std::string, Tensor>& inputs) const;

  /// What runs: it takes tensors in the order of `inputs` and returns those of `outputs`. Throws as
  /// `load` if it cannot run.
  const ConcreteFunction& concrete() const;

  // ---- For loading and saving. ----
  explicit Signature(std::shared_ptr<internal::Concrete> concrete);
  const std::shared_ptr<internal::Concrete>& impl() const { return concrete_; }

 private:
  const internal::Concrete& made() const;
  std::shared_ptr<internal::Concrete> concrete_;
};

/// The arguments of a function as Python declares them.
struct ArgSpec {
  StringList args = {};
  std::string varargs = {};          ///< "": it takes no more
  std::string varkw = {};            ///< "": it takes no others
  std::vector<Value> defaults = {};  ///< of the last `args`
  StringList kwonlyargs = {};
  std::map<std::string, Value> kwonlydefaults = {};
  /// "(x, training=False)"
  TANDEM_EXPORT std::string to_string() const;
};

/// A function of a SavedModel with all its traces: a call runs the one that its arguments fit, as
/// a tf.function that was restored does. A shared handle; thread-safe.
///
///     Tensor y = model.function("f")(x);
///     Value result = model.function("f").call({x}, {{"training", true}});
///     Tensor loss = result["loss"];
class TANDEM_EXPORT Function {
 public:
  /// None: calls throw FailedPreconditionError.
  Function() = default;
  /// Traces of one function, all with arguments of these names. Results are one tensor, a tuple of
  /// several, or with names a dictionary.
  explicit Function(const std::vector<ConcreteFunction>& traces, const Names& names = {});
  explicit Function(const ConcreteFunction& trace, const Names& names = {})
      : Function(std::vector<ConcreteFunction>{trace}, names) {}

  bool defined() const { return state_ != nullptr; }
  /// Calls with values in the place of Python's positional and keyword arguments. Numbers count as
  /// tensors where a trace wants one. Throws InvalidArgumentError that lists the traces if the
  /// arguments fit none.
  Value call(const std::vector<Value>& args, const std::map<std::string, Value>& kwargs = {}) const;
  template <class... Args>
  Value operator()(const Args&... args) const {
    return call({Value(args)...});
  }

  const ArgSpec& arg_spec() const;
  std::size_t num_traces() const;
  /// What a trace takes, a pair of positional and keyword arguments, and returns.
  const Value& inputs(std::size_t trace) const;
  const Value& outputs(std::size_t trace) const;
  const ConcreteFunction& concrete(std::size_t trace) const;

  // ---- For loading and saving. ----
  Function(ArgSpec args, std::vector<std::shared_ptr<internal::Concrete>> traces);
  const std::vector<std::shared_ptr<internal::Concrete>>& impl() const;

 private:
  struct State;
  const State& state() const;
  std::shared_ptr<const State> state_;
};

}  // namespace tandem::saved_model
