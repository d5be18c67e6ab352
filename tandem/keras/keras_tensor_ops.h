#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/keras/activations.h"
#include "tandem/keras/config.h"
#include "tandem/keras/keras_tensor.h"
#include "tandem/keras/ops/elementwise.h"
#include "tandem/ops/activation_ops.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"

/// Arithmetic and functions on KerasTensors: each becomes an operation of the model.
///
///     auto x = td::keras::Input({8});
///     auto y = (x - 0.5) * 2.0 + dense(x);
///     auto first = y[{td::Slice(), 0}];
///     auto z = td::keras::apply([](td::Tensor t) { return td::cumsum(t, 1); }, y);   // any
///     function
///
/// Files have these operations in Keras' form, with the numbers and tensors among their arguments.
/// `apply`, and arguments that Keras' operation of that name does not have, have no form there.
namespace tandem::keras {

namespace internal {
using Operation = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
// An argument as files have it; none if it has no form there.
using SavedArgument = std::optional<ConfigValue>;
// Calls a layer, named after `name`, that computes `operation` of the inputs. `arguments` are those
// of the function of that name, in its order.
TANDEM_EXPORT std::vector<KerasTensor> operate(const std::string& name, Operation operation,
                                               const std::vector<KerasTensor>& inputs,
                                               const std::vector<SavedArgument>& arguments);

template <class T>
inline constexpr bool kIsKerasTensor = std::is_same_v<std::decay_t<T>, KerasTensor>;
template <class... A>
concept HasKerasTensor = (kIsKerasTensor<A> || ...);

// Stands for the next of the inputs.
TANDEM_EXPORT ConfigValue input_argument();
TANDEM_EXPORT ConfigValue inputs_argument(std::size_t count);  // … for a list of them
TANDEM_EXPORT SavedArgument saved_argument(const Tensor& value);
TANDEM_EXPORT SavedArgument saved_argument(const Axes& value);
TANDEM_EXPORT SavedArgument saved_argument(DType value);
template <class A>
SavedArgument saved_argument(const A& given) {
  if constexpr (kIsKerasTensor<A>) {
    return input_argument();
  } else if constexpr (std::same_as<A, bool>) {
    return ConfigValue(given);
  } else if constexpr (std::integral<A>) {
    return ConfigValue(static_cast<std::int64_t>(given));
  } else if constexpr (std::floating_point<A>) {
    return ConfigValue(static_cast<double>(given));
  } else if constexpr (std::same_as<A, Array>) {
    return saved_argument(Tensor(given));
  } else if constexpr (std::same_as<A, DTypeLike>) {
    return saved_argument(static_cast<DType>(given));
  } else if constexpr (std::convertible_to<const A&, std::string>) {
    return ConfigValue(std::string(given));
  } else if constexpr (std::same_as<A, std::vector<std::int64_t>>) {
    return ConfigValue(given);
  } else {
    return std::nullopt;
  }
}

// The argument of an operation: the next of the tensors, or what was given.
template <class A>
decltype(auto) argument(const A& given, const std::vector<Tensor>& tensors, std::size_t& next) {
  if constexpr (kIsKerasTensor<A>) {
    return tensors[next++];
  } else {
    return given;
  }
}

// function(arguments...) with the KerasTensors among them as inputs of a layer.
template <class F, class... A>
KerasTensor lift(const std::string& name, F function, const A&... arguments) {
  std::vector<KerasTensor> inputs;
  const auto collect = [&](const auto& a) {
    if constexpr (kIsKerasTensor<decltype(a)>) inputs.push_back(a);
  };
  (collect(arguments), ...);
  return operate(
             name,
             [function, given = std::make_tuple(arguments...)](const std::vector<Tensor>& tensors) {
               std::size_t next = 0;
               return std::vector<Tensor>{std::apply(
                   [&](const auto&... a) {
                     // Braces keep the order.
                     const std::tuple<std::decay_t<decltype(argument(a, tensors, next))>...> values{
                         argument(a, tensors, next)...};
                     return std::apply(function, values);
                   },
                   given)};
             },
             inputs, {saved_argument(arguments)...})
      .front();
}
// function(x), which has further arguments within it.
template <class F>
KerasTensor lift_with(const std::string& name, F function, const KerasTensor& x,
                      std::vector<SavedArgument> others) {
  others.insert(others.begin(), input_argument());
  return operate(
             name,
             [function](const std::vector<Tensor>& tensors) {
               return std::vector<Tensor>{function(tensors[0])};
             },
             {x}, others)
      .front();
}
}  // namespace internal

/// Any function of tensors, as an operation.
template <class F, class... A>
requires(internal::HasKerasTensor<A...>) KerasTensor apply(F function, const A&... arguments) {
  return internal::lift("lambda", std::move(function), arguments...);
}

#define TANDEM_LIFT_OPERATOR(OPERATOR, NAME)                                                      \
  template <class A, class B>                                                                     \
  requires(                                                                                       \
      internal::HasKerasTensor<A, B> &&                                                           \
      std::is_convertible_v<std::conditional_t<internal::kIsKerasTensor<A>, Tensor, A>,           \
                            Operand> &&                                                           \
      std::is_convertible_v<std::conditional_t<internal::kIsKerasTensor<B>, Tensor, B>, Operand>) \
      KerasTensor                                                                                 \
      operator OPERATOR(const A& a, const B& b) {                                                 \
    return internal::lift(                                                                        \
        #NAME, [](const auto& x, const auto& y) { return Tensor(ops::NAME(x, y)); }, a, b);       \
  }
TANDEM_LIFT_OPERATOR(+, add)
TANDEM_LIFT_OPERATOR(-, subtract)
TANDEM_LIFT_OPERATOR(*, multiply)
TANDEM_LIFT_OPERATOR(/, true_divide)
TANDEM_LIFT_OPERATOR(%, mod)
TANDEM_LIFT_OPERATOR(==, equal)
TANDEM_LIFT_OPERATOR(!=, not_equal)
TANDEM_LIFT_OPERATOR(<, less)
TANDEM_LIFT_OPERATOR(<=, less_equal)
TANDEM_LIFT_OPERATOR(>, greater)
TANDEM_LIFT_OPERATOR(>=, greater_equal)
#undef TANDEM_LIFT_OPERATOR
inline KerasTensor operator-(const KerasTensor& x) {
  return internal::lift(
      "negative", [](const Tensor& t) { return -t; }, x);
}

}  // namespace tandem::keras

// A function that takes KerasTensors among its arguments where it stands, in `ops` or in td.
#define TANDEM_LIFT(NAME)                                                                  \
  template <class... A>                                                                    \
  requires(tandem::keras::internal::HasKerasTensor<A...>) tandem::keras::KerasTensor NAME( \
      const A&... arguments) {                                                             \
    return tandem::keras::internal::lift(                                                  \
        #NAME, [](const auto&... values) { return tandem::Tensor(NAME(values...)); },      \
        arguments...);                                                                     \
  }

// Its options.
#define TANDEM_LIFT_REDUCTION(NAME)                                                               \
  inline keras::KerasTensor NAME(const keras::KerasTensor& x, const ReduceOptions& options) {     \
    return keras::internal::lift_with(                                                            \
        #NAME, [options](const Tensor& t) { return NAME(t, options.axis, options.keepdims); }, x, \
        {keras::internal::saved_argument(options.axis),                                           \
         keras::internal::saved_argument(options.keepdims)});                                     \
  }                                                                                               \
  /* Braces: {0, 1} are axes, not an axis and keepdims; {} are no options. */                     \
  inline keras::KerasTensor NAME(const keras::KerasTensor& x,                                     \
                                 std::initializer_list<std::int64_t> axes) {                      \
    return NAME(x, ReduceOptions{.axis = axes.size() == 0 ? Axes() : Axes(axes)});                \
  }                                                                                               \
  inline keras::KerasTensor NAME(const keras::KerasTensor& x, Axes axis,                          \
                                 const KeepdimsOptions& options) {                                \
    return NAME(x, ReduceOptions{.axis = std::move(axis), .keepdims = options.keepdims});         \
  }

namespace tandem {
TANDEM_LIFT(abs)
TANDEM_LIFT(cast)
TANDEM_LIFT(cos)
TANDEM_LIFT(cumsum)
TANDEM_LIFT(exp)
TANDEM_LIFT(expand_dims)
TANDEM_LIFT(gather)
TANDEM_LIFT(matmul)
TANDEM_LIFT(maximum)
TANDEM_LIFT(minimum)
TANDEM_LIFT(pow)
TANDEM_LIFT(reduce_max)
TANDEM_LIFT_REDUCTION(reduce_max)
TANDEM_LIFT(reduce_mean)
TANDEM_LIFT_REDUCTION(reduce_mean)
TANDEM_LIFT(reduce_min)
TANDEM_LIFT_REDUCTION(reduce_min)
TANDEM_LIFT(reduce_prod)
TANDEM_LIFT_REDUCTION(reduce_prod)
TANDEM_LIFT(reduce_sum)
TANDEM_LIFT_REDUCTION(reduce_sum)
TANDEM_LIFT(sigmoid)
TANDEM_LIFT(sin)
TANDEM_LIFT(sqrt)
TANDEM_LIFT(square)
TANDEM_LIFT(stop_gradient)
TANDEM_LIFT(tanh)
TANDEM_LIFT(where)
/// Braces are no argument that a template takes.
inline keras::KerasTensor reshape(const keras::KerasTensor& x,
                                  const std::vector<std::int64_t>& shape) {
  return keras::internal::lift_with(
      "reshape", [shape](const Tensor& t) { return reshape(t, shape); }, x, {shape});
}
inline keras::KerasTensor transpose(const keras::KerasTensor& x,
                                    const std::vector<std::int64_t>& perm = {}) {
  return keras::internal::lift_with(
      "transpose", [perm](const Tensor& t) { return transpose(t, perm); }, x,
      {perm.empty() ? keras::ConfigValue() : keras::ConfigValue(perm)});
}
/// All of one rank, along an axis.
inline keras::KerasTensor concat(const std::vector<keras::KerasTensor>& values, std::int64_t axis) {
  return keras::internal::operate("concatenate",
                                  [axis](const std::vector<Tensor>& tensors) {
                                    return std::vector<Tensor>{concat(tensors, axis)};
                                  },
                                  values, {keras::internal::inputs_argument(values.size()), axis})
      .front();
}
inline keras::KerasTensor stack(const std::vector<keras::KerasTensor>& values,
                                std::int64_t axis = 0) {
  return keras::internal::operate("stack",
                                  [axis](const std::vector<Tensor>& tensors) {
                                    return std::vector<Tensor>{stack(tensors, axis)};
                                  },
                                  values, {keras::internal::inputs_argument(values.size()), axis})
      .front();
}
namespace nn {
TANDEM_LIFT(elu)
TANDEM_LIFT(gelu)
TANDEM_LIFT(leaky_relu)
TANDEM_LIFT(log_softmax)
TANDEM_LIFT(relu)
TANDEM_LIFT(relu6)
TANDEM_LIFT(selu)
TANDEM_LIFT(silu)
TANDEM_LIFT(softmax)
TANDEM_LIFT(softplus)
TANDEM_LIFT(swish)
}  // namespace nn
namespace keras::activations {
TANDEM_LIFT(celu)
TANDEM_LIFT(elu)
TANDEM_LIFT(exponential)
TANDEM_LIFT(gelu)
TANDEM_LIFT(glu)
TANDEM_LIFT(hard_shrink)
TANDEM_LIFT(hard_sigmoid)
TANDEM_LIFT(hard_silu)
TANDEM_LIFT(hard_swish)
TANDEM_LIFT(hard_tanh)
TANDEM_LIFT(leaky_relu)
TANDEM_LIFT(linear)
TANDEM_LIFT(log_sigmoid)
TANDEM_LIFT(log_softmax)
TANDEM_LIFT(mish)
TANDEM_LIFT(relu)
TANDEM_LIFT(relu6)
TANDEM_LIFT(selu)
TANDEM_LIFT(sigmoid)
TANDEM_LIFT(silu)
TANDEM_LIFT(soft_shrink)
TANDEM_LIFT(softmax)
TANDEM_LIFT(softplus)
TANDEM_LIFT(softsign)
TANDEM_LIFT(sparse_plus)
TANDEM_LIFT(sparse_sigmoid)
TANDEM_LIFT(sparsemax)
TANDEM_LIFT(squareplus)
TANDEM_LIFT(swish)
TANDEM_LIFT(tanh)
TANDEM_LIFT(tanh_shrink)
}  // namespace keras::activations
}  // namespace tandem
#undef TANDEM_LIFT_REDUCTION
