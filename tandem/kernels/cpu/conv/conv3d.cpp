// Convolutions of volumes: checks, plain loops, and the way to oneDNN.

#include "tandem/kernels/cpu/conv/conv3d.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/elementwise/in_float.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"
#include "tandem/kernels/cpu/onednn/support.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

void require_volume(const Shape& shape, const char* name) {
  if (shape.rank() != 5) {
    throw InvalidArgumentError(cat(name, " must be 5-dimensional, but has shape ", shape));
  }
}

Shape sizes_input(const KernelContext& c, int i, const char* name) {
  const IntInput sizes(c, i, name);
  if (c.input(i).rank() != 1 || sizes.size() != 5) {
    throw InvalidArgumentError(
        cat(name, " must be a vector of 5 sizes, but has shape ", c.input(i).shape()));
  }
  std::vector<std::int64_t> dims;
  for (int k = 0; k < 5; ++k) dims.push_back(sizes[k]);
  return Shape(dims);
}

Conv3DCase make_case(const KernelContext& c, DType dtype, const Shape& image, const Shape& filter) {
  require_volume(image, "input");
  require_volume(filter, "filter");
  const Window3D w = read_conv3d_attrs(c);
  Conv3DCase p;
  p.dtype = dtype;
  p.channels_first = w.channels_first;
  p.batch = image[0];
  p.in_depth = image[w.channel_axis()];
  p.out_depth = filter[4];
  for (int i = 0; i < 4; ++i) {
    if (filter[i] == 0) {
      throw InvalidArgumentError(cat("filter must not be empty, but has shape ", filter));
    }
  }
  if (p.in_depth % filter[3] != 0) {
    throw InvalidArgumentError(cat(
        "Input depth must be evenly divisible by filter depth: ", p.in_depth, " vs ", filter[3]));
  }
  p.groups = p.in_depth == 0 ? 1 : p.in_depth / filter[3];
  if (p.out_depth % p.groups != 0) {
    throw InvalidArgumentError(cat("Output depth must be evenly divisible by number of groups: ",
                                   p.out_depth, " vs ", p.groups));
  }
  for (int i = 0; i < 3; ++i) p.axis[i] = w.axis(i, image[w.spatial_axis(i)], filter[i]);
  return p;
}

Shape output_shape(const KernelContext& c, const Conv3DCase& p) {
  const std::int64_t spatial[3] = {p.axis[0].output, p.axis[1].output, p.axis[2].output};
  return read_conv3d_attrs(c).make_shape<Shape>(p.batch, spatial, p.out_depth);
}

void require_output(const KernelContext& c, const Conv3DCase& p, const Shape& gradient) {
  require_volume(gradient, "out_backprop");
  if (const Shape wanted = output_shape(c, p); !(gradient == wanted)) {
    throw InvalidArgumentError(cat("Size of out_backprop doesn't match computed: actual = ",
                                   gradient, ", computed = ", wanted));
  }
}

// ---- Plain loops ----

// Distances between neighbours in a volume.
struct Steps {
  std::int64_t batch, place, depth;  // a place is a position counted over planes, rows, columns
  Steps(const Conv3DCase& p, std::int64_t places, std::int64_t channels)
      : batch(places * channels),
        place(p.channels_first ? 1 : channels),
        depth(p.channels_first ? places : 1) {}
};

