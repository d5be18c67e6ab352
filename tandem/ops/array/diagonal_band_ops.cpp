#include "tandem/ops/diagonal_band_ops.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/internal/sizes.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::kUnknown;
using internal::op1;

struct Band {
  std::int64_t lower, upper;
  std::int64_t count() const { return upper - lower + 1; }
};

// The diagonals that input `k` names, if it is known.
std::optional<Band> band_input(const InferenceContext& c, int k) {
  if (c.input(k).has_rank() && c.input(k).rank() > 1) {
    c.fail(cat("diag_index must be a scalar or vector, received shape: ", c.input(k)));
  }
  const auto ints = c.input_ints(k);
  if (!ints) return std::nullopt;
  if (ints->empty() || ints->size() > 2) {
    c.fail(cat("diag_index must have one or two elements, received ", ints->size(), "."));
  }
  const Band band{ints->front(), ints->back()};
  if (band.lower > band.upper) c.fail("lower_diag_index is greater than upper_diag_index");
  return band;
}

void check_inside(const InferenceContext& c, const Band& band, std::int64_t rows,
                  std::int64_t columns) {
  for (const std::int64_t d : {band.lower, band.upper}) {
    const bool below = d < 0 && rows != kUnknown && d <= -rows;
    const bool above = d > 0 && columns != kUnknown && d >= columns;
    if (below || above)
      c.fail(cat("diagonal ", d, " is out of bound for matrices of ", rows, " rows and ", columns,
                 " columns."));
  }
}

std::int64_t longest(const Band& band, std::int64_t rows, std::int64_t columns) {
  if (rows == kUnknown || columns == kUnknown) return kUnknown;
  return std::min(rows + std::min<std::int64_t>(band.upper, 0),
                  columns - std::max<std::int64_t>(band.lower, 0));
}

void diag_shape(InferenceContext& c) {
  c.require_rank_at_least(0, 1);
  c.require_rank(2, 0);
  c.require_rank(3, 0);
  c.require_rank(4, 0);
  const PartialShape& in = c.input(0);
  const auto band = band_input(c, 1);
  if (!in.has_rank() || !band) return c.set_output(0, PartialShape::unknown());
  const bool one = band->count() == 1;
  if (!one) {
    c.require_rank_at_least(0, 2);
    c.merge_dim(in.dim(-2), band->count(), "diagonals");
  }
  auto dims = internal::dims_between(in, 0, in.rank() - (one ? 1 : 2));
  const std::int64_t length = in.dim(-1);
  const auto rows = internal::input_int(c, 2);
  const auto columns = internal::input_int(c, 3);
  std::int64_t r = rows.value_or(kUnknown), q = columns.value_or(kUnknown);
  if (length != kUnknown && rows && columns) {
    const std::int64_t least_rows = length - std::min<std::int64_t>(band->upper, 0);
    const std::int64_t least_columns = length + std::max<std::int64_t>(band->lower, 0);
    if (r == -1 && q == -1) {
      r = q = std::max(least_rows, least_columns);
    } else {
      if (r == -1) r = least_rows;
      if (q == -1) q = least_columns;
    }
    if (r < least_rows || q < least_columns || (r != least_rows && q != least_columns)) {
      c.fail(cat("The number of rows ", r, " or columns ", q,
                 " is not consistent with the specified diagonals."));
    }
  }
  dims.push_back(r);
  dims.push_back(q);
  c.set_output(0, PartialShape(std::move(dims)));
}

void part_shape(InferenceContext& c) {
  c.require_rank_at_least(0, 2);
  c.require_rank(2, 0);
  const PartialShape& in = c.input(0);
  const auto band = band_input(c, 1);
  if (!in.has_rank() || !band) return c.set_output(0, PartialShape::unknown());
  check_inside(c, *band, in.dim(-2), in.dim(-1));
  auto dims = internal::dims_between(in, 0, in.rank() - 2);
  if (band->count() > 1) dims.push_back(band->count());
  dims.push_back(longest(*band, in.dim(-2), in.dim(-1)));
  c.set_output(0, PartialShape(std::move(dims)));
}

void set_shape(InferenceContext& c) {
  c.require_rank_at_least(0, 2);
  c.require_rank_at_least(1, 1);
  const auto band = band_input(c, 2);
  PartialShape in = c.input(0);
  const PartialShape& diagonal = c.input(1);
  if (in.has_rank() && band) {
    check_inside(c, *band, in.dim(-2), in.dim(-1));
    auto dims = internal::dims_between(in, 0, in.rank() - 2);
    if (band->count() > 1) dims.push_back(band->count());
    dims.push_back(longest(*band, in.dim(-2), in.dim(-1)));
    if (!PartialShape(dims).is_compatible(diagonal)) {
      c.fail(cat("diagonal must have shape ", PartialShape(dims), " for input ", in, " but has ",
                 diagonal, "."));
    }
    if (diagonal.has_rank()) {
      for (int i = 0; i < in.rank() - 2; ++i) {
        in.set_dim(i, c.merge_dim(in.dim(i), diagonal.dim(i), "batches"));
      }
    }
  }
  c.set_output(0, std::move(in));
}

