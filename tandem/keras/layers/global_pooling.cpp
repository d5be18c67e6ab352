#include "tandem/keras/layers/global_pooling.h"

#include <vector>

#include "tandem/keras/internal/images.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/ops/reduction_ops.h"

namespace tandem::keras {
namespace {

class GlobalPoolingImpl final : public LayerImpl {
 public:
  using Function = Tensor (*)(Tensor, Axes, bool);

  GlobalPoolingImpl(const std::string& class_name, const GlobalPoolingOptions& o, int dims,
                    Function function)
      : LayerImpl(class_name, {.name = o.name}), options_(o), function_(function) {
    const bool last = internal::ops_data_format(class_name, o.data_format) == "NHWC";
    for (int i = 0; i < dims; ++i) axes_.push_back(i + (last ? 1 : 2));
    without_weights();
    require_rank(dims + 2);
  }

  Tensor call(const Tensor& x, bool) override { return function_(x, axes_, options_.keepdims); }
  void describe(Config& config) const override {
    config.set("data_format", options_.data_format).set("keepdims", options_.keepdims);
  }

 private:
  GlobalPoolingOptions options_;
  Function function_;
  std::vector<std::int64_t> axes_;
};

}  // namespace

#define TANDEM_KERAS_GLOBAL_POOLING(NAME, DIMS, FUNCTION) \
  NAME::NAME(const GlobalPoolingOptions& options)         \
      : Layer(std::make_shared<GlobalPoolingImpl>(#NAME, options, DIMS, FUNCTION)) {}
TANDEM_KERAS_GLOBAL_POOLING(GlobalAveragePooling1D, 1, reduce_mean)
TANDEM_KERAS_GLOBAL_POOLING(GlobalAveragePooling2D, 2, reduce_mean)
TANDEM_KERAS_GLOBAL_POOLING(GlobalAveragePooling3D, 3, reduce_mean)
TANDEM_KERAS_GLOBAL_POOLING(GlobalMaxPooling1D, 1, reduce_max)
TANDEM_KERAS_GLOBAL_POOLING(GlobalMaxPooling2D, 2, reduce_max)
TANDEM_KERAS_GLOBAL_POOLING(GlobalMaxPooling3D, 3, reduce_max)
#undef TANDEM_KERAS_GLOBAL_POOLING

}  // namespace tandem::keras
