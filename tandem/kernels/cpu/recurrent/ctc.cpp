// Connectionist temporal classification (Graves et al., 2006): loss with gradient, and the greedy
// decoder.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

struct Sizes {
  std::int64_t time, batch, classes;
};

Sizes check_inputs(const KernelContext& c, const Array& lengths) {
  const Shape& in = c.input(0).shape();
  if (in.rank() != 3) throw InvalidArgumentError(cat("inputs is not a 3-Tensor: ", in));
  if (lengths.rank() != 1) {
    throw InvalidArgumentError(cat("sequence_length is not a vector: ", lengths.shape()));
  }
  const Sizes s{in[0], in[1], in[2]};
  if (lengths.shape()[0] != s.batch) {
    throw InvalidArgumentError(cat("len(sequence_length) != batch_size. len(sequence_length): ",
                                   lengths.shape()[0], " batch_size: ", s.batch));
  }
  if (s.batch == 0) throw InvalidArgumentError("batch_size must not be 0");
  if (s.classes == 0) throw InvalidArgumentError("num_classes must not be 0");
  for (const std::int32_t length : lengths.values<std::int32_t>()) {
    if (length < 0 || length > s.time) {
      throw InvalidArgumentError(
          cat("sequence_length(b) must be in [0, ", s.time, "], but is ", length));
    }
  }
  return s;
}

struct Labels {
  std::vector<int> path;   // without blanks, and without repeats if they collapse
  std::int64_t given = 0;  // as they came
};

void check_places(const Array& places, const Array& values, std::int64_t batch) {
  if (places.rank() != 2 || places.shape()[1] != 2) {
    throw InvalidArgumentError(cat("labels_indices is not a matrix of pairs: ", places.shape()));
  }
  if (values.rank() != 1 || values.shape()[0] != places.shape()[0]) {
    throw InvalidArgumentError(cat("labels_values must be a vector of ", places.shape()[0],
                                   " elements, but has shape ", values.shape()));
  }
  if (values.num_elements() == 0) throw InvalidArgumentError("Expected at least one label.");
  const std::int64_t* place = places.data<std::int64_t>();
  for (std::int64_t i = 0; i < values.num_elements(); ++i, place += 2) {
    if (place[0] < 0 || place[0] >= batch || place[1] < 0) {
      throw InvalidArgumentError(cat("labels_indices[", i, "] = [", place[0], ", ", place[1],
                                     "] is out of bounds: sequences are below ", batch,
                                     ", indices not negative"));
    }
    if (i == 0) continue;
    const bool repeated = place[0] == place[-2] && place[1] == place[-1];
    if (repeated || place[0] < place[-2] || (place[0] == place[-2] && place[1] < place[-1])) {
      throw InvalidArgumentError(cat("labels_indices[", i, "] = [", place[0], ", ", place[1],
                                     "] is ", repeated ? "repeated" : "out of order",
                                     ". Sort the labels by sequence and place."));
    }
  }
}

// The labels of each sequence, checked; a blank may only be followed by blanks, which end it. Where
// the blank is the last class, labels beyond it are blanks too.
std::vector<Labels> read_labels(const KernelContext& c, const Sizes& s, int blank, bool collapse) {
  const Array &places = c.input(1), &values = c.input(2);
  check_places(places, values, s.batch);
  std::vector<Labels> labels(static_cast<std::size_t>(s.batch));
  std::vector<bool> over(labels.size());
  std::vector<int> before(labels.size(), -1);
  for (std::int64_t i = 0; i < values.num_elements(); ++i) {
    const std::int64_t sequence = places.data<std::int64_t>()[2 * i];
    const auto b = static_cast<std::size_t>(sequence);
    ++labels[b].given;
    const int value = values.data<std::int32_t>()[i];
    if (value < 0 || (value >= s.classes && blank == 0)) {
      throw InvalidArgumentError(
          cat("All labels must be in [0, ", s.classes, "), but one is ", value));
    }
    if (value == blank || value >= s.classes) {
      over[b] = true;
    } else if (!collapse || value != before[b]) {
      if (over[b]) {
        throw InvalidArgumentError(
            cat("Saw a non-null label following a null label, in sequence ", sequence));
      }
      labels[b].path.push_back(value);
    }
    before[b] = value;
  }
  return labels;
}

template <class T>
constexpr T kLogZero = -std::numeric_limits<T>::infinity();

