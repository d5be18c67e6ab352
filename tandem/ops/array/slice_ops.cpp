#include "tandem/ops/slice_ops.h"

#include <limits>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/strided_index.h"
#include "tandem/graph/inference_context.h"
#include "tandem/ops/broadcast_gradient.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/internal/sizes.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/pad_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::kUnknown;
using internal::op1;

constexpr const char* kMasks[] = {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask",
                                  "shrink_axis_mask"};

// ---- Slice ----

void slice_shape(InferenceContext& c) {
  c.require_rank(1, 1);
  c.require_rank(2, 1);
  const PartialShape& in = c.input(0);
  const auto begin = c.input_ints(1);
  const auto size = c.input_ints(2);
  std::int64_t length =
      c.merge_dim(c.input(1).dim(0), c.input(2).dim(0), "lengths of begin and size");
  if (in.has_rank()) length = c.merge_dim(length, in.rank(), "rank and length of begin");
  if (length == kUnknown || length > Shape::kMaxRank)
    return c.set_output(0, PartialShape::unknown());
  PartialShape out = PartialShape::unknown_of_rank(static_cast<int>(length));
  for (int i = 0; size && i < out.rank(); ++i) {
    const std::int64_t n = (*size)[static_cast<std::size_t>(i)];
    const std::int64_t all = in.has_rank() ? in.dim(i) : kUnknown;
    const std::int64_t from = begin ? (*begin)[static_cast<std::size_t>(i)] : kUnknown;
    if (n < -1) c.fail(cat("Expected size[", i, "] >= -1, but got ", n));
    if (n >= 0) out.set_dim(i, n);
    if (!begin) continue;
    if (from < 0 || (all != kUnknown && (from > all || (n >= 0 && n > all - from)))) {
      c.fail(cat("Expected begin[", i, "] >= 0 and begin[", i, "] + size[", i, "] in [0, ", all,
                 "], but got begin ", from, " and size ", n));
    }
    if (n == -1 && all != kUnknown) out.set_dim(i, all - from);
  }
  c.set_output(0, std::move(out));
}

void slice_grad(GradientContext& g) {
  const Tensor& x = g.input(0);
  const auto begin = internal::known_ints(g.input(1));
  const auto whole = internal::known_dims(x);
  const auto part = internal::known_dims(g.output());
  if (begin && whole && part) {
    std::vector<std::int64_t> paddings;
    for (std::size_t i = 0; i < begin->size(); ++i) {
      paddings.push_back((*begin)[i]);
      paddings.push_back((*whole)[i] - (*begin)[i] - (*part)[i]);
    }
    const Shape table{static_cast<std::int64_t>(begin->size()), 2};
    return g.set(0, pad(g.grad(), Tensor::from(paddings, table)));
  }
  const DType index = g.input(1).dtype();
  const Tensor before = g.input(1);
  const Tensor after = shape(x, index) - shape(g.output(), index) - before;
  g.set(0, pad(g.grad(), stack({before, after}, 1)));
}

// ---- StridedSlice ----

AttrMap masks_of(const GradientContext& g) {
  AttrMap masks;
  for (const char* name : kMasks) masks.set(name, g.attr<std::int64_t>(name));
  return masks;
}

// Reads begin, end and strides from input `first` on.
struct SpecInputs {
  std::optional<std::vector<std::int64_t>> begin, end, strides;
  std::optional<StridedIndexSpec> spec;  // nothing if not even the number of entries is known

  SpecInputs(const InferenceContext& c, int first)
      : begin(ints(c, first)), end(ints(c, first + 1)), strides(ints(c, first + 2)) {
    std::int64_t entries = kUnknown;
    for (int i = first; i < first + 3; ++i) {
      c.require_rank(i, 1);
      entries = c.merge_dim(entries, c.input(i).dim(0), "lengths of begin, end and strides");
    }
    if (entries == kUnknown) return;
    StridedIndexSpec s;
    s.entries = static_cast<int>(std::min<std::int64_t>(entries, std::numeric_limits<int>::max()));
    if (begin) s.begin = *begin;
    if (end) s.end = *end;
    if (strides) s.strides = *strides;
    s.begin_mask = c.attr<std::int64_t>("begin_mask");
    s.end_mask = c.attr<std::int64_t>("end_mask");
    s.ellipsis_mask = c.attr<std::int64_t>("ellipsis_mask");
    s.new_axis_mask = c.attr<std::int64_t>("new_axis_mask");
    s.shrink_axis_mask = c.attr<std::int64_t>("shrink_axis_mask");
    spec = s;
  }

