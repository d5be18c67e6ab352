#include "tandem/ops/variable.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/resource_handle.h"
#include "tandem/ops/autocast.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/internal/variable_calls.h"
#include "tandem/ops/resource_variable_ops.h"
#include "tandem/runtime/created_variables.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/tensor_impl.h"
#include "tandem/runtime/trace.h"

namespace tandem {

struct Variable::State {
  Tensor handle;
  std::string name;
  PartialShape shape;
  DType dtype = DType::kInvalid;
  bool trainable = true;
  bool autocast = false;
  AttrMap read_attrs;  // made once: reads are frequent
  AttrMap assign_attrs;
};

Variable::Variable(Tensor initial_value, const VariableOptions& options) {
  if (!initial_value.defined()) {
    throw InvalidArgumentError(
        "initial_value must be specified. td::Variable got an undefined tensor.");
  }
  if (initial_value.is_symbolic()) {
    throw FailedPreconditionError(
        cat("td::Variable '", options.name,
            "' was made inside a traced function from a value that is not known while "
            "tracing. Make the variable outside of the function, or once, from a concrete value or "
            "from a function that makes one."));
  }
  auto state = std::make_shared<State>();
  state->name = options.name;
  state->dtype = initial_value.dtype();
  state->shape = options.shape.value_or(PartialShape(initial_value.shape()));
  state->trainable = options.trainable;
  state->autocast = options.autocast && is_floating(state->dtype);
  state->read_attrs = {{"dtype", state->dtype}, {"_shape", state->shape}};
  state->assign_attrs = {{"dtype", state->dtype}, {"validate_shape", true}};
  {
    // The variable is made once, now, whatever is being traced; no tape differentiates by its
    // initial value.
    const TraceScope eager(nullptr);
    const StopRecording unheard;
    state->handle = internal::make_variable_handle({{"dtype", state->dtype},
                                                    {"shape", state->shape},
                                                    {"debug_name", options.name},
                                                    {"shared_name", internal::kAnonymousResource}});
    state->handle.impl()->watched = options.trainable;
    internal::assign_variable(state->handle, std::move(initial_value), state->assign_attrs);
  }
  state_ = std::move(state);
  note_made_variable(state_, state_->handle, state_->name);
}

Tensor Variable::made_eagerly(const std::function<Tensor()>& make) {
  const TraceScope eager(nullptr);
  const StopRecording unheard;
  return make();
}

const Variable::State& Variable::state() const {
  if (!state_) {
    throw FailedPreconditionError(
        "A td::Variable without a value was used. Make it from a tensor first.");
  }
  return *state_;
}

Tensor Variable::read_value() const {
  const State& s = state();
  return internal::read_variable(s.handle, s.read_attrs);
}

Variable::operator Tensor() const {
  Tensor value = read_value();
  const DType wanted = AutocastScope::current();
  if (wanted == DType::kInvalid || !state().autocast || wanted == state().dtype) return value;
  return cast(std::move(value), wanted);
}

const Variable& Variable::assign(Tensor value) const {
  const State& s = state();
  internal::assign_variable(s.handle, std::move(value), s.assign_attrs);
  return *this;
}

const Variable& Variable::assign_add(Tensor delta) const {
  assign_add_variable(state().handle, std::move(delta));
  return *this;
}

const Variable& Variable::assign_sub(Tensor delta) const {
  assign_sub_variable(state().handle, std::move(delta));
  return *this;
}

const Tensor& Variable::handle() const { return state().handle; }
const std::string& Variable::name() const { return state().name; }
const PartialShape& Variable::shape() const { return state().shape; }
DType Variable::dtype() const { return state().dtype; }
bool Variable::trainable() const { return state().trainable; }
const std::string& Variable::device() const {
  return state().handle.impl()->array.data<ResourceHandle>()->info().device;
}

}  // namespace tandem
