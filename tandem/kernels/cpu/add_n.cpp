// AddN, AccumulateNV2: sums of many values of one shape.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/tensor_list.h"
#include "tandem/kernels/cpu/float16_rows.h"
#include "tandem/kernels/cpu/fused_program.h"
#include "tandem/kernels/cpu/number_types.h"

namespace tandem::cpu {
namespace {

constexpr std::int64_t kChunk = 1024;

template <class T>
void add_row(T* sum, const T* x, std::int64_t n) {
  constexpr int kBlock = 32;  // a constant count is what compilers turn into vector instructions
  std::int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    for (int k = 0; k < kBlock; ++k) sum[i + k] = static_cast<T>(sum[i + k] + x[i + k]);
  }
  for (; i < n; ++i) sum[i] = static_cast<T>(sum[i] + x[i]);
}

template <class T>
void copy_row(const T* from, T* to, std::int64_t n) {
  std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
}

using Arrays = std::span<const Array* const>;

// Elements [begin, end) of the sum, of values stored as T and added in C. The sum of a chunk is
// complete before anything is written, so the result may lie where an input does.
template <class T, class C>
void add_range(Arrays inputs, T* out, std::int64_t begin, std::int64_t end) {
  C sum[kChunk];
  [[maybe_unused]] C next[kChunk];
  for (std::int64_t i = begin; i < end; i += kChunk) {
    const std::int64_t n = std::min(kChunk, end - i);
    bool first = true;
    for (const Array* input : inputs) {
      const T* x = input->data<T>() + i;
      if constexpr (is_float16<T>) {
        to_floats(x, first ? sum : next, n);
        if (!first) add_row(sum, next, n);
      } else {
        if (first)
          copy_row(x, sum, n);
        else
          add_row(sum, x, n);
      }
      first = false;
    }
    if constexpr (is_float16<T>)
      from_floats(sum, out + i, n);
    else
      copy_row(sum, out + i, n);
  }
}

void add_arrays(IntraOpPool& pool, Arrays inputs, Array& out) {
  const auto run = [&]<class T, class C>(std::int64_t n) {
    pool.parallel_for(n, 0.3 * static_cast<double>(inputs.size()),
                      [&](std::int64_t begin, std::int64_t end) {
                        add_range<T, C>(inputs, out.data<T>(), begin, end);
                      });
  };
  const std::int64_t n = out.num_elements();
  switch (out.dtype()) {
    case DType::kFloat: return run.template operator()<float, float>(n);
    case DType::kDouble: return run.template operator()<double, double>(n);
    case DType::kComplex64: return run.template operator()<float, float>(2 * n);
    case DType::kComplex128: return run.template operator()<double, double>(2 * n);
    case DType::kHalf: return run.template operator()<Half, float>(n);
    case DType::kBFloat16: return run.template operator()<BFloat16, float>(n);
    default: break;
  }
  switch (dtype_size(
      out.dtype())) {  // of integers the bits of the sum are the same with and without a sign
    case 1: return run.template operator()<std::uint8_t, std::uint8_t>(n);
    case 2: return run.template operator()<std::uint16_t, std::uint16_t>(n);
    case 4: return run.template operator()<std::uint32_t, std::uint32_t>(n);
    default: return run.template operator()<std::uint64_t, std::uint64_t>(n);
  }
}

void check_shapes(const KernelContext& c) {
  if (c.num_inputs() == 0) throw InvalidArgumentError("at least one input is needed.");
  const Shape& shape = c.input(0).shape();
  for (int k = 1; k < c.num_inputs(); ++k) {
    if (c.input(k).shape() == shape) continue;
    throw InvalidArgumentError(cat("Inputs to operation ", c.node_name(), " of type ", c.op().name,
                                   " must have the same size and shape. Input 0: ", shape,
                                   " != input ", k, ": ", c.input(k).shape()));
  }
}

void add_n(KernelContext& c) {
  check_shapes(c);
  if (c.num_inputs() == 1) return c.set_output(0, c.input(0));
  Array& out = c.reuse_or_allocate_output(0, 0, c.input(0).shape());
  add_arrays(c.intra_op(), Arrays(c.inputs_, static_cast<std::size_t>(c.num_inputs())), out);
}

const KernelRegistration kAddN{
    {.op = "AddN", .types = {{"T", kNumberTypes}}, .run = add_n, .float_loops = [] {
       return float_loops_of("AddV2");
     }}};
const KernelRegistration kAccumulateN{
    {.op = "AccumulateNV2", .types = {{"T", kNumberTypes}}, .run = add_n}};

// ---- Lists of tensors, whose gradients are lists too. ----

// One item of the sum of two lists; an item that was never set counts as zero.
Array add_items(IntraOpPool& pool, const Array& x, const Array& y) {
  if (!x.valid()) return y;
  if (!y.valid()) return x;
  if (x.dtype() != y.dtype() || !(x.shape() == y.shape()) || !kNumberTypes.contains(x.dtype())) {
    throw InvalidArgumentError(
        cat("List items to be added must be numbers of one dtype and shape, not ", x.dtype(),
            x.shape(), " and ", y.dtype(), y.shape(), "."));
  }
  Array out(x.dtype(), x.shape());
  const Array* const both[] = {&x, &y};
  add_arrays(pool, both, out);
  return out;
}

void add_list_to(IntraOpPool& pool, TensorList& sum, const TensorList& list) {
  if (sum.items().size() != list.items().size()) {
    throw InvalidArgumentError(cat("Trying to add two lists of tensors with different lengths: ",
                                   sum.items().size(), " vs. ", list.items().size(), "."));
  }
  for (std::size_t i = 0; i < sum.items().size(); ++i) {
    sum.items()[i] = add_items(pool, sum.items()[i], list.items()[i]);
  }
}

void add_lists(KernelContext& c) {
  Ref<TensorList> sum;
  for (int k = 0; k < c.num_inputs(); ++k) {
    const Array& input = c.input(k);
    if (input.num_elements() == 1 && input.data<Variant>()->empty()) continue;  // zeros
    const TensorList& list = TensorList::of(input);
    if (!sum)
      sum = list.copy();
    else
      add_list_to(c.intra_op(), *sum, list);
  }
  c.set_output(0, sum ? TensorList::wrap(std::move(sum)) : c.input(0));
}

const KernelRegistration kAddLists{
    {.op = "AddN", .name = "lists", .types = {{"T", DTypeSet{DType::kVariant}}}, .run = add_lists}};

}  // namespace
}  // namespace tandem::cpu
