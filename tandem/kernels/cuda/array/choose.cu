// Choosing between two tensors, adding several, adding a bias, and changing the element type.

#include <cstring>

#include "tandem/kernels/cuda/array/copy.h"
#include "tandem/kernels/cuda/support/launch_part.h"

namespace tandem::cuda {
namespace {

// T is of the elements' size.
template <class T>
struct Select {
  static constexpr bool kJoins = sizeof(T) == sizeof(float);
  struct Part {
    const bool* c;
    const T* a;
    const T* b;
    T* y;
    std::int64_t n;
    Strides<3> strides;
  };
  using Common = NothingInCommon;
  TANDEM_DEVICE static void run(const Part& part, const Common&, PartBlocks blocks) {
    const bool* const c = part.c;
    const T* const a = part.a;
    const T* const b = part.b;
    T* const y = part.y;
    const std::int64_t n = part.n;
    for (auto i = blocks.first<std::int64_t>(); i < n; i += blocks.step<std::int64_t>()) {
      std::int64_t at[3];
      part.strides.offsets(i, at);
      y[i] = c[at[0]] ? a[at[1]] : b[at[2]];
    }
  }
};

void select(const TensorView& c, const Sizes& c_sizes, const TensorView& a, const TensorView& b,
            const TensorView& y) {
  if (y.count == 0) return;
  const Strides<3> strides = broadcast_strides<3>(y.sizes, {c_sizes, a.sizes, b.sizes});
  visit_size(y.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const MemoryUse uses[] = {reads(c.as<bool>(), c.count), reads(a.as<T>(), a.count),
                              reads(b.as<T>(), b.count), writes(y.as<T>(), y.count)};
    launch_part<Select<T>>("select<T>", shape_for(y.count),
                           {c.as<bool>(), a.as<T>(), b.as<T>(), y.as<T>(), y.count, strides}, {},
                           uses);
  });
}

template <class T>
TANDEM_KERNEL add_to_kernel(const T* a, const T* b, T* y, std::int64_t n) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    y[i] = store<T>(load(a[i]) + load(b[i]));
  }
}

template <class T>
TANDEM_KERNEL bias_kernel(const T* x, const T* bias, T* y, std::int64_t n, std::int64_t channels,
                          std::int64_t inner) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    y[i] = store<T>(load(x[i]) + load(bias[i / inner % channels]));
  }
}

// The bits of a float's or double's mantissa that To has not.
template <class From, class To>
constexpr int excess_bits() {
  constexpr int kFrom = std::is_same_v<From, double> ? 52 : 23;
  if constexpr (std::is_same_v<To, Half>) return kFrom - 10;
  if constexpr (std::is_same_v<To, BFloat16>) return kFrom - 7;
  if constexpr (std::is_same_v<To, float>) return kFrom - 23;
  return 0;
}

// Rounded towards zero: what To cannot hold is cleared before the conversion.
template <class From, class To>
TANDEM_DEVICE From truncated(From value) {
  if constexpr (std::is_same_v<From, float>) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    bits &= ~((std::uint32_t{1} << excess_bits<From, To>()) - 1);
    std::memcpy(&value, &bits, sizeof(bits));
  } else if constexpr (std::is_same_v<From, double>) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    bits &= ~((std::uint64_t{1} << excess_bits<From, To>()) - 1);
    std::memcpy(&value, &bits, sizeof(bits));
  }
  return value;
}

template <class From, class To>
TANDEM_KERNEL cast_kernel(const From* x, To* y, std::int64_t n, bool truncate) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    Compute<From> value = load(x[i]);
    if (kIsFloating<To> && truncate) value = truncated<Compute<From>, To>(value);
    if constexpr (std::is_same_v<To, bool>) {
      y[i] = value != Compute<From>(0);
    } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<Compute<From>>) {
      // Out of range the bits of the next larger integer are kept, as the CPU's kernels do.
      y[i] = static_cast<To>(static_cast<std::int64_t>(value));
    } else {
      y[i] = store<To>(value);
    }
  }
}

