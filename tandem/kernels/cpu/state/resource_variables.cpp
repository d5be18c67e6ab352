// Variables: handles, reads, assignments, and changes of rows.

#include <algorithm>
#include <cstddef>
#include <mutex>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/reference.h"
#include "tandem/graph/resource_manager.h"
#include "tandem/kernels/cpu/array/gather.h"
#include "tandem/kernels/cpu/array/strided_copy.h"
#include "tandem/kernels/cpu/norm/rows.h"
#include "tandem/kernels/cpu/reduce/combine.h"
#include "tandem/kernels/cpu/support/arithmetic.h"
#include "tandem/kernels/cpu/support/elements.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

// The name by which TensorFlow asks for a resource that nothing else can find.
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
  info->container = container.empty() ? kDefaultContainer : container;
  info->name = !anonymous && !shared_name.empty() ? shared_name
               : !debug_name.empty()              ? debug_name
                                                  : std::string(c.node_name());
  info->type = "Var";
  info->dtype = dtype;
  info->shape = shape;
  const auto make = [&] { return make_ref<VariableResource>(info->name, dtype, shape); };
  Ref<VariableResource> variable = anonymous ? make()
                                             : c.resources().lookup_or_create<VariableResource>(
                                                   info->container, info->name, "variable", make);
  if (variable->dtype() != dtype) {
    throw InvalidArgumentError(cat("Variable ", info->name, " is there already with dtype ",
                                   variable->dtype(), ", but dtype ", dtype, " was asked for."));
  }
  Array handle(DType::kResource, Shape{});
  *handle.data<ResourceHandle>() = ResourceHandle(std::move(info), std::move(variable));
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

template <class Combine, class T>
void combine_elements(void* to, const void* by, std::int64_t n) {
  combine_rows(static_cast<T*>(to), static_cast<const T*>(by), n, Combine());
}

template <class Combine>
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
  void (*combine)(void* to, const void* by, std::int64_t n) = nullptr;
  with_number(delta.dtype(), [&]<class T>() { combine = combine_elements<Combine, T>; });
  auto* to = static_cast<std::byte*>(value.raw_data());
  const auto* by = static_cast<const std::byte*>(delta.raw_data());
  const auto bytes = static_cast<std::int64_t>(dtype_size(delta.dtype()));
  c.intra_op().parallel_for(value.num_elements(), 0.3, [&](std::int64_t begin, std::int64_t end) {
    combine(to + begin * bytes, by + begin * bytes, end - begin);
  });
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
  if (batch < 0) throw InvalidArgumentError(cat("batch_dims must not be negative, but is ", batch));
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

// What a scatter op changes, checked; the variable is locked meanwhile. Scalar updates serve all
// rows.
class Rows {
 public:
  explicit Rows(KernelContext& c)
      : variable_(variable_input(c.input(0))),
        indices_(c.input(1)),
        updates_(c.input(2)),
        lock_(variable_.mutex()),
        scalar_(updates_.rank() == 0) {
    require_initialized(c.input(0), variable_);
    check();
    inner_ = variable_.value().shape().product(1, variable_.value().rank());
    data_ = variable_.writable_value().raw_data();
  }

  // f(row of the variable, row of updates, elements of a row, step between updates) for each index.
  template <class T, class F>
  void for_each(F f) const {
    T* data = static_cast<T*>(data_);
    const T* from = static_cast<const T*>(updates_.raw_data());
    for (std::int64_t i = 0; i < indices_.num_elements(); ++i) {
      const std::int64_t row = index_at(indices_.dtype(), indices_.raw_data(), i);
      f(data + row * inner_, scalar_ ? from : from + i * inner_, inner_, scalar_ ? 0 : 1);
    }
  }

