#include "tandem/kernels/cpu/onednn/fused_matmul.h"

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/kernels/cpu/onednn/call.h"
#include "tandem/kernels/cpu/onednn/packed_weights.h"
#include "tandem/kernels/cpu/onednn/post_ops.h"

namespace tandem::cpu::onednn {
namespace {

using dnnl::memory;

constexpr std::int64_t kKind = 30, kPack = 31;

// The part of a product that one call makes: some rows of the whole.
struct Part {
  const FusedMatMul* whole;
  std::int64_t rows;
  bool packed;  // b in the order that the library likes best

  Key key(std::int64_t kind) const {
    const FusedMatMul& w = *whole;
    return Key{kind,
               rows,
               w.m,
               w.n,
               w.k,
               (w.transpose_a ? 1 : 0) | (w.transpose_b ? 2 : 0) | (packed ? 4 : 0),
               epilogue_kind(w.epilogue),
               bits_of(w.epilogue.alpha)};
  }
};

memory::desc plain_b(const FusedMatMul& w) {
  return {{w.k, w.n},
          memory::data_type::f32,
          w.transpose_b ? memory::dims{1, w.k} : memory::dims{w.n, 1}};
}

Plan make(const void* what) {
  const Part& p = *static_cast<const Part*>(what);
  const FusedMatMul& w = *p.whole;
  constexpr auto kFloat = memory::data_type::f32;
  const memory::desc a({p.rows, w.k}, kFloat,
                       w.transpose_a ? memory::dims{1, w.m} : memory::dims{w.k, 1});
  const memory::desc b =
      p.packed ? memory::desc({w.k, w.n}, kFloat, memory::format_tag::any) : plain_b(w);
  const memory::desc bias =
      w.epilogue.bias ? memory::desc({1, w.n}, kFloat, memory::dims{w.n, 1}) : memory::desc();
  const memory::desc c({p.rows, w.n}, kFloat, memory::dims{w.n, 1});
  const dnnl::primitive_attr attr = epilogue_attr(w.epilogue);
#if DNNL_VERSION_MAJOR >= 3
  const dnnl::matmul::primitive_desc desc(engine(), a, b, bias, c, attr);
#else
  const dnnl::matmul::primitive_desc desc(dnnl::matmul::desc(a, b, bias, c), attr, engine());
#endif
  std::vector<Plan::Argument> arguments{
      {DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, desc.weights_desc()}, {DNNL_ARG_DST, c}};
  if (w.epilogue.bias) arguments.push_back({DNNL_ARG_BIAS, bias});
  return Plan(desc, dnnl::matmul(desc), std::move(arguments));
}

struct Reorder {
  memory::desc from, to;
};

Plan make_reorder(const void* what) {
  const Reorder& r = *static_cast<const Reorder*>(what);
  const dnnl::reorder::primitive_desc desc(engine(), r.from, engine(), r.to, user_scratch());
  return Plan(desc, dnnl::reorder(desc), {{DNNL_ARG_FROM, r.from}, {DNNL_ARG_TO, r.to}});
}

}  // namespace

void fused_matmul(KernelContext& context, const FusedMatMul& w, const float* a, const Array& b,
                  float* c) {
  constexpr double kPiece = 1e6;  // multiplications that are worth another thread
  const double work = static_cast<double>(w.m * w.n) * static_cast<double>(w.k);
  PackedWeights* const kept = packed_weights(b);
  const float* bias = w.epilogue.bias ? w.epilogue.bias->data<float>() : nullptr;
  // Each row's sums are the same whoever makes it, so the number of parts changes no bits.
  const std::int64_t parts =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(work / kPiece), 1,
                               std::min<std::int64_t>(context.intra_op().threads(), w.m));
  const auto run = [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t begin = w.m * i / parts;
      const Part part{&w, w.m * (i + 1) / parts - begin, kept != nullptr};
      Call& call = find_call(part.key(kKind), make, &part);
      if (!call.possible()) throw UnimplementedError("oneDNN has no such product of matrices.");
      const float* rows = a + begin * (w.transpose_a ? 1 : w.k);
      const void* weights = nullptr;
      if (const memory::desc& wanted = call.plan().arguments[1].desc;
          kept && !(wanted == plain_b(w))) {
        weights = kept->in_order(wanted, [&](const void* from, void* to) {
          const Reorder order{plain_b(w), wanted};
          find_call(part.key(kPack), make_reorder, &order).run({from, to});
        });
      } else {
        weights = kept ? kept->plain().raw_data() : b.raw_data();
      }
      if (bias) {
        call.run({rows, weights, c + begin * w.n, bias});
      } else {
        call.run({rows, weights, c + begin * w.n});
      }
    }
  };
  if (parts == 1) {
    run(0, 1);
  } else {
    context.intra_op().for_each_piece(parts, run);
  }
}

}  // namespace tandem::cpu::onednn
