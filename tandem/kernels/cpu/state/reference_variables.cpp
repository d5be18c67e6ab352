// Variables as TensorFlow 1 has them: ops hand references to them along the edges of the graph.

#include <limits>
#include <mutex>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/reference.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"
#include "tandem/kernels/cpu/norm/rows.h"
#include "tandem/kernels/cpu/support/arithmetic.h"
#include "tandem/kernels/cpu/support/elements.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

void variable(KernelContext& c) {
  const auto& shared_name = c.attr<std::string>("shared_name");
  const auto& container = c.attr<std::string>("container");
  const DType dtype = c.attr<DType>("dtype");
  const auto& shape = c.attr<PartialShape>("shape");
  const std::string name = shared_name.empty() ? std::string(c.node_name()) : shared_name;
  // A resource variable may have the same name without being the same variable.
  const Ref<Resource> resource = c.resources().lookup_or_create(
      container.empty() ? kDefaultContainer : container, name + " (reference)",
      [&] { return Ref<Resource>(make_ref<VariableResource>(name, dtype, shape)); });
  auto* found = dynamic_cast<VariableResource*>(resource.get());
  if (!found || found->dtype() != dtype) {
    throw InvalidArgumentError(cat("Variable ", name, " is there already as ",
                                   resource->debug_string(), ", but dtype ", dtype,
                                   " was asked for."));
  }
  c.set_output(0, make_reference(Ref<VariableResource>(found)));
}

void temporary_variable(KernelContext& c) {
  const auto& given = c.attr<std::string>("var_name");
  const std::string name = given.empty() ? std::string(c.node_name()) : given;
  const DType dtype = c.attr<DType>("dtype");
  const auto& shape = c.attr<PartialShape>("shape");
  auto temporary = make_ref<VariableResource>(name, dtype, shape);
  // TensorFlow gives it memory at once, with whatever is in it: zeros here.
  if (shape.is_fully_known()) temporary->assign(Array::zeros(dtype, shape.to_shape()));
  c.set_output(0, make_reference(std::move(temporary)));
}

void destroy_temporary_variable(KernelContext& c) {
  VariableResource& temporary = referenced_variable(c.input(0));
  const auto& name = c.attr<std::string>("var_name");
  if (temporary.name() != name)
    throw NotFoundError(cat("There is no temporary variable ", name, " here: the reference is to ",
                            temporary.name(), "."));
  std::lock_guard lock(temporary.mutex());
  require_initialized(c.input(0), temporary);
  c.set_output(0, temporary.value());
  temporary.clear();
}

void read_reference(KernelContext& c) {
  VariableResource& source = referenced_variable(c.input(0));
  std::lock_guard lock(source.mutex());
  if (!source.initialized()) throw_uninitialized(c.attr<std::string>("source"));
  c.set_output(0, source.value());
}

void is_variable_initialized(KernelContext& c) {
  VariableResource& source = referenced_variable(c.input(0));
  std::lock_guard lock(source.mutex());
  *c.allocate_output(0, Shape{}).data<bool>() = source.initialized();
}

void assign(KernelContext& c) {
  VariableResource& target = referenced_variable(c.input(0));
  const Array& value = c.input(1);
  std::lock_guard lock(target.mutex());
  const bool validate = c.attr<bool>("validate_shape");
  const bool fits = target.initialized() ? target.value().shape() == value.shape()
                                         : target.shape().is_compatible(value.shape());
  // A variable that was declared without its shape reports rank 0 in old graphs.
  const bool open = !target.shape().has_rank();
  if (validate && !fits && !open) {
    throw InvalidArgumentError(
        cat("Assign requires shapes of both tensors to match. lhs shape= ",
            target.initialized() ? PartialShape(target.value().shape()) : target.shape(),
            " rhs shape= ", value.shape()));
  }
  target.assign(value, /*validate_shape=*/false);
  c.set_output(0, c.input(0));
}

