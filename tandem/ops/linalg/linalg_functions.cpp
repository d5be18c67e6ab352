#include "tandem/ops/linalg_functions.h"

#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/core/name_argument.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/complex_ops.h"
#include "tandem/ops/diagonal_band_ops.h"
#include "tandem/ops/diagonal_ops.h"
#include "tandem/ops/linalg_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/sort_ops.h"
#include "tandem/ops/unary_ops.h"
#include "tandem/runtime/dispatch.h"

namespace tandem {

NormOrder::NormOrder(const char* name) {
  const std::string word = tandem::internal::name_argument(name, "the name of a norm");
  if (word == "euclidean") {
    euclidean_ = true;
  } else if (word == "fro") {
    frobenius_ = true;
  } else if (word == "inf") {
    p_ = std::numeric_limits<double>::infinity();
  } else {
    throw InvalidArgumentError(
        cat("td::norm: 'ord' must be a supported norm: 'fro', 'euclidean', "
            "'inf' or a number, not '",
            word, "'."));
  }
}

namespace linalg {
namespace {

double epsilon_of(DType dtype) {
  return dtype == DType::kDouble || dtype == DType::kComplex128 ? 0x1p-52 : 0x1p-23;
}

Tensor square_eye(const Tensor& a) {
  const Tensor n = shape(a)[-1];
  return diag(ones(IntList(reshape(n, {1})), a.dtype()));
}

// The matrix norms that are no sums over all elements.
Tensor matrix_norm(const Tensor& x, double p, const std::vector<std::int64_t>& axes,
                   bool keepdims) {
  if (p == 1 || std::isinf(p)) {
    // The largest sum of a column (p = 1) or of a row.
    const std::int64_t summed = p == 1 ? axes[0] : axes[1], rest = p == 1 ? axes[1] : axes[0];
    Tensor most = reduce_max(reduce_sum(abs(x), summed, true), rest, true);
    return keepdims ? most : squeeze(most, axes);
  }
  // The largest singular value, of the matrices in these axes.
  const int rank = x.rank();
  std::vector<std::int64_t> order;
  for (int i = 0; i < rank; ++i) {
    const auto is = [&](std::int64_t a) { return (a < 0 ? a + rank : a) == i; };
    if (!is(axes[0]) && !is(axes[1])) order.push_back(i);
  }
  for (const std::int64_t a : axes) order.push_back(a < 0 ? a + rank : a);
  Tensor most = reduce_max(svdvals(transpose(x, order)), -1);
  if (!keepdims) return most;
  std::vector<std::int64_t> sorted{order[order.size() - 2], order.back()};
  if (sorted[0] > sorted[1]) std::swap(sorted[0], sorted[1]);
  for (const std::int64_t a : sorted) most = expand_dims(most, a);
  return most;
}

}  // namespace

Tensor norm(const Tensor& tensor, NormOrder ord, Axes axis, bool keepdims) {
  const bool is_matrix = axis.list() && axis.list()->size() == 2;
  if (ord.is_frobenius() && !is_matrix) {
    throw InvalidArgumentError(
        "td::norm: invalid 'fro' norm of vectors: it takes two axes, of matrices.");
  }
  if (!(ord.p() > 0))
    throw InvalidArgumentError(cat("td::norm: 'ord' must be positive, got ", ord.p(), "."));
  const bool is_euclidean = ord.is_frobenius() || ord.is_euclidean();
  if (is_matrix && !is_euclidean) return matrix_norm(tensor, ord.p(), *axis.list(), keepdims);
  if (is_euclidean || ord.p() == 2) {
    return sqrt(reduce_sum(math::real(tensor * math::conj(tensor)), axis, keepdims));
  }
  const Tensor size = abs(tensor);
  if (std::isinf(ord.p())) return reduce_max(size, axis, keepdims);
  if (ord.p() == 1) return reduce_sum(size, axis, keepdims);
  return pow(reduce_sum(pow(size, ord.p()), axis, keepdims), 1.0 / ord.p());
}

std::pair<Tensor, Tensor> normalize(const Tensor& tensor, NormOrder ord, Axes axis) {
  Tensor length = norm(tensor, ord, std::move(axis), true);
  return {tensor / cast(length, tensor.dtype()), length};
}

Tensor trace(const Tensor& x) { return reduce_sum(diag_part(x), -1); }

Tensor matrix_rank(const Tensor& a, std::optional<double> tol) {
  const Tensor s = svdvals(a);
  Tensor least;
  if (tol) {
    least = cast(Tensor(static_cast<float>(*tol)), s.dtype());
  } else {
    const Tensor side = reduce_max(shape(a)[Slice(-2, none)]);
    least = reduce_max(s, -1, true) * (cast(side, s.dtype()) * epsilon_of(a.dtype()));
  }
  return reduce_sum(cast(s > least, int32), -1);
}

Tensor pinv(const Tensor& a, std::optional<double> rcond) {
  const SvdFactors f = svd(a);
  Tensor cutoff;
  if (rcond) {
    cutoff = reduce_max(f.s, -1) * *rcond;
  } else {
    const Tensor side = reduce_max(shape(a)[Slice(-2, none)]);
    cutoff = reduce_max(f.s, -1) * (cast(side, f.s.dtype()) * (10 * epsilon_of(a.dtype())));
  }
  const Tensor kept = f.s > expand_dims(cutoff, -1);
  const Tensor inverse = where(kept, 1.0 / where(kept, f.s, 1.0), 0.0);
  return matmul(f.v * expand_dims(cast(inverse, a.dtype()), -2), f.u, {.adjoint_b = true});
}

namespace {

// Coefficients of the Padé approximants of degree 3, 5, 7, 9 and 13 (Higham 2005), and up to which
// norm each is exact to the dtype.
struct Pade {
  std::vector<double> b;
  double norm_float, norm_double;
};
const std::array<Pade, 5>& approximants() {
  static const std::array<Pade, 5> all{{
      {{120, 60, 12, 1}, 4.258730016922831e-001, 1.495585217958292e-002},
      {{30240, 15120, 3360, 420, 30, 1}, 1.880152677804762e+000, 2.539398330063230e-001},
      {{17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1},
       3.925724783138660e+000,
       9.504178996162932e-001},
      {{17643225600, 8821612800, 2075673600, 302702400, 30270240, 2162160, 110880, 3960, 90, 1},
       0,
       2.097847961257068e+000},
      {{64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000,
        10559470521600, 670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1},
       0,
       5.371920351148152e+000},
  }};
  return all;
}

// u + v and -u + v are numerator and denominator.
std::pair<Tensor, Tensor> pade(const Tensor& a, const std::vector<double>& b) {
  const Tensor one = square_eye(a);
  const Tensor a2 = matmul(a, a);
  Tensor power = one;
  Tensor odd = one * b[1], even = one * b[0];
  for (std::size_t i = 2; i < b.size(); i += 2) {
    power = matmul(power, a2);
    even = even + power * b[i];
    if (i + 1 < b.size()) odd = odd + power * b[i + 1];
  }
  return {matmul(a, odd), even};
}

}  // namespace

Tensor expm(const Tensor& input) {
  const bool is_double = input.dtype() == DType::kDouble || input.dtype() == DType::kComplex128;
  const auto& all = approximants();
  const std::size_t most = is_double ? 4 : 2;
  const double limit = is_double ? all[most].norm_double : all[most].norm_float;
  // Halved so often that the norm is small enough, by matrix: s as a real tensor [..., 1, 1].
  const Tensor norm1 = reduce_max(reduce_sum(abs(input), -2, true), -1, true);
  const Tensor squarings =
      maximum(math::ceil(math::log(maximum(norm1 / limit, 1.0)) * (1 / std::log(2.0))), 0.0);
  const Tensor scale = cast(pow(cast(Tensor(2.0f), squarings.dtype()), squarings), input.dtype());
  const auto [u, v] = pade(input / scale, all[most].b);
  Tensor result = solve(v - u, u + v);
  if (squarings.is_symbolic()) {
    throw FailedPreconditionError(
        "td::linalg::expm squares as often as the values ask for, which a function that is being "
        "traced does not know. Call it outside, or use eigenvalues.");
  }
  const auto count = static_cast<int>(reduce_max(cast(squarings, float32)).item<float>());
  for (int i = 0; i < count; ++i) {
    const Tensor more = squarings > static_cast<double>(i);
    result = where(more, matmul(result, result), result);
  }
  return result;
}

namespace {

// Rows of `rhs` in the order of the permutation.
Tensor permuted(const Tensor& rhs, const Tensor& perm) {
  if (perm.rank() == 1) return gather(rhs, perm, -2);
  return gather(rhs, perm, perm.rank() - 1, perm.rank() - 1);
}

Tensor unit_lower(const Tensor& lu) {
  return set_diag(band_part(lu, -1, 0), ones_like(diag_part(lu)));
}

}  // namespace

Tensor lu_solve(const Tensor& lu, const Tensor& perm, const Tensor& rhs) {
  const Tensor y = triangular_solve(unit_lower(lu), permuted(rhs, perm), true);
  return triangular_solve(lu, y, false);
}

Tensor lu_reconstruct(const Tensor& lu, const Tensor& perm) {
  const Tensor product = matmul(unit_lower(lu), band_part(lu, 0, -1));
  return permuted(product, argsort(perm));
}

Tensor lu_matrix_inverse(const Tensor& lu, const Tensor& perm) {
  const Tensor one = square_eye(lu);
  return lu_solve(lu, perm, lu.rank() == 2 ? one : broadcast_to(one, IntList(shape(lu))));
}

Tensor tensor_diag(Tensor diagonal) { return raw_op("Diag", {std::move(diagonal)})[0]; }
Tensor tensor_diag_part(Tensor input) { return raw_op("DiagPart", {std::move(input)})[0]; }

Tensor eigh_tridiagonal(const Tensor& alpha, const Tensor& beta) {
  const Tensor full = diag(alpha) + diag(beta, {.lower = -1, .upper = -1}) +
                      diag(math::conj(beta), {.lower = 1, .upper = 1});
  return math::real(eigvalsh(full));
}

Tensor banded_triangular_solve(const Tensor& bands, const Tensor& rhs, bool lower, bool adjoint) {
  const std::int64_t count = bands.dim(-2);
  if (count < 1) {
    throw InvalidArgumentError(
        cat("td::linalg::banded_triangular_solve: the number of bands must be known, but their "
            "shape is ",
            bands.partial_shape(), "."));
  }
  // In lower bands row i begins with i unused places; in upper ones the last row is the diagonal,
  // and the row i above it begins with i unused places.
  const Tensor full = lower ? diag(reverse(bands, {-2})[{ellipsis, Slice(none, none, -1), Slice()}],
                                   {.lower = -(count - 1), .upper = 0, .align = "RIGHT_RIGHT"})
                            : diag(bands, {.lower = 0, .upper = count - 1, .align = "RIGHT_RIGHT"});
  return triangular_solve(full, rhs, lower, adjoint);
}

}  // namespace linalg
}  // namespace tandem
