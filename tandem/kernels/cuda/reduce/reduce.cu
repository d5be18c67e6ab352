// Reductions over any axes. Each result is summed in an order that depends on the sizes alone, so
// results are the same in every run.

#include "tandem/kernels/cuda/reduce/axes.h"
#include "tandem/kernels/cuda/support/launch_part.h"
#include "tandem/kernels/cuda/support/types.h"
#include "tandem/kernels/cuda/support/warp.h"

namespace tandem::cuda {
namespace {

// How elements of T are taken, joined and made a result. `State` is what is joined.

template <class T>
struct SumOf {
  using State = Sum<T>;
  TANDEM_HOST_DEVICE static State none() { return State(0); }
  TANDEM_DEVICE static State take(T x) { return static_cast<State>(load(x)); }
  TANDEM_DEVICE static State join(State a, State b) { return a + b; }
  TANDEM_DEVICE static T finish(State s, std::int64_t) { return store<T>(s); }
};
template <class T>
struct MeanOf : SumOf<T> {
  TANDEM_DEVICE static T finish(Sum<T> s, std::int64_t n) {
    return store<T>(s / static_cast<Sum<T>>(n));
  }
};
template <class T>
struct ProdOf : SumOf<T> {
  TANDEM_HOST_DEVICE static Sum<T> none() { return Sum<T>(1); }
  TANDEM_DEVICE static Sum<T> join(Sum<T> a, Sum<T> b) { return a * b; }
};
template <class T>
struct NormOf : SumOf<T> {
  TANDEM_DEVICE static Sum<T> take(T x) { return load(x) * load(x); }
  TANDEM_DEVICE static T finish(Sum<T> s, std::int64_t) { return store<T>(std::sqrt(s)); }
};
template <class T>
struct HalfSquaresOf : NormOf<T> {
  TANDEM_DEVICE static T finish(Sum<T> s, std::int64_t) { return store<T>(s / Sum<T>(2)); }
};
// A NaN stays one.
template <class T>
struct MaxOf {
  using State = Compute<T>;
  TANDEM_HOST_DEVICE static State none() {
    if constexpr (kIsFloating<T>) {
      return -std::numeric_limits<State>::infinity();
    } else {
      return std::numeric_limits<State>::lowest();
    }
  }
  TANDEM_DEVICE static State take(T x) { return load(x); }
  TANDEM_DEVICE static State join(State a, State b) {
    return a != a ? a : (b != b ? b : (a < b ? b : a));
  }
  TANDEM_DEVICE static T finish(State s, std::int64_t) { return store<T>(s); }
};
template <class T>
struct MinOf : MaxOf<T> {
  using State = Compute<T>;
  TANDEM_HOST_DEVICE static State none() {
    if constexpr (kIsFloating<T>) {
      return std::numeric_limits<State>::infinity();
    } else {
      return std::numeric_limits<State>::max();
    }
  }
  TANDEM_DEVICE static State join(State a, State b) {
    return a != a ? a : (b != b ? b : (b < a ? b : a));
  }
};
struct AllOf {
  using State = int;
  TANDEM_HOST_DEVICE static int none() { return 1; }
  TANDEM_DEVICE static int take(bool x) { return x ? 1 : 0; }
  TANDEM_DEVICE static int join(int a, int b) { return a & b; }
  TANDEM_DEVICE static bool finish(int s, std::int64_t) { return s != 0; }
};
struct AnyOf : AllOf {
  TANDEM_HOST_DEVICE static int none() { return 0; }
  TANDEM_DEVICE static int join(int a, int b) { return a | b; }
};

template <class T>
struct Reduction {
  const T* x;
  T* y;
  std::int64_t results, elements;
  Strides<1> kept, reduced;
};

// A block for each result.
template <class Op, class T>
struct ReduceRows {
  static constexpr bool kJoins = kIsOfManySmall<T>;
  using Part = Reduction<T>;
  using Common = NothingInCommon;
  TANDEM_DEVICE static void run(const Part& part, const Common&, PartBlocks blocks) {
    using State = typename Op::State;
    const T* const x = part.x;
    T* const y = part.y;
    const std::int64_t results = part.results, elements = part.elements;
    for (std::int64_t r = blocks.block; r < results; r += blocks.count) {
      std::int64_t base[1], at[1];
      part.kept.offsets(r, base);
      State sum = Op::none();
      for (std::int64_t i = threadIdx.x; i < elements; i += blockDim.x) {
        part.reduced.offsets(i, at);
        sum = Op::join(sum, Op::take(x[base[0] + at[0]]));
      }
      sum = block_reduce(sum, Op::none(), [](State a, State b) { return Op::join(a, b); });
      if (threadIdx.x == 0) y[r] = Op::finish(sum, elements);
      __syncthreads();
    }
  }
};

// A thread for each result: where neighbouring results lie side by side and there are many.
template <class Op, class T>
struct ReduceColumns {
  static constexpr bool kJoins = kIsOfManySmall<T>;
  using Part = Reduction<T>;
  using Common = NothingInCommon;
  TANDEM_DEVICE static void run(const Part& part, const Common&, PartBlocks blocks) {
    using State = typename Op::State;
    const T* const x = part.x;
    T* const y = part.y;
    const std::int64_t results = part.results, elements = part.elements;
    for (auto r = blocks.first<std::int64_t>(); r < results; r += blocks.step<std::int64_t>()) {
      std::int64_t base[1], at[1];
      part.kept.offsets(r, base);
      State sum = Op::none();
      for (std::int64_t i = 0; i < elements; ++i) {
        part.reduced.offsets(i, at);
        sum = Op::join(sum, Op::take(x[base[0] + at[0]]));
      }
      y[r] = Op::finish(sum, elements);
    }
  }
};

template <class Op, class T>
void reduce_into(const TensorView& x, const TensorView& y, const ReductionAxes& axes) {
  if (axes.results == 0) return;
  const Reduction<T> part{x.as<T>(),     y.as<T>(), axes.results,
                          axes.elements, axes.kept, axes.reduced};
  const MemoryUse uses[] = {reads(x.as<T>(), x.count), writes(y.as<T>(), y.count)};
  const bool side_by_side =
      axes.kept.rank > 0 && axes.kept.strides[0][axes.kept.rank - 1] == 1 && axes.results > 4096;
  if (side_by_side || axes.elements < 32) {
    launch_part<ReduceColumns<Op, T>>("reduce_columns<Op, T>", shape_for(axes.results), part, {},
                                      uses);
  } else {
    launch_part<ReduceRows<Op, T>>("reduce_rows<Op, T>", rows_shape(axes.results, default_block()),
                                   part, {}, uses);
  }
}

template <class Op, class T>
void reduce(KernelCall& call) {
  const TensorView x = call.input(0);
  const ReductionAxes axes =
      reduction_axes(x.sizes, call.input(1).host_integers(), call.attr_bool("keep_dims"));
  reduce_into<Op, T>(x, call.allocate_output(0, axes.output), axes);
}

template <template <class> class Op>
void reduce_floating(KernelCall& call) {
  const Type type = call.input(0).type;
  if (!visit_floating(type, [&](auto tag) {
        using T = typename decltype(tag)::type;
        reduce<Op<T>, T>(call);
      })) {
    no_kernel_for(type);
  }
}
template <template <class> class Op>
void reduce_numbers(KernelCall& call) {
  const Type type = call.input(0).type;
  if (!visit_numbers(type, [&](auto tag) {
        using T = typename decltype(tag)::type;
        reduce<Op<T>, T>(call);
      })) {
    no_kernel_for(type);
  }
}

}  // namespace

void reduce_sum(KernelCall& call) { reduce_numbers<SumOf>(call); }
void reduce_mean(KernelCall& call) { reduce_floating<MeanOf>(call); }
void reduce_prod(KernelCall& call) { reduce_floating<ProdOf>(call); }
void reduce_max(KernelCall& call) { reduce_numbers<MaxOf>(call); }
void reduce_min(KernelCall& call) { reduce_numbers<MinOf>(call); }
void reduce_euclidean_norm(KernelCall& call) { reduce_floating<NormOf>(call); }
void reduce_all(KernelCall& call) { reduce<AllOf, bool>(call); }
void reduce_any(KernelCall& call) { reduce<AnyOf, bool>(call); }

void reduce_l2_loss(KernelCall& call) {
  const TensorView x = call.input(0), y = call.allocate_output(0, {});
  Sizes all;
  for (int i = 0; i < x.rank(); ++i) all.push_back(i);
  const ReductionAxes axes = reduction_axes(x.sizes, all, false);
  visit_floating(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    reduce_into<HalfSquaresOf<T>, T>(x, y, axes);
  });
}

void reduce_bias_grad(KernelCall& call) {
  const TensorView x = call.input(0);
  const std::string format = call.attr_string("data_format");
  if (x.rank() < 2) refuse("Input tensor must be at least 2D");
  const std::int64_t channels = format.rfind("NC", 0) == 0 ? 1 : x.rank() - 1;
  Sizes others;
  for (std::int64_t i = 0; i < x.rank(); ++i) {
    if (i != channels) others.push_back(i);
  }
  const ReductionAxes axes = reduction_axes(x.sizes, others, false);
  const TensorView y = call.allocate_output(0, axes.output);
  visit_floating(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    reduce_into<SumOf<T>, T>(x, y, axes);
  });
}

}  // namespace tandem::cuda
