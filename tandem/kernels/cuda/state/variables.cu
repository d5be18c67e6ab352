// Variables changed as a whole, and read by index.

#include "tandem/kernels/cuda/array/gather.h"
#include "tandem/kernels/cuda/elementwise/arithmetic.h"
#include "tandem/kernels/cuda/support/launch_part.h"
#include "tandem/kernels/cuda/support/types.h"

namespace tandem::cuda {
namespace {

template <class F, class T>
struct Change {
  struct Part {
    T* value;
    const T* by;
    std::int64_t n;
  };
  using Common = NothingInCommon;
  TANDEM_DEVICE static void run(const Part& part, const Common&, PartBlocks blocks) {
    T* const value = part.value;
    const T* const by = part.by;
    const std::int64_t n = part.n;
    for (auto i = blocks.first<std::int64_t>(); i < n; i += blocks.step<std::int64_t>()) {
      value[i] = store<T>(F::apply(load(value[i]), load(by[i])));
    }
  }
};

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
        const std::int64_t n = value.count;
        const MemoryUse uses[] = {writes(value.as<T>(), n), reads(by.as<T>(), n)};
        launch_part<Change<F, T>>("change<F, T>", shape_for(n), {value.as<T>(), by.as<T>(), n}, {},
                                  uses);
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
