#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tandem/core/attr.h"
#include "tandem/core/error.h"
#include "tandem/core/export.h"
#include "tandem/graph/op_def.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

/// What a GradientFn sees: one recorded op call, the gradients of its outputs, and a place for
/// those of its inputs.
///
/// Gradient functions call ops (so they work eagerly, in graphs, and twice over) and leave inputs
/// through which no gradient flows unset.
///
///     void mul_grad(GradientContext& g) {
///       if (g.needs(0)) g.set(0, sum_to_shape_of(g.grad() * g.input(1), g.input(0)));
///       if (g.needs(1)) g.set(1, sum_to_shape_of(g.grad() * g.input(0), g.input(1)));
///     }
class TANDEM_EXPORT GradientContext {
 public:
  virtual ~GradientContext();

  const OpDef& op() const { return *op_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  const Tensor& input(int i) const { return inputs_.at(static_cast<std::size_t>(i)); }
  const Tensor& output(int i = 0) const { return outputs_.at(static_cast<std::size_t>(i)); }

  /// The gradient of output i; zeros if nothing depends on that output.
  Tensor grad(int i = 0);
  /// Undefined if nothing depends on output i.
  const Tensor& grad_or_undefined(int i) const { return grads_.at(static_cast<std::size_t>(i)); }
  /// True if the gradient of input i is wanted.
  bool needs(int i) const { return needs_.at(static_cast<std::size_t>(i)); }
  void set(int i, Tensor gradient) {
    results_.at(static_cast<std::size_t>(i)) = std::move(gradient);
  }

  /// Attribute as given in the call, or its default.
  template <class T>
  T attr(std::string_view name) const {
    const AttrValue* value = find_attr(name);
    const T* typed = value ? value->get_if<T>() : nullptr;
    if (!typed)
      throw InternalError(
          cat("the gradient of ", op_->name, " reads attribute '", name, "', which is absent"));
    return *typed;
  }
  const AttrValue* find_attr(std::string_view name) const;
  const AttrMap& attrs() const { return *attrs_; }

  // ---- For the tape, which fills contexts in. ----
  const OpDef* op_ = nullptr;
  const AttrMap* attrs_ = nullptr;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_;
  std::vector<Tensor> grads_;
  std::vector<bool> needs_;
  std::vector<Tensor> results_;

 protected:
  /// Zeros of the shape and dtype of `like`: made of ops, which the runtime does not know.
  virtual Tensor zeros_like(const Tensor& like) = 0;
};

}  // namespace tandem
