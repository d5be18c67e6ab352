// Cast: between all numbers and bool.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/elementwise/float16_rows.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

// What the processor's instructions give for values that fit: towards zero. What does not fit
// becomes the value that x86 has for that, in 32 bits or, for wider and for unsigned 32-bit
// integers, in 64.
template <class I, class F>
I truncated(F x) {
  constexpr F kBound = static_cast<F>(std::uint64_t{1} << (8 * sizeof(I) - 1));
  return x >= -kBound && x < kBound ? static_cast<I>(x) : std::numeric_limits<I>::min();
}

template <class D, class S>
D convert_one(S x) {
  if constexpr (std::is_same_v<D, bool>) {
    return x != S(0);
  } else if constexpr (std::is_floating_point_v<S> && std::is_integral_v<D>) {
    if constexpr (sizeof(D) < 4 || std::is_same_v<D, std::int32_t>) {
      return static_cast<D>(truncated<std::int32_t>(x));
    } else if constexpr (std::is_same_v<D, std::uint64_t>) {
      constexpr S kHalfRange = static_cast<S>(std::uint64_t{1} << 63);
      return x >= kHalfRange && x < 2 * kHalfRange ? static_cast<D>(x)
                                                   : static_cast<D>(truncated<std::int64_t>(x));
    } else {
      return static_cast<D>(truncated<std::int64_t>(x));
    }
  } else {
    return static_cast<D>(x);
  }
}

using RowFn = void (*)(const void*, void*, std::int64_t);

template <class S, class D>
void convert_row(const void* from_data, void* to_data, std::int64_t n) {
  const auto* from = static_cast<const S*>(from_data);
  auto* to = static_cast<D*>(to_data);
  constexpr int kBlock = 32;  // a constant count is what compilers turn into vector instructions
  std::int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    for (int k = 0; k < kBlock; ++k) to[i + k] = convert_one<D>(from[i + k]);
  }
  for (; i < n; ++i) to[i] = convert_one<D>(from[i]);
}

// The types that C++ converts by itself; the others pass through one of them.
template <class F>
decltype(auto) with_native(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kFloat: return f.template operator()<float>();
    case DType::kDouble: return f.template operator()<double>();
    case DType::kBool: return f.template operator()<bool>();
    default: return with_integer(dtype, f);
  }
}

RowFn native_row(DType from, DType to) {
  return with_native(from, [to]<class S>() {
    return with_native(to, []<class D>() -> RowFn { return convert_row<S, D>; });
  });
}

DType native_dtype(DType t) {
  if (t == DType::kHalf || t == DType::kBFloat16 || t == DType::kComplex64) return DType::kFloat;
  return t == DType::kComplex128 ? DType::kDouble : t;
}

constexpr std::int64_t kChunk = 512;

// The elements in the native type: where they are, or in `stage`.
const void* load(DType dtype, const char* from, void* stage, std::int64_t n) {
  switch (dtype) {
    case DType::kHalf:
      to_floats(reinterpret_cast<const Half*>(from), static_cast<float*>(stage), n);
      return stage;
    case DType::kBFloat16:
      to_floats(reinterpret_cast<const BFloat16*>(from), static_cast<float*>(stage), n);
      return stage;
    case DType::kComplex64:
      for (std::int64_t i = 0; i < n; ++i)
        static_cast<float*>(stage)[i] = reinterpret_cast<const float*>(from)[2 * i];
      return stage;
    case DType::kComplex128:
      for (std::int64_t i = 0; i < n; ++i) {
        static_cast<double*>(stage)[i] = reinterpret_cast<const double*>(from)[2 * i];
      }
      return stage;
    default: return from;
  }
}

template <class R>
void store_complex(const R* from, R* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    to[2 * i] = from[i];
    to[2 * i + 1] = 0;
  }
}

void store(DType dtype, const void* stage, char* to, std::int64_t n) {
  switch (dtype) {
    case DType::kHalf:
      return from_floats(static_cast<const float*>(stage), reinterpret_cast<Half*>(to), n);
    case DType::kBFloat16:
      return from_floats(static_cast<const float*>(stage), reinterpret_cast<BFloat16*>(to), n);
    case DType::kComplex64:
      return store_complex(static_cast<const float*>(stage), reinterpret_cast<float*>(to), n);
    default:
      return store_complex(static_cast<const double*>(stage), reinterpret_cast<double*>(to), n);
  }
}

