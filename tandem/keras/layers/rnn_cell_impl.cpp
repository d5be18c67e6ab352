#include "tandem/keras/rnn_cell_impl.h"

#include "tandem/core/error.h"
#include "tandem/keras/internal/shape_text.h"

namespace tandem::keras {

Tensor RNNCellImpl::project(const Tensor& inputs, bool) { return inputs; }
std::vector<Tensor> RNNCellImpl::constants(const Tensor&, bool) { return {}; }
std::vector<Shape> RNNCellImpl::state_shapes() const {
  std::vector<Shape> shapes;
  for (const std::int64_t size : state_sizes()) shapes.push_back(Shape{size});
  return shapes;
}
Layer RNNCellImpl::copy() const {
  throw UnimplementedError(cat(prefix(), "its class does not override copy, so there can be no ",
                               "second one of its kind."));
}

std::vector<Tensor> RNNCellImpl::call_many(std::span<const Tensor> inputs,
                                           const CallOptions& options) {
  const std::size_t states = state_sizes().size();
  if (inputs.size() != states + 1) {
    throw InvalidArgumentError(cat(prefix(), "takes the inputs and ", states,
                                   " state(s), but was called with ", inputs.size(),
                                   " tensor(s)."));
  }
  const std::vector<Shape> shapes = state_shapes();
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    std::vector<std::int64_t> wanted{inputs[0].dim(0)};
    for (const std::int64_t size : shapes[i - 1].dims()) wanted.push_back(size);
    if (PartialShape(wanted).is_compatible(inputs[i].partial_shape())) continue;
    throw InvalidArgumentError(cat(prefix(), "state ", i, " must be ",
                                   internal::shape_text(PartialShape(wanted)), ", but has shape ",
                                   internal::shape_text(inputs[i].partial_shape()), "."));
  }
  const bool training = options.is_training();
  return step(project(inputs[0], training), inputs.subspan(1), constants(inputs[0], training));
}

}  // namespace tandem::keras
