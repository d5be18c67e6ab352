#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/data/observe/figures.h"
#include "tandem/data/observe/pipeline_model.h"

namespace tandem::data {
namespace {

using Advice = PipelineExplanation::Advice;

constexpr double kWorthwhile = 1.1;
constexpr std::size_t kMaxAdvice = 5;
// A map whose calls take longer has more to do than being called.
constexpr double kShortCall = 50e-6;
constexpr double kMaxCached = 4e9;     // bytes
constexpr double kFromCache = 0.5e-6;  // seconds for an element
constexpr int kMaxThreads = std::numeric_limits<int>::max();
constexpr int kReads = 4;  // files at a time with num_parallel_reads = kAutotune

class Adviser {
 public:
  Adviser(const PipelineStats& stats, const PipelineModel& model)
      : stats_(stats), model_(model), now_(model.rate()) {}

  std::vector<Advice> operator()() {
    for (int i = 0; i < static_cast<int>(stats_.stages.size()); ++i) {
      parallel_map(i);
      parallel_interleave(i);
      parallel_reads(i);
      batch_first(i);
    }
    best_of(&Adviser::prefetch);
    best_of(&Adviser::cache);
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Advice& a, const Advice& b) { return a.gain > b.gain; });
    if (found_.size() > kMaxAdvice) found_.resize(kMaxAdvice);
    return std::move(found_);
  }

 private:
  const PipelineStats::Stage& stage(int i) const {
    return stats_.stages[static_cast<std::size_t>(i)];
  }
  static PipelineModel::Stage& in(PipelineModel& model, int i) {
    return model.stages[static_cast<std::size_t>(i)];
  }

  // "this Map"; "Map 2" of several.
  std::string name(int i) const {
    const std::string label = stage_label(stats_, i);
    return label == stage(i).name ? "this " + label : label;
  }
  static std::string why_more_threads() {
    return " (it waits more than it computes: more threads than cores pay)";
  }

  void consider(int i, const std::function<void(PipelineModel&)>& change, std::string text) {
    PipelineModel changed = model_;
    change(changed);
    PipelineModel::Stage& now = in(changed, i);
    const PipelineModel::Stage& before = model_.stages[static_cast<std::size_t>(i)];
    now.hands_over = now.prefetched || (before.threads == 0 && now.threads > 0);
    const double rate = changed.rate();
    if (now_ <= 0 || rate < kWorthwhile * now_) return;
    found_.push_back({std::move(text), i, rate, rate / now_});
  }

  // Gives one kind of advice only where it gains most.
  void best_of(void (Adviser::*kind)(int)) {
    std::vector<Advice> others = std::exchange(found_, {});
    for (int i = 0; i < static_cast<int>(stats_.stages.size()); ++i) (this->*kind)(i);
    const auto best =
        std::max_element(found_.begin(), found_.end(),
                         [](const Advice& a, const Advice& b) { return a.gain < b.gain; });
    if (best != found_.end()) others.push_back(*best);
    found_ = std::move(others);
  }

  void parallel_map(int i) {
    const PipelineStats::Stage& s = stage(i);
    const int useful = model_.useful_threads(i);
    const auto widen = [&](PipelineModel& m) { in(m, i).threads = useful; };
    const std::string waits = s.waits() ? why_more_threads() : "";
    if (s.name.starts_with("Map") || s.name.starts_with("Filter+Map")) {
      consider(i, widen, cat("Give ", name(i), " num_parallel_calls = kAutotune", waits));
    } else if (s.name.starts_with("ParallelMap") && !s.tuned && s.threads < useful) {
      consider(i, widen,
               cat("Give ", name(i), " more than ", s.threads,
                   s.threads == 1 ? " thread" : " threads", ", or kAutotune", waits));
    }
  }

  void parallel_interleave(int i) {
    const PipelineStats::Stage& s = stage(i);
    const bool serial = s.name == "Interleave" || s.name == "FlatMap";
    const bool narrow = s.name == "ParallelInterleave" && !s.tuned && s.threads < model_.cores;
    // Each open dataset keeps one thread busy.
    const int most = s.cycle_length > 0 ? static_cast<int>(s.cycle_length) : kMaxThreads;
    if (s.name == "ParallelInterleave") longer_cycle(i, most);
    if (!serial && !narrow) return;
    consider(
        i,
        [&](PipelineModel& m) {
          in(m, i).threads = std::min(std::max(m.cores, inputs_wait(i) ? kReads : 0), most);
          in(m, i).own_inputs = true;
          for (const int input : s.inputs) in(m, input).by_consumer = !stage(input).nested;
        },
        narrow ? "Give this ParallelInterleave num_parallel_calls = kAutotune"
        : s.name == "FlatMap"
            ? "Use interleave with num_parallel_calls = kAutotune in place of this FlatMap, if the "
              "order may be another"
            : "Give this Interleave num_parallel_calls = kAutotune");
  }

