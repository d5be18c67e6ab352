#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/autodiff/custom_gradient.h"
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

struct GradientOptions {
  /// What the target's elements count, of its shape; undefined: 1 each.
  Tensor output_gradients = {};
  UnconnectedGradients unconnected_gradients = UnconnectedGradients::kNone;
};

/// Gradients by N sources: a vector that also comes apart, `auto [dw, db] = tape.gradient(loss, {w,
/// b})`.
template <std::size_t N>
class Gradients : public std::vector<Tensor> {
 public:
  explicit Gradients(std::vector<Tensor> gradients) : std::vector<Tensor>(std::move(gradients)) {}
  template <std::size_t I>
  Tensor& get() {
    return (*this)[I];
  }
  template <std::size_t I>
  const Tensor& get() const {
    return (*this)[I];
  }
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
  template <std::convertible_to<GradientSource> Source>
  Tensor gradient(const Tensor& target, const Source& source, const GradientOptions& options = {}) {
    const GradientSource one = source;
    return gradients_by({&target, 1}, {&one, 1}, options).front();
  }
  template <std::convertible_to<GradientSource> Source>
  Tensor gradient(const Tensor& target, const Source& source, UnconnectedGradients unconnected) {
    return gradient(target, source, GradientOptions{.unconnected_gradients = unconnected});
  }
  /// `tape.gradient(loss, {w, b})`: tensors and variables, also mixed.
  template <std::size_t N>
  Gradients<N> gradient(const Tensor& target, const GradientSource (&sources)[N],
                        const GradientOptions& options = {}) {
    return Gradients<N>(gradients_by({&target, 1}, sources, options));
  }
  template <std::size_t N>
  Gradients<N> gradient(const Tensor& target, const GradientSource (&sources)[N],
                        UnconnectedGradients unconnected) {
    return gradient(target, sources, GradientOptions{.unconnected_gradients = unconnected});
  }
  /// By each of a vector of tensors or of variables. A template, so that braces are no vector.
  template <class Sources>
  requires(std::derived_from<Sources, std::vector<Tensor>> ||
           std::derived_from<Sources, std::vector<Variable>>)
      std::vector<Tensor> gradient(const Tensor& target, const Sources& sources,
                                   const GradientOptions& options = {}) {
    return gradients_by({&target, 1}, std::vector<GradientSource>(sources.begin(), sources.end()),
                        options);
  }
  template <class Sources>
  requires(std::derived_from<Sources, std::vector<Tensor>> ||
           std::derived_from<Sources, std::vector<Variable>>)
      std::vector<Tensor> gradient(const Tensor& target, const Sources& sources,
                                   UnconnectedGradients unconnected) {
    return gradient(target, sources, GradientOptions{.unconnected_gradients = unconnected});
  }
  std::vector<Tensor> gradient(const std::vector<Tensor>& targets,
                               const std::vector<Tensor>& sources,
                               const std::vector<Tensor>& output_gradients,
                               UnconnectedGradients unconnected = UnconnectedGradients::kNone);

  /// All partial derivatives: shape target.shape + source.shape. Needs a persistent tape and a
  /// known target shape.
  Tensor jacobian(const Tensor& target, const GradientSource& source);
  /// The Jacobian of each example by itself, where row i of the target depends on row i of the
  /// source alone: shape [batch] + target.shape[1:] + source.shape[1:]. As `jacobian`, and both
  /// need a first axis of one size.
  Tensor batch_jacobian(const Tensor& target, const Tensor& source);

  /// Stops and goes on listening.
  void stop_recording();
  void resume_recording();
  /// Forgets what was recorded and watched.
  void reset();

 private:
  class Recorder;
  std::vector<Tensor> gradients_by(std::span<const Tensor> targets,
                                   std::span<const GradientSource> sources,
                                   const GradientOptions& options);
  std::vector<Tensor> rows_of_jacobian(const Tensor& target, const Tensor& source,
                                       std::int64_t batch);
  std::shared_ptr<Recorder> recorder_;  ///< shared with the thread that records
};

}  // namespace tandem

template <std::size_t N>
struct std::tuple_size<tandem::Gradients<N>> : std::integral_constant<std::size_t, N> {};
template <std::size_t I, std::size_t N>
struct std::tuple_element<I, tandem::Gradients<N>> {
  using type = tandem::Tensor;
};
