// BitwiseAnd, BitwiseOr, BitwiseXor, Invert, LeftShift, RightShift.

#include <algorithm>
#include <cstdint>

#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/elementwise/broadcast_rows.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

// How far to shift: C++ defines only what is less than the number of bits.
template <class T>
int distance(T y) {
  constexpr int kMax = 8 * sizeof(T) - 1;
  if (y < T(0)) return 0;
  return y > T(kMax) ? kMax : static_cast<int>(y);
}

struct And {
  template <class T>
  static T apply(T x, T y) {
    return static_cast<T>(x & y);
  }
};
struct Or {
  template <class T>
  static T apply(T x, T y) {
    return static_cast<T>(x | y);
  }
};
struct Xor {
  template <class T>
  static T apply(T x, T y) {
    return static_cast<T>(x ^ y);
  }
};
struct Left {
  template <class T>
  static T apply(T x, T y) {
    return static_cast<T>(x << distance(y));
  }
};
struct Right {
  template <class T>
  static T apply(T x, T y) {
    return static_cast<T>(x >> distance(y));
  }
};

template <class Op, int kStepX, int kStepY, class T>
void apply_row(const T* x, const T* y, T* out, std::int64_t n) {
  constexpr int kBlock = 16;  // a constant count is what compilers turn into vector instructions
  std::int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    for (int k = 0; k < kBlock; ++k)
      out[i + k] = Op::apply(x[(i + k) * kStepX], y[(i + k) * kStepY]);
  }
  for (; i < n; ++i) out[i] = Op::apply(x[i * kStepX], y[i * kStepY]);
}

template <class Op>
void binary(KernelContext& c) {
  const BroadcastRows<2> rows({&c.input(0).shape(), &c.input(1).shape()});
  Array& out =
      c.reuse_or_allocate_output(c.input(0).shape() == rows.shape() ? 0 : 1, 0, rows.shape());
  with_integer(out.dtype(), [&]<class T>() {
    const T* const x = c.input(0).data<T>();
    const T* const y = c.input(1).data<T>();
    T* const result = out.data<T>();
    rows.run(c.intra_op(), 0.3,
             [=](std::int64_t begin, const auto& from, const auto& step, std::int64_t n) {
               if (step[0] == 0)
                 apply_row<Op, 0, 1>(x + from[0], y + from[1], result + begin, n);
               else if (step[1] == 0)
                 apply_row<Op, 1, 0>(x + from[0], y + from[1], result + begin, n);
               else
                 apply_row<Op, 1, 1>(x + from[0], y + from[1], result + begin, n);
             });
  });
}

void invert(KernelContext& c) {
  const Array& x = c.input(0);
  Array& out = c.reuse_or_allocate_output(0, 0, x.shape());
  const auto bytes = static_cast<std::int64_t>(x.num_bytes());
  c.intra_op().parallel_for(bytes, 0.05, [&](std::int64_t begin, std::int64_t end) {
    std::transform(x.data<std::uint8_t>() + begin, x.data<std::uint8_t>() + end,
                   out.data<std::uint8_t>() + begin,
                   [](std::uint8_t b) { return static_cast<std::uint8_t>(~b); });
  });
}

const KernelRegistration kAnd{
    {.op = "BitwiseAnd", .types = {{"T", kIntegerTypes}}, .run = binary<And>}};
const KernelRegistration kOr{
    {.op = "BitwiseOr", .types = {{"T", kIntegerTypes}}, .run = binary<Or>}};
const KernelRegistration kXor{
    {.op = "BitwiseXor", .types = {{"T", kIntegerTypes}}, .run = binary<Xor>}};
const KernelRegistration kInvert{{.op = "Invert", .types = {{"T", kIntegerTypes}}, .run = invert}};
const KernelRegistration kLeft{
    {.op = "LeftShift", .types = {{"T", kIntegerTypes}}, .run = binary<Left>}};
const KernelRegistration kRight{
    {.op = "RightShift", .types = {{"T", kIntegerTypes}}, .run = binary<Right>}};

}  // namespace
}  // namespace tandem::cpu
