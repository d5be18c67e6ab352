// Padding by mirrored elements and its gradient; rolling, and reversing by sequence.

#include <string>

#include "tandem/kernels/cuda/array/copy.h"

namespace tandem::cuda {
namespace {

struct Mirror {
  int rank = 0;
  std::int64_t inner[kMaxAxes] = {}, before[kMaxAxes] = {}, outer[kMaxAxes] = {};
  std::int64_t skip = 0;  // 1 if the edge itself is not repeated

  // The inner place that an outer one shows.
  TANDEM_DEVICE std::int64_t shown(int axis, std::int64_t place) const {
    const std::int64_t at = place - before[axis], n = inner[axis];
    if (at < 0) return skip - 1 - at;
    return at < n ? at : 2 * n - 1 - skip - at;
  }
};

template <class T>
TANDEM_KERNEL mirror_kernel(const T* x, T* y, std::int64_t n, Mirror m) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    std::int64_t rest = i, from = 0, stride = 1;
    for (int axis = m.rank - 1; axis >= 0; --axis) {
      from += m.shown(axis, rest % m.outer[axis]) * stride;
      rest /= m.outer[axis];
      stride *= m.inner[axis];
    }
    y[i] = x[from];
  }
}

// The gradients of all places that show an element: on each axis its own, and at most one in either
// margin.
template <class T>
TANDEM_KERNEL mirror_gradient_kernel(const T* dy, T* dx, std::int64_t n, Mirror m) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    std::int64_t places[kMaxAxes][3];
    std::int64_t rest = i, ways = 1;
    for (int axis = m.rank - 1; axis >= 0; --axis) {
      const std::int64_t at = rest % m.inner[axis], first = m.before[axis];
      rest /= m.inner[axis];
      places[axis][0] = first + at;
      places[axis][1] = at >= m.skip ? first - 1 - at + m.skip : -1;
      const std::int64_t last = first + 2 * m.inner[axis] - 1 - m.skip - at;
      places[axis][2] = at < m.inner[axis] - m.skip && last < m.outer[axis] ? last : -1;
      ways *= 3;
    }
    Sum<T> sum = Sum<T>(0);
    for (std::int64_t way = 0; way < ways; ++way) {
      std::int64_t digits = way, from = 0, stride = 1;
      bool there = true;
      for (int axis = m.rank - 1; axis >= 0; --axis) {
        const std::int64_t place = places[axis][digits % 3];
        digits /= 3;
        there = there && place >= 0;
        from += place * stride;
        stride *= m.outer[axis];
      }
      if (there) sum += static_cast<Sum<T>>(load(dy[from]));
    }
    dx[i] = store<T>(sum);
  }
}

// Inner sizes from input 0's, or outer ones for the gradient.
Mirror mirror_of(const KernelCall& call, bool gradient, Sizes& result) {
  const TensorView x = call.input(0), pads = call.input(1);
  const Sizes amounts = pads.host_integers();
  const std::string mode = call.attr_string("mode");
  if (pads.rank() != 2 || amounts.size() != 2 * x.sizes.size() || pads.sizes[1] != 2) {
    refuse("paddings must be a matrix with 2 columns and a row for each dimension of the input");
  }
  if (x.rank() > kMaxAxes) not_on_gpu("tensors of so many axes");
  Mirror m;
  m.rank = x.rank();
  m.skip = mode == "REFLECT" ? 1 : 0;
  for (std::size_t i = 0; i < x.sizes.size(); ++i) {
    const std::int64_t before = amounts[2 * i], after = amounts[2 * i + 1];
    if (before < 0 || after < 0) refuse("Paddings must be non-negative");
    const std::int64_t inner = gradient ? x.sizes[i] - before - after : x.sizes[i];
    if (inner < 0) refuse("Paddings must be no greater than the size");
    if (m.skip == 1 && (before >= inner || after >= inner) && (before != 0 || after != 0)) {
      refuse("paddings must be less than the dimension size");
    }
    if (m.skip == 0 && (before > inner || after > inner)) {
      refuse("paddings must be no greater than the dimension size");
    }
    m.inner[i] = inner;
    m.before[i] = before;
    m.outer[i] = inner + before + after;
    result.push_back(gradient ? inner : m.outer[i]);
  }
  return m;
}

struct Rolled {
  int rank = 0;
  std::int64_t sizes[kMaxAxes] = {}, shifts[kMaxAxes] = {};
};

template <class T>
TANDEM_KERNEL roll_kernel(const T* x, T* y, std::int64_t n, Rolled r) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    std::int64_t rest = i, from = 0, stride = 1;
    for (int axis = r.rank - 1; axis >= 0; --axis) {
      const std::int64_t size = r.sizes[axis];
      std::int64_t at = rest % size - r.shifts[axis];
      if (at < 0) at += size;
      from += at * stride;
      rest /= size;
      stride *= size;
    }
    y[i] = x[from];
  }
}

