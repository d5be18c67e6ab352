// Pooling of images and volumes and its gradients. One thread makes one result.

#include "tandem/kernels/cuda/conv/window.h"
#include "tandem/kernels/cuda/support/launch.h"
#include "tandem/kernels/cuda/support/types.h"

namespace tandem::cuda {
namespace {

struct Problem {
  VolumeLayout x, y;
  Window window;
  std::size_t rank = 4;
  bool channels_first = false;
  Sizes output_sizes() const {
    return volume_sizes(rank, y.batch, y.size, y.channels, channels_first);
  }
};
// What of it kernels need.
struct Geometry {
  VolumeLayout x, y;
  Window window;
};

struct Place {
  std::int64_t image, at[3], channel;
  TANDEM_DEVICE Place(std::int64_t i, const VolumeLayout& l) {
    channel = i % l.channels;
    i /= l.channels;
    for (int axis = 2; axis >= 0; --axis) {
      at[axis] = i % l.size[axis];
      i /= l.size[axis];
    }
    image = i;
  }
  TANDEM_DEVICE std::int64_t offset(const VolumeLayout& l) const {
    return image * l.by_batch + at[0] * l.by[0] + at[1] * l.by[1] + at[2] * l.by[2] +
           channel * l.by_channel;
  }
};

// From `first` to before `end` on each axis.
struct Box {
  std::int64_t first[3], end[3];
  TANDEM_DEVICE std::int64_t count() const {
    return (end[0] - first[0]) * (end[1] - first[1]) * (end[2] - first[2]);
  }
};

// The elements that a window covers.
TANDEM_DEVICE Box covered(const Window& w, const std::int64_t (&window)[3], const VolumeLayout& x) {
  Box box;
  for (int axis = 0; axis < 3; ++axis) {
    const std::int64_t begin = window[axis] * w.stride[axis] - w.pad[axis];
    const std::int64_t end = begin + w.size[axis];
    box.first[axis] = begin < 0 ? 0 : begin;
    box.end[axis] = end > x.size[axis] ? x.size[axis] : end;
  }
  return box;
}

// The windows that cover an element.
TANDEM_DEVICE Box windows_over(const Window& w, const std::int64_t (&at)[3]) {
  Box box;
  for (int axis = 0; axis < 3; ++axis) {
    const std::int64_t last = (at[axis] + w.pad[axis]) / w.stride[axis];
    const std::int64_t before = at[axis] + w.pad[axis] - w.size[axis];
    box.first[axis] = before < 0 ? 0 : before / w.stride[axis] + 1;
    box.end[axis] = last + 1 > w.out[axis] ? w.out[axis] : last + 1;
  }
  return box;
}

// Calls f(place) for all places of a box of the image and channel of `of`.
template <class F>
TANDEM_DEVICE void for_each(const Box& box, const Place& of, F f) {
  Place at = of;
  for (at.at[0] = box.first[0]; at.at[0] < box.end[0]; ++at.at[0]) {
    for (at.at[1] = box.first[1]; at.at[1] < box.end[1]; ++at.at[1]) {
      for (at.at[2] = box.first[2]; at.at[2] < box.end[2]; ++at.at[2]) f(at);
    }
  }
}

template <class T>
TANDEM_DEVICE Compute<T> lowest() {
  if constexpr (std::is_same_v<T, Half>) return -65504.0f;
  if constexpr (std::is_same_v<T, BFloat16>) return -3.38953139e38f;
  return std::numeric_limits<Compute<T>>::lowest();
}

template <class T>
TANDEM_KERNEL max_kernel(const T* x, T* y, Geometry g, std::int64_t n) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const Place o(i, g.y);
    // It begins with the type's lowest number and passes over NaN, as TensorFlow's do.
    Compute<T> most = lowest<T>();
    for_each(covered(g.window, o.at, g.x), o, [&](const Place& at) {
      const Compute<T> one = load(x[at.offset(g.x)]);
      if (most < one) most = one;
    });
    y[o.offset(g.y)] = store<T>(most);
  }
}

