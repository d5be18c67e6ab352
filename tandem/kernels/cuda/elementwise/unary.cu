// Functions of one element.

#include <vector>

#include "tandem/kernels/cuda/elementwise/functions.h"
#include "tandem/kernels/cuda/elementwise/map.h"
#include "tandem/kernels/cuda/support/warp.h"

namespace tandem::cuda {
namespace {

struct Invert {
  template <class T>
  TANDEM_DEVICE static T apply(T x) {
    return static_cast<T>(~x);
  }
};
struct IsNan {
  template <class T>
  TANDEM_DEVICE static bool apply(T x) {
    return x != x;
  }
};
struct IsInf {
  template <class T>
  TANDEM_DEVICE static bool apply(T x) {
    return x == std::numeric_limits<T>::infinity() || x == -std::numeric_limits<T>::infinity();
  }
};
struct IsFinite {
  template <class T>
  TANDEM_DEVICE static bool apply(T x) {
    return x - x == T(0);
  }
};
struct LogicalNot {
  TANDEM_DEVICE static bool apply(bool x) { return !x; }
};

template <class T>
TANDEM_KERNEL population_count_kernel(const T* x, std::uint8_t* y, std::int64_t n) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    std::uint8_t count = 0;
    for (auto bits = static_cast<std::make_unsigned_t<T>>(x[i]); bits != 0;
         bits = static_cast<std::make_unsigned_t<T>>(bits & (bits - 1))) {
      ++count;
    }
    y[i] = count;
  }
}

// A bound that is NaN bounds nothing, and NaN stays. A step of 0: one bound for all.
template <class T>
struct Clip {
  static constexpr bool kJoins = kIsOfManySmall<T>;
  struct Part {
    const T* x;
    const T* low;
    const T* high;
    T* y;
    std::int64_t n, low_step, high_step;
  };
  using Common = NothingInCommon;
  TANDEM_DEVICE static void run(const Part& part, const Common&, PartBlocks blocks) {
    const T* const x = part.x;
    const T* const low = part.low;
    const T* const high = part.high;
    T* const y = part.y;
    const std::int64_t n = part.n, low_step = part.low_step, high_step = part.high_step;
    for (auto i = blocks.first<std::int64_t>(); i < n; i += blocks.step<std::int64_t>()) {
      const Compute<T> value = load(x[i]), least = load(low[i * low_step]),
                       most = load(high[i * high_step]);
      const Compute<T> below = most < value ? most : value;
      y[i] = store<T>(below < least ? least : below);
    }
  }
};

// Sets bit 1 where there is a NaN, 2 for infinity, 4 for minus infinity.
template <class T>
TANDEM_KERNEL find_strange_kernel(const T* x, int* found, std::int64_t n) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const Compute<T> value = load(x[i]);
    if (value != value) atomic_max(&found[0], 1);
    if (value - value != Compute<T>(0) && value == value) {
      atomic_max(&found[value > Compute<T>(0) ? 1 : 2], 1);
    }
  }
}

template <class T>
TANDEM_KERNEL leaky_relu_kernel(const T* x, T* y, std::int64_t n, float alpha) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const Compute<T> value = load(x[i]);
    y[i] = store<T>(value < Compute<T>(0) ? value * static_cast<Compute<T>>(alpha) : value);
  }
}

template <class T>
TANDEM_KERNEL fill_kernel(T* y, std::int64_t n, T value) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) y[i] = value;
}

template <class T>
void fill(const TensorView& y, T value) {
  if (y.count > 0) {
    TANDEM_LAUNCH(fill_kernel<T>, shape_for(y.count), 0, y.as<T>(), y.count, value);
  }
}

}  // namespace

#define TANDEM_UNARY_FLOATING(FUNCTION, STRUCT) \
  void FUNCTION(KernelCall& call) { map_floating<STRUCT>(call); }

void unary_abs(KernelCall& call) { map_numbers<Abs>(call); }
void unary_neg(KernelCall& call) { map_numbers<Neg>(call); }
void unary_sign(KernelCall& call) { map_numbers<Sign>(call); }
void unary_square(KernelCall& call) { map_numbers<Square>(call); }
void unary_relu(KernelCall& call) { map_numbers<Relu>(call); }
void unary_relu6(KernelCall& call) { map_numbers<Relu6>(call); }
TANDEM_UNARY_FLOATING(unary_sqrt, Sqrt)
TANDEM_UNARY_FLOATING(unary_rsqrt, Rsqrt)
TANDEM_UNARY_FLOATING(unary_exp, Exp)
TANDEM_UNARY_FLOATING(unary_expm1, Expm1)
TANDEM_UNARY_FLOATING(unary_log, Log)
TANDEM_UNARY_FLOATING(unary_log1p, Log1p)
TANDEM_UNARY_FLOATING(unary_sin, Sin)
TANDEM_UNARY_FLOATING(unary_cos, Cos)
TANDEM_UNARY_FLOATING(unary_tan, Tan)
TANDEM_UNARY_FLOATING(unary_asin, Asin)
TANDEM_UNARY_FLOATING(unary_acos, Acos)
TANDEM_UNARY_FLOATING(unary_atan, Atan)
TANDEM_UNARY_FLOATING(unary_sinh, Sinh)
TANDEM_UNARY_FLOATING(unary_cosh, Cosh)
TANDEM_UNARY_FLOATING(unary_tanh, Tanh)
TANDEM_UNARY_FLOATING(unary_asinh, Asinh)
TANDEM_UNARY_FLOATING(unary_acosh, Acosh)
TANDEM_UNARY_FLOATING(unary_atanh, Atanh)
TANDEM_UNARY_FLOATING(unary_sigmoid, Sigmoid)
TANDEM_UNARY_FLOATING(unary_softplus, Softplus)
TANDEM_UNARY_FLOATING(unary_softsign, Softsign)
TANDEM_UNARY_FLOATING(unary_elu, Elu)
TANDEM_UNARY_FLOATING(unary_selu, Selu)
TANDEM_UNARY_FLOATING(unary_erf, Erf)
TANDEM_UNARY_FLOATING(unary_erfc, Erfc)
TANDEM_UNARY_FLOATING(unary_lgamma, Lgamma)
TANDEM_UNARY_FLOATING(unary_digamma, Digamma)
TANDEM_UNARY_FLOATING(unary_erfinv, Erfinv)
TANDEM_UNARY_FLOATING(unary_ndtri, Ndtri)
TANDEM_UNARY_FLOATING(unary_floor, Floor)
TANDEM_UNARY_FLOATING(unary_ceil, Ceil)
TANDEM_UNARY_FLOATING(unary_rint, Rint)
TANDEM_UNARY_FLOATING(unary_reciprocal, Reciprocal)
TANDEM_UNARY_FLOATING(unary_is_nan, IsNan)
TANDEM_UNARY_FLOATING(unary_is_inf, IsInf)
TANDEM_UNARY_FLOATING(unary_is_finite, IsFinite)

