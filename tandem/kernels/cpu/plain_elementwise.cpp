#include "tandem/kernels/cpu/plain_elementwise.h"

#include <algorithm>
#include <array>

#include "tandem/core/error.h"

namespace tandem {
namespace {

constexpr int kMaxMerged = Shape::kMaxRank;

// Neighbouring dimensions along which both inputs go on evenly are one.
struct Strided {
  int rank = 0;
  std::array<std::int64_t, kMaxMerged> size, a_step, b_step;  // steps in elements, 0 where repeated

  Strided(const Shape& a, const Shape& b, const Shape& out) {
    std::int64_t a_next = 1, b_next = 1;
    for (int i = out.rank(); i-- > 0;) {
      const int ia = i - (out.rank() - a.rank()), ib = i - (out.rank() - b.rank());
      const std::int64_t da = ia < 0 ? 1 : a[ia], db = ib < 0 ? 1 : b[ib];
      const std::int64_t sa = da == 1 ? 0 : a_next, sb = db == 1 ? 0 : b_next;
      a_next *= da;
      b_next *= db;
      if (out[i] == 1) continue;
      if (rank > 0) {
        const auto last = static_cast<std::size_t>(rank - 1);
        const bool even = sa == a_step[last] * size[last] && sb == b_step[last] * size[last];
        if (even) {
          size[last] *= out[i];
          continue;
        }
      }
      const auto at = static_cast<std::size_t>(rank++);
      size[at] = out[i];
      a_step[at] = sa;
      b_step[at] = sb;
    }
    if (rank == 0) {
      rank = 1;
      size[0] = out.num_elements();
      a_step[0] = b_step[0] = 0;
    }
  }
};

const std::byte* advance(const void* p, std::int64_t elements, std::size_t size) {
  return static_cast<const std::byte*>(p) + static_cast<std::ptrdiff_t>(elements) * static_cast<std::ptrdiff_t>(size);
}

// Rows [begin, end) of the outer dimensions; dimension 0 of `s` is the innermost.
void run_rows(const Strided& s, const void* a, const void* b, void* out, BinaryLoop loop, std::size_t in_size,
              std::size_t out_size, std::int64_t begin, std::int64_t end) {
  std::array<std::int64_t, kMaxMerged> index{};
  std::int64_t rest = begin, a_at = 0, b_at = 0;
  for (int d = 1; d < s.rank; ++d) {
    const auto at = static_cast<std::size_t>(d);
    index[at] = rest % s.size[at];
    rest /= s.size[at];
    a_at += index[at] * s.a_step[at];
    b_at += index[at] * s.b_step[at];
  }
  for (std::int64_t row = begin; row < end; ++row) {
    loop(advance(a, a_at, in_size), advance(b, b_at, in_size),
         const_cast<std::byte*>(advance(out, row * s.size[0], out_size)), s.size[0], s.a_step[0] == 0, s.b_step[0] == 0);
    for (int d = 1; d < s.rank; ++d) {
      const auto at = static_cast<std::size_t>(d);
      a_at += s.a_step[at];
      b_at += s.b_step[at];
      if (++index[at] < s.size[at]) break;
      a_at -= s.a_step[at] * s.size[at];
      b_at -= s.b_step[at] * s.size[at];
      index[at] = 0;
    }
  }
}

}  // namespace

void run_binary(KernelContext& c, BinaryLoop loop, std::size_t in_size, std::size_t out_size, double cost) {
  const Array& a = c.input(0);
  const Array& b = c.input(1);
  const bool same = a.shape() == b.shape();
  if (same || b.num_elements() == 1 || a.num_elements() == 1) {
    const bool a_scalar = !same && a.num_elements() == 1 && a.rank() <= b.rank();
    const bool b_scalar = !same && !a_scalar && b.num_elements() == 1 && b.rank() <= a.rank();
    if (same || a_scalar || b_scalar) {
      const int longer = a_scalar ? 1 : 0;
      Array& out = c.reuse_or_allocate_output(longer, 0, c.input(longer).shape());
      const std::int64_t n = out.num_elements();
      const void* x = a.raw_data();
      const void* y = b.raw_data();
      void* z = out.raw_data();
      c.intra_op().parallel_for(n, cost, [&](std::int64_t begin, std::int64_t end) {
        loop(a_scalar ? x : advance(x, begin, in_size), b_scalar ? y : advance(y, begin, in_size),
             const_cast<std::byte*>(advance(z, begin, out_size)), end - begin, a_scalar, b_scalar);
      });
      return;
    }
  }
  const Shape shape = broadcast(a.shape(), b.shape());
  const int whole = a.shape() == shape ? 0 : b.shape() == shape ? 1 : -1;
  Array& out = whole >= 0 ? c.reuse_or_allocate_output(whole, 0, shape) : c.allocate_output(0, shape);
  if (shape.num_elements() == 0) return;
  const Strided s(a.shape(), b.shape(), shape);
  const std::int64_t rows = shape.num_elements() / s.size[0];
  c.intra_op().parallel_for(rows, cost * static_cast<double>(s.size[0]), [&](std::int64_t begin, std::int64_t end) {
    run_rows(s, a.raw_data(), b.raw_data(), out.raw_data(), loop, in_size, out_size, begin, end);
  });
}

void run_unary(KernelContext& c, UnaryLoop loop, std::size_t in_size, std::size_t out_size, double cost) {
  const Array& x = c.input(0);
  Array& out = in_size == out_size ? c.reuse_or_allocate_output(0, 0, x.shape()) : c.allocate_output(0, x.shape());
  const void* in = x.raw_data();
  void* z = out.raw_data();
  c.intra_op().parallel_for(x.num_elements(), cost, [&](std::int64_t begin, std::int64_t end) {
    loop(advance(in, begin, in_size), const_cast<std::byte*>(advance(z, begin, out_size)), end - begin);
  });
}

}  // namespace tandem
