// Rows and slices changed where indices point: of variables, and of tensors that are copied first.

#include "tandem/kernels/cuda/array/targets.h"
#include "tandem/kernels/cuda/elementwise/arithmetic.h"
#include "tandem/kernels/cuda/support/launch.h"
#include "tandem/kernels/cuda/support/types.h"

namespace tandem::cuda {
namespace {

// The later of two updates stays.
struct Replace {
  template <class T>
  TANDEM_DEVICE static T apply(T, T b) {
    return b;
  }
};
// Where neither is greater, as with NaN, the old element stays.
struct Larger {
  template <class T>
  TANDEM_DEVICE static T apply(T a, T b) {
    return a < b ? b : a;
  }
};
struct Smaller {
  template <class T>
  TANDEM_DEVICE static T apply(T a, T b) {
    return b < a ? b : a;
  }
};
struct Either {
  TANDEM_DEVICE static bool apply(bool a, bool b) { return a || b; }
};

// Several updates of one element come one after the other, in their order. A step of 0 between
// updates: one number for all.
template <class F, class T>
TANDEM_KERNEL scatter_kernel(T* whole, const T* updates, Targets targets, std::int64_t inner,
                             std::int64_t step) {
  const std::int64_t n = targets.size * inner;
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const std::int64_t p = i / inner, column = i % inner;
    const std::uint64_t row = targets.rows[p];
    if (row == kLastKey || (p > 0 && targets.rows[p - 1] == row)) continue;
    T& element = whole[static_cast<std::int64_t>(row) * inner + column];
    T value = element;
    for (std::int64_t q = p; q < targets.size && targets.rows[q] == row; ++q) {
      const T update = updates[(targets.updates[q] * inner + column) * step];
      value = store<T>(F::apply(load(value), load(update)));
    }
    element = value;
  }
}

template <class F, class T>
void scatter_as(const TensorView& whole, const TensorView& updates, const Targets& targets,
                std::int64_t inner, bool one_for_all) {
  if (targets.size * inner == 0) return;
  TANDEM_LAUNCH((scatter_kernel<F, T>), shape_for(targets.size * inner), 0, whole.as<T>(),
                updates.as<T>(), targets, inner, std::int64_t{one_for_all ? 0 : 1});
}

template <class F>
void scatter(const TensorView& whole, const TensorView& updates, const Targets& targets,
             std::int64_t inner, bool one_for_all) {
  if constexpr (std::is_same_v<F, Replace>) {
    visit_size(whole.type, [&](auto tag) {
      scatter_as<F, typename decltype(tag)::type>(whole, updates, targets, inner, one_for_all);
    });
  } else {
    if constexpr (std::is_same_v<F, Add>) {
      if (whole.type == Type::kBool)
        return scatter_as<Either, bool>(whole, updates, targets, inner, one_for_all);
    }
    if (!visit_numbers(whole.type, [&](auto tag) {
          scatter_as<F, typename decltype(tag)::type>(whole, updates, targets, inner, one_for_all);
        })) {
      no_kernel_for(whole.type);
    }
  }
}

// ---- Rows of variables ----

template <class F>
void scatter_rows(KernelCall& call) {
  const TensorView now = call.variable(0), indices = call.input(1), updates = call.input(2);
  if (updates.type != now.type) refuse("the variable and the updates have different dtypes");
  if (now.rank() < 1) refuse("params must be at least 1-D");
  const bool one_for_all = updates.rank() == 0;
  Sizes expected = indices.sizes;
  expected.insert(expected.end(), now.sizes.begin() + 1, now.sizes.end());
  if (!one_for_all && updates.sizes != expected) {
    refuse("Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = []");
  }
  const TensorView whole = call.writable_variable(0);
  const Targets targets = row_targets(call, indices, whole.sizes[0]);
  scatter<F>(whole, updates, targets, product(std::span(whole.sizes).subspan(1)), one_for_all);
  call.return_reference();
}

// ---- Slices by index tuples ----

// What rank-1 indices are: TensorFlow's ops on variables take one number for a vector of one tuple.
enum class VectorIs { kOneTuple, kOfTuples };

struct Tuples {
  std::int64_t count = 0, depth = 0, inner = 0;
};

// Checks that indices and updates fit each other and the tensor.
Tuples checked_tuples(const TensorView& indices, const TensorView& updates, const Sizes& whole,
                      VectorIs vector) {
  if (indices.rank() < 1) refuse("Indices shape must have rank at least one");
  if (whole.empty()) refuse("Output must be at least 1-D");
  const bool all_empty = indices.count == 0 && updates.count == 0;
  if (!all_empty && (product(whole) == 0 || indices.count == 0 || updates.count == 0)) {
    refuse("Either indices and updates are empty, or neither they nor the output");
  }
  Tuples t;
  t.depth = indices.sizes.back();
  if (t.depth == 0 && product(whole) > 0) refuse("Index tuples of no elements");
  if (t.depth > static_cast<std::int64_t>(whole.size())) {
    refuse("Inner dimension of indices must not exceed the rank of the shape");
  }
  const bool one = vector == VectorIs::kOfTuples && indices.sizes == Sizes{1};
  Sizes expected(indices.sizes.begin(), one ? indices.sizes.end() : indices.sizes.end() - 1);
  t.count = product(expected);
  expected.insert(expected.end(), whole.begin() + t.depth, whole.end());
  if (updates.sizes != expected) {
    refuse(
        "the shape of updates must be that of indices without its last dimension, and of the "
        "slices that are updated");
  }
  t.inner = product(std::span(whole).subspan(static_cast<std::size_t>(t.depth)));
  return t;
}

void check_policy(const KernelCall& call) {
  const std::string policy = call.attr_string("bad_indices_policy");
  if (!policy.empty() && policy != "DEFAULT" && policy != "ERROR" && policy != "IGNORE") {
    refuse("bad_indices_policy must be '', 'DEFAULT', 'ERROR' or 'IGNORE' but is '" + policy +
           "'.");
  }
}

template <class F>
void scatter_tuples(KernelCall& call, const TensorView& whole, const TensorView& indices,
                    const TensorView& updates, const Tuples& t) {
  const Targets targets = tuple_targets(call, indices, t.count, t.depth, whole.sizes);
  scatter<F>(whole, updates, targets, t.inner, false);
}

template <class F>
void scatter_variable(KernelCall& call, VectorIs vector) {
  const TensorView now = call.variable(0), indices = call.input(1), updates = call.input(2);
  if (updates.type != now.type) refuse("the variable and the updates have different dtypes");
  check_policy(call);
  const Tuples t = checked_tuples(indices, updates, now.sizes, vector);
  scatter_tuples<F>(call, call.writable_variable(0), indices, updates, t);
  call.return_reference();
}

template <class F>
void scatter_tensor(KernelCall& call, VectorIs vector, bool has_policy) {
  const TensorView x = call.input(0), indices = call.input(1), updates = call.input(2);
  if (has_policy) check_policy(call);
  const Tuples t = checked_tuples(indices, updates, x.sizes, vector);
  const TensorView y = call.allocate_output(0, x.sizes);
  if (y.data != x.data) {
    call.copy(y.data, x.data, static_cast<std::size_t>(x.count) * size_of(x.type));
  }
  scatter_tuples<F>(call, y, indices, updates, t);
}

}  // namespace

