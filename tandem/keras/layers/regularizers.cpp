#include "tandem/keras/regularizers.h"

#include <cmath>

#include "tandem/core/error.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras {
namespace {

Regularizer::Function penalty(double l1, double l2) {
  for (const double factor : {l1, l2}) {
    if (!std::isfinite(factor) || factor < 0) {
      throw InvalidArgumentError(
          cat("The factor of a regularizer must be finite and not negative, got ", factor, "."));
    }
  }
  return [l1, l2](const Tensor& w) {
    if (l2 == 0) return reduce_sum(abs(w)) * l1;
    Tensor squares = reduce_sum(square(w)) * l2;
    return l1 == 0 ? squares : reduce_sum(abs(w)) * l1 + squares;
  };
}

}  // namespace

regularizers::L1::L1(double l1) : Regularizer("L1", penalty(l1, 0), Config().set("l1", l1)) {}
regularizers::L2::L2(double l2) : Regularizer("L2", penalty(0, l2), Config().set("l2", l2)) {}
regularizers::L1L2::L1L2(double l1, double l2)
    : Regularizer("L1L2", penalty(l1, l2), Config().set("l1", l1).set("l2", l2)) {}

namespace {

const bool kRegistered[] = {internal::ClassRegistry<Regularizer>::instance().add(
                                "L1",
                                [](internal::ArgumentReader& a) -> Regularizer {
                                  double l1 = 0.01;
                                  a("l1", l1);
                                  return regularizers::L1(l1);
                                }),
                            internal::ClassRegistry<Regularizer>::instance().add(
                                "L2",
                                [](internal::ArgumentReader& a) -> Regularizer {
                                  double l2 = 0.01;
                                  a("l2", l2);
                                  return regularizers::L2(l2);
                                }),
                            internal::ClassRegistry<Regularizer>::instance().add(
                                "L1L2", [](internal::ArgumentReader& a) -> Regularizer {
                                  double l1 = 0, l2 = 0;
                                  a("l1", l1);
                                  a("l2", l2);
                                  return regularizers::L1L2(l1, l2);
                                })};

}  // namespace

Regularizer::Regularizer(const std::string& name) {
  if (name == "l1" || name == "L1") {
    *this = regularizers::L1();
  } else if (name == "l2" || name == "L2") {
    *this = regularizers::L2();
  } else if (name == "l1_l2" || name == "l1l2" || name == "L1L2") {
    *this = regularizers::L1L2();
  } else {
    throw InvalidArgumentError(cat("There is no regularizer '", name,
                                   "'. Choose 'l1', 'l2' or 'l1_l2', or give an "
                                   "object of tandem::keras::regularizers."));
  }
}

}  // namespace tandem::keras
