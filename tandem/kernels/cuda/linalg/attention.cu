// _FusedAttention: softmax(query * transpose(key)) * value, with what is done to the scores. By
// cuDNN where it has that, else for some queries at a time, whose scores stay in shared memory.

#include <algorithm>
#include <string>

#include "tandem/kernels/cuda/linalg/attention.h"
#include "tandem/kernels/cuda/support/launch.h"
#include "tandem/kernels/cuda/support/types.h"
#include "tandem/kernels/cuda/support/warp.h"

namespace tandem::cuda {
namespace {

constexpr int kMaxQueries = 4;  // of a block, at once
constexpr unsigned kThreads = 256;
// Shared memory that every GPU has for a block.
constexpr std::int64_t kMaxScores = (std::int64_t{48} << 10) / sizeof(float) - 1024;
constexpr std::int64_t kMaxBlocks = 1024;

template <class T>
TANDEM_DEVICE float run_steps(const Attention& a, int begin, int end, float x, std::int64_t b,
                              std::int64_t n, std::int64_t t, std::int64_t s) {
  for (int i = begin; i < end; ++i) {
    const AttentionStep& step = a.steps[i];
    if (step.keep && step.keep[at(step.keep_at, b, n, t, s)]) continue;
    if (step.kind == AttentionStepKind::kMask) {
      x = i < a.softmax ? std::numeric_limits<float>::lowest() : 0.0f;
      continue;
    }
    const float value = load(static_cast<const T*>(step.values)[at(step.values_at, b, n, t, s)]);
    switch (step.kind) {
      case AttentionStepKind::kMul: x *= value; break;
      case AttentionStepKind::kDivide: x /= value; break;
      case AttentionStepKind::kAdd: x += value; break;
      case AttentionStepKind::kSub: x -= value; break;
      default: x = value;
    }
  }
  return x;
}

// The queries from t on, `m` of them. A thread has the scores of its own keys until the product
// with the values, for which it has its own elements.
template <class T, class Scores>
TANDEM_DEVICE void attend(const Attention& a, Scores& scores, std::int64_t b, std::int64_t n,
                          std::int64_t t, std::int64_t m) {
  const std::int64_t keys = a.sizes.s, size = a.sizes.d;
  const T* const query = static_cast<const T*>(a.query) + at(a.query_at, b, n, t, 0);
  for (std::int64_t s = threadIdx.x; s < keys; s += blockDim.x) {
    const T* const key = static_cast<const T*>(a.key) + at(a.key_at, b, n, 0, s);
    float sums[kMaxQueries] = {};
    for (std::int64_t d = 0; d < size; ++d) {
      const float k = load(key[d * a.key_at.d]);
      for (int r = 0; r < kMaxQueries; ++r) {
        if (r < m) sums[r] += load(query[r * a.query_at.t + d * a.query_at.d]) * k;
      }
    }
    for (int r = 0; r < kMaxQueries; ++r) {
      if (r < m)
        scores[r * keys + s] = run_steps<T>(a, 0, a.softmax, sums[r] * a.scale, b, n, t + r, s);
    }
  }
  for (std::int64_t r = 0; r < m; ++r) {
    float most = -std::numeric_limits<float>::infinity();
    for (std::int64_t s = threadIdx.x; s < keys; s += blockDim.x) {
      const float x = scores[r * keys + s];
      most = x > most || x != x ? x : most;
    }
    most = block_reduce_all(most, -std::numeric_limits<float>::infinity(),
                            [](float x, float y) { return x > y || x != x ? x : y; });
    float sum = 0.0f;
    for (std::int64_t s = threadIdx.x; s < keys; s += blockDim.x) {
      const float x = std::exp(static_cast<float>(scores[r * keys + s]) - most);
      scores[r * keys + s] = x;
      sum += x;
    }
    sum = block_reduce_all(sum, 0.0f, [](float x, float y) { return x + y; });
    for (std::int64_t s = threadIdx.x; s < keys; s += blockDim.x) {
      scores[r * keys + s] =
          run_steps<T>(a, a.softmax + 1, a.num_steps, scores[r * keys + s] / sum, b, n, t + r, s);
    }
  }
  __syncthreads();
  T* const output = static_cast<T*>(a.output) + at(a.output_at, b, n, t, 0);
  for (std::int64_t i = threadIdx.x; i < m * a.sizes.e; i += blockDim.x) {
    const std::int64_t r = i / a.sizes.e, e = i % a.sizes.e;
    const T* const value =
        static_cast<const T*>(a.value) + at(a.value_at, b, n, 0, 0) + e * a.value_at.e;
    float sum = 0.0f;
    for (std::int64_t s = 0; s < keys; ++s)
      sum += scores[r * keys + s] * load(value[s * a.value_at.s]);
    output[r * a.output_at.t + e * a.output_at.e] = store<T>(sum);
  }
  __syncthreads();
}

// A block for each matrix and some queries; the blocks go round.
template <class T, class Scores>
TANDEM_DEVICE void attend_all(const Attention& a, Scores& scores, std::int64_t queries) {
  const std::int64_t tiles = (a.sizes.t + queries - 1) / queries;
  const std::int64_t all = a.sizes.b * a.sizes.n * tiles;
  for (std::int64_t i = blockIdx.x; i < all; i += gridDim.x) {
    const std::int64_t t = i % tiles * queries, n = i / tiles % a.sizes.n;
    const std::int64_t left = a.sizes.t - t;
    attend<T>(a, scores, i / tiles / a.sizes.n, n, t, left < queries ? left : queries);
  }
}

template <class T>
TANDEM_KERNEL attention_kernel(Attention a, std::int64_t queries) {
  TANDEM_DYNAMIC_SHARED(float, scores);
  attend_all<T>(a, scores, queries);
}

// For so many keys that the scores of one query are too many for shared memory.
template <class T>
TANDEM_KERNEL attention_of_many_keys_kernel(Attention a, std::int64_t queries, float* memory) {
  float* scores = memory + static_cast<std::int64_t>(blockIdx.x) * queries * a.sizes.s;
  attend_all<T>(a, scores, queries);
}

// By our own kernels.
void attend_by_blocks(const KernelCall& call, Type type, const Attention& a) {
  const bool shared = a.sizes.s <= kMaxScores;
  const std::int64_t queries =
      shared ? std::clamp<std::int64_t>(kMaxScores / a.sizes.s, 1, kMaxQueries) : kMaxQueries;
  const std::int64_t tiles = (a.sizes.t + queries - 1) / queries;
  Shape shape = rows_shape(a.sizes.b * a.sizes.n * tiles, kThreads);
  const auto scores = static_cast<std::size_t>(queries * a.sizes.s) * sizeof(float);
  float* memory = nullptr;
  if (!shared) {
    shape.grid.x = std::min(shape.grid.x, static_cast<unsigned>(kMaxBlocks));
    memory = static_cast<float*>(call.scratch(shape.grid.x * scores));
  }
  visit_floating(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (sizeof(T) <= sizeof(float)) {
      if (shared) {
        TANDEM_LAUNCH(attention_kernel<T>, shape, scores, a, queries);
      } else {
        TANDEM_LAUNCH(attention_of_many_keys_kernel<T>, shape, 0, a, queries, memory);
      }
    }
  });
}

// The strides of a tensor with these axes, the last ones if it has fewer, broadcast to the sizes.
AttentionPerAxis strides_of(const TensorView& tensor, const std::string& letters,
                            AttentionPerAxis& sizes) {
  if (tensor.sizes.size() > letters.size()) refuse("an operand has more axes than " + letters);
  AttentionPerAxis axes;
  std::int64_t step = 1;
  for (std::size_t i = 1; i <= tensor.sizes.size(); ++i) {
    const std::int64_t size = tensor.sizes[tensor.sizes.size() - i];
    const char letter = letters[letters.size() - i];
    if (size != 1 && size != sizes.of(letter))
      refuse(std::string("an operand does not broadcast along axis ") + letter);
    if (size != 1) axes.of(letter) = step;
    step *= size;
  }
  return axes;
}

// Sizes that are not known yet are -1; batches may be 1 for some operands.
void take_sizes(const TensorView& tensor, const std::string& letters, AttentionPerAxis& sizes) {
  if (tensor.sizes.size() != letters.size()) refuse("an operand has not the axes " + letters);
  for (std::size_t i = 0; i < letters.size(); ++i) {
    std::int64_t& size = sizes.of(letters[i]);
    const bool batch = letters[i] == 'B' || letters[i] == 'N';
    if (size == -1 || (batch && size == 1)) {
      size = tensor.sizes[i];
    } else if (size != tensor.sizes[i] && !(batch && tensor.sizes[i] == 1)) {
      refuse(std::string("the sizes of axis ") + letters[i] + " must be equal");
    }
  }
}

AttentionStepKind kind_of(const std::string& op) {
  if (op == "Softmax") return AttentionStepKind::kSoftmax;
  if (op == "Mul") return AttentionStepKind::kMul;
  if (op == "RealDiv") return AttentionStepKind::kDivide;
  if (op == "AddV2") return AttentionStepKind::kAdd;
  if (op == "Sub") return AttentionStepKind::kSub;
  if (op == "SelectV2") return AttentionStepKind::kSelect;
  if (op == "Mask") return AttentionStepKind::kMask;
  refuse("op " + op + " cannot be part of an attention");
}

void read_steps(KernelCall& call, const std::string& letters, Type type_of_scores, Attention& a) {
  int next = 3, softmaxes = 0;
  const auto take = [&](Type type) {
    if (next >= call.num_inputs()) refuse("`args` has too few values for `fused_ops`");
    const TensorView arg = call.input(next++);
    if (arg.type != type) refuse("input " + std::to_string(next - 1) + " is of another dtype");
    return arg;
  };
  for (const std::string& op : call.attr_strings("fused_ops")) {
    if (a.num_steps == Attention::kMaxSteps) not_on_gpu("an attention of so many steps");
    AttentionStep& step = a.steps[a.num_steps++];
    step.kind = kind_of(op);
    if (step.kind == AttentionStepKind::kSoftmax) {
      ++softmaxes;
      a.softmax = a.num_steps - 1;
      continue;
    }
    if (step.kind == AttentionStepKind::kSelect || step.kind == AttentionStepKind::kMask) {
      const TensorView keep = take(Type::kBool);
      step.keep = keep.as<bool>();
      step.keep_at = strides_of(keep, letters, a.sizes);
    }
    if (step.kind == AttentionStepKind::kMask) continue;
    const TensorView values = take(type_of_scores);
    step.values = values.data;
    step.values_at = strides_of(values, letters, a.sizes);
  }
  if (softmaxes != 1 || next != call.num_inputs())
    refuse("`fused_ops` must have one Softmax, and a use for all of `args`");
}

}  // namespace

