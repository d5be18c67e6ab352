#include "tandem/keras/layers/global_pooling.h"

#include <vector>

#include "tandem/core/error.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/images.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"

namespace tandem::keras {
namespace {

class GlobalPoolingImpl final : public LayerImpl {
 public:
  using Function = Tensor (*)(Tensor, Axes, bool);

  GlobalPoolingImpl(const std::string& class_name, const GlobalPoolingOptions& o, int dims,
                    Function function)
      : LayerImpl(class_name, {.name = o.name, .dtype = o.dtype}),
        options_(o),
        function_(function) {
    const bool last = internal::ops_data_format(class_name, o.data_format) == "NHWC";
    for (int i = 0; i < dims; ++i) axes_.push_back(i + (last ? 1 : 2));
    without_weights();
    require_rank(dims + 2);
  }

  std::vector<Tensor> call_many(std::span<const Tensor> inputs, const CallOptions& how) override {
    if (inputs.size() != 1) {
      throw InvalidArgumentError(cat(prefix(), "takes one input, got ", inputs.size(), "."));
    }
    const Tensor mask = how.mask_of(0);
    if (mask.defined() && class_name() == "GlobalAveragePooling1D") {
      return {masked_mean(inputs[0], mask)};
    }
    return {function_(inputs[0], axes_, options_.keepdims)};
  }

 private:
  // The mean of the steps that the mask leaves.
  Tensor masked_mean(const Tensor& x, const Tensor& mask) const {
    const Tensor keep = expand_dims(cast(mask, DType::kBool), axes_[0] == 1 ? 2 : 1);
    const Tensor sum = reduce_sum(where(keep, x, zeros_like(x)), axes_, options_.keepdims);
    return sum / reduce_sum(cast(keep, x.dtype()), axes_, options_.keepdims);
  }

  GlobalPoolingOptions options_;
  Function function_;
  std::vector<std::int64_t> axes_;
};

constexpr auto kArguments = [](auto& a, auto& o) {
  a("data_format", o.data_format);
  a("keepdims", o.keepdims);
};

}  // namespace

#define TANDEM_KERAS_GLOBAL_POOLING(NAME, DIMS, FUNCTION)                                  \
  NAME::NAME(const GlobalPoolingOptions& options)                                          \
      : Layer(internal::with_arguments(                                                    \
            std::make_shared<GlobalPoolingImpl>(                                           \
                #NAME, options, DIMS, static_cast<GlobalPoolingImpl::Function>(FUNCTION)), \
            kArguments, options)) {}
TANDEM_KERAS_GLOBAL_POOLING(GlobalAveragePooling1D, 1, reduce_mean)
TANDEM_KERAS_GLOBAL_POOLING(GlobalAveragePooling2D, 2, reduce_mean)
TANDEM_KERAS_GLOBAL_POOLING(GlobalAveragePooling3D, 3, reduce_mean)
TANDEM_KERAS_GLOBAL_POOLING(GlobalMaxPooling1D, 1, reduce_max)
TANDEM_KERAS_GLOBAL_POOLING(GlobalMaxPooling2D, 2, reduce_max)
TANDEM_KERAS_GLOBAL_POOLING(GlobalMaxPooling3D, 3, reduce_max)
#undef TANDEM_KERAS_GLOBAL_POOLING

namespace {
const bool kRegistered[] = {
    internal::register_layer_class<GlobalAveragePooling1D, GlobalPoolingOptions>(
        "GlobalAveragePooling1D", kArguments),
    internal::register_layer_class<GlobalAveragePooling2D, GlobalPoolingOptions>(
        "GlobalAveragePooling2D", kArguments),
    internal::register_layer_class<GlobalAveragePooling3D, GlobalPoolingOptions>(
        "GlobalAveragePooling3D", kArguments),
    internal::register_layer_class<GlobalMaxPooling1D, GlobalPoolingOptions>("GlobalMaxPooling1D",
                                                                             kArguments),
    internal::register_layer_class<GlobalMaxPooling2D, GlobalPoolingOptions>("GlobalMaxPooling2D",
                                                                             kArguments),
    internal::register_layer_class<GlobalMaxPooling3D, GlobalPoolingOptions>("GlobalMaxPooling3D",
                                                                             kArguments)};
}  // namespace

}  // namespace tandem::keras