int mantissa_bits(DType t) {
  switch (t) {
    case DType::kHalf: return 10;
    case DType::kBFloat16: return 7;
    case DType::kFloat: return 23;
    case DType::kDouble: return 52;
    default: return 0;
  }
}

// Clears the bits of the mantissa that the destination lacks, so that rounding has nothing to do.
template <class F, class Bits>
void clear_low_bits(const void* from, void* to, std::int64_t n, int drop) {
  const Bits mask = ~((Bits{1} << drop) - 1);
  for (std::int64_t i = 0; i < n; ++i) {
    const F x = static_cast<const F*>(from)[i];
    static_cast<F*>(to)[i] =
        x != x ? x : std::bit_cast<F>(static_cast<Bits>(std::bit_cast<Bits>(x) & mask));
  }
}

struct Caster {
  DType from, to;  // as stored
  DType native_from, native_to;
  RowFn row = nullptr;  // null if both native types are the same
  int drop = 0;         // bits of the mantissa to cut off

  Caster(DType source, DType destination, bool truncate)
      : from(source),
        to(destination),
        native_from(native_dtype(source)),
        native_to(native_dtype(destination)) {
    if (native_from != native_to) row = native_row(native_from, native_to);
    if (truncate && (from == DType::kFloat || from == DType::kDouble) && is_floating(to)) {
      drop = std::max(0, mantissa_bits(from) - mantissa_bits(to));
    }
  }

  void operator()(const char* source, char* destination, std::int64_t n) const {
    if (from == native_from && to == native_to && drop == 0) return row(source, destination, n);
    alignas(64) double in_stage[kChunk];
    alignas(64) double out_stage[kChunk];
    const auto from_size = static_cast<std::int64_t>(dtype_size(from));
    const auto to_size = static_cast<std::int64_t>(dtype_size(to));
    for (std::int64_t i = 0; i < n; i += kChunk) {
      const std::int64_t count = std::min(kChunk, n - i);
      char* const out = destination + i * to_size;
      const void* values = load(from, source + i * from_size, in_stage, count);
      if (drop > 0) {
        if (from == DType::kFloat)
          clear_low_bits<float, std::uint32_t>(values, in_stage, count, drop);
        else
          clear_low_bits<double, std::uint64_t>(values, in_stage, count, drop);
        values = in_stage;
      }
      void* const converted = to == native_to ? static_cast<void*>(out) : out_stage;
      if (row) {
        row(values, converted, count);
        values = converted;
      }
      if (to != native_to)
        store(to, values, out, count);
      else if (!row)
        std::memcpy(out, values, static_cast<std::size_t>(count * to_size));
    }
  }
};

void cast(KernelContext& c) {
  const Array& x = c.input(0);
  const DType from = x.dtype();
  const DType to = c.output_dtype(0);
  if (from == to) return c.set_output(0, x);
  Array& out = c.allocate_output(0, x.shape());
  std::int64_t n = x.num_elements();
  const auto* source = x.data<char>();
  auto* destination = out.data<char>();
  const auto run = [&](const Caster& caster, std::int64_t from_size, std::int64_t to_size) {
    c.intra_op().parallel_for(n, 0.5, [&](std::int64_t begin, std::int64_t end) {
      caster(source + begin * from_size, destination + begin * to_size, end - begin);
    });
  };
  if (is_complex(from) && is_complex(to)) {  // twice as many real numbers
    const Caster caster(from == DType::kComplex64 ? DType::kFloat : DType::kDouble,
                        to == DType::kComplex64 ? DType::kFloat : DType::kDouble, false);
    n *= 2;
    return run(caster, static_cast<std::int64_t>(dtype_size(from)) / 2,
               static_cast<std::int64_t>(dtype_size(to)) / 2);
  }
  run(Caster(from, to, c.attr<bool>("Truncate")), static_cast<std::int64_t>(dtype_size(from)),
      static_cast<std::int64_t>(dtype_size(to)));
}

const KernelRegistration kCast{
    {.op = "Cast",
     .types = {{"SrcT", kPodTypes}, {"DstT", kPodTypes}},
     .run = cast,
     .float_loops = [] { return ElementLoops{.copies = true, .cost = 0.3}; }}};

}  // namespace
}  // namespace tandem::cpu
