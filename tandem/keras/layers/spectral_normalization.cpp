#include "tandem/keras/layers/spectral_normalization.h"

#include <memory>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras {

WrapperImpl::WrapperImpl(std::string class_name, Layer layer, LayerSettings settings)
    : LayerImpl(std::move(class_name), std::move(settings)), layer_(std::move(layer)) {
  if (!layer_.defined())
    throw InvalidArgumentError(cat(prefix(), "a wrapper needs a layer to wrap."));
  add_layer(layer_, "layer");
}
void WrapperImpl::build_many(const std::vector<PartialShape>& inputs) {
  build_sublayer(layer_, inputs);
}
std::vector<Tensor> WrapperImpl::call_many(std::span<const Tensor> inputs,
                                           const CallOptions& options) {
  return layer_.outputs(std::vector<Tensor>(inputs.begin(), inputs.end()), options);
}

namespace {

class SpectralNormalizationImpl final : public WrapperImpl {
 public:
  SpectralNormalizationImpl(const Layer& layer, const SpectralNormalizationOptions& o)
      : WrapperImpl("SpectralNormalization", layer, {.name = o.name}),
        iterations_(o.power_iterations) {
    internal::require_positive("SpectralNormalization", "power_iterations", iterations_);
  }

  void build_many(const std::vector<PartialShape>& inputs) override {
    WrapperImpl::build_many(inputs);
    for (const Variable& weight : layer().weights()) {
      const std::string& name = weight.name();
      if (name.ends_with("kernel") || name.ends_with("embeddings")) {
        kernel_ = weight;
        break;
      }
    }
    if (!kernel_.defined()) {
      throw InvalidArgumentError(cat(prefix(), layer().class_name(),
                                     " object has no attribute 'kernel' nor 'embeddings'."));
    }
    vector_ = add_weight("vector_u", {1, kernel_.shape().dim(-1)},
                         {.initializer = initializers::TruncatedNormal({.stddev = 0.02}),
                          .trainable = false,
                          .saved_as = "vector_u"});
  }

  std::vector<Tensor> call_many(std::span<const Tensor> inputs,
                                const CallOptions& options) override {
    if (options.is_training()) normalize_kernel();
    std::vector<Tensor> outputs = WrapperImpl::call_many(inputs, options);
    for (Tensor& output : outputs) output = cast(output, inputs[0].dtype());
    return outputs;
  }
  void describe(Config& config) const override { config.set("power_iterations", iterations_); }

 private:
  static Tensor unit(const Tensor& x) { return x / maximum(sqrt(reduce_sum(square(x))), 1e-12); }

  // A kernel of zeros stays as it is.
  void normalize_kernel() {
    const Tensor kernel = kernel_.read_value();
    const Tensor matrix = reshape(kernel, {-1, kernel_.shape().dim(-1)});
    Tensor u = vector_.read_value(), v = u;
    for (std::int64_t i = 0; i < iterations_; ++i) {
      v = unit(matmul(u, matrix, {.transpose_b = true}));
      u = unit(matmul(v, matrix));
    }
    const Tensor sigma = reduce_sum(matmul(v, matrix) * u);
    const Tensor zero = reduce_all(equal(kernel, zeros_like(kernel)));
    vector_.assign(where(zero, vector_.read_value(), u));
    const Tensor divisor = where(zero, ones_like(sigma), sigma);
    kernel_.assign(kernel / divisor);
  }

  std::int64_t iterations_;
  Variable kernel_, vector_;
};

class PipelineImpl final : public LayerImpl {
 public:
  PipelineImpl(const std::vector<Layer>& layers, const std::string& name)
      : LayerImpl("Pipeline", {.name = name}) {
    for (const Layer& layer : layers) add_layer(layer);
    without_weights();  // layers are built as they are called
    keep_dtypes();
  }
  std::vector<Tensor> call_many(std::span<const Tensor> inputs, const CallOptions& how) override {
    std::vector<Tensor> values(inputs.begin(), inputs.end());
    for (const Layer& layer : sublayers()) values = layer.outputs(values, how);
    return values;
  }
};

}  // namespace

SpectralNormalization::SpectralNormalization(const Layer& layer,
                                             const SpectralNormalizationOptions& o)
    : Layer(make_layer<SpectralNormalizationImpl>(layer, o)) {}
Pipeline::Pipeline(const std::vector<Layer>& layers, const String& name)
    : Layer(make_layer<PipelineImpl>(layers, name)) {}

}  // namespace tandem::keras
