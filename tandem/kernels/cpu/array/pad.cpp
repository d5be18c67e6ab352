// Values with a margin, or several times over: Pad, MirrorPad, Tile, BroadcastTo.

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/array/strided_copy.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"
#include "tandem/kernels/cpu/support/arithmetic.h"
#include "tandem/kernels/cpu/support/elements.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

// What is added on both sides of each axis.
struct Margins {
  std::int64_t before[Shape::kMaxRank];
  std::int64_t after[Shape::kMaxRank];

  explicit Margins(const KernelContext& c) {
    const int rank = c.input(0).rank();
    const Array& paddings = c.input(1);
    if (paddings.rank() != 2 || paddings.shape()[1] != 2) {
      throw InvalidArgumentError(
          cat("paddings must be a matrix with 2 columns: ", paddings.shape()));
    }
    if (paddings.shape()[0] != rank) {
      throw InvalidArgumentError(cat("The first dimension of paddings must be the rank of inputs",
                                     paddings.shape(), " ", c.input(0).shape()));
    }
    const IntInput flat(paddings.reshape(Shape{2 * rank}), "paddings");
    for (int i = 0; i < rank; ++i) {
      before[i] = flat[2 * i];
      after[i] = flat[2 * i + 1];
      if (before[i] < 0 || after[i] < 0) {
        throw InvalidArgumentError(
            cat("Paddings must be non-negative: ", before[i], " ", after[i]));
      }
    }
  }

  Shape around(const Shape& shape) const {
    Shape padded = shape;
    for (int i = 0; i < shape.rank(); ++i) {
      std::int64_t size = 0;
      if (__builtin_add_overflow(before[i], after[i], &size) ||
          __builtin_add_overflow(size, shape[i], &size)) {
        throw InvalidArgumentError(cat("The padded size of axis ", i, " needs more than 63 bits."));
      }
      padded.set_dim(i, size);
    }
    return padded;
  }
};

// The middle of `outer`, which `inner` fills: copied to the one or the other.
void copy_middle(KernelContext& c, const Margins& m, const Array& outer, const Array& inner,
                 bool outwards) {
  const Strides o(outer.shape());
  const Strides i(inner.shape());
  std::int64_t offset = 0;
  StridedCopy copy;
  for (int k = 0; k < inner.rank(); ++k) {
    offset += m.before[k] * o[k];
    copy.add(inner.shape()[k], outwards ? o[k] : i[k], outwards ? i[k] : o[k]);
  }
  void* middle = element_at(outer.raw_data(), outer.dtype(), offset);
  if (inner.num_elements() == 0) return;
  copy.run(c.intra_op(), inner.dtype(), outwards ? middle : inner.raw_data(),
           outwards ? inner.raw_data() : middle);
}

void pad_with(KernelContext& c, const void* value) {
  const Array& x = c.input(0);
  const Margins margins(c);
  Array& out = c.allocate_output(0, margins.around(x.shape()));
  if (out.num_elements() == 0) return;
  if (out.num_elements() != x.num_elements()) {
    if (value) {
      fill_flat(c.intra_op(), out.dtype(), out.raw_data(), value, out.num_elements());
    } else {
      clear_flat(c.intra_op(), out.dtype(), out.raw_data(), out.num_elements());
    }
  }
  copy_middle(c, margins, out, x, true);
}

void pad(KernelContext& c) { pad_with(c, nullptr); }

void pad_v2(KernelContext& c) {
  if (c.input(2).num_elements() != 1) {
    throw InvalidArgumentError(
        cat("constant_values must be a scalar. Found: ", c.input(2).shape()));
  }
  pad_with(c, c.input(2).raw_data());
}

// ---- MirrorPad ----

struct Mirror {
  Margins margins;
  std::int64_t skip;  // 1 if the edge itself is not repeated

  explicit Mirror(const KernelContext& c)
      : margins(c), skip(c.attr<std::string>("mode") == "REFLECT" ? 1 : 0) {}