template <class T>
T log_add(T a, T b) {
  if (a == kLogZero<T>) return b;
  if (b == kLogZero<T>) return a;
  return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
}

// One sequence: `log_y` holds the logarithms of its probabilities, [time][classes]. Returns the
// loss and sets `gradient` in the same form.
template <class T>
T sequence_loss(const std::vector<int>& labels, std::int64_t time, std::int64_t classes, int blank,
                bool merge, const std::vector<T>& log_y, std::vector<T>& gradient) {
  std::vector<int> path(labels.size() * 2 + 1, blank);
  for (std::size_t i = 0; i < labels.size(); ++i) path[2 * i + 1] = labels[i];
  const std::size_t states = path.size();
  const auto steps = static_cast<std::size_t>(time);
  const auto y = [&](std::size_t t, std::size_t u) {
    return log_y[t * static_cast<std::size_t>(classes) + static_cast<std::size_t>(path[u])];
  };
  const auto may_stay = [&](std::size_t u) { return merge || path[u] == blank; };
  // From state u − 2 over the blank between.
  const auto may_skip = [&](std::size_t u) {
    return path[u] != blank && !(merge && path[u] == path[u - 2]);
  };
  std::vector<T> alpha(steps * states, kLogZero<T>), beta(steps * states, kLogZero<T>);
  alpha[0] = y(0, 0);
  if (states > 1) alpha[1] = y(0, 1);
  for (std::size_t t = 1; t < steps; ++t) {
    const T* from = alpha.data() + (t - 1) * states;
    for (std::size_t u = 0; u < states; ++u) {
      T sum = may_stay(u) ? from[u] : kLogZero<T>;
      if (u > 0) sum = log_add(sum, from[u - 1]);
      if (u > 1 && may_skip(u)) sum = log_add(sum, from[u - 2]);
      alpha[t * states + u] = sum + y(t, u);
    }
  }
  T* last = beta.data() + (steps - 1) * states;
  last[states - 1] = 0;
  if (states > 1) last[states - 2] = 0;
  for (std::size_t t = steps - 1; t-- > 0;) {
    const T* from = beta.data() + (t + 1) * states;
    for (std::size_t u = 0; u < states; ++u) {
      T sum = may_stay(u) ? from[u] + y(t + 1, u) : kLogZero<T>;
      if (u + 1 < states) sum = log_add(sum, from[u + 1] + y(t + 1, u + 1));
      if (u + 2 < states && may_skip(u + 2)) sum = log_add(sum, from[u + 2] + y(t + 1, u + 2));
      beta[t * states + u] = sum;
    }
  }
  T all = kLogZero<T>;
  for (std::size_t u = 0; u < states; ++u) all = log_add(all, alpha[u] + beta[u]);
  if (all == kLogZero<T>) {  // no path at all, whose share the probabilities would lose
    std::transform(log_y.begin(), log_y.end(), gradient.begin(),
                   [](T value) { return std::exp(value); });
    return -all;
  }
  std::vector<T> share(static_cast<std::size_t>(classes));
  for (std::size_t t = 0; t < steps; ++t) {
    std::fill(share.begin(), share.end(), kLogZero<T>);
    for (std::size_t u = 0; u < states; ++u) {
      T& sum = share[static_cast<std::size_t>(path[u])];
      sum = log_add(sum, alpha[t * states + u] + beta[t * states + u]);
    }
    for (std::size_t k = 0; k < share.size(); ++k) {
      const std::size_t at = t * share.size() + k;
      gradient[at] = std::exp(log_y[at]) - std::exp(share[k] - all);
    }
  }
  return -all;
}

