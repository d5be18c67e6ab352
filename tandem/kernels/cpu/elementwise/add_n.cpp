// AddN, AccumulateNV2: sums of many values of one shape.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/optional_value.h"
#include "tandem/graph/tensor_list.h"
#include "tandem/kernels/cpu/elementwise/float16_rows.h"
#include "tandem/kernels/cpu/fused/fused_program.h"
#include "tandem/kernels/cpu/ragged/ragged_value.h"
#include "tandem/kernels/cpu/support/number_types.h"

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

// ---- Lists, optionals and ragged arrays, whose gradients are such too. ----

Variant add_variants(IntraOpPool& pool, const Variant& x, const Variant& y);

// What a list or an optional holds; an item that was never set counts as zero.
Array add_items(IntraOpPool& pool, const Array& x, const Array& y) {
  if (!x.valid()) return y;
  if (!y.valid()) return x;
  const bool variants = x.dtype() == DType::kVariant;
  if (x.dtype() != y.dtype() || !(x.shape() == y.shape()) ||
      !(variants || kNumberTypes.contains(x.dtype()))) {
    throw InvalidArgumentError(cat("Items to be added must be numbers of one dtype and shape, not ",
                                   x.dtype(), x.shape(), " and ", y.dtype(), y.shape(), "."));
  }
  Array out(x.dtype(), x.shape());
  if (variants) {
    for (std::int64_t i = 0; i < x.num_elements(); ++i)
      out.data<Variant>()[i] = add_variants(pool, x.data<Variant>()[i], y.data<Variant>()[i]);
  } else {
    const Array* const both[] = {&x, &y};
    add_arrays(pool, both, out);
  }
  return out;
}

std::vector<Array> add_all_items(IntraOpPool& pool, const std::vector<Array>& x,
                                 const std::vector<Array>& y) {
  std::vector<Array> sums;
  for (std::size_t i = 0; i < x.size(); ++i) sums.push_back(add_items(pool, x[i], y[i]));
  return sums;
}

Variant add_lists(IntraOpPool& pool, const TensorList& x, const TensorList& y) {
  if (x.items().size() != y.items().size()) {
    throw InvalidArgumentError(cat("Trying to add two lists of tensors with different lengths: ",
                                   x.items().size(), " vs. ", y.items().size(), "."));
  }
  auto sum = make_ref<TensorList>(x.dtype(), x.element_shape(), x.max_items());
  sum->items() = add_all_items(pool, x.items(), y.items());
  return Variant(std::move(sum));
}

Variant add_optionals(IntraOpPool& pool, const OptionalValue& x, const OptionalValue& y) {
  if (x.has_value() != y.has_value()) {
    throw InvalidArgumentError(
        "Cannot add optionals because one has a value and the other doesn't.");
  }
  if (!x.has_value()) return Variant(make_ref<OptionalValue>());
  if (x.components().size() != y.components().size()) {
    throw InvalidArgumentError(
        cat("Cannot add optionals because they have different numbers of components (",
            x.components().size(), " vs. ", y.components().size(), ")."));
  }
  return Variant(make_ref<OptionalValue>(add_all_items(pool, x.components(), y.components())));
}

Variant add_ragged(IntraOpPool& pool, const Ragged& x, const Ragged& y) {
  if (x.splits != y.splits) {
    throw InvalidArgumentError("Trying to add ragged arrays whose rows end at different places.");
  }
  return Variant(make_ref<Ragged>(x.splits_dtype, x.splits, add_items(pool, x.values, y.values)));
}

// An empty variant counts as zeros.
Variant add_variants(IntraOpPool& pool, const Variant& x, const Variant& y) {
  if (x.empty()) return y;
  if (y.empty()) return x;
  const auto *x_list = x.as<TensorList>(), *y_list = y.as<TensorList>();
  if (x_list && y_list) return add_lists(pool, *x_list, *y_list);
  const auto *x_optional = x.as<OptionalValue>(), *y_optional = y.as<OptionalValue>();
  if (x_optional && y_optional) return add_optionals(pool, *x_optional, *y_optional);
  const auto *x_ragged = x.as<Ragged>(), *y_ragged = y.as<Ragged>();
  if (x_ragged && y_ragged) return add_ragged(pool, *x_ragged, *y_ragged);
  throw InvalidArgumentError(
      cat("A ", x.get()->type_name(), " and a ", y.get()->type_name(), " cannot be added."));
}

void add_variant_inputs(KernelContext& c) {
  check_shapes(c);
  Array sum = c.input(0);
  for (int k = 1; k < c.num_inputs(); ++k) sum = add_items(c.intra_op(), sum, c.input(k));
  c.set_output(0, std::move(sum));
}

const KernelRegistration kAddVariants{{.op = "AddN",
                                       .name = "variants",
                                       .types = {{"T", DTypeSet{DType::kVariant}}},
                                       .run = add_variant_inputs}};

}  // namespace
}  // namespace tandem::cpu
