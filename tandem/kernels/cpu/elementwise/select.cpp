// Select and SelectV2: a choice between two values, element by element.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/elementwise/broadcast_rows.h"
#include "tandem/kernels/cpu/elementwise/choose_rows.h"
#include "tandem/kernels/cpu/support/elements.h"

namespace tandem::cpu {
namespace {

// One row: where the condition moves along with the result. Numbers are chosen in vectors.
template <class T>
void choose(const bool* condition, const T* t, bool t_repeats, const T* e, bool e_repeats, T* out,
            std::int64_t n) {
  if constexpr (std::is_integral_v<T>) {
    choose_row(sizeof(T))(condition, t, t_repeats, e, e_repeats, out, n);
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      out[i] = condition[i] ? t[t_repeats ? 0 : i] : e[e_repeats ? 0 : i];
    }
  }
}

template <class T>
void select_as(KernelContext& c, const BroadcastRows<3>& rows, Array& out) {
  const bool* const condition = c.input(0).data<bool>();
  const T* const t = c.input(1).data<T>();
  const T* const e = c.input(2).data<T>();
  T* const result = out.data<T>();
  rows.run(c.intra_op(), 0.2 * sizeof(T),
           [=](std::int64_t begin, const auto& from, const auto& step, std::int64_t n) {
             T* const to = result + begin;
             if (step[0] == 0) {
               const int chosen = condition[from[0]] ? 1 : 2;
               const T* const source = (chosen == 1 ? t : e) + from[chosen];
               if (step[chosen] == 0)
                 std::fill_n(to, n, *source);
               else if (source != to)
                 std::copy_n(source, n, to);
               return;
             }
             choose(condition + from[0], t + from[1], step[1] == 0, e + from[2], step[2] == 0, to,
                    n);
           });
}

void select_rows(KernelContext& c, const Shape& condition) {
  const Shape& t = c.input(1).shape();
  const Shape& e = c.input(2).shape();
  const BroadcastRows<3> rows({&condition, &t, &e});
  const int reused = t == rows.shape() && c.may_overwrite_input(1) ? 1 : 2;
  Array& out = c.reuse_or_allocate_output(reused, 0, rows.shape());
  if (out.num_elements() == 0) return;
  with_element(out.dtype(), [&]<class T>() { select_as<T>(c, rows, out); });
}

void select_v2(KernelContext& c) { select_rows(c, c.input(0).shape()); }

// A condition of rank 1 chooses whole rows.
void select(KernelContext& c) {
  const Shape& condition = c.input(0).shape();
  const Shape& t = c.input(1).shape();
  if (!(t == c.input(2).shape())) {
    throw InvalidArgumentError(cat("'then' and 'else' must have the same shape, but they have ", t,
                                   " and ", c.input(2).shape(), "."));
  }
  if (condition == t || condition.rank() == 0) return select_rows(c, condition);
  if (condition.rank() != 1 || t.rank() == 0) {
    throw InvalidArgumentError(cat("'cond' must be a scalar, a vector, or of the shape ", t,
                                   " of 'then', but it has ", condition, "."));
  }
  if (condition[0] != t[0]) {
    throw InvalidArgumentError(
        cat("Number of batches of 'then' must match size of 'cond', but saw: ", t[0], " vs. ",
            condition[0]));
  }
  Shape column = condition;
  for (int i = 1; i < t.rank(); ++i) column.add_dim(1);
  select_rows(c, column);
}

const KernelRegistration kSelectV2{
    {.op = "SelectV2", .types = {{"T", kAllTypes}}, .run = select_v2}};
const KernelRegistration kSelect{{.op = "Select", .types = {{"T", kAllTypes}}, .run = select}};

}  // namespace
}  // namespace tandem::cpu
