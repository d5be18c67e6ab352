#include "tandem/kernels/cpu/elementwise/in_float.h"

#include "tandem/core/error.h"
#include "tandem/kernels/cpu/elementwise/float16_rows.h"

namespace tandem::cpu {
namespace {

constexpr double kCost = 0.15;  // ns an element

template <class T>
void widen(IntraOpPool& pool, const T* from, float* to, std::int64_t count) {
  pool.parallel_for(count, kCost, [=](std::int64_t begin, std::int64_t end) {
    to_floats(from + begin, to + begin, end - begin);
  });
}

template <class T>
void narrow(IntraOpPool& pool, const float* from, T* to, std::int64_t count) {
  pool.parallel_for(count, kCost, [=](std::int64_t begin, std::int64_t end) {
    from_floats(from + begin, to + begin, end - begin);
  });
}

[[noreturn]] void wrong(DType type) {
  throw InternalError(cat("Elements of dtype ", type, " are not computed in float."));
}

}  // namespace

void to_float(IntraOpPool& pool, DType type, const void* from, float* to, std::int64_t count) {
  switch (type) {
    case DType::kHalf: return widen(pool, static_cast<const Half*>(from), to, count);
    case DType::kBFloat16: return widen(pool, static_cast<const BFloat16*>(from), to, count);
    default: wrong(type);
  }
}

void from_float(IntraOpPool& pool, const float* from, DType type, void* to, std::int64_t count) {
  switch (type) {
    case DType::kHalf: return narrow(pool, from, static_cast<Half*>(to), count);
    case DType::kBFloat16: return narrow(pool, from, static_cast<BFloat16*>(to), count);
    default: wrong(type);
  }
}

}  // namespace tandem::cpu