 private:
  static std::optional<std::vector<std::int64_t>> ints(const InferenceContext& c, int i) {
    const Array* value = c.input_value(i);
    if (!value || value->dtype() != DType::kInt16) return c.input_ints(i);
    return std::vector<std::int64_t>(value->data<std::int16_t>(),
                                     value->data<std::int16_t>() + value->num_elements());
  }
};

void strided_slice_shape(InferenceContext& c) {
  const SpecInputs in(c, 1);
  if (!in.spec || !c.input(0).has_rank()) return c.set_output(0, PartialShape::unknown());
  try {
    const StridedIndex index(c.input(0).dims(), *in.spec);
    const auto dims = index.result_dims();
    c.set_output(0, PartialShape(std::vector<std::int64_t>(dims.begin(), dims.end())));
  } catch (const InvalidArgumentError& e) {
    c.fail(e.what());
  }
}

void strided_slice_grad(GradientContext& g) {
  const DType index = g.input(1).dtype() == DType::kInt64 ? DType::kInt64 : DType::kInt32;
  const auto known = internal::known_dims(g.input(0));
  const Tensor whole = known ? internal::int_vector(*known, index) : shape(g.input(0), index);
  const auto as_index = [&](int i) {
    return g.input(i).dtype() == index ? g.input(i) : cast(g.input(i), index);
  };
  g.set(0, op1("StridedSliceGrad", {whole, as_index(1), as_index(2), as_index(3), g.grad()},
               masks_of(g)));
}

void strided_slice_grad_shape(InferenceContext& c) {
  c.set_output(0, internal::requested_shape(c, 0));
}

void strided_slice_grad_grad(GradientContext& g) {
  g.set(4, op1("StridedSlice", {g.grad(), g.input(1), g.input(2), g.input(3)}, masks_of(g)));
}

void strided_slice_update_grad(GradientContext& g) {
  const AttrMap masks = masks_of(g);
  if (g.needs(0)) {
    g.set(0, op1("TensorStridedSliceUpdate",
                 {g.grad(), g.input(1), g.input(2), g.input(3), zeros_like(g.input(4))}, masks));
  }
  if (g.needs(4)) {
    g.set(4, sum_to_shape_of(
                 op1("StridedSlice", {g.grad(), g.input(1), g.input(2), g.input(3)}, masks),
                 g.input(4)));
  }
}

// ---- Split ----

void split_shape(InferenceContext& c) {
  const auto axis = internal::input_int(c, 0);
  const auto n = c.attr<std::int64_t>("num_split");
  PartialShape out = c.input(1);
  if (out.has_rank()) {
    if (axis) {
      const int at = internal::axis_in(c, *axis, out.rank(), "split_dim");
      if (out.dim(at) != kUnknown && out.dim(at) % n != 0) {
        c.fail(
            cat("Number of ways to split should evenly divide the split dimension, but got "
                "split_dim ",
                at, " (size = ", out.dim(at), ") and num_split ", n));
      }
      if (out.dim(at) != kUnknown) out.set_dim(at, out.dim(at) / n);
    } else {
      out = PartialShape::unknown_of_rank(out.rank());
    }
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, out);
}

void split_grad(GradientContext& g) {
  std::vector<Tensor> parts;
  for (int i = 0; i < g.num_outputs(); ++i) parts.push_back(g.grad(i));
  if (parts.size() == 1) return g.set(1, parts[0]);
  parts.push_back(g.input(0));
  g.set(1, raw_op("ConcatV2", parts)[0]);
}

