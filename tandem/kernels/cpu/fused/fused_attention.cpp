// _FusedAttention: softmax(query · keyᵀ …) · value, a block of queries after the other, whose
// scores stay in the cache and never are in memory as a whole.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/internal/attention_axes.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/array/transpose_block.h"
#include "tandem/kernels/cpu/elementwise/in_float.h"
#include "tandem/kernels/cpu/fused/attention_steps.h"
#include "tandem/kernels/cpu/linalg/strided_product.h"
#include "tandem/kernels/cpu/support/scratch.h"

namespace tandem::cpu {
namespace {

// Floats of scores at once: they take a part of a core's own cache beside keys and values.
constexpr std::int64_t kMaxScores = std::int64_t{1} << 15;
// But no fewer queries than these, for which keys and values come from farther away, as long as a
// thread keeps the memory.
constexpr std::int64_t kMinRows = 64;
constexpr std::int64_t kMaxKept = std::int64_t{1} << 18;
// Queries, in several blocks, for which keys are turned, and values gathered, once.
constexpr std::int64_t kChunk = 256;
// Keys that are neighbours once they are turned.
constexpr std::int64_t kPanel = 64;

// How queries are cut, by sizes alone: on the number of threads bits do not depend.
struct Cut {
  std::int64_t rows;   // of a block
  std::int64_t chunk;  // what a thread takes: so many queries
  bool all_keys;       // are transposed for a chunk, not for each block
  bool all_values;     // are gathered for a chunk; far apart they would share few places of a cache

  // `apart`: values that lie apart.
  Cut(std::int64_t queries, std::int64_t keys, std::int64_t inner, bool turns, std::int64_t values,
      bool apart) {
    rows = std::max(kMaxScores / keys, std::min(kMinRows, kMaxKept / keys));
    rows = std::clamp<std::int64_t>(rows, 1, queries);
    all_keys = turns && inner <= kMaxKept / keys;
    const std::int64_t blocks = all_keys ? std::max<std::int64_t>(1, kChunk / rows) : 1;
    chunk = std::min(queries, blocks * rows);
    all_values = apart && values <= kMaxKept / keys && chunk > rows;
  }
};

// The products of one matrix of queries with keys, and of their probabilities with values.
struct Products {
  const AttentionStrides q, k, v, o;
  const bool key_rows, value_rows;  // whose elements are neighbours, not those of columns
  const std::int64_t S, D, E;

  // Floats that turned keys take, and all that is turned.
  std::int64_t turned_keys(bool all_keys) const {
    return key_rows ? D * (all_keys ? S : std::min(S, kPanel)) : 0;
  }
  std::int64_t turned(bool all_keys) const {
    return turned_keys(all_keys) + (value_rows ? 0 : kPanel * std::min(E, kPanel));
  }

  void turn_keys(const float* key, float* turned) const {
    for (std::int64_t s = 0; s < S; s += kPanel)
      turn(key + s * k.s, k.s, D, std::min(kPanel, S - s), turned + s * D);
  }

  // Keys are all turned, or a panel after the other is.
  void scores(const float* query, const float* key, std::int64_t m, bool all_keys, float* turned,
              float* x) const {
    StridedProduct p{.m = m, .k = D, .a = query, .a_row = q.t, .a_column = q.d, .c_row = S};
    for (std::int64_t s = 0; s < S; s += kPanel) {
      p.n = std::min(kPanel, S - s);
      if (key_rows) {
        if (!all_keys) turn(key + s * k.s, k.s, D, p.n, turned);
        p.b = turned + (all_keys ? s * D : 0);
        p.b_row = p.n;
      } else {
        p.b = key + s * k.s;
        p.b_row = k.d;
      }
      p.c = x + s;
      multiply_strided(p);
    }
  }

  void gather_values(const float* value, float* gathered) const {
    for (std::int64_t s = 0; s < S; ++s) std::copy_n(value + s * v.s, E, gathered + s * E);
  }

  // Rows of values lie `step` apart.
  void values(const float* x, const float* value, std::int64_t step, std::int64_t m, float* panel,
              float* out) const {
    StridedProduct p{.m = m,
                     .n = E,
                     .k = S,
                     .a = x,
                     .a_row = S,
                     .b = value,
                     .b_row = step,
                     .c = out,
                     .c_row = o.t};
    if (value_rows) return multiply_strided(p);
    for (std::int64_t s = 0; s < S; s += kPanel) {
      p.k = std::min(kPanel, S - s);
      p.a = x + s;
      p.add = s > 0;
      for (std::int64_t e = 0; e < E; e += kPanel) {
        p.n = std::min(kPanel, E - e);
        turn(value + e * v.e + s, v.e, p.k, p.n, panel);
        p.b = panel;
        p.b_row = p.n;
        p.c = out + e;
        multiply_strided(p);
      }
    }
  }

