#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "tandem/kernels/cuda/cublaslt/product_plan.h"
#include "tandem/kernels/cuda/support/tuner.h"

namespace tandem::cuda {

/// The plans of a GPU's products. The library is asked for algorithms once for each problem; the
/// larger problems run each of them on the operands at hand, once, and what was the fastest is kept
/// in a file, so that later processes measure nothing. Under op determinism nothing is measured.
///
/// The choice is made before the first result is handed out and stays, so that equal calls in one
/// process give equal bits. Thread-safe.
class ProductPlanner {
 public:
  explicit ProductPlanner(Gpu& gpu);

  /// Within a kernel, whose stream measures. Null if the library has no algorithm for the problem.
  /// Throws Failure.
  std::shared_ptr<const ProductPlan> plan(const KernelCall& call, const ProductProblem& problem,
                                          const ProductAddresses& at);

 private:
  using Algorithm = cublasLtMatmulHeuristicResult_t;
  std::shared_ptr<const ProductPlan> make(const KernelCall& call, const ProductProblem& problem,
                                          const ProductAddresses& at);
  Algorithm fastest(const KernelCall& call, const ProductProblem& problem,
                    const ProductDescription& description, const std::vector<Algorithm>& candidates,
                    const ProductAddresses& at);

  cublasLtHandle_t handle_ = nullptr;
  Tuner tuner_;
  std::mutex mutex_;
  std::map<ProductProblem, std::shared_ptr<const ProductPlan>> plans_;  // guarded by mutex_
};

}  // namespace tandem::cuda
