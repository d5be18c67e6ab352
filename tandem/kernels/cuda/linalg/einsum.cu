// Einstein sums of one or two operands. Two operands are multiplied by cuBLASLt where they are a
// product of batches of matrices, else by tiles, like matrices, through walks over the axes that
// only one has, that both have, and that are summed over.

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tandem/kernels/cuda/array/copy.h"
#include "tandem/kernels/cuda/linalg/contraction_library.h"

namespace tandem::cuda {
namespace {

constexpr int kTile = 16;

struct Contraction {
  std::int64_t m = 1, n = 1, k = 1, batch = 1;
  Strides<2> rows;     // of the first operand and the result
  Strides<2> columns;  // of the second operand and the result
  Strides<2> summed;   // of both operands
  Strides<3> batches;  // of both operands and the result
};

// A block makes a tile of kTile x kTile results.
template <class T>
TANDEM_KERNEL contraction_kernel(const T* a, const T* b, T* y, Contraction p,
                                 std::int64_t row_tiles) {
  TANDEM_SHARED(Sum<T>, a_tile, kTile * kTile);
  TANDEM_SHARED(Sum<T>, b_tile, kTile * kTile);
  const int r = static_cast<int>(threadIdx.y), c = static_cast<int>(threadIdx.x);
  for (std::int64_t z = blockIdx.z; z < p.batch; z += gridDim.z) {
    std::int64_t base[3];
    p.batches.offsets(z, base);
    for (std::int64_t tile = blockIdx.y; tile < row_tiles; tile += gridDim.y) {
      const std::int64_t row = tile * kTile + r;
      const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kTile + c;
      std::int64_t of_row[2] = {0, 0}, of_column[2] = {0, 0}, at[2];
      if (row < p.m) p.rows.offsets(row, of_row);
      if (column < p.n) p.columns.offsets(column, of_column);
      Sum<T> sum = Sum<T>(0);
      for (std::int64_t first = 0; first < p.k; first += kTile) {
        Sum<T> from_a = Sum<T>(0), from_b = Sum<T>(0);
        if (row < p.m && first + c < p.k) {
          p.summed.offsets(first + c, at);
          from_a = static_cast<Sum<T>>(load(a[base[0] + of_row[0] + at[0]]));
        }
        if (column < p.n && first + r < p.k) {
          p.summed.offsets(first + r, at);
          from_b = static_cast<Sum<T>>(load(b[base[1] + of_column[0] + at[1]]));
        }
        a_tile[r * kTile + c] = from_a;
        b_tile[r * kTile + c] = from_b;
        __syncthreads();
        for (int i = 0; i < kTile; ++i) {
          sum += static_cast<Sum<T>>(a_tile[r * kTile + i]) *
                 static_cast<Sum<T>>(b_tile[i * kTile + c]);
        }
        __syncthreads();
      }
      if (row < p.m && column < p.n) y[base[2] + of_row[1] + of_column[1]] = store<T>(sum);
    }
  }
}

template <class T>
TANDEM_KERNEL sum_axes_kernel(const T* x, T* y, std::int64_t n, std::int64_t k, Strides<2> kept,
                              Strides<1> summed) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    std::int64_t base[2], at[1];
    kept.offsets(i, base);
    Sum<T> sum = Sum<T>(0);
    for (std::int64_t j = 0; j < k; ++j) {
      summed.offsets(j, at);
      sum += static_cast<Sum<T>>(load(x[base[0] + at[0]]));
    }
    y[base[1]] = store<T>(sum);
  }
}

// ---- The equation ----

constexpr int kEllipsis = 256;  // labels from here on are axes of ellipses

using Labels = std::vector<int>;

// An operand, or the result, by label: the stride of an axis whose label occurs twice is the sum of
// both.
struct Operand {
  Labels labels;
  std::map<int, std::int64_t> strides, sizes;
};

struct Equation {
  std::vector<std::string> inputs;
  std::string output;
};

Equation parse(const std::string& text) {
  const std::size_t arrow = text.find("->");
  if (arrow == std::string::npos || text.find("->", arrow + 2) != std::string::npos) {
    refuse("Expecting exactly one '->' in einsum equation: " + text);
  }
  Equation e;
  e.output = text.substr(arrow + 2);
  std::string rest = text.substr(0, arrow);
  for (std::size_t comma; (comma = rest.find(',')) != std::string::npos;) {
    e.inputs.push_back(rest.substr(0, comma));
    rest.erase(0, comma + 1);
  }
  e.inputs.push_back(rest);
  return e;
}