void linalg_fused_attention(KernelCall& call) {
  const std::vector<std::string> axes = call.attr_strings("axes");
  if (axes.size() != 5) refuse("`axes` must have five texts");
  const TensorView query = call.input(0), key = call.input(1), value = call.input(2);
  Attention a;
  a.sizes = {.b = 1, .n = 1, .t = -1, .s = -1, .d = -1, .e = -1};
  take_sizes(query, axes[0], a.sizes);
  take_sizes(key, axes[1], a.sizes);
  take_sizes(value, axes[3], a.sizes);
  Sizes sizes;
  for (const char letter : axes[4]) sizes.push_back(a.sizes.of(letter));
  const TensorView out = call.allocate_output(0, sizes);
  if (out.count == 0) return;
  if (a.sizes.s == 0)
    return call.zero(out.data, static_cast<std::size_t>(out.count) * size_of(out.type));
  read_steps(call, axes[2], query.type, a);
  a.scale = call.attr_float("scale");
  a.query = query.data;
  a.key = key.data;
  a.value = value.data;
  a.output = out.data;
  a.query_at = strides_of(query, axes[0], a.sizes);
  a.key_at = strides_of(key, axes[1], a.sizes);
  a.value_at = strides_of(value, axes[3], a.sizes);
  a.output_at = strides_of(out, axes[4], a.sizes);
  if (!attend_by_library(call, query.type, a)) attend_by_blocks(call, query.type, a);
}

}  // namespace tandem::cuda
