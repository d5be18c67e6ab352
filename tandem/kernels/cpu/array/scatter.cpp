// Updates put where index tuples point: ScatterNd, TensorScatterUpdate and its kin.

#include "tandem/kernels/cpu/array/scatter.h"

#include <mutex>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/reference.h"
#include "tandem/kernels/cpu/array/strided_copy.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"
#include "tandem/kernels/cpu/norm/rows.h"
#include "tandem/kernels/cpu/reduce/combine.h"
#include "tandem/kernels/cpu/support/elements.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {

IndexTuples::IndexTuples(const KernelContext& c, const Array& indices, const Shape& updates,
                         const Shape& whole, VectorIs vector)
    : whole_(whole), dtype_(indices.dtype()), data_(indices.raw_data()) {
  const Shape& s = indices.shape();
  if (s.rank() < 1)
    throw InvalidArgumentError(cat("Indices shape must have rank at least one. Found:", s));
  if (whole.rank() < 1) {
    throw InvalidArgumentError(cat("Output must be at least 1-D, got shape: ", whole));
  }
  const bool all_empty = indices.num_elements() == 0 && updates.num_elements() == 0;
  if (!all_empty &&
      (whole.num_elements() == 0 || indices.num_elements() == 0 || updates.num_elements() == 0)) {
    throw InvalidArgumentError(
        cat("Either indices and updates are empty, or neither they nor the output: indices ", s,
            ", updates ", updates, ", output ", whole));
  }
  const bool one = vector == VectorIs::kOfTuples && s == Shape{1};
  const std::int64_t depth = s[s.rank() - 1];
  if (depth == 0 && whole.num_elements() > 0) {
    throw InvalidArgumentError(cat("Index tuples of no elements in indices of shape ", s));
  }
  if (depth > whole.rank()) {
    throw InvalidArgumentError(cat("Inner dimension of indices (", depth,
                                   ") must not exceed the rank of the shape ", whole, "."));
  }
  depth_ = static_cast<int>(depth);
  const int outer = one ? 1 : s.rank() - 1;
  bool fits = updates.rank() == outer + whole.rank() - depth_;
  for (int i = 0; fits && i < outer; ++i) fits = updates[i] == s[i];
  if (!fits) {
    throw InvalidArgumentError(cat("Dimensions [0,", outer, ") of indices[shape=", s,
                                   "] must match dimensions [0,", outer,
                                   ") of updates[shape=", updates, "]"));
  }
  for (int i = depth_; fits && i < whole.rank(); ++i)
    fits = updates[outer + i - depth_] == whole[i];
  if (!fits) {
    throw InvalidArgumentError(cat("Dimensions [", depth_, ",", whole.rank(),
                                   ") of input[shape=", whole, "] must match dimensions [", outer,
                                   ",", updates.rank(), ") of updates[shape=", updates, "]"));
  }
  size_ = s.product(0, outer);
  slice_size_ = whole.product(depth_, whole.rank());

  const AttrValue* attr = c.find_attr("bad_indices_policy");
  const auto* policy = attr ? attr->get_if<std::string>() : nullptr;
  if (policy && !policy->empty() && *policy != "DEFAULT" && *policy != "ERROR" &&
      *policy != "IGNORE") {
    throw InvalidArgumentError(cat(
        "bad_indices_policy must be '', 'DEFAULT', 'ERROR' or 'IGNORE' but is '", *policy, "'."));
  }
  if (policy && *policy == "IGNORE") return;
  for (std::int64_t i = 0; i < size_; ++i) {
    if (slice(i) < 0) {
      throw InvalidArgumentError(cat("indices[", i,
                                     "] = ", tuple_text(dtype_, data_, i * depth, depth),
                                     " does not index into shape ", whole));
    }
  }
}

