#include "tandem/kernels/cpu/onednn/fused_matmul.h"

#include <algorithm>
#include <cstring>

#include "tandem/core/error.h"
#include "tandem/kernels/cpu/onednn/call.h"

namespace tandem::cpu::onednn {
namespace {

using dnnl::memory;

constexpr std::int64_t kKind = 30;

// The part of a product that one call makes: some rows of the whole.
struct Part {
  FusedMatMul whole;
  std::int64_t rows;
};

void append_activation(dnnl::post_ops& ops, Activation activation, float alpha) {
  const auto append = [&](dnnl::algorithm algorithm, float a, float b) {
#if DNNL_VERSION_MAJOR >= 3
    ops.append_eltwise(algorithm, a, b);
#else
    ops.append_eltwise(1.0f, algorithm, a, b);
#endif
  };
  switch (activation) {
    case Activation::kNone: return;
    case Activation::kRelu: return append(dnnl::algorithm::eltwise_relu, 0, 0);
    case Activation::kRelu6: return append(dnnl::algorithm::eltwise_clip, 0, 6);
    case Activation::kElu: return append(dnnl::algorithm::eltwise_elu, 1, 0);
    case Activation::kLeakyRelu: return append(dnnl::algorithm::eltwise_relu, alpha, 0);
    case Activation::kTanh: return append(dnnl::algorithm::eltwise_tanh, 0, 0);
    case Activation::kSigmoid: return append(dnnl::algorithm::eltwise_logistic, 0, 0);
  }
}

Plan make(const void* what) {
  const Part& p = *static_cast<const Part*>(what);
  const FusedMatMul& w = p.whole;
  constexpr auto kFloat = memory::data_type::f32;
  const memory::desc a({p.rows, w.k}, kFloat,
                       w.transpose_a ? memory::dims{1, w.m} : memory::dims{w.k, 1});
  const memory::desc b({w.k, w.n}, kFloat,
                       w.transpose_b ? memory::dims{1, w.k} : memory::dims{w.n, 1});
  const memory::desc bias({1, w.n}, kFloat, memory::dims{w.n, 1});
  const memory::desc c({p.rows, w.n}, kFloat, memory::dims{w.n, 1});
  dnnl::post_ops ops;
  if (w.adds) ops.append_sum(1.0f);
  append_activation(ops, w.activation, w.alpha);
  dnnl::primitive_attr attr = user_scratch();
  attr.set_post_ops(ops);
#if DNNL_VERSION_MAJOR >= 3
  const dnnl::matmul::primitive_desc desc(engine(), a, b, bias, c, attr);
#else
  const dnnl::matmul::primitive_desc desc(dnnl::matmul::desc(a, b, bias, c), attr, engine());
#endif
  return Plan(desc, dnnl::matmul(desc),
              {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_BIAS, bias}, {DNNL_ARG_DST, c}});
}

std::int64_t bits_of(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

}  // namespace

void fused_matmul(KernelContext& context, const FusedMatMul& w, const float* a, const float* b,
                  const float* bias, float* c) {
  constexpr double kPiece = 1e6;  // multiplications that are worth another thread
  const double work = static_cast<double>(w.m * w.n) * static_cast<double>(w.k);
  // Each row's sums are the same whoever makes it, so the number of parts changes no bits.
  const std::int64_t parts =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(work / kPiece), 1,
                               std::min<std::int64_t>(context.intra_op().threads(), w.m));
  const auto run = [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t begin = w.m * i / parts;
      const Part part{w, w.m * (i + 1) / parts - begin};
      const Key key{kKind,
                    part.rows,
                    w.m,
                    w.n,
                    w.k,
                    (w.transpose_a ? 1 : 0) | (w.transpose_b ? 2 : 0) | (w.adds ? 4 : 0),
                    static_cast<std::int64_t>(w.activation),
                    bits_of(w.alpha)};
      Call& call = find_call(key, make, &part);
      if (!call.possible()) throw UnimplementedError("oneDNN has no such product of matrices.");
      call.run({a + begin * (w.transpose_a ? 1 : w.k), b, bias, c + begin * w.n});
    }
  };
  if (parts == 1) {
    run(0, 1);
  } else {
    context.intra_op().for_each_piece(parts, run);
  }
}

}  // namespace tandem::cpu::onednn