  void check(const Shape& inner) const {
    for (int i = 0; i < inner.rank(); ++i) {
      const std::int64_t before = margins.before[i];
      const std::int64_t after = margins.after[i];
      if (skip == 1 && (before >= inner[i] || after >= inner[i]) && (before != 0 || after != 0)) {
        throw InvalidArgumentError(cat("paddings must be less than the dimension size: ", before,
                                       ", ", after, " not less than ", inner[i]));
      }
      if (skip == 0 && (before > inner[i] || after > inner[i])) {
        throw InvalidArgumentError(cat("paddings must be no greater than the dimension size: ",
                                       before, ", ", after, " greater than ", inner[i]));
      }
    }
  }

  // Calls f(n, margin, source) for both margins of an axis: n places from `margin` upwards mirror n
  // places from `source` downwards.
  template <class F>
  void for_each_side(int axis, std::int64_t inner, F f) const {
    const std::int64_t before = margins.before[axis];
    const std::int64_t after = margins.after[axis];
    if (before > 0) f(before, std::int64_t{0}, 2 * before - 1 + skip);
    if (after > 0) f(after, before + inner, before + inner - 1 - skip);
  }
};

// The part of `whole` in which axes before `axis` are complete and those behind it are their
// middles, `axis` itself running over n places.
struct Slab {
  const Array& whole;
  const Shape& inner;
  const Margins& margins;
  int axis;
  std::int64_t n;

  std::int64_t size(int i) const { return i == axis ? n : i < axis ? whole.shape()[i] : inner[i]; }
  std::int64_t start(const Strides& strides, std::int64_t at) const {
    std::int64_t offset = at * strides[axis];
    for (int i = axis + 1; i < whole.rank(); ++i) offset += margins.before[i] * strides[i];
    return offset;
  }
};

void mirror_pad(KernelContext& c) {
  const Array& x = c.input(0);
  const Mirror mirror(c);
  mirror.check(x.shape());
  Array& out = c.allocate_output(0, mirror.margins.around(x.shape()));
  if (out.num_elements() == 0) return;
  copy_middle(c, mirror.margins, out, x, true);
  const Strides strides(out.shape());
  for (int axis = 0; axis < x.rank(); ++axis) {
    mirror.for_each_side(
        axis, x.shape()[axis], [&](std::int64_t n, std::int64_t margin, std::int64_t source) {
          const Slab slab{out, x.shape(), mirror.margins, axis, n};
          StridedCopy copy;
          for (int i = 0; i < x.rank(); ++i) {
            copy.add(slab.size(i), strides[i], i == axis ? -strides[i] : strides[i]);
          }
          copy.run(c.intra_op(), out.dtype(),
                   element_at(out.raw_data(), out.dtype(), slab.start(strides, margin)),
                   element_at(out.raw_data(), out.dtype(), slab.start(strides, source)));
        });
  }
}

// Adds the margins onto what they mirror, the last axis first, and keeps the middle.
template <class T>
void fold(KernelContext& c, const Mirror& mirror, Array& work, const Shape& inner) {
  const Strides strides(work.shape());
  T* data = work.data<T>();
  for (int axis = inner.rank() - 1; axis >= 0; --axis) {
    mirror.for_each_side(axis, inner[axis],
                         [&](std::int64_t n, std::int64_t margin, std::int64_t source) {
                           const Slab slab{work, inner, mirror.margins, axis, n};
                           std::int64_t index[Shape::kMaxRank] = {};
                           T* from = data + slab.start(strides, margin);
                           T* to = data + slab.start(strides, source);
                           for (;;) {
                             *to = add(*to, *from);
                             int i = inner.rank() - 1;
                             for (; i >= 0; --i) {
                               const std::int64_t to_stride = i == axis ? -strides[i] : strides[i];
                               from += strides[i];
                               to += to_stride;
                               if (++index[i] < slab.size(i)) break;
                               from -= slab.size(i) * strides[i];
                               to -= slab.size(i) * to_stride;
                               index[i] = 0;
                             }
                             if (i < 0) break;
                           }
                         });
  }
  static_cast<void>(c);
}