 private:
  void check() const {
    const Shape& params = variable_.value().shape();
    if (updates_.dtype() != variable_.dtype()) {
      throw InvalidArgumentError(cat("Cannot update variable of dtype ", variable_.dtype(),
                                     " with updates of dtype ", updates_.dtype(),
                                     ". Use td::cast."));
    }
    if (params.rank() < 1) {
      throw InvalidArgumentError(cat("params must be at least 1-D, got shape ", params));
    }
    bool fits = scalar_ || updates_.rank() == indices_.rank() + params.rank() - 1;
    for (int i = 0; fits && !scalar_ && i < updates_.rank(); ++i) {
      fits = updates_.shape()[i] ==
             (i < indices_.rank() ? indices_.shape()[i] : params[i - indices_.rank() + 1]);
    }
    if (!fits) {
      throw InvalidArgumentError(
          cat("Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], "
              "got updates.shape ",
              updates_.shape(), ", indices.shape ", indices_.shape(), ", params.shape ", params));
    }
    for (std::int64_t i = 0; i < indices_.num_elements(); ++i) {
      const std::int64_t row = index_at(indices_.dtype(), indices_.raw_data(), i);
      if (row < 0 || row >= params[0]) {
        throw InvalidArgumentError(
            cat("indices[", i, "] = ", row, " is not in [0, ", params[0], ")"));
      }
    }
  }

  VariableResource& variable_;
  const Array& indices_;
  const Array& updates_;
  const std::lock_guard<std::mutex> lock_;
  const bool scalar_;
  std::int64_t inner_ = 0;
  void* data_ = nullptr;
};

// The reference goes on.
void put_reference(KernelContext& c) {
  if (c.num_outputs() > 0) c.set_output(0, c.input(0));
}

// The elements' new values by `Combine`, an object with a template <class T> T operator()(T old, T
// update).
template <class Combine>
void scatter_numbers(KernelContext& c) {
  const DType dtype = c.input(2).dtype();
  with_number(dtype, [&]<class T>() {
    if constexpr (!is_complex_type<T> || !Combine::kRealOnly) {
      Rows(c).for_each<T>([](T* row, const T* update, std::int64_t n, std::int64_t step) {
        if (step == 1) return combine_rows(row, update, n, Combine());
        for (std::int64_t k = 0; k < n; ++k) row[k] = Combine()(row[k], *update);
      });
    } else {
      throw_no_kernel(dtype);
    }
  });
  put_reference(c);
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
  with_number(updates.dtype(), [&]<class T>() {
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
    Rows(c).for_each<T>([](T* row, const T* update, std::int64_t n, std::int64_t step) {
      for (std::int64_t k = 0; k < n; ++k) row[k] = update[k * step];
    });
  });
  put_reference(c);
}

constexpr TypeConstraint kNumbers{"dtype", kNumberTypes};
constexpr TypeConstraint kReals{"dtype", kRealTypes};
constexpr TypeConstraint kRefNumbers{"T", kNumberTypes};

const KernelRegistration kVarHandle{{.op = "VarHandleOp", .kernel_class = "*", .run = var_handle}};
const KernelRegistration kRead{{.op = "ReadVariableOp", .kernel_class = "*", .run = read_variable}};
const KernelRegistration kAssign{
    {.op = "AssignVariableOp", .kernel_class = "*", .run = assign_variable}};
const KernelRegistration kAssignAdd{
    {.op = "AssignAddVariableOp", .types = {kNumbers}, .run = change_variable<AddTo>}};
const KernelRegistration kAssignSub{
    {.op = "AssignSubVariableOp", .types = {kNumbers}, .run = change_variable<SubtractFrom>}};
const KernelRegistration kIsInitialized{
    {.op = "VarIsInitializedOp", .kernel_class = "*", .run = is_initialized}};
const KernelRegistration kShape{
    {.op = "VariableShape", .kernel_class = "*", .run = variable_shape}};
const KernelRegistration kDestroy{{.op = "DestroyResourceOp", .kernel_class = "*", .run = destroy}};
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