template <class T>
TANDEM_KERNEL average_kernel(const T* x, T* y, Geometry g, std::int64_t n) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const Place o(i, g.y);
    const Box box = covered(g.window, o.at, g.x);
    Sum<T> sum = Sum<T>(0);
    for_each(box, o, [&](const Place& at) { sum += static_cast<Sum<T>>(load(x[at.offset(g.x)])); });
    y[o.offset(g.y)] = store<T>(sum / static_cast<Sum<T>>(box.count()));
  }
}

// Where the first largest element of a window lies; -1 in a window of none. Nothing is larger than
// NaN, and NaN than nothing: it counts where it comes first.
template <class T>
TANDEM_DEVICE std::int64_t largest(const T* x, const Geometry& g, const Place& window) {
  std::int64_t best = -1;
  Compute<T> most = Compute<T>(0);
  for_each(covered(g.window, window.at, g.x), window, [&](const Place& at) {
    const std::int64_t offset = at.offset(g.x);
    const Compute<T> one = load(x[offset]);
    if (best < 0 || most < one) {
      most = one;
      best = offset;
    }
  });
  return best;
}

// Each element takes the gradients of the windows whose first largest element it is.
template <class T>
TANDEM_KERNEL max_gradient_kernel(const T* x, const T* dy, T* dx, Geometry g, std::int64_t n) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const Place in(i, g.x);
    const std::int64_t own = in.offset(g.x);
    Compute<T> sum = Compute<T>(0);
    for_each(windows_over(g.window, in.at), in, [&](const Place& window) {
      if (largest(x, g, window) == own) {
        sum = static_cast<Compute<T>>(sum + load(dy[window.offset(g.y)]));
      }
    });
    dx[own] = store<T>(sum);
  }
}

// Volumes: each element takes the gradients of the windows whose largest it equals, but for 1e-5 as
// in TensorFlow; infinities never do.
template <class T>
TANDEM_KERNEL max_volume_gradient_kernel(const T* x, const T* y, const T* dy, T* dx, Geometry g,
                                         std::int64_t n) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const Place in(i, g.x);
    const float value = load(x[in.offset(g.x)]);
    float sum = 0.0f;
    for_each(windows_over(g.window, in.at), in, [&](const Place& window) {
      const std::int64_t at = window.offset(g.y);
      if (std::fabs(value - load(y[at])) < 1e-5f) sum += load(dy[at]);
    });
    dx[in.offset(g.x)] = store<T>(sum);
  }
}

template <class T>
TANDEM_KERNEL average_gradient_kernel(const T* dy, T* dx, Geometry g, std::int64_t n) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const Place in(i, g.x);
    Sum<T> sum = Sum<T>(0);
    for_each(windows_over(g.window, in.at), in, [&](const Place& window) {
      sum += static_cast<Sum<T>>(load(dy[window.offset(g.y)])) /
             static_cast<Sum<T>>(covered(g.window, window.at, g.x).count());
    });
    dx[in.offset(g.x)] = store<T>(sum);
  }
}

// For each window the gradient of its first element that equals the largest.
template <class T>
TANDEM_KERNEL max_second_gradient_kernel(const T* x, const T* y, const T* ddx, T* ddy, Geometry g,
                                         std::int64_t n) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const Place o(i, g.y);
    const Compute<T> most = load(y[o.offset(g.y)]);
    std::int64_t best = -1;
    for_each(covered(g.window, o.at, g.x), o, [&](const Place& at) {
      const std::int64_t offset = at.offset(g.x);
      if (best < 0 && load(x[offset]) == most) best = offset;
    });
    ddy[o.offset(g.y)] = best < 0 ? store<T>(0) : ddx[best];
  }
}