// The labels of a term, its ellipsis as so many axes, numbered such that the last ones agree.
Labels labels_of(const std::string& term, int ellipsis_axes, int all_ellipsis_axes) {
  Labels labels;
  bool seen = false;
  for (std::size_t i = 0; i < term.size(); ++i) {
    const char c = term[i];
    if (c == ' ') continue;
    if (c == '.') {
      if (seen || term.compare(i, 3, "...") != 0) refuse("Invalid ellipsis in equation");
      seen = true;
      i += 2;
      for (int k = 0; k < ellipsis_axes; ++k) {
        labels.push_back(kEllipsis + all_ellipsis_axes - ellipsis_axes + k);
      }
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      labels.push_back(c);
    } else {
      refuse(std::string("Invalid character '") + c + "' in equation");
    }
  }
  return labels;
}

int letters_in(const std::string& term) {
  return static_cast<int>(
      std::count_if(term.begin(), term.end(), [](char c) { return c != '.' && c != ' '; }));
}
bool has_ellipsis(const std::string& term) { return term.find("...") != std::string::npos; }

Operand operand_of(const Labels& labels, const Sizes& sizes) {
  if (labels.size() != sizes.size()) {
    refuse("Expected input to have rank " + std::to_string(labels.size()) + " but got " +
           std::to_string(sizes.size()));
  }
  Operand o;
  o.labels = labels;
  const Sizes strides = row_major_strides(sizes);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto [known, fresh] = o.sizes.emplace(labels[i], sizes[i]);
    if (!fresh && known->second != sizes[i]) {
      refuse("Expected the axes of one label to have equal sizes");
    }
    o.strides[labels[i]] += strides[i];
  }
  return o;
}

// What each label runs over; only axes of ellipses broadcast.
void add_sizes(std::map<int, std::int64_t>& all, const Operand& o) {
  for (const auto& [label, size] : o.sizes) {
    const auto [known, fresh] = all.emplace(label, size);
    if (fresh || known->second == size) continue;
    if (label < kEllipsis || (known->second != 1 && size != 1)) {
      refuse("Operands disagree on the size of a label");
    }
    if (known->second == 1) known->second = size;
  }
}

// The step of an operand for a label; 0 where it lacks it, or is broadcast.
std::int64_t step(const Operand& o, int label) {
  const auto size = o.sizes.find(label);
  return size == o.sizes.end() || size->second == 1 ? 0 : o.strides.at(label);
}

// A walk over labels for N operands, whose neighbouring axes are joined where all allow it.
template <int N>
Strides<N> walk_labels(const Labels& labels, const std::map<int, std::int64_t>& sizes,
                       const std::array<const Operand*, N>& operands) {
  Strides<N> made;
  for (const int label : labels) {
    const std::int64_t size = sizes.at(label);
    if (size == 1) continue;
    std::int64_t steps[N];
    bool joins = made.rank > 0;
    for (int k = 0; k < N; ++k) {
      steps[k] = step(*operands[static_cast<std::size_t>(k)], label);
      joins = joins && made.strides[k][made.rank - 1] == steps[k] * size;
    }
    if (!joins) {
      if (made.rank == kMaxAxes) not_on_gpu("an equation of so many separate axes");
      made.sizes[made.rank++] = 1;
    }
    made.sizes[made.rank - 1] *= size;
    for (int k = 0; k < N; ++k) made.strides[k][made.rank - 1] = steps[k];
  }
  return made;
}

bool has(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}
std::int64_t count(const Labels& labels, const std::map<int, std::int64_t>& sizes) {
  std::int64_t n = 1;
  for (const int label : labels) n *= sizes.at(label);
  return n;
}
// Each label once, in the order of the operands.
Labels distinct(const std::vector<const Operand*>& operands) {
  Labels all;
  for (const Operand* o : operands) {
    for (const int label : o->labels) {
      if (!has(all, label)) all.push_back(label);
    }
  }
  return all;
}

// Labels in the order of the operand, each once.
contraction::Axes axes_of(const Operand& o) {
  contraction::Axes axes;
  for (const int label : distinct({&o}))
    axes.push_back({label, o.sizes.at(label), o.strides.at(label)});
  return axes;
}

}  // namespace

