#include "tandem/kernels/cuda/cudnn/attention_graph.h"

#include <string>
#include <utility>
#include <vector>

namespace tandem::cuda {
namespace {

// By which the addresses of tensors are given.
constexpr std::int64_t kQuery = 1, kKey = 2, kValue = 3, kBias = 4, kResult = 5, kScale = 6,
                       kFirstVirtual = 10;

std::string text_of(const AttentionLayout& layout) {
  std::string text;
  for (const std::int64_t size : layout.sizes)
    text += (text.empty() ? "" : "x") + std::to_string(size);
  text += " by";
  for (const std::int64_t stride : layout.strides) text += ' ' + std::to_string(stride);
  return text;
}

AttentionLayout dense(const std::array<std::int64_t, 4>& sizes) {
  AttentionLayout layout{.sizes = sizes};
  std::int64_t stride = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    layout.strides[i] = stride;
    stride *= sizes[i];
  }
  return layout;
}

AttentionLayout transposed(AttentionLayout layout) {
  std::swap(layout.sizes[2], layout.sizes[3]);
  std::swap(layout.strides[2], layout.strides[3]);
  return layout;
}

class Builder {
 public:
  explicit Builder(const AttentionProblem& problem) : p_(problem), graph_(problem.alignment) {}

  OperationGraph build(cudnnHandle_t handle) {
    const Descriptor& query = operand(kQuery, p_.query);
    const Descriptor& key = operand(kKey, transposed(p_.key));
    const Descriptor& value = operand(kValue, p_.value);
    const auto& [batches, heads, queries, columns] = p_.result.sizes;
    const std::array<std::int64_t, 4> of_scores{batches, heads, queries, p_.key.sizes[2]};
    const std::array<std::int64_t, 4> of_rows{batches, heads, queries, 1};
    const auto scores = [&]() -> const Descriptor& { return between(of_scores, CUDNN_DATA_FLOAT); };

    const Descriptor* x = &scores();
    graph_.add_matmul(query, key, *x);
    if (p_.scale != 1.0f) {
      const Descriptor& scaled = scores();
      graph_.add_pointwise(CUDNN_POINTWISE_MUL, *x,
                           &graph_.add_number(kScale, of_scores.size(), p_.scale), scaled);
      x = &scaled;
    }
    if (p_.has_bias) {
      const Descriptor& biased = scores();
      graph_.add_pointwise(CUDNN_POINTWISE_ADD, *x, &operand(kBias, p_.bias), biased);
      x = &biased;
    }
    const Descriptor& most = between(of_rows, CUDNN_DATA_FLOAT);
    graph_.add_reduction(CUDNN_REDUCE_TENSOR_MAX, *x, most);
    const Descriptor& below = scores();
    graph_.add_pointwise(CUDNN_POINTWISE_SUB, *x, &most, below);
    const Descriptor& powers = scores();
    graph_.add_pointwise(CUDNN_POINTWISE_EXP, below, nullptr, powers);
    const Descriptor& sums = between(of_rows, CUDNN_DATA_FLOAT);
    graph_.add_reduction(CUDNN_REDUCE_TENSOR_ADD, powers, sums);
    // The engines take probabilities in the type of the values.
    const Descriptor& probabilities = between(of_scores, data_type_of(p_.type));
    graph_.add_pointwise(CUDNN_POINTWISE_DIV, powers, &sums, probabilities);
    graph_.add_matmul(probabilities, value, operand(kResult, p_.result));
    graph_.finish(handle);
    return std::move(graph_);
  }

 private:
  const Descriptor& operand(std::int64_t id, const AttentionLayout& layout) {
    return add(id, layout, data_type_of(p_.type), false);
  }
  // What is between two operations.
  const Descriptor& between(const std::array<std::int64_t, 4>& sizes, cudnnDataType_t type) {
    return add(next_++, dense(sizes), type, true);
  }
  const Descriptor& add(std::int64_t id, const AttentionLayout& layout, cudnnDataType_t type,
                        bool is_virtual) {
    return graph_.add({.id = id,
                       .sizes = {layout.sizes.begin(), layout.sizes.end()},
                       .strides = {layout.strides.begin(), layout.strides.end()},
                       .type = type,
                       .is_virtual = is_virtual});
  }

  const AttentionProblem& p_;
  std::int64_t next_ = kFirstVirtual;
  OperationGraph graph_;
};

}  // namespace

PlanRequest AttentionProblem::request() const {
  std::string text = std::string("attention ") + (type == Type::kHalf ? "half " : "bfloat16 ") +
                     text_of(query) + " keys " + text_of(key) + " values " + text_of(value) +
                     " result " + text_of(result);
  if (has_bias) text += " bias " + text_of(bias);
  if (scale != 1.0f) text += " scaled";
  text += " alignment " + std::to_string(alignment);
  if (deterministic) text += " deterministic";
  return {.text = text, .exact = false, .deterministic = deterministic};
}

std::shared_ptr<const OperationGraph> graph_of(cudnnHandle_t handle,
                                               const AttentionProblem& problem) {
  return std::make_shared<const OperationGraph>(Builder(problem).build(handle));
}

}  // namespace tandem::cuda
