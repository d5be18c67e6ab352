// Random numbers by Philox 4x32-10, laid out as TensorFlow's: the same bits as the CPU's kernels
// draw. A thread makes one group of values, which has a place of its own in the stream.

#include <cmath>

#include "tandem/kernels/cuda/array/copy.h"
#include "tandem/kernels/cuda/support/launch.h"
#include "tandem/kernels/cuda/support/types.h"

namespace tandem::cuda {
namespace {

struct Block {
  std::uint32_t x[4];
};

TANDEM_HOST_DEVICE std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
TANDEM_HOST_DEVICE std::uint32_t high(std::uint64_t x) {
  return static_cast<std::uint32_t>(x >> 32);
}
TANDEM_HOST_DEVICE std::uint64_t join(std::uint32_t low_half, std::uint32_t high_half) {
  return (static_cast<std::uint64_t>(high_half) << 32) | low_half;
}

// Block i of a stream is a function of the key and of the counter plus i.
struct Philox {
  std::uint32_t counter[4] = {};
  std::uint32_t key[2] = {};

  TANDEM_HOST_DEVICE void skip(std::uint64_t blocks) {
    const std::uint64_t lower = join(counter[0], counter[1]), sum = lower + blocks;
    counter[0] = low(sum);
    counter[1] = high(sum);
    if (sum < lower && ++counter[2] == 0) ++counter[3];
  }
  TANDEM_HOST_DEVICE Block next() {
    Block b = {{counter[0], counter[1], counter[2], counter[3]}};
    std::uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t p = std::uint64_t{0xD2511F53} * b.x[0];
      const std::uint64_t q = std::uint64_t{0xCD9E8D57} * b.x[2];
      b = {{high(q) ^ b.x[1] ^ k0, low(q), high(p) ^ b.x[3] ^ k1, low(p)}};
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    skip(1);
    return b;
  }
};

template <class To, class From>
TANDEM_DEVICE To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  union {
    From from;
    To to;
  } bits = {from};
  return bits.to;
}

// ---- Numbers from [0, 1): random bits as the mantissa of a number from [1, 2), less one ----

TANDEM_DEVICE float unit_float(std::uint32_t x) {
  return bits_as<float>((127u << 23) | (x & 0x7fffffu)) - 1.0f;
}
TANDEM_DEVICE double unit_double(std::uint32_t x0, std::uint32_t x1) {
  const std::uint64_t mantissa = (static_cast<std::uint64_t>(x0 & 0xfffffu) << 32) | x1;
  return bits_as<double>((std::uint64_t{1023} << 52) | mantissa) - 1.0;
}

template <class T>
constexpr int kGroup = sizeof(T) == 8 ? 2 : 4;

template <class T>
struct Uniform {
  TANDEM_DEVICE void operator()(const Block& b, T* out) const {
    if constexpr (std::is_same_v<T, double>) {
      for (int i = 0; i < 2; ++i) out[i] = unit_double(b.x[2 * i], b.x[2 * i + 1]);
    } else {
      for (int i = 0; i < 4; ++i) {
        if constexpr (std::is_same_v<T, float>) {
          out[i] = unit_float(b.x[i]);
        } else {
          T one_to_two;
          one_to_two.bits =
              static_cast<std::uint16_t>(std::is_same_v<T, Half> ? (15u << 10) | (b.x[i] & 0x3ffu)
                                                                 : (127u << 7) | (b.x[i] & 0x7fu));
          out[i] = store<T>(load(one_to_two) - 1.0f);
        }
      }
    }
  }
};

template <class T>
struct FullInt {
  TANDEM_DEVICE void operator()(const Block& b, T* out) const {
    for (int i = 0; i < kGroup<T>; ++i) {
      if constexpr (sizeof(T) == 8) {
        out[i] = static_cast<T>(join(b.x[2 * i], b.x[2 * i + 1]));
      } else {
        out[i] = static_cast<T>(b.x[i]);
      }
    }
  }
};

// Integers from [low, low + width), by the remainder.
template <class T>
struct UniformInt {
  using Unsigned = std::make_unsigned_t<T>;
  T low;
  Unsigned width;
  TANDEM_DEVICE void operator()(const Block& b, T* out) const {
    Unsigned bits[kGroup<T>];
    FullInt<Unsigned>()(b, bits);
    for (int i = 0; i < kGroup<T>; ++i) {
      out[i] = static_cast<T>(static_cast<Unsigned>(low) + bits[i] % width);
    }
  }
};

// ---- Normal numbers, by Box and Muller ----

constexpr double kTwoPi = 6.283185307179586476925286766559;

TANDEM_DEVICE void box_muller(std::uint32_t x0, std::uint32_t x1, float* out) {
  const float unit = unit_float(x0), u = unit < 1.0e-7f ? 1.0e-7f : unit;  // a finite logarithm
  const auto angle = static_cast<float>(kTwoPi * static_cast<double>(unit_float(x1)));
  const float radius = std::sqrt(-2.0f * std::log(u));
  out[0] = std::sin(angle) * radius;
  out[1] = std::cos(angle) * radius;
}
TANDEM_DEVICE void box_muller(const Block& b, double* out) {
  const double unit = unit_double(b.x[0], b.x[1]), u = unit < 1.0e-7 ? 1.0e-7 : unit;
  const double angle = kTwoPi * unit_double(b.x[2], b.x[3]);
  const double radius = std::sqrt(-2.0 * std::log(u));
  out[0] = std::sin(angle) * radius;
  out[1] = std::cos(angle) * radius;
}

template <class T>
struct Normal {
  TANDEM_DEVICE void operator()(const Block& b, T* out) const {
    if constexpr (std::is_same_v<T, double>) {
      box_muller(b, out);
    } else {
      float wide[4];
      box_muller(b.x[0], b.x[1], wide);
      box_muller(b.x[2], b.x[3], wide + 2);
      for (int i = 0; i < 4; ++i) out[i] = store<T>(wide[i]);
    }
  }
};

template <class T, class Distribution>
TANDEM_KERNEL draw_kernel(Philox stream, Distribution distribution, T* y, std::int64_t n) {
  const std::int64_t groups = (n + kGroup<T> - 1) / kGroup<T>;
  for (auto g = first_index<std::int64_t>(); g < groups; g += index_step<std::int64_t>()) {
    Philox own = stream;
    own.skip(static_cast<std::uint64_t>(g));
    T values[kGroup<T>];
    distribution(own.next(), values);
    for (std::int64_t k = 0; k < kGroup<T>; ++k) {
      if (g * kGroup<T> + k < n) y[g * kGroup<T> + k] = values[k];
    }
  }
}

// Normal numbers, those of magnitude 2 or more drawn again: a group has 256 numbers of the stream
// for each value.
template <class T>
TANDEM_KERNEL draw_truncated_kernel(Philox stream, T* y, std::int64_t n) {
  using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const std::int64_t groups = (n + kGroup<T> - 1) / kGroup<T>;
  for (auto g = first_index<std::int64_t>(); g < groups; g += index_step<std::int64_t>()) {
    Philox own = stream;
    own.skip(static_cast<std::uint64_t>(g) * (kGroup<T> * 256 / 4));
    std::int64_t have = 0;
    while (have < kGroup<T>) {
      const Block b = own.next();
      Wide drawn[4];
      int count = 2;
      if constexpr (std::is_same_v<T, double>) {
        box_muller(b, drawn);
      } else {
        box_muller(b.x[0], b.x[1], drawn);
        box_muller(b.x[2], b.x[3], drawn + 2);
        count = 4;
      }
      for (int k = 0; k < count && have < kGroup<T>; ++k) {
        if (std::fabs(drawn[k]) >= Wide(2)) continue;
        const std::int64_t at = g * kGroup<T> + have++;
        if (at < n) y[at] = store<T>(drawn[k]);
      }
    }
  }
}

std::int64_t groups_of(std::int64_t n, std::size_t bytes) {
  return bytes == 8 ? (n + 1) / 2 : (n + 3) / 4;
}

template <class T, class Distribution>
void draw(const TensorView& y, const Philox& stream, const Distribution& distribution) {
  TANDEM_LAUNCH((draw_kernel<T, Distribution>), shape_for(groups_of(y.count, sizeof(T))), 0, stream,
                distribution, y.as<T>(), y.count);
}

// ---- Where numbers come from ----

Philox reserved(const KernelCall& call, std::int64_t n) {
  const RandomStart start = call.reserve_random(static_cast<std::uint64_t>(n) * 256);
  Philox stream;
  for (int i = 0; i < 4; ++i) stream.counter[i] = start.counter[i];
  for (int i = 0; i < 2; ++i) stream.key[i] = start.key[i];
  return stream;
}

// Integers of any of the four types, of which seeds are.
std::uint64_t integer_at(const TensorView& t, std::size_t i) {
  switch (t.type) {
    case Type::kInt32: return static_cast<std::uint64_t>(std::int64_t{t.as<std::int32_t>()[i]});
    case Type::kUint32: return t.as<std::uint32_t>()[i];
    default: return t.as<std::uint64_t>()[i];
  }
}

// Both seeds go through Philox once, so that neighbouring ones give streams that have nothing in
// common.
Philox seeded(const TensorView& seed) {
  if (seed.sizes != Sizes{2}) refuse("seed must have shape [2]");
  const std::uint64_t a = integer_at(seed, 0), b = integer_at(seed, 1);
  Philox mixer;
  mixer.counter[0] = low(a);
  mixer.counter[1] = high(a);
  mixer.counter[2] = low(b);
  mixer.counter[3] = high(b);
  mixer.key[0] = 0x3ec8f720;
  mixer.key[1] = 0x02461e29;
  const Block mixed = mixer.next();
  Philox stream;
  stream.counter[2] = mixed.x[2];
  stream.counter[3] = mixed.x[3];
  stream.key[0] = mixed.x[0];
  stream.key[1] = mixed.x[1];
  return stream;
}

Philox keyed(const KernelCall& call) {
  const TensorView key = call.input(1), counter = call.input(2);
  const std::int64_t algorithm = call.input(3).host_scalar("alg");
  if (algorithm != 1 && algorithm != 3) {  // Philox, or whatever suits the device
    refuse("Unsupported algorithm id: " + std::to_string(algorithm));
  }
  if (key.sizes != Sizes{1}) refuse("key must have shape [1]");
  if (counter.rank() != 1 || counter.count < 2) {
    refuse("counter must be a vector with length at least 2");
  }
  const std::uint64_t k = integer_at(key, 0), a = integer_at(counter, 0),
                      b = integer_at(counter, 1);
  Philox stream;
  stream.counter[0] = low(a);
  stream.counter[1] = high(a);
  stream.counter[2] = low(b);
  stream.counter[3] = high(b);
  stream.key[0] = low(k);
  stream.key[1] = high(k);
  return stream;
}

enum class Kind { kUniform, kNormal, kTruncated };

void fill_floating(const TensorView& y, const Philox& stream, Kind kind) {
  if (y.count == 0) return;
  if (!visit_floating(y.type, [&](auto tag) {
        using T = typename decltype(tag)::type;
        if (kind == Kind::kUniform) return draw<T>(y, stream, Uniform<T>());
        if (kind == Kind::kNormal) return draw<T>(y, stream, Normal<T>());
        TANDEM_LAUNCH(draw_truncated_kernel<T>, shape_for(groups_of(y.count, sizeof(T))), 0, stream,
                      y.as<T>(), y.count);
      })) {
    no_kernel_for(y.type);
  }
}

template <class F>
void visit_words(Type type, F&& f) {
  switch (type) {
    case Type::kInt32: return f(Tag<std::int32_t>());
    case Type::kInt64: return f(Tag<std::int64_t>());
    case Type::kUint32: return f(Tag<std::uint32_t>());
    case Type::kUint64: return f(Tag<std::uint64_t>());
    default: no_kernel_for(type);
  }
}

void fill_range(const KernelCall& call, const TensorView& y, const Philox& stream, int from) {
  const TensorView low = call.input(from), high = call.input(from + 1);
  if (low.rank() != 0 || high.rank() != 0) refuse("minval and maxval must be 0-D");
  if (y.count == 0) return;
  visit_words(y.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Unsigned = std::make_unsigned_t<T>;
    const T a = *low.as<T>(), b = *high.as<T>();
    if (a >= b) {
      refuse("Need minval < maxval, got " + std::to_string(a) + " >= " + std::to_string(b));
    }
    const auto width = static_cast<Unsigned>(static_cast<Unsigned>(b) - static_cast<Unsigned>(a));
    draw<T>(y, stream, UniformInt<T>{a, width});
  });
}