void unary_logical_not(KernelCall& call) { map_as<LogicalNot, bool>(call); }

void unary_invert(KernelCall& call) {
  const Type type = call.input(0).type;
  if (!visit_integers(type,
                      [&](auto tag) { map_as<Invert, typename decltype(tag)::type>(call); })) {
    no_kernel_for(type);
  }
}

void unary_leaky_relu(KernelCall& call) {
  const TensorView x = call.input(0), y = call.allocate_output(0, x.sizes);
  const float alpha = call.attr_float("alpha");
  if (x.count == 0) return;
  visit_floating(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH(leaky_relu_kernel<T>, shape_for(x.count), 0, x.as<T>(), y.as<T>(), x.count,
                  alpha);
  });
}

void unary_population_count(KernelCall& call) {
  const TensorView x = call.input(0), y = call.allocate_output(0, x.sizes);
  if (x.count > 0 && !visit_integers(x.type, [&](auto tag) {
        using T = typename decltype(tag)::type;
        TANDEM_LAUNCH(population_count_kernel<T>, shape_for(x.count), 0, x.as<T>(),
                      y.as<std::uint8_t>(), x.count);
      })) {
    no_kernel_for(x.type);
  }
}

void unary_clip(KernelCall& call) {
  const TensorView x = call.input(0), low = call.input(1), high = call.input(2);
  for (const TensorView& bound : {low, high}) {
    if (bound.rank() != 0 && bound.sizes != x.sizes) {
      refuse(
          "clip_value_min and clip_value_max must be either of the same shape as input, or a "
          "scalar");
    }
  }
  const TensorView y = call.allocate_output(0, x.sizes);
  if (x.count > 0 && !visit_numbers(x.type, [&](auto tag) {
        using T = typename decltype(tag)::type;
        const MemoryUse uses[] = {reads(x.as<T>(), x.count), reads(low.as<T>(), low.count),
                                  reads(high.as<T>(), high.count), writes(y.as<T>(), y.count)};
        launch_part<Clip<T>>(
            "clip<T>", shape_for(x.count),
            {x.as<T>(), low.as<T>(), high.as<T>(), y.as<T>(), x.count,
             std::int64_t{low.rank() == 0 ? 0 : 1}, std::int64_t{high.rank() == 0 ? 0 : 1}},
            {}, uses);
      })) {
    no_kernel_for(x.type);
  }
}

// Waits for the answer: what it is asked for is to stop there.
static void check_numerics(KernelCall& call, bool name_signs) {
  const TensorView x = call.input(0);
  const std::string message = call.attr_string("message");
  const TensorView y = call.allocate_output(0, x.sizes);
  if (x.count == 0) return;
  const std::size_t bytes = static_cast<std::size_t>(x.count) * size_of(x.type);
  if (y.data != x.data) call.copy(y.data, x.data, bytes);
  int found[3] = {};
  int* const on_device = static_cast<int*>(call.scratch(sizeof(found)));
  call.zero(on_device, sizeof(found));
  visit_floating(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH(find_strange_kernel<T>, shape_for(x.count), 0, x.as<T>(), on_device, x.count);
  });
  call.read_back(found, on_device, sizeof(found));
  std::vector<std::string> kinds;
  if (name_signs) {
    if (found[2]) kinds.push_back("-Inf");
    if (found[1]) kinds.push_back("+Inf");
  } else if (found[1] || found[2]) {
    kinds.push_back("Inf");
  }
  if (found[0]) kinds.push_back("NaN");
  if (kinds.empty()) return;
  std::string list;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    list += (i == 0 ? "" : i + 1 == kinds.size() ? " and " : ", ") + kinds[i];
  }
  refuse(message + " : Tensor had " + list + " values");
}
void unary_check_numerics(KernelCall& call) { check_numerics(call, false); }
void unary_check_numerics_v2(KernelCall& call) { check_numerics(call, true); }

void unary_zeros_like(KernelCall& call) {
  const TensorView y = call.allocate_output(0, call.input(0).sizes);
  visit_size(y.type, [&](auto tag) { fill<typename decltype(tag)::type>(y, 0); });
}

void unary_ones_like(KernelCall& call) {
  const TensorView y = call.allocate_output(0, call.input(0).sizes);
  if (y.type == Type::kBool) return fill<bool>(y, true);
  visit_numbers(y.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill<T>(y, store<T>(1));
  });
}

}  // namespace tandem::cuda
