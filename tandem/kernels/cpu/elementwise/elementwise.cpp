#include "tandem/kernels/cpu/elementwise/elementwise.h"

#include <algorithm>
#include <array>
#include <complex>
#include <cstddef>
#include <cstring>

#include "tandem/core/error.h"
#include "tandem/kernels/cpu/elementwise/broadcast_rows.h"
#include "tandem/kernels/cpu/elementwise/float16_rows.h"
#include "tandem/kernels/cpu/support/streaming_store.h"

namespace tandem::cpu {
namespace {

// Elements that go through float at once: three rows of it fit the first-level cache.
constexpr std::int64_t kChunk = 1024;

const std::byte* at(const Array& array, std::int64_t element, std::size_t size) {
  return static_cast<const std::byte*>(array.raw_data()) +
         element * static_cast<std::int64_t>(size);
}
std::byte* at(Array& array, std::int64_t element, std::size_t size) {
  return static_cast<std::byte*>(array.raw_data()) + element * static_cast<std::int64_t>(size);
}

template <class H>
void widen(const void* from, float* to, std::int64_t n) {
  to_floats(static_cast<const H*>(from), to, n);
}
template <class H>
void narrow(const float* from, void* to, std::int64_t n) {
  from_floats(from, static_cast<H*>(to), n);
}

// How 16-bit elements become float and back.
struct Float16 {
  void (*widen)(const void*, float*, std::int64_t);
  void (*narrow)(const float*, void*, std::int64_t);
};
constexpr Float16 kHalfRows{widen<Half>, narrow<Half>};
constexpr Float16 kBFloat16Rows{widen<BFloat16>, narrow<BFloat16>};

[[noreturn]] void no_loop(const KernelContext& c, DType dtype) {
  throw UnimplementedError(cat("Op ", c.op().name, " has no kernel for ", dtype, " on the CPU."));
}

// What an op does with a piece of its elements: its loop, or that for float with conversions around
// it.
template <class Loop>
struct Piece {
  Loop loop = nullptr;
  const Float16* through = nullptr;
  std::size_t in_size = 0;
  std::size_t out_size = 0;
  bool converts_result = false;  // a float result goes back to 16 bits; a bool stays
  float parameter = 0;
  double cost = 1;

