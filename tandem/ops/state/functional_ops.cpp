#include "tandem/ops/functional_ops.h"

#include "tandem/core/error.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/control_flow.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/layout_ops.h"
#include "tandem/ops/list_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/slice_ops.h"
#include "tandem/runtime/thread_context.h"

namespace tandem::internal {
namespace {

bool is_traced() { return thread_context().trace != nullptr; }

void check_elements(const std::vector<Tensor>& elems, const char* what) {
  if (elems.empty()) throw InvalidArgumentError(cat(what, ": there are no elements."));
  std::int64_t size = -1;
  for (const Tensor& t : elems) {
    if (t.rank() == 0)
      throw InvalidArgumentError(cat(what,
                                     ": elements are taken from the first axis, but one of "
                                     "the tensors is a scalar."));
    const std::int64_t here = t.rank() > 0 ? t.dim(0) : -1;
    if (size >= 0 && here >= 0 && here != size) {
      throw InvalidArgumentError(
          cat(what, ": the first axes have the sizes ", size, " and ", here, "."));
    }
    if (here >= 0) size = here;
  }
}

std::vector<Tensor> at(const std::vector<Tensor>& elems, const Tensor& i) {
  std::vector<Tensor> element;
  for (const Tensor& t : elems) element.push_back(t[i]);
  return element;
}
std::vector<Tensor> at(const std::vector<Tensor>& elems, std::int64_t i) {
  std::vector<Tensor> element;
  for (const Tensor& t : elems) element.push_back(t[i]);
  return element;
}

std::vector<Tensor> stacked(const std::vector<std::vector<Tensor>>& results) {
  std::vector<Tensor> whole;
  for (std::size_t part = 0; part < results.front().size(); ++part) {
    std::vector<Tensor> parts;
    for (const auto& result : results) parts.push_back(result[part]);
    whole.push_back(stack(parts));
  }
  return whole;
}

}  // namespace

std::vector<Tensor> flat_map(const FlatFunction& fn, const std::vector<Tensor>& elems,
                             const std::vector<DType>& dtypes) {
  check_elements(elems, "td::map_fn");
  if (!is_traced()) {
    std::vector<std::vector<Tensor>> results;
    const std::int64_t count = elems.front().dim(0);
    if (count == 0)
      throw InvalidArgumentError("td::map_fn: there are no elements, so no shape of a result.");
    for (std::int64_t i = 0; i < count; ++i) results.push_back(fn(at(elems, i)));
    return stacked(results);
  }
  std::vector<DType> types = dtypes;
  if (types.empty()) {
    for (const Tensor& t : elems) types.push_back(t.dtype());
  }
  const Tensor count = shape(elems.front())[0];
  std::vector<Tensor> state{Tensor(0)};
  for (const DType type : types) state.push_back(list_ops::reserve(count, type));
  const auto last =
      flat_while([&](const std::vector<Tensor>& s) { return s[0] < count; },
                 [&](const std::vector<Tensor>& s) {
                   const std::vector<Tensor> results = fn(at(elems, s[0]));
                   if (results.size() != types.size()) {
                     throw InvalidArgumentError(cat("td::map_fn: the function has ", results.size(),
                                                    " results where ", types.size(),
                                                    " dtypes are known: name the dtypes of all."));
                   }
                   std::vector<Tensor> next{s[0] + 1};
                   for (std::size_t i = 0; i < results.size(); ++i)
                     next.push_back(list_ops::set_item(s[i + 1], s[0], results[i]));
                   return next;
                 },
                 std::move(state), {});
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < types.size(); ++i)
    results.push_back(list_ops::stack(last[i + 1], types[i]));
  return results;
}

std::vector<Tensor> flat_scan(const FlatFold& fn, const std::vector<Tensor>& given,
                              const std::vector<Tensor>& initial, bool has_initial, bool backwards,
                              bool keep_all) {
  check_elements(given, "td::scan");
  std::vector<Tensor> elems = given;
  if (backwards) {
    for (Tensor& t : elems) t = reverse(t, {0});
  }
  std::vector<Tensor> state = has_initial ? initial : at(elems, std::int64_t{0});
  std::vector<Tensor> all;
  if (!is_traced()) {
    std::vector<std::vector<Tensor>> states;
    const std::int64_t count = elems.front().dim(0);
    if (!has_initial) states.push_back(state);
    for (std::int64_t i = has_initial ? 0 : 1; i < count; ++i) {
      state = fn(state, at(elems, i));
      states.push_back(state);
    }
    if (!keep_all) return state;
    if (states.empty()) throw InvalidArgumentError("td::scan: there are no elements.");
    all = stacked(states);
  } else {
    const Tensor count = shape(elems.front())[0];
    const std::size_t n = state.size();
    std::vector<Tensor> loop{Tensor(has_initial ? 0 : 1)};
    std::vector<DType> types;
    for (const Tensor& t : state) {
      loop.push_back(t);
      types.push_back(t.dtype());
    }
    if (keep_all) {
      for (std::size_t i = 0; i < n; ++i) {
        Tensor list = list_ops::reserve(count, types[i]);
        if (!has_initial) list = list_ops::set_item(list, Tensor(0), state[i]);
        loop.push_back(list);
      }
    }
    const auto last =
        flat_while([&](const std::vector<Tensor>& s) { return s[0] < count; },
                   [&](const std::vector<Tensor>& s) {
                     const std::vector<Tensor> now(s.begin() + 1,
                                                   s.begin() + 1 + static_cast<std::ptrdiff_t>(n));
                     const std::vector<Tensor> after = fn(now, at(elems, s[0]));
                     std::vector<Tensor> next{s[0] + 1};
                     next.insert(next.end(), after.begin(), after.end());
                     for (std::size_t i = 0; keep_all && i < n; ++i)
                       next.push_back(list_ops::set_item(s[1 + n + i], s[0], after[i]));
                     return next;
                   },
                   std::move(loop), {});
    if (!keep_all) return {last.begin() + 1, last.begin() + 1 + static_cast<std::ptrdiff_t>(n)};
    for (std::size_t i = 0; i < n; ++i) all.push_back(list_ops::stack(last[1 + n + i], types[i]));
  }
  if (backwards) {
    for (Tensor& t : all) t = reverse(t, {0});
  }
  return all;
}

}  // namespace tandem::internal
