#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

/// Computes `outputs = forward(inputs)` with a gradient of the user's own: `backward` takes the
/// outputs' gradients (zeros where nothing depends on an output) and returns one for each input
/// (undefined for none).
TANDEM_EXPORT std::vector<Tensor> custom_gradient(
    const std::function<std::vector<Tensor>(std::span<const Tensor> inputs)>& forward,
    const std::function<std::vector<Tensor>(std::span<const Tensor> inputs,
                                            std::span<const Tensor> outputs,
                                            std::span<const Tensor> output_grads)>& backward,
    const std::vector<Tensor>& inputs);

namespace internal {

/// True while a function is being traced, where values of one call are not those of the next.
TANDEM_EXPORT bool is_tracing();
TANDEM_EXPORT Tensor separate_output(const Tensor& value);

inline std::vector<Tensor> as_list(Tensor tensor) { return {std::move(tensor)}; }
inline std::vector<Tensor> as_list(std::vector<Tensor> tensors) { return tensors; }
template <class... T>
requires(std::convertible_to<T, Tensor>&&...) std::vector<Tensor> as_list(
    const std::tuple<T...>& tensors) {
  return std::apply([](const auto&... each) { return std::vector<Tensor>{each...}; }, tensors);
}
inline std::vector<Tensor> as_list(const std::pair<Tensor, Tensor>& tensors) {
  return {tensors.first, tensors.second};
}
template <std::size_t N>
std::vector<Tensor> as_list(const std::array<Tensor, N>& tensors) {
  return {tensors.begin(), tensors.end()};
}

}  // namespace internal

/// What custom_gradient makes of a function: called with tensors, it returns the function's value.
template <class F>
class CustomGradient {
 public:
  explicit CustomGradient(F function) : function_(std::move(function)) {}

  template <std::convertible_to<Tensor>... T>
  requires(sizeof...(T) > 0) auto operator()(const T&... arguments) const {
    constexpr std::size_t kInputs = sizeof...(T);
    const std::vector<Tensor> inputs{Tensor(arguments)...};
    const auto call = [function = function_](std::span<const Tensor> values) {
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return function(Tensor(values[I])...);
      }
      (std::make_index_sequence<kInputs>());
    };
    using Value = decltype(call(inputs).first);
    using Gradient = decltype(call(inputs).second);
    // Eagerly the function is called once. While tracing, what it gives in the graph of the
    // forward pass is not to be had in that of the gradient, where it is called again.
    std::optional<std::vector<Tensor>> outputs;
    auto gradient = std::make_shared<std::optional<Gradient>>();
    if (!internal::is_tracing()) {
      auto [value, backward] = call(inputs);
      outputs = internal::as_list(std::move(value));
      gradient->emplace(std::move(backward));
    }
    std::vector<Tensor> results = custom_gradient(
        [&](std::span<const Tensor> values) {
          if (!outputs) return internal::as_list(call(values).first);
          std::vector<Tensor> own;
          for (const Tensor& output : *outputs) own.push_back(internal::separate_output(output));
          return own;
        },
        [call, gradient](std::span<const Tensor> values, std::span<const Tensor>,
                         std::span<const Tensor> output_grads) {
          return backward<Value>(gradient->has_value() ? **gradient : call(values).second,
                                 output_grads);
        },
        inputs);
    if constexpr (std::same_as<Value, Tensor>) {
      return std::move(results.front());
    } else {
      return results;
    }
  }

 private:
  template <class Value, class Gradient>
  static std::vector<Tensor> backward(const Gradient& gradient,
                                      std::span<const Tensor> output_grads) {
    if constexpr (std::same_as<Value, Tensor>) {
      return internal::as_list(gradient(output_grads.front()));
    } else {
      return internal::as_list(
          gradient(std::vector<Tensor>(output_grads.begin(), output_grads.end())));
    }
  }

  F function_;
};

/// As tf.custom_gradient: of a function that returns a pair of its value (a tensor or a vector of
/// tensors) and of the function that makes the gradients of its inputs from the value's.
///
///     auto log1pexp = td::custom_gradient([](td::Tensor x) {
///       td::Tensor e = td::exp(x);
///       return std::pair(td::math::log(1.0 + e),
///                        [e](td::Tensor dy) { return dy * (1.0 - 1.0 / (1.0 + e)); });
///     });
///     td::Tensor y = log1pexp(x);
///
/// Gradients of several inputs come as a pair, a tuple, an array or a vector of tensors; an
/// undefined one is none. In a function that is traced the function is called once more for the
/// gradient: what must be equal in both, such as random numbers, is made outside and passed to it.
template <class F>
CustomGradient<F> custom_gradient(F function) {
  return CustomGradient<F>(std::move(function));
}

}  // namespace tandem
