// _FusedAttention by cuDNN: softmax(scale query keyᵀ + bias) value in 16-bit floats, where the bias
// is what is added to the scores and their mask.

#include <functional>
#include <limits>

#include "tandem/kernels/cuda/cudnn/attend.h"
#include "tandem/kernels/cuda/linalg/attention.h"
#include "tandem/kernels/cuda/support/launch.h"
#include "tandem/kernels/cuda/support/types.h"
#include "tandem/kernels/cuda/support/warp.h"

namespace tandem::cuda {
namespace {

constexpr unsigned kThreads = 256;

// What a mask adds to scores: with it they are too low to count beside others.
template <class T>
constexpr float kLowest = std::is_same_v<T, Half> ? -65504.0f : -3.3e38f;

struct Bias {
  AttentionStep added, mask;  // without `values` or `keep` if there is none
  std::int64_t b = 1, n = 1, t = 1, s = 1;
};

template <class T>
TANDEM_KERNEL attention_bias_kernel(T* to, Bias p) {
  const std::int64_t count = p.b * p.n * p.t * p.s;
  for (auto i = first_index<std::int64_t>(); i < count; i += index_step<std::int64_t>()) {
    const std::int64_t s = i % p.s, t = i / p.s % p.t, n = i / p.s / p.t % p.n;
    const std::int64_t b = i / p.s / p.t / p.n;
    const T* const added = static_cast<const T*>(p.added.values);
    float value = added ? load(added[at(p.added.values_at, b, n, t, s)]) : 0.0f;
    if (p.mask.keep && !p.mask.keep[at(p.mask.keep_at, b, n, t, s)]) value = kLowest<T>;
    to[i] = store<T>(value);
  }
}

// Queries whose mask keeps no key: the mean of all values, or zero.
template <class T>
TANDEM_KERNEL attention_without_keys_kernel(Attention a, AttentionStep mask, bool zero) {
  const std::int64_t rows = a.sizes.b * a.sizes.n * a.sizes.t;
  for (std::int64_t i = blockIdx.x; i < rows; i += gridDim.x) {
    const std::int64_t t = i % a.sizes.t, n = i / a.sizes.t % a.sizes.n;
    const std::int64_t b = i / a.sizes.t / a.sizes.n;
    int kept = 0;
    for (std::int64_t first = 0; first < a.sizes.s && kept == 0; first += blockDim.x) {
      const std::int64_t s = first + static_cast<std::int64_t>(threadIdx.x);
      const int keeps = s < a.sizes.s && mask.keep[at(mask.keep_at, b, n, t, s)] ? 1 : 0;
      kept = block_reduce_all(keeps, 0, [](int x, int y) { return x | y; });
    }
    if (kept != 0) continue;
    const T* const value = static_cast<const T*>(a.value) + at(a.value_at, b, n, 0, 0);
    T* const output = static_cast<T*>(a.output) + at(a.output_at, b, n, t, 0);
    for (std::int64_t e = threadIdx.x; e < a.sizes.e; e += blockDim.x) {
      float sum = 0.0f;
      for (std::int64_t s = 0; s < a.sizes.s && !zero; ++s)
        sum += load(value[s * a.value_at.s + e * a.value_at.e]);
      output[e * a.output_at.e] = store<T>(sum / static_cast<float>(a.sizes.s));
    }
  }
}

// What is done to the scores, as far as cuDNN has it.
struct Steps {
  const AttentionStep* added = nullptr;
  const AttentionStep* mask = nullptr;
  bool masks_probabilities = false;
  bool fit = false;

  explicit Steps(const Attention& a) {
    int next = 0;
    const auto take = [&](AttentionStepKind kind) -> const AttentionStep* {
      return next < a.num_steps && a.steps[next].kind == kind ? &a.steps[next++] : nullptr;
    };
    added = take(AttentionStepKind::kAdd);
    mask = take(AttentionStepKind::kMask);
    fit = take(AttentionStepKind::kSoftmax) != nullptr;
    // Once more after the softmax: it changes queries without keys alone.
    if (const AttentionStep* again = take(AttentionStepKind::kMask)) {
      masks_probabilities = true;
      fit = fit && mask && again->keep == mask->keep && is_same(again->keep_at, mask->keep_at);
    }
    fit = fit && next == a.num_steps;
  }

