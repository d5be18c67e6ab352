// Beam search over the labellings of connectionist temporal classification.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>
#include <unordered_map>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"

namespace tandem::cpu {
namespace {

template <class T>
class BeamSearch {
 public:
  BeamSearch(std::int64_t classes, std::int64_t width)
      : labels_(static_cast<int>(classes - 1)), width_(static_cast<std::size_t>(width)) {
    nodes_.push_back({});
    nodes_[0].now = {0, 0, kNever};
    leaves_.push_back(0);
  }

  // Takes in the logits of the next time.
  void step(const T* logits) {
    // Logits less this are logarithms of probabilities.
    const T most = *std::max_element(logits, logits + labels_ + 1);
    T sum = 0;
    for (int k = 0; k <= labels_; ++k) sum += std::exp(logits[k] - most);
    const T norm = most + std::log(sum);
    const std::vector<int> beams = best();
    leaves_.clear();
    for (const int id : beams) node(id).before = node(id).now;
    for (const int id : beams) {
      prolong(node(id), logits, norm);
      push(id);
    }
    for (const int id : beams) {
      if (!would_stay(node(id).before.total)) continue;
      for (int label = 0; label < labels_; ++label) grow(id, label, logits[label] - norm);
    }
  }

  // The leaves, most probable first.
  std::vector<int> best() const {
    std::vector<int> sorted = leaves_;
    std::sort(sorted.begin(), sorted.end(), more());
    return sorted;
  }

  T log_probability(int id) const { return node(id).now.total; }

  std::vector<std::int64_t> path(int id, bool merge_repeated) const {
    std::vector<std::int64_t> path;
    for (int last = -1; node(id).parent >= 0; id = node(id).parent) {
      if (!merge_repeated || node(id).label != last) path.push_back(node(id).label);
      last = node(id).label;
    }
    std::reverse(path.begin(), path.end());
    return path;
  }

 private:
  static constexpr T kNever = -std::numeric_limits<T>::infinity();
  // Logarithms of the probabilities of a labelling: of all its paths, of those that end with a
  // blank, of those that end with its last label.
  struct Probability {
    T total = kNever, blank = kNever, label = kNever;
  };
  struct Node {
    int parent = -1;
    int label = -1;
    std::unordered_map<int, int> children;
    Probability before, now;
  };

  static T log_add(T a, T b) {
    if (a == kNever) return b;
    if (b == kNever) return a;
    return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
  }

  const Node& node(int id) const { return nodes_[static_cast<std::size_t>(id)]; }
  Node& node(int id) { return nodes_[static_cast<std::size_t>(id)]; }
  auto more() const {
    return [this](int a, int b) { return node(a).now.total > node(b).now.total; };
  }
  bool would_stay(T total) const {
    return total > kNever && (leaves_.size() < width_ || total > node(leaves_.front()).now.total);
  }
  // leaves_ is a heap with the least probable in front.
  void push(int id) {
    leaves_.push_back(id);
    std::push_heap(leaves_.begin(), leaves_.end(), more());
  }

  // How a labelling goes on without a new label: its last one again, or a blank.
  void prolong(Node& beam, const T* logits, T norm) {
    if (beam.parent >= 0) {
      const Node& parent = node(beam.parent);
      if (parent.now.total != kNever) {
        beam.now.label = log_add(
            beam.now.label, beam.label == parent.label ? parent.before.blank : parent.before.total);
      }
      beam.now.label += logits[beam.label] - norm;
    }
    beam.now.blank = beam.before.total + logits[labels_] - norm;
    beam.now.total = log_add(beam.now.blank, beam.now.label);
  }