// The attributes that the ops of one version share.
AttrMap align_of(const GradientContext& g) {
  const AttrValue* align = g.find_attr("align");
  return align ? AttrMap{{"align", *align}} : AttrMap{};
}
std::string versioned(const GradientContext& g, const char* name) {
  return std::string(name) + (g.find_attr("align") ? "V3" : "V2");
}

Tensor part_of(GradientContext& g, const Tensor& k) {
  const Tensor padding = internal::int_scalar(0, g.grad().dtype());
  return op1(versioned(g, "MatrixDiagPart"), {g.grad(), k, padding}, align_of(g));
}

void diag_grad(GradientContext& g) { g.set(0, part_of(g, g.input(1))); }

void part_grad(GradientContext& g) {
  if (!g.needs(0)) return;
  g.set(0, op1(versioned(g, "MatrixSetDiag"), {zeros_like(g.input(0)), g.grad(), g.input(1)},
               align_of(g)));
}

void set_grad(GradientContext& g) {
  if (g.needs(0)) {
    g.set(0, op1(versioned(g, "MatrixSetDiag"), {g.grad(), zeros_like(g.input(1)), g.input(2)},
                 align_of(g)));
  }
  if (g.needs(1)) g.set(1, part_of(g, g.input(2)));
}

constexpr const char* kAlign =
    "T: type; align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'";

constexpr OpDecl diag_decl(const char* name, const char* attrs) {
  return {.name = name,
          .inputs = "diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T",
          .outputs = "output: T",
          .attrs = attrs,
          .shape = diag_shape,
          .gradient = diag_grad,
          .traits = {.host_inputs = 0b1110},
          .doc = "Matrices with these diagonals and padding_value elsewhere."};
}
constexpr OpDecl part_decl(const char* name, const char* attrs) {
  return {.name = name,
          .inputs = "input: T, k: int32, padding_value: T",
          .outputs = "diagonal: T",
          .attrs = attrs,
          .shape = part_shape,
          .gradient = part_grad,
          .traits = {.host_inputs = 0b10},
          .doc = "A band of diagonals, one a row, filled up with padding_value."};
}
constexpr OpDecl set_decl(const char* name, const char* attrs) {
  return {.name = name,
          .inputs = "input: T, diagonal: T, k: int32",
          .outputs = "output: T",
          .attrs = attrs,
          .shape = set_shape,
          .gradient = set_grad,
          .traits = {.may_reuse = 1, .host_inputs = 0b100},
          .doc = "Matrices with another band of diagonals."};
}

const OpRegistration kDiagV2(diag_decl("MatrixDiagV2", "T: type"));
const OpRegistration kDiagV3(diag_decl("MatrixDiagV3", kAlign));
const OpRegistration kPartV2(part_decl("MatrixDiagPartV2", "T: type"));
const OpRegistration kPartV3(part_decl("MatrixDiagPartV3", kAlign));
const OpRegistration kSetV2(set_decl("MatrixSetDiagV2", "T: type"));
const OpRegistration kSetV3(set_decl("MatrixSetDiagV3", kAlign));

Tensor k_of(const linalg::DiagonalBand& band) {
  return internal::int_vector({band.lower, band.upper}, DType::kInt32);
}
Tensor padding_of(const linalg::DiagonalBand& band, DType dtype) {
  return cast(Tensor(Array::scalar(band.padding_value)), dtype);
}
Tensor size_of(std::int64_t size) { return internal::int_scalar(size, DType::kInt32); }

}  // namespace

namespace linalg {

Tensor diag(Tensor diagonal, const DiagonalBand& band) {
  const Tensor padding = padding_of(band, diagonal.dtype());
  return call1(
      kDiagV3,
      {std::move(diagonal), k_of(band), size_of(band.num_rows), size_of(band.num_cols), padding},
      {{"align", band.align}});
}

Tensor diag_part(Tensor input, const DiagonalBand& band) {
  const Tensor padding = padding_of(band, input.dtype());
  return call1(kPartV3, {std::move(input), k_of(band), padding}, {{"align", band.align}});
}

Tensor set_diag(Tensor input, Tensor diagonal, const DiagonalBand& band) {
  return call1(kSetV3, {std::move(input), std::move(diagonal), k_of(band)},
               {{"align", band.align}});
}

}  // namespace linalg
}  // namespace tandem
