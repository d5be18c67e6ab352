#include "tandem/kernels/cuda/cublaslt/product_planner.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string_view>

#include "tandem/device/cuda/internal/room.h"
#include "tandem/kernels/cuda/support/types.h"

namespace tandem::cuda {
namespace {

constexpr std::size_t kMaxPlans = 4096;
// Smaller products take about as long as launching them, whichever algorithm it is.
constexpr double kMeasuredFrom = 1 << 22;  // multiplications

std::string text_of(const cublasLtMatmulAlgo_t& algorithm) {
  std::string text;
  for (const std::uint64_t word : algorithm.data) {
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(word));
    text += digits;
  }
  return text;
}

std::optional<cublasLtMatmulAlgo_t> algorithm_of(std::string_view text) {
  constexpr std::size_t kDigits = 16;
  cublasLtMatmulAlgo_t algorithm = {};
  if (text.size() != kDigits * std::size(algorithm.data)) return std::nullopt;
  for (std::uint64_t& word : algorithm.data) {
    const std::string digits(text.substr(0, kDigits));
    char* end = nullptr;
    word = std::strtoull(digits.c_str(), &end, 16);
    if (*end != '\0') return std::nullopt;
    text.remove_prefix(kDigits);
  }
  return algorithm;
}

}  // namespace

ProductPlanner::ProductPlanner(Gpu& gpu) : tuner_(gpu, "cuBLASLt " + cublaslt().version()) {
  with_room([&] { check(cublaslt().p_cublasLtCreate(&handle_), "cublasLtCreate"); });
}

std::shared_ptr<const ProductPlan> ProductPlanner::plan(const KernelCall& call,
                                                        const ProductProblem& problem,
                                                        const ProductAddresses& at) {
  {
    std::lock_guard lock(mutex_);
    const auto found = plans_.find(problem);
    if (found != plans_.end()) return found->second;
  }
  // Another thread may make the same: what is there first stays.
  std::shared_ptr<const ProductPlan> made = make(call, problem, at);
  std::lock_guard lock(mutex_);
  if (plans_.size() >= kMaxPlans) plans_.clear();
  return plans_.try_emplace(problem, std::move(made)).first->second;
}

std::shared_ptr<const ProductPlan> ProductPlanner::make(const KernelCall& call,
                                                        const ProductProblem& problem,
                                                        const ProductAddresses& at) {
  const auto description = std::make_shared<const ProductDescription>(handle_, problem, at.bias);
  const double work = static_cast<double>(problem.rows) * static_cast<double>(problem.columns) *
                      static_cast<double>(problem.depth) * static_cast<double>(problem.batch);
  const bool measures = tuner_.enabled() && !problem.deterministic && work >= kMeasuredFrom;
  const auto kept = measures ? tuner_.known(problem.text()) : std::nullopt;
  if (const auto algorithm = kept ? algorithm_of(*kept) : std::nullopt) {
    Algorithm checked = {.algo = *algorithm};
    if (description->check_algorithm(checked))
      return std::make_shared<const ProductPlan>(description, checked);
  }
  const std::vector<Algorithm> candidates = description->algorithms();
  if (candidates.empty()) return nullptr;
  return std::make_shared<const ProductPlan>(
      description,
      measures ? fastest(call, problem, *description, candidates, at) : candidates.front());
}

// The addend may be the result's memory, which is then not to be written before the product is
// wanted.
ProductPlanner::Algorithm ProductPlanner::fastest(const KernelCall& call,
                                                  const ProductProblem& problem,
                                                  const ProductDescription& description,
                                                  const std::vector<Algorithm>& candidates,
                                                  const ProductAddresses& at) {
  ProductAddresses trial = at;
  std::size_t workspace = 0;
  for (const Algorithm& one : candidates) workspace = std::max(workspace, one.workspaceSize);
  if (workspace != 0) trial.workspace = call.scratch(workspace);
  if (problem.has_addend) {
    trial.d =
        call.scratch(static_cast<std::size_t>(problem.batch * problem.rows * problem.columns) *
                     size_of(problem.result_type));
  }
  return candidates[tuner_.choose(
      problem.text(), candidates.size(),
      [&](std::size_t i, CUstream stream) { description.multiply(candidates[i], trial, stream); },
      [&](std::size_t i) { return text_of(candidates[i].algo); })];
}

}  // namespace tandem::cuda