  void grow(int id, int label, T logit) {
    const Node& beam = node(id);
    const auto known = beam.children.find(label);
    if (known != beam.children.end() && node(known->second).now.total != kNever) return;
    const T total = logit + (label == beam.label ? beam.before.blank : beam.before.total);
    int child = known == beam.children.end() ? -1 : known->second;
    if (!would_stay(total)) {
      // A beam that fell out earlier in this step, and is not taken up again, grows no more.
      if (child >= 0) node(child).before = {};
      return;
    }
    if (child < 0) {
      child = static_cast<int>(nodes_.size());
      node(id).children.emplace(label, child);
      nodes_.push_back({});
      node(child).parent = id;
      node(child).label = label;
    }
    if (leaves_.size() == width_) {
      std::pop_heap(leaves_.begin(), leaves_.end(), more());
      node(leaves_.back()).now = {};
      leaves_.pop_back();
    }
    node(child).now = {total, kNever, total};
    push(child);
  }

  int labels_;  // all classes but the blank, which is the last one
  std::size_t width_;
  std::deque<Node> nodes_;
  std::vector<int> leaves_;
};

struct Path {
  std::vector<std::int64_t> places, values;
  std::int64_t longest = 0;
};

template <class T>
void decode_of(KernelContext& c) {
  const Shape& in = c.input(0).shape();
  const Array& lengths = c.input(1);
  if (in.rank() != 3) throw InvalidArgumentError(cat("inputs is not a 3-Tensor: ", in));
  if (in.num_elements() == 0) throw InvalidArgumentError("inputs must not be empty");
  if (lengths.rank() != 1) {
    throw InvalidArgumentError(cat("sequence_length is not a vector: ", lengths.shape()));
  }
  const std::int64_t time = in[0], batch = in[1], classes = in[2];
  if (classes > std::numeric_limits<int>::max()) {
    throw InvalidArgumentError("num_classes cannot exceed max int");
  }
  if (lengths.shape()[0] != batch) {
    throw FailedPreconditionError(cat("len(sequence_length) != batch_size. len(sequence_length): ",
                                      lengths.shape()[0], " batch_size: ", batch));
  }
  const auto width = c.attr<std::int64_t>("beam_width");
  const auto wanted = c.attr<std::int64_t>("top_paths");
  const bool merge = c.attr<bool>("merge_repeated");
  if (wanted > width) throw InvalidArgumentError("requested more paths than the beam width.");
  Array& log_probability = c.allocate_output(static_cast<int>(3 * wanted), Shape{batch, wanted});
  std::vector<Path> paths(static_cast<std::size_t>(wanted));
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::int32_t length = lengths.data<std::int32_t>()[b];
    if (length > time) {
      throw FailedPreconditionError(cat("sequence_length(", b, ") <= ", time, ", but is ", length));
    }
    BeamSearch<T> search(classes, width);
    for (std::int64_t t = 0; t < length; ++t) {
      search.step(c.input(0).data<T>() + (t * batch + b) * classes);
    }
    const std::vector<int> best = search.best();
    if (static_cast<std::int64_t>(best.size()) < wanted) {
      throw InvalidArgumentError("Less leaves in the beam search than requested.");
    }
    for (std::size_t p = 0; p < paths.size(); ++p) {
      Path& all = paths[p];
      const auto path = search.path(best[p], merge);
      const auto size = static_cast<std::int64_t>(path.size());
      for (std::int64_t i = 0; i < size; ++i) all.places.insert(all.places.end(), {b, i});
      all.values.insert(all.values.end(), path.begin(), path.end());
      all.longest = std::max(all.longest, size);
      log_probability.data<T>()[b * wanted + static_cast<std::int64_t>(p)] =
          search.log_probability(best[p]);
    }
  }
  for (std::size_t p = 0; p < paths.size(); ++p) {
    const Path& path = paths[p];
    const auto k = static_cast<int>(p), n = static_cast<int>(wanted);
    c.set_output(k, Array::from(std::span<const std::int64_t>(path.places),
                                Shape{static_cast<std::int64_t>(path.values.size()), 2}));
    c.set_output(n + k, Array::vector(path.values));
    c.set_output(2 * n + k, Array::vector(std::vector<std::int64_t>{batch, path.longest}));
  }
}

void decode(KernelContext& c) {
  if (c.input(0).dtype() == DType::kFloat) return decode_of<float>(c);
  decode_of<double>(c);
}

const KernelRegistration kBeam{{.op = "CTCBeamSearchDecoder", .run = decode}};

}  // namespace
}  // namespace tandem::cpu
