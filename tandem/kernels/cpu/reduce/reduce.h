#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>

#include "tandem/core/array.h"
#include "tandem/kernels/cpu/norm/rows.h"
#include "tandem/kernels/cpu/reduce/reduce_plan.h"
#include "tandem/kernels/cpu/reduce/reduce_steps.h"

// All reductions: one driver, and loops for each kind and type.

namespace tandem::cpu {

/// In what partial sums and products are added up: a type that loses nothing over many of them.
template <Reduction kKind, class C>
struct PartialType {
  using type = C;
};
template <Reduction kKind>
requires(kKind != Reduction::kMax && kKind != Reduction::kMin) struct PartialType<kKind, float> {
  using type = double;
};
template <Reduction kKind>
struct PartialType<kKind, std::complex<float>> {
  using type = std::complex<double>;
};

/// The loops of one reduction. The driver is the same for all types: of values it knows the size
/// only. Some elements are reduced to near values, which are as wide as elements or floats; near
/// values to partial ones, which are wider where that makes sums better.
class ReduceLoops {
 public:
  ReduceLoops(std::int64_t element_bytes, std::int64_t partial_bytes)
      : element_bytes(element_bytes), partial_bytes(partial_bytes) {}
  virtual ~ReduceLoops() = default;

  const std::int64_t element_bytes, partial_bytes;

  virtual void clear(void* partial, std::int64_t n) const = 0;
  virtual void clear_near(void* near, std::int64_t n) const = 0;
  virtual void add(void* partial, const void* other, std::int64_t n) const = 0;
  virtual void add_near(void* partial, const void* near, std::int64_t n) const = 0;
  /// `count` rows of n elements, `stride` apart, each into a partial value `step` after the last.
  virtual void rows(const void* x, std::int64_t count, std::int64_t stride, std::int64_t n,
                    void* partial, std::int64_t step) const = 0;
  /// The columns of `count` matrices, `stride` apart, each into near values `step` after the last.
  virtual void columns(const void* x, std::int64_t count, std::int64_t stride, std::int64_t rows,
                       std::int64_t row_stride, std::int64_t columns, void* near,
                       std::int64_t step) const = 0;
  /// Results from `first` on.
  virtual void store(const void* partial, std::int64_t first, std::int64_t n) const = 0;
};

/// How the work is split depends on the shape alone, so results have the same bits for any number
/// of threads.
void reduce(IntraOpPool& pool, const ReducePlan& plan, const void* x, const ReduceLoops& loops);

template <Reduction kKind, class C>
class PartialLoops : public ReduceLoops {
 public:
  using Partial = typename PartialType<kKind, C>::type;

  explicit PartialLoops(std::int64_t element_bytes) : ReduceLoops(element_bytes, sizeof(Partial)) {}
  void clear(void* partial, std::int64_t n) const override {
    std::fill_n(static_cast<Partial*>(partial), n, reduction_identity<kKind, Partial>());
  }
  void clear_near(void* near, std::int64_t n) const override {
    std::fill_n(static_cast<C*>(near), n, reduction_identity<kKind, C>());
  }
  void add(void* partial, const void* other, std::int64_t n) const override {
    add_up<Partial>(partial, other, n);
  }
  void add_near(void* partial, const void* near, std::int64_t n) const override {
    add_up<C>(partial, near, n);
  }

 private:
  template <class From>
  static void add_up(void* partial, const void* from, std::int64_t n) {
    combine_rows(static_cast<Partial*>(partial), static_cast<const From*>(from), n,
                 [](Partial a, From b) { return combine<kKind>(a, static_cast<Partial>(b)); });
  }
};

template <Reduction kKind, class T, class C>
class ElementLoops : public PartialLoops<kKind, C> {
 public:
  using typename PartialLoops<kKind, C>::Partial;

  ElementLoops() : PartialLoops<kKind, C>(sizeof(T)) {}
  void rows(const void* x, std::int64_t count, std::int64_t stride, std::int64_t n, void* partial,
            std::int64_t step) const override {
    static const ReduceSteps<T, C> steps = reduce_steps<kKind, T, C>();
    auto* to = static_cast<Partial*>(partial);
    const auto* row = static_cast<const T*>(x);
    for (; count > 0; --count, row += stride, to += step)
      *to = combine<kKind>(*to, static_cast<Partial>(steps.row(row, n)));
  }
  void columns(const void* x, std::int64_t count, std::int64_t stride, std::int64_t rows,
               std::int64_t row_stride, std::int64_t columns, void* near,
               std::int64_t step) const override {
    static const ReduceSteps<T, C> steps = reduce_steps<kKind, T, C>();
    auto* to = static_cast<C*>(near);
    const auto* matrix = static_cast<const T*>(x);
    for (; count > 0; --count, matrix += stride, to += step)
      steps.columns(matrix, rows, row_stride, columns, to);
  }
};

/// Reduces elements T, computing in C, into outputs O = finish(partial result).
template <Reduction kKind, class T, class C, class O, class Finish>
void run_reduction(IntraOpPool& pool, const ReducePlan& plan, const T* x, O* out, Finish finish) {
  class Loops final : public ElementLoops<kKind, T, C> {
   public:
    Loops(O* out, Finish finish) : out_(out), finish_(finish) {}
    void store(const void* partial, std::int64_t first, std::int64_t n) const override {
      const auto* from = static_cast<const typename Loops::Partial*>(partial);
      for (std::int64_t j = 0; j < n; ++j) out_[first + j] = finish_(from[j]);
    }

   private:
    O* out_;
    Finish finish_;
  };
  reduce(pool, plan, x, Loops(out, finish));
}

}  // namespace tandem::cpu
