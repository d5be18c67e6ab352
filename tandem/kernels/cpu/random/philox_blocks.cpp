// Philox by Highway: each lane of a vector computes a block of its own.

#include "tandem/kernels/cpu/random/philox_blocks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tandem/kernels/cpu/random/philox_blocks.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tandem/kernels/cpu/random/distributions.h"

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// What becomes of the numbers: themselves, or floats.
struct Raw {
  using Out = std::uint32_t;
  static Out one(std::uint32_t x) { return x; }
  template <class D, class V>
  static HWY_INLINE V all(D, V x) {
    return x;
  }
  template <class D>
  static D tag(D d) {
    return d;
  }
};
struct UnitFloat {
  using Out = float;
  static Out one(std::uint32_t x) { return unit_float(x); }
  template <class D, class V>
  static HWY_INLINE auto all(D d, V x) {
    const hn::Rebind<float, D> df;
    const auto bits = hn::Or(hn::And(x, hn::Set(d, 0x7fffffu)), hn::Set(d, 0x3f800000u));
    return hn::Sub(hn::BitCast(df, bits), hn::Set(df, 1.0f));
  }
  template <class D>
  static hn::Rebind<float, D> tag(D) {
    return {};
  }
};

template <class Convert>
void one_by_one(Philox& stream, std::int64_t blocks, typename Convert::Out* out) {
  for (std::int64_t b = 0; b < blocks; ++b) {
    const Philox::Block x = stream();
    for (std::size_t k = 0; k < 4; ++k)
      out[4 * b + static_cast<std::int64_t>(k)] = Convert::one(x[k]);
  }
}

#if HWY_TARGET == HWY_SCALAR

template <class Convert>
void run(Philox& stream, std::int64_t blocks, typename Convert::Out* out) {
  one_by_one<Convert>(stream, blocks, out);
}

#else

using D = hn::ScalableTag<std::uint32_t>;
using Vec = hn::Vec<D>;

struct Product {
  Vec high, low;
};

// All 64 bits of the lanes' products.
HWY_INLINE Product multiply(Vec a, Vec b) {
  const D d;
  const hn::Repartition<std::uint64_t, D> wide;
  const auto even = hn::MulEven(a, b);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, a))), b);
  return {hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even))),
          hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even))};
}

template <class Convert>
void run(Philox& stream, std::int64_t blocks, typename Convert::Out* out) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Vec a = hn::Set(d, 0xD2511F53u);
  const Vec b = hn::Set(d, 0xCD9E8D57u);
  while (blocks >= lanes) {
    const Philox::Block& counter = stream.counter();
    if (counter[0] > 0xffffffffu - static_cast<std::uint32_t>(lanes)) {  // a carry among the lanes
      one_by_one<Convert>(stream, lanes, out);
    } else {
      Vec x0 = hn::Iota(d, counter[0]);
      Vec x1 = hn::Set(d, counter[1]);
      Vec x2 = hn::Set(d, counter[2]);
      Vec x3 = hn::Set(d, counter[3]);
      std::uint32_t key0 = stream.key()[0];
      std::uint32_t key1 = stream.key()[1];
      for (int round = 0; round < 10; ++round) {
        const Product p = multiply(x0, a);
        const Product q = multiply(x2, b);
        x0 = hn::Xor(hn::Xor(q.high, x1), hn::Set(d, key0));
        x1 = q.low;
        x2 = hn::Xor(hn::Xor(p.high, x3), hn::Set(d, key1));
        x3 = p.low;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
      }
      hn::StoreInterleaved4(Convert::all(d, x0), Convert::all(d, x1), Convert::all(d, x2),
                            Convert::all(d, x3), Convert::tag(d), out);
      stream.skip(static_cast<std::uint64_t>(lanes));
    }
    out += 4 * lanes;
    blocks -= lanes;
  }
  one_by_one<Convert>(stream, blocks, out);
}

#endif

}  // namespace

void run_raw(Philox& stream, std::int64_t blocks, std::uint32_t* out) {
  run<Raw>(stream, blocks, out);
}
void run_floats(Philox& stream, std::int64_t blocks, float* out) {
  run<UnitFloat>(stream, blocks, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace tandem::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::cpu {

HWY_EXPORT(run_raw);
HWY_EXPORT(run_floats);

void philox_blocks(Philox& stream, std::int64_t blocks, std::uint32_t* out) {
  HWY_DYNAMIC_DISPATCH(run_raw)(stream, blocks, out);
}
void philox_unit_floats(Philox& stream, std::int64_t blocks, float* out) {
  HWY_DYNAMIC_DISPATCH(run_floats)(stream, blocks, out);
}

}  // namespace tandem::cpu
#endif  // HWY_ONCE
