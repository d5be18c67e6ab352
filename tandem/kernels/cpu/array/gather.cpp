// Slices picked by computed indices: Gather, GatherV2, GatherNd.

#include "tandem/kernels/cpu/array/gather.h"

#include <algorithm>
#include <atomic>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/array/strided_copy.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"
#include "tandem/kernels/cpu/support/elements.h"

namespace tandem::cpu {

std::string tuple_text(DType dtype, const void* data, std::int64_t begin, std::int64_t n) {
  std::string text = "[";
  for (std::int64_t i = 0; i < n; ++i) text += cat(i ? "," : "", index_at(dtype, data, begin + i));
  return text + "]";
}

namespace {

// The number of the first bad entry seen by any thread: the smallest, so that the message does not
// depend on luck.
class FirstBad {
 public:
  void note(std::int64_t i) {
    std::int64_t seen = first_.load(std::memory_order_relaxed);
    while (i < seen && !first_.compare_exchange_weak(seen, i, std::memory_order_relaxed)) {
    }
  }
  bool any() const { return first() != INT64_MAX; }
  std::int64_t first() const { return first_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> first_{INT64_MAX};
};

// Where entry i of a multi-dimensional array stands: "2,0".
std::string place_text(const Shape& shape, std::int64_t i) {
  std::string text;
  for (int k = shape.rank() - 1; k >= 0; --k) {
    text = cat(i % shape[k], text.empty() ? "" : ",", text);
    i /= shape[k];
  }
  return text;
}

template <class T>
void copy_slice(T* to, const T* from, std::int64_t n) {
  if (n == 1) {
    *to = *from;
  } else {
    copy_elements(to, from, n);
  }
}

}  // namespace

void gather_slices(KernelContext& c, const Array& params, const Array& indices,
                   std::int64_t axis_given, std::int64_t batch_given) {
  if (params.rank() < 1) throw InvalidArgumentError("params must be at least 1 dimensional");
  if (batch_given < -indices.rank() || batch_given > indices.rank()) {
    throw InvalidArgumentError(cat("Expected batch_dims in the range [", -indices.rank(), ", ",
                                   indices.rank(), "], but got ", batch_given));
  }
  const int batch = static_cast<int>(batch_given < 0 ? batch_given + indices.rank() : batch_given);
  const int axis = checked_axis(axis_given, params.rank());
  if (batch >= params.rank()) {
    throw InvalidArgumentError(
        cat("batch_dims (", batch, ") must be less than rank(params) (", params.rank(), ")."));
  }
  if (axis < batch) {
    throw InvalidArgumentError(
        cat("batch_dims (", batch, ") must be less than or equal to axis (", axis, ")."));
  }
  const Shape& p = params.shape();
  const Shape& s = indices.shape();
  for (int i = 0; i < batch; ++i) {
    if (p[i] != s[i]) {
      throw InvalidArgumentError(cat("params.shape[", i, "]: ", p[i],
                                     " should be equal to indices.shape[", i, "]: ", s[i]));
    }
  }
  Shape shape;
  for (int i = 0; i < axis; ++i) shape.add_dim(p[i]);
  for (int i = batch; i < s.rank(); ++i) shape.add_dim(s[i]);
  for (int i = axis + 1; i < p.rank(); ++i) shape.add_dim(p[i]);
  Array& out = c.allocate_output(0, shape);

  // out[b, o, i, :] = params[b, o, indices[b, i], :]
  const std::int64_t outer = p.product(batch, axis);
  const std::int64_t picks = s.product(batch, s.rank());
  const std::int64_t limit = p[axis];
  const std::int64_t inner = p.product(axis + 1, p.rank());
  const std::int64_t entries = s.product(0, batch) * outer;
  const DType index_type = indices.dtype();
  FirstBad bad;
  const auto pick = [&]<class T, class Index>() {
    const T* from = static_cast<const T*>(params.raw_data());
    const Index* index = static_cast<const Index*>(indices.raw_data());
    T* to = static_cast<T*>(out.raw_data());
    const double cost = 2.0 + static_cast<double>(inner) * move_cost(params.dtype());
    c.intra_op().parallel_for(entries * picks, cost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t k = begin; k < end;) {
        const std::int64_t entry = k / picks;
        const std::int64_t stop = std::min(end, (entry + 1) * picks);
        const T* slices = from + entry * limit * inner;
        // The place of the index for output slice k, less k.
        const std::int64_t shift = (entry / outer - entry) * picks;
        for (; k < stop; ++k) {
          const auto at = static_cast<std::int64_t>(index[k + shift]);
          if (at < 0 || at >= limit) {
            bad.note(k + shift);
          } else {
            copy_slice(to + k * inner, slices + at * inner, inner);
          }
        }
      }
    });
  };
  if (shape.num_elements() == 0) {  // nothing to copy, but bad indices stay bad
    for (std::int64_t i = 0; i < indices.num_elements(); ++i) {
      const std::int64_t at = index_at(index_type, indices.raw_data(), i);
      if (at < 0 || at >= limit) bad.note(i);
    }
  } else {
    with_element(params.dtype(), [&]<class T>() {
      switch (index_type) {
        case DType::kInt32: return pick.template operator()<T, std::int32_t>();
        case DType::kInt64: return pick.template operator()<T, std::int64_t>();
        default: return pick.template operator()<T, std::int16_t>();
      }
    });
  }
  if (bad.any()) {
    throw InvalidArgumentError(
        cat("indices", s.rank() ? cat("[", place_text(s, bad.first()), "]") : "", " = ",
            index_at(index_type, indices.raw_data(), bad.first()), " is not in [0, ", limit, ")"));
  }
}

