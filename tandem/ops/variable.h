#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "tandem/core/dtype.h"
#include "tandem/core/export.h"
#include "tandem/core/shape.h"
#include "tandem/core/string.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

class Index;
class Operand;
class VariableSlice;

struct VariableOptions {
  bool trainable =
      true;  ///< what optimizers and tapes look at; says nothing to the variable itself
  String name = "Variable";
  /// The shape that values must fit; that of the initial value by default.
  std::optional<PartialShape> shape = std::nullopt;
  /// Used as a Tensor within an AutocastScope (tandem/ops/autocast.h), a floating value has the
  /// scope's dtype.
  bool autocast = false;
  /// What Keras' optimizers apply to the value after each step: from the new value to an allowed
  /// one.
  std::function<Tensor(const Tensor&)> constraint = nullptr;
};

/// A value that may change: parameters of models, counters, moving averages.
///
/// A handle: copies refer to the same variable, whose memory lives as long as a copy, or a function
/// that captured it. Reading gives a Tensor that later assignments do not change. Inside a traced
/// function, reads and assignments become part of the graph, in the order of the program.
/// Thread-safe; two assignments at the same time happen one after the other.
///
/// A variable made while a function is traced is made once for that trace, not once for each call.
/// So a variable made there must be kept (a static, a member that is not yet `defined()`): if it
/// is used and gone at the end of the body, the call throws FailedPreconditionError.
///
///     td::Variable w(td::zeros({3}), {.name = "w"});
///     w.assign_add({1.0, 2.0, 3.0});
///     w -= 0.1 * gradient;    // assign_sub; `w = value` assigns too
///     w[0] = 5;               // changes a part
///     td::Tensor y = x * w;   // reads w
///
/// A VariableCreatorScope (tandem/ops/variable_creator.h) changes how a thread's variables are
/// made, and one variable may be made of components on several devices
/// (tandem/ops/distributed_variable.h).
class TANDEM_EXPORT Variable {
 public:
  /// Refers to nothing.
  Variable() = default;
  /// Throws FailedPreconditionError when made in a traced function from a value that is not known
  /// yet: a variable must be made outside of it, or from a concrete value.
  explicit Variable(Tensor initial_value, const VariableOptions& options = {});
  /// From what `make` returns; it is called eagerly even inside a traced function, so that layers
  /// may make their variables at first use.
  template <class Make>
  requires std::is_invocable_r_v<Tensor, Make&>
  explicit Variable(Make make, const VariableOptions& options = {})
      : Variable(made_eagerly(std::function<Tensor()>(std::move(make))), options) {}

  bool defined() const noexcept { return state_ != nullptr; }
  Tensor read_value() const;
  Tensor value() const { return read_value(); }
  /// Reads, so that a Variable may be given wherever a Tensor is expected. Unlike `read_value`
  /// casts as an AutocastScope around asks for.
  operator Tensor() const;

  /// Throws InvalidArgumentError if dtype or shape do not fit.
  const Variable& assign(Tensor value) const;
  const Variable& assign_add(Tensor delta) const;
  const Variable& assign_sub(Tensor delta) const;

  // What Python writes as assignments; numbers take the variable's dtype, and values of fewer axes
  // broadcast. `w = w2` between variables refers to the other variable;
  // `w = w2.value()` copies its value.
  /// assign.
  template <class T>
  requires(std::is_same_v<T, Tensor> || std::is_arithmetic_v<T>) const Variable& operator=(
      const T& value) {
    return assign_operand(value);
  }
  const Variable& operator+=(Operand delta) const;  ///< assign_add
  const Variable& operator-=(Operand delta) const;  ///< assign_sub

  /// A part, to read or to assign: tandem/ops/variable_slice.h. Entries as in Tensor::operator[].
  VariableSlice operator[](const Index& entry) const;
  VariableSlice operator[](std::initializer_list<Index> entries) const;

  /// The resource handle: what ops that change variables take, and what gradient tapes watch.
  const Tensor& handle() const;
  const std::string& name() const;
  /// Keras' word for it: "dense/kernel".
  const std::string& path() const { return name(); }
  /// What values must fit.
  const PartialShape& shape() const;
  DType dtype() const;
  bool trainable() const;
  /// Empty if there is none.
  const std::function<Tensor(const Tensor&)>& constraint() const;
  /// Full name of the device that holds the value, as Tensor::device.
  const std::string& device() const;
  bool is_same(const Variable& other) const noexcept { return state_ == other.state_; }

 private:
  struct State;
  struct Components;  // of a variable on several devices: tandem/ops/distributed_variable.h
  friend class DistributedVariables;
  static Variable make_plain(Tensor initial_value, const VariableOptions& options);
  static Tensor made_eagerly(const std::function<Tensor()>& make);
  const Variable& assign_operand(const Operand& value) const;
  const State& state() const;
  /// The component that reads and changes concern here; the state itself of a plain variable.
  const State& here() const;
  std::shared_ptr<const State> state_;
};

}  // namespace tandem
