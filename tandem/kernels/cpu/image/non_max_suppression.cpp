// The best of many boxes that overlap: NonMaxSuppression in its versions.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"

namespace tandem::cpu {
namespace {

struct Limits {
  std::int64_t most = 0;
  float overlap = 0.5f;
  float score = std::numeric_limits<float>::lowest();
  float sigma = 0;
};

struct Chosen {
  std::vector<std::int32_t> index;
  std::vector<float> score;
};

struct Candidate {
  std::int32_t index;
  float score;
  std::size_t compared;  // with how many of the chosen ones
};

// True if a has the lower score, or comes later.
struct WorseOrLater {
  bool operator()(const Candidate& a, const Candidate& b) const {
    return a.score != b.score ? a.score < b.score : a.index > b.index;
  }
};
// Equal scores come as the queue, a heap, has them.
struct Worse {
  bool operator()(const Candidate& a, const Candidate& b) const { return a.score < b.score; }
};

// What an overlap that excludes no box makes of its score.
enum class Weight {
  kByOverlap,  // less with a sigma; without one only an overlap that is a NaN changes it, to 0
  kNone,
};

// `overlap(i, j)` is how much two boxes overlap. With a sigma overlap lowers the score;
// without one too much of it excludes the box.
template <class Order = WorseOrLater, Weight kWeight = Weight::kByOverlap, class Overlap>
Chosen choose(const std::vector<float>& scores, const Limits& limits, Overlap overlap) {
  std::priority_queue<Candidate, std::vector<Candidate>, Order> queue;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] > limits.score) queue.push({static_cast<std::int32_t>(i), scores[i], 0});
  }
  const bool soft = limits.sigma > 0;
  const float scale = soft ? -0.5f / limits.sigma : 0;
  Chosen chosen;
  while (static_cast<std::int64_t>(chosen.index.size()) < limits.most && !queue.empty()) {
    Candidate next = queue.top();
    queue.pop();
    const float before = next.score;
    bool excluded = false;
    for (std::size_t j = chosen.index.size(); j-- > next.compared;) {
      const float same = overlap(next.index, chosen.index[j]);
      if (!soft && same > limits.overlap) {
        excluded = true;
        break;
      }
      if constexpr (kWeight == Weight::kByOverlap)
        next.score *= soft || same <= limits.overlap ? std::exp(scale * same * same) : 0.0f;
      if (next.score <= limits.score) break;
    }
    next.compared = chosen.index.size();
    if (excluded) continue;
    if (next.score == before) {
      chosen.index.push_back(next.index);
      chosen.score.push_back(next.score);
    } else if (next.score > limits.score) {
      queue.push(next);
    }
  }
  return chosen;
}

// Intersection over union; corners may come in any order.
float intersection_over_union(const float* a, const float* b) {
  const float ay1 = std::min(a[0], a[2]), ay2 = std::max(a[0], a[2]);
  const float ax1 = std::min(a[1], a[3]), ax2 = std::max(a[1], a[3]);
  const float by1 = std::min(b[0], b[2]), by2 = std::max(b[0], b[2]);
  const float bx1 = std::min(b[1], b[3]), bx2 = std::max(b[1], b[3]);
  const float area_a = (ay2 - ay1) * (ax2 - ax1), area_b = (by2 - by1) * (bx2 - bx1);
  if (area_a <= 0 || area_b <= 0) return 0;
  const float height = std::max(std::min(ay2, by2) - std::max(ay1, by1), 0.0f);
  const float width = std::max(std::min(ax2, bx2) - std::max(ax1, bx1), 0.0f);
  const float both = height * width;
  return both / (area_a + area_b - both);
}

std::vector<float> floats(const Array& a) {
  if (a.dtype() == DType::kFloat) {
    const auto values = a.values<float>();
    return {values.begin(), values.end()};
  }
  std::vector<float> converted;
  for (const Half value : a.values<Half>()) converted.push_back(static_cast<float>(value));
  return converted;
}

float scalar_float(const KernelContext& c, int i, const char* name) {
  if (c.input(i).rank() != 0) {
    throw InvalidArgumentError(cat(name, " must be 0-D, got shape ", c.input(i).shape()));
  }
  return floats(c.input(i))[0];
}

void require_threshold(float threshold) {
  if (!(threshold >= 0 && threshold <= 1)) {
    throw InvalidArgumentError(cat("iou_threshold must be in [0, 1], but is ", threshold));
  }
}

std::int64_t output_size(const KernelContext& c, int i) {
  const Array& size = c.input(i);
  if (size.rank() != 0) {
    throw InvalidArgumentError(cat("max_output_size must be 0-D, got shape ", size.shape()));
  }
  const std::int32_t most = *size.data<std::int32_t>();
  if (most < 0) {
    throw InvalidArgumentError(cat("output size must be non-negative, but is ", most));
  }
  return most;
}

