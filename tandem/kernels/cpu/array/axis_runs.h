#pragma once

#include <algorithm>
#include <cstdint>

#include "tandem/device/intra_op_pool.h"
#include "tandem/kernels/cpu/array/axis_view.h"

namespace tandem::cpu {

/// Calls f(k, at, n) for runs that make up the value: its elements [at, at + n) are of entry k of
/// the axis, and n is at most `longest`. In parallel if worthwhile at `cost` nanoseconds an
/// element.
template <class F>
void for_each_run(IntraOpPool& pool, const AxisView& view, std::int64_t longest, double cost,
                  const F& f) {
  pool.parallel_for(view.outer * view.size * view.inner, cost,
                    [&](std::int64_t begin, std::int64_t end) {
                      std::int64_t k = begin / view.inner % view.size;
                      std::int64_t left = view.inner - begin % view.inner;
                      for (std::int64_t at = begin; at < end;) {
                        const std::int64_t n = std::min({left, end - at, longest});
                        f(k, at, n);
                        at += n;
                        left -= n;
                        if (left > 0) continue;
                        left = view.inner;
                        if (++k == view.size) k = 0;
                      }
                    });
}

}  // namespace tandem::cpu
