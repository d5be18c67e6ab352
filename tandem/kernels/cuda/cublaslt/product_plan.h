#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

#include "tandem/device/cuda/internal/library_call.h"
#include "tandem/kernels/cuda/cublaslt/cublaslt.h"
#include "tandem/kernels/cuda/cublaslt/product.h"

namespace tandem::cuda {

/// All that the choice of an algorithm for a product depends on, on one kind of GPU.
struct ProductProblem {
  Type type, result_type;
  bool transpose_a, transpose_b, has_bias, has_addend;
  Activation activation;
  bool tensor_float_32;
  bool deterministic;  ///< sums are not split among blocks
  std::int64_t rows, columns, depth, batch, a_step, b_step;
  std::uint32_t alignment;  ///< in bytes, of all operands

  auto operator<=>(const ProductProblem&) const = default;
  /// "product float nt 128x256x64 …"
  std::string text() const;
};

/// The operands' addresses, which are the parameters of the call in this order.
struct ProductAddresses {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* c = nullptr;
  void* d = nullptr;
  const void* bias = nullptr;
  void* workspace = nullptr;
};

/// A product as cuBLASLt describes it. Rows and columns change their roles, since the library's
/// matrices are column-major: it computes the transposed product.
class ProductDescription {
 public:
  /// Throws Failure.
  ProductDescription(cublasLtHandle_t handle, const ProductProblem& problem, const void* bias);
  ~ProductDescription();
  ProductDescription(const ProductDescription&) = delete;
  ProductDescription& operator=(const ProductDescription&) = delete;

  /// The algorithms that the library proposes, the one that it expects to be fastest first. Empty
  /// if it has none.
  std::vector<cublasLtMatmulHeuristicResult_t> algorithms() const;
  /// An algorithm that was kept, if the library can still use it.
  bool check_algorithm(cublasLtMatmulHeuristicResult_t& kept) const;
  /// Throws Failure.
  void multiply(const cublasLtMatmulHeuristicResult_t& algorithm, const ProductAddresses& at,
                CUstream stream) const;

 private:
  void create();
  void destroy();
  void make_layout(cublasLtMatrixLayout_t& layout, Type type, std::int64_t rows,
                   std::int64_t columns, std::int64_t step) const;

  const cublasLtHandle_t handle_;
  const ProductProblem problem_;
  mutable std::mutex mutex_;  // the address of the bias is part of the library's description
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, d_ = nullptr;
};

/// A product with its algorithm chosen.
class ProductPlan final : public LibraryCall {
 public:
  ProductPlan(std::shared_ptr<const ProductDescription> description,
              const cublasLtMatmulHeuristicResult_t& algorithm)
      : description_(std::move(description)), algorithm_(algorithm) {}

  std::size_t workspace_bytes() const { return algorithm_.workspaceSize; }
  void issue(CUstream stream, void* const* values) const override;

 private:
  const std::shared_ptr<const ProductDescription> description_;
  const cublasLtMatmulHeuristicResult_t algorithm_;
};

}  // namespace tandem::cuda
