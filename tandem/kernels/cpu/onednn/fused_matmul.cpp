#include "tandem/kernels/cpu/onednn/fused_matmul.h"

#include <algorithm>
#include <bit>

#include "tandem/core/error.h"
#include "tandem/core/program_end.h"
#include "tandem/kernels/cpu/onednn/call.h"
#include "tandem/kernels/cpu/onednn/packed_weights.h"
#include "tandem/kernels/cpu/onednn/post_ops.h"
#include "tandem/kernels/cpu/support/thresholds.h"

namespace tandem::cpu::onednn {
namespace {

using dnnl::memory;

constexpr std::int64_t kKind = 30, kPack = 31;

// The part of a product that one call makes: some rows or some columns of the whole.
struct Part {
  const FusedMatMul* whole;
  std::int64_t rows, columns;
  bool packed;  // b in the order that the library likes best

  Key key(std::int64_t kind) const {
    const FusedMatMul& w = *whole;
    return Key{kind,
               rows,
               columns,
               w.m,
               w.n,
               w.k,
               (w.transpose_a ? 1 : 0) | (w.transpose_b ? 2 : 0) | (packed ? 4 : 0),
               epilogue_kind(w.epilogue),
               bits_of(w.epilogue.alpha)};
  }
  // These columns of b as they lie in the whole of it.
  memory::desc plain_b() const {
    return {{whole->k, columns},
            memory::data_type::f32,
            whole->transpose_b ? memory::dims{1, whole->k} : memory::dims{whole->n, 1}};
  }
};

Plan make(const void* what) {
  const Part& p = *static_cast<const Part*>(what);
  const FusedMatMul& w = *p.whole;
  constexpr auto kFloat = memory::data_type::f32;
  const memory::desc a({p.rows, w.k}, kFloat,
                       w.transpose_a ? memory::dims{1, w.m} : memory::dims{w.k, 1});
  const memory::desc b =
      p.packed ? memory::desc({w.k, p.columns}, kFloat, memory::format_tag::any) : p.plain_b();
  const memory::desc bias = w.epilogue.bias
                                ? memory::desc({1, p.columns}, kFloat, memory::dims{p.columns, 1})
                                : memory::desc();
  const memory::desc c({p.rows, p.columns}, kFloat, memory::dims{w.n, 1});
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

constexpr std::int64_t kColumns = 64;  // parts of columns are multiples of it

// Into how many parts a product is cut: of rows, where there are more of them than columns, else of
// columns. So no thread reads more of the longer operand than it must.
struct Cut {
  bool rows = false;
  std::int64_t parts = 1;
};

Cut cut(const KernelContext& context, const FusedMatMul& w, bool packed) {
  constexpr double kRead = 3;  // bringing b in takes as long as so many rows
  const double work =
      (static_cast<double>(w.m) + kRead) * static_cast<double>(w.n) * static_cast<double>(w.k);
  Cut cut;
  cut.rows = w.m > w.n;
  const std::int64_t most = cut.rows ? w.m : (w.n + kColumns - 1) / kColumns;
  const double wanted = work / (context.deterministic() ? tuning::kFixedMatMulMultiplications
                                                        : tuning::kThreadMultiplications);
  const std::int64_t limit = std::min<std::int64_t>(
      most, context.deterministic() ? tuning::kMaxFixedMatMulParts : context.intra_op().threads());
  cut.parts = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::min(wanted, 1e6)), 1, limit);
  // Each number of parts asks for packed weights of its own: few numbers, for any batch.
  if (!cut.rows && packed && cut.parts < limit)
    cut.parts = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(cut.parts)));
  return cut;
}

// Where part i of `parts` of [0, count) begins; a multiple of `unit`.
std::int64_t border(std::int64_t i, std::int64_t parts, std::int64_t count, std::int64_t unit) {
  const std::int64_t units = (count + unit - 1) / unit;
  return std::min(count, units * i / parts * unit);
}

}  // namespace

void fused_matmul(KernelContext& context, const FusedMatMul& w, const float* a, const Array& b,
                  float* c) {
  PackedWeights* const kept = packed_weights(b);
  const float* const plain = (kept ? kept->plain() : b).data<float>();
  const float* const bias = w.epilogue.bias ? w.epilogue.bias->data<float>() : nullptr;
  const Cut grid = cut(context, w, kept != nullptr);
  const auto run = [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t unit = grid.rows ? 1 : kColumns, count = grid.rows ? w.m : w.n;
      const std::int64_t begin = border(i, grid.parts, count, unit);
      const std::int64_t size = border(i + 1, grid.parts, count, unit) - begin;
      const std::int64_t row = grid.rows ? begin : 0, column = grid.rows ? 0 : begin;
      const Part part{&w, grid.rows ? size : w.m, grid.rows ? w.n : size, kept != nullptr};
      Call& call = find_call(part.key(kKind), make, &part);
      if (!call.possible()) {
        stop_at_program_end();
        throw UnimplementedError("oneDNN has no such product of matrices.");
      }
      const float* const rows = a + row * (w.transpose_a ? 1 : w.k);
      const void* weights = plain + column * (w.transpose_b ? w.k : 1);
      Array mine;
      if (const memory::desc& wanted = call.plan().arguments[1].desc;
          kept && !(wanted == part.plain_b())) {
        const auto pack = [&](const void*, void* to) {
          const Reorder order{part.plain_b(), wanted};
          Call& packing = find_call(part.key(kPack), make_reorder, &order);
          if (!packing.possible()) stop_at_program_end();
          packing.run({weights, to});
        };
        const void* packed = kept->in_order(wanted, column, pack);
        if (!packed) {
          mine = context.allocate_temp(DType::kUint8,
                                       Shape{static_cast<std::int64_t>(wanted.get_size())});
          pack(nullptr, mine.raw_data());
          packed = mine.raw_data();
        }
        weights = packed;
      }
      float* const to = c + row * w.n + column;
      if (bias) {
        call.run({rows, weights, to, bias + column});
      } else {
        call.run({rows, weights, to});
      }
    }
  };
  if (grid.parts == 1) {
    run(0, 1);
  } else {
    context.intra_op().for_each_piece(grid.parts, run);
  }
}

}  // namespace tandem::cpu::onednn