  // to[r, c] = from[c, r]
  static void turn(const float* from, std::int64_t from_column, std::int64_t rows,
                   std::int64_t columns, float* to) {
    transpose_block(reinterpret_cast<std::uint32_t*>(to), columns,
                    reinterpret_cast<const std::uint32_t*>(from), from_column, rows, columns);
  }
};

// In float, from float operands.
void attend(KernelContext& c, const AttentionAxes& axes, const AttentionSizes& sizes,
            std::span<const Array> inputs, Array& out) {
  const Array &query = inputs[0], &key = inputs[1], &value = inputs[2];
  const std::vector<AttentionStep> steps =
      attention_steps(c.attr<std::vector<std::string>>("fused_ops"), c.attr<float>("scale"),
                      inputs.subspan(3), axes, sizes);
  if (out.num_elements() == 0) return;

  const std::int64_t B = sizes['B'], N = sizes['N'], T = sizes['T'], S = sizes['S'], D = sizes['D'],
                     E = sizes['E'];
  if (S == 0) {
    std::fill_n(out.data<float>(), out.num_elements(), 0.0f);
    return;
  }
  const auto steps_of = [&](AttentionAxes::Operand operand, const Array& a) {
    return AttentionStrides(axes.of[operand], a.shape());
  };
  const Products products{.q = steps_of(AttentionAxes::kQuery, query),
                          .k = steps_of(AttentionAxes::kKey, key),
                          .v = steps_of(AttentionAxes::kValue, value),
                          .o = steps_of(AttentionAxes::kOutput, out),
                          .key_rows = axes.of[AttentionAxes::kKey].back() == 'D',
                          .value_rows = axes.of[AttentionAxes::kValue].back() == 'E',
                          .S = S,
                          .D = D,
                          .E = E};
  const Cut cut(T, S, D, products.key_rows, E, products.value_rows && products.v.s != E);
  const std::int64_t chunks = (T + cut.chunk - 1) / cut.chunk;
  const double cost = static_cast<double>(cut.chunk * S) * (0.6 + static_cast<double>(D + E) / 40);
  c.intra_op().parallel_for(B * N * chunks, cost, [&](std::int64_t begin, std::int64_t end) {
    const Scratch scores(static_cast<std::size_t>(cut.rows * S) * sizeof(float));
    const Scratch turned(static_cast<std::size_t>(products.turned(cut.all_keys)) * sizeof(float));
    const Scratch gathered(static_cast<std::size_t>(cut.all_values ? S * E : 0) * sizeof(float));
    float* const x = scores.as<float>();
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = i % chunks * cut.chunk, n = i / chunks % N, b = i / chunks / N;
      const auto at = [&](const AttentionStrides& s, std::int64_t t) {
        return b * s.b + n * s.n + t * s.t;
      };
      const float* const keys = key.data<float>() + at(products.k, 0);
      if (cut.all_keys) products.turn_keys(keys, turned.as<float>());
      const float* values = value.data<float>() + at(products.v, 0);
      if (cut.all_values) {
        products.gather_values(values, gathered.as<float>());
        values = gathered.as<float>();
      }
      const std::int64_t last = std::min(T, first + cut.chunk);
      for (std::int64_t t = first; t < last; t += cut.rows) {
        const std::int64_t m = std::min(cut.rows, last - t);
        products.scores(query.data<float>() + at(products.q, t), keys, m, cut.all_keys,
                        turned.as<float>(), x);
        if (steps.size() == 1 && steps[0].is_softmax()) {
          steps[0].softmax(x, m, S);
        } else {
          for (std::int64_t row = 0; row < m; ++row)
            for (const AttentionStep& step : steps) step.run(x + row * S, S, b, n, t + row);
        }
        products.values(x, values, cut.all_values ? E : products.v.s, m,
                        turned.as<float>() + products.turned_keys(cut.all_keys),
                        out.data<float>() + at(products.o, t));
      }
    }
  });
}

AttentionSizes sizes_of(const KernelContext& c, const AttentionAxes& axes) {
  return {axes, PartialShape(c.input(0).shape()), PartialShape(c.input(1).shape()),
          PartialShape(c.input(2).shape())};
}

Shape output_shape(const AttentionAxes& axes, const AttentionSizes& sizes) {
  Shape shape;
  for (const char letter : axes.of[AttentionAxes::kOutput]) shape.add_dim(sizes[letter]);
  return shape;
}

void fused_attention(KernelContext& c) {
  const AttentionAxes axes = AttentionAxes::read(c.attr<std::vector<std::string>>("axes"));
  const AttentionSizes sizes = sizes_of(c, axes);
  std::vector<Array> inputs;
  for (int i = 0; i < c.num_inputs(); ++i) inputs.push_back(c.input(i));
  attend(c, axes, sizes, inputs, c.allocate_output(0, output_shape(axes, sizes)));
}

// Operands become floats, which are far fewer than the scores.
void fused_attention_float16(KernelContext& c) {
  const AttentionAxes axes = AttentionAxes::read(c.attr<std::vector<std::string>>("axes"));
  const AttentionSizes sizes = sizes_of(c, axes);
  std::vector<Array> inputs;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const Array& in = c.input(i);
    if (in.dtype() == DType::kBool) {
      inputs.push_back(in);
      continue;
    }
    inputs.push_back(c.allocate_temp(DType::kFloat, in.shape()));
    to_float(c.intra_op(), in.dtype(), in.raw_data(), inputs.back().data<float>(),
             in.num_elements());
  }
  Array& out = c.allocate_output(0, output_shape(axes, sizes));
  Array floats = c.allocate_temp(DType::kFloat, out.shape());
  attend(c, axes, sizes, inputs, floats);
  from_float(c.intra_op(), floats.data<float>(), out.dtype(), out.raw_data(), out.num_elements());
}

const KernelRegistration kFusedAttentionFloat16{{.op = "_FusedAttention",
                                                 .name = "blocks in float",
                                                 .types = {{"T", {DType::kHalf, DType::kBFloat16}}},
                                                 .run = fused_attention_float16}};
const KernelRegistration kFusedAttention{{.op = "_FusedAttention",
                                          .name = "blocks",
                                          .types = {{"T", {DType::kFloat}}},
                                          .run = fused_attention}};

}  // namespace
}  // namespace tandem::cpu
