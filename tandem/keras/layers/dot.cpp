#include "tandem/core/error.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/shape_text.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/keras/layers/merging.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras {
namespace {

class DotImpl final : public LayerImpl {
 public:
  DotImpl(int first, int second, const DotOptions& o)
      : LayerImpl("Dot", {.name = o.name, .dtype = o.dtype}),
        axes_{first, second},
        normalize_(o.normalize) {
    without_weights();
  }

  std::vector<Tensor> call_many(std::span<const Tensor> inputs, const CallOptions&) override {
    if (inputs.size() != 2) {
      throw InvalidArgumentError(
          cat("A `Dot` layer should be called on exactly 2 inputs. Received ", inputs.size(), "."));
    }
    const int a = axis_of(inputs[0], axes_[0]);
    const int b = axis_of(inputs[1], axes_[1]);
    const std::int64_t size_a = inputs[0].dim(a);
    const std::int64_t size_b = inputs[1].dim(b);
    if (size_a >= 0 && size_b >= 0 && size_a != size_b) {
      throw InvalidArgumentError(
          cat(prefix(), "incompatible input shapes: axis values ", size_a, " (at axis ", a,
              ") != ", size_b, " (at axis ", b,
              "). Full input shapes: ", internal::shape_text(inputs[0].partial_shape()), ", ",
              internal::shape_text(inputs[1].partial_shape()), "."));
    }
    const Tensor x = normalize_ ? normalized(inputs[0], a) : inputs[0];
    const Tensor y = normalize_ ? normalized(inputs[1], b) : inputs[1];
    // The batch is 'a' and the axis that goes is 'z'.
    std::string result = "a";
    char next = 'b';
    const auto letters = [&](const Tensor& t, int axis) {
      std::string text = "a";
      for (int i = 1; i < t.rank(); ++i) {
        if (i != axis) result += next;
        text += i == axis ? 'z' : next++;
      }
      return text;
    };
    const std::string in_x = letters(x, a);
    const std::string in_y = letters(y, b);
    const Tensor product = einsum(in_x + "," + in_y + "->" + result, {x, y});
    return {result.size() == 1 ? expand_dims(product, 1) : product};
  }

 private:
  int axis_of(const Tensor& x, int axis) const {
    const int rank = x.rank();
    const int found = axis < 0 ? axis + rank : axis;
    if (rank < 2 || rank > 12 || found <= 0 || found >= rank) {
      throw InvalidArgumentError(
          cat(prefix(), "axis ", axis, " is none of an input of shape ",
              internal::shape_text(x.partial_shape()),
              ": give one after the batch, from 1 to the number of axes minus 1."));
    }
    return found;
  }

  static Tensor normalized(const Tensor& x, int axis) {
    const Tensor inverse = math::rsqrt(reduce_sum(math::square(x), {axis}, true));
    return x * minimum(inverse, 1e12);
  }

  int axes_[2];
  bool normalize_;
};

constexpr auto kArguments = [](auto& a, auto& o, auto& axes) {
  a("axes", axes);
  a("normalize", o.normalize);
};

// Keras has one argument for what are two here.
Layer read_dot(internal::ArgumentReader& arguments) {
  DotOptions options;
  LayerAxes axes = -1;
  arguments.settings(options);
  kArguments(arguments, options, axes);
  return Dot(axes.list().front(), axes.list().back(), options);
}

}  // namespace

Dot::Dot(int axes, const DotOptions& options) : Dot(axes, axes, options) {}
Dot::Dot(int axis_of_first, int axis_of_second, const DotOptions& options)
    : Layer(internal::with_arguments(
          std::make_shared<DotImpl>(axis_of_first, axis_of_second, options), kArguments, options,
          LayerAxes({axis_of_first, axis_of_second}))) {}

namespace {
const bool kRegistered = internal::ClassRegistry<Layer>::instance().add("Dot", read_dot);
}  // namespace

}  // namespace tandem::keras