void require_scores(const KernelContext& c, std::int64_t boxes) {
  const Shape& scores = c.input(1).shape();
  if (scores.rank() != 1 || scores[0] != boxes) {
    throw InvalidArgumentError(
        cat("scores has incompatible shape: ", scores, " for ", boxes, " boxes"));
  }
}

// Inputs: boxes, scores, max_output_size, and from input 3 on the thresholds that the version has.
Chosen choose_boxes(const KernelContext& c, Limits limits) {
  const Shape& boxes = c.input(0).shape();
  if (boxes.rank() != 2) throw InvalidArgumentError(cat("boxes must be 2-D, got shape ", boxes));
  if (boxes[1] != 4) throw InvalidArgumentError(cat("boxes must have 4 columns, got ", boxes));
  require_scores(c, boxes[0]);
  require_threshold(limits.overlap);
  if (limits.sigma < 0) {
    throw InvalidArgumentError(cat("soft_nms_sigma must be >= 0, but is ", limits.sigma));
  }
  const std::vector<float> corners = floats(c.input(0));
  return choose(floats(c.input(1)), limits, [&](std::int32_t i, std::int32_t j) {
    return intersection_over_union(corners.data() + std::int64_t{4} * i,
                                   corners.data() + std::int64_t{4} * j);
  });
}

// The indices as output 0, filled up with zeros to `size` at least.
void set_indices(KernelContext& c, const Chosen& chosen, std::int64_t size) {
  const auto count = static_cast<std::int64_t>(chosen.index.size());
  Array& out = c.allocate_output(0, Shape{std::max(count, size)});
  auto* to = out.data<std::int32_t>();
  std::fill(std::copy(chosen.index.begin(), chosen.index.end(), to), to + out.num_elements(), 0);
}

void suppress(KernelContext& c) {
  set_indices(c, choose_boxes(c, {output_size(c, 2), c.attr<float>("iou_threshold")}), 0);
}
void suppress_v2(KernelContext& c) {
  set_indices(c, choose_boxes(c, {output_size(c, 2), scalar_float(c, 3, "iou_threshold")}), 0);
}
Limits limits_v3(const KernelContext& c) {
  return {output_size(c, 2), scalar_float(c, 3, "iou_threshold"),
          scalar_float(c, 4, "score_threshold")};
}
void suppress_v3(KernelContext& c) { set_indices(c, choose_boxes(c, limits_v3(c)), 0); }

void suppress_v4(KernelContext& c) {
  const Limits limits = limits_v3(c);
  const Chosen chosen = choose_boxes(c, limits);
  set_indices(c, chosen, c.attr<bool>("pad_to_max_output_size") ? limits.most : 0);
  *c.allocate_output(1, Shape{}).data<std::int32_t>() =
      static_cast<std::int32_t>(chosen.index.size());
}

void suppress_v5(KernelContext& c) {
  Limits limits = limits_v3(c);
  limits.sigma = scalar_float(c, 5, "soft_nms_sigma");
  const Chosen chosen = choose_boxes(c, limits);
  const std::int64_t size = c.attr<bool>("pad_to_max_output_size") ? limits.most : 0;
  set_indices(c, chosen, size);
  const auto count = static_cast<std::int64_t>(chosen.score.size());
  Array& scores = c.allocate_output(1, Shape{std::max(count, size)});
  for (std::int64_t i = 0; i < scores.num_elements(); ++i) {
    const float score = i < count ? chosen.score[static_cast<std::size_t>(i)] : 0.0f;
    if (scores.dtype() == DType::kFloat) {
      scores.data<float>()[i] = score;
    } else {
      scores.data<Half>()[i] = static_cast<Half>(score);
    }
  }
  *c.allocate_output(2, Shape{}).data<std::int32_t>() = static_cast<std::int32_t>(count);
}

void suppress_overlaps(KernelContext& c) {
  const Shape& shape = c.input(0).shape();
  if (shape.rank() != 2 || shape[0] != shape[1]) {
    throw InvalidArgumentError(cat("overlaps must be square, got shape ", shape));
  }
  require_scores(c, shape[0]);
  const Limits limits{output_size(c, 2), scalar_float(c, 3, "overlap_threshold"),
                      scalar_float(c, 4, "score_threshold")};
  const float* overlaps = c.input(0).data<float>();
  const auto chosen = choose(floats(c.input(1)), limits, [&](std::int32_t i, std::int32_t j) {
    return overlaps[i * shape[0] + j];
  });
  set_indices(c, chosen, 0);
}

// ---- All classes of all images ----

struct Detection {
  float score = -1;
  std::int64_t box = -1;  // none
  std::int64_t of_class = -1;
};

