#include "tandem/keras/rnn_cell_impl.h"

#include "tandem/core/error.h"

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
  const bool training = options.is_training();
  return step(project(inputs[0], training), inputs.subspan(1), constants(inputs[0], training));
}

}  // namespace tandem::keras
