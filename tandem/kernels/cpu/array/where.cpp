// The places of elements that are not zero: Where.

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

// Elements that are looked at together; their marks fit into the nearest cache.
constexpr std::int64_t kPiece = 4096;

template <class T>
bool is_set(T value) {
  if constexpr (is_float16<T>) {
    return static_cast<float>(value) != 0.0f;
  } else {
    return value != T(0);
  }
}

// marks[i] = 1 where an element is not zero, else 0.
using Mark = void (*)(const void* x, std::int64_t begin, std::int64_t n, std::uint8_t* marks);

template <class T>
void mark(const void* x, std::int64_t begin, std::int64_t n, std::uint8_t* __restrict marks) {
  const T* __restrict from = static_cast<const T*>(x) + begin;
  constexpr std::int64_t kRun = 16;  // a fixed number, which compilers turn into vectors
  std::int64_t i = 0;
  for (; i + kRun <= n; i += kRun) {
    for (std::int64_t j = 0; j < kRun; ++j) marks[i + j] = is_set(from[i + j]);
  }
  for (; i < n; ++i) marks[i] = is_set(from[i]);
}

Mark mark_for(DType dtype) {
  if (dtype == DType::kBool) return mark<std::uint8_t>;
  Mark found = nullptr;
  with_number(dtype, [&]<class T>() { found = mark<T>; });
  return found;
}

// The marks of one piece, eight at a time, the last ones filled up with zeros.
struct Marks {
  static constexpr std::int64_t kWords = kPiece / 8;

  Marks(Mark mark, const void* x, std::int64_t begin, std::int64_t n) : words((n + 7) / 8) {
    if (words > 0) word[words - 1] = 0;
    mark(x, begin, n, reinterpret_cast<std::uint8_t*>(word));
  }
  std::int64_t count() const {
    // Bytes are added up in place: 255 words at most before they could overflow.
    std::int64_t total = 0;
    for (std::int64_t w = 0; w < words;) {
      std::uint64_t sums = 0;
      for (const std::int64_t end = std::min(words, w + 255); w < end; ++w) sums += word[w];
      for (; sums != 0; sums >>= 8) total += static_cast<std::int64_t>(sums & 255);
    }
    return total;
  }
  // Writes the places of those that are set; `places` has room for kPiece.
  std::int64_t find(std::int32_t* places) const {
    const auto* marks = reinterpret_cast<const std::uint8_t*>(word);
    std::int64_t count = 0;
    for (std::int64_t w = 0; w < words; ++w) {
      if (word[w] == 0) continue;
      for (std::int64_t i = 8 * w; i < 8 * w + 8; ++i) {
        places[count] = static_cast<std::int32_t>(i);
        count += marks[i];
      }
    }
    return count;
  }

  alignas(64) std::uint64_t word[kWords];
  std::int64_t words;
};

// Writes the indices of the elements `begin` + places[k], which rise.
void put_places(const Shape& shape, std::int64_t begin, const std::int32_t* places,
                std::int64_t count, std::int64_t* to) {
  const int rank = shape.rank();
  if (rank == 1) {
    for (std::int64_t k = 0; k < count; ++k) to[k] = begin + places[k];
    return;
  }
  const int last = rank - 1;
  const std::int64_t columns = shape[last];
  std::int64_t index[Shape::kMaxRank];
  std::int64_t row = 0, row_end = -1;  // the row that `index` names, as element numbers
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t at = begin + places[k];
    if (at >= row_end) {
      std::int64_t rest = at / columns;
      row = rest * columns;
      row_end = row + columns;
      for (int axis = last - 1; axis > 0; --axis) {
        index[axis] = rest % shape[axis];
        rest /= shape[axis];
      }
      index[0] = rest;
    }
    if (rank == 2) {
      to[0] = index[0];
      to[1] = at - row;
      to += 2;
      continue;
    }
    for (int axis = 0; axis < last; ++axis) to[axis] = index[axis];
    to[last] = at - row;
    to += rank;
  }
}

void where(KernelContext& c) {
  const Array& x = c.input(0);
  const int rank = x.rank();
  if (rank < 1 || rank > 8) throw InvalidArgumentError(cat("Unhandled input dimensions: ", rank));
  const Mark mark = mark_for(x.dtype());
  const std::int64_t n = x.num_elements();
  const std::int64_t pieces = (n + kPiece - 1) / kPiece;
  const auto length = [n](std::int64_t p) { return std::min(kPiece, n - p * kPiece); };
  // First how many there are before each piece, then the pieces on their own.
  std::vector<std::int64_t> before(static_cast<std::size_t>(pieces) + 1, 0);
  const double cost = 0.15 * static_cast<double>(kPiece);
  c.intra_op().parallel_for(pieces, cost, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t p = first; p < last; ++p) {
      const Marks marks(mark, x.raw_data(), p * kPiece, length(p));
      before[static_cast<std::size_t>(p) + 1] = marks.count();
    }
  });
  for (std::size_t p = 1; p < before.size(); ++p) before[p] += before[p - 1];
  const std::int64_t count = before.back();
  std::int64_t* const to = c.allocate_output(0, Shape{count, rank}).data<std::int64_t>();
  if (count == 0) return;
  const double each = static_cast<double>(count * rank) / static_cast<double>(pieces);
  c.intra_op().parallel_for(pieces, 2 * cost + each, [&](std::int64_t first, std::int64_t last) {
    std::int32_t places[kPiece + 1];  // One more is written, and not counted, than there may be.
    for (std::int64_t p = first; p < last; ++p) {
      const std::int64_t begin = before[static_cast<std::size_t>(p)];
      if (begin == before[static_cast<std::size_t>(p) + 1]) continue;
      const Marks marks(mark, x.raw_data(), p * kPiece, length(p));
      put_places(x.shape(), p * kPiece, places, marks.find(places), to + begin * rank);
    }
  });
}

const KernelRegistration kWhere{{.op = "Where", .run = where}};

}  // namespace
}  // namespace tandem::cpu