void combined(KernelContext& c) {
  const Shape &boxes = c.input(0).shape(), &scores = c.input(1).shape();
  if (boxes.rank() != 4 || boxes[3] != 4) {
    throw InvalidArgumentError(cat("boxes must be 4-D with 4 coordinates, got shape ", boxes));
  }
  if (scores.rank() != 3 || scores[0] != boxes[0] || scores[1] != boxes[1]) {
    throw InvalidArgumentError(cat("scores has incompatible shape ", scores, " for boxes ", boxes));
  }
  const std::int64_t batch = boxes[0], count = boxes[1], shared = boxes[2], classes = scores[2];
  if (shared != 1 && shared != classes) {
    throw InvalidArgumentError(
        cat("third dimension of boxes must be either 1 or equal to the "
            "third dimension of scores, but is ",
            shared, " for ", classes, " classes"));
  }
  Limits limits{scalar_int_input(c, 2, "max_size_per_class"), scalar_float(c, 4, "iou_threshold"),
                scalar_float(c, 5, "score_threshold")};
  const std::int64_t total = scalar_int_input(c, 3, "max_total_size");
  if (limits.most <= 0) throw InvalidArgumentError("max_size_per_class must be positive");
  if (total <= 0) throw InvalidArgumentError("max_total_size must be > 0");
  require_threshold(limits.overlap);
  const std::int64_t size = c.attr<bool>("pad_per_class")
                                ? std::min(total, checked_multiply(limits.most, classes))
                                : total;
  const bool clip = c.attr<bool>("clip_boxes");
  Array& out_boxes = c.allocate_output(0, Shape{batch, size, 4});
  Array& out_scores = c.allocate_output(1, Shape{batch, size});
  Array& out_classes = c.allocate_output(2, Shape{batch, size});
  Array& out_count = c.allocate_output(3, Shape{batch});
  for (Array* out : {&out_boxes, &out_scores, &out_classes}) {
    std::fill(out->data<float>(), out->data<float>() + out->num_elements(), 0.0f);
  }
  const float* box = c.input(0).data<float>();
  const float* score = c.input(1).data<float>();
  limits.most = std::min(limits.most, count);
  const auto box_at = [&](std::int64_t b, std::int64_t i, std::int64_t k) {
    return box + ((b * count + i) * shared + (shared == 1 ? 0 : k)) * 4;
  };
  const double cost = 100.0 * static_cast<double>(count * classes);
  c.intra_op().parallel_for(batch, cost, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> own(static_cast<std::size_t>(count));
    for (std::int64_t b = begin; b < end; ++b) {
      // So many places a class, found or not: the order of equal scores in TensorFlow comes from
      // sorting all of them.
      std::vector<Detection> found(
          static_cast<std::size_t>(checked_multiply(limits.most, classes)));
      std::int64_t valid = 0;
      for (std::int64_t k = 0; k < classes; ++k) {
        for (std::int64_t i = 0; i < count; ++i) {
          own[static_cast<std::size_t>(i)] = score[(b * count + i) * classes + k];
        }
        const Chosen chosen =
            choose<Worse, Weight::kNone>(own, limits, [&](std::int32_t i, std::int32_t j) {
              return intersection_over_union(box_at(b, i, k), box_at(b, j, k));
            });
        for (std::size_t i = 0; i < chosen.index.size(); ++i) {
          found[static_cast<std::size_t>(k * limits.most) + i] = {chosen.score[i], chosen.index[i],
                                                                  k};
        }
        valid += static_cast<std::int64_t>(chosen.index.size());
      }
      std::sort(found.begin(), found.end(),
                [](const Detection& x, const Detection& y) { return x.score > y.score; });
      valid = std::min(valid, size);
      for (std::int64_t i = 0; i < valid; ++i) {
        const Detection& d = found[static_cast<std::size_t>(i)];
        out_scores.data<float>()[b * size + i] = d.score;
        out_classes.data<float>()[b * size + i] = static_cast<float>(d.of_class);
        if (d.box < 0) continue;  // nothing was found there, which beats scores below -1
        const float* from = box_at(b, d.box, d.of_class);
        float* to = out_boxes.data<float>() + (b * size + i) * 4;
        for (int k = 0; k < 4; ++k) to[k] = clip ? std::clamp(from[k], 0.0f, 1.0f) : from[k];
      }
      out_count.data<std::int32_t>()[b] = static_cast<std::int32_t>(valid);
    }
  });
}

const KernelRegistration kSuppress{{.op = "NonMaxSuppression", .run = suppress}};
const KernelRegistration kSuppressV2{{.op = "NonMaxSuppressionV2", .run = suppress_v2}};
const KernelRegistration kSuppressV3{{.op = "NonMaxSuppressionV3", .run = suppress_v3}};
const KernelRegistration kSuppressV4{{.op = "NonMaxSuppressionV4", .run = suppress_v4}};
const KernelRegistration kSuppressV5{{.op = "NonMaxSuppressionV5", .run = suppress_v5}};
const KernelRegistration kOverlaps{
    {.op = "NonMaxSuppressionWithOverlaps", .run = suppress_overlaps}};
const KernelRegistration kCombined{{.op = "CombinedNonMaxSuppression", .run = combined}};

}  // namespace
}  // namespace tandem::cpu
