#include "tandem/keras/layers/masking.h"

#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/reduction_ops.h"

namespace tandem::keras {
namespace {

class MaskingImpl final : public LayerImpl {
 public:
  explicit MaskingImpl(const MaskingOptions& o)
      : LayerImpl("Masking", {.name = o.name, .dtype = o.dtype}), value_(o.mask_value) {
    without_weights();
    require_min_rank(1);
  }

  Tensor call(const Tensor& x, bool) override { return where(counts(x, true), x, zeros_like(x)); }
  std::vector<Tensor> compute_masks(std::span<const Tensor> inputs,
                                    std::span<const Tensor>) const override {
    return {counts(inputs[0], false)};
  }

 private:
  Tensor counts(const Tensor& x, bool keepdims) const {
    return reduce_any(not_equal(x, value_), {-1}, keepdims);
  }

  double value_;
};

constexpr auto kArguments = [](auto& a, auto& o) { a("mask_value", o.mask_value); };

}  // namespace

Masking::Masking(const MaskingOptions& options)
    : Layer(internal::with_arguments(std::make_shared<MaskingImpl>(options), kArguments, options)) {
}

namespace {
const bool kRegistered =
    internal::register_layer_class<Masking, MaskingOptions>("Masking", kArguments);
}  // namespace

}  // namespace tandem::keras
