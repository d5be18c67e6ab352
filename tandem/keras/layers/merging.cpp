#include "tandem/keras/layers/merging.h"

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/names.h"
#include "tandem/keras/internal/shape_text.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"

namespace tandem::keras {
namespace {

std::string shapes_text(std::span<const Tensor> inputs) {
  std::vector<std::string> shapes;
  for (const Tensor& t : inputs) shapes.push_back(internal::shape_text(t.partial_shape()));
  return internal::join(shapes);
}

class Merge final : public LayerImpl {
 public:
  using Pairwise = Tensor (*)(const Tensor&, const Tensor&);

  // What masks do to the values.
  enum class MaskKind : std::uint8_t { kNone, kExtreme, kProduct };

  Merge(const std::string& class_name, const NamedOptions& o, Pairwise combine, bool two = false,
        bool mean = false, MaskKind kind = MaskKind::kNone)
      : LayerImpl(class_name, {.name = o.name, .dtype = o.dtype}),
        combine_(combine),
        two_(two),
        mean_(mean),
        kind_(kind) {
    without_weights();
  }

  std::vector<Tensor> call_many(std::span<const Tensor> inputs, const CallOptions& how) override {
    if (two_ ? inputs.size() != 2 : inputs.size() < 2) {
      throw InvalidArgumentError(cat("A `", class_name(), "` layer should be called on ",
                                     two_ ? "exactly" : "a list of at least",
                                     " 2 inputs. Received ", inputs.size(), "."));
    }
    for (const Tensor& t : inputs.subspan(1))
      require_fit(inputs, inputs[0].partial_shape(), t.partial_shape());
    Tensor result = inputs[0];
    if (kind_ != MaskKind::kNone && !how.mask.empty()) {
      return {kind_ == MaskKind::kProduct ? masked_product(inputs, how)
                                          : masked_extreme(inputs, how)};
    }
    for (const Tensor& t : inputs.subspan(1)) result = combine_(result, t);
    return {mean_ ? result / static_cast<double>(inputs.size()) : result};
  }

  // What any input has counts; nothing is masked if an input has no mask.
  std::vector<Tensor> compute_masks(std::span<const Tensor>,
                                    std::span<const Tensor> masks) const override {
    Tensor any;
    for (const Tensor& mask : masks) {
      if (!mask.defined()) return {};
      any = any.defined() ? logical_or(any, mask) : mask;
    }
    return {any};
  }

 private:
  static Tensor wide(const Tensor& mask, const Tensor& x) {
    return logical_or(expand_dims(cast(mask, DType::kBool), -1), zeros_like(cast(x, DType::kBool)));
  }

  // The smallest or largest of the values that the masks leave.
  Tensor masked_extreme(std::span<const Tensor> inputs, const CallOptions& how) const {
    Tensor result;
    Tensor known;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      Tensor x = inputs[i];
      Tensor mask = how.mask_of(i);
      if (mask.defined()) mask = wide(mask, x);
      if (!result.defined()) {
        result = x;
        known = mask;
        continue;
      }
      if (mask.defined()) x = where(mask, x, result);
      if (known.defined()) result = where(known, result, x);
      known = mask.defined() && known.defined() ? logical_or(known, mask) : Tensor();
      result = combine_(result, x);
    }
    return result;
  }

  // What is masked counts as 1; where all are, the product is 0.
  Tensor masked_product(std::span<const Tensor> inputs, const CallOptions& how) const {
    Tensor result;
    Tensor known;
    bool all = true;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      Tensor x = inputs[i];
      if (Tensor mask = how.mask_of(i); mask.defined()) {
        mask = wide(mask, x);
        x = where(mask, x, ones_like(x));
        known = known.defined() ? logical_or(known, mask) : mask;
      } else {
        all = false;
      }
      result = result.defined() ? result * x : x;
    }
    return all ? where(known, result, zeros_like(result)) : result;
  }

  void require_fit(std::span<const Tensor> inputs, const PartialShape& a,
                   const PartialShape& b) const {
    try {
      broadcast(a, b);
    } catch (const InvalidArgumentError&) {
      throw InvalidArgumentError(cat(prefix(), "Inputs have incompatible shapes. Received shapes ",
                                     shapes_text(inputs), "."));
    }
  }

  Pairwise combine_;
  bool two_;
  bool mean_;
  MaskKind kind_;
};

class ConcatenateImpl final : public LayerImpl {
 public:
  explicit ConcatenateImpl(const ConcatenateOptions& o)
      : LayerImpl("Concatenate", {.name = o.name, .dtype = o.dtype}), axis_(o.axis) {
    without_weights();
  }