// Calls f(output place, input place, filter place) for all that meet in one image.
template <class F>
void for_each_meeting(const Conv3DCase& p, F f) {
  const WindowAxis &z = p.axis[0], &y = p.axis[1], &x = p.axis[2];
  const auto meet = [](const WindowAxis& a, std::int64_t o, std::int64_t k) {
    return o * a.stride + k * a.dilation - a.pad_before;
  };
  std::int64_t out = 0;
  for (std::int64_t oz = 0; oz < z.output; ++oz) {
    for (std::int64_t oy = 0; oy < y.output; ++oy) {
      for (std::int64_t ox = 0; ox < x.output; ++ox, ++out) {
        for (std::int64_t kz = 0; kz < z.filter; ++kz) {
          const std::int64_t iz = meet(z, oz, kz);
          if (iz < 0 || iz >= z.input) continue;
          for (std::int64_t ky = 0; ky < y.filter; ++ky) {
            const std::int64_t iy = meet(y, oy, ky);
            if (iy < 0 || iy >= y.input) continue;
            for (std::int64_t kx = 0; kx < x.filter; ++kx) {
              const std::int64_t ix = meet(x, ox, kx);
              if (ix < 0 || ix >= x.input) continue;
              f(out, (iz * y.input + iy) * x.input + ix, (kz * y.filter + ky) * x.filter + kx);
            }
          }
        }
      }
    }
  }
}

// result += product of the two others, where `Target` says which one is the result. Images are
// independent of each other, but for filters.
enum class Target { kOutput, kInput, kFilter };

template <Target target, class T>
void plain(KernelContext& c, const Conv3DCase& p, const T* image, const T* filter, const T* output,
           T* result, std::int64_t result_size) {
  using W = Wide<T>;
  const Steps in(p, p.inputs(), p.in_depth), out(p, p.outputs(), p.out_depth);
  const std::int64_t gi = p.group_in(), go = p.group_out();
  const auto one_image = [&](std::int64_t b, W* sums) {
    for_each_meeting(p, [&](std::int64_t o, std::int64_t i, std::int64_t k) {
      const std::int64_t out_at = (target == Target::kOutput ? 0 : b * out.batch) + o * out.place;
      const std::int64_t in_at = (target == Target::kInput ? 0 : b * in.batch) + i * in.place;
      for (std::int64_t channel = 0; channel < p.in_depth; ++channel) {
        const std::int64_t g = channel / gi, first = g * go;
        const std::int64_t w_at = (k * gi + channel % gi) * p.out_depth + first;
        const std::int64_t x_at = in_at + channel * in.depth;
        for (std::int64_t n = 0; n < go; ++n) {
          const std::int64_t y_at = out_at + (first + n) * out.depth;
          if constexpr (target == Target::kOutput) {
            sums[y_at] += widen(image[x_at]) * widen(filter[w_at + n]);
          } else if constexpr (target == Target::kInput) {
            sums[x_at] += widen(output[y_at]) * widen(filter[w_at + n]);
          } else {
            sums[w_at + n] += widen(image[x_at]) * widen(output[y_at]);
          }
        }
      }
    });
  };
  if constexpr (target == Target::kFilter) {
    std::vector<W> sums(static_cast<std::size_t>(result_size));
    for (std::int64_t b = 0; b < p.batch; ++b) one_image(b, sums.data());
    for (std::int64_t i = 0; i < result_size; ++i) {
      result[i] = static_cast<T>(sums[static_cast<std::size_t>(i)]);
    }
  } else {
    const std::int64_t size = result_size / p.batch;
    const double cost = p.multiplications() / static_cast<double>(p.batch);
    c.intra_op().parallel_for(p.batch, cost, [&](std::int64_t begin, std::int64_t end) {
      std::vector<W> sums(static_cast<std::size_t>(size));
      for (std::int64_t b = begin; b < end; ++b) {
        std::fill(sums.begin(), sums.end(), W(0));
        one_image(b, sums.data());
        for (std::int64_t i = 0; i < size; ++i) {
          result[b * size + i] = static_cast<T>(sums[static_cast<std::size_t>(i)]);
        }
      }
    });
  }
}

template <Target target>
void plain_loops(KernelContext& c, const Conv3DCase& p, const Array& first, const Array& second,
                 Array& result) {
  with_floating(p.dtype, [&]<class T>() {
    T* to = result.data<T>();
    const std::int64_t size = result.num_elements();
    const T *a = first.data<T>(), *b = second.data<T>();
    if constexpr (target == Target::kOutput) {
      plain<target, T>(c, p, a, b, nullptr, to, size);
    } else if constexpr (target == Target::kInput) {
      plain<target, T>(c, p, nullptr, a, b, to, size);
    } else {
      plain<target, T>(c, p, a, nullptr, b, to, size);
    }
  });
}