// Places are counted within the image or, with the batch's part, from its beginning.
template <class T, class Index>
TANDEM_KERNEL max_with_place_kernel(const T* x, T* y, Index* places, Geometry g, std::int64_t n,
                                    bool with_batch) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const Place o(i, g.y);
    const std::int64_t best = largest(x, g, o);
    y[i] = best < 0 ? store<T>(lowest<T>()) : x[best];
    places[i] = static_cast<Index>(best < 0 || with_batch ? best : best - o.image * g.x.by_batch);
  }
}

// Each element takes the gradients of the windows that name it.
template <class T, class Index>
TANDEM_KERNEL place_gradient_kernel(const T* dy, const Index* places, T* dx, Geometry g,
                                    std::int64_t n, bool with_batch) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const Place in(i, g.x);
    const std::int64_t own = with_batch ? i : i - in.image * g.x.by_batch;
    Compute<T> sum = Compute<T>(0);
    // Any window of the image may name it.
    const std::int64_t windows = g.y.by_batch;
    for (std::int64_t k = in.image * windows; k < (in.image + 1) * windows; ++k) {
      if (static_cast<std::int64_t>(places[k]) == own) {
        sum = static_cast<Compute<T>>(sum + load(dy[k]));
      }
    }
    dx[i] = store<T>(sum);
  }
}

// ---- Calls ----

// Sizes and strides are attributes, or the inputs `from` and the one behind it.
Problem problem(const KernelCall& call, const Sizes& x, int from = -1, bool has_format = true) {
  Problem p;
  p.rank = x.size();
  p.channels_first = has_format && channels_first(call);
  WindowMoves moves;
  Sizes ksize;
  if (from < 0) {
    ksize = call.attr_ints("ksize");
    moves = moves_of(call, false);
  } else {
    ksize = call.input(from).host_vector("ksize");
    moves.strides = call.input(from + 1).host_vector("strides");
    moves.padding = call.attr_string("padding");
  }
  if ((x.size() != 4 && x.size() != 5) || ksize.size() != x.size()) {
    refuse("tensor_in must be 4-dimensional, or 5-dimensional for volumes, as the windows are");
  }
  p.x = volume_layout(x, p.channels_first);
  std::int64_t size[3];
  spatial(ksize, p.channels_first, "ksize", size);
  p.window = window_of(moves, p.x, p.channels_first, size);
  p.y = volume_layout(volume_sizes(p.rank, p.x.batch, p.window.out, p.x.channels, p.channels_first),
                      p.channels_first);
  return p;
}
Geometry geometry(const Problem& p) { return {p.x, p.y, p.window}; }

template <class F>
void for_numbers(Type type, F f) {
  if (!visit_numbers(type, f)) no_kernel_for(type);
}

void largest_of(KernelCall& call, int from) {
  const TensorView x = call.input(0);
  const Problem p = problem(call, x.sizes, from);
  const TensorView y = call.allocate_output(0, p.output_sizes());
  if (y.count == 0) return;
  for_numbers(y.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH(max_kernel<T>, shape_for(y.count), 0, x.as<T>(), y.as<T>(), geometry(p), y.count);
  });
}

void largest_gradient(KernelCall& call, int from) {
  const TensorView x = call.input(0), dy = call.input(2);
  const Problem p = problem(call, x.sizes, from);
  if (dy.sizes != p.output_sizes() || call.input(1).sizes != dy.sizes) {
    refuse("Expected orig_output and grad of the shape of the pooling's result");
  }
  const TensorView dx = call.allocate_output(0, x.sizes);
  if (dx.count == 0) return;
  if (p.rank == 5) {
    visit_floating(dx.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (!std::is_same_v<T, double>) {
        TANDEM_LAUNCH(max_volume_gradient_kernel<T>, shape_for(dx.count), 0, x.as<T>(),
                      call.input(1).as<T>(), dy.as<T>(), dx.as<T>(), geometry(p), dx.count);
      }
    });
    return;
  }
  for_numbers(dx.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH(max_gradient_kernel<T>, shape_for(dx.count), 0, x.as<T>(), dy.as<T>(), dx.as<T>(),
                  geometry(p), dx.count);
  });
}

