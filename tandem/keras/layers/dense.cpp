#include "tandem/keras/layers/dense.h"

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/nn_ops.h"

namespace tandem::keras {
namespace {

class DenseImpl final : public LayerImpl {
 public:
  DenseImpl(std::int64_t units, const DenseOptions& o)
      : LayerImpl("Dense", {.name = o.name, .trainable = o.trainable, .dtype = o.dtype}),
        units_(units),
        options_(o) {
    internal::require_positive("Dense", "units", units);
    require_min_rank(2);
    pass_masks();
  }

  void build(const PartialShape& input) override {
    const std::int64_t size = known_size(input, -1);
    kernel_ = add_weight("kernel", {size, units_},
                         {.initializer = options_.kernel_initializer,
                          .regularizer = options_.kernel_regularizer,
                          .constraint = options_.kernel_constraint,
                          .saved_as = "_kernel"});
    if (options_.use_bias) {
      bias_ = add_weight("bias", {units_},
                         {.initializer = options_.bias_initializer,
                          .regularizer = options_.bias_regularizer,
                          .constraint = options_.bias_constraint});
    }
    require_size(-1, size);
  }

  Tensor call(const Tensor& input, bool) override {
    // Keras' product of integers and weights is floating.
    const Tensor x = is_floating(input.dtype()) || is_complex(input.dtype())
                         ? input
                         : cast(input, compute_dtype());
    Tensor y = product(x);
    if (options_.use_bias) y = nn::bias_add(std::move(y), bias_);
    y = options_.activation(y);
    if (options_.activity_regularizer.defined()) {
      add_loss(internal::activity_penalty(options_.activity_regularizer, y));
    }
    return y;
  }

 private:
  // One matrix product over all leading axes together.
  Tensor product(const Tensor& x) const {
    if (x.rank() == 2) return matmul(x, kernel_);
    std::vector<std::int64_t> sizes = x.partial_shape().dims();
    sizes.back() = units_;
    int unknown = 0;
    for (const std::int64_t size : sizes) unknown += size < 0;
    Tensor flat = matmul(reshape(x, {-1, x.dim(-1)}), kernel_);
    if (unknown <= 1) return reshape(std::move(flat), sizes);
    const Tensor leading = slice(shape(x), {0}, {x.rank() - 1});
    return reshape(std::move(flat),
                   IntList(concat({leading, Tensor{static_cast<int>(units_)}}, 0)));
  }

  std::int64_t units_;
  DenseOptions options_;
  Variable kernel_;
  Variable bias_;
};

constexpr auto kArguments = [](auto& a, auto& o, auto& units) {
  a("units", units);
  a("activation", o.activation);
  a("use_bias", o.use_bias);
  a("kernel_initializer", o.kernel_initializer);
  a("bias_initializer", o.bias_initializer);
  a("kernel_regularizer", o.kernel_regularizer);
  a("kernel_constraint", o.kernel_constraint);
  a("bias_regularizer", o.bias_regularizer);
  a("bias_constraint", o.bias_constraint);
  a("activity_regularizer", o.activity_regularizer);
};

}  // namespace

Dense::Dense(std::int64_t units, const DenseOptions& options)
    : Layer(internal::with_arguments(std::make_shared<DenseImpl>(units, options), kArguments,
                                     options, units)) {}

namespace {
const bool kRegistered =
    internal::register_layer_class<Dense, DenseOptions, std::int64_t>("Dense", kArguments);
}  // namespace

}  // namespace tandem::keras
