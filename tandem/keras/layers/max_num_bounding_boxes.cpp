#include "tandem/keras/layers/max_num_bounding_boxes.h"

#include <memory>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/pad_ops.h"

namespace tandem::keras {
namespace {

class MaxNumImpl final : public LayerImpl {
 public:
  MaxNumImpl(std::int64_t max_number, const MaxNumBoundingBoxesOptions& o)
      : LayerImpl("MaxNumBoundingBoxes", {.name = o.name}),
        max_number_(max_number),
        fill_(static_cast<double>(o.fill_value)) {
    internal::require_positive("MaxNumBoundingBoxes", "max_number", max_number);
    without_weights();
    keep_dtypes();
  }
  std::vector<Tensor> call_many(std::span<const Tensor> inputs, const CallOptions&) override {
    if (inputs.size() != 2 || inputs[0].rank() != 3 || inputs[0].dim(-1) != 4 ||
        inputs[1].rank() != 2) {
      throw InvalidArgumentError(
          cat(prefix(), "takes boxes [batch, boxes, 4] and labels [batch, boxes]: outputs({boxes, ",
              "labels})."));
    }
    return {limited(inputs[0], {-1, max_number_, 4}), limited(inputs[1], {-1, max_number_})};
  }

 private:
  Tensor limited(const Tensor& given, const std::vector<std::int64_t>& sizes) const {
    const Tensor first = given[{Slice(), Slice(0, max_number_)}];
    const Tensor missing = Tensor(static_cast<int>(max_number_)) - shape(first)[1];
    const Tensor none = zeros_like(missing);
    std::vector<Tensor> margins(static_cast<std::size_t>(2 * given.rank()), none);
    margins[3] = missing;
    return reshape(pad(first, reshape(stack(margins), {-1, 2}), PadMode::kConstant, fill_), sizes);
  }

  std::int64_t max_number_;
  double fill_;
};

constexpr auto kArguments = [](auto& a, auto& o, auto& max_number) {
  a("max_number", max_number);
  a("fill_value", o.fill_value);
};
const bool kRegistered =
    internal::register_layer_class<MaxNumBoundingBoxes, MaxNumBoundingBoxesOptions, std::int64_t>(
        "MaxNumBoundingBoxes", kArguments);

}  // namespace

MaxNumBoundingBoxes::MaxNumBoundingBoxes(std::int64_t max_number,
                                         const MaxNumBoundingBoxesOptions& options)
    : Layer(internal::with_arguments(std::make_shared<MaxNumImpl>(max_number, options), kArguments,
                                     options, max_number)) {}

}  // namespace tandem::keras
