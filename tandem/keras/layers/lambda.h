#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/layer.h"

namespace tandem::keras {

struct LambdaOptions {
  String name = {};
  DTypePolicy dtype = {};
};

/// A function of tensors as a layer without weights. It may be traced, so it computes with td's
/// functions only. Its result is not saved with a model's architecture.
///
///     Sequential model{Lambda([](td::Tensor x) { return x / 255.0; }), Dense(10)};
class TANDEM_EXPORT Lambda : public Layer {
 public:
  using Function = std::function<Tensor(const Tensor&)>;
  using FunctionOfSeveral = std::function<Tensor(const std::vector<Tensor>&)>;

  template <class F>
  requires(std::is_invocable_r_v<Tensor, F&, const Tensor&>) explicit Lambda(
      F function, const LambdaOptions& options = {})
      : Lambda(from_one(Function(std::move(function)), options)) {}
  /// A function of several inputs.
  template <class F>
  requires(!std::is_invocable_r_v<Tensor, F&, const Tensor&> &&
           std::is_invocable_r_v<Tensor, F&,
                                 const std::vector<Tensor>&>) explicit Lambda(F function,
                                                                              const LambdaOptions&
                                                                                  options = {})
      : Lambda(from_several(FunctionOfSeveral(std::move(function)), options)) {}

 private:
  explicit Lambda(Layer layer) : Layer(std::move(layer)) {}
  static Lambda from_one(Function function, const LambdaOptions& options);
  static Lambda from_several(FunctionOfSeveral function, const LambdaOptions& options);
};

}  // namespace tandem::keras
