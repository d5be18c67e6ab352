#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

class Variable;

/// What `gradient` returns where the target does not depend on a source.
enum class UnconnectedGradients { kNone, kZero };

/// What a gradient is taken by: a tensor, or a variable.
class TANDEM_EXPORT GradientSource {
 public:
  GradientSource(const Tensor& tensor) : tensor_(tensor) {}
  GradientSource(const Variable& variable);
  const Tensor& tensor() const { return tensor_; }  ///< a variable's handle

 private:
  Tensor tensor_;
};

/// Records op calls of the thread from its construction on, to compute gradients by reverse
/// accumulation.
///
///     td::GradientTape tape;
///     tape.watch(x);
///     td::Tensor y = x * x;
///     td::Tensor dy_dx = tape.gradient(y, x);
///
/// Trainable variables are watched unasked. Tapes nest, for higher derivatives; gradients are made
/// of ops, so a tape works eagerly and while a function is being traced. Without `persistent`,
/// `gradient` may be called once and ends the recording. Use a tape on the thread that made it
/// only; it may be destroyed by any thread, in any order with others.
class TANDEM_EXPORT GradientTape {
 public:
  struct Options {
    bool persistent = false;
    bool watch_accessed_variables = true;
  };
  GradientTape();
  explicit GradientTape(const Options& options);
  ~GradientTape();
  GradientTape(const GradientTape&) = delete;
  GradientTape& operator=(const GradientTape&) = delete;

  /// Differentiable dtypes only (InvalidArgumentError otherwise).
  void watch(const Tensor& tensor);
  void watch(const Variable& variable);

  /// d target / d source, of the source's shape; targets that are no scalars count as the sum of
  /// their elements (or weighted by `output_gradients`). Undefined tensors where unconnected,
  /// unless zeros are asked for.
  /// A template, so that `{w}` is a list of one.
  template <std::convertible_to<GradientSource> Source>
  Tensor gradient(const Tensor& target, const Source& source,
                  UnconnectedGradients unconnected = UnconnectedGradients::kNone) {
    return gradient(target, std::initializer_list<GradientSource>{source}, unconnected).front();
  }
  std::vector<Tensor> gradient(const Tensor& target, const std::vector<Tensor>& sources,
                               UnconnectedGradients unconnected = UnconnectedGradients::kNone);
  std::vector<Tensor> gradient(const Tensor& target, const std::vector<Variable>& sources,
                               UnconnectedGradients unconnected = UnconnectedGradients::kNone);
  /// `tape.gradient(loss, {w, b})`: tensors and variables, also mixed.
  std::vector<Tensor> gradient(const Tensor& target, std::initializer_list<GradientSource> sources,
                               UnconnectedGradients unconnected = UnconnectedGradients::kNone);
  std::vector<Tensor> gradient(const std::vector<Tensor>& targets,
                               const std::vector<Tensor>& sources,
                               const std::vector<Tensor>& output_gradients,
                               UnconnectedGradients unconnected = UnconnectedGradients::kNone);

  /// All partial derivatives: shape target.shape + source.shape. Needs a persistent tape and a
  /// known target shape.
  Tensor jacobian(const Tensor& target, const Tensor& source);

  /// Stops and goes on listening.
  void stop_recording();
  void resume_recording();
  /// Forgets what was recorded and watched.
  void reset();

 private:
  class Recorder;
  std::shared_ptr<Recorder> recorder_;  ///< shared with the thread that records
};

/// Computes `outputs = forward(inputs)` with a gradient of the user's own: `backward` takes the
/// outputs' gradients (zeros where nothing depends on an output) and returns one for each input
/// (undefined for none).
TANDEM_EXPORT std::vector<Tensor> custom_gradient(
    const std::function<std::vector<Tensor>(std::span<const Tensor> inputs)>& forward,
    const std::function<std::vector<Tensor>(std::span<const Tensor> inputs,
                                            std::span<const Tensor> outputs,
                                            std::span<const Tensor> output_grads)>& backward,
    const std::vector<Tensor>& inputs);

}  // namespace tandem