template <bool kAdd>
void change(KernelContext& c) {
  VariableResource& target = referenced_variable(c.input(0));
  const Array& delta = c.input(1);
  std::lock_guard lock(target.mutex());
  require_initialized(c.input(0), target);
  if (!(target.value().shape() == delta.shape())) {
    throw InvalidArgumentError(cat(c.op().name,
                                   " requires shapes of both tensors to match. lhs shape= ",
                                   target.value().shape(), " rhs shape= ", delta.shape()));
  }
  with_number(delta.dtype(), [&]<class T>() {
    Array& value = target.writable_value();
    T* to = value.data<T>();
    const T* by = delta.data<T>();
    c.intra_op().parallel_for(value.num_elements(), 0.3, [&](std::int64_t begin, std::int64_t end) {
      combine_rows(to + begin, by + begin, end - begin,
                   [](T a, T b) { return kAdd ? add(a, b) : subtract(a, b); });
    });
  });
  c.set_output(0, c.input(0));
}

void count_up_to(KernelContext& c) {
  VariableResource& counter = variable_input(c.input(0));
  const auto limit = c.attr<std::int64_t>("limit");
  std::lock_guard lock(counter.mutex());
  require_initialized(c.input(0), counter);
  const Array before = counter.value();
  if (before.rank() != 0)
    throw InvalidArgumentError(cat("input is not a scalar: ", before.shape()));
  if (before.dtype() != c.output_dtype(0)) {
    throw InvalidArgumentError(
        cat("The variable is ", before.dtype(), " but must be ", c.output_dtype(0), "."));
  }
  const auto step = [&]<class T>() {
    const T value = *before.data<T>();
    if (static_cast<std::int64_t>(value) >= limit)
      throw OutOfRangeError(cat("Reached limit of ", limit));
    counter.assign(Array::scalar(static_cast<T>(value + 1)), false);
  };
  if (before.dtype() == DType::kInt32) {
    step.template operator()<std::int32_t>();
  } else {
    step.template operator()<std::int64_t>();
  }
  c.set_output(0, before);
}

void pass_reference(KernelContext& c) { c.set_output(0, c.input(0)); }

void select_reference(KernelContext& c) {
  const std::int64_t index = scalar_int_input(c, 0, "index");
  if (index < 0 || index >= c.num_inputs() - 1) {
    throw InvalidArgumentError(
        cat("Index must be in the range [0, ", c.num_inputs() - 1, ") but got ", index));
  }
  c.set_output(0, c.input(static_cast<int>(index) + 1));
}

constexpr TypeConstraint kNumbers{"T", kNumberTypes};
constexpr TypeConstraint kIndices{"T", kIndexTypes};

const KernelRegistration kVariable{{.op = "Variable", .kernel_class = "*", .run = variable}};
const KernelRegistration kVariableV2{{.op = "VariableV2", .kernel_class = "*", .run = variable}};
const KernelRegistration kTemporary{
    {.op = "TemporaryVariable", .kernel_class = "*", .run = temporary_variable}};
const KernelRegistration kDestroyTemporary{
    {.op = "DestroyTemporaryVariable", .kernel_class = "*", .run = destroy_temporary_variable}};
const KernelRegistration kRead{
    {.op = "_ReadReference", .kernel_class = "*", .run = read_reference}};
const KernelRegistration kIsInitialized{
    {.op = "IsVariableInitialized", .run = is_variable_initialized}};
const KernelRegistration kAssign{{.op = "Assign", .kernel_class = "*", .run = assign}};
const KernelRegistration kAssignAdd{{.op = "AssignAdd", .types = {kNumbers}, .run = change<true>}};
const KernelRegistration kAssignSub{{.op = "AssignSub", .types = {kNumbers}, .run = change<false>}};
const KernelRegistration kCountUpTo{{.op = "CountUpTo", .types = {kIndices}, .run = count_up_to}};
const KernelRegistration kResourceCountUpTo{
    {.op = "ResourceCountUpTo", .types = {kIndices}, .run = count_up_to}};
const KernelRegistration kRefIdentity{
    {.op = "RefIdentity", .kernel_class = "*", .run = pass_reference}};
const KernelRegistration kRefSelect{{.op = "RefSelect", .run = select_reference}};

}  // namespace
}  // namespace tandem::cpu
