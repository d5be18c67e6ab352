// Sum, Mean, EuclideanNorm.

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/reduce/reduce.h"

namespace tandem::cpu {
namespace {

// Integers without a sign: the bits of sums are the same, and overflow is defined.
template <class T, bool = std::is_integral_v<T>>
struct SummandType {
  using type = T;
};
template <class T>
struct SummandType<T, true> {
  using type = std::make_unsigned_t<T>;
};

template <class O, class P>
O rounded(P value) {
  if constexpr (is_float16<O>)
    return O(static_cast<float>(value));
  else
    return static_cast<O>(value);
}

void sum(KernelContext& c) {
  const ReducePlan plan(c);
  const Array& x = c.input(0);
  if (plan.trivial()) return c.set_output(0, x.reshape(plan.out_shape));
  Array& out = c.allocate_output(0, plan.out_shape);
  with_number(x.dtype(), [&]<class T>() {
    using S = typename SummandType<T>::type;
    run_reduction<Reduction::kSum, S, Compute<S>>(c.intra_op(), plan, x.data<S>(), out.data<S>(),
                                                  [](auto total) { return rounded<S>(total); });
  });
}

// Integers are added up in 64 bits; the mean of none is 0.
template <class T>
void integer_mean(IntraOpPool& pool, const ReducePlan& plan, const Array& x, Array& out) {
  using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  const auto count = static_cast<Wide>(plan.count());
  const auto divide = [count](std::uint64_t total) {
    return count == 0 ? T(0) : static_cast<T>(static_cast<Wide>(total) / count);
  };
  run_reduction<Reduction::kSum, T, std::uint64_t>(pool, plan, x.data<T>(), out.data<T>(), divide);
}

void mean(KernelContext& c) {
  const ReducePlan plan(c);
  const Array& x = c.input(0);
  if (plan.trivial()) return c.set_output(0, x.reshape(plan.out_shape));
  Array& out = c.allocate_output(0, plan.out_shape);
  with_number(x.dtype(), [&]<class T>() {
    if constexpr (std::is_integral_v<T>) {
      integer_mean<T>(c.intra_op(), plan, x, out);
    } else {
      const auto count = static_cast<double>(plan.count());
      run_reduction<Reduction::kSum, T, Compute<T>>(
          c.intra_op(), plan, x.data<T>(), out.data<T>(), [count](auto total) {
            if constexpr (is_complex_type<T>) {  // as TensorFlow: the mean of none is 0
              if (count == 0) return T(0);
            }
            return rounded<T>(total / count);
          });
    }
  });
}

void euclidean_norm(KernelContext& c) {
  const ReducePlan plan(c);
  const Array& x = c.input(0);
  Array& out = c.allocate_output(0, plan.out_shape);
  with_number(x.dtype(), [&]<class T>() {
    using S = typename SummandType<T>::type;
    run_reduction<Reduction::kSquares, S, Compute<S>>(
        c.intra_op(), plan, x.data<S>(), out.data<T>(), [](auto total) {
          if constexpr (std::is_integral_v<T>) {
            const T squares = static_cast<T>(total);  // may have overflowed
            return squares < T(0) ? T(0) : static_cast<T>(std::sqrt(static_cast<double>(squares)));
          } else {
            return rounded<T>(std::sqrt(total));
          }
        });
  });
}

const KernelRegistration kSum{{.op = "Sum", .types = {{"T", kNumberTypes}}, .run = sum}};
const KernelRegistration kMean{{.op = "Mean", .types = {{"T", kNumberTypes}}, .run = mean}};
const KernelRegistration kNorm{
    {.op = "EuclideanNorm", .types = {{"T", kNumberTypes}}, .run = euclidean_norm}};

}  // namespace
}  // namespace tandem::cpu