void gather_tuples(KernelContext& c, const Array& params, const Array& indices) {
  const Shape& p = params.shape();
  const Shape& s = indices.shape();
  if (p.rank() < 1) throw InvalidArgumentError("params must be at least a vector");
  if (s.rank() < 1) throw InvalidArgumentError("indices must be at least a vector");
  const std::int64_t depth = s[s.rank() - 1];
  if (depth > p.rank()) {
    throw InvalidArgumentError(cat("index innermost dimension length must be <= params rank; saw: ",
                                   depth, " vs. ", p.rank()));
  }
  Shape shape;
  for (int i = 0; i < s.rank() - 1; ++i) shape.add_dim(s[i]);
  for (int i = static_cast<int>(depth); i < p.rank(); ++i) shape.add_dim(p[i]);
  const std::int64_t tuples = s.product(0, s.rank() - 1);
  const std::int64_t inner = p.product(static_cast<int>(depth), p.rank());
  if (tuples > 0 && inner > 0 && p.num_elements() == 0) {
    throw InvalidArgumentError(
        cat("Requested more than 0 entries, but params is empty.  Params shape: ", p));
  }
  Array& out = c.allocate_output(0, shape);
  const Strides strides(p);
  const DType index_type = indices.dtype();
  const void* index = indices.raw_data();
  FirstBad bad;
  with_element(params.dtype(), [&]<class T>() {
    const T* from = static_cast<const T*>(params.raw_data());
    T* to = static_cast<T*>(out.raw_data());
    const double cost = 3.0 + static_cast<double>(inner) * move_cost(params.dtype());
    c.intra_op().parallel_for(tuples, cost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t k = begin; k < end; ++k) {
        std::int64_t offset = 0;
        bool inside = true;
        for (int i = 0; i < depth; ++i) {
          const std::int64_t at = index_at(index_type, index, k * depth + i);
          inside = inside && at >= 0 && at < p[i];
          if (inside) offset += at * strides[i];
        }
        if (inside) {
          copy_slice(to + k * inner, from + offset, inner);
        } else {
          bad.note(k);
        }
      }
    });
  });
  if (bad.any()) {
    throw InvalidArgumentError(cat(
        "indices[", bad.first(), "] = ", tuple_text(index_type, index, bad.first() * depth, depth),
        " does not index into param shape ", p));
  }
}

namespace {

void gather(KernelContext& c) { gather_slices(c, c.input(0), c.input(1), 0, 0); }

void gather_v2(KernelContext& c) {
  gather_slices(c, c.input(0), c.input(1), int_input(c, 2, "axis"),
                c.attr<std::int64_t>("batch_dims"));
}

void gather_nd(KernelContext& c) { gather_tuples(c, c.input(0), c.input(1)); }

const KernelRegistration kGather{{.op = "Gather", .run = gather}};
const KernelRegistration kGatherV2{{.op = "GatherV2", .run = gather_v2}};
const KernelRegistration kGatherNd{{.op = "GatherNd", .run = gather_nd}};

}  // namespace
}  // namespace tandem::cpu
