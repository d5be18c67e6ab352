// Variables: handles, reads, assignments, and changes of rows.

#include <mutex>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/reference.h"
#include "tandem/graph/resource_manager.h"
#include "tandem/kernels/cpu/combine.h"
#include "tandem/kernels/cpu/elements.h"
#include "tandem/kernels/cpu/gather.h"
#include "tandem/kernels/cpu/rows.h"
#include "tandem/kernels/cpu/strided_copy.h"
#include "tandem/kernels/cpu/type_switch.h"

namespace tandem::cpu {
namespace {

// The name by which TensorFlow asks for a resource that nobody else can find.
constexpr std::string_view kAnonymous = "cd2c89b7-88b7-44c8-ad83-06c2a9158347";

void var_handle(KernelContext& c) {
  const auto& shared_name = c.attr<std::string>("shared_name");
  const auto& container = c.attr<std::string>("container");
  const auto& debug_name = c.attr<std::string>("debug_name");
  const DType dtype = c.attr<DType>("dtype");
  const auto& shape = c.attr<PartialShape>("shape");
  const bool anonymous = shared_name == kAnonymous;
  auto info = std::make_shared<ResourceInfo>();
  info->device = c.device().name();
  info->container = container.empty() ? "localhost" : container;
  info->name = !anonymous && !shared_name.empty() ? shared_name
               : !debug_name.empty()              ? debug_name
                                                  : std::string(c.node_name());
  info->type = "Var";
  info->dtype = dtype;
  info->shape = shape;
  const auto make = [&] {
    return Ref<Resource>(make_ref<VariableResource>(info->name, dtype, shape));
  };
  Ref<Resource> resource =
      anonymous ? make() : c.resources().lookup_or_create(info->container, info->name, make);
  const auto* variable = dynamic_cast<const VariableResource*>(resource.get());
  if (!variable) {
    throw InvalidArgumentError(cat("Resource ", info->container, "/", info->name,
                                   " is no variable: it is ", resource->debug_string(), "."));
  }
  if (variable->dtype() != dtype) {
    throw InvalidArgumentError(cat("Variable ", info->name, " is there already with dtype ",
                                   variable->dtype(), ", but dtype ", dtype, " was asked for."));
  }
  Array handle(DType::kResource, Shape{});
  *handle.data<ResourceHandle>() = ResourceHandle(std::move(info), std::move(resource));
  c.set_output(0, std::move(handle));
}

// The value, as it is now: later changes go to memory of their own.
Array read(const KernelContext& c, int input) {
  VariableResource& variable = variable_of(c.input(input));
  std::lock_guard lock(variable.mutex());
  return variable.value();
}

void read_variable(KernelContext& c) {
  Array value = read(c, 0);
  const DType wanted = c.attr<DType>("dtype");
  if (value.dtype() != wanted) {
    throw InvalidArgumentError(
        cat("Trying to read variable with wrong dtype. Expected ", wanted, " got ", value.dtype()));
  }
  c.set_output(0, std::move(value));
}

void assign_variable(KernelContext& c) {
  VariableResource& variable = variable_of(c.input(0));
  std::lock_guard lock(variable.mutex());
  variable.assign(c.input(1), c.attr<bool>("validate_shape"));
}

template <class T, bool kAdd>
void accumulate(KernelContext& c, Array& value, const Array& delta) {
  T* to = value.data<T>();
  const T* by = delta.data<T>();
  c.intra_op().parallel_for(value.num_elements(), 0.3, [&](std::int64_t begin, std::int64_t end) {
    combine_rows(to + begin, by + begin, end - begin,
                 [](T a, T b) { return kAdd ? add(a, b) : subtract(a, b); });
  });
}

template <bool kAdd>
void change_variable(KernelContext& c) {
  VariableResource& variable = variable_of(c.input(0));
  const Array& delta = c.input(1);
  std::lock_guard lock(variable.mutex());
  if (delta.dtype() != variable.value().dtype()) {
    throw InvalidArgumentError(cat("Cannot update variable of dtype ", variable.dtype(),
                                   " with a value of dtype ", delta.dtype(), ". Use td::cast."));
  }
  if (!(delta.shape() == variable.value().shape())) {
    throw InvalidArgumentError(cat("Cannot update variable with shape ", variable.value().shape(),
                                   " using a Tensor with shape ", delta.shape(),
                                   ", shapes must be equal."));
  }
  Array& value = variable.writable_value();
  number_switch(delta.dtype(), c.op().name,
                [&]<class T>() { accumulate<T, kAdd>(c, value, delta); });
}

void is_initialized(KernelContext& c) {
  VariableResource& variable = variable_of(c.input(0));
  std::lock_guard lock(variable.mutex());
  *c.allocate_output(0, Shape{}).data<bool>() = variable.initialized();
}

void variable_shape(KernelContext& c) {
  const Shape shape = read(c, 0).shape();
  Array& out = c.allocate_output(0, Shape{shape.rank()});
  for (int i = 0; i < shape.rank(); ++i) {
    if (out.dtype() == DType::kInt64) {
      out.data<std::int64_t>()[i] = shape[i];
    } else if (shape[i] > INT32_MAX) {
      throw InvalidArgumentError(cat("Shape ", shape, " does not fit into int32: ask for int64."));
    } else {
      out.data<std::int32_t>()[i] = static_cast<std::int32_t>(shape[i]);
    }
  }
}

void destroy(KernelContext& c) {
  const Array& handle = c.input(0);
  const auto* element = handle.num_elements() == 1 ? handle.data<ResourceHandle>() : nullptr;
  if (element == nullptr || element->empty()) {
    if (c.attr<bool>("ignore_lookup_error")) return;
    throw NotFoundError("The handle refers to no resource.");
  }
  const ResourceInfo& info = element->info();
  const Ref<Resource> known = c.resources().lookup(info.container, info.name);
  if (known.get() == element->resource()) c.resources().remove(info.container, info.name);
  if (auto* variable = dynamic_cast<VariableResource*>(element->resource())) {
    std::lock_guard lock(variable->mutex());
    variable->clear();
  }
}

void resource_gather(KernelContext& c) {
  const Array params = read(c, 0);
  if (params.dtype() != c.output_dtype(0)) {
    throw InvalidArgumentError(
        cat("The variable is ", params.dtype(), " but ", c.output_dtype(0), " was asked for."));
  }
  const auto batch = c.attr<std::int64_t>("batch_dims");
  gather_slices(c, params, c.input(1), batch, batch);
}

void resource_gather_nd(KernelContext& c) {
  const Array params = read(c, 0);
  if (params.dtype() != c.output_dtype(0)) {
    throw InvalidArgumentError(
        cat("The variable is ", params.dtype(), " but ", c.output_dtype(0), " was asked for."));
  }
  gather_tuples(c, params, c.input(1));
}

// ---- Rows ----

// Checks the inputs and calls f(row of the variable, row of updates, elements) for each index;
// scalar updates serve all.
template <class T, class F>
void for_each_row(KernelContext& c, F f) {
  VariableResource& variable = variable_input(c.input(0));
  const Array& indices = c.input(1);
  const Array& updates = c.input(2);
  std::lock_guard lock(variable.mutex());
  require_initialized(c.input(0), variable);
  const Shape params = variable.value().shape();
  if (updates.dtype() != variable.dtype()) {
    throw InvalidArgumentError(cat("Cannot update variable of dtype ", variable.dtype(),
                                   " with updates of dtype ", updates.dtype(), ". Use td::cast."));
  }
  if (params.rank() < 1) {
    throw InvalidArgumentError(cat("params must be at least 1-D, got shape ", params));
  }
  const bool scalar = updates.rank() == 0;
  bool fits = scalar || updates.rank() == indices.rank() + params.rank() - 1;
  for (int i = 0; fits && !scalar && i < updates.rank(); ++i) {
    fits = updates.shape()[i] ==
           (i < indices.rank() ? indices.shape()[i] : params[i - indices.rank() + 1]);
  }
  if (!fits) {
    throw InvalidArgumentError(cat(
        "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got ",
        "updates.shape ", updates.shape(), ", indices.shape ", indices.shape(), ", params.shape ",
        params));
  }
  const std::int64_t n = indices.num_elements();
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t row = index_at(indices.dtype(), indices.raw_data(), i);
    if (row < 0 || row >= params[0]) {
      throw InvalidArgumentError(
          cat("indices[", i, "] = ", row, " is not in [0, ", params[0], ")"));
    }
  }
  const std::int64_t inner = params.product(1, params.rank());
  T* data = static_cast<T*>(variable.writable_value().raw_data());
  const T* from = static_cast<const T*>(updates.raw_data());
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t row = index_at(indices.dtype(), indices.raw_data(), i);
    f(data + row * inner, scalar ? from : from + i * inner, inner, scalar ? 0 : 1);
  }
  if (c.num_outputs() > 0) c.set_output(0, c.input(0));
}