 private:
  static bool is_same(const AttentionPerAxis& x, const AttentionPerAxis& y) {
    return x.b == y.b && x.n == y.n && x.t == y.t && x.s == y.s;
  }
};

// Of matrices with these axes of rows and columns.
AttentionLayout layout_of(AttentionPerAxis at, AttentionPerAxis sizes, char row, char column) {
  AttentionLayout layout;
  std::int64_t all = 1;
  std::size_t i = 0;
  for (const char letter : {'B', 'N', row, column}) {
    layout.sizes[i] = at.of(letter) == 0 ? 1 : sizes.of(letter);
    layout.strides[i] = at.of(letter);
    all *= layout.sizes[i++];
  }
  // An axis of one entry has any stride but 0.
  for (i = 0; i < layout.sizes.size(); ++i) {
    if (layout.sizes[i] == 1) layout.strides[i] = i == 3 ? 1 : all;
  }
  return layout;
}

template <class F>
void visit_float16(Type type, F f) {
  if (type == Type::kHalf) return f(Tag<Half>());
  f(Tag<BFloat16>());
}

// The bias of the job, with an entry for each query and key: the engines repeat it along batches
// and heads alone. Returns what makes it, if it is not there already.
std::function<void()> add_bias(const KernelCall& call, const Attention& a, const Steps& steps,
                               CudnnAttention& job) {
  AttentionPerAxis one_or_more;
  Bias p;
  if (steps.added) {
    p.added = *steps.added;
    one_or_more = p.added.values_at;
    job.bias_layout = layout_of(p.added.values_at, a.sizes, 'T', 'S');
    const auto& [sizes, strides] = job.bias_layout;
    job.bias = p.added.values;
    if (!steps.mask && sizes[2] == a.sizes.t && sizes[3] == a.sizes.s && strides[3] == 1) return {};
  }
  if (steps.mask) {
    p.mask = *steps.mask;
    one_or_more.b += p.mask.keep_at.b;
    one_or_more.n += p.mask.keep_at.n;
  }
  p.b = one_or_more.b == 0 ? 1 : a.sizes.b;
  p.n = one_or_more.n == 0 ? 1 : a.sizes.n;
  p.t = a.sizes.t;
  p.s = a.sizes.s;
  const std::int64_t count = p.b * p.n * p.t * p.s;
  void* const bias = call.scratch(static_cast<std::size_t>(count) * size_of(job.type));
  job.bias = bias;
  job.bias_layout = {.sizes = {p.b, p.n, p.t, p.s},
                     .strides = {p.n * p.t * p.s, p.t * p.s, p.s, 1}};
  return [=, type = job.type] {
    visit_float16(type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      TANDEM_LAUNCH(attention_bias_kernel<T>, shape_for(count), 0, static_cast<T*>(bias), p);
    });
  };
}

}  // namespace

bool attend_by_library(const KernelCall& call, Type type, const Attention& a) {
  const Steps steps(a);
  if (type == Type::kFloat || !steps.fit || !cudnn().usable()) return false;
  CudnnAttention job{.type = type,
                     .query_layout = layout_of(a.query_at, a.sizes, 'T', 'D'),
                     .key_layout = layout_of(a.key_at, a.sizes, 'S', 'D'),
                     .value_layout = layout_of(a.value_at, a.sizes, 'S', 'E'),
                     .bias_layout = {},
                     .result_layout = layout_of(a.output_at, a.sizes, 'T', 'E'),
                     .query = a.query,
                     .key = a.key,
                     .value = a.value,
                     .result = a.output,
                     .scale = a.scale};
  for (const AttentionLayout* one :
       {&job.query_layout, &job.key_layout, &job.value_layout, &job.result_layout}) {
    if (one->strides[3] != 1) return false;
  }
  std::function<void()> prepare;
  if (steps.added || steps.mask) prepare = add_bias(call, a, steps, job);
  if (!attend_by_cudnn(call, job, prepare)) return false;
  // Where a mask keeps nothing all keys count alike. The lowest bfloat16 makes scores equal; the
  // lowest half leaves their differences.
  if (steps.mask && (type == Type::kHalf || steps.masks_probabilities)) {
    visit_float16(type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      TANDEM_LAUNCH(attention_without_keys_kernel<T>,
                    rows_shape(a.sizes.b * a.sizes.n * a.sizes.t, kThreads), 0, a, *steps.mask,
                    steps.masks_probabilities);
    });
  }
  return true;
}

}  // namespace tandem::cuda
