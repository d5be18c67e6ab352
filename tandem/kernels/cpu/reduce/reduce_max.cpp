// Max, Min, All, Any, Prod.

#include <cstdint>
#include <type_traits>

#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/reduce/reduce.h"

namespace tandem::cpu {
namespace {

template <Reduction kKind>
void extreme(KernelContext& c) {
  const ReducePlan plan(c);
  const Array& x = c.input(0);
  if (plan.trivial()) return c.set_output(0, x.reshape(plan.out_shape));
  Array& out = c.allocate_output(0, plan.out_shape);
  with_real(x.dtype(), [&]<class T>() {
    run_reduction<kKind, T, Compute<T>>(c.intra_op(), plan, x.data<T>(), out.data<T>(),
                                        [](Compute<T> best) { return static_cast<T>(best); });
  });
}

// Over bytes that are 0 or 1, "all" is the smallest and "any" the largest.
template <Reduction kKind>
void logical(KernelContext& c) {
  const ReducePlan plan(c);
  const Array& x = c.input(0);
  if (plan.trivial()) return c.set_output(0, x.reshape(plan.out_shape));
  Array& out = c.allocate_output(0, plan.out_shape);
  run_reduction<kKind, std::uint8_t, std::uint8_t>(c.intra_op(), plan, x.data<std::uint8_t>(),
                                                   out.data<bool>(),
                                                   [](std::uint8_t best) { return best != 0; });
}

template <class T, bool = std::is_integral_v<T>>
struct FactorType {
  using type = T;
};
template <class T>
struct FactorType<T, true> {
  using type = std::make_unsigned_t<T>;
};

void product(KernelContext& c) {
  const ReducePlan plan(c);
  const Array& x = c.input(0);
  if (plan.trivial()) return c.set_output(0, x.reshape(plan.out_shape));
  Array& out = c.allocate_output(0, plan.out_shape);
  with_number(x.dtype(), [&]<class T>() {
    using S = typename FactorType<T>::type;  // integers without a sign, whose overflow is defined
    run_reduction<Reduction::kProduct, S, Compute<S>>(c.intra_op(), plan, x.data<S>(),
                                                      out.data<S>(), [](auto total) {
                                                        if constexpr (is_float16<S>)
                                                          return S(static_cast<float>(total));
                                                        else
                                                          return static_cast<S>(total);
                                                      });
  });
}

const KernelRegistration kMax{
    {.op = "Max", .types = {{"T", kRealTypes}}, .run = extreme<Reduction::kMax>}};
const KernelRegistration kMin{
    {.op = "Min", .types = {{"T", kRealTypes}}, .run = extreme<Reduction::kMin>}};
const KernelRegistration kAll{{.op = "All", .run = logical<Reduction::kMin>}};
const KernelRegistration kAny{{.op = "Any", .run = logical<Reduction::kMax>}};
const KernelRegistration kProd{{.op = "Prod", .types = {{"T", kNumberTypes}}, .run = product}};

}  // namespace
}  // namespace tandem::cpu