namespace {

template <class F>
struct EachElement {
  template <class T>
  void operator()(T* to, const T* from, std::int64_t n) const {
    combine_rows(to, from, n, F());
  }
};

std::int64_t number_of_slices(const IndexTuples& tuples, const Shape& whole) {
  return tuples.slice_size() == 0 ? 0 : whole.num_elements() / tuples.slice_size();
}

template <class T, class Apply>
void put(KernelContext& c, const IndexTuples& tuples, Array& whole, const Array& updates,
         Apply apply) {
  scatter_slices(c.intra_op(), tuples, static_cast<T*>(whole.raw_data()),
                 static_cast<const T*>(updates.raw_data()), number_of_slices(tuples, whole.shape()),
                 apply);
}

// Adds updates: numbers are summed, bools or-ed, strings joined.
void put_sum(KernelContext& c, const IndexTuples& tuples, Array& whole, const Array& updates) {
  if (updates.dtype() == DType::kBool) {
    return put<bool>(c, tuples, whole, updates, [](bool* to, const bool* from, std::int64_t n) {
      for (std::int64_t k = 0; k < n; ++k) to[k] = to[k] || from[k];
    });
  }
  if (updates.dtype() == DType::kString) {
    return put<std::string>(c, tuples, whole, updates,
                            [](std::string* to, const std::string* from, std::int64_t n) {
                              for (std::int64_t k = 0; k < n; ++k) to[k] += from[k];
                            });
  }
  with_number(updates.dtype(),
              [&]<class T>() { put<T>(c, tuples, whole, updates, EachElement<AddTo>()); });
}

template <class Combine>
void put_numbers(KernelContext& c, const IndexTuples& tuples, Array& whole, const Array& updates) {
  const auto run = [&]<class T>() { put<T>(c, tuples, whole, updates, EachElement<Combine>()); };
  if constexpr (Combine::kRealOnly) {
    with_real(updates.dtype(), run);
  } else {
    with_number(updates.dtype(), run);
  }
}

void put_replacement(KernelContext& c, const IndexTuples& tuples, Array& whole,
                     const Array& updates) {
  with_element(updates.dtype(),
               [&]<class T>() { put<T>(c, tuples, whole, updates, ReplaceElement()); });
}

void scatter_nd(KernelContext& c) {
  const Array& indices = c.input(0);
  const Array& updates = c.input(1);
  const Shape shape = shape_input(c, 2);
  const IndexTuples tuples(c, indices, updates.shape(), shape);
  Array& out = c.allocate_output(0, shape);
  clear_flat(c.intra_op(), out.dtype(), out.raw_data(), out.num_elements());
  put_sum(c, tuples, out, updates);
}

using Put = void (*)(KernelContext&, const IndexTuples&, Array&, const Array&);

template <Put kPut, VectorIs kVector = VectorIs::kOneTuple>
void tensor_scatter(KernelContext& c) {
  const Array& x = c.input(0);
  const IndexTuples tuples(c, c.input(1), c.input(2).shape(), x.shape(), kVector);
  Array& out = c.reuse_or_allocate_output(0, 0, x.shape());
  if (out.raw_data() != x.raw_data()) {
    copy_flat(c.intra_op(), x.dtype(), out.raw_data(), x.raw_data(), x.num_elements());
  }
  kPut(c, tuples, out, c.input(2));
}

template <Put kPut, VectorIs kVector = VectorIs::kOfTuples>
void resource_scatter_nd(KernelContext& c) {
  VariableResource& variable = variable_input(c.input(0));
  const Array& updates = c.input(2);
  std::lock_guard lock(variable.mutex());
  require_initialized(c.input(0), variable);
  if (updates.dtype() != variable.value().dtype()) {
    throw InvalidArgumentError(cat("Cannot update variable of dtype ", variable.dtype(),
                                   " with updates of dtype ", updates.dtype(), ". Use td::cast."));
  }
  const Shape shape = variable.value().shape();
  const IndexTuples tuples(c, c.input(1), updates.shape(), shape, kVector);
  kPut(c, tuples, variable.writable_value(), updates);
  if (c.num_outputs() > 0) c.set_output(0, c.input(0));
}

// References are of graphs alone, where TensorFlow's shape function takes a vector for one tuple.
template <Put kPut>
constexpr auto reference_scatter_nd = resource_scatter_nd<kPut, VectorIs::kOneTuple>;

const KernelRegistration kScatterNd{{.op = "ScatterNd", .run = scatter_nd}};
const KernelRegistration kUpdate{
    {.op = "TensorScatterUpdate", .run = tensor_scatter<put_replacement>}};
const KernelRegistration kAdd{{.op = "TensorScatterAdd", .run = tensor_scatter<put_sum>}};
const KernelRegistration kNonAliasingAdd{
    {.op = "ScatterNdNonAliasingAdd", .run = tensor_scatter<put_sum, VectorIs::kOfTuples>}};
const KernelRegistration kSub{{.op = "TensorScatterSub",
                               .types = {{"T", kNumberTypes}},
                               .run = tensor_scatter<put_numbers<SubtractFrom>>}};
const KernelRegistration kMax{{.op = "TensorScatterMax",
                               .types = {{"T", kRealTypes}},
                               .run = tensor_scatter<put_numbers<Larger>>}};
const KernelRegistration kMin{{.op = "TensorScatterMin",
                               .types = {{"T", kRealTypes}},
                               .run = tensor_scatter<put_numbers<Smaller>>}};
const KernelRegistration kResourceUpdate{
    {.op = "ResourceScatterNdUpdate", .run = resource_scatter_nd<put_replacement>}};
const KernelRegistration kResourceAdd{
    {.op = "ResourceScatterNdAdd", .run = resource_scatter_nd<put_sum>}};
const KernelRegistration kResourceSub{{.op = "ResourceScatterNdSub",
                                       .types = {{"T", kNumberTypes}},
                                       .run = resource_scatter_nd<put_numbers<SubtractFrom>>}};
const KernelRegistration kRefUpdate{
    {.op = "ScatterNdUpdate", .run = reference_scatter_nd<put_replacement>}};
const KernelRegistration kRefAdd{{.op = "ScatterNdAdd", .run = reference_scatter_nd<put_sum>}};
const KernelRegistration kResourceMax{{.op = "ResourceScatterNdMax",
                                       .types = {{"T", kRealTypes}},
                                       .run = resource_scatter_nd<put_numbers<Larger>>}};
const KernelRegistration kResourceMin{{.op = "ResourceScatterNdMin",
                                       .types = {{"T", kRealTypes}},
                                       .run = resource_scatter_nd<put_numbers<Smaller>>}};
const KernelRegistration kRefMax{{.op = "ScatterNdMax",
                                  .types = {{"T", kRealTypes}},
                                  .run = reference_scatter_nd<put_numbers<Larger>>}};
const KernelRegistration kRefMin{{.op = "ScatterNdMin",
                                  .types = {{"T", kRealTypes}},
                                  .run = reference_scatter_nd<put_numbers<Smaller>>}};
const KernelRegistration kRefSub{{.op = "ScatterNdSub",
                                  .types = {{"T", kNumberTypes}},
                                  .run = reference_scatter_nd<put_numbers<SubtractFrom>>}};

}  // namespace
}  // namespace tandem::cpu
