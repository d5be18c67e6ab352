// Variables changed as a whole, and read by index.

#include "tandem/kernels/cuda/array/gather.h"
#include "tandem/kernels/cuda/elementwise/arithmetic.h"
#include "tandem/kernels/cuda/support/launch.h"
#include "tandem/kernels/cuda/support/types.h"

namespace tandem::cuda {
namespace {

template <class F, class T>
TANDEM_KERNEL change_kernel(T* value, const T* by, std::int64_t n) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    value[i] = store<T>(F::apply(load(value[i]), load(by[i])));
  }
}

template <class F>
void change(KernelCall& call) {
  const TensorView by = call.input(1), now = call.variable(0);
  if (now.type != by.type) refuse("the variable and the value have different dtypes");
  if (now.sizes != by.sizes) {
    refuse(std::string(call.op()) + " requires shapes of both tensors to match");
  }
  const TensorView value = call.writable_variable(0);
  if (value.count > 0 && !visit_numbers(value.type, [&](auto tag) {
        using T = typename decltype(tag)::type;
        TANDEM_LAUNCH((change_kernel<F, T>), shape_for(value.count), 0, value.as<T>(), by.as<T>(),
                      value.count);
      })) {
    no_kernel_for(value.type);
  }
  call.return_reference();
}

TensorView variable_of_output_type(const KernelCall& call) {
  const TensorView value = call.variable(0);
  if (value.type != call.attr_type("dtype")) {
    refuse("the variable has another dtype than was asked for");
  }
  return value;
}

}  // namespace

void state_assign_add(KernelCall& call) { change<Add>(call); }
void state_assign_sub(KernelCall& call) { change<Sub>(call); }

void state_gather(KernelCall& call) {
  const std::int64_t batch = call.attr_int("batch_dims");
  if (batch < 0) refuse("batch_dims must not be negative, but is " + std::to_string(batch));
  gather(call, variable_of_output_type(call), batch, batch);
}
void state_gather_nd(KernelCall& call) { gather_nd(call, variable_of_output_type(call)); }

}  // namespace tandem::cuda
