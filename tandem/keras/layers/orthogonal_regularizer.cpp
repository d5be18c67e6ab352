#include "tandem/keras/orthogonal_regularizer.h"

#include <cmath>
#include <optional>

#include "tandem/core/error.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras::regularizers {
namespace {

Regularizer::Function penalty(double factor, bool rows) {
  return [factor, rows](const Tensor& weight) {
    if (weight.rank() != 2) {
      throw InvalidArgumentError(
          cat("Inputs to OrthogonalRegularizer must have rank 2. Received: shape ",
              weight.partial_shape(), "."));
    }
    const Tensor lengths = sqrt(reduce_sum(square(weight), {rows ? 1 : 0}, true));
    const Tensor w =
        weight / where(equal(lengths, zeros_like(lengths)), ones_like(lengths), lengths);
    const Tensor products = matmul(w, w, {.transpose_a = !rows, .transpose_b = rows});
    const std::int64_t size = weight.dim(rows ? 0 : 1);
    const Tensor off_diagonal = products * (1.0 - eye(size, std::nullopt, w.dtype()));
    const double pairs = static_cast<double>(size) * (static_cast<double>(size) - 1) / 2;
    return reduce_sum(abs(off_diagonal)) * (factor * 0.5 / pairs);
  };
}

Regularizer::Function checked_penalty(double factor, const std::string& mode) {
  if (!std::isfinite(factor) || factor < 0) {
    throw InvalidArgumentError(
        cat("The factor of a regularizer must be finite and not negative, got ", factor, "."));
  }
  if (mode != "rows" && mode != "columns") {
    throw InvalidArgumentError(
        cat("OrthogonalRegularizer: mode must be 'rows' or 'columns', got '", mode, "'."));
  }
  return penalty(factor, mode == "rows");
}

const bool kRegistered = internal::ClassRegistry<Regularizer>::instance().add(
    "OrthogonalRegularizer", [](internal::ArgumentReader& a) -> Regularizer {
      double factor = 0.01;
      std::string mode = "rows";
      a("factor", factor);
      a("mode", mode);
      return OrthogonalRegularizer(factor, mode);
    });

}  // namespace

OrthogonalRegularizer::OrthogonalRegularizer(double factor, const String& mode)
    : Regularizer("OrthogonalRegularizer", checked_penalty(factor, mode),
                  Config().set("factor", factor).set("mode", mode)) {}

}  // namespace tandem::keras::regularizers
