// _FusedAttention: softmax(query * transpose(key)) * value, with what is done to the scores, for
// some queries at a time, whose scores stay in shared memory.

#include <algorithm>
#include <string>

#include "tandem/kernels/cuda/support/launch.h"
#include "tandem/kernels/cuda/support/types.h"
#include "tandem/kernels/cuda/support/warp.h"

namespace tandem::cuda {
namespace {

constexpr int kMaxSteps = 12;
constexpr int kMaxQueries = 4;  // of a block, at once
constexpr unsigned kThreads = 256;
// Shared memory that every GPU has for a block.
constexpr std::int64_t kMaxScores = (std::int64_t{48} << 10) / sizeof(float) - 1024;
constexpr std::int64_t kMaxBlocks = 1024;

// Elements between neighbours along each axis, by the letters of the attribute `axes`: batches B
// and N, queries T, keys S, D what a query and a key are multiplied along, E a value's elements. 0
// where there is only one.
struct Axes {
  std::int64_t b = 0, n = 0, t = 0, s = 0, d = 0, e = 0;
  std::int64_t& of(char letter) {
    switch (letter) {
      case 'B': return b;
      case 'N': return n;
      case 'T': return t;
      case 'S': return s;
      case 'D': return d;
      default: return e;
    }
  }
};

enum class StepKind : int { kSoftmax, kMul, kDivide, kAdd, kSub, kSelect };

// Something that is done to the scores; kSelect keeps them where `keep` is true.
struct Step {
  StepKind kind = StepKind::kSoftmax;
  const float* values = nullptr;
  const bool* keep = nullptr;
  Axes values_at, keep_at;
};

struct Attention {
  Axes sizes;  // of each axis
  Axes query_at, key_at, value_at, output_at;
  const float *query = nullptr, *key = nullptr, *value = nullptr;
  float* output = nullptr;
  std::int64_t queries = kMaxQueries;  // of a block
  int num_steps = 0, softmax = 0;      // the softmax' number
  Step steps[kMaxSteps];
};

TANDEM_DEVICE std::int64_t at(const Axes& step, std::int64_t b, std::int64_t n, std::int64_t t,
                              std::int64_t s) {
  return b * step.b + n * step.n + t * step.t + s * step.s;
}

TANDEM_DEVICE float run_steps(const Attention& a, int begin, int end, float x, std::int64_t b,
                              std::int64_t n, std::int64_t t, std::int64_t s) {
  for (int i = begin; i < end; ++i) {
    const Step& step = a.steps[i];
    if (step.kind == StepKind::kSelect && step.keep[at(step.keep_at, b, n, t, s)]) continue;
    const float value = step.values[at(step.values_at, b, n, t, s)];
    switch (step.kind) {
      case StepKind::kMul: x *= value; break;
      case StepKind::kDivide: x /= value; break;
      case StepKind::kAdd: x += value; break;
      case StepKind::kSub: x -= value; break;
      default: x = value;
    }
  }
  return x;
}

// The queries from t on, `m` of them. A thread has the scores of its own keys until the product
// with the values, for which it has its own elements.
template <class Scores>
TANDEM_DEVICE void attend(const Attention& a, Scores& scores, std::int64_t b, std::int64_t n,
                          std::int64_t t, std::int64_t m) {
  const std::int64_t keys = a.sizes.s, size = a.sizes.d;
  const float* const query = a.query + at(a.query_at, b, n, t, 0);
  for (std::int64_t s = threadIdx.x; s < keys; s += blockDim.x) {
    const float* const key = a.key + at(a.key_at, b, n, 0, s);
    float sums[kMaxQueries] = {};
    for (std::int64_t d = 0; d < size; ++d) {
      const float k = key[d * a.key_at.d];
      for (int r = 0; r < kMaxQueries; ++r) {
        if (r < m) sums[r] += query[r * a.query_at.t + d * a.query_at.d] * k;
      }
    }
    for (int r = 0; r < kMaxQueries; ++r) {
      if (r < m) scores[r * keys + s] = run_steps(a, 0, a.softmax, sums[r], b, n, t + r, s);
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
          run_steps(a, a.softmax + 1, a.num_steps, scores[r * keys + s] / sum, b, n, t + r, s);
    }
  }
  __syncthreads();
  float* const output = a.output + at(a.output_at, b, n, t, 0);
  for (std::int64_t i = threadIdx.x; i < m * a.sizes.e; i += blockDim.x) {
    const std::int64_t r = i / a.sizes.e, e = i % a.sizes.e;
    const float* const value = a.value + at(a.value_at, b, n, 0, 0) + e * a.value_at.e;
    float sum = 0.0f;
    for (std::int64_t s = 0; s < keys; ++s) sum += scores[r * keys + s] * value[s * a.value_at.s];
    output[r * a.output_at.t + e * a.output_at.e] = sum;
  }
  __syncthreads();
}

// A block for each matrix and some queries; the blocks go round.
template <class Scores>
TANDEM_DEVICE void attend_all(const Attention& a, Scores& scores) {
  const std::int64_t tiles = (a.sizes.t + a.queries - 1) / a.queries;
  const std::int64_t all = a.sizes.b * a.sizes.n * tiles;
  for (std::int64_t i = blockIdx.x; i < all; i += gridDim.x) {
    const std::int64_t t = i % tiles * a.queries, n = i / tiles % a.sizes.n;
    const std::int64_t left = a.sizes.t - t;
    attend(a, scores, i / tiles / a.sizes.n, n, t, left < a.queries ? left : a.queries);
  }
}

TANDEM_KERNEL attention_kernel(Attention a) {
  TANDEM_DYNAMIC_SHARED(float, scores);
  attend_all(a, scores);
}

// For so many keys that the scores of one query are too many for shared memory.
TANDEM_KERNEL attention_of_many_keys_kernel(Attention a, float* memory) {
  float* scores = memory + static_cast<std::int64_t>(blockIdx.x) * a.queries * a.sizes.s;
  attend_all(a, scores);
}

// The strides of a tensor with these axes, the last ones if it has fewer, broadcast to the sizes.
Axes strides_of(const TensorView& tensor, const std::string& letters, Axes& sizes) {
  if (tensor.sizes.size() > letters.size()) refuse("an operand has more axes than " + letters);
  Axes axes;
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
void take_sizes(const TensorView& tensor, const std::string& letters, Axes& sizes) {
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

StepKind kind_of(const std::string& op) {
  if (op == "Softmax") return StepKind::kSoftmax;
  if (op == "Mul") return StepKind::kMul;
  if (op == "RealDiv") return StepKind::kDivide;
  if (op == "AddV2") return StepKind::kAdd;
  if (op == "Sub") return StepKind::kSub;
  if (op == "SelectV2") return StepKind::kSelect;
  refuse("op " + op + " cannot be part of an attention");
}

void read_steps(KernelCall& call, const std::string& letters, Attention& a) {
  int next = 3, softmaxes = 0;
  const auto take = [&](Type type) {
    if (next >= call.num_inputs()) refuse("`args` has too few values for `fused_ops`");
    const TensorView arg = call.input(next++);
    if (arg.type != type) refuse("input " + std::to_string(next - 1) + " is of another dtype");
    return arg;
  };
  for (const std::string& op : call.attr_strings("fused_ops")) {
    if (a.num_steps == kMaxSteps) not_on_gpu("an attention of so many steps");
    Step& step = a.steps[a.num_steps++];
    step.kind = kind_of(op);
    if (step.kind == StepKind::kSoftmax) {
      ++softmaxes;
      a.softmax = a.num_steps - 1;
      continue;
    }
    if (step.kind == StepKind::kSelect) {
      const TensorView keep = take(Type::kBool);
      step.keep = keep.as<bool>();
      step.keep_at = strides_of(keep, letters, a.sizes);
    }
    const TensorView values = take(Type::kFloat);
    step.values = values.as<float>();
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
    return call.zero(out.data, static_cast<std::size_t>(out.count) * sizeof(float));
  read_steps(call, axes[2], a);
  a.query = query.as<float>();
  a.key = key.as<float>();
  a.value = value.as<float>();
  a.output = out.as<float>();
  a.query_at = strides_of(query, axes[0], a.sizes);
  a.key_at = strides_of(key, axes[1], a.sizes);
  a.value_at = strides_of(value, axes[3], a.sizes);
  a.output_at = strides_of(out, axes[4], a.sizes);
  const bool shared = a.sizes.s <= kMaxScores;
  if (shared) a.queries = std::clamp<std::int64_t>(kMaxScores / a.sizes.s, 1, kMaxQueries);
  const std::int64_t tiles = (a.sizes.t + a.queries - 1) / a.queries;
  Shape shape = rows_shape(a.sizes.b * a.sizes.n * tiles, kThreads);
  const auto scores = static_cast<std::size_t>(a.queries * a.sizes.s) * sizeof(float);
  if (shared) {
    TANDEM_LAUNCH(attention_kernel, shape, scores, a);
    return;
  }
  shape.grid.x = std::min(shape.grid.x, static_cast<unsigned>(kMaxBlocks));
  auto* const memory = static_cast<float*>(call.scratch(shape.grid.x * scores));
  TANDEM_LAUNCH(attention_of_many_keys_kernel, shape, 0, a, memory);
}

}  // namespace tandem::cuda