void fill_full(const TensorView& y, const Philox& stream) {
  if (y.count == 0) return;
  visit_words(y.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    draw<T>(y, stream, FullInt<T>());
  });
}

TensorView output(const KernelCall& call) {
  return call.allocate_output(0, host_sizes(call.input(0), "shape"));
}

void stateful(KernelCall& call, Kind kind) {
  const TensorView y = output(call);
  fill_floating(y, reserved(call, y.count), kind);
}
void of_seed(KernelCall& call, Kind kind) {
  const Philox stream = seeded(call.input(1));
  fill_floating(output(call), stream, kind);
}
void of_key(KernelCall& call, Kind kind) {
  const Philox stream = keyed(call);
  fill_floating(output(call), stream, kind);
}

}  // namespace

void random_uniform(KernelCall& call) { stateful(call, Kind::kUniform); }
void random_normal(KernelCall& call) { stateful(call, Kind::kNormal); }
void random_truncated(KernelCall& call) { stateful(call, Kind::kTruncated); }
void random_range(KernelCall& call) {
  const TensorView y = output(call);
  fill_range(call, y, reserved(call, y.count), 1);
}
void random_seeded_uniform(KernelCall& call) { of_seed(call, Kind::kUniform); }
void random_seeded_normal(KernelCall& call) { of_seed(call, Kind::kNormal); }
void random_seeded_truncated(KernelCall& call) { of_seed(call, Kind::kTruncated); }
void random_seeded_range(KernelCall& call) {
  const Philox stream = seeded(call.input(1));
  fill_range(call, output(call), stream, 2);
}
void random_seeded_full(KernelCall& call) {
  const Philox stream = seeded(call.input(1));
  fill_full(output(call), stream);
}
void random_keyed_uniform(KernelCall& call) { of_key(call, Kind::kUniform); }
void random_keyed_normal(KernelCall& call) { of_key(call, Kind::kNormal); }
void random_keyed_truncated(KernelCall& call) { of_key(call, Kind::kTruncated); }
void random_keyed_range(KernelCall& call) {
  const Philox stream = keyed(call);
  fill_range(call, output(call), stream, 4);
}
void random_keyed_full(KernelCall& call) {
  const Philox stream = keyed(call);
  fill_full(output(call), stream);
}

}  // namespace tandem::cuda