  std::vector<Tensor> call_many(std::span<const Tensor> inputs, const CallOptions&) override {
    if (inputs.empty())
      throw InvalidArgumentError("A `Concatenate` layer should be called on a list of inputs.");
    const int rank = inputs[0].rank();
    for (const Tensor& t : inputs) {
      if (rank >= 0 && t.rank() >= 0 && t.rank() != rank) refuse(inputs);
    }
    if (rank >= 0) {
      const int axis = normalize_axis(axis_, rank);
      for (const Tensor& t : inputs) {
        for (int i = 0; i < rank; ++i) {
          const bool known = t.dim(i) >= 0 && inputs[0].dim(i) >= 0;
          if (i != axis && known && t.dim(i) != inputs[0].dim(i)) refuse(inputs);
        }
      }
    }
    return {concat({inputs.begin(), inputs.end()}, axis_)};
  }

  // An input without a mask counts everywhere.
  std::vector<Tensor> compute_masks(std::span<const Tensor> inputs,
                                    std::span<const Tensor> masks) const override {
    if (std::none_of(masks.begin(), masks.end(), [](const Tensor& m) { return m.defined(); }))
      return {};
    std::vector<Tensor> wide;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Tensor nowhere = zeros_like(cast(inputs[i], DType::kBool));
      if (!masks[i].defined()) {
        wide.push_back(logical_not(nowhere));
      } else if (masks[i].rank() < inputs[i].rank()) {
        wide.push_back(logical_or(expand_dims(masks[i], -1), nowhere));
      } else {
        wide.push_back(masks[i]);
      }
    }
    return {reduce_any(concat(wide, axis_), {-1})};
  }

 private:
  [[noreturn]] void refuse(std::span<const Tensor> inputs) const {
    throw InvalidArgumentError(
        cat("A `Concatenate` layer requires inputs with matching shapes except for the "
            "concatenation axis ",
            axis_, ". Received: ", shapes_text(inputs), "."));
  }
  int axis_;
};

std::shared_ptr<LayerImpl> merge(const char* name, const NamedOptions& o, Merge::Pairwise combine,
                                 Merge::MaskKind kind = Merge::MaskKind::kNone) {
  return std::make_shared<Merge>(name, o, combine, false, false, kind);
}

constexpr auto kConcatenate = [](auto& a, auto& o) { a("axis", o.axis); };
constexpr auto kNone = [](auto&, auto&) {};

}  // namespace

Add::Add(const NamedOptions& o)
    : Layer(merge("Add", o, [](const Tensor& a, const Tensor& b) { return a + b; })) {}
Subtract::Subtract(const NamedOptions& o)
    : Layer(std::make_shared<Merge>(
          "Subtract", o, [](const Tensor& a, const Tensor& b) { return a - b; }, true)) {}
Multiply::Multiply(const NamedOptions& o)
    : Layer(merge(
          "Multiply", o, [](const Tensor& a, const Tensor& b) { return a * b; },
          Merge::MaskKind::kProduct)) {}
Average::Average(const NamedOptions& o)
    : Layer(std::make_shared<Merge>(
          "Average", o, [](const Tensor& a, const Tensor& b) { return a + b; }, false, true)) {}
Maximum::Maximum(const NamedOptions& o)
    : Layer(merge(
          "Maximum", o, [](const Tensor& a, const Tensor& b) { return maximum(a, b); },
          Merge::MaskKind::kExtreme)) {}
Minimum::Minimum(const NamedOptions& o)
    : Layer(merge(
          "Minimum", o, [](const Tensor& a, const Tensor& b) { return minimum(a, b); },
          Merge::MaskKind::kExtreme)) {}
Concatenate::Concatenate(const ConcatenateOptions& o)
    : Layer(internal::with_arguments(std::make_shared<ConcatenateImpl>(o), kConcatenate, o)) {}

namespace {
const bool kRegistered[] = {
    internal::register_layer_class<Add, NamedOptions>("Add", kNone),
    internal::register_layer_class<Subtract, NamedOptions>("Subtract", kNone),
    internal::register_layer_class<Multiply, NamedOptions>("Multiply", kNone),
    internal::register_layer_class<Average, NamedOptions>("Average", kNone),
    internal::register_layer_class<Maximum, NamedOptions>("Maximum", kNone),
    internal::register_layer_class<Minimum, NamedOptions>("Minimum", kNone),
    internal::register_layer_class<Concatenate, ConcatenateOptions>("Concatenate", kConcatenate)};
}  // namespace

}  // namespace tandem::keras