  Piece(const KernelContext& c, const LoopTable<Loop>& op, float given)
      : parameter(given), cost(op.cost) {
    const DType in = base_dtype(c.input(0).dtype()), out = base_dtype(c.output_dtype(0));
    loop = op.loop(in);
    in_size = dtype_size(in);
    out_size = dtype_size(out);
    if (!loop) [[unlikely]] {
      if (op.float16 && in == DType::kHalf) through = &kHalfRows;
      if (op.float16 && in == DType::kBFloat16) through = &kBFloat16Rows;
      loop = op.loop(DType::kFloat);
      if (!through || !loop) no_loop(c, in);
      converts_result = out == in;
      cost += 0.3;
    }
  }
};

using UnaryPiece = Piece<UnaryLoop>;
using BinaryPiece = Piece<BinaryLoop>;

// The conversions stand in functions of their own: their buffers would lengthen the way of every
// scalar (the stack is probed page by page).
[[gnu::noinline]] void run_through_float(const UnaryPiece& p, const std::byte* x, std::byte* out,
                                         std::int64_t n) {
  float values[kChunk];
  for (std::int64_t done = 0; done < n; done += kChunk) {
    const std::int64_t m = std::min(kChunk, n - done);
    p.through->widen(x + done * 2, values, m);
    if (p.converts_result) {
      p.loop(values, values, m, p.parameter);
      p.through->narrow(values, out + done * 2, m);
    } else {
      p.loop(values, out + done * static_cast<std::int64_t>(p.out_size), m, p.parameter);
    }
  }
}

[[gnu::noinline]] void run_through_float(const BinaryPiece& p, const std::byte* a,
                                         const std::byte* b, std::byte* out, std::int64_t n,
                                         bool a_scalar, bool b_scalar) {
  float x[kChunk], y[kChunk];
  if (a_scalar) p.through->widen(a, x, 1);
  if (b_scalar) p.through->widen(b, y, 1);
  for (std::int64_t done = 0; done < n; done += kChunk) {
    const std::int64_t m = std::min(kChunk, n - done);
    if (!a_scalar) p.through->widen(a + done * 2, x, m);
    if (!b_scalar) p.through->widen(b + done * 2, y, m);
    if (p.converts_result) {
      float result[kChunk];
      p.loop(x, y, result, m, a_scalar, b_scalar, p.parameter);
      p.through->narrow(result, out + done * 2, m);
    } else {
      p.loop(x, y, out + done * static_cast<std::int64_t>(p.out_size), m, a_scalar, b_scalar,
             p.parameter);
    }
  }
}

void run(const UnaryPiece& p, const std::byte* x, std::byte* out, std::int64_t n) {
  if (!p.through) return p.loop(x, out, n, p.parameter);
  run_through_float(p, x, out, n);
}

void run(const BinaryPiece& p, const std::byte* a, const std::byte* b, std::byte* out,
         std::int64_t n, bool a_scalar, bool b_scalar) {
  if (!p.through) return p.loop(a, b, out, n, a_scalar, b_scalar, p.parameter);
  run_through_float(p, a, b, out, n, a_scalar, b_scalar);
}

// The output in the memory of the first input that may be taken over and has as many elements.
Array& output_for(KernelContext& c, const Shape& shape) {
  const bool first = c.input(0).num_elements() == shape.num_elements() && c.may_overwrite_input(0);
  return c.reuse_or_allocate_output(first ? 0 : 1, 0, shape);
}

// Elements [begin, end) of the result, which `compute(first, n, to)` computes, in blocks that are
// written past the caches. Not inlined: the block would lengthen the way of every scalar.
template <class Compute>
[[gnu::noinline]] void stream_range(Array& out, std::size_t size, std::int64_t begin,
                                    std::int64_t end, const Compute& compute) {
  alignas(64) std::byte block[kChunk * sizeof(std::complex<double>)];
  StreamingStore past;
  for (std::int64_t n; begin < end; begin += n) {
    n = std::min(kChunk, end - begin);
    compute(begin, n, block);
    past.write(at(out, begin, size), block, static_cast<std::size_t>(n) * size);
  }
}

[[gnu::noinline]] void stream_unary(KernelContext& c, const UnaryPiece& p, Array& out) {
  const Array& x = c.input(0);
  c.intra_op().parallel_for(out.num_elements(), p.cost, [&](std::int64_t begin, std::int64_t end) {
    stream_range(out, p.out_size, begin, end,
                 [&](std::int64_t first, std::int64_t n, std::byte* to) {
                   run(p, at(x, first, p.in_size), to, n);
                 });
  });
}

[[gnu::noinline]] void stream_same_shape(KernelContext& c, const BinaryPiece& p, Array& out) {
  const Array &a = c.input(0), &b = c.input(1);
  c.intra_op().parallel_for(out.num_elements(), p.cost, [&](std::int64_t begin, std::int64_t end) {
    stream_range(out, p.out_size, begin, end,
                 [&](std::int64_t first, std::int64_t n, std::byte* to) {
                   run(p, at(a, first, p.in_size), at(b, first, p.in_size), to, n, false, false);
                 });
  });
}

[[gnu::noinline]] void stream_broadcast(KernelContext& c, const BinaryPiece& p,
                                        const BroadcastRows<2>& rows, Array& out) {
  const Array &a = c.input(0), &b = c.input(1);
  rows.run(c.intra_op(), p.cost,
           [&](std::int64_t begin, const auto& from, const auto& step, std::int64_t count) {
             stream_range(out, p.out_size, begin, begin + count,
                          [&](std::int64_t first, std::int64_t n, std::byte* to) {
                            const std::int64_t done = first - begin;
                            run(p, at(a, from[0] + done * step[0], p.in_size),
                                at(b, from[1] + done * step[1], p.in_size), to, n, step[0] == 0,
                                step[1] == 0);
                          });
           });
}

void run_same_shape(KernelContext& c, const BinaryPiece& p) {
  const Array &a = c.input(0), &b = c.input(1);
  Array& out = output_for(c, a.shape());
  if (StreamingStore::pays(c, out)) [[unlikely]]
    return stream_same_shape(c, p, out);
  c.intra_op().parallel_for(out.num_elements(), p.cost, [&](std::int64_t begin, std::int64_t end) {
    run(p, at(a, begin, p.in_size), at(b, begin, p.in_size), at(out, begin, p.out_size),
        end - begin, false, false);
  });
}

template <class T>
void copy_row(const void* from, bool repeats, void* to, std::int64_t n) {
  const T* const source = static_cast<const T*>(from);
  T* const target = static_cast<T*>(to);
  for (std::int64_t i = 0; i < n; ++i) target[i] = source[repeats ? 0 : i];
}
using CopyRow = void (*)(const void* from, bool repeats, void* to, std::int64_t n);
CopyRow copy_row_of(std::size_t size) {
  switch (size) {
    case 1: return copy_row<std::uint8_t>;
    case 2: return copy_row<std::uint16_t>;
    case 4: return copy_row<std::uint32_t>;
    case 8: return copy_row<std::uint64_t>;
    default: return nullptr;
  }
}

// Rows of a few elements, of which an op's loop would make little: it runs over many at once, on
// copies of the operands that do not lie there in the result's shape already. Where an operand
// repeats a row for long, its copies serve as long.
constexpr std::int64_t kShortRow = 24;
void run_short_rows(KernelContext& c, const BinaryPiece& p, const BroadcastRows<2>& rows,
                    Array& out, CopyRow copy) {
  const Array* const in[] = {&c.input(0), &c.input(1)};
  const std::int64_t size = out.num_elements(), row = rows.row_size();
  const auto bytes = [&](std::int64_t n) { return static_cast<std::size_t>(n) * p.in_size; };
  c.intra_op().parallel_for(size, p.cost + 0.5, [&](std::int64_t begin, std::int64_t end) {
    alignas(64) std::byte copies[2][(kChunk + 2 * kShortRow) * 8];
    bool whole[2], repeats[2];
    std::int64_t repeated[2], filled_until[2] = {0, 0};
    for (int k = 0; k < 2; ++k) {
      whole[k] = in[k]->num_elements() == size;
      repeated[k] = rows.repeated_size(k);
      repeats[k] = !whole[k] && repeated[k] >= std::min(kChunk, size);
    }
    // Copies of the row of operand k at `begin`, from its first element on.
    const auto fill = [&](int k) {
      filled_until[k] = (begin / repeated[k] + 1) * repeated[k];
      const std::int64_t first = begin - begin % row;
      rows.run_range(first, first + row,
                     [&](std::int64_t, const auto& from, const auto& step, std::int64_t m) {
                       const auto which = static_cast<std::size_t>(k);
                       for (std::int64_t i = 0; i < std::min(kChunk, end - begin) + row; i += row) {
                         copy(at(*in[k], from[which], p.in_size), step[which] == 0,
                              copies[k] + bytes(i), m);
                       }
                     });
    };
    for (std::int64_t n; begin < end; begin += n) {
      n = std::min(kChunk, end - begin);
      for (int k = 0; k < 2; ++k) {
        if (!repeats[k]) continue;
        if (begin >= filled_until[k]) fill(k);
        n = std::min(n, filled_until[k] - begin);
      }
      if (!(whole[0] || repeats[0]) || !(whole[1] || repeats[1])) {
        rows.run_range(begin, begin + n,
                       [&](std::int64_t to, const auto& from, const auto& step, std::int64_t m) {
                         for (std::size_t k = 0; k < 2; ++k) {
                           if (whole[k] || repeats[k]) continue;
                           copy(at(*in[k], from[k], p.in_size), step[k] == 0,
                                copies[k] + bytes(to - begin), m);
                         }
                       });
      }
      const std::byte* operands[2];
      for (int k = 0; k < 2; ++k) {
        operands[k] = whole[k] ? at(*in[k], begin, p.in_size)
                               : copies[k] + (repeats[k] ? bytes(begin % row) : 0);
      }
      run(p, operands[0], operands[1], at(out, begin, p.out_size), n, false, false);
    }
  });
}

void run_broadcast(KernelContext& c, const BinaryPiece& p) {
  const Array &a = c.input(0), &b = c.input(1);
  const BroadcastRows<2> rows({&a.shape(), &b.shape()});
  Array& out = output_for(c, rows.shape());
  const CopyRow copy = copy_row_of(p.in_size);
  if (copy && rows.row_size() < kShortRow && out.num_elements() > rows.row_size()) {
    return run_short_rows(c, p, rows, out, copy);
  }
  if (rows.row_size() >= kChunk && StreamingStore::pays(c, out)) [[unlikely]] {
    return stream_broadcast(c, p, rows, out);
  }
  rows.run(c.intra_op(), p.cost,
           [&](std::int64_t begin, const auto& from, const auto& step, std::int64_t n) {
             run(p, at(a, from[0], p.in_size), at(b, from[1], p.in_size),
                 at(out, begin, p.out_size), n, step[0] == 0, step[1] == 0);
           });
}

}  // namespace

void run_unary(KernelContext& c, const UnaryOp& op, float parameter) {
  const UnaryPiece p(c, op, parameter);
  const Array& x = c.input(0);
  Array& out = c.reuse_or_allocate_output(0, 0, x.shape());
  if (StreamingStore::pays(c, out)) [[unlikely]]
    return stream_unary(c, p, out);
  c.intra_op().parallel_for(out.num_elements(), p.cost, [&](std::int64_t begin, std::int64_t end) {
    run(p, at(x, begin, p.in_size), at(out, begin, p.out_size), end - begin);
  });
}

void run_binary(KernelContext& c, const BinaryOp& op, float parameter) {
  const BinaryPiece p(c, op, parameter);
  const Array &a = c.input(0), &b = c.input(1);
  if (a.shape() == b.shape()) return run_same_shape(c, p);
  run_broadcast(c, p);
}

void run_binary_same_shape(KernelContext& c, const BinaryOp& op, float parameter) {
  if (!(c.input(0).shape() == c.input(1).shape())) {
    throw InvalidArgumentError(cat("Inputs to operation ", c.op().name,
                                   " must have the same shape but have ", c.input(0).shape(),
                                   " and ", c.input(1).shape(), "."));
  }
  run_same_shape(c, BinaryPiece(c, op, parameter));
}

}  // namespace tandem::cpu
