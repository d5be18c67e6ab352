// Ragged arrays in variants: RaggedTensorToVariant and its gradient, RaggedTensorFromVariant.

#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"
#include "tandem/kernels/cpu/ragged/ragged.h"
#include "tandem/kernels/cpu/ragged/ragged_value.h"
#include "tandem/kernels/cpu/support/elements.h"

namespace tandem::cpu {
namespace {

using Splits = Ragged::Splits;

// Row `row` of a ragged array, whose outermost splits are left off.
Ref<Ragged> row_of(const Splits& splits, const Array& values, DType dtype, std::int64_t row) {
  std::int64_t begin = row, end = row + 1;
  Splits own;
  for (std::size_t k = 0; k < splits.size(); ++k) {
    const std::vector<std::int64_t>& split = splits[k];
    if (k > 0) {
      own.emplace_back();
      for (std::int64_t i = begin; i <= end; ++i) {
        own.back().push_back(split[static_cast<std::size_t>(i)] -
                             split[static_cast<std::size_t>(begin)]);
      }
    }
    begin = split[static_cast<std::size_t>(begin)];
    end = split[static_cast<std::size_t>(end)];
  }
  Array part = values.slice_outer(begin, end);
  if (splits.empty()) {
    Shape shape;
    for (int i = 1; i < values.rank(); ++i) shape.add_dim(values.shape()[i]);
    part = part.reshape(shape);
  }
  return make_ref<Ragged>(dtype, std::move(own), std::move(part));
}

void to_variant(KernelContext& c) {
  const int nested = c.num_inputs() - 1;
  // The trait that an input lives on in the result reaches as far as a mask does.
  const Array values = nested < 32 ? c.input(nested) : c.input(nested).clone();
  const bool batched = c.attr<bool>("batched_input");
  if (values.rank() == 0 && (nested > 0 || batched)) {
    throw InvalidArgumentError("rt_dense_values must not be a scalar.");
  }
  const DType dtype = c.type_attr("Tsplits");
  Splits splits = nested_splits(c, nested, nested > 0 ? values.shape()[0] : 0);
  if (!batched) {
    Array& out = c.allocate_output(0, Shape{});
    *out.data<Variant>() = Variant(make_ref<Ragged>(dtype, std::move(splits), values));
    return;
  }
  const std::int64_t rows =
      nested > 0 ? static_cast<std::int64_t>(splits.front().size()) - 1 : values.shape()[0];
  auto* to = c.allocate_output(0, Shape{rows}).data<Variant>();
  for (std::int64_t row = 0; row < rows; ++row) {
    to[row] = Variant(row_of(splits, values, dtype, row));
  }
}

const Ragged& ragged_at(const KernelContext& c, std::int64_t i, std::size_t rank) {
  const auto* ragged = c.input(0).data<Variant>()[i].as<Ragged>();
  if (ragged == nullptr) {
    throw InvalidArgumentError(
        cat("Input Variant element at index ", i, " doesn't hold a RaggedTensorVariant"));
  }
  if (ragged->splits.size() != rank) {
    throw InvalidArgumentError(cat("Encoded input RaggedTensorVariant has ragged_rank=",
                                   ragged->splits.size(), ".  Expected ragged_rank=", rank, "."));
  }
  if (ragged->values.dtype() != c.type_attr("Tvalues")) {
    throw InvalidArgumentError(cat("Expected values Tensor dtype: ", c.type_attr("Tvalues"),
                                   ", found: ", ragged->values.dtype()));
  }
  if (rank > 0 && ragged->splits_dtype != c.type_attr("Tsplits")) {
    throw InvalidArgumentError(cat("Expected row_splits Tensor dtype: ", c.type_attr("Tsplits"),
                                   ", found: ", ragged->splits_dtype));
  }
  return *ragged;
}

void join_values(KernelContext& c, const std::vector<const Ragged*>& parts) {
  const int output = c.num_outputs() - 1;
  Shape element;  // of one row of the values
  std::int64_t rows = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Shape& shape = parts[i]->values.shape();
    if (shape.rank() == 0) throw InvalidArgumentError("A row's values are a scalar.");
    if (__builtin_add_overflow(rows, shape[0], &rows))
      throw InvalidArgumentError("The rows' values are more than 2^63.");
    Shape own;
    for (int k = 1; k < shape.rank(); ++k) own.add_dim(shape[k]);
    if (i > 0 && !(own == element)) {
      throw InvalidArgumentError(
          cat("All flat_values must have compatible shapes.  Shape at index 0: ", element,
              ".  Shape at index ", i, ": ", own, "."));
    }
    element = own;
  }
  Shape all{rows};
  for (int k = 0; k < element.rank(); ++k) all.add_dim(element[k]);
  Array& out = c.allocate_output(output, all);
  with_element(out.dtype(), [&]<class T>() {
    T* to = static_cast<T*>(out.raw_data());
    for (const Ragged* part : parts) {
      copy_elements(to, static_cast<const T*>(part->values.raw_data()),
                    part->values.num_elements());
      to += part->values.num_elements();
    }
  });
}

void from_variant(KernelContext& c) {
  const Array& in = c.input(0);
  const int rank = c.num_outputs() - 1, axes = in.rank();
  const auto given = c.attr<std::int64_t>("input_ragged_rank");
  const std::int64_t inner = given >= 0 ? given : rank - axes;
  if (inner < 0 || inner + axes != rank) {
    throw InvalidArgumentError(
        cat("output_ragged_rank must be equal to input_ragged_rank + "
            "encoded_ragged.dims(); output_ragged_rank: ",
            rank, ", input_ragged_rank: ", inner, ", encoded_ragged.dims(): ", axes, "."));
  }
  std::vector<const Ragged*> parts;
  for (std::int64_t i = 0; i < in.num_elements(); ++i) {
    parts.push_back(&ragged_at(c, i, static_cast<std::size_t>(inner)));
  }
  if (axes == 0) {
    for (int k = 0; k < rank; ++k) {
      set_integers(c, k, parts.front()->splits[static_cast<std::size_t>(k)]);
    }
    return c.set_output(rank, parts.front()->values);
  }
  // The input's own axes but the last split evenly.
  std::int64_t count = 1;
  for (int axis = 0; axis + 1 < axes; ++axis) {
    count = checked_multiply(count, in.shape()[axis]);
    set_even_splits(c, axis, count, in.shape()[axis + 1]);
  }
  // Then one row for each part, and the parts' splits one after the other.
  std::vector<std::int64_t> lengths{0};
  Splits splits(static_cast<std::size_t>(inner), {0});
  for (const Ragged* part : parts) {
    if (inner == 0 && part->values.rank() == 0) {
      throw InvalidArgumentError("A row's values are a scalar.");
    }
    lengths.push_back(lengths.back() +
                      (inner > 0 ? static_cast<std::int64_t>(part->splits.front().size()) - 1
                                 : part->values.shape()[0]));
    for (std::size_t k = 0; k < splits.size(); ++k) {
      const std::int64_t from = splits[k].back();
      for (std::size_t i = 1; i < part->splits[k].size(); ++i) {
        splits[k].push_back(from + part->splits[k][i]);
      }
    }
  }
  set_integers(c, axes - 1, lengths);
  for (std::size_t k = 0; k < splits.size(); ++k) {
    set_integers(c, axes + static_cast<int>(k), splits[k]);
  }
  join_values(c, parts);
}

// The shape of the values of part `i` of what RaggedTensorToVariant made of values of shape `all`:
// everything where it was not batched, else what the outermost splits say, or a row where the
// values are not ragged and there are none.
Shape shape_of_part(const Array& parts, const std::vector<std::int64_t>& ends, const Shape& all,
                    std::int64_t i) {
  if (parts.rank() == 0 || all.rank() == 0) return all;
  std::vector<std::int64_t> sizes = all.to_vector();
  if (ends.empty()) {
    sizes.erase(sizes.begin());
  } else {
    const auto row = static_cast<std::size_t>(i);
    if (__builtin_sub_overflow(ends[row + 1], ends[row], &sizes[0]) || sizes[0] < 0)
      throw InvalidArgumentError("row_splits must not fall.");
  }
  return Shape(std::move(sizes));
}

// The parts' values one after the other; an empty variant counts as zeros.
void to_variant_gradient(KernelContext& c) {
  const Array &parts = c.input(0), &splits = c.input(1);
  const Shape shape = shape_input(c, 2, "dense_values_shape");
  const DType dtype = c.type_attr("Tvalues");
  const std::int64_t count = parts.num_elements();
  const auto ends = splits.rank() > 0 ? integers_of(splits) : std::vector<std::int64_t>{};
  if (splits.rank() > 0 && parts.rank() > 0 && splits.num_elements() != count + 1) {
    throw InvalidArgumentError(cat("row_splits must have one element more than the ", count,
                                   " gradients, but has shape ", splits.shape(), "."));
  }
  Array all = Array::zeros(dtype, shape);
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const Variant& part = parts.data<Variant>()[i];
    const auto* ragged = part.as<Ragged>();
    if (ragged == nullptr && !part.empty()) {
      throw InvalidArgumentError(
          cat("Gradient ", i, " is a ", part.get()->type_name(), ", not a RaggedTensorVariant."));
    }
    if (ragged != nullptr && ragged->values.dtype() != dtype) {
      throw InvalidArgumentError(
          cat("Gradient ", i, " has values of ", ragged->values.dtype(), ", not of ", dtype, "."));
    }
    const std::int64_t size = ragged != nullptr
                                  ? ragged->values.num_elements()
                                  : shape_of_part(parts, ends, shape, i).num_elements();
    if (size > all.num_elements() - at) {
      throw InvalidArgumentError(cat("The gradients have more values than shape ", shape, "."));
    }
    if (ragged != nullptr) {
      with_element(dtype, [&]<class T>() {
        copy_elements(static_cast<T*>(all.raw_data()) + at,
                      static_cast<const T*>(ragged->values.raw_data()), size);
      });
    }
    at += size;
  }
  if (at != all.num_elements()) {
    throw InvalidArgumentError(cat("The gradients have ", at, " values, but shape ", shape, " has ",
                                   all.num_elements(), "."));
  }
  c.set_output(0, std::move(all));
}

const KernelRegistration kToVariantGradient{
    {.op = "RaggedTensorToVariantGradient", .run = to_variant_gradient}};
const KernelRegistration kToVariant{{.op = "RaggedTensorToVariant", .run = to_variant}};
const KernelRegistration kFromVariant{{.op = "RaggedTensorFromVariant", .run = from_variant}};

}  // namespace
}  // namespace tandem::cpu