template <class F>
void visit_any(Type type, F&& f) {
  if (type == Type::kBool) return f(Tag<bool>());
  if (!visit_numbers(type, f)) no_kernel_for(type);
}

}  // namespace

void array_select_v2(KernelCall& call) {
  const TensorView c = call.input(0), a = call.input(1), b = call.input(2);
  const Sizes sizes = broadcast_sizes(c.sizes, broadcast_sizes(a.sizes, b.sizes));
  select(c, c.sizes, a, b, call.allocate_output(0, sizes));
}

// The condition has the operands' shape, or one value, or one for each row.
void array_select(KernelCall& call) {
  const TensorView c = call.input(0), a = call.input(1), b = call.input(2);
  if (a.sizes != b.sizes) refuse("'then' and 'else' must have the same size");
  Sizes of_rows = c.sizes;
  if (c.rank() == 1 && a.rank() > 1) {
    if (c.sizes[0] != a.sizes[0]) refuse("Number of batches of 'then' must match size of 'cond'");
    of_rows.resize(a.sizes.size(), 1);
  } else if (c.rank() != 0 && c.sizes != a.sizes) {
    refuse("'cond' must be a scalar, a vector or of the shape of 'then'");
  }
  select(c, of_rows, a, b, call.allocate_output(0, a.sizes));
}

void array_add_n(KernelCall& call) {
  const TensorView first = call.input(0), y = call.allocate_output(0, first.sizes);
  for (int i = 1; i < call.num_inputs(); ++i) {
    if (call.input(i).sizes != first.sizes) {
      refuse("Inputs to operation must have the same size and shape");
    }
  }
  if (y.count == 0) return;
  visit_numbers(y.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Strides<1> all = walk(y.sizes, row_major_strides(y.sizes));
    if (call.num_inputs() == 1) {
      return copy_elements(sizeof(T), first.data, all, y.data, all, y.count);
    }
    for (int i = 1; i < call.num_inputs(); ++i) {
      const TensorView a = i == 1 ? first : y;
      TANDEM_LAUNCH(add_to_kernel<T>, shape_for(y.count), 0, a.as<T>(), call.input(i).as<T>(),
                    y.as<T>(), y.count);
    }
  });
}

void add_bias(KernelCall& call, bool channels_first) {
  const TensorView x = call.input(0), bias = call.input(1);
  if (x.rank() < 2) refuse("Input tensor must be at least 2D");
  if (bias.rank() != 1) refuse("Biases must be 1D");
  const std::size_t axis = channels_first ? 1 : x.sizes.size() - 1;
  if (bias.sizes[0] != x.sizes[axis]) {
    refuse("Must provide as many biases as the last dimension of the input tensor");
  }
  const TensorView y = call.allocate_output(0, x.sizes);
  if (y.count == 0) return;
  const std::int64_t inner = product(std::span(x.sizes).subspan(axis + 1));
  visit_numbers(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH(bias_kernel<T>, shape_for(y.count), 0, x.as<T>(), bias.as<T>(), y.as<T>(),
                  y.count, bias.count, inner);
  });
}

void array_bias_add(KernelCall& call) {
  add_bias(call, call.attr_string("data_format").rfind("NC", 0) == 0);
}
void array_bias_add_v1(KernelCall& call) { add_bias(call, false); }

void array_cast(KernelCall& call) {
  const TensorView x = call.input(0), y = call.allocate_output(0, x.sizes);
  if (y.count == 0) return;
  visit_any(x.type, [&](auto from) {
    visit_any(y.type, [&](auto to) {
      using From = typename decltype(from)::type;
      using To = typename decltype(to)::type;
      TANDEM_LAUNCH((cast_kernel<From, To>), shape_for(y.count), 0, x.as<From>(), y.as<To>(),
                    y.count, call.attr_bool("Truncate"));
    });
  });
}

}  // namespace tandem::cuda
