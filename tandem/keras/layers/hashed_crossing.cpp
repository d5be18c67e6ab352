#include "tandem/keras/layers/hashed_crossing.h"

#include <memory>

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/vocabulary.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/ragged_functions.h"

namespace tandem::keras {
namespace {

class HashedCrossingImpl final : public LayerImpl {
 public:
  HashedCrossingImpl(std::int64_t num_bins, const HashedCrossingOptions& o)
      : LayerImpl("HashedCrossing", {.name = o.name}), num_bins_(num_bins), mode_(o.output_mode) {
    internal::require_positive("HashedCrossing", "num_bins", num_bins);
    if (mode_ != "int" && mode_ != "one_hot") {
      throw InvalidArgumentError(
          cat("HashedCrossing: output_mode must be 'int' or 'one_hot', got '", mode_, "'."));
    }
    without_weights();
    keep_dtypes();
  }

  std::vector<Tensor> call_many(std::span<const Tensor> inputs, const CallOptions&) override {
    if (inputs.size() < 2) {
      throw InvalidArgumentError(
          cat(prefix(), "`HashedCrossing` should be called on at least two inputs."));
    }
    std::vector<RaggedTensor> columns;
    for (const Tensor& x : inputs) {
      if (x.rank() < 1 || x.rank() > 2 || (x.rank() == 2 && x.dim(1) != 1)) {
        throw InvalidArgumentError(
            cat(prefix(), "All `HashedCrossing` inputs should have shape ",
                "`(batch_size)` or `(batch_size, 1)`. Received: ", x.partial_shape(), "."));
      }
      if (x.dtype() != DType::kString && !is_integer(x.dtype())) {
        throw InvalidArgumentError(cat(prefix(), "All `HashedCrossing` inputs should have an ",
                                       "integer or string dtype. Received: ", x.dtype(), "."));
      }
      const Tensor wide = x.dtype() == DType::kString ? x : cast(x, int64);
      columns.push_back(RaggedTensor::from_tensor(x.rank() == 1 ? expand_dims(wide, -1) : wide));
    }
    const Tensor crossed = ragged::cross_hashed(columns, num_bins_).to_tensor();
    const Tensor bins = inputs[0].rank() == 1 ? reshape(crossed, {-1}) : reshape(crossed, {-1, 1});
    return {internal::encode_categories(bins, num_bins_, mode_)};
  }

 private:
  std::int64_t num_bins_;
  std::string mode_;
};

constexpr auto kArguments = [](auto& a, auto& o, auto& num_bins) {
  a("num_bins", num_bins);
  a("output_mode", o.output_mode);
};

}  // namespace

HashedCrossing::HashedCrossing(std::int64_t num_bins, const HashedCrossingOptions& o)
    : Layer(internal::with_arguments(std::make_shared<HashedCrossingImpl>(num_bins, o), kArguments,
                                     o, num_bins)) {}

namespace {
const bool kRegistered =
    internal::register_layer_class<HashedCrossing, HashedCrossingOptions, std::int64_t>(
        "HashedCrossing", kArguments);
}  // namespace
}  // namespace tandem::keras