void split_v_shape(InferenceContext& c) {
  c.require_rank(1, 1);
  c.merge_dim(c.input(1).dim(0), c.num_outputs(), "length of size_splits and num_split");
  const auto axis = internal::input_int(c, 2);
  const PartialShape& in = c.input(0);
  if (!in.has_rank() || !axis) {
    const PartialShape out = in.has_rank() ? PartialShape::unknown_of_rank(in.rank()) : in;
    for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, out);
    return;
  }
  const int at = internal::axis_in(c, *axis, in.rank(), "split_dim");
  const auto sizes = c.input_ints(1);
  std::int64_t given = 0;
  int open = 0;
  for (int i = 0; sizes && i < c.num_outputs(); ++i) {
    const std::int64_t n = (*sizes)[static_cast<std::size_t>(i)];
    if (n < -1) c.fail(cat("Split size at index ", i, " must be >= 0. Got: ", n));
    open += n == -1;
    given += n == -1 ? 0 : n;
  }
  if (open > 1) c.fail("There can only be one -1 in the input.");
  const std::int64_t all = in.dim(at);
  if (sizes && all != kUnknown && (open ? given > all : given != all)) {
    c.fail(
        cat("Determined shape must either match input shape along split_dim exactly if fully "
            "specified, or be less than the size of the input along split_dim if not fully "
            "specified.  Got: ",
            given));
  }
  for (int i = 0; i < c.num_outputs(); ++i) {
    PartialShape out = in;
    std::int64_t n = sizes ? (*sizes)[static_cast<std::size_t>(i)] : kUnknown;
    if (n == kUnknown && sizes && all != kUnknown) n = all - given;
    out.set_dim(at, n);
    c.set_output(i, std::move(out));
  }
}

void split_v_grad(GradientContext& g) {
  std::vector<Tensor> parts;
  for (int i = 0; i < g.num_outputs(); ++i) parts.push_back(g.grad(i));
  if (parts.size() == 1) return g.set(0, parts[0]);
  parts.push_back(g.input(2));
  g.set(0, raw_op("ConcatV2", parts)[0]);
}

const OpRegistration kSlice{{.name = "Slice",
                             .inputs = "input: T, begin: Index, size: Index",
                             .outputs = "output: T",
                             .attrs = "T: type; Index: index",
                             .shape = slice_shape,
                             .gradient = slice_grad,
                             .traits = {.host_inputs = 0b110},
                             .doc = "size[i] elements from begin[i] on along each axis; a size of "
                                    "-1 takes the rest."}};

const OpRegistration kStridedSlice{
    {.name = "StridedSlice",
     .inputs = "input: T, begin: Index, end: Index, strides: Index",
     .outputs = "output: T",
     .attrs = "T: type; Index: {int16, int32, int64}; begin_mask: int = 0; end_mask: int = 0; "
              "ellipsis_mask: int = 0; new_axis_mask: int = 0; shrink_axis_mask: int = 0",
     .shape = strided_slice_shape,
     .gradient = strided_slice_grad,
     .traits = {.host_inputs = 0b1110, .value = ShapeValue::kSliceOfShape},
     .doc = "An index expression begin:end:stride for each axis; bit i of a mask says that entry i "
            "begins at the beginning, ends at the end, is an ellipsis, a new axis, or an element "
            "whose axis goes away."}};

const OpRegistration kStridedSliceGrad{
    {.name = "StridedSliceGrad",
     .inputs = "shape: Index, begin: Index, end: Index, strides: Index, dy: T",
     .outputs = "output: T",
     .attrs = "T: type; Index: index; begin_mask: int = 0; end_mask: int = 0; "
              "ellipsis_mask: int = 0; new_axis_mask: int = 0; shrink_axis_mask: int = 0",
     .shape = strided_slice_grad_shape,
     .gradient = strided_slice_grad_grad,
     .traits = {.host_inputs = 0b1111},
     .doc = "Zeros of `shape` with dy where the index expression points."}};

