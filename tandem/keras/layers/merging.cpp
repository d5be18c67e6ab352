#include "tandem/keras/layers/merging.h"

#include "tandem/core/error.h"
#include "tandem/keras/internal/names.h"
#include "tandem/keras/internal/shape_text.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/operators.h"

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

  Merge(const std::string& class_name, const NamedOptions& o, Pairwise combine, bool two = false,
        bool mean = false)
      : LayerImpl(class_name, {.name = o.name}), combine_(combine), two_(two), mean_(mean) {
    without_weights();
  }

  std::vector<Tensor> call_many(std::span<const Tensor> inputs, const CallOptions&) override {
    if (two_ ? inputs.size() != 2 : inputs.size() < 2) {
      throw InvalidArgumentError(cat("A `", class_name(), "` layer should be called on ",
                                     two_ ? "exactly" : "a list of at least",
                                     " 2 inputs. Received ", inputs.size(), "."));
    }
    for (const Tensor& t : inputs.subspan(1))
      require_fit(inputs, inputs[0].partial_shape(), t.partial_shape());
    Tensor result = inputs[0];
    for (const Tensor& t : inputs.subspan(1)) result = combine_(result, t);
    return {mean_ ? result / static_cast<double>(inputs.size()) : result};
  }

 private:
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
};

class ConcatenateImpl final : public LayerImpl {
 public:
  explicit ConcatenateImpl(const ConcatenateOptions& o)
      : LayerImpl("Concatenate", {.name = o.name}), axis_(o.axis) {
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
  void describe(Config& config) const override { config.set("axis", std::int64_t{axis_}); }

 private:
  [[noreturn]] void refuse(std::span<const Tensor> inputs) const {
    throw InvalidArgumentError(
        cat("A `Concatenate` layer requires inputs with matching shapes except for the "
            "concatenation axis ",
            axis_, ". Received: ", shapes_text(inputs), "."));
  }
  int axis_;
};

std::shared_ptr<LayerImpl> merge(const char* name, const NamedOptions& o, Merge::Pairwise combine) {
  return std::make_shared<Merge>(name, o, combine);
}

}  // namespace

Add::Add(const NamedOptions& o)
    : Layer(merge("Add", o, [](const Tensor& a, const Tensor& b) { return a + b; })) {}
Subtract::Subtract(const NamedOptions& o)
    : Layer(std::make_shared<Merge>(
          "Subtract", o, [](const Tensor& a, const Tensor& b) { return a - b; }, true)) {}
Multiply::Multiply(const NamedOptions& o)
    : Layer(merge("Multiply", o, [](const Tensor& a, const Tensor& b) { return a * b; })) {}
Average::Average(const NamedOptions& o)
    : Layer(std::make_shared<Merge>(
          "Average", o, [](const Tensor& a, const Tensor& b) { return a + b; }, false, true)) {}
Maximum::Maximum(const NamedOptions& o)
    : Layer(merge("Maximum", o, [](const Tensor& a, const Tensor& b) { return maximum(a, b); })) {}
Minimum::Minimum(const NamedOptions& o)
    : Layer(merge("Minimum", o, [](const Tensor& a, const Tensor& b) { return minimum(a, b); })) {}
Concatenate::Concatenate(const ConcatenateOptions& o)
    : Layer(std::make_shared<ConcatenateImpl>(o)) {}

}  // namespace tandem::keras
