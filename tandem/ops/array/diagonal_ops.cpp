#include "tandem/ops/diagonal_ops.h"

#include <algorithm>
#include <utility>

#include "tandem/graph/inference_context.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/internal/sizes.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::kUnknown;
using internal::op1;

void band_shape(InferenceContext& c) {
  c.require_rank_at_least(0, 2);
  c.require_rank(1, 0);
  c.require_rank(2, 0);
  c.set_output(0, c.input(0));
}

void band_grad(GradientContext& g) {
  g.set(0, op1("MatrixBandPart", {g.grad(), g.input(1), g.input(2)}));
}

void diag_shape(InferenceContext& c) {
  c.require_rank_at_least(0, 1);
  if (!c.input(0).has_rank()) return c.set_output(0, PartialShape::unknown());
  std::vector<std::int64_t> dims = c.input(0).dims();
  dims.push_back(dims.back());
  c.set_output(0, PartialShape(std::move(dims)));
}

std::int64_t shorter_side(const PartialShape& in) {
  const std::int64_t rows = in.dim(-2);
  const std::int64_t columns = in.dim(-1);
  return rows == kUnknown || columns == kUnknown ? kUnknown : std::min(rows, columns);
}

void diag_part_shape(InferenceContext& c) {
  c.require_rank_at_least(0, 2);
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return c.set_output(0, PartialShape::unknown());
  auto dims = internal::dims_between(in, 0, in.rank() - 2);
  dims.push_back(shorter_side(in));
  c.set_output(0, PartialShape(std::move(dims)));
}

void diag_grad(GradientContext& g) { g.set(0, linalg::diag_part(g.grad())); }

void diag_part_grad(GradientContext& g) {
  const PartialShape in = g.input(0).partial_shape();
  if (in.has_rank() && in.dim(-1) != kUnknown && in.dim(-1) == in.dim(-2)) {
    return g.set(0, linalg::diag(g.grad()));
  }
  g.set(0, linalg::set_diag(zeros_like(g.input(0)), g.grad()));
}

void set_diag_shape(InferenceContext& c) {
  c.require_rank_at_least(0, 2);
  c.require_rank_at_least(1, 1);
  const PartialShape& in = c.input(0);
  const PartialShape& diagonal = c.input(1);
  if (in.has_rank() && diagonal.has_rank()) {
    auto dims = internal::dims_between(in, 0, in.rank() - 2);
    dims.push_back(shorter_side(in));
    if (!PartialShape(dims).is_compatible(diagonal)) {
      c.fail(cat("diagonal must have shape ", PartialShape(dims), " for input ", in, " but has ",
                 diagonal, "."));
    }
  }
  c.set_output(0, in);
}

void set_diag_grad(GradientContext& g) {
  if (g.needs(0)) g.set(0, linalg::set_diag(g.grad(), zeros_like(g.input(1))));
  if (g.needs(1)) g.set(1, linalg::diag_part(g.grad()));
}

// The shape twice over.
void tensor_diag_shape(InferenceContext& c) {
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return c.set_output(0, PartialShape::unknown());
  if (in.rank() < 1) c.fail("the diagonal must have at least one axis.");
  std::vector<std::int64_t> dims = in.dims();
  dims.insert(dims.end(), in.dims().begin(), in.dims().end());
  c.set_output(0, PartialShape(std::move(dims)));
}

void tensor_diag_part_shape(InferenceContext& c) {
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return c.set_output(0, PartialShape::unknown());
  if (in.rank() == 0 || in.rank() % 2 != 0) {
    c.fail(cat("Input must have even and non-zero rank, input rank is ", in.rank()));
  }
  const int half = in.rank() / 2;
  std::vector<std::int64_t> dims;
  for (int i = 0; i < half; ++i) {
    dims.push_back(c.merge_dim(in.dim(i), in.dim(i + half), "sizes of both halves of the shape"));
  }
  c.set_output(0, PartialShape(std::move(dims)));
}

void tensor_diag_grad(GradientContext& g) { g.set(0, op1("DiagPart", {g.grad()})); }
void tensor_diag_part_grad(GradientContext& g) { g.set(0, op1("Diag", {g.grad()})); }

const OpRegistration kMatrixBandPart{
    {.name = "MatrixBandPart",
     .inputs = "input: T, num_lower: Tindex, num_upper: Tindex",
     .outputs = "band: T",
     .attrs = "T: type; Tindex: index = int64",
     .shape = band_shape,
     .gradient = band_grad,
     .traits = {.may_reuse = 1, .host_inputs = 0b110},
     .doc =
         "Zeros outside num_lower diagonals below and num_upper above the main one; -1 keeps all "
         "of a side."}};

const OpRegistration kMatrixDiag{{.name = "MatrixDiag",
                                  .inputs = "diagonal: T",
                                  .outputs = "output: T",
                                  .attrs = "T: type",
                                  .shape = diag_shape,
                                  .gradient = diag_grad,
                                  .doc = "Matrices with the last axis on their diagonals."}};

const OpRegistration kMatrixDiagPart{{.name = "MatrixDiagPart",
                                      .inputs = "input: T",
                                      .outputs = "diagonal: T",
                                      .attrs = "T: type",
                                      .shape = diag_part_shape,
                                      .gradient = diag_part_grad,
                                      .doc = "The main diagonals of matrices."}};

const OpRegistration kMatrixSetDiag{{.name = "MatrixSetDiag",
                                     .inputs = "input: T, diagonal: T",
                                     .outputs = "output: T",
                                     .attrs = "T: type",
                                     .shape = set_diag_shape,
                                     .gradient = set_diag_grad,
                                     .traits = {.may_reuse = 1},
                                     .doc = "Matrices with other main diagonals."}};

const OpRegistration kDiag{
    {.name = "Diag",
     .inputs = "diagonal: T",
     .outputs = "output: T",
     .attrs = "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
     .shape = tensor_diag_shape,
     .gradient = tensor_diag_grad,
     .doc = "Zeros of the shape twice over, with the values where both index tuples agree."}};

const OpRegistration kDiagPart{
    {.name = "DiagPart",
     .inputs = "input: T",
     .outputs = "diagonal: T",
     .attrs = "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
     .shape = tensor_diag_part_shape,
     .gradient = tensor_diag_part_grad,
     .doc = "The values where both halves of the index tuple agree."}};

}  // namespace

namespace linalg {

Tensor band_part(Tensor input, std::int64_t num_lower, std::int64_t num_upper) {
  return call1(kMatrixBandPart, {std::move(input), Tensor(num_lower), Tensor(num_upper)});
}

Tensor diag(Tensor diagonal) { return call1(kMatrixDiag, {std::move(diagonal)}); }

Tensor diag_part(Tensor input) { return call1(kMatrixDiagPart, {std::move(input)}); }

Tensor set_diag(Tensor input, Tensor diagonal) {
  return call1(kMatrixSetDiag, {std::move(input), std::move(diagonal)});
}

}  // namespace linalg
}  // namespace tandem