const OpRegistration kTensorStridedSliceUpdate{
    {.name = "TensorStridedSliceUpdate",
     .inputs = "input: T, begin: Index, end: Index, strides: Index, value: T",
     .outputs = "output: T",
     .attrs = "T: type; Index: index; begin_mask: int = 0; end_mask: int = 0; "
              "ellipsis_mask: int = 0; new_axis_mask: int = 0; shrink_axis_mask: int = 0",
     .shape = shapes::unchanged,
     .gradient = strided_slice_update_grad,
     .traits = {.host_inputs = 0b1110},
     .doc = "The input with `value` where the index expression points."}};

const OpRegistration kSplit{{.name = "Split",
                             .inputs = "split_dim: int32, value: T",
                             .outputs = "output: num_split * T",
                             .attrs = "num_split: int >= 1; T: type",
                             .shape = split_shape,
                             .gradient = split_grad,
                             .traits = {.host_inputs = 1},
                             .doc = "num_split equal parts along an axis."}};

const OpRegistration kSplitV{
    {.name = "SplitV",
     .inputs = "value: T, size_splits: Tlen, split_dim: int32",
     .outputs = "output: num_split * T",
     .attrs = "num_split: int >= 1; T: type; Tlen: {int8, int32, int64} = "
              "int64",
     .shape = split_v_shape,
     .gradient = split_v_grad,
     .traits = {.host_inputs = 0b110},
     .doc = "Parts of the sizes given along an axis; one size may be -1."}};

}  // namespace

Tensor slice(Tensor input, const IntList& begin, const IntList& size) {
  Tensor from = begin.tensor();
  Tensor count = size.tensor();
  if (from.dtype() != count.dtype()) {
    from = begin.tensor(DType::kInt64);
    count = size.tensor(DType::kInt64);
  }
  return call1(kSlice, {std::move(input), std::move(from), std::move(count)});
}

Tensor strided_slice(Tensor input, const IntList& begin, const IntList& end, const IntList& strides,
                     const StridedSliceOptions& o) {
  Tensor b = begin.tensor();
  Tensor e = end.tensor();
  Tensor s = strides.tensor();
  if (strides.empty()) {
    const std::int64_t n = b.partial_shape().dim(0);
    s = n == kUnknown ? ones_like(b)
                      : internal::int_vector(
                            std::vector<std::int64_t>(static_cast<std::size_t>(n), 1), b.dtype());
  }
  if (b.dtype() != e.dtype() || b.dtype() != s.dtype()) {
    const auto wide = [](const Tensor& t) {
      if (const auto known = internal::known_ints(t)) {
        return internal::int_vector(*known, DType::kInt64);
      }
      return t.dtype() == DType::kInt64 ? t : cast(t, DType::kInt64);
    };
    b = wide(b);
    e = wide(e);
    s = wide(s);
  }
  return call1(kStridedSlice, {std::move(input), std::move(b), std::move(e), std::move(s)},
               {{"begin_mask", o.begin_mask},
                {"end_mask", o.end_mask},
                {"ellipsis_mask", o.ellipsis_mask},
                {"new_axis_mask", o.new_axis_mask},
                {"shrink_axis_mask", o.shrink_axis_mask}});
}

std::vector<Tensor> split(Tensor value, std::int64_t num_splits, std::int64_t axis) {
  return call(kSplit, {internal::int_scalar(axis, DType::kInt32), std::move(value)},
              {{"num_split", num_splits}});
}

std::vector<Tensor> split(Tensor value, const IntList& sizes, std::int64_t axis) {
  Tensor list = sizes.tensor();
  const std::int64_t n = list.partial_shape().rank() == 1 ? list.dim(0) : kUnknown;
  if (n == kUnknown) {
    throw InvalidArgumentError(
        cat("td::split must know how many parts there are, but the sizes "
            "have shape ",
            list.partial_shape(), "."));
  }
  return call(kSplitV,
              {std::move(value), std::move(list), internal::int_scalar(axis, DType::kInt32)},
              {{"num_split", n}});
}

}  // namespace tandem
