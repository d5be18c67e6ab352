// Factorisations, whose factors' signs and phases are free, by putting the matrix together again;
// values and gradients against TensorFlow are in tests/reference.

#include "tandem/ops/linalg_ops.h"

#include <complex>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/ops/ops.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

double furthest(const Tensor& a, const Tensor& b) {
  return cast(reduce_max(abs(a - b)), float64).item<double>();
}

Tensor some_matrix(std::int64_t rows, std::int64_t columns) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    values.push_back(static_cast<double>(i * 7 % 11) - 4 + 0.25 * static_cast<double>(i));
  }
  return Tensor::from(values, {rows, columns});
}

Tensor unit(std::int64_t n, DType dtype) { return eye(n, {}, dtype); }

TEST(Linalg, SvdFactorsMakeTheMatrixAgain) {
  for (const auto& [rows, columns] :
       {std::pair{3, 3}, std::pair{5, 2}, std::pair{2, 4}, std::pair{40, 3}, std::pair{3, 40}}) {
    const Tensor a = some_matrix(rows, columns);
    const auto [s, u, v] = linalg::svd(a);
    EXPECT_LT(furthest(matmul(matmul(u, linalg::diag(s)), v, {.adjoint_b = true}), a), 1e-12);
    EXPECT_LT(furthest(matmul(u, u, {.adjoint_a = true}), unit(s.dim(0), float64)), 1e-12);
    EXPECT_LT(furthest(s, linalg::svdvals(a)), 1e-12);
  }
}

TEST(Linalg, EigenvectorsAreStretchedByEigenvalues) {
  const Tensor a = some_matrix(4, 4);
  const auto [e, v] = linalg::eig(a);
  EXPECT_LT(furthest(matmul(cast(a, complex128), v), v * e), 1e-11);
  const Tensor symmetric = a + transpose(a);
  const auto [real_e, real_v] = linalg::eigh(symmetric);
  EXPECT_LT(furthest(matmul(symmetric, real_v), real_v * real_e), 1e-11);
}

TEST(Linalg, ComplexFactorsMakeTheMatrixAgain) {
  const Tensor a = complex(some_matrix(3, 3), some_matrix(3, 3) * 0.5 - 1);
  const auto [s, u, v] = linalg::svd(a);
  EXPECT_LT(furthest(matmul(u * s, v, {.adjoint_b = true}), a), 1e-11);
  const auto [e, w] = linalg::eig(a);
  EXPECT_LT(furthest(matmul(a, w), w * e), 1e-11);
  const auto [q, r] = linalg::qr(a);
  EXPECT_LT(furthest(matmul(q, r), a), 1e-11);
}

TEST(Linalg, PermutedTrianglesMakeTheMatrixAgain) {
  const Tensor a = some_matrix(4, 4);
  const auto [lu, p] = linalg::lu(a);
  const Tensor upper = linalg::band_part(lu, 0, -1);
  const Tensor lower = lu - upper + unit(4, float64);
  EXPECT_LT(furthest(matmul(lower, upper), gather(a, p)), 1e-12);
}

TEST(Linalg, SingularMatricesAreNamed) {
  const Tensor singular{{1.0, 2.0}, {2.0, 4.0}};
  EXPECT_THROW(linalg::inv(singular), InvalidArgumentError);
  EXPECT_THROW(linalg::solve(singular, singular), InvalidArgumentError);
  EXPECT_THROW(linalg::cholesky(Tensor{1.0, 2.0}), InvalidArgumentError);
}

// The library is entered by several threads at once, which one build of OpenBLAS does not bear.
TEST(Linalg, ThreadsDoNotDisturbEachOther) {
  Runtime runtime({.inter_op_threads = 2, .intra_op_threads = 4});
  RuntimeScope scope(runtime);
  const auto draw = [](const IntList& shape, int seed) {
    return random::stateless_normal(shape, {seed, 0}, {.dtype = float64});
  };
  const Tensor a = draw({300, 24, 24}, 1) + unit(24, float64) * 16, b = draw({300, 24, 2}, 2);
  const auto both = function([](Tensor m, Tensor right) {
    return std::vector<Tensor>{matmul(m, linalg::solve(m, right)) - right,
                               matmul(linalg::inv(m), m)};
  });
  for (int step = 0; step < 60; ++step) {
    const auto results = both(a, b);
    ASSERT_LT(furthest(results[0], zeros_like(b)), 1e-10) << step;
    ASSERT_LT(furthest(results[1], unit(24, float64)), 1e-10) << step;
  }
}

}  // namespace
}  // namespace tandem