  void longer_cycle(int i, int cycle) {
    const int useful = model_.useful_threads(i);
    if (useful <= cycle) return;
    consider(
        i, [&](PipelineModel& m) { in(m, i).threads = useful; },
        cat("Give ", name(i), " a cycle_length of ", useful, stage(i).tuned ? "" : " and kAutotune",
            ", if the order may be another: it takes from no more than ", cycle,
            cycle == 1 ? " dataset" : " datasets", " at a time",
            inputs_wait(i) ? why_more_threads() : ""));
  }

  bool inputs_wait(int i) const {
    const std::vector<int>& inputs = stage(i).inputs;
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](int input) { return stage(input).nested && stage(input).waits(); });
  }

  void parallel_reads(int i) {
    static constexpr std::array kReaders = {"TFRecord", "TextLine", "FixedLengthRecord", "CSV"};
    const PipelineStats::Stage& s = stage(i);
    const bool reads = std::any_of(kReaders.begin(), kReaders.end(),
                                   [&](const char* name) { return s.name == name; });
    // Where it reads several already, their datasets are its inputs.
    const bool several = std::any_of(s.inputs.begin(), s.inputs.end(),
                                     [&](int input) { return stage(input).nested; });
    if (!reads || s.nested || several || s.files == 1) return;
    const int most =
        s.files == 0 ? kReads : static_cast<int>(std::min<std::int64_t>(kReads, s.files));
    consider(
        i, [&](PipelineModel& m) { in(m, i).threads = std::min(most, m.cores); },
        "Read several files at a time: num_parallel_reads = kAutotune");
  }

  void batch_first(int i) {
    const PipelineStats::Stage& s = stage(i);
    if ((s.name != "Map" && s.name != "ParallelMap") || s.consumer < 0) return;
    const PipelineStats::Stage& batch = stage(s.consumer);
    if (batch.name != "Batch" || batch.elements == 0 || s.elements < 2 * batch.elements) return;
    if (s.work_per_element() > kShortCall) return;
    const double size = static_cast<double>(s.elements) / static_cast<double>(batch.elements);
    consider(
        i, [&](PipelineModel& m) { in(m, i).work /= size, in(m, i).cpu /= size; },
        cat("Put batch before ", name(i),
            ", if its function works on whole batches: one call "
            "for ",
            number_text(std::round(size)), " elements; at best"));
  }

  static bool is_prefetch(const PipelineStats::Stage& s) {
    return s.name == "Prefetch" || s.name == "PrefetchToDevice";
  }

  void prefetch(int i) {
    const PipelineStats::Stage& s = stage(i);
    if (is_prefetch(s) || s.nested) return;
    if (s.consumer >= 0 && is_prefetch(stage(s.consumer))) return;
    if (s.name == "CopyToDevice") {
      return consider(
          i, [&](PipelineModel& m) { in(m, i).prefetched = true; },
          "Use prefetch_to_device in place of this CopyToDevice: elements are then made and copied "
          "while the consumer works");
    }
    if (s.consumer >= 0 && stage(s.consumer).name == "CopyToDevice") return;
    consider(
        i, [&](PipelineModel& m) { in(m, i).prefetched = true; },
        cat("Add prefetch(kAutotune) after ", name(i),
            i == 0 ? ": elements are then made while the consumer works"
                   : ": what comes before then works at the same time as what follows"));
  }

  void cache(int i) {
    if (!can_cache(i)) return;
    const PipelineStats::Stage& s = stage(i);
    consider(
        i,
        [&](PipelineModel& m) {
          for (std::size_t j = 0; j < m.stages.size(); ++j) {
            if (!m.comes_before(static_cast<int>(j), i)) continue;
            m.stages[j].work = m.stages[j].cpu = 0;
            m.stages[j].threads = 0;
          }
          in(m, i).work = in(m, i).cpu = kFromCache * in(m, i).elements;
        },
        cat("Add cache() after ", name(i), ", if later passes find the same elements (",
            bytes_text(static_cast<double>(s.bytes)), " so far); from the second pass on"));
  }

  // Not where elements differ from pass to pass, nor where there may be no end of them.
  bool can_cache(int i) const {
    if (stage(i).nested || stage(i).bytes == 0) return false;
    if (static_cast<double>(stage(i).bytes) > kMaxCached) return false;
    static constexpr std::array kNever = {"Shuffle", "Repeat", "Cache", "Sample", "Prefetch"};
    for (int j = 0; j < static_cast<int>(stats_.stages.size()); ++j) {
      if (!model_.comes_before(j, i)) continue;
      if (stage(j).name == "Generator" && !stats_.ended) return false;
      for (const char* name : kNever) {
        if (stage(j).name.find(name) != std::string::npos) return false;
      }
    }
    return true;
  }

  const PipelineStats& stats_;
  const PipelineModel& model_;
  const double now_;
  std::vector<Advice> found_;
};

}  // namespace

std::vector<Advice> advice_for(const PipelineStats& stats, const PipelineModel& model) {
  return Adviser(stats, model)();
}

}  // namespace tandem::data
