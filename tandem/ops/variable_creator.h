#pragma once

#include <functional>
#include <memory>

#include "tandem/core/export.h"
#include "tandem/ops/variable.h"

namespace tandem {

struct VariableCreators;  // below

/// Makes the variable that the program asked for: calls `next`, the creator of the scope around (at
/// last the one that makes a plain variable), perhaps with another value or other options, or
/// several times, or makes something else. Runs on the thread that makes the variable.
using NextVariableCreator = std::function<Variable(Tensor initial_value, VariableOptions options)>;
using VariableCreator = std::function<Variable(const NextVariableCreator& next,
                                               Tensor initial_value, VariableOptions options)>;

/// Variables that the thread makes in the block, by whatever code, are made by `creator`, as by
/// tf.variable_creator_scope:
///
///     td::VariableCreatorScope here([](const auto& next, td::Tensor value, td::VariableOptions o)
///     {
///       o.trainable = false;
///       return next(value, o);
///     });
///     td::Variable v(1.0f);   // not trainable
///
/// Of scopes within each other the innermost creator is called first. What a creator makes itself,
/// by td::Variable(...), goes to the scopes around its own. A creator that returns an undefined
/// Variable is an error (InvalidArgumentError).
class TANDEM_EXPORT VariableCreatorScope {
 public:
  explicit VariableCreatorScope(VariableCreator creator);
  ~VariableCreatorScope();
  VariableCreatorScope(const VariableCreatorScope&) = delete;
  VariableCreatorScope& operator=(const VariableCreatorScope&) = delete;

 private:
  std::shared_ptr<const VariableCreators> saved_;
};

/// The creators of a thread, innermost first.
struct VariableCreators {
  VariableCreator creator;
  std::shared_ptr<const VariableCreators> outer;
};

}  // namespace tandem