void largest_second_gradient(KernelCall& call, int from) {
  const TensorView x = call.input(0), y = call.input(1), ddx = call.input(2);
  const Problem p = problem(call, x.sizes, from);
  if (y.sizes != p.output_sizes() || ddx.sizes != x.sizes) {
    refuse("Expected orig_output of the pooling's result's shape, and grad of the input's");
  }
  const TensorView ddy = call.allocate_output(0, y.sizes);
  if (ddy.count == 0) return;
  for_numbers(ddy.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH(max_second_gradient_kernel<T>, shape_for(ddy.count), 0, x.as<T>(), y.as<T>(),
                  ddx.as<T>(), ddy.as<T>(), geometry(p), ddy.count);
  });
}

}  // namespace

void pool_max(KernelCall& call) { largest_of(call, -1); }
void pool_max_v2(KernelCall& call) { largest_of(call, 1); }
void pool_max_gradient(KernelCall& call) { largest_gradient(call, -1); }
void pool_max_gradient_v2(KernelCall& call) { largest_gradient(call, 3); }
void pool_max_second_gradient(KernelCall& call) { largest_second_gradient(call, -1); }
void pool_max_second_gradient_v2(KernelCall& call) { largest_second_gradient(call, 3); }

void pool_average(KernelCall& call) {
  const TensorView x = call.input(0);
  const Problem p = problem(call, x.sizes);
  const TensorView y = call.allocate_output(0, p.output_sizes());
  if (y.count == 0) return;
  visit_floating(y.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH(average_kernel<T>, shape_for(y.count), 0, x.as<T>(), y.as<T>(), geometry(p),
                  y.count);
  });
}

void pool_average_gradient(KernelCall& call) {
  const Sizes sizes = call.input(0).host_vector("orig_input_shape");
  const TensorView dy = call.input(1);
  const Problem p = problem(call, sizes);
  if (dy.sizes != p.output_sizes()) refuse("Expected grad of the shape of the pooling's result");
  const TensorView dx = call.allocate_output(0, sizes);
  if (dx.count == 0) return;
  visit_floating(dx.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH(average_gradient_kernel<T>, shape_for(dx.count), 0, dy.as<T>(), dx.as<T>(),
                  geometry(p), dx.count);
  });
}

void pool_max_with_place(KernelCall& call) {
  const TensorView x = call.input(0);
  const Problem p = problem(call, x.sizes, -1, false);
  const TensorView y = call.allocate_output(0, p.output_sizes()),
                   places = call.allocate_output(1, p.output_sizes());
  if (y.count == 0) return;
  const bool with_batch = call.attr_bool("include_batch_in_index");
  for_numbers(y.type, [&](auto tag) {
    visit_index(places.type, [&](auto index) {
      using T = typename decltype(tag)::type;
      using Index = typename decltype(index)::type;
      TANDEM_LAUNCH((max_with_place_kernel<T, Index>), shape_for(y.count), 0, x.as<T>(), y.as<T>(),
                    places.as<Index>(), geometry(p), y.count, with_batch);
    });
  });
}

void pool_place_gradient(KernelCall& call) {
  const TensorView x = call.input(0), dy = call.input(1), places = call.input(2);
  const Problem p = problem(call, x.sizes, -1, false);
  if (dy.sizes != p.output_sizes() || places.sizes != dy.sizes) {
    refuse("grad and argmax must have the shape of the pooling's result");
  }
  const TensorView dx = call.allocate_output(0, x.sizes);
  if (dx.count == 0) return;
  const bool with_batch = call.attr_bool("include_batch_in_index");
  for_numbers(dx.type, [&](auto tag) {
    visit_index(places.type, [&](auto index) {
      using T = typename decltype(tag)::type;
      using Index = typename decltype(index)::type;
      TANDEM_LAUNCH((place_gradient_kernel<T, Index>), shape_for(dx.count), 0, dy.as<T>(),
                    places.as<Index>(), dx.as<T>(), geometry(p), dx.count, with_batch);
    });
  });
}

}  // namespace tandem::cuda