// The elements' new values by `Combine`, an object with a template <class T> T operator()(T old, T
// update).
template <class Combine>
void scatter_numbers(KernelContext& c) {
  number_switch(c.input(2).dtype(), c.op().name, [&]<class T>() {
    constexpr bool kComplex =
        std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;
    if constexpr (!kComplex || !Combine::kRealOnly) {
      for_each_row<T>(c, [](T* row, const T* update, std::int64_t n, std::int64_t step) {
        if (step == 1) return combine_rows(row, update, n, Combine());
        for (std::int64_t k = 0; k < n; ++k) row[k] = Combine()(row[k], *update);
      });
    } else {
      throw_no_kernel(c.input(2).dtype(), c.op().name);
    }
  });
}

struct DivideBy {
  static constexpr bool kRealOnly = false;
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if constexpr (std::is_signed_v<T>) {
        if (b == -1) return subtract(T{0}, a);
      }
      return static_cast<T>(a / b);
    } else {
      using A = Arithmetic<T>;
      return static_cast<T>(static_cast<A>(a) / static_cast<A>(b));
    }
  }
};

// Divisors are checked first: a variable is changed as a whole or not at all.
void scatter_div(KernelContext& c) {
  const Array& updates = c.input(2);
  number_switch(updates.dtype(), c.op().name, [&]<class T>() {
    if constexpr (std::is_integral_v<T>) {
      const auto divisors = updates.values<T>();
      if (std::find(divisors.begin(), divisors.end(), T{0}) != divisors.end())
        throw InvalidArgumentError("Integer division by zero");
    }
  });
  scatter_numbers<DivideBy>(c);
}