void mirror_pad_grad(KernelContext& c) {
  const Array& dy = c.input(0);
  const Mirror mirror(c);
  Shape inner = dy.shape();
  for (int i = 0; i < dy.rank(); ++i) {
    const std::int64_t before = mirror.margins.before[i];
    const std::int64_t after = mirror.margins.after[i];
    if (before > dy.shape()[i] || after > dy.shape()[i] - before) {
      throw InvalidArgumentError(cat("Paddings must be non-negative and no greater than the size: ",
                                     before, " ", after, " of ", dy.shape()[i]));
    }
    inner.set_dim(i, dy.shape()[i] - before - after);
  }
  mirror.check(inner);
  Array& out = c.allocate_output(0, inner);
  if (inner.num_elements() == 0) return;
  Array work = dy.clone();
  with_number(dy.dtype(), [&]<class T>() { fold<T>(c, mirror, work, inner); });
  copy_middle(c, mirror.margins, work, out, false);
}

// ---- Tile, BroadcastTo ----

void tile(KernelContext& c) {
  const Array& x = c.input(0);
  const IntInput multiples(c, 1, "multiples");
  if (multiples.size() != x.rank()) {
    throw InvalidArgumentError(cat("Expected multiples argument to be a vector of length ",
                                   x.rank(), " but got length ", multiples.size()));
  }
  Shape shape;
  for (int i = 0; i < x.rank(); ++i) {
    if (multiples[i] < 0) {
      throw InvalidArgumentError(cat("Expected multiples[", i, "] >= 0, but got ", multiples[i]));
    }
    shape.add_dim(checked_multiply(x.shape()[i], multiples[i]));
  }
  Array& out = c.allocate_output(0, shape);
  if (out.num_elements() == 0) return;
  const Strides to(shape);
  const Strides from(x.shape());
  StridedCopy copy;
  for (int i = 0; i < x.rank(); ++i) {
    copy.add(multiples[i], to[i] * x.shape()[i], 0);
    copy.add(x.shape()[i], to[i], from[i]);
  }
  copy.run(c.intra_op(), x.dtype(), out.raw_data(), x.raw_data());
}

void broadcast_to(KernelContext& c) {
  const Array& x = c.input(0);
  const Shape shape = shape_input(c, 1);
  const int extra = shape.rank() - x.rank();
  if (extra < 0) {
    throw InvalidArgumentError(cat("Rank of input (", x.rank(),
                                   ") must be no greater than rank of output shape (", shape.rank(),
                                   ")."));
  }
  for (int i = 0; i < x.rank(); ++i) {
    if (x.shape()[i] != 1 && x.shape()[i] != shape[i + extra]) {
      throw InvalidArgumentError(cat("Incompatible shapes: ", x.shape(), " vs. ", shape));
    }
  }
  Array& out = c.allocate_output(0, shape);
  if (out.num_elements() == 0) return;
  const Strides to(shape);
  const Strides from(x.shape());
  StridedCopy copy;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool repeated = i < extra || x.shape()[i - extra] == 1;
    copy.add(shape[i], to[i], repeated ? 0 : from[i - extra]);
  }
  copy.run(c.intra_op(), x.dtype(), out.raw_data(), x.raw_data());
}

const KernelRegistration kPad{{.op = "Pad", .run = pad}};
const KernelRegistration kPadV2{{.op = "PadV2", .run = pad_v2}};
const KernelRegistration kMirrorPad{{.op = "MirrorPad", .run = mirror_pad}};
const KernelRegistration kMirrorPadGrad{
    {.op = "MirrorPadGrad", .types = {{"T", kNumberTypes}}, .run = mirror_pad_grad}};
const KernelRegistration kTile{{.op = "Tile", .run = tile}};
const KernelRegistration kBroadcastTo{{.op = "BroadcastTo", .run = broadcast_to, .float_loops = [] {
                                         return ElementLoops{.copies = true};
                                       }}};

}  // namespace
}  // namespace tandem::cpu