// `outer` and `inner` lie around the axes of the batch and of the sequence, whichever comes first.
template <class T, class Index>
TANDEM_KERNEL reverse_sequence_kernel(const T* x, const Index* lengths, T* y, std::int64_t n,
                                      std::int64_t batch_stride, std::int64_t batch,
                                      std::int64_t step_stride, std::int64_t steps) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const auto length = static_cast<std::int64_t>(lengths[i / batch_stride % batch]);
    const std::int64_t step = i / step_stride % steps;
    const bool turns = step < length && length <= steps;
    y[i] = x[turns ? i + (length - 1 - 2 * step) * step_stride : i];
  }
}

}  // namespace

void array_mirror_pad(KernelCall& call) {
  const TensorView x = call.input(0);
  Sizes sizes;
  const Mirror m = mirror_of(call, false, sizes);
  const TensorView y = call.allocate_output(0, sizes);
  if (y.count == 0) return;
  visit_size(y.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH(mirror_kernel<T>, shape_for(y.count), 0, x.as<T>(), y.as<T>(), y.count, m);
  });
}

void array_mirror_pad_grad(KernelCall& call) {
  const TensorView dy = call.input(0);
  Sizes sizes;
  const Mirror m = mirror_of(call, true, sizes);
  const TensorView dx = call.allocate_output(0, sizes);
  if (dx.count == 0) return;
  if (!visit_numbers(dx.type, [&](auto tag) {
        using T = typename decltype(tag)::type;
        TANDEM_LAUNCH(mirror_gradient_kernel<T>, shape_for(dx.count), 0, dy.as<T>(), dx.as<T>(),
                      dx.count, m);
      })) {
    no_kernel_for(dx.type);
  }
}

void array_roll(KernelCall& call) {
  const TensorView x = call.input(0);
  const TensorView shift = call.input(1), axis = call.input(2);
  if (x.rank() < 1) refuse("input must be 1-D or higher");
  if (shift.rank() > 1) refuse("shift must be a scalar or a 1-D vector");
  if (axis.rank() > 1) refuse("axis must be a scalar or a 1-D vector");
  if (shift.sizes != axis.sizes) refuse("shift and axis must have the same size");
  if (x.rank() > kMaxAxes) not_on_gpu("tensors of so many axes");
  const Sizes shifts = shift.host_integers(), axes = axis.host_integers();
  Rolled r;
  r.rank = x.rank();
  for (int i = 0; i < r.rank; ++i) r.sizes[i] = x.sizes[static_cast<std::size_t>(i)];
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] < -r.rank || axes[i] >= r.rank) {
      refuse("axis " + std::to_string(axes[i]) + " is out of range");
    }
    const std::int64_t at = axes[i] < 0 ? axes[i] + r.rank : axes[i];
    const std::int64_t size = std::max<std::int64_t>(1, r.sizes[at]);
    r.shifts[at] = (r.shifts[at] + shifts[i] % size + size) % size;
  }
  const TensorView y = call.allocate_output(0, x.sizes);
  if (y.count == 0) return;
  visit_size(y.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH(roll_kernel<T>, shape_for(y.count), 0, x.as<T>(), y.as<T>(), y.count, r);
  });
}

// A length beyond the sequence leaves it as it is.
void array_reverse_sequence(KernelCall& call) {
  const TensorView x = call.input(0), lengths = call.input(1);
  const std::int64_t seq = call.attr_int("seq_dim"), batch = call.attr_int("batch_dim");
  if (seq < 0 || seq >= x.rank() || batch < 0 || batch >= x.rank() || seq == batch) {
    refuse("seq_dim " + std::to_string(seq) + " and batch_dim " + std::to_string(batch) +
           " must be two axes of the input");
  }
  const auto s = static_cast<std::size_t>(seq), b = static_cast<std::size_t>(batch);
  if (lengths.rank() != 1 || lengths.count != x.sizes[b]) {
    refuse("Length of seq_lens != input.dims(" + std::to_string(batch) + ")");
  }
  const TensorView y = call.allocate_output(0, x.sizes);
  if (y.count == 0) return;
  const Sizes strides = row_major_strides(x.sizes);
  visit_index(lengths.type, [&](auto index) {
    visit_size(y.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      using Index = typename decltype(index)::type;
      TANDEM_LAUNCH((reverse_sequence_kernel<T, Index>), shape_for(y.count), 0, x.as<T>(),
                    lengths.as<Index>(), y.as<T>(), y.count, strides[b], x.sizes[b], strides[s],
                    x.sizes[s]);
    });
  });
}

}  // namespace tandem::cuda