void scatter_update(KernelContext& c) {
  with_element(c.input(2).dtype(), [&]<class T>() {
    for_each_row<T>(c, [](T* row, const T* update, std::int64_t n, std::int64_t step) {
      for (std::int64_t k = 0; k < n; ++k) row[k] = update[k * step];
    });
  });
}

constexpr TypeConstraint kNumbers{"dtype", kNumberTypes};
constexpr TypeConstraint kReals{"dtype", kRealTypes};
constexpr TypeConstraint kRefNumbers{"T", kNumberTypes};

const KernelRegistration kVarHandle{{.op = "VarHandleOp", .run = var_handle}};
const KernelRegistration kRead{{.op = "ReadVariableOp", .run = read_variable}};
const KernelRegistration kAssign{{.op = "AssignVariableOp", .run = assign_variable}};
const KernelRegistration kAssignAdd{
    {.op = "AssignAddVariableOp", .types = {kNumbers}, .run = change_variable<true>}};
const KernelRegistration kAssignSub{
    {.op = "AssignSubVariableOp", .types = {kNumbers}, .run = change_variable<false>}};
const KernelRegistration kIsInitialized{{.op = "VarIsInitializedOp", .run = is_initialized}};
const KernelRegistration kShape{{.op = "VariableShape", .run = variable_shape}};
const KernelRegistration kDestroy{{.op = "DestroyResourceOp", .run = destroy}};
const KernelRegistration kGather{{.op = "ResourceGather", .run = resource_gather}};
const KernelRegistration kGatherNd{{.op = "ResourceGatherNd", .run = resource_gather_nd}};
const KernelRegistration kScatterAdd{
    {.op = "ResourceScatterAdd", .types = {kNumbers}, .run = scatter_numbers<AddTo>}};
const KernelRegistration kScatterSub{
    {.op = "ResourceScatterSub", .types = {kNumbers}, .run = scatter_numbers<SubtractFrom>}};
const KernelRegistration kScatterMul{
    {.op = "ResourceScatterMul", .types = {kNumbers}, .run = scatter_numbers<MultiplyBy>}};
const KernelRegistration kScatterDiv{
    {.op = "ResourceScatterDiv", .types = {kNumbers}, .run = scatter_div}};
const KernelRegistration kScatterMin{
    {.op = "ResourceScatterMin", .types = {kReals}, .run = scatter_numbers<Smaller>}};
const KernelRegistration kScatterMax{
    {.op = "ResourceScatterMax", .types = {kReals}, .run = scatter_numbers<Larger>}};
const KernelRegistration kScatterUpdate{{.op = "ResourceScatterUpdate", .run = scatter_update}};
const KernelRegistration kRefScatterAdd{
    {.op = "ScatterAdd", .types = {kRefNumbers}, .run = scatter_numbers<AddTo>}};
const KernelRegistration kRefScatterSub{
    {.op = "ScatterSub", .types = {kRefNumbers}, .run = scatter_numbers<SubtractFrom>}};
const KernelRegistration kRefScatterMul{
    {.op = "ScatterMul", .types = {kRefNumbers}, .run = scatter_numbers<MultiplyBy>}};
const KernelRegistration kRefScatterDiv{
    {.op = "ScatterDiv", .types = {kRefNumbers}, .run = scatter_div}};
const KernelRegistration kRefScatterMin{{.op = "ScatterMin", .run = scatter_numbers<Smaller>}};
const KernelRegistration kRefScatterMax{{.op = "ScatterMax", .run = scatter_numbers<Larger>}};
const KernelRegistration kRefScatterUpdate{{.op = "ScatterUpdate", .run = scatter_update}};

}  // namespace
}  // namespace tandem::cpu
