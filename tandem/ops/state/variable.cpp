#include "tandem/ops/variable.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/resource_handle.h"
#include "tandem/ops/autocast.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/internal/variable_calls.h"
#include "tandem/ops/internal/variable_state.h"
#include "tandem/ops/resource_variable_ops.h"
#include "tandem/ops/variable_creator.h"
#include "tandem/runtime/created_variables.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/tensor_impl.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/trace.h"

namespace tandem {

namespace {

// Calls the creators from `creators` on outwards; `plain` makes the variable at last. While one
// runs, what it makes itself goes to those around it.
Variable create(const std::shared_ptr<const VariableCreators>& creators, Tensor initial_value,
                VariableOptions options, const NextVariableCreator& plain) {
  if (!creators) return plain(std::move(initial_value), std::move(options));
  const NextVariableCreator next = [&](Tensor value, VariableOptions changed) {
    return create(creators->outer, std::move(value), std::move(changed), plain);
  };
  ThreadContext& context = thread_context();
  struct Restore {
    ThreadContext& context;
    std::shared_ptr<const VariableCreators> saved;
    ~Restore() { context.variable_creators = std::move(saved); }
  };
  const Restore restore{context, std::exchange(context.variable_creators, creators->outer)};
  const std::string name = options.name;
  Variable made = creators->creator(next, std::move(initial_value), std::move(options));
  if (!made.defined()) {
    throw InvalidArgumentError(
        cat("The creator of a VariableCreatorScope returned no variable for '", name,
            "'. Return what `next` gives, or a variable of its own."));
  }
  return made;
}

}  // namespace

Variable::Variable(Tensor initial_value, const VariableOptions& options) {
  const auto creators = thread_context().variable_creators;
  *this = creators ? create(creators, std::move(initial_value), options, &Variable::make_plain)
                   : make_plain(std::move(initial_value), options);
}

Variable Variable::make_plain(Tensor initial_value, const VariableOptions& options) {
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
  state->constraint = options.constraint;
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
  Variable variable;
  variable.state_ = std::move(state);
  note_made_variable(variable.state_, variable.state_->handle, variable.state_->name);
  return variable;
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

const Variable::State& Variable::here() const {
  const State& s = state();
  return s.components ? DistributedVariables::here(*s.components).state() : s;
}

Tensor Variable::read_value() const {
  const State& s = state();
  if (s.components) return DistributedVariables::read(*s.components);
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
  if (s.components) {
    DistributedVariables::assign(*s.components, value);
    return *this;
  }
  internal::assign_variable(s.handle, std::move(value), s.assign_attrs);
  return *this;
}

const Variable& Variable::assign_add(Tensor delta) const {
  const State& s = state();
  if (s.components) {
    DistributedVariables::add(*s.components, delta, 1);
  } else {
    assign_add_variable(s.handle, std::move(delta));
  }
  return *this;
}

const Variable& Variable::assign_sub(Tensor delta) const {
  const State& s = state();
  if (s.components) {
    DistributedVariables::add(*s.components, delta, -1);
  } else {
    assign_sub_variable(s.handle, std::move(delta));
  }
  return *this;
}

const Tensor& Variable::handle() const { return here().handle; }
const std::string& Variable::name() const { return state().name; }
const PartialShape& Variable::shape() const { return state().shape; }
DType Variable::dtype() const { return state().dtype; }
bool Variable::trainable() const { return state().trainable; }
const std::function<Tensor(const Tensor&)>& Variable::constraint() const {
  return state().constraint;
}
const std::string& Variable::device() const {
  return here().handle.impl()->array.data<ResourceHandle>()->info().device;
}

VariableCreatorScope::VariableCreatorScope(VariableCreator creator) {
  if (!creator) throw InvalidArgumentError("A VariableCreatorScope was given no function.");
  ThreadContext& context = thread_context();
  saved_ = context.variable_creators;
  context.variable_creators = std::make_shared<const VariableCreators>(
      VariableCreators{.creator = std::move(creator), .outer = saved_});
}
VariableCreatorScope::~VariableCreatorScope() {
  thread_context().variable_creators = std::move(saved_);
}

}  // namespace tandem