template <class T>
void loss_of(KernelContext& c, bool blank_first) {
  const Array& lengths = c.input(3);
  const Sizes s = check_inputs(c, lengths);
  const int blank = blank_first ? 0 : static_cast<int>(s.classes - 1);
  const auto labels = read_labels(c, s, blank, c.attr<bool>("preprocess_collapse_repeated"));
  const bool merge = c.attr<bool>("ctc_merge_repeated");
  const bool ignore_longer = c.attr<bool>("ignore_longer_outputs_than_inputs");
  for (std::int64_t b = 0; b < s.batch; ++b) {
    const std::int64_t need = labels[static_cast<std::size_t>(b)].given;
    const std::int64_t have = lengths.data<std::int32_t>()[b];
    if (need == 0) throw InvalidArgumentError(cat("Labels length is zero in sequence ", b));
    if (need > have && !ignore_longer) {
      throw InvalidArgumentError(cat("Not enough time for target transition sequence (required: ",
                                     need, ", available: ", have, ") in sequence ", b,
                                     ". You can turn this error into a warning by using the flag "
                                     "ignore_longer_outputs_than_inputs"));
    }
  }
  Array& loss = c.allocate_output(0, Shape{s.batch});
  Array& gradient = c.allocate_output(1, c.input(0).shape());
  const T* in = c.input(0).data<T>();
  T* to = gradient.data<T>();
  std::fill(to, to + gradient.num_elements(), T(0));
  const double cost = 200.0 * static_cast<double>(s.time * s.classes);
  c.intra_op().parallel_for(s.batch, cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      const auto& own = labels[static_cast<std::size_t>(b)];
      const std::int64_t time = lengths.data<std::int32_t>()[b];
      T& result = loss.data<T>()[b];
      result = 0;
      if (time == 0 || own.given > time) continue;
      std::vector<T> log_y(static_cast<std::size_t>(time * s.classes)), slope(log_y.size());
      const auto row = [&](std::int64_t t) { return (t * s.batch + b) * s.classes; };
      for (std::int64_t t = 0; t < time; ++t) {
        const T* logits = in + row(t);
        const T most = *std::max_element(logits, logits + s.classes);
        T sum = 0;
        for (std::int64_t k = 0; k < s.classes; ++k) sum += std::exp(logits[k] - most);
        for (std::int64_t k = 0; k < s.classes; ++k) {
          log_y[static_cast<std::size_t>(t * s.classes + k)] = logits[k] - most - std::log(sum);
        }
      }
      result = sequence_loss(own.path, time, s.classes, blank, merge, log_y, slope);
      for (std::int64_t t = 0; t < time; ++t) {
        std::copy_n(slope.begin() + t * s.classes, s.classes, to + row(t));
      }
    }
  });
}

void loss(KernelContext& c) {
  if (c.input(0).dtype() == DType::kFloat) return loss_of<float>(c, false);
  loss_of<double>(c, false);
}
void loss_v2(KernelContext& c) { loss_of<float>(c, true); }

template <class T>
void greedy_of(KernelContext& c) {
  const Array& lengths = c.input(1);
  const Sizes s = check_inputs(c, lengths);
  auto blank = c.attr<std::int64_t>("blank_index");
  if (blank < 0) blank += s.classes;
  if (blank < 0 || blank >= s.classes) {
    throw InvalidArgumentError(cat("blank_index expected to be between ", -s.classes, " and ",
                                   s.classes - 1, " but was ",
                                   c.attr<std::int64_t>("blank_index")));
  }
  const bool merge = c.attr<bool>("merge_repeated");
  Array& log_probability = c.allocate_output(3, Shape{s.batch, 1});
  std::vector<std::int64_t> places, values;
  std::int64_t longest = 0;
  for (std::int64_t b = 0; b < s.batch; ++b) {
    T sum = 0;
    std::int64_t before = -1, count = 0;
    for (std::int64_t t = 0; t < lengths.data<std::int32_t>()[b]; ++t) {
      const T* row = c.input(0).data<T>() + (t * s.batch + b) * s.classes;
      const std::int64_t best = std::max_element(row, row + s.classes) - row;
      sum -= row[best];
      if (best != blank && !(merge && best == before)) {
        places.push_back(b);
        places.push_back(count++);
        values.push_back(best);
      }
      before = best;
    }
    log_probability.data<T>()[b] = sum;
    longest = std::max(longest, count);
  }
  c.set_output(0, Array::from(std::span<const std::int64_t>(places),
                              Shape{static_cast<std::int64_t>(values.size()), 2}));
  c.set_output(1, Array::vector(values));
  c.set_output(2, Array::vector(std::vector<std::int64_t>{s.batch, longest}));
}

void greedy(KernelContext& c) {
  if (c.input(0).dtype() == DType::kFloat) return greedy_of<float>(c);
  greedy_of<double>(c);
}

const KernelRegistration kLoss{{.op = "CTCLoss", .run = loss}};
const KernelRegistration kLossV2{{.op = "CTCLossV2", .run = loss_v2}};
const KernelRegistration kGreedy{{.op = "CTCGreedyDecoder", .run = greedy}};

}  // namespace
}  // namespace tandem::cpu