void linalg_einsum(KernelCall& call) {
  const Equation e = parse(call.attr_string("equation"));
  const int n = call.num_inputs();
  if (n > 2) refuse("Expected at most 2 inputs to einsum");
  if (static_cast<int>(e.inputs.size()) != n) {
    refuse("Expected " + std::to_string(e.inputs.size()) + " inputs for the equation but got " +
           std::to_string(n));
  }
  std::vector<int> ellipses;
  for (int i = 0; i < n; ++i) {
    const std::string& term = e.inputs[static_cast<std::size_t>(i)];
    const int left = call.input(i).rank() - letters_in(term);
    if (has_ellipsis(term) && left < 0) refuse("an input has fewer axes than the equation");
    ellipses.push_back(has_ellipsis(term) ? left : 0);
  }
  const int all_axes = *std::max_element(ellipses.begin(), ellipses.end());
  std::vector<Operand> operands;
  std::map<int, std::int64_t> sizes;
  for (int i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    operands.push_back(
        operand_of(labels_of(e.inputs[at], ellipses[at], all_axes), call.input(i).sizes));
    add_sizes(sizes, operands.back());
  }
  const Labels output = labels_of(e.output, all_axes, all_axes);
  Sizes output_sizes;
  for (const int label : output) {
    if (!sizes.count(label)) refuse("a label of the output is in no input");
    output_sizes.push_back(sizes.at(label));
  }
  const Operand y = operand_of(output, output_sizes);
  const TensorView to = call.allocate_output(0, output_sizes);
  if (to.count == 0) return;
  const Labels results = distinct({&y});
  // What a repeated label leaves out is zero.
  if (results.size() != output.size()) fill_zeros(to);
  Labels summed;
  for (const int label : distinct(n == 2 ? std::vector<const Operand*>{&operands[0], &operands[1]}
                                         : std::vector<const Operand*>{&operands[0]})) {
    if (!has(output, label)) summed.push_back(label);
  }
  const std::int64_t k = count(summed, sizes);
  const Operand& a = operands[0];
  if (n == 1) {
    const std::int64_t m = count(results, sizes);
    if (!visit_numbers(to.type, [&](auto tag) {
          using T = typename decltype(tag)::type;
          TANDEM_LAUNCH(sum_axes_kernel<T>, shape_for(m), 0, call.input(0).as<T>(), to.as<T>(), m,
                        k, walk_labels<2>(results, sizes, {&a, &y}),
                        walk_labels<1>(summed, sizes, {&a}));
        })) {
      no_kernel_for(to.type);
    }
    return;
  }
  const Operand& b = operands[1];
  if (is_floating(to.type) && results.size() == output.size() && k != 0 &&
      contract_by_library(call, to.type, {call.input(0).data, axes_of(a)},
                          {call.input(1).data, axes_of(b)}, to.data, axes_of(y)))
    return;
  Labels rows, columns, batches;
  for (const int label : results) {
    const bool in_a = step(a, label) != 0, in_b = step(b, label) != 0;
    (in_a && in_b ? batches : in_b ? columns : rows).push_back(label);
  }
  Contraction p;
  p.m = count(rows, sizes);
  p.n = count(columns, sizes);
  p.k = k;
  p.batch = count(batches, sizes);
  p.rows = walk_labels<2>(rows, sizes, {&a, &y});
  p.columns = walk_labels<2>(columns, sizes, {&b, &y});
  p.summed = walk_labels<2>(summed, sizes, {&a, &b});
  p.batches = walk_labels<3>(batches, sizes, {&a, &b, &y});
  const std::int64_t row_tiles = (p.m + kTile - 1) / kTile;
  Shape shape;
  shape.grid.x = static_cast<unsigned>((p.n + kTile - 1) / kTile);
  shape.grid.y = static_cast<unsigned>(std::min<std::int64_t>(row_tiles, 65535));
  shape.grid.z = static_cast<unsigned>(std::min<std::int64_t>(p.batch, 65535));
  shape.block.x = kTile;
  shape.block.y = kTile;
  if (!visit_numbers(to.type, [&](auto tag) {
        using T = typename decltype(tag)::type;
        TANDEM_LAUNCH(contraction_kernel<T>, shape, 0, call.input(0).as<T>(), call.input(1).as<T>(),
                      to.as<T>(), p, row_tiles);
      })) {
    no_kernel_for(to.type);
  }
}

}  // namespace tandem::cuda