// ---- By the library ----

using LibraryFn = bool (*)(KernelContext&, const Conv3DCase&, const void*, const void*, void*);

bool by_library(KernelContext& c, const Conv3DCase& p, LibraryFn run, const Array& first,
                const Array& second, Array& result) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 29;  // the library counts in 32 bits
  if (p.channels_first || p.dtype == DType::kDouble) return false;
  if (p.inputs() * p.in_depth >= kLargest || p.outputs() * p.out_depth >= kLargest) return false;
  const bool native =
      p.dtype == DType::kFloat || (p.dtype == DType::kBFloat16 && onednn::has_native_bfloat16());
  if (native) return run(c, p, first.raw_data(), second.raw_data(), result.raw_data());
  Conv3DCase in_float = p;
  in_float.dtype = DType::kFloat;
  const auto convert = [&](const Array& from) {
    Array to = c.allocate_temp(DType::kFloat, from.shape());
    to_float(c.intra_op(), p.dtype, from.raw_data(), to.data<float>(), from.num_elements());
    return to;
  };
  const Array a = convert(first), b = convert(second);
  const Array made = c.allocate_temp(DType::kFloat, result.shape());
  if (!run(c, in_float, a.raw_data(), b.raw_data(), made.raw_data())) return false;
  from_float(c.intra_op(), made.data<float>(), p.dtype, result.raw_data(), made.num_elements());
  return true;
}

template <Target target>
void run(KernelContext& c, const Conv3DCase& p, LibraryFn library, const Array& first,
         const Array& second, Array& result) {
  if (result.num_elements() == 0) return;
  if (p.batch == 0 || p.in_depth == 0 || p.out_depth == 0 || p.inputs() == 0 || p.outputs() == 0) {
    std::memset(result.raw_data(), 0, result.num_bytes());
  } else if (!by_library(c, p, library, first, second, result)) {
    plain_loops<target>(c, p, first, second, result);
  }
}

void forward(KernelContext& c) {
  const Conv3DCase p = make_case(c, c.input(0).dtype(), c.input(0).shape(), c.input(1).shape());
  run<Target::kOutput>(c, p, onednn::conv3d_forward, c.input(0), c.input(1),
                       c.allocate_output(0, output_shape(c, p)));
}

void backprop_input(KernelContext& c) {
  const Shape image = sizes_input(c, 0, "input_sizes");
  const Conv3DCase p = make_case(c, c.input(1).dtype(), image, c.input(1).shape());
  require_output(c, p, c.input(2).shape());
  run<Target::kInput>(c, p, onednn::conv3d_backprop_input, c.input(1), c.input(2),
                      c.allocate_output(0, image));
}

void backprop_filter(KernelContext& c) {
  const Shape filter = sizes_input(c, 1, "filter_sizes");
  const Conv3DCase p = make_case(c, c.input(0).dtype(), c.input(0).shape(), filter);
  require_output(c, p, c.input(2).shape());
  run<Target::kFilter>(c, p, onednn::conv3d_backprop_filter, c.input(0), c.input(2),
                       c.allocate_output(0, filter));
}

const KernelRegistration kForward{{.op = "Conv3D", .types = {{"T", kFloatTypes}}, .run = forward}};
const KernelRegistration kBackpropInput{
    {.op = "Conv3DBackpropInputV2", .types = {{"T", kFloatTypes}}, .run = backprop_input}};
const KernelRegistration kBackpropFilter{
    {.op = "Conv3DBackpropFilterV2", .types = {{"T", kFloatTypes}}, .run = backprop_filter}};

}  // namespace
}  // namespace tandem::cpu