// A kernel for handles and one for references.
#define TANDEM_SCATTER_ROWS(NAME, F) \
  void state_scatter_##NAME(KernelCall& call) { scatter_rows<F>(call); }
#define TANDEM_SCATTER_TUPLES(NAME, F)                   \
  void state_scatter_nd_##NAME(KernelCall& call) {       \
    scatter_variable<F>(call, VectorIs::kOfTuples);      \
  }                                                      \
  void state_scatter_nd_##NAME##_ref(KernelCall& call) { \
    scatter_variable<F>(call, VectorIs::kOneTuple);      \
  }                                                      \
  void array_tensor_scatter_##NAME(KernelCall& call) {   \
    scatter_tensor<F>(call, VectorIs::kOneTuple, true);  \
  }

TANDEM_SCATTER_ROWS(add, Add)
TANDEM_SCATTER_ROWS(sub, Sub)
TANDEM_SCATTER_ROWS(mul, Mul)
TANDEM_SCATTER_ROWS(div, Divide)
TANDEM_SCATTER_ROWS(min, Smaller)
TANDEM_SCATTER_ROWS(max, Larger)
TANDEM_SCATTER_ROWS(update, Replace)
TANDEM_SCATTER_TUPLES(add, Add)
TANDEM_SCATTER_TUPLES(sub, Sub)
TANDEM_SCATTER_TUPLES(min, Smaller)
TANDEM_SCATTER_TUPLES(max, Larger)
TANDEM_SCATTER_TUPLES(update, Replace)

void array_scatter_nd_non_aliasing_add(KernelCall& call) {
  scatter_tensor<Add>(call, VectorIs::kOfTuples, true);
}

void array_scatter_nd(KernelCall& call) {
  const TensorView indices = call.input(0), updates = call.input(1);
  const Sizes sizes = call.input(2).host_vector("shape");
  for (const std::int64_t size : sizes) {
    if (size < 0) refuse("Dimension " + std::to_string(size) + " must be >= 0");
  }
  check_policy(call);
  const Tuples t = checked_tuples(indices, updates, sizes, VectorIs::kOneTuple);
  const TensorView y = call.allocate_output(0, sizes);
  call.zero(y.data, static_cast<std::size_t>(y.count) * size_of(y.type));
  scatter_tuples<Add>(call, y, indices, updates, t);
}

}  // namespace tandem::cuda
