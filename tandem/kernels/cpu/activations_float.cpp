// Activations of floats by vector loops; half and bfloat16 go through float, a piece at a time.

#include <algorithm>

#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/activation_rows.h"
#include "tandem/kernels/cpu/activations.h"
#include "tandem/kernels/cpu/float16_rows.h"
#include "tandem/kernels/cpu/number_types.h"

namespace tandem::cpu {
namespace {

constexpr std::int64_t kPiece = 1024;

template <class T>
void run_row(ActivationRow row, const T* x, T* y, std::int64_t n, float alpha) {
  if constexpr (std::is_same_v<T, float>) {
    row(x, y, n, alpha);
  } else {
    float values[kPiece];
    for (std::int64_t i = 0; i < n; i += kPiece) {
      const std::int64_t count = std::min(kPiece, n - i);
      to_floats(x + i, values, count);
      row(values, values, count, alpha);
      from_floats(values, y + i, count);
    }
  }
}

template <class T>
void run_grad_row(ActivationGradRow row, const T* g, const T* x, T* y, std::int64_t n,
                  float alpha) {
  if constexpr (std::is_same_v<T, float>) {
    row(g, x, y, n, alpha);
  } else {
    float gradients[kPiece];
    float values[kPiece];
    for (std::int64_t i = 0; i < n; i += kPiece) {
      const std::int64_t count = std::min(kPiece, n - i);
      to_floats(g + i, gradients, count);
      to_floats(x + i, values, count);
      row(gradients, values, values, count, alpha);
      from_floats(values, y + i, count);
    }
  }
}

// `cost` in picoseconds an element: a template takes no fraction.
template <ActivationRow row, int cost, bool has_alpha = false>
void run(KernelContext& c) {
  const float alpha = has_alpha ? c.attr<float>("alpha") : 0;
  Array& out = c.reuse_or_allocate_output(0, 0, c.input(0).shape());
  with_type<float, Half, BFloat16>(out.dtype(), [&]<class T>() {
    const T* x = c.input(0).data<T>();
    T* y = out.data<T>();
    c.intra_op().parallel_for(out.num_elements(), cost * 1e-3,
                              [&](std::int64_t begin, std::int64_t end) {
                                run_row(row, x + begin, y + begin, end - begin, alpha);
                              });
  });
}

template <ActivationGradRow row, int cost, bool has_alpha = false>
void run_grad(KernelContext& c) {
  const float alpha = has_alpha ? c.attr<float>("alpha") : 0;
  Array& out = gradient_output(c);
  with_type<float, Half, BFloat16>(out.dtype(), [&]<class T>() {
    const T* g = c.input(0).data<T>();
    const T* x = c.input(1).data<T>();
    T* y = out.data<T>();
    c.intra_op().parallel_for(
        out.num_elements(), cost * 1e-3, [&](std::int64_t begin, std::int64_t end) {
          run_grad_row(row, g + begin, x + begin, y + begin, end - begin, alpha);
        });
  });
}

constexpr DTypeSet kTypes{DType::kHalf, DType::kBFloat16, DType::kFloat};

KernelDecl vector_kernel(const char* op, KernelFn run) {
  return {.op = op, .name = "vector", .types = {{"T", kTypes}}, .priority = 10, .run = run};
}

const KernelRegistration kRelu(vector_kernel("Relu", run<relu_row, 200>));
const KernelRegistration kRelu6(vector_kernel("Relu6", run<relu6_row, 200>));
const KernelRegistration kLeakyRelu(vector_kernel("LeakyRelu", run<leaky_relu_row, 200, true>));
const KernelRegistration kReluGrad(vector_kernel("ReluGrad", run_grad<relu_grad_row, 300>));
const KernelRegistration kRelu6Grad(vector_kernel("Relu6Grad", run_grad<relu6_grad_row, 300>));
const KernelRegistration kLeakyReluGrad(vector_kernel("LeakyReluGrad",
                                                      run_grad<leaky_relu_grad_row, 300, true>));

}  // namespace
}  // namespace tandem::cpu
