#include "tandem/keras/layers/einsum_dense.h"

#include <map>
#include <memory>

#include "tandem/core/error.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/operators.h"

namespace tandem::keras {
namespace {

// The letters of an equation; those that "..." stands for are left out.
struct Letters {
  std::string input, kernel, output;
  bool dots_first = false;  // "...ab,bc->...ac"
  bool dots_last = false;   // "ab...,bc->ac..."
};

Letters letters_of(const std::string& equation) {
  const auto fail = [&] {
    throw InvalidArgumentError(
        cat("EinsumDense: Invalid einsum equation '", equation,
            "'. Equations must be in the form [X],[Y]->[Z], ...[X],[Y]->...[Z], or "
            "[X]...,[Y]->[Z]...."));
  };
  const std::size_t comma = equation.find(','), arrow = equation.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || arrow < comma) fail();
  Letters l{equation.substr(0, comma), equation.substr(comma + 1, arrow - comma - 1),
            equation.substr(arrow + 2)};
  const auto strip = [](std::string& text, bool& first, bool& last) {
    if (text.starts_with("...")) {
      first = true;
      text.erase(0, 3);
    } else if (text.ends_with("...")) {
      last = true;
      text.erase(text.size() - 3);
    }
  };
  bool out_first = false, out_last = false;
  strip(l.input, l.dots_first, l.dots_last);
  strip(l.output, out_first, out_last);
  if (out_first != l.dots_first || out_last != l.dots_last) fail();
  for (const std::string* part : {&l.input, &l.kernel, &l.output})
    for (const char c : *part)
      if (!std::isalpha(static_cast<unsigned char>(c))) fail();
  return l;
}

class EinsumDenseImpl final : public LayerImpl {
 public:
  EinsumDenseImpl(const std::string& equation, const std::vector<std::int64_t>& output_shape,
                  const EinsumDenseOptions& o)
      : LayerImpl("EinsumDense", {.name = o.name, .trainable = o.trainable, .dtype = o.dtype}),
        equation_(equation),
        letters_(letters_of(equation)),
        output_shape_(output_shape),
        options_(o) {}

  void build(const PartialShape& input) override {
    const std::map<char, std::int64_t> sizes = sizes_of_letters(input);
    Shape kernel;
    for (const char c : letters_.kernel) {
      const auto found = sizes.find(c);
      if (found == sizes.end() || found->second < 0) {
        throw InvalidArgumentError(cat(prefix(), "weight dimension '", std::string(1, c),
                                       "' did not have a match in either the input or the output "
                                       "shape, or its size is not known."));
      }
      kernel.add_dim(found->second);
    }
    kernel_ = add_weight("kernel", kernel,
                         {.initializer = options_.kernel_initializer,
                          .regularizer = options_.kernel_regularizer,
                          .constraint = options_.kernel_constraint,
                          .saved_as = "_kernel"});
    if (options_.bias_axes.empty()) return;
    // The bias has the sizes of its axes, from the first of them on, and ones between.
    Shape bias;
    bool begun = false;
    for (const char c : letters_.output) {
      const bool has = options_.bias_axes.find(c) != std::string::npos;
      begun = begun || has;
      if (begun) bias.add_dim(has ? sizes.at(c) : 1);
    }
    if (letters_.dots_last) {
      throw UnimplementedError(cat(prefix(), "a bias with '...' at the end of the equation."));
    }
    bias_ = add_weight("bias", bias,
                       {.initializer = options_.bias_initializer,
                        .regularizer = options_.bias_regularizer,
                        .constraint = options_.bias_constraint});
  }

  Tensor call(const Tensor& x, bool) override {
    Tensor y = einsum(equation_, {x, Tensor(kernel_)});
    if (bias_.defined()) y = y + bias_;
    return options_.activation(y);
  }

 private:
  std::map<char, std::int64_t> sizes_of_letters(const PartialShape& input) const {
    const auto count = static_cast<int>(letters_.input.size());
    const int rank = input.rank();
    const bool dots = letters_.dots_first || letters_.dots_last;
    if (rank < count || (!dots && rank != count)) {
      throw InvalidArgumentError(cat(prefix(), "the equation '", equation_, "' does not fit an ",
                                     "input of shape ", input, "."));
    }
    std::map<char, std::int64_t> sizes;
    for (int i = 0; i < count; ++i) {
      const int axis = letters_.dots_first ? rank - count + i : i;
      sizes[letters_.input[static_cast<std::size_t>(i)]] = input.dim(axis);
    }
    // The given sizes are those of the last axes (of the first ones after the batch with "..." at
    // the end).
    const auto outputs = letters_.output.size();
    if (output_shape_.size() > outputs) {
      throw InvalidArgumentError(cat(prefix(), "output_shape has ", output_shape_.size(),
                                     " sizes, but the equation '", equation_, "' has ", outputs,
                                     " axes in the result."));
    }
    const std::size_t skipped = outputs - output_shape_.size();
    for (std::size_t i = 0; i < output_shape_.size(); ++i) {
      const char c = letters_.output[skipped + i];
      const std::int64_t size = output_shape_[i];
      const auto known = sizes.find(c);
      if (known == sizes.end()) {
        sizes[c] = size;
      } else if (size >= 0 && known->second >= 0 && known->second != size) {
        throw InvalidArgumentError(cat(prefix(),
                                       "input and output shape do not match at shared dimension '",
                                       std::string(1, c), "'. Input shape is ", known->second,
                                       ", and output shape is ", size, "."));
      }
    }
    return sizes;
  }

  std::string equation_;
  Letters letters_;
  std::vector<std::int64_t> output_shape_;
  EinsumDenseOptions options_;
  Variable kernel_, bias_;
};

constexpr auto kArguments = [](auto& a, auto& o, auto& equation, auto& output_shape) {
  a("equation", equation);
  a.sizes("output_shape", output_shape);
  a("activation", o.activation);
  a("bias_axes", o.bias_axes);
  a("kernel_initializer", o.kernel_initializer);
  a("bias_initializer", o.bias_initializer);
  a("kernel_regularizer", o.kernel_regularizer);
  a("bias_regularizer", o.bias_regularizer);
  a("kernel_constraint", o.kernel_constraint);
  a("bias_constraint", o.bias_constraint);
};

}  // namespace

EinsumDense::EinsumDense(const String& equation, const std::vector<std::int64_t>& output_shape,
                         const EinsumDenseOptions& o)
    : Layer(internal::with_arguments(std::make_shared<EinsumDenseImpl>(equation, output_shape, o),
                                     kArguments, o, equation, output_shape)) {}

namespace {
const bool kRegistered =
    internal::register_layer_class<EinsumDense, EinsumDenseOptions, std::string,
                                   std::vector<std::int64_t>>("EinsumDense", kArguments);
}  // namespace
}  // namespace tandem::keras
